"""Work shared out to threads that have all ended when there is no more of it, however it ends."""

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
    """Results of ``work`` for each task, in the tasks' order or as they end; with one thread, the caller's own does the
    work.

    Parameters
    ----------
    stop : called when a task fails, or no further results are wanted: work that is under way should end soon. Those
        that have not begun are left out, and the others waited for.

    Raises
    ------
    whatever ``work`` raises
    """
    if threads == 1:
        yield from map(work, tasks)
        return
    from concurrent.futures import ThreadPoolExecutor, as_completed  # one thread does without

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
