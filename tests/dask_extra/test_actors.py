"""Shards as actors: which parts each has, what becomes of a lost one, and what dask's errors mean."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import KilledWorker
from distributed.scheduler import NoValidWorkerError

from apsvm.dask.actors import PATIENCE, ActorCrew, lost_where_unreachable, lost_with_scheduler
from apsvm.dask.crew import ClusterError, ShardLostError, WorkerError
from apsvm.dask.data import ShardedData
from apsvm.dask.sources import ArrayPart


def parts_of(rng, n):
    return [ArrayPart(rng.normal(size=(5, 2)), np.arange(5) % 2.0, number=number) for number in range(n)]


@pytest.mark.parametrize(
    ("weights", "shards"),
    [
        (None, [[0, 1, 2], [3, 4]]),
        ([9.0, 1.0, 1.0, 1.0, 1.0], [[0], [1, 2, 3, 4]]),
        ([1.0, 1.0, 1.0, 1.0, 9.0], [[0, 1, 2, 3], [4]]),
        ([4.0, 4.0, 1.0, 4.0, 4.0], [[0, 1, 2], [3, 4]]),
        ([1.0, 9.0], [[0], [1]]),
        ([1.0], [[0]]),
    ],
)
def test_shards_are_of_neighbours_that_weigh_about_the_same(client, rng, weights, shards):
    crew = ActorCrew(client, parts_of(rng, 5 if weights is None else len(weights)), weights)
    try:
        crew.set_up("read")
        first = [about.first for about in crew.ask("about")]
        assert first == [f"part {numbers[0]}" for numbers in shards]
        assert [about.rows for about in crew.ask("about")] == [5 * len(numbers) for numbers in shards]
        assert crew.names() == sorted(client.nthreads())[: len(shards)]
    finally:
        crew.close()


def test_a_lost_shard_is_made_again_where_there_is_least_to_do(client, rng):
    crew = ActorCrew(client, parts_of(rng, 4))
    try:
        ShardedData.of(crew, "the rows")
        rows = [rows.tobytes() for rows in crew.ask("rows_as_read", slice(None))]
        names = crew.names()
        for lost in (0, 1):
            crew._actors[lost] = None
            with pytest.raises(ShardLostError, match=f"the shard of {names[lost]} is lost"):
                crew.ask("ping")
            assert [rows.tobytes() for rows in crew.ask_surely("rows_as_read", slice(None))] == rows
            assert crew.names() == names
        assert crew.losses == 2
    finally:
        crew.close()


def test_what_a_shard_raises_goes_before_the_loss_of_another(client, rng):
    """It would be raised again."""
    crew = ActorCrew(client, parts_of(rng, 2))
    wait = crew._wait

    def first_is_lost(shard, future):
        answer = wait(shard, future)
        if shard == 0:
            raise ShardLostError("gone")
        return answer

    crew._wait = first_is_lost
    try:
        with pytest.raises(WorkerError, match=r"^inproc://\S+: TypeError: .*ping.* takes 1 positional argument"):
            crew.ask("ping", each=[(), (1,)])
    finally:
        crew.close()


def test_a_worker_that_does_not_answer_is_waited_for_while_it_is_there(client, rng, monkeypatch):
    crew, waits = ActorCrew(client, parts_of(rng, 2)), []

    def result(timeout):
        waits.append(timeout)
        if len(waits) % 3:
            raise TimeoutError
        return None, 0.0

    crew._actors[1] = SimpleNamespace(ask=lambda *question: SimpleNamespace(result=result))
    try:
        assert crew.ask("ping") == [None, None]
        assert waits == [PATIENCE] * 3
        monkeypatch.setattr(type(client), "nthreads", lambda client: {crew.names()[0]: 1})
        with pytest.raises(ShardLostError, match=f"^worker {crew.names()[1]} is gone$"):
            crew.ask("ping")
        assert len(waits) == 4
    finally:
        crew.close()


class KilledInTests(KilledWorker):
    """dask's arguments differ by version."""

    def __init__(self):
        pass

    def __str__(self):
        return "killed"


class NoValidWorkerInTests(NoValidWorkerError):
    __init__, __str__ = KilledInTests.__init__, KilledInTests.__str__


@pytest.mark.parametrize(
    ("error", "becomes"),
    [
        (KilledInTests(), ShardLostError),
        (NoValidWorkerInTests(), ShardLostError),
        (asyncio.CancelledError("cancelled"), ShardLostError),
        (OSError("connection closed"), ShardLostError),
        (RuntimeError("Worker holding Actor was lost"), ShardLostError),
        (FileNotFoundError(2, "No such file", "part"), FileNotFoundError),
        (TimeoutError("later"), TimeoutError),
        (RuntimeError("a bug"), RuntimeError),
    ],
)
def test_errors_of_workers_that_are_gone(error, becomes):
    with pytest.raises((Exception, asyncio.CancelledError)) as raised, lost_where_unreachable():
        raise error
    assert raised.type is becomes
    assert str(raised.value) == str(error)


@pytest.mark.parametrize(
    ("status", "scheduler", "error", "message"),
    [
        ("closed", None, OSError("closed"), "the scheduler at the address is gone: closed"),
        ("closed", SimpleNamespace(address="s:1"), asyncio.CancelledError("x"), "the scheduler at s:1 is gone: x"),
        ("closed", None, ClusterError("no worker"), "^no worker$"),
        ("running", None, ValueError("of the rows"), "^of the rows$"),
    ],
)
def test_errors_once_the_scheduler_is_gone(status, scheduler, error, message):
    client = SimpleNamespace(status=status, scheduler=scheduler)
    with pytest.raises(ValueError if status == "running" else ClusterError, match=message), lost_with_scheduler(client):
        raise error
