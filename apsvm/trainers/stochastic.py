"""What the trainers that go by epochs share: who watches, what comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.solvers.sgd import Ending, Epoch
from apsvm.trainers.base import Progress, Watch


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
