"""SHA-256 of a stream or a file by a thread of its own, while others are at what was read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

#: Bytes below which a thread costs more than it saves.
_WORTHWHILE = 1 << 18
#: Bytes of a file between two looks at whether its hash is still wanted.
_BLOCK = 1 << 22


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


@contextmanager
def hash_of_file(path: str | os.PathLike[str]) -> Iterator[Callable[[], str]]:
    """The SHA-256 of a file is begun, and goes on meanwhile; what is given waits for it and returns its hexadecimal
    digits. Raises OSError, at once where the file cannot be opened."""
    with open(path, "rb") as stream:
        unwanted = Event()
        if os.fstat(stream.fileno()).st_size < _WORTHWHILE:
            yield lambda: _digest(stream, unwanted)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1, thread_name_prefix="sha256") as worker:
            at_work = worker.submit(_digest, stream, unwanted)
            try:
                yield at_work.result
            finally:
                unwanted.set()


def _digest(stream: BinaryIO, unwanted: Event) -> str:
    digest = hashlib.sha256()
    while not unwanted.is_set() and (block := stream.read(_BLOCK)):
        digest.update(block)
    return digest.hexdigest()
