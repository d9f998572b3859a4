"""The workers of a dask cluster: tasks on parts of the rows. dask computes parts again if a worker is lost.

A part is a future that the driver holds; dask knows its place and its origin. Data that the driver sends for one call
(weights, slopes) are lost with a worker: the call is then repeated.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import logging
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from distributed import Client, Future

#: A future of a part, or of a task's result.
Parts: TypeAlias = "Sequence[Future]"

#: Seconds between checks of silent workers; of waiting for a lost worker; between messages about it; of waiting for a
#: scheduler.
PATIENCE, MOST_WAITING, BETWEEN_LINES, CONNECTING = 1.0, 120.0, 10.0, 10.0
#: Number of successive repetitions of a call before an error.
MOST_LOSSES = 10
#: Bytes from which data go directly to the workers, past the scheduler.
SENT_APART = 1 << 16
#: Errors of dask's versions for a task whose result is lost.
_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)


class ClusterError(OSError):
    """No cluster at the address, a cluster without workers, or workers lost too often."""


class WorkerError(RuntimeError):
    """A fault on a worker that the rows did not cause; the message names the worker."""


class _LostError(RuntimeError):
    """A lost worker held the only copy of some data."""


class Cluster:
    """The workers of ``client``.

    Parameters
    ----------
    client : Client
        Of the cluster.
    remark : Callable
        Called with a message if workers are lost, or while none is left.
    """

    def __init__(self, client: Client, remark: Callable[[str], None]) -> None:
        self.client = client
        self._scheduler = client.scheduler.address
        self._remark = remark
        self._since: float | None = None
        self._said = 0.0
        with _lost_with_scheduler(client, self._scheduler):
            self._workers = set(self._present())

    def submit(self, function: Callable[..., object], *columns: Sequence[Any]) -> list[Future]:
        """Submits a task for each position of the ``columns`` of values or futures; results stay on their workers."""
        with _lost_with_scheduler(self.client, self._scheduler):
            return [self.client.submit(_named, function, *row, pure=False) for row in zip(*columns, strict=True)]

    def compute(self, function: Callable[[Any, int], object], delayed: Sequence[Any]) -> list[Future]:
        """``submit`` for delayed parts and their numbers, without keeping their inputs."""
        import dask

        task = dask.delayed(_named, pure=False)
        with _lost_with_scheduler(self.client, self._scheduler):
            futures: list[Future] = self.client.compute(
                [task(function, part, number) for number, part in enumerate(delayed)]
            )
            return futures

    def gather(self, futures: Parts) -> list[Any]:
        """Results of tasks, whose futures are released. Raises the tasks' errors, ClusterError, WorkerError."""
        try:
            return self._again(lambda: self._gathered(futures))
        finally:
            let_go(futures)

    def ask(
        self, function: Callable[..., object], parts: Parts, *common: object, each: Sequence[Sequence[object]] = ()
    ) -> list[Any]:
        """Calls ``function`` on every part, with the ``common`` arguments and the part's own from ``each``; returns the
        results. Raises as ``gather``."""

        def attempt() -> list[Any]:
            shared = [self._sent(value, parts) for value in common]
            columns = [self._sent_each(column, parts) for column in each]
            futures = [
                self.client.submit(_named, function, part, *shared, *others, pure=False)
                for part, *others in zip(parts, *columns, strict=True)
            ]
            try:
                return self._gathered(futures)
            finally:
                let_go([*futures, *shared, *(value for column in columns for value in column)])

        return self._again(attempt)

    def _again(self, attempt: Callable[[], list[Any]]) -> list[Any]:
        """Result of ``attempt``, repeated if a worker is lost. Raises ClusterError after ``MOST_LOSSES``
        repetitions."""
        for number in itertools.count(1):
            try:
                with _lost_with_scheduler(self.client, self._scheduler), _lost_where_unreachable():
                    return attempt()
            except _LostError as error:
                if number > MOST_LOSSES:
                    raise ClusterError(f"the workers were lost {number} times ({error})") from None
            with _lost_with_scheduler(self.client, self._scheduler):
                while not self._look():
                    time.sleep(PATIENCE)
        raise AssertionError

    @property
    def threads(self) -> int:
        """Total number of threads of the workers."""
        return sum(self._present().values())

    @property
    def machines(self) -> int:
        """Number of machines that run workers."""
        return max(1, len({address.rpartition("/")[2].partition(":")[0] for address in self._present()}))

    def _present(self) -> dict[str, int]:
        """Number of threads of each present worker."""
        threads: dict[str, int] = self.client.nthreads()
        return threads

    def _sent(self, value: object, parts: Parts) -> object:
        """The value, or a future of it if it is large and several tasks need it."""
        if len(parts) < 2 or not isinstance(value, np.ndarray) or value.nbytes < SENT_APART:
            return value
        return self.client.scatter(value, broadcast=True, hash=False)

    def _sent_each(self, column: Sequence[object], parts: Parts) -> Sequence[object]:
        """The values, or futures of them, each on the worker that has its part."""
        if not all(isinstance(value, np.ndarray) for value in column):
            return column
        if sum(value.nbytes for value in column if isinstance(value, np.ndarray)) < SENT_APART:
            return column
        holders, present = self.client.who_has(parts), self._present()
        if not present:
            raise _LostError("all workers")  # a scatter would wait silently for one
        by_worker: dict[str, list[int]] = {}
        for place, part in enumerate(parts):
            addresses = [address for address in holders[part.key] if address in present]
            by_worker.setdefault(min(addresses, default=""), []).append(place)
        sent = list(column)
        for address, places in by_worker.items():
            values = [column[place] for place in places]
            futures = self.client.scatter(values, workers=[address] if address else None, hash=False)
            for place, future in zip(places, futures, strict=True):
                sent[place] = future
        return sent

    def _gathered(self, futures: Parts) -> list[Any]:
        from distributed import wait

        futures = list(futures)
        with self.client.as_current():
            while True:
                with suppress(TimeoutError):
                    wait(futures, timeout=PATIENCE)
                    break
                if any(future.status == "error" for future in futures):
                    break
                self._look()
            results: list[Any] = self.client.gather(futures)
            return results

    def _look(self) -> bool:
        """True if there is a worker. Reports lost ones. Raises ClusterError after ``MOST_WAITING`` seconds without
        any."""
        present, now = set(self._present()), time.monotonic()
        for address in sorted(self._workers - present):
            self._remark(f"worker {address} is gone: its parts are read again")
        self._workers = present
        if present:
            self._since = None
            return True
        if self._since is None:
            self._since, self._said = now, now - BETWEEN_LINES + 2.0 * PATIENCE
        waited = now - self._since
        if waited > MOST_WAITING:
            raise ClusterError(f"no worker of the cluster was there for {MOST_WAITING:g} seconds")
        if now - self._said >= BETWEEN_LINES:
            self._said = now
            self._remark(f"no worker is left: waiting for one ({waited:.0f} s; ends after {MOST_WAITING:g} s)")
        return False


