"""``apsvm cv``: compares settings by k-fold cross-validation and trains the best one on all rows.

``_Request`` checks the options and makes searches of them, ``_Run`` runs one, ``cli.output.compared`` prints results.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from apsvm._support.types import JsonDict, JsonObject
from apsvm.cli.options.completion import FeatureMapName, MetricName
from apsvm.cli.options.config import config_option
from apsvm.cli.options.decision import decided
from apsvm.cli.options.parameters import Several
from apsvm.cli.options.table import TRAINING, files, options
from apsvm.cli.options.trainers import (
    ChosenLoss,
    LossName,
    TrainersCommand,
    options_of_trainers,
    refuse_options_of_others,
    settings_named,
    usage_errors,
)
from apsvm.cli.options.training import (
    Signals,
    check_bag_options,
    check_data,
    check_inputs,
    check_outputs,
    described,
    exit_code,
    feature_options,
    label_options,
    query_weights,
    read_to_train,
    refuse_untaken,
    signals_caught,
)
from apsvm.cli.output.compared import Results, how_chosen, progress_line
from apsvm.cli.output.grades import OF_GRADES, chosen_by_grades, say_of_grades
from apsvm.cli.output.progress import Bar
from apsvm.cli.output.written_models import save, say_what_became
from apsvm.cli.reading import with_read_options
from apsvm.cli.shared import (
    BAD_DATA,
    STOPPED_EARLY,
    Failure,
    all_given,
    bad_data,
    given_by_user,
    put,
    reading,
    remark,
    say,
    writing,
)
from apsvm.cli.systems import named_metrics
from apsvm.data.read_options import ReadOptions
from apsvm.selection.grids import Grid

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.metrics import Metric
    from apsvm.selection.candidates import Entry
    from apsvm.selection.portfolio import PortfolioSearch
    from apsvm.selection.race import Candidate, PathInFold
    from apsvm.selection.search import Followers, SettingsSearch
    from apsvm.trainers.base import AnyTrainer
    from apsvm.trainers.fitting import FeatureOptions

#: A feature map, and the pooling of bags; None: unpooled.
_Way: TypeAlias = "tuple[str, tuple[str, ...] | None]"

#: Share of ``--time-limit`` for comparing; the rest is for training on all rows and its threshold.
SHARE_OF_COMPARING = 0.6

#: Options that ``--help`` lists, by section.
_COMMON = {
    "Data": "label_column qid_column id_column positive_label drop",
    "What is compared (lists, with commas between the values; by default a portfolio)": "loss features C components",
    "How": "scale folds metric time_limit",
    "Output": "output json threshold calibrate jobs quiet verbose",
}


# cv writes no log, and measures settings on the held-out rows.
@click.command(
    name="cv", cls=TrainersCommand, as_lists=True, without="log_ranks validation validation_metric patience",
    common=_COMMON,
)  # fmt: skip
@files("DATA")
@click.option(
    "-m", "--metric", metavar="NAME", type=MetricName(), multiple=True, default=("AP",),
    show_default=f"AP; of queries with grades {OF_GRADES['metric']}",
    help="Metric that settings are judged by; may be given more than once: the first one chooses.",
)  # fmt: skip
@click.option(
    "--loss", type=Several(LossName()), default="ap", show_default="ap; of queries with grades ndcg",
    help="Losses to try.",
)  # fmt: skip
@options("folds", "output", "json", "time_limit", "rivals", "jobs", "seed", *TRAINING,
         features={"type": Several(FeatureMapName())}, pool={"multiple": True},
         threshold={"needs": "output"}, calibrate={"needs": "output"})  # fmt: skip
@config_option
@with_read_options
def cv(data: str, read: ReadOptions, **values: Any) -> int:
    """Compare settings by cross-validation on DATA, and train the best one.

    Without --loss, --features and settings it tries losses, both bounds, feature maps and values of C. -o writes the
    best, or the average of the best on several maps.

    \f
    Folds are of whole queries where rows have qid:, else of rows, each with its share of the positives. The values of C
    are trained in one go, a path; every combination of the others is a training of its own. Multiples, 1x, are of what
    fits the scale of the features of the fold's training rows. The deviation is that between the folds' values.

    \b
    apsvm cv payments.csv --label-column fraud -o best.model
    apsvm cv payments.csv --label-column fraud -C 0.01:1e5:log10 --metric P@100 -o best.model
    apsvm cv search.csv --qid-column query --loss ndcg,wmw --bound hinge,tight --json -
    """
    began = time.monotonic()
    request = _Request.of_options(data, read, values)
    dataset = request.read()
    request = request.by_labels_of(dataset)
    with signals_caught() as signals, bad_data(dataset.source):
        run = _Run(request, signals, began)
        search = run.finalists(request.portfolio(dataset), dataset) if request.tries_all else request.search(dataset)
        run.compare(search)
        is_limited = run.is_over()
        stopped = exit_code(signals)
        candidates = run.compared(search)
        if not candidates:
            raise Failure(stopped or BAD_DATA, "stopped, nothing was finished in every fold")
        chosen = search.choose(candidates)
        average = None if signals or run.is_over() else search.average(candidates)
        run.report(Results(search, candidates, chosen, request.metrics, run.references(search), average))
        if stopped:
            say("interrupted: the table is of what was finished" + (", no model written" if values["output"] else ""))
            return stopped
        as_asked = not is_limited and all(candidate.as_asked for candidate in candidates)
        if values["output"] is not None:
            as_asked &= run.refit(search, average or chosen, candidates)
        if signals and not signals.are_late:
            return exit_code(signals)
    return 0 if as_asked else STOPPED_EARLY


@dataclass(frozen=True)
class _Request:
    """The options, checked before anything is read.

    Attributes
    ----------
    data, read_options : the rows, and how to read them
    options : their values
    metrics : metrics of the settings, by name; the first one chooses
    grids : settings to try for each loss
    tries_all : True if nothing to try was named: the portfolio is tried
    """

    data: str
    read_options: ReadOptions
    options: JsonDict
    metrics: Mapping[str, Metric]
    grids: Sequence[Grid]
    tries_all: bool = False

    @classmethod
    def of_options(cls, data: str, read: ReadOptions, options: JsonDict) -> _Request:
        check_bag_options(read, options)
        named, tried = all_given(), {"loss", "features", *(option.name for option in options_of_trainers())}
        refuse_options_of_others(options["loss"], named)
        options["pool"] = list(dict.fromkeys(options["pool"]))
        inputs: dict[str, str | None] = {"query_weights": options["query_weights"]}
        grids = _grids(options["loss"], options, named)
        for grid in grids:
            trainer = grid.trainer
            label_options(options, trainer)
            if grid.features is None:
                _features(options, trainer)
            inputs |= check_inputs(trainer)
            refuse_untaken(trainer, options, "query_weights")
            for warning in trainer.warnings():
                remark(f"warning: {warning}")
        check_outputs(options["output"], "--json", options["json"], data=data, **inputs)
        tries_all = named.isdisjoint(tried) and len(options["pool"]) < 2
        read = replace(read, threads=options["jobs"])
        return cls(data, read, options, named_metrics(options["metric"]), grids, tries_all)

    def read(self) -> Dataset:
        """The data; bags are pooled to rows here if only one pooling is tried."""
        from apsvm.trainers.fitting import bags_settled

        dataset, (pool, *others) = read_to_train(self.data, self.read_options), _pools(self.options)
        if pool is None or others:
            return dataset
        with reading(dataset.source):
            return bags_settled(dataset, self.grids[0].trainer, pool)

    def by_labels_of(self, dataset: Dataset) -> _Request:
        """The request with loss and metric for grades, if the rows have grades and the user named neither."""
        named = all_given() | ({"loss"} if self.tries_all else set())
        chosen = chosen_by_grades(dataset, label_options(self.options, self.grids[0].trainer), self.options, named)
        request = self
        if "metric" in chosen:
            request = replace(request, metrics=named_metrics([chosen["metric"]]))
        if "loss" in chosen:
            request = replace(request, grids=_grids([ChosenLoss.of(chosen["loss"])], self.options, named))
        return request

    def search(self, dataset: Dataset) -> SettingsSearch:
        """A search of the grids on these rows; ends the command if they do not fit."""
        from apsvm.selection.search import SettingsSearch

        options, features = self.options, _features(self.options, self.grids[0].trainer)
        folds = options["folds"]
        search = SettingsSearch(dataset, self.grids, self.metrics, folds=folds, **self._common(dataset, features))
        for fit in search.fits:
            with reading(dataset.source):
                check_data(fit.trainer, fit.training_set())
            say_of_grades(fit)
        *_, of_rows = search.fits  # fits that pool bags come first
        remark(described(of_rows.dataset, of_rows.target))
        if len(search.folds) < folds:
            what = "positive or negative row" if dataset.groups is None else "query to rank"
            say(f"{len(search.folds)} folds: {folds} would leave some without a {what}")
        return search

    def portfolio(self, dataset: Dataset) -> PortfolioSearch:
        """A search of the portfolio on these rows."""
        from apsvm.selection.portfolio import PortfolioSearch

        options = self.options
        way = options["features"][0], next(iter(options["pool"]), None)
        features = _features(options, self.grids[0].trainer, way)
        folds = options["folds"] if given_by_user("folds") else None
        return PortfolioSearch(dataset, self.metrics, folds=folds, **self._common(dataset, features))

    def _common(self, dataset: Dataset, features: FeatureOptions) -> JsonDict:
        return {
            "labels": label_options(self.options, self.grids[0].trainer),
            "features": features,
            "seed": self.options["seed"],
            "query_weights": query_weights(self.options["query_weights"], dataset),
        }


def _pools(options: JsonObject) -> list[tuple[str, ...] | None]:
    """Poolings of bags to compare. None means unpooled: no bags, or --latent."""
    pools: list[tuple[str, ...] | None] = list(options["pool"])
    return [*pools, None] if options["latent"] or not pools else pools


def _features(options: JsonObject, trainer: AnyTrainer, way: _Way | None = None) -> FeatureOptions:
    """Feature options of ``way``; by default the first feature map, unpooled."""
    features, pool = way or (options["features"][0], None)
    return feature_options({**options, "features": features}, trainer, pool)


def _grids(losses: Sequence[ChosenLoss], options: JsonObject, named: Collection[str]) -> list[Grid]:
    """Settings to try for each loss, with every feature map and pooling; invalid ones end the command."""
    ways = list(itertools.product(options["features"], _pools(options)))
    return [_grid(loss, options, named, way) for loss in losses for way in ways]


def _grid(loss: ChosenLoss, options: JsonObject, named: Collection[str], way: _Way) -> Grid:
    trainer, fixed = loss.trainer, settings_named(loss.trainer, options, named)
    chosen = frozenset(fixed)
    tried = {name: fixed.pop(name) for name in chosen if isinstance(fixed[name], tuple)}  # options that take lists
    if way[1] is not None and fixed.get("latent"):
        fixed["latent"] = False
        chosen -= {"latent", "start"}
    with usage_errors(loss):
        settings = trainer.Settings(**fixed, seed=options["seed"])
        grid = Grid.of(lambda one: trainer(loss.name, one, chosen), settings, tried)
    is_own = way[1] is not None or len(options["features"]) > 1
    return replace(grid, features=_features(options, grid.trainer, way)) if is_own else grid


@dataclass(frozen=True)
class _Run:
    """The steps of the command, and their messages.

    Attributes
    ----------
    request, signals : what is compared, and what stops it
    began : start time, by ``time.monotonic``
    """

    request: _Request
    signals: Signals
    began: float

    @property
    def options(self) -> JsonObject:
        """The options' values."""
        return self.request.options

    @property
    def _followers(self) -> Followers:
        from apsvm.selection.search import Followers

        return Followers(should_stop=lambda: bool(self.signals))

    @property
    def _comparing(self) -> Followers:
        return replace(self._followers, should_stop=lambda: bool(self.signals) or self.is_over())

    def is_over(self) -> bool:
        """True if comparing must end: the rest of the time limit is for training the chosen settings."""
        limit = self.options["time_limit"]
        return limit is not None and time.monotonic() > self.began + SHARE_OF_COMPARING * limit

    def finalists(self, whole: PortfolioSearch, dataset: Dataset) -> SettingsSearch:
        """The search among the best of the portfolio; ``--verbose`` prints a line for each entry as it is screened."""
        total, screened, leads = len(whole.entries), itertools.count(1), (-math.inf, "")

        def trained(path: PathInFold, done: int, n_paths: int) -> None:
            nonlocal leads
            value = max(setting.values[whole.metric] for setting in path.settings)
            leads = max((value, str(whole.racing[path.task.grid])), leads if done > 1 else (-math.inf, ""))
            bar.total = n_paths
            bar.reach(done, f"paths screened; {leads[1]} leads ({whole.metric} {leads[0]:.4f})")

        def ended(entry: Entry, result: Candidate | str) -> None:
            if not isinstance(result, str):
                folds = f"{len(result.folds)} fold{'' if len(result.folds) == 1 else 's'}"
                rows = f"on held-out rows (of {whole.racing_on}, {folds})"
                result = f"{whole.metric} {result.mean(whole.metric):.4f} {rows}"
            self._say_more(f" {next(screened):>{len(str(total))}}/{total}  {entry}: {result}")

        remark(described(dataset, whole.target))
        remark(f"trying {total} combinations of loss and features (-v shows each)")
        if whole.caution is not None:
            say(f"warning: {whole.caution}")
        with Bar("screening") as bar:
            search = whole.screen(self.options["jobs"], replace(self._comparing, path=trained), ended)
        if self.signals:
            raise Failure(exit_code(self.signals), "stopped, nothing was finished in every fold")
        if not self.is_over():
            remark(f"compared further: {'; '.join(str(whole.racing[grid]) for grid in search.alive)}")
        return search

    def compare(self, search: SettingsSearch) -> None:
        """Trains all paths in all folds; ``--verbose`` prints a line as each ends."""

        def ended(path: PathInFold, done: int, total: int) -> None:
            bar.total = total
            finished = search.candidates() if bar.is_shown else []
            top = search.choose(finished) if finished else None
            leads = "" if top is None else f"; {top.loss} leads ({search.metric} {top.mean(search.metric):.4f})"
            bar.reach(done, f"paths compared{leads}")
            self._say_more(f" {done:>{len(str(total))}}/{total}  {progress_line(path, search.grids, search.metric)}")

        with Bar("comparing") as bar:
            search.run(self.options["jobs"], replace(self._comparing, path=ended))

    def compared(self, search: SettingsSearch) -> list[Candidate]:
        """Settings to choose from: those finished in every fold, or in the most folds if time ran out."""
        candidates = search.candidates()
        if candidates or self.signals or not self.is_over():
            return candidates
        if not search.so_far():
            with Bar("comparing"):
                search.least(self.options["jobs"], self._followers)
        candidates = search.so_far()
        if candidates:
            folds = f"{len(candidates[0].folds)} of {len(search.folds)} folds"
            remark(f"the time limit ends the comparison: {len(candidates)} settings, in {folds}")
        return candidates

    def references(self, search: SettingsSearch) -> Sequence[Candidate]:
        """Common models on the same folds, if the portfolio was tried."""
        from apsvm.selection.references import references

        wanted = self.request.tries_all and self.options["rivals"] == "all"
        if not wanted or self.signals or self.is_over():
            return []
        with Bar("training common models on the same folds"):
            return list(references(search, self._followers.should_stop, self.options["jobs"]))

    def report(self, results: Results) -> None:
        """Writes the table and the JSON. The table goes to stderr if stdout is taken."""
        from apsvm._support.files import write_whole

        as_json = self.options["json"]
        to_stdout = "-" not in (as_json, self.options["output"])
        if to_stdout or not self.options["quiet"]:
            for line in results.table():
                (put if to_stdout else say)(line if to_stdout else f" {line}")
        elif not all(candidate.as_asked for candidate in results.candidates):
            say("warning: training stopped early in some of the folds")
        if as_json is not None:
            text = json.dumps(results.to_json(), indent=1, allow_nan=False) + "\n"
            with writing(as_json):
                write_whole(as_json, text.encode())

    def refit(self, search: SettingsSearch, chosen: Candidate, candidates: Sequence[Candidate]) -> bool:
        """Trains ``chosen`` on all rows and writes the model; True if training ended as requested."""
        from apsvm.cli.output.training_metric import training_metric

        options, followers, path = self.options, self._followers, self.options["output"]
        with Bar("training the chosen model on all rows"):
            refit = search.refit(chosen, candidates, options["jobs"], followers)
            if refit is None:
                raise Failure(exit_code(self.signals) or BAD_DATA, "stopped, no model written")
            fit = replace(refit.fit, trainer=refit.fit.trainer.with_settings(threads=options["jobs"]))
            folds = refit.out_of_fold, refit.how, refit.own
            outcome, model = decided(fit, refit.outcome, refit.model, options, followers.should_stop, *folds)
        save(path, outcome, model, self.signals)
        remark(f"{how_chosen(search, chosen, len(candidates))}, and trained on all rows")
        say_what_became(outcome, model, path, training_metric(refit.fit, model) if options["verbose"] else ())
        return outcome.as_asked and outcome.ranks

    def _say_more(self, text: str) -> None:
        if self.options["verbose"] and not self.options["quiet"]:
            say(text)
