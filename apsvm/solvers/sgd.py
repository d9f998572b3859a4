"""Stochastic descent by epochs: pass after pass over the data, a validation after each, and the best epoch kept.

It sees only callables. Nothing certifies the result: the estimated loss of a pass is what its draws happened to show,
while the parameters moved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")


class Ending(StrEnum):
    """Why it stopped. The first three are what was asked for."""

    EPOCHS_DONE = "all epochs done"
    STOPPED_IMPROVING = "validation stopped improving"
    NOTHING_VIOLATES = "nothing violates"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"

    @property
    def as_asked(self) -> bool:
        return self not in (Ending.TIME_LIMIT, Ending.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass did: draws of a positive, or of a row; trials of a negative, where any are made; updates; ``loss``,
    the mean over the draws of what the updates saw; ``moved`` : whether a further pass could find other parameters.
    """

    draws: int
    trials: int
    updates: int
    loss: float
    moved: bool = True


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch, from 1. validation : higher is better, None without one; best : whether it beat all epochs before;
    seconds : of the pass; seconds_in_all : since the start, validations included."""

    number: int
    passed: Pass
    validation: float | None
    best: bool
    seconds: float
    seconds_in_all: float


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """best : the snapshot after the best epoch, which is the last one without a validation; epochs : all of them."""

    best: T
    best_epoch: int
    epochs: list[Epoch]
    ending: Ending


def descend(
    one_pass: Callable[[Callable[[], bool]], Pass],
    snapshot: Callable[[], T],
    *,
    epochs: int,
    validate: Callable[[], float] | None = None,
    patience: int = 5,
    time_limit: float | None = None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome[T]:
    """Runs up to ``epochs`` ≥ 1 passes.

    Parameters
    ----------
    one_pass : moves the parameters; asks its argument now and then whether to break off
    snapshot : the parameters as they are, apart from what later passes do to them
    validate : the metric of the parameters as they are
    patience : epochs without a better validation after which it stops
    time_limit : seconds; a pass is broken off, and counts as an epoch
    """
    began = time.perf_counter()

    def out_of_time() -> bool:
        return time_limit is not None and time.perf_counter() - began >= time_limit

    found: list[Epoch] = []
    best, best_epoch, best_value = None, 0, float("-inf")
    ending = Ending.EPOCHS_DONE
    for number in range(1, epochs + 1):
        started = time.perf_counter()
        passed = one_pass(lambda: should_stop() or out_of_time())
        seconds = time.perf_counter() - started
        value = None if validate is None else validate()
        better = value is None or value > best_value
        if better:
            best, best_epoch = snapshot() if value is not None else None, number
            best_value = best_value if value is None else value
        epoch = Epoch(number, passed, value, better, seconds, time.perf_counter() - began)
        found.append(epoch)
        on_epoch(epoch)
        stopped = _ending(passed, number - best_epoch >= patience, should_stop(), out_of_time())
        if stopped is not None:
            ending = stopped
            break
    return Outcome(snapshot() if best is None else best, best_epoch, found, ending)


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
