"""SHA-256 of a stream by a thread of its own, while others are at what was read."""

from __future__ import annotations

import hashlib
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

#: Bytes below which a thread costs more than it saves.
_WORTHWHILE = 1 << 18


class Hash:
    """The SHA-256 of blocks, one after another. It is at most one block behind."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._worker: ThreadPoolExecutor | None = None
        self._at_work: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._wait()
        if self._worker is not None:
            self._worker.shutdown()
            self._worker = None

    def update(self, block: bytes) -> None:
        """Takes the next block, which must not change any more."""
        self._wait()
        if len(block) < _WORTHWHILE:
            self._digest.update(block)
            return
        if self._worker is None:
            from concurrent.futures import ThreadPoolExecutor  # small data are read without it

            self._worker = ThreadPoolExecutor(1, thread_name_prefix="sha256")
        self._at_work = self._worker.submit(self._digest.update, block)

    def hexdigest(self) -> str:
        self._wait()
        return self._digest.hexdigest()

    def _wait(self) -> None:
        if self._at_work is not None:
            self._at_work.result()
            self._at_work = None
