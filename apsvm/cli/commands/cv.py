"""``apsvm cv``: compares settings by k-fold cross-validation and trains the best one on all rows.

``CvRequest`` makes the searches from the options, ``_Run`` runs them. ``cli.output.compared`` prints the results.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from apsvm._support.types import JsonObject
from apsvm.cli.options.completion import FeatureMapName, MetricName
from apsvm.cli.options.config import config_option
from apsvm.cli.options.decision import decided_refit
from apsvm.cli.options.lists import Several
from apsvm.cli.options.table import TRAINING, options
from apsvm.cli.options.trainers import (
    ChosenLoss,
    LossName,
    TrainersCommand,
    need_cvxpy,
    options_of_trainers,
    refuse_options_of_others,
    settings_named,
    trainer_options,
    usage_errors,
    with_trainer_options,
)
from apsvm.cli.options.training import (
    Signals,
    check_bag_options,
    check_data,
    check_inputs,
    check_output,
    described,
    exit_code,
    feature_options,
    label_options,
    query_weights,
    read_to_train,
    refuse_same_place,
    refuse_untaken,
    signals_caught,
    spare_others,
)
from apsvm.cli.output.bar import Bar
from apsvm.cli.output.compared import Results, progress_line, spelled
from apsvm.cli.output.grades import OF_GRADES, chosen_by_grades, say_of_grades
from apsvm.cli.output.written_models import TrainedModel, save, say_what_became
from apsvm.cli.reading import with_read_options
from apsvm.cli.shared import (
    BAD_DATA,
    STOPPED_EARLY,
    Failure,
    all_given,
    bad_data,
    given_by_user,
    is_set,
    put,
    reading,
    refuse_same_file,
    remark,
    say,
    writing,
)
from apsvm.cli.systems import named_metrics
from apsvm.data.read_options import ReadOptions
from apsvm.selection.grids import Grid, shown
from apsvm.trainers.settings import declared

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.metrics import Metric
    from apsvm.selection.cache import Cache
    from apsvm.selection.candidates import Entry
    from apsvm.selection.grids import Grid
    from apsvm.selection.portfolio import PortfolioSearch
    from apsvm.selection.race import Candidate, PathInFold
    from apsvm.selection.search import Followers, SettingsSearch
    from apsvm.trainers.base import AnyTrainer
    from apsvm.trainers.fitting import FeatureOptions
    from apsvm.trainers.settings import SettingValue


@dataclass(frozen=True)
class CvRequest:
    """The options, checked before anything is read.

    Attributes
    ----------
    data, read_options : the rows, and how to read them
    options : their values
    metrics : metrics of the settings, by name; the first one chooses
    grids : settings to try for each loss
    tries_all : True if nothing to try was named: the portfolio is tried
    began : start time, by ``time.monotonic``
    """

    data: str
    read_options: ReadOptions
    options: JsonObject
    metrics: Mapping[str, Metric]
    grids: Sequence[Grid]
    tries_all: bool = False
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def of_options(cls, data: str, read: ReadOptions, options: JsonObject) -> CvRequest:
        check_bag_options(read, options)
        named = all_given()
        tried = ("loss", "features", *(option.name for option in options_of_trainers()))
        need_cvxpy()
        losses = options["loss"]
        refuse_options_of_others(losses, named)
        request = cls(
            data,
            replace(read, threads=options["jobs"]),
            options,
            named_metrics(options["metric"]),
            [_grid(loss, options, named, way) for loss in losses for way in _ways(options)],
            tries_all=named.isdisjoint(tried) and len(options["pool"]) < 2,
        )
        request._check()
        return request

    @property
    def output(self) -> str | None:
        """The model to write."""
        return self.options["output"]  # type: ignore[no-any-return]

    def _check(self) -> None:
        """Checks options and files before the search."""
        options = self.options
        if len(set(options["pool"])) < len(options["pool"]):
            raise click.UsageError("--pool: the same names are given twice")
        inputs: dict[str, str | None] = {"query_weights": options["query_weights"]}
        for grid in self.grids:
            trainer = grid.trainer
            label_options(options, trainer)
            if grid.features is None:
                _features(options, trainer)
            inputs |= check_inputs(trainer)
            refuse_untaken(trainer, options, "query_weights")
            for warning in trainer.warnings():
                remark(f"warning: {warning}")
        outputs = [path for path in (self.output, options["json"]) if path is not None]
        for path in outputs:
            check_output(path, data=self.data, **inputs)
        if self.output is not None:
            spare_others(self.output)
        refuse_same_place(outputs, "the model and --json")
        if options["cache"] is not None:
            refuse_same_file(options["cache"], data=self.data)

    def read(self) -> Dataset:
        """The data; bags are pooled to rows here if only one pooling is tried."""
        from apsvm.trainers.fitting import bags_settled

        dataset, pools = read_to_train(self.data, self.read_options), _pools(self.options)
        if len(pools) != 1 or pools[0] is None:
            return dataset
        with reading(dataset.source):
            return bags_settled(dataset, self.grids[0].trainer, pools[0])

    def by_labels_of(self, dataset: Dataset) -> CvRequest:
        """The request with loss and metric for grades, if the rows have grades and the user named neither."""
        named = all_given() | ({"loss"} if self.tries_all else set())
        labels = label_options(self.options, self.grids[0].trainer)
        chosen = chosen_by_grades(dataset, labels, self.options, named)
        options, metrics, grids = dict(self.options), self.metrics, self.grids
        if "metric" in chosen:
            options["metric"], metrics = (chosen["metric"],), named_metrics([chosen["metric"]])
        if "loss" in chosen:
            loss = ChosenLoss.of(chosen["loss"])
            grids = [_grid(loss, options, named, way) for way in _ways(options)]
        return replace(self, options=options, metrics=metrics, grids=grids)

    def search(self, dataset: Dataset) -> SettingsSearch:
        """A search of the grids on these rows; ends the command if they do not fit."""
        from apsvm.selection.search import SettingsSearch

        trainer, options = self.grids[0].trainer, self.options
        with bad_data(dataset.source):
            search = SettingsSearch(
                dataset,
                self.grids,
                self.metrics,
                labels=label_options(options, trainer),
                features=_features(options, trainer),
                folds=options["folds"],
                seed=options["seed"],
                query_weights=self._query_weights(dataset),
            )
        for fit in search.fits:
            with bad_data(dataset.source), reading(dataset.source):
                check_data(fit.trainer, fit.training_set())
            say_of_grades(fit)
        *_, of_rows = search.fits  # fits that pool bags come first
        remark(described(of_rows.dataset, of_rows.target))
        if len(search.folds) < options["folds"]:
            what = "positive or negative row" if dataset.groups is None else "query to rank"
            say(f"{len(search.folds)} folds: {options['folds']} would leave some without a {what}")
        return search

    def portfolio(self, dataset: Dataset) -> PortfolioSearch:
        """A search of the portfolio on these rows."""
        from apsvm.selection.portfolio import PortfolioSearch

        trainer, options = self.grids[0].trainer, self.options
        return PortfolioSearch(
            dataset,
            self.metrics,
            labels=label_options(options, trainer),
            features=_features(options, trainer, (options["features"][0], next(iter(options["pool"]), None))),
            folds=options["folds"] if given_by_user("folds") else None,
            seed=options["seed"],
            query_weights=self._query_weights(dataset),
        )

    def _query_weights(self, dataset: Dataset) -> Mapping[int, float] | None:
        return query_weights(self.options["query_weights"], dataset)


#: A feature map, and the pooling of bags; None: unpooled.
_Way: TypeAlias = "tuple[str, tuple[str, ...] | None]"


def _pools(options: JsonObject) -> list[tuple[str, ...] | None]:
    """Poolings of bags to compare. None means unpooled: no bags, or --latent."""
    pools: list[tuple[str, ...] | None] = list(options["pool"])
    return [*pools, None] if options["latent"] or not pools else pools


def _ways(options: JsonObject) -> list[_Way]:
    """Every feature map with every pooling."""
    return list(itertools.product(options["features"], _pools(options)))


def _features(options: JsonObject, trainer: AnyTrainer, way: _Way | None = None) -> FeatureOptions:
    """Feature options of ``way``; by default the first feature map, unpooled."""
    features, pool = way or (options["features"][0], None)
    return feature_options({**options, "features": features}, trainer, pool)


def _grid(loss: ChosenLoss, options: JsonObject, named: Collection[str], way: _Way) -> Grid:
    """Settings to try for a loss, with this feature map and pooling; invalid ones end the command."""
    from apsvm.selection.grids import Grid

    trainer, values = loss.trainer, settings_named(loss.trainer, options, named)
    chosen = frozenset(values)
    tried = {name: value for name, value in values.items() if isinstance(value, tuple)}  # options that take lists
    fixed = {name: value for name, value in values.items() if name not in tried}
    _, pool = way
    if pool is not None and fixed.get("latent"):
        fixed["latent"] = False
        chosen -= {"latent", "start"}
    with usage_errors(loss):
        settings = trainer.Settings(**fixed, seed=options["seed"])
        grid = Grid.of(lambda one: trainer(loss.name, one, chosen), settings, tried)
    is_own = pool is not None or len(options["features"]) > 1
    return replace(grid, features=_features(options, grid.trainer, way)) if is_own else grid


#: Share of ``--time-limit`` for comparing; the rest is for training on all rows and its threshold.
SHARE_OF_COMPARING = 0.6

#: Options left out: cv writes no log, and measures settings on the held-out rows.
_WITHOUT = ("log_ranks", "validation", "validation_metric", "patience")


class CvCommand(TrainersCommand):
    """``apsvm cv`` with the options of all trainers; options worth trying out are lists."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params = with_trainer_options(self.params, trainer_options(as_lists=True, without=_WITHOUT))


