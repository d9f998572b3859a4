"""Output of ``apsvm cv`` on the compared settings: a line per finished path, the table, the JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apsvm._support.types import JsonDict
from apsvm.cli.options.trainers import option_name
from apsvm.selection.grids import shown
from apsvm.trainers.settings import Multiple, declared

if TYPE_CHECKING:
    from apsvm.metrics import Metric
    from apsvm.selection.average import Average
    from apsvm.selection.grids import Grid
    from apsvm.selection.race import Candidate, PathInFold
    from apsvm.selection.search import SettingsSearch
    from apsvm.trainers.fitting import Fit


def spelled(grid: Grid, name: str) -> str:
    """A setting as the command line has it, without its dashes: ``lambda``."""
    return option_name(*declared(type(grid.settings))[name]).replace("_", "-")


def progress_line(path: PathInFold, grids: Sequence[Grid], metric: str) -> str:
    """A path in a fold, and its best setting."""
    grid, settings = grids[path.task.grid], path.settings
    best = max(settings, key=lambda setting: setting.values[metric])
    value, along = f"{metric} {best.values[metric]:.4f}", grid.along
    seconds = f"in {math.fsum(setting.seconds for setting in settings):.2f} s"
    what = [grid.trainer.loss_name] if len(grids) > 1 else []
    if grid.features is not None:
        what += [grid.features.features, *([",".join(grid.features.pool)] if grid.features.pool else [])]
    named = [axis.name for axis in grid.axes if len(axis.values) > 1 or (grid.features and axis.name == "bound")]
    what += [shown(best.choice[name]) for name in named if along is None or name != along.name]
    start = f"fold {path.task.fold + 1}  " + " ".join([*what, ""])
    if along is None:
        return f"{start}{seconds}; {value}"
    name, chosen = spelled(grid, along.name), shown(best.choice[along.name])
    if along.path:
        return f"{start}{len(settings)} values of {name} {seconds}; best {value} at {name} = {chosen}"
    return f"{start}{name} = {chosen} {seconds}; {value}"


def how_chosen(search: SettingsSearch, chosen: Candidate, settings: int) -> str:
    """The setting chosen of so many, or the average."""
    from apsvm.selection.average import BEHIND, Average

    if isinstance(chosen, Average):
        maps = f"{len(chosen.members)} feature maps"
        return f"chosen: the average of the best on {maps} ({search.metric} at most {BEHIND:g} below the best alone)"
    grid = search.grids[chosen.grid]
    defaults = {name: field.default for name, (field, _) in declared(type(grid.settings)).items()}
    varied = {name: value for name, value in chosen.choice.items() if name == "C" or value != defaults[name]}
    values = [f"{spelled(grid, name)} = {shown(value)}" for name, value in varied.items()]
    what = ", ".join([f"{chosen.loss} on {search.fits[chosen.grid].features.features} features", *values])
    return f"chosen: {what} (of {settings} settings, by mean {search.metric})"


def _in_words(fit: Fit, option: str) -> str:
    """The value of ``features``, ``scale`` or ``pool`` as text; "latent" if rows stay in bags."""
    value = getattr(fit.features, option)
    if value is None and fit.trainer.capabilities.bags:
        return "latent"
    return value if isinstance(value, str) else ",".join(value or ())


@dataclass(frozen=True)
class Results:
    """The settings that were finished in every fold, and the one chosen."""

    search: SettingsSearch
    candidates: Sequence[Candidate]
    chosen: Candidate
    metrics: Mapping[str, Metric]
    beside: Sequence[Candidate] = ()
    average: Average | None = None

    def table(self) -> Iterator[str]:
        """A heading, a line for each setting in columns, and the chosen one's expected value on new rows."""
        rows = [self._heading(), *map(self._row, self.candidates)]
        if self.average is not None:
            number = len(self.average.members)
            rows.append(self._row_beside(self.average, f"average of the best on {number} feature maps, chosen"))
        several = self._several_losses
        rows += [
            self._row_beside(one, "for comparison" if several else f"for comparison: {one.loss}") for one in self.beside
        ]
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        for row in rows:
            cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
            yield "  ".join([*cells, row[-1]]).rstrip()
        if len(self.candidates) > 1:
            worth = ", ".join(f"{metric} {value:.4f}" for metric, value in self.estimates.items())
            interval = (
                self.search.expected_ap(self.average or self.chosen, self.candidates) if "AP" in self.metrics else None
            )
            likely = "" if interval is None else f" (AP most likely {interval.low:.2f} to {interval.high:.2f})"
            yield f"expected on new rows: {worth}{likely}"

    @property
    def estimates(self) -> dict[str, float]:
        """Expected value of each metric on new rows, for the chosen ranker."""
        best = self.average or self.chosen
        return {metric: self.search.estimate(best, self.candidates, metric) for metric in self.metrics}

    def _heading(self) -> list[str]:
        of_loss = ["loss"] if self._several_losses else []
        mean_C = ["mean C"] if self._has_multiples else []
        return [*of_loss, *self._of_features, *self._columns, *mean_C, *self.metrics, "seconds", ""]

    def _row(self, one: Candidate) -> list[str]:
        grid = self.search.grids[one.grid]
        choice = {spelled(grid, name): shown(value) for name, value in one.choice.items()}
        cells = [one.loss] if self._several_losses else []
        fit = self.search.fits[one.grid]
        cells += [_in_words(fit, name) for name in self._of_features]
        cells += [choice.get(column, "") for column in self._columns]
        if self._has_multiples:
            cells.append(f"{one.mean_C:.4g}" if one.C else "")
        cells += [f"{one.mean(metric):.4f} ± {one.deviation(metric):.4f}" for metric in self.metrics]
        return [*cells, f"{math.fsum(one.seconds):.2f}", ", ".join(self._marks(one))]

    def _row_beside(self, one: Candidate, name: str) -> list[str]:
        """Table row of a model outside the grids: the average, or one for comparison."""
        columns = [*self._of_features, *self._columns, *(["mean C"] if self._has_multiples else [])]
        cells = [one.loss] if self._several_losses else []
        cells += [f"{one.choice['C']:g}" if name == "C" and "C" in one.choice else "" for name in columns]
        cells += [f"{one.mean(metric):.4f} ± {one.deviation(metric):.4f}" for metric in self.metrics]
        return [*cells, f"{math.fsum(one.seconds):.2f}", name]

    def _marks(self, one: Candidate) -> Iterator[str]:
        if one is self.chosen:
            edges = self.search.edges(self.candidates, one)
            names = ", ".join(spelled(self.search.grids[one.grid], name) for name in edges)
            if edges:
                yield f"{names} at the edge of the grid"
            yield "chosen" if self.average is None else "the best alone"
        if not one.as_asked:
            yield "stopped early"

    @property
    def _of_features(self) -> list[str]:
        """Names of the feature options that differ between the grids."""
        options = [fit.features for fit in self._fits]
        return [name for name in ("features", "scale", "pool") if len({getattr(one, name) for one in options}) > 1]

    @property
    def _fits(self) -> Sequence[Fit]:
        """Fits of the grids that were compared to the end."""
        return [self.search.fits[grid] for grid in self.search.alive]

    @property
    def _grids(self) -> Sequence[Grid]:
        return [self.search.grids[grid] for grid in self.search.alive]

    @property
    def _several_losses(self) -> bool:
        return len({one.loss for one in self.candidates}) > 1

    @property
    def _has_multiples(self) -> bool:
        return any(isinstance(value, Multiple) for one in self.candidates for value in one.choice.values())

    @property
    def _columns(self) -> list[str]:
        """The settings of which there are several values, and last those that the rows follow first."""
        grids = self._grids
        last = dict.fromkeys(spelled(grid, grid.along.name) for grid in grids if grid.along is not None)
        tried: dict[str, set[str]] = {}
        for grid in grids:
            for axis in grid.axes:
                tried.setdefault(spelled(grid, axis.name), set()).update(map(shown, axis.values))
        first = [name for name, values in tried.items() if len(values) > 1]
        return [*(name for name in first if name not in last), *last]

    def to_json(self) -> JsonDict:
        """All of it, for programs; settings by the names that a model's header has for them."""
        search, dataset, first = self.search, self.search.dataset, self._fits[0]
        return {
            "data": {
                "file": os.path.basename(dataset.source),
                "sha256": dataset.fingerprint,
                "rows": len(dataset),
                "test_rows": [int(fold.test.size) for fold in search.folds],
            },
            **search.description(),
            "features": first.features.features,
            "scale": first.features.scale,
            **({} if first.features.pool is None else {"pool": _in_words(first, "pool")}),
            "along": {grid.trainer.loss_name: grid.along.name for grid in self._grids if grid.along is not None},
            "at_edge": search.edges(self.candidates, self.chosen),
            "estimate": self.estimates,
            "settings": [self._setting(one) for one in self.candidates],
            **({} if self.average is None else {"average": self._average(self.average)}),
            **({"for_comparison": [self._beside(one) for one in self.beside]} if self.beside else {}),
        }

    def _average(self, one: Average) -> JsonDict:
        return {"features": one.maps, "metrics": self._measured(one)}

    def _measured(self, one: Candidate) -> JsonDict:
        return {
            metric: {"mean": one.mean(metric), "deviation": one.deviation(metric), "folds": one.values(metric)}
            for metric in self.metrics
        }

    def _beside(self, one: Candidate) -> JsonDict:
        return {
            "model": one.loss,
            **one.choice,
            "metrics": self._measured(one),
            "seconds": one.seconds,
        }

    def _setting(self, one: Candidate) -> JsonDict:
        from apsvm.selection.search import as_json

        fit = self.search.fits[one.grid]
        return {
            "loss": one.loss,
            **{name: _in_words(fit, name) for name in self._of_features},
            **{name: as_json(value) for name, value in one.choice.items()},
            **({"C_of_folds": one.C} if one.C else {}),
            "metrics": self._measured(one),
            "seconds": one.seconds,
            "states": one.states,
            "chosen": one is self.chosen and self.average is None,
        }
