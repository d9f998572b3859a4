"""``Rows``: a matrix in memory, or mapped from a file, as a ``RowOperator``. ``apsvm.data.row_operator`` documents the
methods.

A selection of rows shares the matrix. With a bias B, LIBLINEAR's ``-B``, every row has one more feature of that value,
and w one more entry. Scores are summed row by row, and combinations in blocks that depend on the data alone: the number
of threads changes no bit of a result. A scaling is applied to w and to the results, never to X. A feature map stands
before the scaling. A pass maps the rows block by block, or ``for_many_passes`` keeps the mapped rows if memory allows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm._native._kernels import CsrMatrix
from apsvm._support import sparse as sp
from apsvm._support.machine import memory
from apsvm._support.types import Matrix
from apsvm.data.features.base import SHARE_OF_MEMORY, FeatureMap
from apsvm.data.features.linear import Linear
from apsvm.data.features.mapped import MappedMatrix, dense_pays
from apsvm.data.features.scaling import NO_SCALING, Scaling
from apsvm.data.moments import Moments, blocks_of_runs, column_moments, row_norms

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray, RowNumbers

#: Values in a block of rows that is copied from the matrix.
VALUES_OF_A_BLOCK = 1 << 20
#: Below this number of columns, each column is added to by itself: for two that takes a sixth of the time.
FEW_COLUMNS = 8


def row_numbers(which: AnyArray, n: int) -> RowNumbers:
    """``which`` in the narrowest type of the kernels: int32 for fewer than 2³¹ rows."""
    return np.ascontiguousarray(which, dtype=np.int32 if n <= np.iinfo(np.int32).max else np.int64)


class RowsInMemory(NamedTuple):
    """Matrix and selection of ``Rows``, for algorithms that visit rows at random (WARP).

    Attributes
    ----------
    matrix : (n, features), a CSR matrix or a C-ordered dense array, float32 or float64
    selection : (m,) int64, the rows that count, in order
    """

    matrix: Matrix
    selection: NDArray[np.int64]


class Rows:
    """Rows of a feature matrix in memory, a ``RowOperator``.

    Parameters
    ----------
    X : (n, d) CSR matrix or array, or dense array; float32 or float64. CSR with ascending columns, none twice, and
        C-ordered dense arrays are used in place; another layout or type is converted once.
    bias : value of the constant feature, or None for none
    threads : most threads of the row kernels
    selection : (m,) int32 or int64, the rows that count, in this order; all rows by default
    feature_map : the map between the rows and w; None: no map
    scaling : the scaling after the map, without the bias

    Raises
    ------
    ValueError : an entry of a CSR matrix outside its shape, with its row and column; a map of another number of
        features
    """

    def __init__(
        self,
        X: Matrix,
        *,
        bias: float | None = None,
        threads: int = 1,
        selection: RowNumbers | None = None,
        feature_map: FeatureMap | None = None,
        scaling: Scaling = NO_SCALING,
    ) -> None:
        sparse = not isinstance(X, np.ndarray) and sp.issparse(X)
        matrix: Matrix = X if sparse else np.asarray(X)
        if sparse and matrix.format != "csr":
            matrix = matrix.tocsr()
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        self._csr: CsrMatrix | None = None
        if sparse:  # scipy does not check indices
            matrix = _with_plain_arrays(matrix)
            self._csr = _checked(matrix)
            if not self._csr.ascending:
                matrix = _in_order(matrix)
                self._csr = _checked(matrix)
        # A CSR matrix, a C-ordered array or a MappedMatrix.
        self._X: Matrix = matrix if sparse else np.ascontiguousarray(matrix)
        if feature_map is not None and not isinstance(feature_map, Linear):
            self._X = MappedMatrix(self._X, feature_map)
        self._bias = bias
        self.threads = threads
        self._selection = None if selection is None else row_numbers(selection, matrix.shape[0])
        self._for_many_passes: Rows | None = None
        self._known_moments: list[Moments] = []
        self._bytes_for_copies: float | None = None  # a share of the machine's
        self._copies_are_single = False
        self._scaling = scaling
        self._factors: NDArray[np.float64] | None = None
        if scaling.unit_rows:
            norms = row_norms(self._X)
            self._factors = 1.0 / np.where(norms > 0.0, norms, 1.0)

    def __len__(self) -> int:
        return int(self._X.shape[0]) if self._selection is None else self._selection.size

    def _numbers(self, which: AnyArray | slice = slice(None)) -> RowNumbers:
        """The numbers in the matrix of the selected rows at the positions ``which``."""
        if self._selection is not None:
            return self._selection[which]
        n = int(self._X.shape[0])
        if isinstance(which, slice):
            return row_numbers(np.arange(*which.indices(n)), n)
        return row_numbers(which, n)

    @property
    def dimension(self) -> int:
        return int(self._X.shape[1]) + (self._bias is not None)

    @property
    def features(self) -> int:
        return int(self._X.shape[1])

    @property
    def n_values(self) -> int:
        X = self._X
        if isinstance(X, MappedMatrix):
            return round(X.values_of_row * len(self))
        stored = int(X.size if isinstance(X, np.ndarray) else X.nnz)
        return round(stored * len(self) / max(1, int(X.shape[0])))

    def in_memory(self) -> RowsInMemory:
        """The matrix and the selection, without the bias; mapped rows are copied. Raises ValueError for scaled rows."""
        if self._scaling.name != NO_SCALING.name:
            raise ValueError(f"scaled rows ({self._scaling.name}) are not in memory")
        rows = self._materialised(np.inf)
        return RowsInMemory(rows._X, rows._numbers().astype(np.int64))

    def moments(self, groups: NDArray[np.int64] | None = None) -> Moments:
        """Moments of the scaled features. Without queries they are computed once, also for copies with other
        threads."""
        if groups is not None:
            return self._moments(groups)
        if not self._known_moments:
            self._known_moments.append(self._moments(None))
        return self._known_moments[0]

    def _moments(self, groups: NDArray[np.int64] | None) -> Moments:
        mean, variance = column_moments(self._X, self._selection, groups=groups, factors=self._factors)
        scaling = self._scaling
        with np.errstate(over="ignore", invalid="ignore"):  # moments of huge features are not finite
            if scaling.centre is not None:
                mean = mean - scaling.centre
            if scaling.divisors is not None:
                mean, variance = mean / scaling.divisors, variance / scaling.divisors**2
        return Moments(mean, variance)

    def select(self, which: RowNumbers) -> Rows:
        return self._like(self._X, self._numbers(which))

    def means(self, which: NDArray[np.int64], offsets: NDArray[np.int64]) -> Rows:
        chosen = self._numbers(which)
        sizes = np.diff(offsets)
        weights = np.repeat(1.0 / sizes, sizes)
        if self._factors is not None:
            weights *= self._factors[chosen]
        parts, per_row = [], max(1, self.n_values // max(1, len(self)))
        for first, last in blocks_of_runs(offsets, max(1, VALUES_OF_A_BLOCK // per_row)):
            rows, bounds = slice(int(offsets[first]), int(offsets[last])), offsets[first : last + 1] - offsets[first]
            n = rows.stop - rows.start
            averaging = sp.csr_array((weights[rows], np.arange(n), bounds), shape=(last - first, n))
            parts.append(averaging @ self._X[chosen[rows]])
        sparse = any(map(sp.issparse, parts))
        mean = sp.csr_array(sp.vstack(parts)) if sparse else np.concatenate([np.empty((0, self.features)), *parts])
        means = self._like(mean, None)
        means._factors = None
        return means

    def for_many_passes(self) -> Rows:
        """The same rows in the fastest layout. Mapped rows are kept as mapped, if they take no more than a quarter of
        the machine's memory (``with_memory``); sparse rows are dense, if that takes hardly more bytes (``dense_pays``).
        The copy is made once."""
        if self._for_many_passes is not None:
            return self._for_many_passes
        rows = self._materialised(self._bytes_for_copies)
        if not isinstance(rows._X, np.ndarray | MappedMatrix) and dense_pays(rows._X):
            rows = rows._like(rows._X.toarray(), rows._selection)
        # Rows too large for a copy are not tried again, and neither are selections of them.
        rows._bytes_for_copies = 0.0
        if rows is not self:  # a cycle would live until garbage collection
            self._for_many_passes = rows
        return rows

    def copied(self) -> Rows:
        """The selected rows, copied into their order: a pass over a scattered selection takes 3 to 7 times as long.
        Standardised rows of a dense array are scaled first and then stored in float32, so that a mean far above its
        deviation costs no digits. Rows that each pass maps are not copied."""
        X, scaling, numbers = self._X, self._scaling, self._numbers()
        if isinstance(X, MappedMatrix):
            return self
        matrix = X[numbers]
        rows = self._like(matrix, None)
        if isinstance(matrix, np.ndarray) and scaling.centre is not None and scaling.divisors is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # scoring reports values that are not finite
                rows._X = ((matrix - scaling.centre) / scaling.divisors).astype(np.float32)
            rows._scaling = NO_SCALING
        if self._factors is not None:
            rows._factors = self._factors[numbers]
        return rows

    def with_bias(self, bias: float) -> Rows:
        return self._varied("_bias", bias) if self._bias is None else self

    def with_threads(self, threads: int) -> Rows:
        return self._varied("threads", threads)

    def _varied(self, name: str, value: object) -> Rows:
        """The same rows with one attribute changed, also in the copy for many passes."""
        rows, stored = copy.copy(self), self._for_many_passes
        setattr(rows, name, value)
        rows._for_many_passes = None if stored is None else stored._varied(name, value)
        return rows

    def with_memory(self, n_bytes: float, *, single: bool = False) -> Rows:
        """The same rows, whose mapped copy may take ``n_bytes``, and is in float32 if ``single``."""
        rows = copy.copy(self)
        rows._bytes_for_copies, rows._copies_are_single, rows._for_many_passes = n_bytes, single, None
        return rows

    def _materialised(self, within: float | None) -> Rows:
        """The mapped rows in memory, if they take at most ``within`` bytes; otherwise these rows."""
        if not isinstance(self._X, MappedMatrix):
            return self
        if within is None:
            within = SHARE_OF_MEMORY * memory()
        matrix = self._X.materialised(self._numbers(), within, single=self._copies_are_single)
        if matrix is None:
            return self._like(self._X, self._selection)
        rows = self._like(matrix, None)
        if self._factors is not None:
            rows._factors = self._factors[self._numbers()]
        return rows

    def _like(self, X: Matrix, selection: RowNumbers | None) -> Rows:
        """Rows of the matrix X, or of a copy of it."""
        rows = copy.copy(self)
        if X is not self._X:
            rows._csr = _checked(X) if sp.issparse(X) else None
        rows._X, rows._selection, rows._for_many_passes = X, selection, None
        rows._known_moments = []
        return rows

    def _of_selected(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the selected rows, from values (n,) of all rows of the matrix."""
        return values if self._selection is None else values[self._selection]

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        if out is None:
            out = np.empty(len(self))
        self.scores_of_all(w[None], out.reshape(-1, 1))
        return out

    def scores_of_all(self, W: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        if W.shape[1] != self.dimension:
            raise ValueError(f"expected {self.dimension} weights, as there are columns, found {W.shape[1]}")
        if out is None:
            out = np.empty((len(self), len(W)))
        scaling, features = self._scaling, W if self._bias is None else W[:, :-1]
        features = np.ascontiguousarray(features if scaling.divisors is None else features / scaling.divisors)
        X = self._X
        if isinstance(X, MappedMatrix):
            for place, block in self._blocks(X, self._selection, len(self)):
                self._score(block, None, features, out[place])
        else:
            self._score(X if self._csr is None else self._csr, self._selection, features, out)
        if self._factors is not None:
            out *= self._of_selected(self._factors)[:, None]
        if scaling.centre is not None:
            _add_to_columns(out, [-scaling.centre.dot(of_features) for of_features in features])
        if self._bias is not None:
            _add_to_columns(out, [self._bias * w[-1] for w in W])
        return out

    def combine(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        combined: NDArray[np.float64] = self.combine_all(c.reshape(-1, 1))[0]
        return combined

    def combine_all(self, C: NDArray[np.float64]) -> NDArray[np.float64]:
        of_row = C if self._factors is None else C * self._of_selected(self._factors)[:, None]
        X = self._X
        if isinstance(X, MappedMatrix):
            weighted = np.flatnonzero(of_row.any(axis=1))  # only these rows are mapped
            of_row, combined = of_row[weighted], np.zeros((C.shape[1], self.features))
            for place, block in self._blocks(X, self._numbers(weighted), weighted.size):
                combined += self._combined(block, None, of_row[place])
        else:
            combined = self._combined(X if self._csr is None else self._csr, self._selection, of_row)
        scaling = self._scaling
        if scaling.centre is not None or self._bias is not None:
            sums = np.array([np.add.reduce(column) for column in np.ascontiguousarray(C.T)])[:, None]
        if scaling.centre is not None:
            combined -= sums * scaling.centre
        if scaling.divisors is not None:
            combined /= scaling.divisors
        return combined if self._bias is None else np.append(combined, self._bias * sums, axis=1)

    def _blocks(
        self, X: MappedMatrix, selection: RowNumbers | None, m: int
    ) -> Iterator[tuple[slice, CsrMatrix | AnyArray]]:
        """Maps the rows ``selection`` (m,) of X, or all, block by block: their positions in 0..m, and a matrix for the
        kernels."""
        for place in X.blocks(m):
            block = X[place if selection is None else selection[place]]
            yield place, block if isinstance(block, np.ndarray) else _checked(_with_plain_arrays(block))

    def _score(
        self, X: CsrMatrix | AnyArray, which: RowNumbers | None, W: NDArray[np.float64], out: NDArray[np.float64]
    ) -> None:
        if isinstance(X, CsrMatrix):
            _kernels.scores_csr(X, which, W, out, self.threads)
        else:
            _kernels.scores_dense(X, which, W, out, self.threads)

    def _combined(
        self, X: CsrMatrix | AnyArray, which: RowNumbers | None, C: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        combined = np.empty((C.shape[1], self.features))
        if isinstance(X, CsrMatrix):
            _kernels.combine_csr(X, which, C, combined, self.threads)
        else:
            _kernels.combine_dense(X, which, C, combined, self.threads)
        return combined


def _checked(matrix: Matrix) -> CsrMatrix:
    """The CSR matrix for the kernels. Raises ValueError for an entry outside its shape."""
    sp.require_integers(matrix)
    return CsrMatrix(matrix.indptr, matrix.indices, matrix.data, *matrix.shape)


def _in_order(matrix: Matrix) -> Matrix:
    """A copy of a CSR matrix with ascending columns in each row, where duplicate entries are added."""
    matrix = matrix.copy()
    matrix.has_canonical_format = matrix.has_sorted_indices = False  # scipy may hold wrong flags
    matrix.sum_duplicates()
    return matrix


def _with_plain_arrays(matrix: Matrix) -> Matrix:
    """The CSR matrix with contiguous arrays and indices of one width: the matrix itself, unless it is made of
    slices."""
    width = np.result_type(matrix.indptr, matrix.indices)
    indptr, indices = (np.ascontiguousarray(array, dtype=width) for array in (matrix.indptr, matrix.indices))
    data = np.ascontiguousarray(matrix.data)
    if indptr is matrix.indptr and indices is matrix.indices and data is matrix.data:
        return matrix
    plain = type(matrix)(matrix.shape, dtype=matrix.dtype)
    plain.indptr, plain.indices, plain.data = indptr, indices, data
    return plain


def _add_to_columns(table: NDArray[np.float64], numbers: Sequence[float]) -> None:
    """Adds a number to each column. numpy is slow for narrow tables, whose rows it visits one by one."""
    if len(numbers) >= FEW_COLUMNS:
        table += numbers
        return
    for column, number in enumerate(numbers):
        table[:, column] += number