def let_go(values: Iterable[object]) -> None:
    """Releases the futures among some values now. dask's references to them form cycles, which would keep the results
    in memory until the next garbage collection."""
    from distributed import Future

    for value in values:
        if isinstance(value, Future):
            value.release()


def _named(function: Callable[..., object], *arguments: object) -> object:
    """Runs ``function`` on a worker. Errors of rows and files name the worker. Others become ``WorkerError``, except
    those of this package and FloatingPointError."""
    from distributed import get_worker

    from apsvm.data.dataset import DataError

    where = get_worker().address
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return function(*arguments)
    except DataError as error:
        raise DataError(f"{error} (on {where})") from None
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise OSError(error.errno, f"{error.strerror or error} (on {where})", error.filename) from None
        if isinstance(error, FloatingPointError) or type(error).__module__.startswith("apsvm."):
            raise
        words = "not enough memory" if isinstance(error, MemoryError) else f"{type(error).__name__}: {error}"
        raise WorkerError(f"{where}: {' '.join(words.split())}") from error


@contextmanager
def _lost_where_unreachable() -> Iterator[None]:
    """Turns errors of a lost worker into ``_LostError``: dask's, and OSError or TimeoutError without a file name. Turns
    KilledWorker into ``ClusterError``."""
    from distributed import KilledWorker
    from distributed.scheduler import NoValidWorkerError

    try:
        yield
    except KilledWorker as error:
        raise ClusterError(f"a task has ended every worker that began it, as too little memory does: {error}") from None
    except (NoValidWorkerError, *_CANCELLED) as error:
        raise _LostError(f"{type(error).__name__}: {error}") from None
    except (OSError, TimeoutError) as error:
        if isinstance(error, ClusterError) or getattr(error, "filename", None) is not None:
            raise
        raise _LostError(f"{type(error).__name__}: {error}") from None


