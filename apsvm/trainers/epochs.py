"""What the families that train by epochs share: settings, the validation after each epoch, what is said of the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from apsvm._support.types import JsonObject
from apsvm.trainers.base import Progress, TrainingError, TrainingSet
from apsvm.trainers.settings import Range, Settings, setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.models.header import Epochs, Validation
    from apsvm.solvers.sgd import Ending, Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochSettings(Settings):
    """What every training by epochs takes; each field says the rest."""

    learning_rate: float | None = setting(
        None,
        label="learning rate",
        range=Range(0.0, open_low=True),
        default_text="0.05, with adadelta a factor of 1",
        grid=(0.005, 0.05, 0.5),
        help="How long a step is.",
    )
    l2: float | None = setting(
        None,
        label="l2",
        range=Range(0.0),
        default_text="0",
        help="Weight of ½‖w‖² against the loss.",
    )
    epochs: int = setting(
        30,
        range=Range(1),
        help="Passes over the positives.",
    )
    patience: int = setting(
        5, range=Range(1), needs_validation=True, help="Stop after this many epochs without a better validation."
    )
    validation_metric: str | None = setting(
        None,
        metric=True,
        needs_validation=True,
        metavar="NAME",
        default_text="AP; of users P@10",
        help="What is taken of the validation rows, as apsvm eval names it.",
    )


class Descent(Protocol):
    """What a training by epochs ends with."""

    @property
    def epochs(self) -> list[Epoch]: ...
    @property
    def best_epoch(self) -> int: ...
    @property
    def ending(self) -> Ending: ...
    @property
    def trouble(self) -> str | None: ...


def validator(validation: TrainingSet | None, metric: str) -> Callable[[NDArray[np.float64]], float] | None:
    """The metric of weights w, one a column of the rows, on the rows of ``validation``; None without any.

    It raises TrainingError where the metric is not defined there.
    """
    if validation is None:
        return None
    rows, judge = validation.rows, validator_of_scores(validation, metric)
    return lambda w: judge(rows.scores(w))


def validator_of_scores(validation: TrainingSet, metric: str) -> Callable[[NDArray[np.float64]], float]:
    """The metric of scores (n,) of the rows of ``validation``; TrainingError where it is not defined there."""
    from apsvm.metrics import MetricError
    from apsvm.metrics.evaluate import evaluate

    target, queries = validation.target, validation.queries

    def validate(scores: NDArray[np.float64]) -> float:
        try:
            result = evaluate([metric], scores, target.judgements, queries, relevant_from=target.lowest_relevant)
        except MetricError as error:
            raise TrainingError(f"{validation.source}: {error}") from None
        return next(iter(result.values.values()))

    return validate


def check_metric(name: str) -> None:
    """Raises SettingsError for a metric that does not exist."""
    from apsvm.metrics import MetricError, parse_metric
    from apsvm.trainers.settings import SettingsError

    try:
        parse_metric(name)
    except MetricError as error:
        raise SettingsError(f"--validation-metric: {error}") from None


def evidence(trained: Descent, validation: TrainingSet | None, metric: str) -> Epochs:
    """What a header says of the epochs."""
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


def ending(trained: Descent) -> JsonObject:
    """The fields of an outcome that say how it ended and how long it took."""
    from apsvm.solvers.sgd import Ending

    passes = sum(epoch.seconds for epoch in trained.epochs)
    return {
        "state": str(trained.ending),
        "as_asked": trained.ending.as_asked,
        "interrupted": trained.ending is Ending.INTERRUPTED,
        "trouble": trained.trouble,
        "seconds": {"passes": passes, "validation": trained.epochs[-1].seconds_in_all - passes},
    }


def progress_of(epoch: Epoch, *, stage: str, draws: str, loss: str, metric: str) -> Progress:
    """A line of the display; ``draws`` and ``loss`` head the columns of what was drawn and of what it showed."""
    passed = epoch.passed
    columns = {"epoch": ">6d", draws: ">12d", "updates": ">10d", loss: ">11.5g", metric: ">10.6f", "seconds": ">9.2f"}
    counted = passed.trials if draws == "trials" else passed.draws
    values = {
        "epoch": epoch.number,
        draws: counted,
        "updates": passed.updates,
        loss: passed.loss,
        metric: epoch.validation,
        "seconds": epoch.seconds_in_all,
    }
    if epoch.validation is None:
        del columns[metric], values[metric]
    return Progress(stage, columns, values)
