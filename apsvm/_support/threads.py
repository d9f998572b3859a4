"""Work divided among threads, all of which have ended when the iteration ends, even by an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

TaskT = TypeVar("TaskT")
ResultT = TypeVar("ResultT")


def results(
    work: Callable[[TaskT], ResultT],
    tasks: Sequence[TaskT],
    threads: int,
    *,
    stop: Callable[[], None],
    in_order: bool = True,
) -> Iterator[ResultT]:
    """Results of ``work`` for each task, in the tasks' order or as they finish. One thread: runs in the calling thread.

    Parameters
    ----------
    stop : called if a task fails or the caller stops iterating; running tasks should then end soon. They are waited
        for, and tasks that have not begun are skipped.

    Raises
    ------
    any error of ``work``
    """
    if threads == 1:
        yield from map(work, tasks)
        return
    from concurrent.futures import ThreadPoolExecutor, as_completed  # not needed for one thread

    def guarded(task: TaskT) -> ResultT:
        try:
            return work(task)
        except BaseException:
            stop()
            raise

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(guarded, task) for task in tasks]
        try:
            for future in futures if in_order else as_completed(futures):
                yield future.result()
        except BaseException:
            stop()
            raise
        finally:
            for future in futures:
                future.cancel()
