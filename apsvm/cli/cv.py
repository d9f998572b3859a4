"""``apsvm cv``: settings compared by k-fold cross-validation, the best one trained on all rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from apsvm.cli.bar import Bar
from apsvm.cli.checkpoint import checkpoint_options, work_kept
from apsvm.cli.completion import MetricName
from apsvm.cli.config import config_option
from apsvm.cli.cv_request import CvRequest
from apsvm.cli.decision import decided_refit, decision_options, say_decision
from apsvm.cli.on_cluster import scheduler_option
from apsvm.cli.parameters import Several
from apsvm.cli.shared import (
    BAD_DATA,
    STOPPED_EARLY,
    Failure,
    bad_data,
    put,
    say,
    writing,
)
from apsvm.cli.trainer_options import LossName, refuse_number_of_folds, trainer_options, with_trainer_options
from apsvm.cli.training import (
    exit_code,
    pool_option,
    signals_caught,
    training_options,
)
from apsvm.cli.written_models import say_if_stopped_early
from apsvm.data.read_options import ReadOptions
from apsvm.work import Strand

if TYPE_CHECKING:
    from apsvm.cli.cv_results import Results
    from apsvm.dask.folds import Folds
    from apsvm.data.dataset import Dataset
    from apsvm.selection.choice import Candidate
    from apsvm.selection.nested import OuterFold
    from apsvm.selection.portfolio import Entry
    from apsvm.selection.race import PathInFold
    from apsvm.selection.search import Followers, SettingsSearch
    from apsvm.trainers.settings import SettingValue

#: Of no use without a log, or where the rows that are left out measure every setting.
_WITHOUT = ("log_ranks", "validation", "validation_metric", "patience")


class CvCommand(click.Command):
    """``apsvm cv`` with the options of all trainers; those that are worth trying out are lists."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params = with_trainer_options(self.params, trainer_options(as_lists=True, without=_WITHOUT))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        refuse_number_of_folds(args, "--folds {}")
        return super().parse_args(ctx, args)


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
@scheduler_option
@checkpoint_options
@pool_option(multiple=True)
@decision_options("f1 for a model of two classes and one ranking")
@training_options
@config_option
def cv(data: str, read: ReadOptions, **given: object) -> int:
    """Compare settings by cross-validation on DATA, and train the best one.

    Where no --loss, no --features and no setting is named, a portfolio is searched for the metric: losses, both bounds,
    features as they are, as broken lines and, where data is small, in other maps, each with three values of C. All are
    screened in three folds; the best three go on. Logistic regression and boosted trees stand beside them in the table.

    Folds are of whole queries where rows have qid:, else of rows, each with its share of the positives. The values of C
    are trained in one go, a path; every combination of the others is a training of its own. Multiples, 1x, are of what
    fits the scale of the features of the fold's training rows. Where the best value stands at the edge of values that
    nobody named, and the metric still rises there, two more beyond it are tried. --time-limit is for each fold's path.
    The deviation is that between the folds' values.

    With --scheduler the paths are tasks of a dask cluster, whose workers are sent all rows once; --jobs is then for
    what is done here.

    \b
    apsvm cv data.svm -m AP -o best.model
    apsvm cv data.svm -C 0.01:1e5:log10 --metric AP -o best.model
    apsvm cv data.svm --loss ap,auc --bound hinge,tight --scale standard --json -
    apsvm cv data.svm --loss ap,wmw,warp
    apsvm cv 'part-*.svm' --scheduler tcp://10.0.0.1:8786
    """
    request = CvRequest.of_options(data, read, given)
    with _cluster(request) as elsewhere:
        return _carry_out(request, elsewhere)


