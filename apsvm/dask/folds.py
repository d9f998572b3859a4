"""``apsvm cv`` on a cluster, for rows that fit a worker: the paths in folds are tasks.

The driver deals out the folds, sends the rows to each worker once, chooses, and trains the chosen setting. A task is
what a thread does on one machine (``selection.cross_validation``), to the same bits. dask gives the tasks of a worker
that dies to another one.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from apsvm.dask.classes import PATIENCE, one_blas_thread, result_of
from apsvm.data.features.base import SHARE_OF_MEMORY
from apsvm.machine import memory
from apsvm.selection.cross_validation import CrossValidation, Measured, PathInFold, Task
from apsvm.trainers.base import Watch
from apsvm.work import Strand

if TYPE_CHECKING:
    from distributed import Client, Future

    from apsvm.trainers.fitting import FeatureOptions, Fit

#: What comes back of a task: its settings, measured, and the weights of the last.
Done: TypeAlias = tuple[list[Measured], NDArray[np.float64] | None]


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
        ClusterError : the workers are lost again and again
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
            for number in left.keys() - done.keys():
                done[number] = PathInFold(tasks[number])
                paths[number].broken_off()
        if should_stop():
            piece.broken_off()
        piece.done({"paths": [done[number].to_saved() for number in range(len(tasks))]})

    def _as_they_end(
        self, cross: CrossValidation, tasks: dict[int, Task], should_stop: Callable[[], bool]
    ) -> Iterator[tuple[int, PathInFold]]:
        if not tasks:
            return
        from distributed import wait

        client, key = self._client, uuid.uuid4().hex
        with client.as_current():
            rows = client.scatter(cross, broadcast=True, hash=False)
            waiting: dict[Future, int] = {
                client.submit(_trained, rows, key, task, pure=False): number for number, task in tasks.items()
            }
        try:
            while waiting and not should_stop():
                with suppress(TimeoutError), client.as_current():
                    wait(list(waiting), timeout=PATIENCE, return_when="FIRST_COMPLETED")
                for future in [future for future in waiting if future.done()]:
                    number = waiting.pop(future)
                    settings, w = result_of(future)
                    yield number, PathInFold(tasks[number], settings, w)
        finally:
            client.cancel(list(waiting))
            with suppress(OSError):
                client.run(_forget)


#: What a checkpoint calls a path, as on one machine.
_PATH = "a path in a fold"

# On the workers.

_PREPARED: dict[tuple[str, int, FeatureOptions, int], Fit] = {}
_PREPARING = threading.Lock()


def _forget() -> None:
    _PREPARED.clear()


def _trained(cross: CrossValidation, key: str, task: Task) -> Done:
    """One task; the first of this process in a fold learns what there is to learn of the features there."""
    with one_blas_thread():
        fit = cross.fits[task.grid]
        name = key, task.fold, fit.features, fit.trainer.settings.seed
        with _PREPARING:
            if name not in _PREPARED:
                for other in [other for other in _PREPARED if other[0] != key]:
                    del _PREPARED[other]
                _PREPARED[name] = cross.prepared(
                    task, SHARE_OF_MEMORY * memory() / (len(cross.folds) * len(cross.fits))
                )
        path = cross.trained(task, _PREPARED[name], Watch())
    return path.settings, path.w
