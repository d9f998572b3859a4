"""What the trainers that go by epochs share: who watches, what comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from apsvm.solvers.sgd import DescentOutcome, Ending, Epoch, Pass, descend
from apsvm.trainers.base import Progress, Watch
from apsvm.trainers.epochs import EpochSettings

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class TrainedByEpochs:
    """w : (dimension,) float64, after the best epoch; a bias weight, last, moves no ranking: it stays 0, or what it was
    at the start; trouble : what was not finite, where that ended it."""

    w: NDArray[np.float64]
    epochs: list[Epoch]
    best_epoch: int
    ending: Ending
    positives: int
    queries: int
    queries_skipped: int
    trouble: str | None = None


class Parameters(Protocol[T_co]):
    """What goes down by epochs."""

    def one_pass(self, stop: Callable[[], bool]) -> Pass:
        """As ``sgd.descend`` calls it."""

    def snapshot(self) -> T_co:
        """A copy of the parameters."""


def descend_as_asked(
    parameters: Parameters[T],
    settings: EpochSettings,
    watch: Watch,
    *,
    show: Callable[[Epoch], Progress],
    validate: Callable[[], float] | None,
) -> DescentOutcome[T]:
    """``descend`` with the limits that the settings name, each epoch logged and shown."""
    return descend(
        parameters.one_pass,
        parameters.snapshot,
        epochs=settings.epochs,
        validate=validate,
        patience=settings.patience,
        time_limit=settings.time_limit,
        on_epoch=lambda epoch: follow(watch, show, epoch),
        should_stop=watch.should_stop,
    )


def follow(watch: Watch, show: Callable[[Epoch], Progress], epoch: Epoch) -> None:
    """An epoch's record in the log, and on the display as ``show`` has it."""
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


def not_finite(what: str) -> FloatingPointError:
    return FloatingPointError(
        f"the {what} are not finite: feature values or the learning rate are too large, scale them down"
    )
