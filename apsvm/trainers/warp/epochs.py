"""Training by epochs: descent within the limits of the settings, validation after each epoch, and evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from apsvm._support.naming import option
from apsvm._support.types import JsonObject
from apsvm.solvers.sgd import DescentOutcome, Ending, Epoch, Pass, descend
from apsvm.trainers.base import Progress, TrainingError, TrainingSet, Watch
from apsvm.trainers.settings import SettingsError
from apsvm.trainers.warp.settings import WarpSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.models.header import Epochs

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Parameters(Protocol[T_co]):
    """Parameters that a training by epochs updates."""

    def one_pass(self, stop: Callable[[], bool]) -> Pass:
        """Runs one pass, for ``sgd.descend``."""

    def snapshot(self) -> T_co:
        """A copy of the parameters."""


def run_epochs(
    parameters: Parameters[T],
    settings: WarpSettings,
    watch: Watch,
    *,
    show: Callable[[Epoch], Progress],
    validate: Callable[[T], float] | None,
) -> DescentOutcome[T]:
    """Runs ``descend`` with the limits of the settings; logs each epoch and displays it with ``show``."""

    def on_epoch(epoch: Epoch) -> None:
        watch.log.write(
            "epoch",
            epoch=epoch.number,
            draws=epoch.passed.draws,
            trials=epoch.passed.trials,
            updates=epoch.passed.updates,
            loss=epoch.passed.loss,
            validation=epoch.validation,
            best=epoch.best,
            pass_seconds=epoch.seconds,
            seconds=epoch.seconds_in_all,
        )
        watch.progress(show(epoch))

    return descend(
        parameters.one_pass,
        parameters.snapshot,
        epochs=settings.epochs,
        validate=validate,
        patience=settings.patience,
        time_limit=settings.time_limit,
        on_epoch=on_epoch,
        should_stop=watch.should_stop,
    )


def validator(validation: TrainingSet | None, metric: str) -> Callable[[NDArray[np.float64]], float] | None:
    """Function of weights w, one a column, that returns the metric on the rows of ``validation``; None without such
    rows.

    The function raises TrainingError if the metric is undefined on them.
    """
    if validation is None:
        return None
    from apsvm.metrics import MetricError
    from apsvm.metrics.evaluate import evaluate

    rows, target, queries, source = validation.rows, validation.target, validation.queries, validation.source

    def validate(w: NDArray[np.float64]) -> float:
        try:
            result = evaluate(
                [metric], rows.scores(w), target.judgements, queries, relevant_from=target.lowest_relevant
            )
        except MetricError as error:
            raise TrainingError(f"{source}: {error}") from None
        return next(iter(result.values.values()))

    return validate


def check_metric(name: str) -> None:
    """Raises SettingsError for an unknown metric."""
    from apsvm.metrics import MetricError, parse_metric

    try:
        parse_metric(name)
    except MetricError as error:
        raise SettingsError(f"{option('validation_metric')}: {error}") from None


def evidence(trained: DescentOutcome[Any], validation: TrainingSet | None, metric: str) -> Epochs:
    """Epochs in the form of a model's header."""
    from apsvm.models.header import Epochs, Validation

    best = trained.epochs[trained.best_epoch - 1]
    chosen_by: Validation | None = None
    if validation is not None and best.validation is not None:
        chosen_by = Validation(
            file=validation.source, sha256=validation.fingerprint, metric=metric, value=best.validation
        )
    return Epochs(
        count=len(trained.epochs),
        best=trained.best_epoch,
        estimated_loss=best.passed.loss,
        validation=chosen_by,
    )


def ending(trained: DescentOutcome[Any]) -> JsonObject:
    """Fields of an outcome on its end and duration."""
    passes = sum(epoch.seconds for epoch in trained.epochs)
    return {
        "state": str(trained.ending),
        "as_asked": trained.ending.as_asked,
        "interrupted": trained.ending is Ending.INTERRUPTED,
        "trouble": trained.trouble,
        "seconds": {"passes": passes, "validation": trained.epochs[-1].seconds_in_all - passes},
    }
