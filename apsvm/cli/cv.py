"""``apsvm cv``: settings compared by k-fold cross-validation, the best one trained on all rows."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from apsvm.cli.completion import MetricName
from apsvm.cli.config import config_option
from apsvm.cli.parameters import Several
from apsvm.cli.shared import (
    BAD_DATA,
    INTERRUPTED,
    STOPPED_EARLY,
    TERMINATED,
    Failure,
    given_by_user,
    put,
    reading,
    say,
    writing,
)
from apsvm.cli.trainer_options import LossName, option_name, refuse_options_of_others, trainer_options, usage_errors
from apsvm.cli.training import (
    bad_data,
    check_bag_options,
    check_data,
    check_inputs,
    check_output,
    described,
    feature_options,
    label_options,
    pool_option,
    read_to_train,
    signals_caught,
    training_options,
)
from apsvm.data.read_options import ReadOptions
from apsvm.trainers.families import trainer_of
from apsvm.trainers.settings import declared
from apsvm.types import JsonObject

if TYPE_CHECKING:
    from apsvm.cli.cv_results import Results
    from apsvm.data.dataset import Dataset
    from apsvm.metrics import Metric
    from apsvm.selection.choice import Candidate
    from apsvm.selection.cross_validation import PathInFold
    from apsvm.selection.grids import Grid
    from apsvm.selection.nested import OuterFold
    from apsvm.selection.portfolio import Entry, PortfolioSearch
    from apsvm.selection.search import SettingsSearch

#: Of no use without a log, or where the rows that are left out measure every setting.
_WITHOUT = ("log_ranks", "validation", "validation_metric", "patience")


class CvCommand(click.Command):
    """``apsvm cv`` with the options of all trainers; those that are worth trying out are lists."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params += trainer_options(as_lists=True, without=_WITHOUT)


@click.command(name="cv", cls=CvCommand, context_settings={"auto_envvar_prefix": "APSVM_CV"})
@click.argument("data", metavar="DATA")
@click.option(
    "--folds",
    type=click.IntRange(2),
    default=5,
    show_default=True,
    help="How many folds; of the portfolio on large data three by default.",
)
@click.option(
    "-m", "--metric", metavar="NAME", type=MetricName(), multiple=True, default=("AP",), show_default=True,
    help="What settings are judged by, as apsvm eval names it; may be given more than once: the first one chooses.",
)  # fmt: skip
@click.option("--loss", type=Several(LossName()), default="ap", show_default=True, help="Losses to try.")
@click.option(
    "--one-standard-error", is_flag=True,
    help="Choose not the best setting but the simplest, of the smallest C or the largest lambda, whose mean is within "
    "one standard error of the best.",
)  # fmt: skip
@click.option(
    "--nested", is_flag=True,
    help="Also say what the choice is worth on rows that it has not seen: search, choose and train in each of as many "
    "outer folds, and judge what those leave out. Takes as many times as long.",
)  # fmt: skip
@click.option("-o", "--output", metavar="MODEL", help="Train the chosen setting on all rows and write this model.")
@click.option("--json", metavar="FILE", help="Write all results, each fold's included; - for stdout.")
@click.option(
    "-j", "--jobs", type=click.IntRange(0, 1024), default=0, show_default=True,
    help="Paths trained at a time, in threads; 0: one a core. The result does not depend on it.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True,
    help="Seed of the folds, and of what is random in training.",
)  # fmt: skip
@pool_option(multiple=True)
@training_options
@config_option
def cv(data: str, read: ReadOptions, **given: Any) -> int:
    """Compare settings by cross-validation on DATA, and train the best one.

    Where no --loss, no --features and no setting is named, a portfolio is searched for the metric: losses, both bounds,
    features as they are, as broken lines and, where data is small, in other maps, each with three values of C. All are
    screened in three folds; the best three go on. Logistic regression and boosted trees stand beside them in the table.

    Folds are of whole queries where rows have qid:, else of rows, each with its share of the positives. The values of C
    are trained in one go, a path; every combination of the others is a training of its own. Multiples, 1x, are of what
    fits the scale of the features of the fold's training rows. Where the best value stands at the edge of values that
    nobody named, and the metric still rises there, two more beyond it are tried. --time-limit is for each fold's path.
    The deviation is that between the folds' values.

    \b
    apsvm cv data.svm -m AP -o best.model
    apsvm cv data.svm -C 0.01:1e5:log10 --metric AP -o best.model
    apsvm cv data.svm --loss ap,auc --bound hinge,tight --scale standard --json -
    apsvm cv data.svm --loss ap,wmw,warp
    """
    from apsvm.cli.cv_results import Results

    run = _Run.of_options(data, read, given)
    dataset = run.read()
    search = None if run.tries_all else run.search(dataset)
    with signals_caught() as signals:
        if search is None:
            search = run.finalists(dataset, signals)
        run.compare(search, signals)
        stopped = _exit_code(signals)
        candidates = search.candidates()
        if not candidates:
            raise Failure(stopped or BAD_DATA, "stopped, nothing was finished in every fold")
        chosen = search.choose(candidates)
        beside = list(run.references(search, signals))
        results = Results(search, candidates, chosen, run.metrics, beside)
        run.report(results)
        if stopped:
            say("interrupted: the table is of what was finished" + (", no model written" if run.output else ""))
            return stopped
        as_asked = all(candidate.as_asked for candidate in candidates)
        if run.output is not None:
            as_asked &= run.refit(search, chosen, len(candidates), signals)
        if given["nested"] and not signals:
            run.nest(search, signals)
        if signals:
            return _exit_code(signals)
    return 0 if as_asked else STOPPED_EARLY


