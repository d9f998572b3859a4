"""``apsvm cv`` on a cluster, for rows that fit a worker: the paths in folds are tasks.

The driver deals out the folds, sends the rows to each worker once, chooses, and trains the chosen setting. A task is
what a thread does on one machine (``selection.cross_validation``), to the same bits. dask gives the tasks of a worker
that dies to another one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

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
        self, cross: CrossValidation, tasks: Sequence[Task], should_stop: Callable[[], bool]
    ) -> Iterator[PathInFold]:
        """The tasks as they end.

        Raises
        ------
        ClusterError : the workers are lost
        SelectionError, ValueError, FloatingPointError : as ``CrossValidation.run``
        """
        client = self._client
        with client.as_current():
            rows = client.scatter(cross, broadcast=True, hash=False)
            waiting: dict[Future, Task] = {client.submit(_trained, rows, task, pure=False): task for task in tasks}
        while waiting and (done := done_of(waiting, should_stop)):
            for future in done:
                yield PathInFold(waiting.pop(future), *result_of(future))


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
