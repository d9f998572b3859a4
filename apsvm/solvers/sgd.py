"""Stochastic descent by epochs: pass after pass over the data, a validation after each, and the best epoch kept.

The result is not certified: the loss of a pass is estimated from its draws while the parameters move.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")


class Ending(StrEnum):
    """Reason for the end. The first three are as requested."""

    EPOCHS_DONE = "all epochs done"
    STOPPED_IMPROVING = "validation stopped improving"
    NOTHING_VIOLATES = "nothing violates"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    NUMERICAL_TROUBLE = "numerical trouble"

    @property
    def as_asked(self) -> bool:
        return self in (Ending.EPOCHS_DONE, Ending.STOPPED_IMPROVING, Ending.NOTHING_VIOLATES)


@dataclass(frozen=True, slots=True)
class Pass:
    """Counts of one pass: draws of a positive, trials of a negative, updates; ``loss``: the mean over the draws of the
    losses seen by updates; ``moved``: True if another pass could change the parameters."""

    draws: int
    trials: int
    updates: int
    loss: float
    moved: bool = True


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch.

    Attributes
    ----------
    number : from 1
    passed : its pass
    validation : metric, higher is better; None without one
    best : True if it beat all epochs before
    seconds, seconds_in_all : of the pass; since the start, with validations
    """

    number: int
    passed: Pass
    validation: float | None
    best: bool
    seconds: float
    seconds_in_all: float


@dataclass(frozen=True, slots=True)
class DescentOutcome(Generic[T]):
    """Result of a descent.

    Attributes
    ----------
    best : snapshot after the best epoch; without validation, the last one
    best_epoch : int, its number
    epochs : all completed ones, and one cut short by a limit
    ending : reason for the end
    trouble : str or None, name of the value that was not finite, if the ending is ``NUMERICAL_TROUBLE``
    """

    best: T
    best_epoch: int
    epochs: list[Epoch]
    ending: Ending
    trouble: str | None = None


def descend(
    one_pass: Callable[[Callable[[], bool]], Pass],
    snapshot: Callable[[], T],
    *,
    epochs: int,
    validate: Callable[[T], float] | None = None,
    patience: int = 5,
    time_limit: float | None = None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> DescentOutcome[T]:
    """Runs up to ``epochs`` ≥ 1 passes.

    Parameters
    ----------
    one_pass : moves the parameters; calls its argument now and then to check for a stop
    snapshot : returns a copy of the parameters
    validate : returns the metric of a snapshot, higher is better
    patience : epochs without a better validation after which it stops
    time_limit : seconds; a pass cut short counts as an epoch

    Raises
    ------
    FloatingPointError : from the first pass or its validation; a later one ends the descent as ``NUMERICAL_TROUBLE``
    """
    began = time.perf_counter()

    def out_of_time() -> bool:
        return time_limit is not None and time.perf_counter() - began >= time_limit

    done: list[Epoch] = []
    best: T | None = None
    best_epoch, best_value = 0, float("-inf")
    ending, trouble = Ending.EPOCHS_DONE, None
    for number in range(1, epochs + 1):
        started = time.perf_counter()
        try:
            passed = one_pass(lambda: should_stop() or out_of_time())
            seconds = time.perf_counter() - started
            current = snapshot()  # the next pass may end in trouble, and spoil the parameters
            value = None if validate is None else validate(current)
        except FloatingPointError as error:
            if best is None:
                raise
            ending, trouble = Ending.NUMERICAL_TROUBLE, str(error)
            break
        better = value is None or value > best_value
        if better:
            best, best_epoch = current, number
            best_value = best_value if value is None else value
        epoch = Epoch(number, passed, value, better, seconds, time.perf_counter() - began)
        done.append(epoch)
        on_epoch(epoch)
        stopped = _ending(passed, number - best_epoch >= patience, should_stop(), out_of_time())
        if stopped is not None:
            ending = stopped
            break
    return DescentOutcome(snapshot() if best is None else best, best_epoch, done, ending, trouble)


def _ending(passed: Pass, impatient: bool, interrupted: bool, out_of_time: bool) -> Ending | None:
    if interrupted:
        return Ending.INTERRUPTED
    if not passed.moved:
        return Ending.NOTHING_VIOLATES
    if impatient:
        return Ending.STOPPED_IMPROVING
    if out_of_time:
        return Ending.TIME_LIMIT
    return None