def _exit_code(signals: Sequence[int]) -> int:
    if not signals:
        return 0
    return TERMINATED if signal.SIGTERM in signals else INTERRUPTED


@dataclass(frozen=True)
class _Run:
    """What was asked for, checked before anything is read; a grid for each loss. ``tries_all``: nobody named what to
    try, and so the portfolio is."""

    data: str
    read_options: ReadOptions
    given: JsonObject
    metrics: Mapping[str, Metric]
    grids: Sequence[Grid]
    tries_all: bool = False

    @classmethod
    def of_options(cls, data: str, read: ReadOptions, given: JsonObject) -> _Run:
        from apsvm.metrics import MetricError
        from apsvm.metrics.evaluate import parse_metrics

        check_bag_options(read, given)
        tries_all = not any(given_by_user(name) for name in ("loss", "features", *_tried())) and len(given["pool"]) < 2
        refuse_options_of_others(given["loss"])
        try:
            metrics = parse_metrics(given["metric"])
        except MetricError as error:
            raise click.UsageError(str(error)) from None
        run = cls(
            data,
            replace(read, threads=given["jobs"]),
            given,
            metrics,
            [_grid(loss, given, pool) for loss in given["loss"] for pool in given["pool"] or (None,)],
            tries_all,
        )
        run._check()
        return run

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
            feature_options(given, trainer, next(iter(given["pool"]), None))
            check_inputs(trainer)
            inputs |= trainer.inputs()
            if given["query_weights"] is not None and trainer.takes_query_weights and not trainer.uses_queries:
                raise click.UsageError(f"--query-weights: --loss {trainer.loss_name} takes all rows as one query")
            if not given["quiet"] and trainer.family not in families:
                for warning in trainer.warnings():
                    say(f"warning: {warning}")
            families.add(trainer.family)
        outputs = [path for path in (self.output, given["json"]) if path is not None]
        for path in outputs:
            check_output(path, data=self.data, **inputs)
        places = ["-" if path == "-" else os.path.realpath(path) for path in outputs]
        if len(set(places)) < len(places):
            raise click.UsageError("the model and --json cannot go to the same place")

    def read(self) -> Dataset:
        """The data; its bags as rows where only one way to pool them is tried."""
        from apsvm.trainers.fitting import bags_settled

        dataset, pools = read_to_train(self.data, self.read_options), self.given["pool"]
        if len(pools) != 1:
            return dataset
        with reading(dataset.source):
            return bags_settled(dataset, self.grids[0].trainer, pools[0])

    def search(self, dataset: Dataset) -> SettingsSearch:
        """What is to be done on these rows; ends the command if they do not fit."""
        with bad_data(dataset.source):
            search = self._settings_search(dataset)
        families = set()
        for fit in search.fits:
            family = fit.trainer.family  # what there is to say of the data, each says once
            check_data(fit.trainer, fit.training_set(), quiet=self.given["quiet"] or family in families)
            families.add(family)
        if self.given["verbose"] and not self.given["quiet"]:
            say(described(dataset, search.fits[0].target))
        return search

    def _settings_search(self, dataset: Dataset) -> SettingsSearch:
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

    def _portfolio(self, dataset: Dataset) -> PortfolioSearch:
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

    def nest(self, search: SettingsSearch, signals: Sequence[int]) -> None:
        """The whole search again in outer folds, with a line for each."""
        from statistics import fmean, stdev

        from apsvm.selection.nested import nested
        from apsvm.selection.search import Followers

        given, stop = self.given, Followers(should_stop=lambda: bool(signals))

        def again(rows: Dataset) -> SettingsSearch | None:
            if self.tries_all:
                whole = self._portfolio(rows)
                whole.screen(given["jobs"], stop.should_stop)
                if signals or not whole.finalists():
                    return None
                inner = whole.final()
            else:
                inner = self._settings_search(rows)
            inner.run(given["jobs"], stop)
            return inner

        done: list[OuterFold] = []
        with bad_data(search.dataset.source):
            folds = nested(
                search.given, search.target, self.metrics, again,
                folds=given["folds"], seed=given["seed"], jobs=given["jobs"], should_stop=stop.should_stop,
            )  # fmt: skip
            for number, fold in enumerate(folds, 1):
                done.append(fold)
                if not given["quiet"]:
                    say(
                        f" outer fold {number}: {search.metric} {fold.values[search.metric]:.4f}, chosen: {fold.chosen}"
                    )
        if len(done) < given["folds"]:
            say("interrupted: not all outer folds were done")
            return
        show = self._show_results()
        for metric in self.metrics:
            values = [fold.values[metric] for fold in done]
            show(f"nested, {len(done)} folds: {metric} {fmean(values):.4f} ± {stdev(values):.4f}")

    def finalists(self, dataset: Dataset, signals: Sequence[int]) -> SettingsSearch:
        """The search among the best of the portfolio, with a line for each entry as it is screened."""
        given = self.given
        with bad_data(dataset.source):
            whole = self._portfolio(dataset)
            total, screened = len(whole.entries), 0

            def ended(entry: Entry, result: Candidate | str) -> None:
                nonlocal screened
                screened += 1
                if given["quiet"]:
                    return
                text = result if isinstance(result, str) else f"{whole.metric} {result.mean(whole.metric):.4f}"
                say(f" {screened:>{len(str(total))}}/{total}  {entry}: {text}")

            if not given["quiet"]:
                say(f"nobody named what to try: {total} combinations of losses and features are screened")
            whole.screen(given["jobs"], lambda: bool(signals), ended)
            finalists = whole.finalists()
            if signals or not finalists:
                raise Failure(_exit_code(signals) or BAD_DATA, "stopped, nothing was finished in every fold")
            if not given["quiet"]:
                say(f"the best go on: {'; '.join(map(str, finalists))}")
            return whole.final()

    def references(self, search: SettingsSearch, signals: Sequence[int]) -> Iterator[Candidate]:
        """Common models on the same folds, where the portfolio was tried."""
        from apsvm.selection.references import references

        if self.tries_all and not signals:
            yield from references(search, lambda: bool(signals), self.given["jobs"])

    def _query_weights(self, dataset: Dataset) -> Mapping[int, float] | None:
        from apsvm.data.query_weights import read_query_weights

        path = self.given["query_weights"]
        if path is None:
            return None
        if dataset.groups is None:
            raise Failure(BAD_DATA, f"{dataset.source}: --query-weights needs rows with qid:, found none")
        with reading(path):
            return read_query_weights(path)

    def compare(self, search: SettingsSearch, signals: Sequence[int]) -> None:
        """All paths in all folds, with a line as each ends."""
        from apsvm.cli.cv_results import progress_line, spelled
        from apsvm.selection.grids import shown
        from apsvm.selection.search import Followers

        def widened(number: int, name: str, values: Sequence[Any]) -> None:
            listed = ", ".join(map(shown, values))
            say(f" the best {spelled(search.grids[number], name)} stands at the edge of its grid: {listed} as well")

        def ended(path: PathInFold, done: int, total: int) -> None:
            say(f" {done:>{len(str(total))}}/{total}  {progress_line(path, search.grids, search.metric)}")

        followers = Followers(should_stop=lambda: bool(signals))
        if not self.given["quiet"]:
            followers = replace(followers, path=ended, widened=widened)
        with bad_data(search.dataset.source):
            search.run(self.given["jobs"], followers)

    def report(self, results: Results) -> None:
        """The table, on stdout or where something else goes there on stderr, and the JSON."""
        from apsvm.files import write_whole

        as_json = self.given["json"]
        show = self._show_results()
        if show is put or not self.given["quiet"]:
            for line in results.table():
                show(f" {line}" if show is say else line)
        if as_json is not None:
            text = json.dumps(results.to_json(), indent=1, allow_nan=False) + "\n"
            with writing(as_json):
                write_whole(as_json, text.encode())

    def _show_results(self) -> Callable[[str], None]:
        """Prints a line on stdout; on stderr where something else goes to stdout."""
        return say if "-" in (self.given["json"], self.output) else put

    def refit(self, search: SettingsSearch, chosen: Candidate, n_candidates: int, signals: Sequence[int]) -> bool:
        """Trains ``chosen`` on all rows and writes the model; whether training ended as it was asked to."""
        from apsvm.cli.training_metric import training_metric
        from apsvm.trainers.summary import summary

        assert self.output is not None
        with bad_data(search.dataset.source):
            refit = search.refit(chosen, n_candidates, self.given["jobs"], lambda: bool(signals))
        if refit is None:
            raise Failure(_exit_code(signals) or BAD_DATA, "stopped, no model written")
        with writing(self.output):
            refit.model.save(self.output)
        for caution in refit.outcome.cautions:
            say(f"warning: {self.output}: {caution}")
        if not self.given["quiet"]:
            say(f"chosen of {n_candidates} settings, by the {search.rule} of {search.metric}; trained on all rows:")
            for line in (*summary(refit.outcome), *training_metric(refit.fit, refit.model)):
                say(line)
            say(f"model written to {'standard output' if self.output == '-' else self.output}")
        return refit.outcome.as_asked and refit.outcome.ranks


def _tried() -> set[str]:
    """The options of all trainers that are worth trying out."""
    return {param.name or "" for param in trainer_options(as_lists=True, without=_WITHOUT)}


def _grid(loss: str, given: JsonObject, pool: tuple[str, ...] | None = None) -> Grid:
    """What is tried of a loss, and of bags pooled so; what cannot be ends the command."""
    from apsvm.selection.grids import Grid

    trainer = trainer_of(loss)
    known = {name: (option_name(field, about), about) for name, (field, about) in declared(trainer.Settings).items()}
    said = frozenset(name for name, (key, _) in known.items() if given_by_user(key))
    named = {name: given[key] for name, (key, about) in known.items() if about.grid is not None and name in said}
    fixed = {name: given[key] for name, (key, about) in known.items() if about.grid is None and key in given}
    with usage_errors(loss):
        settings = trainer.Settings(**fixed, time_limit=given["time_limit"], seed=given["seed"])
        grid = Grid.of(lambda one: trainer(loss, one, said), settings, named)
    return grid if pool is None else replace(grid, features=feature_options(given, grid.trainer, pool))
