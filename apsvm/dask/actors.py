"""Shards as actors on the workers of a dask cluster. Calls of an actor take a few milliseconds, a task five times as
long, and an actor's rows stay where they are.

A worker that dies takes its shard with it: a round then raises ``ShardLostError``, and the shard is made again on
another worker, from the same parts (``Crew.recover``).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from apsvm._support.types import Part
from apsvm.dask.crew import Answer, Call, ClusterError, Crew, ShardLostError, WorkerError
from apsvm.dask.messages import Arguments, Programme, Reply
from apsvm.dask.shards import Shard
from apsvm.dask.sources import ArrayPart, Source

if TYPE_CHECKING:
    from distributed import Client, Future

P = TypeVar("P")

#: Of an ``ArrayPart``: each a value, or a future of one.
Columns: TypeAlias = tuple[Part, ...]


class ActorFuture(Protocol):
    """What a call of an actor returns at once."""

    def result(self, timeout: float) -> Answer: ...


class Actor(Protocol):
    """A ``ShardActor`` as dask hands it out here."""

    def ask(self, programme: Programme, method: str, arguments: Arguments) -> ActorFuture: ...


#: Seconds between looks at whether a worker that does not answer is still there.
PATIENCE = 5.0
#: Seconds between looks at whether the work should stop, and whether the tasks of it have a worker.
PATIENCE_OF_TASKS = 0.5
#: What dask raises of a task whose result, or that of another it needs, is lost; which one is a matter of its version.
CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
#: Seconds that are waited for a worker where there is none left.
MOST_WAITING = 120.0
#: Seconds until a scheduler that does not answer is given up.
CONNECTING = 10.0


@contextmanager
def named_worker() -> Iterator[None]:
    """On a worker: what is raised besides errors of this package, of a file and of numbers that overflow becomes
    ``WorkerError``."""
    from distributed import get_worker

    try:
        yield
    except Exception as error:
        is_of_file = isinstance(error, OSError) and error.filename is not None
        if is_of_file or isinstance(error, FloatingPointError) or type(error).__module__.startswith("apsvm."):
            raise
        words = "not enough memory" if isinstance(error, MemoryError) else f"{type(error).__name__}: {error}"
        raise WorkerError(f"{get_worker().address}: {' '.join(words.split())}") from error


class ShardActor:
    """A ``Shard`` as dask makes it: ``parts`` are sources, or the columns of an ``ArrayPart``, which dask has put here
    by then."""

    def __init__(self, parts: Sequence[Source | Columns], threads: int) -> None:
        from distributed import get_worker

        sources = [ArrayPart(*part) if isinstance(part, tuple) else part for part in parts]
        self._shard = Shard(sources, threads, worker=get_worker().address)

    @named_worker()
    def ask(self, programme: Programme, method: str, arguments: Arguments) -> Answer:
        return self._shard.call(programme, method, *arguments)


class ActorCrew(Crew):
    """A shard on each worker, or as many as there are parts if those are fewer.

    Parameters
    ----------
    client : of the cluster
    parts : in order; neighbours go to one shard. A tuple is the columns of an ``ArrayPart``, each a value or a future
    weights : (parts,) how large each is, about; None: all alike
    """

    def __init__(
        self, client: Client, parts: Sequence[Source | Columns], weights: Sequence[float] | None = None
    ) -> None:
        super().__init__()
        self._client = client
        workers = self._workers()
        n = min(len(parts), len(workers))
        self._parts = list(_cut(list(parts), list(weights or [1.0] * len(parts)), n))
        self._actors: list[Actor | None] = [None] * n
        self._futures: list[Future | None] = [None] * n  # the actors live as long as these are held
        self._addresses = [""] * n
        try:
            with lost_with_scheduler(client):
                self._make(dict(zip(range(n), list(workers), strict=False)))
        except ShardLostError:
            self.recover()

    def __len__(self) -> int:
        return len(self._actors)

    def names(self) -> list[str]:
        return list(self._addresses)

    def close(self) -> None:
        super().close()
        # dask's proxies of actors are in cycles, which would hold the rows until there is a collection of garbage.
        if self._client.status == "running":
            self._client.cancel([future for future in self._futures if future is not None])
        self._actors = self._futures = [None] * len(self._actors)

    def _workers(self) -> dict[str, int]:
        """Addresses of the workers there are, and the threads of each; waits for one."""
        try:
            self._client.wait_for_workers(1, timeout=MOST_WAITING)
        except TimeoutError:
            raise _no_worker() from None
        threads: dict[str, int] = self._client.nthreads()
        return dict(sorted(threads.items()))

    def _make(self, where: dict[int, str]) -> None:
        """Makes shards at these addresses."""
        threads = self._workers()
        futures: dict[int, Future] = {
            shard: self._client.submit(
                ShardActor,
                self._parts[shard],
                threads.get(address, 1),
                actor=True,
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )
            for shard, address in where.items()
        }
        for shard, future in futures.items():
            with lost_where_unreachable(), self._client.as_current():
                self._actors[shard], self._futures[shard] = future.result(), future
            self._addresses[shard] = where[shard]

    def _ask(self, call: Call, programme: Programme) -> list[Answer]:
        with lost_with_scheduler(self._client):
            return self._ask_some(range(len(self)), call, programme)

    def _ask_some(self, shards: Sequence[int], call: Call, programme: Programme) -> list[Answer]:
        questions = []
        with lost_where_unreachable(), self._client.as_current():
            for shard in shards:
                actor = self._actors[shard]
                if actor is None:
                    raise ShardLostError(f"the shard of {self._addresses[shard]} is lost")
                questions.append(actor.ask(programme, call.method, call.arguments(shard)))
        # All are waited for: what one raises must not leave others at work behind the next question.
        answers: list[Answer] = []
        troubles: list[Exception] = []
        for shard, future in zip(shards, questions, strict=True):
            try:
                answers.append(self._wait(shard, future))
            except Exception as error:
                troubles.append(error)
        if troubles:
            raise min(troubles, key=lambda one: isinstance(one, ShardLostError))
        return answers

    def _wait(self, shard: int, future: ActorFuture) -> Answer:
        while True:
            try:
                with lost_where_unreachable():
                    answer: Answer = future.result(timeout=PATIENCE)
                    return answer
            except TimeoutError:
                if not self._alive(shard):
                    raise ShardLostError(f"worker {self._addresses[shard]} is gone") from None

    def _alive(self, shard: int) -> bool:
        future = self._futures[shard]
        return self._addresses[shard] in self._client.nthreads() and future is not None and future.status == "finished"

    def _bring_back(self, set_up: Sequence[Call]) -> int:
        with lost_with_scheduler(self._client):
            return self._made_again(set_up)

    def _made_again(self, set_up: Sequence[Call]) -> int:
        workers = self._workers()
        lost = [shard for shard in range(len(self)) if self._actors[shard] is None or not self._reachable(shard)]
        for shard in lost:
            self._actors[shard] = self._futures[shard] = None
        busy = Counter(address for shard, address in enumerate(self._addresses) if shard not in lost)
        where = {}
        for shard in lost:
            where[shard] = min(workers, key=lambda address: (busy[address], address))
            busy[where[shard]] += 1
        self._make(where)
        for call in set_up:
            self._ask_some(lost, call, ())
        return len(lost)

    def _reachable(self, shard: int) -> bool:
        """Whether the shard answers."""
        try:
            self._ask_some([shard], Call("ping", (), None), ())
        except ShardLostError:
            return False
        return True


def _no_worker() -> ClusterError:
    return ClusterError(f"no worker of the cluster was there for {MOST_WAITING:g} seconds")


def done_of(futures: Iterable[Future], should_stop: Callable[[], bool] = lambda: False) -> list[Future]:
    """Those of the tasks that are done, once one is; none if the work should stop.

    Raises
    ------
    ClusterError : all workers are gone, and dask would wait for others for ever
    """
    from distributed import wait

    futures = list(futures)
    client, there = futures[0].client, time.monotonic()
    while True:
        done = [future for future in futures if future.done()]
        if done or should_stop():
            return done
        with suppress(TimeoutError, *CANCELLED), client.as_current():
            wait(futures, timeout=PATIENCE_OF_TASKS, return_when="FIRST_COMPLETED")
        there = time.monotonic() if client.nthreads() else there
        if time.monotonic() - there > MOST_WAITING:
            raise _no_worker()


def result_of(future: Future) -> Reply:
    """What a task returns, once it is done. Raises ClusterError where its worker is lost, and what the task raised."""
    try:
        with lost_with_scheduler(future.client):
            done_of([future])
            with lost_where_unreachable():
                return future.result()
    except ShardLostError as error:
        raise ClusterError(f"the workers were lost: {error}") from None


@contextmanager
def lost_where_unreachable() -> Iterator[None]:
    """What dask raises of a worker that is gone becomes ``ShardLostError``."""
    from distributed import KilledWorker
    from distributed.scheduler import NoValidWorkerError

    try:
        yield
    except (KilledWorker, NoValidWorkerError, *CANCELLED) as error:
        raise ShardLostError(str(error)) from None
    except TimeoutError:
        raise
    except OSError as error:
        if error.filename is not None:
            raise
        raise ShardLostError(str(error)) from None
    except RuntimeError as error:
        if "Actor" not in str(error):
            raise
        raise ShardLostError(str(error)) from None


@contextmanager
def lost_with_scheduler(client: Client) -> Iterator[None]:
    """What dask raises once the scheduler is gone, whatever it was at, becomes ``ClusterError``."""
    try:
        yield
    except (Exception, *CANCELLED) as error:
        if client.status == "running" or isinstance(error, ClusterError):
            raise
        where = client.scheduler.address if client.scheduler is not None else "the address"
        raise ClusterError(f"the scheduler at {where} is gone: {error}") from None


def _cut(parts: list[P], weights: list[float], n: int) -> Iterator[list[P]]:
    """``n`` runs of neighbours, none empty, that weigh about the same."""
    total, begin, before = sum(weights), 0, 0.0
    for run in range(n):
        end, weight = begin + 1, before + weights[begin]
        while len(parts) - end > n - run - 1 and (run == n - 1 or weight + weights[end] / 2 <= total * (run + 1) / n):
            weight += weights[end]
            end += 1
        yield parts[begin:end]
        begin, before = end, weight


@contextmanager
def cluster_of(scheduler: str) -> Iterator[Client]:
    """A client of the scheduler at an address; or of ``local:N``, N processes of one thread each on this machine.

    Raises
    ------
    ValueError : neither; ClusterError : there is no scheduler at the address
    """
    from dask import config
    from distributed import Client, LocalCluster

    kind, _, count = scheduler.partition(":")
    if kind != "local":
        _check_encryption(scheduler)
        try:
            client = Client(scheduler, timeout=CONNECTING, direct_to_workers=True, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ClusterError(f"no scheduler answers at {scheduler}: {error}") from None
        with _without_logs(), client:
            if not client.nthreads():
                raise ClusterError(f"the scheduler at {scheduler} has no workers")
            _check_versions(client)
            yield client
        return
    if not (count.isascii() and count.isdecimal() and 1 <= int(count) <= 1024):
        raise ValueError(f"expected local:N with N workers, from 1 to 1024, found {scheduler!r}")
    with (
        config.set({"distributed.admin.tick.limit": "1h"}),
        LocalCluster(
            n_workers=int(count), threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        Client(cluster, direct_to_workers=True, set_as_default=False) as client,
    ):
        client.register_worker_callbacks(_ignore_interrupts)
        yield client


@contextmanager
def _without_logs() -> Iterator[None]:
    """What dask logs of a scheduler that it looks for in vain, with tracebacks, is said by errors here."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _check_encryption(address: str) -> None:
    """Raises ClusterError where dask's configuration does not go with the address, before a client is made: one that
    fails so takes 20 seconds to let go."""
    from distributed import Security

    connection = Security().get_connection_args("client")
    is_encrypted = address.startswith(("tls://", "wss://"))
    if is_encrypted and connection.get("ssl_context") is None:
        raise ClusterError(f"{address} wants a certificate, and dask's configuration names none (distributed.comm.tls)")
    if connection.get("require_encryption") and not is_encrypted:
        raise ClusterError(f"{address} is not encrypted, which dask's configuration wants (require-encryption)")


def _check_versions(client: Client) -> None:
    """Raises ClusterError where the scheduler or a worker has no apsvm, or another version than there is here."""
    servers = client.get_versions(packages=["apsvm"])
    here = servers["client"]["packages"]["apsvm"]
    for address, server in {client.scheduler.address: servers["scheduler"], **servers["workers"]}.items():
        found = server["packages"]["apsvm"]
        if found != here:
            raise ClusterError(f"{address}: expected apsvm {here} there, as here, found {found or 'none'}")


def _ignore_interrupts() -> None:
    """A terminal sends Ctrl-C to the workers here too, and it is meant for the driver, which ends their work itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
