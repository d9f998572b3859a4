"""``apsvm cv``: compares settings by k-fold cross-validation and trains the best one on all rows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from apsvm._support.types import JsonDict
from apsvm.cli import training
from apsvm.cli.options.config import config_option
from apsvm.cli.options.parameters import FEATURES, METRIC, Several
from apsvm.cli.options.table import TRAINING, files
from apsvm.cli.options.table import options as with_options
from apsvm.cli.options.trainers import (
    LOSS,
    TrainersCommand,
    options_of_trainers,
    refuse_options_of_others,
    settings_named,
    usage_errors,
)
from apsvm.cli.output.compared import Results
from apsvm.cli.output.progress import Bar
from apsvm.cli.reading import with_read_options
from apsvm.cli.shared import BAD_DATA, STOPPED_EARLY, Failure, all_given, bad_data, put, remark, say, writing
from apsvm.data.read_options import ReadOptions
from apsvm.selection.grids import Grid
from apsvm.trainers import trainer_of

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.selection.race import Candidate, PathInFold
    from apsvm.selection.search import Followers, SettingsSearch

#: Share of ``--time-limit`` for comparing; the rest is for training on all rows and its threshold.
SHARE_OF_COMPARING = 0.6

#: Options that ``--help`` lists, by section.
_COMMON = {
    "Data": "label_column qid_column id_column positive_label drop",
    "What is compared (lists, with commas between the values; by default a portfolio)": "loss features C components",
    "How": "scale folds metric time_limit",
    "Output": "output json threshold jobs quiet verbose",
}


# cv writes no log, and measures settings on the held-out rows.
@click.command(
    name="cv", cls=TrainersCommand, as_lists=True, without="log_ranks validation validation_metric patience",
    common=_COMMON,
)  # fmt: skip
@files("DATA")
@click.option(
    "-m", "--metric", metavar="NAME", type=METRIC, multiple=True, default=("AP",),
    show_default=f"AP; of queries with grades {training.OF_GRADES['metric']}",
    help="Metric that settings are judged by; may be given more than once: the first one chooses.",
)  # fmt: skip
@click.option(
    "--loss", type=Several(LOSS), default="ap", show_default="ap; of queries with grades ndcg",
    help="Losses to try.",
)  # fmt: skip
@with_options("folds", "output", "json", "time_limit", "rivals", "jobs", "seed", *TRAINING,
         "pool", features={"type": Several(FEATURES)},
         threshold={"needs": "output"}, calibrate={"needs": "output"},
         verbose={"help": "Print every setting that was compared, and the certificate."})  # fmt: skip
@config_option
@with_read_options
def cv(data: str, read: ReadOptions, **options: Any) -> int:
    """Compare settings by cross-validation on DATA, and train the best one.

    Without --loss, --features and settings it tries losses, both bounds, feature maps and values of C. -o writes the
    best, or the average of the best on several maps.

    \b
    apsvm cv payments.csv --label-column fraud -o best.model
    apsvm cv payments.csv --label-column fraud -C 0.01:1e5:log10 --metric P@100 -o best.model
    \f
    Folds are of whole queries where rows have qid:, else of rows, each with its share of the positives. The values of C
    are trained in one go, as a path; each combination of other settings is trained by itself. A multiple such as 1x is
    of the C that fits the scale of the features in the fold's training rows. Deviations are between folds.
    """
    from apsvm.trainers.fitting import bags_settled

    run = _Run(data, read, options)
    dataset = training.read_to_train(data, replace(read, threads=options["jobs"]))
    if options["pool"] is not None:
        dataset = bags_settled(dataset, run.grids[0].trainer, options["pool"])
    run.look_at_labels(dataset)
    with training.signals_caught() as run.signals, bad_data(dataset.source):
        return run.run(dataset)


class _Run:
    """The options, checked before anything is read.

    Attributes
    ----------
    metrics : metrics of the settings, by name; the first one chooses
    grids : settings to try for each loss and feature map
    tries_all : True if nothing to try was named: the portfolio is tried
    signals : what stops it
    """

    def __init__(self, data: str, read: ReadOptions, options: JsonDict) -> None:
        from apsvm.metrics.evaluate import parse_metrics

        self.began, self.read, self.options, self.named = time.monotonic(), read, options, all_given()
        refuse_options_of_others(options["loss"], self.named)
        tried = {"loss", "features", *(option.name for option in options_of_trainers())}
        self.tries_all = self.named.isdisjoint(tried)
        self.metrics = parse_metrics(options["metric"])
        self.grids = self._grids(options["loss"])
        inputs: dict[str, str | None] = {"query_weights": options["query_weights"]}
        for grid in self.grids:
            inputs |= grid.trainer.inputs()
        training.check_outputs(options["output"], "--json", options["json"], data=data, **inputs)
        self.signals = training.Signals()

    def _grids(self, losses: Sequence[str]) -> list[Grid]:
        """Settings to try for each loss, with every feature map; invalid ones end the command."""
        return [self._grid(loss, features) for loss in losses for features in self.options["features"]]

    def _grid(self, loss: str, features: str) -> Grid:
        trainer, options = trainer_of(loss), self.options
        fixed = settings_named(trainer, options, self.named)
        chosen = frozenset(fixed)
        tried = {name: fixed.pop(name) for name in chosen if isinstance(fixed[name], tuple)}  # options that take lists
        with usage_errors(loss):
            settings = trainer.Settings(**fixed, seed=options["seed"])
            grid = Grid.of(lambda one: trainer(loss, one, chosen), settings, tried)
        how = training.checked(grid.trainer, {**options, "features": features}, self.read)
        return replace(grid, labels=how[0], features=how[1])

    def look_at_labels(self, dataset: Dataset) -> None:
        """Takes the loss and the metric for grades, if the rows have grades and the user named neither."""
        from apsvm.metrics.evaluate import parse_metrics

        named = self.named | ({"loss"} if self.tries_all else set())
        chosen = training.chosen_by_grades(dataset, self.options, named)
        if "metric" in chosen:
            self.metrics = parse_metrics([chosen["metric"]])
        if "loss" in chosen:
            self.grids = self._grids([chosen["loss"]])

    def run(self, dataset: Dataset) -> int:
        """Compares, prints the table, trains the best; returns the exit code."""
        search = self.finalists(dataset) if self.tries_all else self.search(dataset)
        with Bar("comparing") as bar:
            search.run(self.options["jobs"], self._shown(bar, lambda path: "paths compared"))
        is_limited = self.is_over()
        candidates = self.compared(search)
        if not candidates:
            code = training.exit_code(self.signals) or BAD_DATA
            raise Failure(code, "stopped, nothing was finished in every fold")
        chosen = search.choose(candidates)
        average = None if self.signals or self.is_over() else search.average(candidates)
        self.report(Results(search, candidates, chosen, self.metrics, self.references(search), average))
        stopped = training.exit_code(self.signals)
        if stopped:
            model = ", no model written" if self.options["output"] else ""
            say(f"interrupted: the table shows what was finished{model}")
            return stopped
        as_asked = not is_limited and all(candidate.as_asked for candidate in candidates)
        if self.options["output"] is not None:
            as_asked &= self.refit(search, average or chosen, candidates)
        if self.signals and not self.signals.are_late:
            return training.exit_code(self.signals)
        return 0 if as_asked else STOPPED_EARLY

    def search(self, dataset: Dataset) -> SettingsSearch:
        """Makes a search of the grids on these rows; ends the command if they do not fit."""
        from apsvm.selection.search import SettingsSearch

        folds = self.options["folds"]
        search = SettingsSearch(dataset, self.grids, self.metrics, folds=folds, **self._common(dataset))
        for fit in search.fits:
            training.say_of_rows(fit, fit.training_set())
        *_, of_rows = search.fits  # fits that pool bags come first
        training.describe(of_rows.dataset, of_rows.target)
        self.say_if_fewer(search, folds)
        return search

    def say_if_fewer(self, search: SettingsSearch, folds: int) -> None:
        """Says that there are fewer folds than the user asked for."""
        if len(search.folds) < folds:
            what = "positive or negative row" if search.units.groups is None else "query to rank"
            say(f"{len(search.folds)} folds: {folds} would leave some without a {what}")

    def finalists(self, dataset: Dataset) -> SettingsSearch:
        """The search among the best of the portfolio."""
        from apsvm.selection.portfolio import PortfolioSearch

        folds = self.options["folds"] if "folds" in all_given() else None
        whole = PortfolioSearch(dataset, self.metrics, folds=folds, **self._common(dataset))
        training.describe(dataset, whole.target)
        remark(f"trying {len(whole.entries)} combinations of loss and features")
        if whole.caution is not None:
            say(f"warning: {whole.caution}")
        with Bar("screening") as bar:
            shown = self._shown(bar, lambda path: f"paths screened, {whole.racing[path.task.grid]}")
            search = whole.screen(self.options["jobs"], shown)
        if self.signals:
            raise Failure(training.exit_code(self.signals), "stopped, nothing was finished in every fold")
        if folds is not None:
            self.say_if_fewer(search, folds)
        if whole.given_up and not self.is_over():
            remark(f"given up: {'; '.join(map(str, whole.given_up))}")
        return search

    def compared(self, search: SettingsSearch) -> list[Candidate]:
        """Settings to choose from: those finished in every fold, or in the most folds if time ran out."""
        candidates = search.candidates()
        if candidates or self.signals or not self.is_over():
            return candidates
        if not search.so_far():
            with Bar("comparing"):
                search.least(self.options["jobs"], self._until_a_signal())
        candidates = search.so_far()
        if candidates:
            count, folds = len(candidates), f"{len(candidates[0].folds)} of {len(search.folds)} folds"
            remark(f"the time limit ends the comparison: {count} setting{'s' * (count > 1)} in {folds}")
        return candidates

    def references(self, search: SettingsSearch) -> Sequence[Candidate]:
        """Common models on the same folds, if the portfolio was tried."""
        from apsvm.selection.references import references

        wanted = self.tries_all and self.options["rivals"] == "all"
        if not wanted or self.signals or self.is_over():
            return []
        with Bar("training common models on the same folds"):
            return list(references(search, lambda: bool(self.signals) or self.is_over(), self.options["jobs"]))

    def report(self, results: Results) -> None:
        """Writes the table and the JSON. The table goes to stderr if stdout is taken."""
        from apsvm._support.files import write_whole

        as_json = self.options["json"]
        to_stdout = "-" not in (as_json, self.options["output"])
        if to_stdout or not self.options["quiet"]:
            for line in results.table(every=not self.tries_all or self.options["verbose"]):
                (put if to_stdout else say)(line if to_stdout else f" {line}")
        elif not all(candidate.as_asked for candidate in results.candidates):
            say("warning: training stopped early in some of the folds")
        if as_json is not None:
            text = json.dumps(results.to_json(), indent=1, allow_nan=False) + "\n"
            with writing(as_json):
                write_whole(as_json, text.encode())

    def refit(self, search: SettingsSearch, chosen: Candidate, candidates: Sequence[Candidate]) -> bool:
        """Trains ``chosen`` on all rows and writes the model; True if training ended as requested."""
        from apsvm.selection.average import Average

        options, followers, path = self.options, self._until_a_signal(), self.options["output"]
        with Bar("training the chosen model on all rows"):
            refit = search.refit(chosen, candidates, options["jobs"], followers)
            if refit is None:
                raise Failure(training.exit_code(self.signals) or BAD_DATA, "stopped, no model written")
            if isinstance(chosen, Average) and refit.outcome.average is None and not refit.outcome.interrupted:
                say("warning: the average could not be formed of these rankers: the model is that of the best alone")
            fit = replace(refit.fit, trainer=refit.fit.trainer.with_settings(threads=options["jobs"]))
            folds = refit.out_of_fold, refit.how
            outcome, model = training.decided(fit, refit.outcome, refit.model, options, followers.should_stop, *folds)
        training.save(path, outcome, model, self.signals)
        training.say_what_became(refit.fit, outcome, model, path)
        return outcome.as_asked and outcome.ranks

    def is_over(self) -> bool:
        """True if comparing must end: the rest of the time limit is for training the chosen settings."""
        limit = self.options["time_limit"]
        return limit is not None and time.monotonic() > self.began + SHARE_OF_COMPARING * limit

    def _until_a_signal(self) -> Followers:
        from apsvm.selection.search import Followers

        return Followers(should_stop=lambda: bool(self.signals))

    def _shown(self, bar: Bar, what: Callable[[PathInFold], str]) -> Followers:
        """Followers that show paths, and stop a search at a signal or when comparing must end."""
        from apsvm.selection.search import Followers

        def path(path: PathInFold, done: int, total: int) -> None:
            bar.total = total
            bar.reach(done, what(path))

        return Followers(path, lambda: bool(self.signals) or self.is_over())

    def _common(self, dataset: Dataset) -> JsonDict:
        weights = training.query_weights(self.options["query_weights"], dataset)
        of_first = {"labels": self.grids[0].labels, "features": self.grids[0].features}
        return {**of_first, "seed": self.options["seed"], "query_weights": weights}
