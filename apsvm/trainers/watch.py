"""Who follows a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from apsvm.records import Log, NoLog

ProgressT = TypeVar("ProgressT")


def _unseen(progress: object) -> None:
    pass


@dataclass(frozen=True)  # with slots, Python 3.11 fails to make one by an alias such as Watcher[Progress]
class Watcher(Generic[ProgressT]):
    """The log, a progress display, and a way to stop it, asked between iterations or several times a second."""

    log: Log = field(default_factory=NoLog)
    progress: Callable[[ProgressT], None] = _unseen
    should_stop: Callable[[], bool] = lambda: False