def _carry_out(request: CvRequest, elsewhere: Folds | None) -> int:
    """The whole command, once it is known what to do and where; the exit code."""
    from apsvm.cli.cv_results import Results

    given, dataset = request.given, request.read()
    search = None if request.tries_all else request.search(dataset)
    with (
        signals_caught() as signals,
        work_kept(given, lambda: request.identity(dataset), signals) as strand,
    ):
        run = _Run(request, signals, strand, elsewhere)
        if search is None:
            search = run.finalists(dataset)
        run.compare(search)
        stopped = exit_code(signals)
        candidates = search.candidates()
        if not candidates:
            raise Failure(stopped or BAD_DATA, "stopped, nothing was finished in every fold")
        chosen = search.choose(candidates)
        beside = list(run.references(search))
        results = Results(search, candidates, chosen, request.metrics, beside)
        run.report(results)
        if stopped:
            say("interrupted: the table is of what was finished" + (", no model written" if run.output else ""))
            return stopped
        as_asked = all(candidate.as_asked for candidate in candidates)
        if run.output is not None:
            as_asked &= run.refit(search, chosen, len(candidates))
        if given["nested"] and not signals:
            run.nest(search)
        if signals:
            return exit_code(signals)
    return 0 if as_asked else STOPPED_EARLY


@contextmanager
def _cluster(request: CvRequest) -> Iterator[Folds | None]:
    """Where the paths are trained, if not here."""
    scheduler = request.given["scheduler"]
    if scheduler is None:
        yield None
        return
    from apsvm.cli.on_cluster import cluster

    with cluster(scheduler) as client:
        from apsvm.dask.folds import Folds

        yield Folds(client)


