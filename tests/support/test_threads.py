"""Work shared out to threads: its results, and that none of it goes on when it has ended."""

from __future__ import annotations

import threading
import time

import pytest

from apsvm._support.threads import results


@pytest.fixture(autouse=True)
def alone():
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("in_order", [True, False])
def test_all_results(threads, in_order):
    found = list(results(lambda task: task**2, range(20), threads, stop=lambda: None, in_order=in_order))
    assert sorted(found) == [task**2 for task in range(20)]
    if in_order:
        assert found == sorted(found)


def test_one_thread_is_the_callers():
    (name,) = results(lambda _: threading.current_thread(), [0], 1, stop=lambda: None)
    assert name is threading.current_thread()


class Work:
    """Goes on until it is stopped; the third task fails once the first has begun."""

    def __init__(self):
        self.stopped, self.has_begun = threading.Event(), threading.Event()
        self.begun, self.ended = [], []

    def __call__(self, task):
        self.begun.append(task)
        if task == 2:
            assert self.has_begun.wait(30.0)
            raise ValueError("it fails")
        self.has_begun.set()
        assert self.stopped.wait(30.0)
        time.sleep(0.02)  # the last iteration of a training
        self.ended.append(task)
        return task


@pytest.mark.parametrize("in_order", [True, False])
def test_what_fails_stops_the_others_and_waits_for_them(in_order):
    work = Work()
    with pytest.raises(ValueError, match="it fails"):
        list(results(work, range(50), 3, stop=work.stopped.set, in_order=in_order))
    assert sorted(work.ended) == sorted(set(work.begun) - {2})


def test_who_asks_no_further_stops_the_others():
    work = Work()
    some = results(lambda task: 0 if task == 0 else work(task + 5), range(50), 3, stop=work.stopped.set)
    assert next(some) == 0
    some.close()
    assert sorted(work.ended) == sorted(work.begun)
    assert len(work.ended) < 49