#: Options that ``--help`` lists, by section.
_COMMON = {
    "Data": "label_column qid_column id_column positive_label drop",
    "What is compared (lists, with commas between the values; by default a portfolio)": "loss features C components",
    "How": "scale folds metric time_limit",
    "Output": "output json threshold calibrate jobs quiet verbose",
}


@click.command(name="cv", cls=CvCommand, common=_COMMON)
@click.argument("data", metavar="DATA")
@click.option(
    "-m", "--metric", metavar="NAME", type=MetricName(), multiple=True, default=("AP",),
    show_default=f"AP; of queries with grades {OF_GRADES['metric']}",
    help="Metric that settings are judged by; may be given more than once: the first one chooses.",
)  # fmt: skip
@click.option(
    "--loss", type=Several(LossName()), default="ap", show_default="ap; of queries with grades ndcg",
    help="Losses to try.",
)  # fmt: skip
@options("folds", "output", "json", "time_limit", "cache", "rivals", "jobs", "seed", *TRAINING,
         features={"type": Several(FeatureMapName())}, pool={"multiple": True},
         threshold={"needs": "output"}, calibrate={"needs": "output"})  # fmt: skip
@config_option
@with_read_options
def cv(data: str, read: ReadOptions, **values: object) -> int:
    """Compare settings by cross-validation on DATA, and train the best one.

    Without --loss, --features and settings it tries losses, both bounds, feature maps and values of C. -o writes the
    best, or the average of the best on several maps.

    \f
    Folds are of whole queries where rows have qid:, else of rows, each with its share of the positives. The values of C
    are trained in one go, a path; every combination of the others is a training of its own. Multiples, 1x, are of what
    fits the scale of the features of the fold's training rows. Where the best value stands at the edge of values
    that the user did not name, and the metric still rises there, two more beyond it are tried.
    The deviation is that between the folds' values.

    \b
    apsvm cv payments.csv --label-column fraud -o best.model
    apsvm cv payments.csv --label-column fraud -C 0.01:1e5:log10 --metric P@100 -o best.model
    apsvm cv search.csv --qid-column query --loss ndcg,wmw --bound hinge,tight --json -
    """
    request = CvRequest.of_options(data, read, values)
    cache = _cache(request)
    dataset = request.read()
    request = request.by_labels_of(dataset)
    search = None if request.tries_all else request.search(dataset)
    with signals_caught() as signals:
        run = _Run(request, signals, cache)
        if search is None:
            search = run.finalists(dataset)
        run.compare(search)
        is_limited = run.is_over()
        stopped = exit_code(signals)
        candidates = run.compared(search)
        if not candidates:
            raise Failure(stopped or BAD_DATA, "stopped, nothing was finished in every fold")
        chosen = search.choose(candidates)
        average = None if signals or run.is_over() else search.average(candidates)
        beside = list(run.references(search))
        if cache is not None and cache.is_lossy:
            say(f"warning: {request.options['cache']}: some results could not be written")
        results = Results(search, candidates, chosen, request.metrics, beside, average)
        run.report(results)
        if stopped:
            say("interrupted: the table is of what was finished" + (", no model written" if request.output else ""))
            return stopped
        as_asked = not is_limited and all(candidate.as_asked for candidate in candidates)
        if request.output is not None:
            as_asked &= run.refit(search, average or chosen, candidates)
        if signals and not signals.are_late:
            return exit_code(signals)
    return 0 if as_asked else STOPPED_EARLY