@contextmanager
def _lost_with_scheduler(client: Client, address: str) -> Iterator[None]:
    """Turns any error into ``ClusterError`` once the connection to the scheduler is lost."""
    try:
        yield
    except (Exception, *_CANCELLED) as error:
        if client.status == "running" or isinstance(error, ClusterError):
            raise
        raise ClusterError(f"the scheduler at {address} is gone") from None


@contextmanager
def cluster_at(scheduler: str, remark: Callable[[str], None]) -> Iterator[Cluster]:
    """The cluster of the scheduler at an address; or of ``local:N``, N processes of one thread each on this machine.

    Raises
    ------
    ValueError : neither an address nor ``local:N``; ClusterError : no scheduler at the address, or it is lost
    """
    from dask import config
    from distributed import Client, LocalCluster

    kind, _, count = scheduler.partition(":")
    if kind != "local":
        _check_encryption(scheduler)
        with _without_logs():
            try:
                client = Client(scheduler, timeout=CONNECTING, direct_to_workers=True, set_as_default=False)
            except (OSError, ValueError) as error:
                raise ClusterError(f"no scheduler answers at {scheduler}: {error}") from None
            with client:
                if not client.nthreads():
                    raise ClusterError(f"the scheduler at {scheduler} has no workers")
                _check_versions(client)
                yield Cluster(client, remark)
        return
    if not (count.isascii() and count.isdecimal() and 1 <= int(count) <= 1024):
        raise ValueError(f"expected local:N with N workers, from 1 to 1024, found {scheduler!r}")
    with (
        config.set({"distributed.admin.tick.limit": "1h"}),
        _without_logs(),
        LocalCluster(
            n_workers=int(count), threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        Client(cluster, direct_to_workers=True, set_as_default=False) as client,
    ):
        client.register_worker_callbacks(_ignore_interrupts)
        yield Cluster(client, remark)


@contextmanager
def _without_logs() -> Iterator[None]:
    """Silences dask's logs of lost workers and schedulers; errors report them."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "distributed.core")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _check_encryption(address: str) -> None:
    """Raises ClusterError if dask's configuration does not fit the address. Checked before a client is made, since such
    a client takes 20 seconds to fail."""
    from distributed import Security

    connection = Security().get_connection_args("client")
    is_encrypted = address.startswith(("tls://", "wss://"))
    if is_encrypted and connection.get("ssl_context") is None:
        raise ClusterError(f"{address} wants a certificate, and dask's configuration names none (distributed.comm.tls)")
    if connection.get("require_encryption") and not is_encrypted:
        raise ClusterError(f"{address} is not encrypted, which dask's configuration wants (require-encryption)")


def _check_versions(client: Client) -> None:
    """Raises ClusterError if the scheduler or a worker lacks apsvm or has another version than the driver."""
    servers = client.get_versions(packages=["apsvm"])
    here = servers["client"]["packages"]["apsvm"]
    for address, server in {client.scheduler.address: servers["scheduler"], **servers["workers"]}.items():
        version = server["packages"]["apsvm"]
        if version != here:
            raise ClusterError(f"{address}: expected apsvm {here} there, as here, found {version or 'none'}")


def _ignore_interrupts() -> None:
    """Ignores Ctrl-C, which a terminal also sends to local workers; the driver ends their work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
