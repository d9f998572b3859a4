"""Output of ``apsvm cv`` on the compared settings: a line per finished path, the table, the JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from apsvm._support.types import JsonDict
from apsvm.cli.options.trainers import option_name
from apsvm.cli.output.records import as_json
from apsvm.selection.grids import shown
from apsvm.trainers.settings import declared

if TYPE_CHECKING:
    from apsvm.metrics import Metric
    from apsvm.selection.average import Average
    from apsvm.selection.grids import Grid
    from apsvm.selection.race import Candidate
    from apsvm.selection.search import SettingsSearch


def spelled(grid: Grid, name: str) -> str:
    """A setting as the command line has it, without its dashes: ``lambda``."""
    settings = declared(type(grid.settings))
    return option_name(*settings[name]).replace("_", "-") if name in settings else name


@dataclass(frozen=True)
class Results:
    """The settings that were finished in every fold, and the one chosen."""

    search: SettingsSearch
    candidates: Sequence[Candidate]
    chosen: Candidate
    metrics: Mapping[str, Metric]
    references: Sequence[Candidate] = ()
    average: Average | None = None

    def table(self, *, every: bool = True) -> Iterator[str]:
        """A heading, a line for each setting with what differs, and the chosen one's expected value on new rows; unless
        ``every``, only the best on each feature map."""
        rows = list[dict[str, str]]()
        for one in self.candidates if every else self._best_of_maps():
            grid = self.search.grids[one.grid]
            setting = {spelled(grid, name): shown(value) for name, value in self._setting(one).items()}
            rows.append({**setting, **self._cells(one, ", ".join(self._marks(one)))})
        last = {spelled(grid, grid.along.name): None for grid in self._grids if grid.along is not None}
        named = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in last]
        named = [name for name in named if name not in (*self.metrics, "seconds", "")]
        differ = [name for name in named if len({row[name] for row in rows if name in row}) > 1]
        if not differ and self.search.averages:  # the user named none of them
            differ = [name for name in ("loss", "features", "bound") if name in named]
        if self.average is not None:
            number = len(self.average.members)
            rows.append(self._cells(self.average, f"average of the best on {number} feature maps, chosen"))
        for one in self.references:
            row = self._cells(one, "for comparison" if "loss" in differ else f"for comparison: {one.loss}")
            rows.append({"loss": one.loss, **{name: f"{value:g}" for name, value in one.choice.items()}, **row})
        names = [*differ, *last, *self.metrics, "seconds"]
        widths = {name: max(len(name), *(len(row.get(name, "")) for row in rows)) for name in names}
        for row in ({name: name for name in names}, *rows):
            yield "  ".join([*(row.get(name, "").rjust(widths[name]) for name in names), row.get("", "")]).rstrip()
        if len(self.candidates) > 1:
            worth = ", ".join(f"{metric} {value:.4f}" for metric, value in self.estimates.items())
            best = self.average or self.chosen
            interval = self.search.expected_ap(best, self.candidates) if "AP" in self.metrics else None
            likely = "" if interval is None else f" (AP most likely {interval.low:.2f} to {interval.high:.2f})"
            yield f"expected on new rows: {worth}{likely}"

    @property
    def estimates(self) -> dict[str, float]:
        """Expected value of each metric on new rows, for the chosen ranker."""
        best = self.average or self.chosen
        return {metric: self.search.estimate(best, self.candidates, metric) for metric in self.metrics}

    def _best_of_maps(self) -> list[Candidate]:
        """For each feature map the candidate that is chosen or averaged, or else the best one."""
        used = [self.chosen] if self.average is None else self.average.members
        of_maps: dict[object, list[Candidate]] = {}
        for one in self.candidates:
            fit, settings = self.search.fits[one.grid], self.search.grids[one.grid].settings
            kind = fit.features.features, fit.features.pool, fit.trainer.capabilities.bags
            of_maps.setdefault((*kind, getattr(settings, "components", 1)), []).append(one)
        return [max(of, key=lambda one: (one in used, one.mean(self.search.metric))) for of in of_maps.values()]

    def _cells(self, one: Candidate, mark: str) -> dict[str, str]:
        """Figures of any model, by columns; the last column has no name."""
        values = {metric: f"{one.mean(metric):.4f} ± {one.deviation(metric):.4f}" for metric in self.metrics}
        return {**values, "seconds": f"{math.fsum(one.seconds):.2f}", "": mark}

    def _setting(self, one: Candidate) -> dict[str, Any]:
        """The loss, the features, and the settings that any grid varies."""
        grid, fit = self.search.grids[one.grid], self.search.fits[one.grid]
        tried = {axis.name for grid in self._grids for axis in grid.axes}
        settings = {name: getattr(grid.settings, name) for name in declared(type(grid.settings)) if name in tried}
        pool = ",".join(fit.features.pool or ()) or ("latent" if fit.trainer.capabilities.bags else "")
        features = {"features": fit.features.features, "scale": fit.features.scale, "pool": pool}
        return {"loss": one.loss, **features, **settings, **one.choice}

    def _marks(self, one: Candidate) -> Iterator[str]:
        if one is self.chosen:
            yield "chosen" if self.average is None else "the best alone"
        if self.average is not None and one in self.average.members:
            yield "averaged"
        if not one.as_asked:
            yield "stopped early"

    @property
    def _grids(self) -> Sequence[Grid]:
        """The grids that were compared to the end."""
        return [self.search.grids[grid] for grid in self.search.alive]

    def to_json(self) -> JsonDict:
        """All of it, for programs; settings by the names that a model's header has for them."""
        search, dataset = self.search, self.search.units
        return {
            "data": {
                "file": os.path.basename(dataset.source),
                "sha256": dataset.fingerprint,
                "rows": len(dataset),
                "test_rows": [int(fold.test.size) for fold in search.folds],
            },
            **search.description(),
            "along": {grid.trainer.loss_name: grid.along.name for grid in self._grids if grid.along is not None},
            "estimate": self.estimates,
            "settings": [
                self._measured(
                    one,
                    **{name: as_json(value) for name, value in self._setting(one).items()},
                    C_of_folds=one.C,
                    states=one.states,
                    chosen=one is self.chosen and self.average is None,
                )
                for one in self.candidates
            ],
            "average": None if self.average is None else self._measured(self.average, features=self.average.maps),
            "for_comparison": [self._measured(one, model=one.loss, **one.choice) for one in self.references],
        }

    def _measured(self, one: Candidate, **about: object) -> JsonDict:
        metrics = {
            metric: {"mean": one.mean(metric), "deviation": one.deviation(metric), "folds": one.values(metric)}
            for metric in self.metrics
        }
        return {**about, "metrics": metrics, "seconds": one.seconds}
