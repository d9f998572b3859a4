"""``apsvm cv`` on a cluster, for rows that fit a worker: the paths in folds are tasks.

The driver deals out the folds, sends the rows to each worker once, chooses, and trains the chosen setting. A task is
what a thread does on one machine (``selection.cross_validation``), to the same bits. dask gives the tasks of a worker
that dies to another one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from apsvm._support.work import Strand
from apsvm.dask.actors import done_of, named_worker, result_of
from apsvm.dask.classes import one_blas_thread
from apsvm.selection.cross_validation import CrossValidation
from apsvm.selection.race import Measured, PathInFold, Task
from apsvm.trainers.base import Watch

if TYPE_CHECKING:
    from distributed import Client, Future


class Folds:
    """What ``CrossValidation.run`` is in threads, on the workers of ``client``."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(
        self, cross: CrossValidation, tasks: Sequence[Task], should_stop: Callable[[], bool], strand: Strand
    ) -> Iterator[PathInFold]:
        """The tasks as they end; they are a piece of ``strand``.

        Raises
        ------
        ClusterError : the workers are lost
        SelectionError, ValueError, FloatingPointError : as ``CrossValidation.run``
        """
        piece = strand.piece(f"{len(tasks)} paths in folds")
        if piece.result is not None:
            yield from map(PathInFold.of_saved, tasks, piece.result["paths"])
            return
        with ExitStack() as strands:
            paths = [strands.enter_context(piece.strand(str(number))).piece(_PATH) for number in range(len(tasks))]
            done = {
                number: PathInFold.of_saved(tasks[number], path.result)
                for number, path in enumerate(paths)
                if path.result is not None
            }
            yield from done.values()
            left = {number: task for number, task in enumerate(tasks) if number not in done}
            for number, path in self._as_they_end(cross, left, should_stop):
                paths[number].done(path.to_saved())
                done[number] = path
                yield path
        if should_stop():
            piece.broken_off()
        else:
            piece.done({"paths": [done[number].to_saved() for number in range(len(tasks))]})

    def _as_they_end(
        self, cross: CrossValidation, tasks: dict[int, Task], should_stop: Callable[[], bool]
    ) -> Iterator[tuple[int, PathInFold]]:
        client = self._client
        with client.as_current():
            rows = client.scatter(cross, broadcast=True, hash=False)
            waiting: dict[Future, int] = {
                client.submit(_trained, rows, task, pure=False): number for number, task in tasks.items()
            }
        while waiting and (done := done_of(waiting, should_stop)):
            for future in done:
                number = waiting.pop(future)
                yield number, PathInFold(tasks[number], *result_of(future))


#: What a checkpoint calls a path, as on one machine.
_PATH = "a path in a fold"

# On the workers, each of which has a copy of the race, with what was learned on the folds.

_PREPARING = threading.Lock()


@named_worker()
def _trained(cross: CrossValidation, task: Task) -> tuple[list[Measured], str]:
    """One task's settings, and its failure; the first of this process in a fold learns what can be learned of the
    features there."""
    with one_blas_thread():
        with _PREPARING:
            cross.ready([task], 1, lambda: False)
        path = cross.attempted(task, Watch())
        return path.settings, path.failure
