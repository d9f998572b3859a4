"""WARP by stochastic sampling: the options of ``--loss warp``, for rows to be ranked and for rows that are users."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import click

from apsvm.cli.progress import Display
from apsvm.cli.recipes.base import Common, Job, Made, Recipe
from apsvm.cli.recipes.epochs import (
    EPOCHS,
    L2,
    LEARNING_RATE,
    PATIENCE,
    VALIDATION,
    VALIDATION_METRIC,
    check_epochs,
    ending_of_epochs,
    header_of_epochs,
    made_by_epochs,
    read_validation,
    training_metrics,
    validator,
)
from apsvm.cli.shared import BAD_DATA, Failure, given_by_user, memory, reading, say

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.model import ItemRanker
    from apsvm.solvers.sgd import Epoch
    from apsvm.trainers.item_factors import TrainedItems
    from apsvm.trainers.stochastic import Trained, Watch
    from apsvm.trainers.warp import Settings

#: The share of a user's items that a validation hides and looks for.
HIDDEN_SHARE = 0.2


class Warp(Recipe):
    """See the module."""

    title = "Online learning of the top (--loss warp)"
    options: ClassVar[Sequence[click.Option]] = (
        click.Option(
            ["--tau"],
            default="harmonic",
            show_default=True,
            metavar="auc|p@1|p@K|harmonic",
            help="What a rank costs: as many as stand above; 1 if any does; as many as K; 1 + 1/2 + … of them.",
        ),
        click.Option(
            ["--rank-estimator"],
            type=click.Choice(["plugin", "log-unbiased", "exact"]),
            default="plugin",
            show_default=True,
            help="A rank is told from the trials until a violation (too high on average), without bias from the same "
            "(tau harmonic), or by scoring all negatives.",
        ),
        click.Option(
            ["--max-trials"],
            type=click.IntRange(1),
            help="Trials for a positive before it is left in peace. [default: its negatives, at most 1000]",
        ),
        click.Option(
            ["--rule"],
            type=click.Choice(["adagrad", "adadelta", "sgd"]),
            default="adagrad",
            show_default=True,
            help="How long a step is.",
        ),
        LEARNING_RATE,
        L2,
        EPOCHS,
        VALIDATION,
        VALIDATION_METRIC,
        PATIENCE,
        click.Option(
            ["--preference"],
            is_flag=True,
            help="Labels are grades: a row is a positive against every row of its query of a lower one. Metrics take "
            "the rows as relevant that --relevant-from says, or all above the lowest grade.",
        ),
        click.Option(
            ["--rows-as-users"],
            is_flag=True,
            help="Rows are users, columns of positive value the items they like; labels are not looked at. Learns "
            "factors of the items; apsvm predict then lists the best items for each row.",
        ),
        click.Option(
            ["--factors"],
            type=click.IntRange(1, 4096),
            default=32,
            show_default=True,
            help="For --rows-as-users: numbers an item.",
        ),
    )

    def losses(self) -> Sequence[str]:
        return ["warp"]

    def check(self, common: Common, own: Mapping[str, Any]) -> None:
        try:
            _settings(common, own).check()
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        check_epochs(common, own, _metric(own))
        if common.scale != "none":
            raise click.UsageError("--scale is not for --loss warp, whose steps read the rows as they are")
        if common.positive_label is not None and own["preference"]:
            raise click.UsageError("--positive-label names one label, and --preference is between grades")
        if own["rows_as_users"]:
            for name in ("positive_label", "relevant_from", "preference", "warm_start"):
                if given_by_user(name):
                    raise click.UsageError(f"--{name.replace('_', '-')} does not apply to --rows-as-users")
        elif given_by_user("factors"):
            raise click.UsageError("--factors is for --rows-as-users")
        if not common.quiet:
            if common.bias >= 0:
                say("warning: a constant feature moves no ranking: --loss warp leaves its weight 0")
            if common.threads > 1:
                say(f"{common.threads} threads share the weights without locks: no two runs give the same model")

    def inputs(self, own: Mapping[str, Any]) -> Mapping[str, str | None]:
        return {"validation": own["validation"]}

    def takes_classes(self, own: Mapping[str, Any]) -> bool:
        return not (own["rows_as_users"] or own["preference"])

    def needs_labels(self, own: Mapping[str, Any]) -> bool:
        return not own["rows_as_users"]

    def check_data(self, dataset: Dataset, common: Common, own: Mapping[str, Any]) -> None:
        if own["rows_as_users"]:
            _check_memory(dataset, own)
            ignored = {"qid:": dataset.groups, "cost:": dataset.costs}
        else:
            from apsvm.risk import NothingToRankError
            from apsvm.trainers.warp import candidates

            try:
                candidates(_grades(dataset, common, own)[0], dataset.groups)
            except NothingToRankError as error:
                raise Failure(BAD_DATA, f"{dataset.source}: {error}") from None
            ignored = {"cost:": dataset.costs}
        if common.quiet:
            return
        if common.verbose:
            rows, features = dataset.X.shape
            what = f"{rows} users, {features} items" if own["rows_as_users"] else f"{rows} rows, {features} features"
            say(f"{dataset.source}: {what}, {dataset.n_values} values")
        for what, values in ignored.items():
            if values is not None:
                say(f"warning: {dataset.source}: {what} is not used here")

    def train(self, job: Job) -> Iterator[Made]:
        from apsvm.trainers.stochastic import Watch

        display = Display(verbose=job.common.verbose, quiet=job.common.quiet)
        heading = _heading(job.own)
        watch = Watch(job.log, lambda epoch: _show(display, heading, epoch), job.should_stop)
        settings = _settings(job.common, job.own)
        job.log_start(
            tau=settings.tau,
            rank_estimator=settings.estimator,
            rule=settings.rule,
            learning_rate=settings.rate,
            l2=settings.l2,
            epochs=settings.epochs,
            threads=settings.threads,
            seed=settings.seed,
        )
        made = (_train_items if job.own["rows_as_users"] else _train_rows)(job, settings, watch)
        display.finish()
        yield made


def _settings(common: Common, own: Mapping[str, Any]) -> Settings:
    from apsvm.trainers.warp import Settings

    return Settings(
        tau=own["tau"],
        estimator=own["rank_estimator"],
        max_trials=own["max_trials"],
        rule=own["rule"],
        learning_rate=own["learning_rate"],
        l2=own["l2"] or 0.0,
        epochs=own["epochs"],
        patience=own["patience"],
        time_limit=common.time_limit,
        threads=max(1, common.threads),
        seed=common.seed,
    )


def _metric(own: Mapping[str, Any]) -> str:
    name: str | None = own["validation_metric"]
    return name or ("P@10" if own["rows_as_users"] else "AP")


def _grades(dataset: Dataset, common: Common, own: Mapping[str, Any]) -> tuple[Any, Any]:
    """What is trained on and what metrics take as relevant, (n,) each."""
    if not own["preference"]:
        with reading(dataset.source):
            relevant = dataset.positives(common.positive_label, common.relevant_from)
        return relevant, relevant
    grades = dataset.relevance
    lowest = common.relevant_from
    return grades, grades > grades.min() if lowest is None else grades >= lowest


def _check_memory(dataset: Dataset, own: Mapping[str, Any]) -> None:
    # Factors, what the rule remembers of them, and the best of them so far: float32.
    needed = 4 * 4 * (2 * own["factors"] + 1) * dataset.X.shape[1]
    if needed > memory():
        raise Failure(
            BAD_DATA,
            f"{dataset.source}: {own['factors']} factors of {dataset.X.shape[1]:,} items need {needed:,} bytes, more "
            "than this machine's memory; is the highest item a stray one? (--max-features finds its line)",
        )


def _train_rows(job: Job, settings: Settings, watch: Watch) -> Made:
    from apsvm.trainers.warp import train_warp

    grades, relevant = _grades(job.dataset, job.common, job.own)
    held_out = read_validation(job, unlabelled=False)
    validate = None
    if held_out is not None:
        validate = validator(job, held_out, _grades(held_out, job.common, job.own)[1], _metric(job.own))
    trained = train_warp(
        job.rows(), grades, settings, watch, groups=job.dataset.groups, validate=validate, start=job.start()
    )
    counts = {
        "positives": int(relevant.sum()),
        "queries": trained.queries,
        "queries_skipped": trained.queries_skipped,
    }
    ranker = job.ranker(trained.w, _header(job, settings, trained, held_out, counts))
    summary = _summary(job, trained, held_out)
    if trained.queries_skipped:
        summary.append(
            f"{trained.queries_skipped} queries without two grades were left out, {trained.queries} trained on"
        )
    summary.append(training_metrics(job, ranker, relevant, trained.queries))
    return made_by_epochs(ranker, trained, summary)


def _train_items(job: Job, settings: Settings, watch: Watch) -> Made:
    import numpy as np

    from apsvm.data.liked import hide, liked_items
    from apsvm.metrics import MetricError
    from apsvm.risk import NothingToRankError
    from apsvm.trainers.item_factors import evaluate_lists, train_items

    held_out = read_validation(job, unlabelled=True)
    validate: Callable[[ItemRanker], float] | None = None
    if held_out is not None:
        source, name = held_out.source, _metric(job.own)
        known, hidden, _ = hide(liked_items(held_out.X), HIDDEN_SHARE, np.random.default_rng(job.common.seed))

        def validate(ranker: ItemRanker) -> float:
            try:
                (value,) = evaluate_lists(ranker.score, known, hidden, [name]).values.values()
            except (MetricError, NothingToRankError) as error:
                raise Failure(BAD_DATA, f"{source}: {error}") from None
            return value

    lists = liked_items(job.dataset.X)
    try:
        trained = train_items(lists, job.own["factors"], settings, watch, validate=validate)
    except NothingToRankError as error:
        raise Failure(BAD_DATA, f"{job.dataset.source}: {error}") from None
    counts = {"users": trained.users, "users_skipped": trained.users_skipped, "likes": lists.nnz}
    ranker = trained.ranker(job.header(_header(job, settings, trained, held_out, counts)))
    summary = _summary(job, trained, held_out)
    if trained.users_skipped:
        summary.append(f"{trained.users_skipped} users of less than two items, or of all, were left out")
    summary.append(f"{ranker.width} items with {job.own['factors']} factors, from {lists.nnz} likes")
    return made_by_epochs(ranker, trained, summary)


def _heading(own: Mapping[str, Any]) -> str:
    value = f"{_metric(own):>10}" if own["validation"] is not None else ""
    return f"{'epoch':>6} {'trials':>12} {'updates':>10} {'est. loss':>11} {value} {'seconds':>9}"


def _show(display: Display, heading: str, epoch: Epoch) -> None:
    passed = epoch.passed
    value = "" if epoch.validation is None else f"{epoch.validation:>10.6f}"
    display.line(
        heading,
        epoch.number,
        f"{epoch.number:>6d} {passed.trials:>12d} {passed.updates:>10d} {passed.loss:>11.5g} {value} "
        f"{epoch.seconds_in_all:>9.2f}",
    )


def _header(
    job: Job,
    settings: Settings,
    trained: Trained | TrainedItems,
    held_out: Dataset | None,
    counts: Mapping[str, int],
) -> dict[str, Any]:
    return {
        "tau": settings.tau,
        "rank_estimator": settings.estimator,
        "max_trials": settings.max_trials,
        "rule": settings.rule,
        "learning_rate": settings.rate,
        "l2": settings.l2,
        "preference": job.own["preference"],
        "threads": settings.threads,
        **header_of_epochs(trained, held_out, _metric(job.own)),
        "data": dict(counts),
    }


def _summary(job: Job, trained: Trained | TrainedItems, held_out: Dataset | None) -> list[str]:
    """Why it stopped and what was kept, and how fast it went."""
    best = trained.epochs[trained.best_epoch - 1]
    trials = sum(epoch.passed.trials for epoch in trained.epochs)
    seconds = sum(epoch.seconds for epoch in trained.epochs)
    return [
        ending_of_epochs(trained, held_out, _metric(job.own)),
        f"estimated loss {best.passed.loss:.6g}; {trials:,} trials, {trials / max(seconds, 1e-9):,.0f} a second",
    ]