def _cache(request: CvRequest) -> Cache | None:
    """The cache of finished folds; None if --cache is not given."""
    folder = request.options["cache"]
    if folder is None:
        return None
    from apsvm.selection.cache import Cache

    with writing(folder):
        return Cache(folder)


@dataclass(frozen=True)
class _Run:
    """The steps of the command, and their messages."""

    request: CvRequest
    signals: Signals
    cache: Cache | None = None

    @property
    def _followers(self) -> Followers:
        from apsvm.selection.search import Followers

        return Followers(should_stop=lambda: bool(self.signals), cache=self.cache)

    def is_over(self) -> bool:
        """True if comparing must end: the rest of the time limit is for training the chosen settings."""
        limit = self.request.options["time_limit"]
        return limit is not None and time.monotonic() > self.request.began + SHARE_OF_COMPARING * limit

    @property
    def _comparing(self) -> Followers:
        return replace(self._followers, should_stop=lambda: bool(self.signals) or self.is_over())

    def compared(self, search: SettingsSearch) -> list[Candidate]:
        """Settings to choose from: those finished in every fold, or in the most folds if time ran out."""
        candidates = search.candidates()
        if candidates or self.signals or not self.is_over():
            return candidates
        if not search.so_far():
            with bad_data(search.dataset.source), Bar("comparing"):
                search.least(self.request.options["jobs"], self._followers)
        candidates = search.so_far()
        if candidates:
            folds = f"{len(candidates[0].folds)} of {len(search.folds)} folds"
            remark(f"the time limit ends the comparison: {len(candidates)} settings, in {folds}")
        return candidates

    def finalists(self, dataset: Dataset) -> SettingsSearch:
        """The search among the best of the portfolio; ``--verbose`` prints a line for each entry as it is screened."""

        options = self.request.options
        with bad_data(dataset.source):
            whole = self.request.portfolio(dataset)
            total, screened, leads = len(whole.entries), 0, (-math.inf, "")

            def trained(path: PathInFold, done: int, n_paths: int) -> None:
                nonlocal leads
                value = max(setting.values[whole.metric] for setting in path.settings)
                leads = max((value, str(whole.racing[path.task.grid])), leads if done > 1 else (-math.inf, ""))
                bar.total = n_paths
                bar.reach(done, f"paths screened; {leads[1]} leads ({whole.metric} {leads[0]:.4f})")

            def ended(entry: Entry, result: Candidate | str) -> None:
                nonlocal screened
                screened += 1
                if options["quiet"] or not options["verbose"]:
                    return
                text = result
                if not isinstance(result, str):
                    folds = f"{len(result.folds)} fold{'' if len(result.folds) == 1 else 's'}"
                    rows = f"{whole.racing_on}, {folds}"
                    text = f"{whole.metric} {result.mean(whole.metric):.4f} on held-out rows (of {rows})"
                say(f" {screened:>{len(str(total))}}/{total}  {entry}: {text}")

            remark(described(dataset, whole.target))
            remark(f"trying {total} combinations of loss and features (-v shows each)")
            if whole.caution is not None:
                say(f"warning: {whole.caution}")
            with Bar("screening") as bar:
                search = whole.screen(options["jobs"], replace(self._comparing, path=trained), ended)
            if self.signals:
                raise Failure(exit_code(self.signals), "stopped, nothing was finished in every fold")
            if not self.is_over():
                remark(f"compared further: {'; '.join(str(whole.racing[grid]) for grid in search.alive)}")
            return search

    def references(self, search: SettingsSearch) -> Iterator[Candidate]:
        """Common models on the same folds, if the portfolio was tried."""
        from apsvm.selection.references import references

        wanted = self.request.tries_all and self.request.options["rivals"] == "all"
        if wanted and not self.signals and not self.is_over():
            with Bar("training common models on the same folds"):
                yield from references(search, self._followers.should_stop, self.request.options["jobs"])

    def compare(self, search: SettingsSearch) -> None:
        """Trains all paths in all folds; ``--verbose`` prints a line as each ends."""

        def widened(number: int, name: str, values: Sequence[SettingValue]) -> None:
            if self.request.options["verbose"]:
                listed = ", ".join(map(shown, values))
                say(f" the best {spelled(search.grids[number], name)} is at the edge of its grid: trying {listed} too")

        def ended(path: PathInFold, done: int, total: int) -> None:
            bar.total = total
            finished = search.candidates() if bar.is_shown else []
            top = search.choose(finished) if finished else None
            leads = "" if top is None else f"; {top.loss} leads ({search.metric} {top.mean(search.metric):.4f})"
            bar.reach(done, f"paths compared{leads}")
            if self.request.options["verbose"]:
                say(f" {done:>{len(str(total))}}/{total}  {progress_line(path, search.grids, search.metric)}")

        followers = self._comparing
        if not self.request.options["quiet"]:
            followers = replace(followers, path=ended, widened=widened)
        with bad_data(search.dataset.source), Bar("comparing") as bar:
            search.run(self.request.options["jobs"], followers)

    def report(self, results: Results) -> None:
        """Writes the table and the JSON. The table goes to stderr if stdout is taken."""
        from apsvm._support.files import write_whole

        as_json = self.request.options["json"]
        show = say if "-" in (as_json, self.request.output) else put
        if show is put or not self.request.options["quiet"]:
            for line in results.table():
                show(f" {line}" if show is say else line)
        elif not all(candidate.as_asked for candidate in results.candidates):
            say("warning: training stopped early in some of the folds")
        if as_json is not None:
            text = json.dumps(results.to_json(), indent=1, allow_nan=False) + "\n"
            with writing(as_json):
                write_whole(as_json, text.encode())

    @staticmethod
    def _how_chosen(search: SettingsSearch, chosen: Candidate, candidates: Sequence[Candidate]) -> str:
        from apsvm.selection.average import BEHIND, Average

        if isinstance(chosen, Average):
            return (
                f"chosen: the average of the best on {len(chosen.members)} feature maps ({search.metric} at most "
                f"{BEHIND:g} below the best alone)"
            )
        grid = search.grids[chosen.grid]
        defaults = {name: field.default for name, (field, _) in declared(type(grid.settings)).items()}
        values = [
            f"{spelled(grid, name)} = {shown(value)}"
            for name, value in chosen.choice.items()
            if name == "C" or value != defaults[name]
        ]
        what = ", ".join([f"{chosen.loss} on {search.fits[chosen.grid].features.features} features", *values])
        return f"chosen: {what} (of {len(candidates)} settings, by mean {search.metric})"

    def refit(self, search: SettingsSearch, chosen: Candidate, candidates: Sequence[Candidate]) -> bool:
        """Trains ``chosen`` on all rows and writes the model; True if training ended as requested."""
        from apsvm.cli.output.training_metric import training_metric

        assert self.request.output is not None
        with bad_data(search.dataset.source), Bar("training the chosen model on all rows"):
            refit = search.refit(chosen, candidates, self.request.options["jobs"], self._followers)
            if refit is not None:
                refit = decided_refit(
                    refit, self.request.options, self.request.options["jobs"], self._followers.should_stop
                )
        if refit is None:
            raise Failure(exit_code(self.signals) or BAD_DATA, "stopped, no model written")
        save(self.request.output, refit.outcome, refit.model, self.signals)
        remark(f"{self._how_chosen(search, chosen, candidates)}, and trained on all rows")
        figures = training_metric(refit.fit, refit.model) if is_set("verbose") else ()
        say_what_became(TrainedModel(refit.outcome, refit.model, figures), self.request.output)
        return refit.outcome.as_asked and refit.outcome.ranks
