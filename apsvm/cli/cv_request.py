"""What ``apsvm cv`` was asked for, and the searches that are made of it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from apsvm.cli.checkpoint import identity
from apsvm.cli.grades import say_of_grades
from apsvm.cli.on_cluster import need_dask, read_whole
from apsvm.cli.shared import (
    BAD_DATA,
    Failure,
    all_given,
    bad_data,
    given_by_user,
    reading,
    refuse_if_given,
    say,
)
from apsvm.cli.trainer_options import (
    ChosenLoss,
    as_asked_for,
    options_of_trainers,
    refuse_options_of_others,
    settings_asked,
    usage_errors,
    values_read,
)
from apsvm.cli.training import (
    check_bag_options,
    check_data,
    check_inputs,
    check_output,
    described,
    feature_options,
    label_options,
    read_to_train,
    refuse_untaken,
)
from apsvm.data.read_options import ReadOptions
from apsvm.trainers.settings import declared
from apsvm.types import JsonDict, JsonObject

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.metrics import Metric
    from apsvm.selection.grids import Grid
    from apsvm.selection.portfolio import PortfolioSearch
    from apsvm.selection.search import SettingsSearch


@dataclass(frozen=True)
class CvRequest:
    """What was asked for, checked before anything is read.

    Attributes
    ----------
    data, read_options : the rows, and how to read them
    given : the options' values
    metrics : what settings are judged by, by name; the first one chooses
    grids : what to try of each loss
    tries_all : nobody named what to try, and so the portfolio is
    """

    data: str
    read_options: ReadOptions
    given: JsonObject
    metrics: Mapping[str, Metric]
    grids: Sequence[Grid]
    tries_all: bool = False

    @classmethod
    def of_options(cls, data: str, read: ReadOptions, given: JsonObject) -> CvRequest:
        from apsvm.metrics import MetricError
        from apsvm.metrics.evaluate import parse_metrics

        check_bag_options(read, given)
        if given["scheduler"] is not None:
            need_dask()
        said = all_given()
        tried = ("loss", "features", *(option.name for option in options_of_trainers()))
        losses = [as_asked_for(loss, said) for loss in given["loss"]]
        refuse_options_of_others(losses, said)
        try:
            metrics = parse_metrics(given["metric"])
        except MetricError as error:
            raise click.UsageError(str(error)) from None
        request = cls(
            data,
            replace(read, threads=given["jobs"]),
            {**given, **values_read(losses, given, said)},
            metrics,
            [_grid(loss, given, said, pool) for loss in losses for pool in _ways_with_bags(given)],
            tries_all=said.isdisjoint(tried) and len(given["pool"]) < 2,
        )
        request._check()
        return request

    @property
    def output(self) -> str | None:
        """The model to write."""
        return self.given["output"]  # type: ignore[no-any-return]

    def _check(self) -> None:
        """Finds out now what would otherwise be found out after the work."""
        given = self.given
        if len(set(given["pool"])) < len(given["pool"]):
            raise click.UsageError("--pool: the same names are given twice")
        inputs: dict[str, str | None] = {"query_weights": given["query_weights"]}
        families = set()
        for grid in self.grids:
            trainer = grid.trainer
            label_options(given, trainer)
            feature_options(given, trainer, None if grid.features is None else grid.features.pool)
            inputs |= check_inputs(trainer)
            refuse_untaken(trainer, given, "query_weights")
            if not given["quiet"] and trainer.family not in families:
                for warning in trainer.warnings():
                    say(f"warning: {warning}")
            families.add(trainer.family)
        if given["checkpoint"] == "-":
            raise click.UsageError("--checkpoint is read again: name a file")
        if self.output is None:
            refuse_if_given(("threshold", "calibrate"), "is for the model that -o writes")
        outputs = [path for path in (self.output, given["json"], given["checkpoint"]) if path is not None]
        for path in outputs:
            check_output(path, data=self.data, **inputs)
        places = ["-" if path == "-" else os.path.realpath(path) for path in outputs]
        if len(set(places)) < len(places):
            raise click.UsageError("the model, --json and --checkpoint cannot go to the same place")

    def identity(self, dataset: Dataset) -> JsonDict:
        """What decides over the result."""
        bags = None if self.read_options.ignores_bags else self.read_options.bags
        inputs: dict[str, str | None] = {"query_weights": self.given["query_weights"], "bags": bags}
        for grid in self.grids:
            inputs |= grid.trainer.inputs()
        return identity(dataset, self.read_options, self.given, inputs, threads=False)

    def read(self) -> Dataset:
        """The data; its bags as rows where only one way to pool them is tried."""
        from apsvm.trainers.fitting import bags_settled

        read = read_to_train if self.given["scheduler"] is None else read_whole
        dataset, ways = read(self.data, self.read_options), _ways_with_bags(self.given)
        if len(ways) != 1 or ways[0] is None:
            return dataset
        with reading(dataset.source):
            return bags_settled(dataset, self.grids[0].trainer, ways[0])

    def search(self, dataset: Dataset) -> SettingsSearch:
        """What is to be done on these rows; ends the command if they do not fit."""
        with bad_data(dataset.source):
            search = self.settings_search(dataset)
        families = set()
        for fit in search.fits:
            family = fit.trainer.family  # what there is to say of the data, each says once
            with bad_data(dataset.source), reading(dataset.source):
                check_data(fit.trainer, fit.training_set(), quiet=self.given["quiet"] or family in families)
            if not self.given["quiet"] and family not in families:
                say_of_grades(fit)
            families.add(family)
        if self.given["verbose"] and not self.given["quiet"]:
            say(described(dataset, search.fits[0].target))
        return search

    def settings_search(self, dataset: Dataset) -> SettingsSearch:
        """A search of the grids on these rows."""
        from apsvm.selection.search import SettingsSearch

        trainer, given = self.grids[0].trainer, self.given
        return SettingsSearch(
            dataset,
            self.grids,
            self.metrics,
            labels=label_options(given, trainer),
            features=feature_options(given, trainer),
            folds=given["folds"],
            seed=given["seed"],
            one_standard_error=given["one_standard_error"],
            query_weights=self._query_weights(dataset),
        )

    def portfolio(self, dataset: Dataset) -> PortfolioSearch:
        """A search of the portfolio on these rows."""
        from apsvm.selection.portfolio import PortfolioSearch

        trainer, given = self.grids[0].trainer, self.given
        return PortfolioSearch(
            dataset,
            self.metrics,
            labels=label_options(given, trainer),
            features=feature_options(given, trainer, next(iter(given["pool"]), None)),
            common={"time_limit": given["time_limit"], "seed": given["seed"]},
            folds=given["folds"] if given_by_user("folds") else None,
            seed=given["seed"],
            one_standard_error=given["one_standard_error"],
            query_weights=self._query_weights(dataset),
        )

    def _query_weights(self, dataset: Dataset) -> Mapping[int, float] | None:
        from apsvm.data.query_weights import read_query_weights

        path = self.given["query_weights"]
        if path is None:
            return None
        if dataset.groups is None:
            raise Failure(BAD_DATA, f"{dataset.source}: --query-weights needs rows with qid:, found none")
        with reading(path):
            return read_query_weights(path)


def _ways_with_bags(given: JsonObject) -> list[tuple[str, ...] | None]:
    """How bags are pooled, one way after another; None: they are not, as where there are none, or with --latent, which
    stands beside the pools."""
    pools: list[tuple[str, ...] | None] = list(given["pool"])
    return [*pools, None] if given["latent"] or not pools else pools


def _grid(loss: ChosenLoss, given: JsonObject, said: Collection[str], pool: tuple[str, ...] | None) -> Grid:
    """What is tried of a loss, and of bags pooled so; what cannot be ends the command."""
    from apsvm.selection.grids import Grid

    trainer, asked = loss.trainer, settings_asked(loss.trainer, given, said)
    known, chosen = declared(trainer.Settings), frozenset(asked)
    named = {name: value for name, value in asked.items() if known[name][1].grid is not None}
    fixed = {name: value for name, value in asked.items() if name not in named}
    if pool is not None and fixed.get("latent"):
        fixed["latent"] = False
        chosen -= {"latent", "start"}
    with usage_errors(loss):
        settings = trainer.Settings(**fixed, time_limit=given["time_limit"], seed=given["seed"])
        grid = Grid.of(lambda one: trainer(loss.name, one, chosen), settings, named)
    return grid if pool is None else replace(grid, features=feature_options(given, grid.trainer, pool))
