"""Several trainings on the same matrix, in lock-step: their passes over it are done together.

A training is a thread, which asks for a pass and waits; when every one still at work has asked, one walk through the
matrix serves them all: what each of them wants of a stretch of rows is computed while that is in the cache. Memory is
read once instead of once a training. A training in another phase asks for another kind of pass, or a shorter one, and
is served in the same walk; one that has ended is waited for no longer.

Each pass adds up in the order in which it would by itself, so that every number is, to the last bit, the one computed
alone, whichever other passes are in the walk.
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

#: Bytes of a matrix below which it stays in the cache anyhow, and a pass costs less than waiting for others: where a
#: host of 260 MB of cache was shared, passes over 20 MB were a tenth faster apart, and over 120 MB half as fast.
WORTH_SHARING: int = max(4 << 20, largest_cache() // 8)
#: Trainings in lock-step, at most.
MOST_MEMBERS = 32
#: Numbers that a training keeps of each row, and the share of the machine's memory that those of all may take.
NUMBERS_A_ROW, SHARE_OF_MEMBERS = 16, 0.125


class Pass(NamedTuple):
    """A pass over the rows of X: scores, or combinations.

    Attributes
    ----------
    matrix : X (n, d), a ``CsrMatrix`` or a C-ordered array
    rows : (m,) which of its rows, None: all
    vectors : weights W (k, d), or combined rows' factors C (m, k)
    out : scores (m, k), or combinations (k, d), to be written
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


#: Does a pass with so many threads: ``Pass.do``, or a member of a ``Lockstep``.
RowKernels: TypeAlias = Callable[[Pass, int], None]


def members_at_once(n_bytes: int, n_rows: int, trainings: int, threads: int) -> int:
    """Number of single-threaded ``trainings`` that run in lock-step over a matrix of this size. It is 1 if sharing
    does not pay: the matrix is small, or every training has its own thread."""
    if n_bytes < WORTH_SHARING or trainings < 2 * threads:
        return 1
    fit = int(SHARE_OF_MEMBERS * memory() / (8 * NUMBERS_A_ROW * max(1, n_rows)))
    return max(1, min(trainings, MOST_MEMBERS, fit))


def rows_worth_sharing(n_bytes: int, n_rows: int) -> int:
    """Number of rows below which a pass is not worth sharing, for a matrix of this size."""
    return WORTH_SHARING * n_rows // max(1, n_bytes)


class Lockstep:
    """Threads in lock-step: at most ``at_once`` compute at a time, and as many run a walk. A pass over fewer rows than
    ``fewest_rows`` runs alone and at once."""

    def __init__(self, at_once: int, fewest_rows: int = 0) -> None:
        self._at_once = at_once
        self.fewest_rows = fewest_rows
        self._lock = threading.Lock()
        self._ready: deque[_LockstepMember] = deque()  # they go on as soon as fewer are at work
        self._requests: list[_LockstepMember] = []
        self._at_work = 0

    @contextmanager
    def joined(self) -> Iterator[RowKernels]:
        """The work of a thread, once it is its turn; what it gets are the kernels for its rows (``Rows.with_kernels``),
        and for no other thread's."""
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
        """Returns when what ``member`` asks for is done, or has failed, and it is its turn."""
        began = time.perf_counter_ns()
        with self._lock:
            self._at_work -= 1
            self._requests.append(member)
            walk = self._next()
        self._do(walk)
        member.turn.acquire()
        add_waiting(time.perf_counter_ns() - began - member.share_ns)

    def _next(self) -> Sequence[_LockstepMember]:
        """Releases the members that may go on. If none can: those whose passes the caller is to do. Under the
        lock."""
        while self._ready and self._at_work < self._at_once:
            self._at_work += 1
            self._ready.popleft().turn.release()
        if self._at_work > 0:
            return ()
        walk, self._requests = self._requests, []
        if walk:
            self._at_work = self._at_once  # meanwhile no other begins
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
                for member in members:  # the others have nothing to do with it
                    member.error = _error_of(member.request, self._at_once)
            share = (time.perf_counter_ns() - began) // len(members)
            for member in members:
                member.share_ns = share
        with self._lock:
            self._at_work = 0
            self._ready.extend(walk)
            self._next()


def _walk(passes: Sequence[Pass], threads: int) -> None:
    """Runs several passes over one matrix in one walk."""
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
    """Does a pass by itself; what it fails with."""
    try:
        one.do(threads)
    except Exception as error:
        return error
    return None


class _LockstepMember:
    """A thread's place in a lock-step: it asks for its passes (``RowKernels``).

    turn : released when it may go on
    asked : the last pass it has asked for; error : what that has failed with; share_ns : of the time it took
    has_left : its passes are its own affair again
    """

    request: Pass
    error: Exception | None = None
    share_ns = 0
    has_left = False

    def __init__(self, lockstep: Lockstep) -> None:
        self._lockstep = lockstep
        self.turn = threading.Semaphore(0)

    def __call__(self, request: Pass, threads: int) -> None:
        """A pass for several vectors is shared as it is."""
        rows, vectors = request.out.shape if request.is_scores else request.vectors.shape
        if self.has_left or vectors > 1 or rows < self._lockstep.fewest_rows:
            request.do(threads)
            return
        self.request, self.error = request, None
        self._lockstep.wait_for_pass(self)
        if self.error is not None:
            raise self.error
