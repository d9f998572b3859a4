"""Direct loss minimisation by stochastic steps: the options of ``--loss 'direct(ap)'`` and its kin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import click

from apsvm.cli.progress import Display
from apsvm.cli.recipes.base import Common, Job, Made, Recipe, labels
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
from apsvm.cli.shared import BAD_DATA, Failure, Number, say

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.losses.base import Loss
    from apsvm.solvers.sgd import Epoch
    from apsvm.trainers.direct_loss import DirectSettings

PREFIX = "direct("


class DirectLoss(Recipe):
    """See the module."""

    title = "Direct loss minimisation (--loss 'direct(ap)', 'direct(ndcg)', …)"
    options: ClassVar[Sequence[click.Option]] = (
        click.Option(
            ["--update"],
            type=click.Choice(["positive", "negative"]),
            default="positive",
            show_default=True,
            help="positive: steps away from worse rankings, down an upper bound of the loss; negative: steps towards "
            "better ones, down a lower bound.",
        ),
        click.Option(
            ["--perturbation"],
            type=Number(0, open_low=True),
            help="ε, how much the loss counts when those rankings are looked for, in deviations of the scores. "
            "[default: 0.03; of the negative update 0.01]",
        ),
        click.Option(
            ["--step-rows"],
            type=click.IntRange(2),
            default=4096,
            show_default=True,
            help="Rows of a step: whole queries, or of a longer one a sample, its share of positives and "
            "of negatives, eight or more.",
        ),
        LEARNING_RATE,
        L2,
        EPOCHS,
        VALIDATION,
        VALIDATION_METRIC,
        PATIENCE,
    )

    def losses(self) -> Sequence[str]:
        return ["direct(loss)"]

    def serves(self, loss: str) -> bool:
        return loss.lower().startswith(PREFIX) and loss.endswith(")")

    def check(self, common: Common, own: Mapping[str, Any]) -> None:
        try:
            _settings(common, own).check()
        except ValueError as error:
            raise click.UsageError(f"--loss {common.loss}: {error}") from None
        check_epochs(common, own, _metric(own))
        if common.bias >= 0 and not common.quiet:
            say(f"warning: a constant feature moves no ranking: --loss {common.loss} leaves its weight as it is")

    def inputs(self, own: Mapping[str, Any]) -> Mapping[str, str | None]:
        return {"validation": own["validation"]}

    def check_data(self, dataset: Dataset, common: Common, own: Mapping[str, Any]) -> None:
        from apsvm.risk import NothingToRankError, require_pairs

        relevant, grades = labels(dataset, common, _loss(common, own))
        if grades is None:
            try:
                require_pairs(relevant, dataset.groups)
            except NothingToRankError as error:
                raise Failure(BAD_DATA, f"{dataset.source}: {error}") from None
        if common.quiet:
            return
        if common.verbose:
            rows, features = dataset.X.shape
            say(
                f"{dataset.source}: {rows} rows, {int(relevant.sum())} positive, {features} features, "
                f"{dataset.n_values} values"
            )
        if dataset.costs is not None:
            say(f"warning: {dataset.source}: cost: is not used here")

    def train(self, job: Job) -> Iterator[Made]:
        from apsvm.losses.base import LossError
        from apsvm.risk import NothingToRankError
        from apsvm.trainers.direct_loss import train_direct
        from apsvm.trainers.stage import TrainingSet
        from apsvm.trainers.stochastic import Watch

        common, own, dataset = job.common, job.own, job.dataset
        settings = _settings(common, own)
        relevant, grades = labels(dataset, common, _loss(common, own))
        held_out = read_validation(job, unlabelled=False)
        validate = None
        if held_out is not None:
            validate = validator(job, held_out, labels(held_out, common, _loss(common, own))[0], _metric(own))
        display = Display(verbose=common.verbose, quiet=common.quiet)
        heading = _heading(own)
        watch = Watch(job.log, lambda epoch: _show(display, heading, epoch), job.should_stop)
        told = {
            "update": settings.update,
            "perturbation": settings.epsilon,
            "learning_rate": settings.rate,
            "l2": settings.l2,
            "step_rows": settings.step_rows,
        }
        job.log_start(**told, epochs=settings.epochs, seed=settings.seed)
        data = TrainingSet(job.rows(), job.of_rows(relevant), job.of_rows(dataset.groups), grades=job.of_rows(grades))
        try:
            trained = train_direct(data, settings, watch, validate=validate, start=job.start())
        except (LossError, NothingToRankError) as error:
            raise Failure(BAD_DATA, f"{dataset.source}: {error}") from None
        display.finish()
        header = {
            **told,
            "exact": False,
            **header_of_epochs(trained, held_out, _metric(own)),
            "data": {
                "positives": int(relevant.sum()),
                "queries": trained.queries,
                "queries_skipped": trained.queries_skipped,
            },
        }
        ranker = job.ranker(trained.w, header)
        bound = "upper" if settings.update == "positive" else "lower"
        best = trained.epochs[trained.best_epoch - 1]
        summary = [
            ending_of_epochs(trained, held_out, _metric(own)),
            f"{bound} bound of the loss, mean of the steps of epoch {best.number}: {best.passed.loss:.6g}",
        ]
        if trained.queries_skipped:
            summary.append(
                f"{trained.queries_skipped} queries without both classes were left out, {trained.queries} trained on"
            )
        summary.append(training_metrics(job, ranker, relevant, trained.queries))
        yield made_by_epochs(ranker, trained, summary)


def _settings(common: Common, own: Mapping[str, Any]) -> DirectSettings:
    from apsvm.trainers.direct_loss import L2_WEIGHT, DirectSettings

    return DirectSettings(
        loss=common.loss[len(PREFIX) : -1],
        update=own["update"],
        perturbation=own["perturbation"],
        learning_rate=own["learning_rate"],
        l2=L2_WEIGHT if own["l2"] is None else own["l2"],
        step_rows=own["step_rows"],
        epochs=own["epochs"],
        patience=own["patience"],
        time_limit=common.time_limit,
        seed=common.seed,
    )


def _loss(common: Common, own: Mapping[str, Any]) -> Loss:
    return _settings(common, own).check()


def _metric(own: Mapping[str, Any]) -> str:
    name: str | None = own["validation_metric"]
    return name or "AP"


def _heading(own: Mapping[str, Any]) -> str:
    value = f"{_metric(own):>10}" if own["validation"] is not None else ""
    return f"{'epoch':>6} {'rows':>12} {'updates':>10} {'bound':>11} {value} {'seconds':>9}"


def _show(display: Display, heading: str, epoch: Epoch) -> None:
    passed = epoch.passed
    value = "" if epoch.validation is None else f"{epoch.validation:>10.6f}"
    display.line(
        heading,
        epoch.number,
        f"{epoch.number:>6d} {passed.draws:>12d} {passed.updates:>10d} {passed.loss:>11.5g} {value} "
        f"{epoch.seconds_in_all:>9.2f}",
    )
