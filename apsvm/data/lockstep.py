"""Several trainings on one matrix in lock-step: they share their passes over it.

A training is a thread, which requests a pass and waits. Once every thread at work has a request, one walk through the
matrix serves all: the requests for a block of rows are computed while the block is in the cache. Memory is read once
instead of once a training. Requests of a walk may be of either kind, and for any rows. A training that has ended is not
waited for.

Each pass adds up in its own order. Every number is therefore the same to the last bit, whichever passes are in a walk.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm._support.clock import add_waiting
from apsvm._support.machine import largest_cache, memory

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: Bytes of the smallest matrix that is shared. A smaller one stays in the cache, and waiting costs more than a pass: on
#: a shared host with 260 MB of cache, separate passes over 20 MB were a tenth faster, over 120 MB half as fast.
WORTH_SHARING: int = max(4 << 20, largest_cache() // 8)
#: Most trainings in lock-step.
MOST_MEMBERS = 32
#: Numbers that a training keeps for each row, and the share of the machine's memory for those of all trainings.
NUMBERS_A_ROW, SHARE_OF_MEMBERS = 16, 0.125


class Pass(NamedTuple):
    """A pass over the rows of X: scores or combinations.

    Attributes
    ----------
    matrix : X (n, d), a ``CsrMatrix`` or a C-ordered array
    rows : (m,) numbers of the rows; None: all
    vectors : weights W (k, d), or factors C (m, k) of the rows
    out : the array for scores (m, k) or combinations (k, d)
    is_scores : True for scores
    """

    matrix: _kernels.CsrMatrix | AnyArray
    rows: AnyArray | None
    vectors: NDArray[np.float64]
    out: NDArray[np.float64]
    is_scores: bool

    @property
    def arrays(self) -> tuple[AnyArray | None, NDArray[np.float64], NDArray[np.float64]]:
        return self.rows, self.vectors, self.out

    def do(self, threads: int) -> None:
        """Runs the pass alone."""
        if isinstance(self.matrix, _kernels.CsrMatrix):
            kernel = _kernels.scores_csr if self.is_scores else _kernels.combine_csr
            kernel(self.matrix, *self.arrays, threads)
        else:
            dense = _kernels.scores_dense if self.is_scores else _kernels.combine_dense
            dense(self.matrix, *self.arrays, threads)


#: Runs a pass with a number of threads: ``Pass.do``, or a member of a ``Lockstep``.
RowKernels: TypeAlias = Callable[[Pass, int], None]


def members_at_once(n_bytes: int, n_rows: int, trainings: int, threads: int) -> int:
    """Number of single-threaded ``trainings`` in lock-step over a matrix of this size: 1 if the matrix is small or
    there is a thread for each training."""
    if n_bytes < WORTH_SHARING or trainings < 2 * threads:
        return 1
    fit = int(SHARE_OF_MEMBERS * memory() / (8 * NUMBERS_A_ROW * max(1, n_rows)))
    return max(1, min(trainings, MOST_MEMBERS, fit))


def rows_worth_sharing(n_bytes: int, n_rows: int) -> int:
    """Fewest rows of a pass that is worth sharing, for a matrix of this size."""
    return WORTH_SHARING * n_rows // max(1, n_bytes)


class Lockstep:
    """Threads in lock-step: at most ``at_once`` compute at a time, and as many run a walk. A pass over fewer than
    ``fewest_rows`` rows runs alone, at once."""

    def __init__(self, at_once: int, fewest_rows: int = 0) -> None:
        self._at_once = at_once
        self.fewest_rows = fewest_rows
        self._lock = threading.Lock()
        self._ready: deque[_LockstepMember] = deque()  # waiting for their turn
        self._requests: list[_LockstepMember] = []
        self._at_work = 0

    @contextmanager
    def joined(self) -> Iterator[RowKernels]:
        """A context for the work of a thread, entered at its turn. It yields the kernels for the rows of this thread
        alone (``Rows.with_kernels``)."""
        member = _LockstepMember(self)
        with self._lock:
            self._ready.append(member)
            walk = self._next()
        self._do(walk)
        member.turn.acquire()
        try:
            yield member
        finally:
            member.has_left = True
            with self._lock:
                self._at_work -= 1
                walk = self._next()
            self._do(walk)

    def wait_for_pass(self, member: _LockstepMember) -> None:
        """Returns when the request of ``member`` is done, or has failed, and it is its turn."""
        began = time.perf_counter_ns()
        with self._lock:
            self._at_work -= 1
            self._requests.append(member)
            walk = self._next()
        self._do(walk)
        member.turn.acquire()
        add_waiting(time.perf_counter_ns() - began - member.share_ns)

    def _next(self) -> Sequence[_LockstepMember]:
        """Releases the members whose turn it is. If there is none, returns the members whose passes the caller is to
        run. Call it under the lock."""
        while self._ready and self._at_work < self._at_once:
            self._at_work += 1
            self._ready.popleft().turn.release()
        if self._at_work > 0:
            return ()
        walk, self._requests = self._requests, []
        if walk:
            self._at_work = self._at_once  # no other member begins meanwhile
        return walk

    def _do(self, walk: Sequence[_LockstepMember]) -> None:
        if not walk:
            return
        together: dict[int, list[_LockstepMember]] = {}
        for member in walk:
            together.setdefault(id(member.request.matrix), []).append(member)
        for members in together.values():
            began = time.perf_counter_ns()
            try:
                _walk([member.request for member in members], self._at_once)
            except Exception:
                for member in members:  # only one of them may have failed
                    member.error = _error_of(member.request, self._at_once)
            share = (time.perf_counter_ns() - began) // len(members)
            for member in members:
                member.share_ns = share
        with self._lock:
            self._at_work = 0
            self._ready.extend(walk)
            self._next()


def _walk(passes: Sequence[Pass], threads: int) -> None:
    """Runs passes over one matrix in one walk."""
    if len(passes) == 1:
        passes[0].do(threads)
        return
    scores = [one.arrays for one in passes if one.is_scores]
    combinations = [one.arrays for one in passes if not one.is_scores]
    matrix = passes[0].matrix
    if isinstance(matrix, _kernels.CsrMatrix):
        _kernels.walk_csr(matrix, scores, combinations, threads)
    else:
        _kernels.walk_dense(matrix, scores, combinations, threads)


def _error_of(one: Pass, threads: int) -> Exception | None:
    """Runs a pass alone. Returns its exception, if any."""
    try:
        one.do(threads)
    except Exception as error:
        return error
    return None


class _LockstepMember:
    """A thread's place in a lock-step, which requests its passes (``RowKernels``).

    turn : released when the thread may go on
    request : the last pass requested; error : its exception; share_ns : its share of the time of the walk
    has_left : True once its passes run alone again
    """

    request: Pass
    error: Exception | None = None
    share_ns = 0
    has_left = False

    def __init__(self, lockstep: Lockstep) -> None:
        self._lockstep = lockstep
        self.turn = threading.Semaphore(0)

    def __call__(self, request: Pass, threads: int) -> None:
        """Runs a pass in the next walk, or alone if it is short or has several vectors."""
        rows, vectors = request.out.shape if request.is_scores else request.vectors.shape
        if self.has_left or vectors > 1 or rows < self._lockstep.fewest_rows:
            request.do(threads)
            return
        self.request, self.error = request, None
        self._lockstep.wait_for_pass(self)
        if self.error is not None:
            raise self.error