@dataclass(frozen=True)
class _Run:
    """The work, step by step, and what is said of it."""

    request: CvRequest
    signals: Sequence[int]
    strand: Strand
    elsewhere: Folds | None = None

    @property
    def output(self) -> str | None:
        """The model to write."""
        return self.request.output

    @property
    def _followers(self) -> Followers:
        from apsvm.selection.search import Followers

        return Followers(should_stop=lambda: bool(self.signals), strand=self.strand, elsewhere=self.elsewhere)

    def nest(self, search: SettingsSearch) -> None:
        """The whole search again in outer folds, with a line for each."""
        from statistics import fmean, stdev

        from apsvm.selection.nested import nested

        given = self.request.given

        def again(rows: Dataset, followers: Followers) -> SettingsSearch | None:
            if self.request.tries_all:
                whole = self.request.portfolio(rows)
                whole.screen(given["jobs"], followers)
                if self.signals or not whole.finalists():
                    return None
                inner = whole.final()
            else:
                inner = self.request.settings_search(rows)
            inner.run(given["jobs"], followers)
            return inner

        done: list[OuterFold] = []
        with bad_data(search.dataset.source), Bar("outer folds", given["folds"]) as bar:
            folds = nested(
                search.given, search.target, self.request.metrics, again,
                folds=given["folds"], seed=given["seed"], jobs=given["jobs"], followers=self._followers,
            )  # fmt: skip
            for number, fold in enumerate(folds, 1):
                done.append(fold)
                bar.step()
                if not given["quiet"]:
                    say(
                        f" outer fold {number}: {search.metric} {fold.values[search.metric]:.4f}, chosen: {fold.chosen}"
                    )
        if len(done) < given["folds"]:
            say("interrupted: not all outer folds were done")
            return
        show = self._show_results()
        for metric in self.request.metrics:
            values = [fold.values[metric] for fold in done]
            show(f"nested, {len(done)} folds: {metric} {fmean(values):.4f} ± {stdev(values):.4f}")

    def finalists(self, dataset: Dataset) -> SettingsSearch:
        """The search among the best of the portfolio, with a line for each entry as it is screened."""
        given = self.request.given
        with bad_data(dataset.source):
            whole = self.request.portfolio(dataset)
            total, screened = len(whole.entries), 0

            def ended(entry: Entry, result: Candidate | str) -> None:
                nonlocal screened
                screened += 1
                bar.step()
                if given["quiet"]:
                    return
                text = result if isinstance(result, str) else f"{whole.metric} {result.mean(whole.metric):.4f}"
                say(f" {screened:>{len(str(total))}}/{total}  {entry}: {text}")

            if not given["quiet"]:
                say(f"nobody named what to try: {total} combinations of losses and features are screened")
            with Bar("combinations screened", total) as bar:
                whole.screen(given["jobs"], self._followers, ended)
            finalists = whole.finalists()
            if self.signals or not finalists:
                raise Failure(exit_code(self.signals) or BAD_DATA, "stopped, nothing was finished in every fold")
            if not given["quiet"]:
                say(f"the best go on: {'; '.join(map(str, finalists))}")
            return whole.final()

    def references(self, search: SettingsSearch) -> Iterator[Candidate]:
        """Common models on the same folds, where the portfolio was tried."""
        from apsvm.selection.references import references

        if self.request.tries_all and not self.signals:
            with Bar("training common models on the same folds"):
                yield from references(search, self._followers, self.request.given["jobs"])

    def compare(self, search: SettingsSearch) -> None:
        """All paths in all folds, with a line as each ends."""
        from apsvm.cli.cv_results import progress_line, spelled
        from apsvm.selection.grids import shown

        def widened(number: int, name: str, values: Sequence[SettingValue]) -> None:
            listed = ", ".join(map(shown, values))
            say(f" the best {spelled(search.grids[number], name)} stands at the edge of its grid: {listed} as well")

        def ended(path: PathInFold, done: int, total: int) -> None:
            bar.total = total
            bar.reach(done)
            say(f" {done:>{len(str(total))}}/{total}  {progress_line(path, search.grids, search.metric)}")

        followers = self._followers
        if not self.request.given["quiet"]:
            followers = replace(followers, path=ended, widened=widened)
        with bad_data(search.dataset.source), Bar("comparing") as bar:
            search.run(self.request.given["jobs"], followers)

    def report(self, results: Results) -> None:
        """The table, on stdout or where something else goes there on stderr, and the JSON."""
        from apsvm.files import write_whole

        as_json = self.request.given["json"]
        show = self._show_results()
        if show is put or not self.request.given["quiet"]:
            for line in results.table():
                show(f" {line}" if show is say else line)
        elif not all(candidate.as_asked for candidate in results.candidates):
            say("warning: training stopped early in some of the folds")
        if as_json is not None:
            text = json.dumps(results.to_json(), indent=1, allow_nan=False) + "\n"
            with writing(as_json):
                write_whole(as_json, text.encode())

    def _show_results(self) -> Callable[[str], None]:
        """Prints a line on stdout; on stderr where something else goes to stdout."""
        return say if "-" in (self.request.given["json"], self.output) else put

    def refit(self, search: SettingsSearch, chosen: Candidate, n_candidates: int) -> bool:
        """Trains ``chosen`` on all rows and writes the model; whether training ended as it was asked to."""
        from apsvm.cli.training_metric import training_metric
        from apsvm.trainers.summary import summary

        assert self.output is not None
        with bad_data(search.dataset.source), Bar("training the chosen model on all rows"):
            refit = search.refit(chosen, n_candidates, self.request.given["jobs"], self._followers)
            if refit is not None:
                refit = decided_refit(
                    refit, self.request.given, self.request.given["jobs"], self._followers.should_stop
                )
        if refit is None:
            raise Failure(exit_code(self.signals) or BAD_DATA, "stopped, no model written")
        with writing(self.output):
            refit.model.save(self.output)
        for caution in refit.outcome.cautions:
            say(f"warning: {self.output}: {caution}")
        if self.request.given["quiet"]:
            say_if_stopped_early(self.output, refit.outcome, refit.model)
        else:
            say(f"chosen of {n_candidates} settings, by the {search.rule} of {search.metric}; trained on all rows:")
            for line in (*summary(refit.outcome), *training_metric(refit.fit, refit.model)):
                say(line)
            say_decision(refit.model)
            say(f"model written to {'standard output' if self.output == '-' else self.output}")
        return refit.outcome.as_asked and refit.outcome.ranks
