"""Arguments of kernels are checked: arrays that do not fit are a ValueError, and never end the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from over import over

from apsvm._native import _kernels
from apsvm.data.rows import Rows
from apsvm.losses import LOSSES


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape)


@over("n", [1, 7, 8, 100])
@over(("value", "within"), [(-2.0, True), (2.1, False), (-np.inf, False), (np.nan, False)])
def test_all_within(n, value, within):
    values = np.ones(n)
    values[n // 2] = value
    assert _kernels.all_within(values, 2.0) is within
    assert _kernels.all_within(zeros(0), 0.0)


class TestCsr:
    """Three rows of four columns, six entries."""

    INDPTR, INDICES = [0, 2, 3, 6], [0, 3, 1, 0, 2, 3]

    def check(self, indptr, indices, *, width=np.int32, n_values=None, shape=(3, 4)):
        values = zeros(len(indices) if n_values is None else n_values)
        return _kernels.CsrMatrix(np.array(indptr, dtype=width), np.array(indices, dtype=width), values, *shape)

    @pytest.mark.parametrize("width", [np.int32, np.int64])
    def test_a_sound_matrix_passes(self, width):
        assert self.check(self.INDPTR, self.INDICES, width=width).ascending
        assert self.check([0, 0], [], width=width, shape=(1, 0)).ascending
        assert self.check([0], [], width=width, shape=(0, 5)).ascending

    @pytest.mark.parametrize("width", [np.int32, np.int64])
    def test_columns_that_fall_or_repeat_within_a_row(self, width):
        """Over rows of every length, at every place: it is known where rows begin."""
        rng = np.random.default_rng(int(np.dtype(width).itemsize))
        for _ in range(300):
            lengths = rng.integers(0, 4, size=rng.integers(1, 8))
            rows = [rng.integers(0, 5, size=length) for length in lengths]
            ascending = all((np.diff(row) > 0).all() for row in rows)
            indptr = np.r_[0, np.cumsum(lengths)]
            csr = self.check(indptr, np.concatenate([*rows, []]), width=width, shape=(len(rows), 5))
            assert csr.ascending == ascending

    @over("width", [np.int32, np.int64])
    @over("place", range(6))
    @over("column", [4, -1, 2**31 - 1, -(2**31)])
    def test_a_column_outside_the_shape_is_named(self, width, place, column):
        indices = list(self.INDICES)
        indices[place] = column
        row = [0, 0, 1, 2, 2, 2][place]
        with pytest.raises(ValueError, match=f"row {row} has an entry in column {column}, expected columns 0 to 3"):
            self.check(self.INDPTR, indices, width=width)

    def test_a_fault_far_down_is_found(self, rng):
        X = sp.csr_array(rng.normal(size=(4000, 700)) * (rng.random((4000, 700)) < 0.05))
        X.indices[-1] = 700
        last = int(np.flatnonzero(np.diff(X.indptr))[-1])
        with pytest.raises(ValueError, match=f"row {last} has an entry in column 700"):
            _kernels.CsrMatrix(X.indptr, X.indices, X.data, *X.shape)

    @over("width", [np.int32, np.int64])
    @over(
        ("indptr", "message"),
        [
            ([0, 3, 2, 6], r"indptr\[2\] from 3 to 6, found 2"),
            ([-1, 2, 3, 6], r"indptr\[0\] to be 0, found -1"),
            ([1, 2, 3, 6], r"indptr\[0\] to be 0, found 1"),
            ([0, 2, 3, 7], r"indptr\[3\] from 3 to 6, found 7"),
            ([0, 2, 6], "4 row boundaries, found 3"),
            ([], "4 row boundaries, found 0"),
        ],
    )
    def test_boundaries_ascend_within_the_indices(self, width, indptr, message):
        with pytest.raises(ValueError, match=message):
            self.check(indptr, self.INDICES, width=width)

    def test_a_value_for_each_index(self):
        with pytest.raises(ValueError, match="expected 6 values"):
            self.check(self.INDPTR, self.INDICES, n_values=5)

    @pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
    def test_rows_refuse_it_when_they_are_made(self, kind):
        X = kind((np.ones(6), np.array(self.INDICES), np.array(self.INDPTR)), shape=(3, 4))
        X.indices[4] = 10**6  # behind scipy's back
        with pytest.raises(ValueError, match="row 2 has an entry in column 1000000, expected columns 0 to 3"):
            Rows(X)

    def test_rows_put_columns_in_order_and_add_up_those_that_are_there_twice(self, rng):
        indptr, indices = np.array([0, 3, 5]), np.array([2, 0, 2, 1, 1])
        X = sp.csr_array((np.array([1.0, 2.0, 4.0, 8.0, 16.0]), indices, indptr), shape=(2, 3))
        X.has_canonical_format = True  # as a scipy matrix may say
        rows = Rows(X)
        np.testing.assert_array_equal(rows.in_memory().matrix.toarray(), [[2.0, 0.0, 5.0], [0.0, 24.0, 0.0]])
        np.testing.assert_array_equal(
            rows.moments().variance, Rows(rows.in_memory().matrix.toarray()).moments().variance
        )
        assert X.indices.tolist() == [2, 0, 2, 1, 1]  # the caller's matrix is left alone

    def test_rows_take_arrays_that_are_slices_or_of_two_widths(self, rng):
        X = sp.csr_array(rng.normal(size=(40, 30)) * (rng.random((40, 30)) < 0.2))
        sliced = X.copy()
        sliced.data, sliced.indices = np.repeat(X.data, 2)[::2], np.repeat(X.indices, 2)[::2]
        widths = X.copy()
        widths.indptr = X.indptr.astype(np.int64)
        w = rng.normal(size=30)
        for odd in (sliced, widths):
            np.testing.assert_array_equal(Rows(odd).scores(w), Rows(X).scores(w))
        assert not sliced.data.flags.c_contiguous
        assert widths.indptr.dtype != widths.indices.dtype
        assert Rows(X).in_memory().matrix is X


class TestRowKernels:
    X = sp.csr_array(np.arange(12.0).reshape(3, 4))

    @pytest.fixture
    def csr(self) -> _kernels.CsrMatrix:
        """Not of the class, which may outlive the extension, as nanobind says at the interpreter's end."""
        return _kernels.CsrMatrix(self.X.indptr, self.X.indices, self.X.data, 3, 4)

    @pytest.mark.parametrize("rows", [ints(3), ints(-1), ints(0, 1, 2, 2**40)])
    @pytest.mark.parametrize("kind", ["csr", "dense"])
    def test_rows_that_are_not_there(self, kind, rows, csr):
        matrix = csr if kind == "csr" else self.X.toarray()
        with pytest.raises(ValueError, match="expected rows below 3"):
            getattr(_kernels, f"scores_{kind}")(matrix, rows, zeros(1, 4), zeros(rows.size, 1), 1)
        with pytest.raises(ValueError, match="expected rows below 3"):
            getattr(_kernels, f"combine_{kind}")(matrix, rows, zeros(rows.size, 1), zeros(1, 4), 1)

    def test_lengths(self, csr):
        rows, dense = ints(0, 2), self.X.toarray()
        with pytest.raises(ValueError, match="expected 2 rows of scores"):
            _kernels.scores_csr(csr, rows, zeros(1, 4), zeros(3, 1), 1)
        with pytest.raises(ValueError, match="expected 3 scores a row"):
            _kernels.scores_csr(csr, rows, zeros(3, 4), zeros(2, 1), 1)
        with pytest.raises(ValueError, match="expected 2 row weights"):
            _kernels.combine_csr(csr, rows, zeros(1, 1), zeros(1, 4), 1)
        with pytest.raises(ValueError, match="expected 4 weights"):
            _kernels.scores_dense(dense, rows, zeros(1, 5), zeros(2, 1), 1)
        with pytest.raises(ValueError, match="expected 4 sums"):
            _kernels.combine_dense(dense, rows, zeros(2, 1), zeros(1, 3), 1)
        with pytest.raises(ValueError, match="expected 1 rows of sums"):
            _kernels.combine_dense(dense, rows, zeros(2, 1), zeros(2, 4), 1)
        with pytest.raises(ValueError, match="at least one thread"):
            _kernels.scores_csr(csr, rows, zeros(1, 4), zeros(2, 1), 0)

    def test_another_type_or_layout_is_a_type_error(self):
        rows = ints(0)
        for X in (self.X.toarray().astype(np.int64), np.asfortranarray(self.X.toarray())):
            with pytest.raises(TypeError):
                _kernels.scores_dense(X, rows, zeros(1, 4), zeros(1, 1), 1)
        with pytest.raises(TypeError):
            _kernels.scores_dense(self.X.toarray(), rows, zeros(1, 8)[:, ::2], zeros(1, 1), 1)


TOO_FEW_OR_MANY = r"expected at least one positive and one negative, and fewer than 2\^30 of each"


class TestOracles:
    TABLES = LOSSES["ap"]().tables(2, 3)

    def ranking(self) -> _kernels.RankingOracle:
        oracle = _kernels.RankingOracle("bucket", True, 1)
        oracle.add_tables(3, *self.TABLES)
        return oracle

    def measure(self) -> _kernels.MeasureOracle:
        discount = LOSSES["ndcg-chakrabarti"]().discount(5)
        return _kernels.MeasureOracle("ndcg-chakrabarti", 0.0, discount, 1)

    def both(self) -> list[tuple[Any, Callable[..., None]]]:
        ranking, measure = self.ranking(), self.measure()
        return [
            (ranking, lambda first: ranking.add_tasks(ints(*first), ints(*(0 for _ in first)), zeros(len(first)))),
            (
                measure,
                lambda first: measure.add_tasks(
                    ints(*first), ints(*(2 for _ in first)), ints(*(3 for _ in first)), zeros(len(first))
                ),
            ),
        ]

    def test_scores_and_weights_hold_the_tasks_rows(self):
        for oracle, add in self.both():
            add([0, 5])
            oracle(zeros(10), zeros(10))
            for scores, weights in ((9, 10), (10, 9), (11, 11)):
                with pytest.raises(ValueError, match="expected 10 "):
                    oracle(zeros(scores), zeros(weights))

    @pytest.mark.parametrize("first", [[5, 0], [0, 4], [-1], [0, 5, 0]])
    def test_queries_share_no_rows(self, first):
        for _, add in self.both():
            with pytest.raises(ValueError, match="rows"):
                add(first)

    def test_one_query(self):
        for oracle in (self.ranking(), self.measure()):
            oracle.one(zeros(2), zeros(3), zeros(2), zeros(3))
            for sizes in ((2, 4, 2, 4), (2, 3, 1, 3), (2, 3, 2, 2), (0, 3, 0, 3)):
                with pytest.raises(ValueError, match="expected"):
                    oracle.one(*(zeros(n) for n in sizes))

    def test_one_query_of_mixed_rows(self):
        relevant = np.array([False, True, False, True, False])
        for oracle in (self.ranking(), self.measure()):
            oracle.mixed(zeros(5), relevant, zeros(5), np.zeros(3, dtype=np.int32))
            for n_scores, n_weights, n_ranks in ((4, 5, 3), (5, 4, 3), (5, 5, 2)):
                with pytest.raises(ValueError, match="expected"):
                    oracle.mixed(zeros(n_scores), relevant, zeros(n_weights), np.zeros(n_ranks, dtype=np.int32))
            with pytest.raises(ValueError, match="expected"):
                oracle.mixed(zeros(5), np.zeros(5, dtype=bool), zeros(5), np.zeros(5, dtype=np.int32))

    def test_tables(self):
        weights, discount = self.TABLES
        oracle = self.ranking()
        for n_neg, *arrays in (
            (4, weights, discount),
            (3, weights, discount[1:]),
        ):
            with pytest.raises(ValueError, match="a discount for each position"):
                oracle.add_tables(n_neg, *arrays)
        for n_neg, of_positives in ((3, zeros(0)), (0, weights), (2**30, weights)):
            with pytest.raises(ValueError, match=TOO_FEW_OR_MANY):
                oracle.add_tables(n_neg, of_positives, discount)
        with pytest.raises(ValueError, match="tables that were added"):
            oracle.add_tasks(ints(0), ints(1), zeros(1))
        with pytest.raises(ValueError, match="tables that were added"):
            oracle.add_tasks(ints(0), ints(-1), zeros(1))
        with pytest.raises(ValueError, match="a coefficient for each task"):
            oracle.add_tasks(ints(0), ints(0), zeros(2))
        with pytest.raises(ValueError, match="expected tables"):
            _kernels.RankingOracle("qs", True, 1).one(*(zeros(n) for n in (2, 3, 2, 3)))

    def test_tasks_of_the_same_rows_have_the_same_sizes(self):
        oracle = self.ranking()
        oracle.add_tables(2, *LOSSES["ap"]().tables(2, 2))
        with pytest.raises(ValueError, match="to have the same rows"):
            oracle.add_tasks(ints(0, 0), ints(0, 1), zeros(2))

    def test_a_measure_needs_its_discounts(self):
        discount = LOSSES["ndcg-chakrabarti"]().discount(4)
        oracle = _kernels.MeasureOracle("ndcg-chakrabarti", 0.0, discount, 1)
        with pytest.raises(ValueError, match="a discount for each position"):
            oracle.add_tasks(ints(0), ints(2), ints(3), zeros(1))
        for n_pos, n_neg in ((2, 0), (0, 2), (2**30, 1), (1, 2**30)):
            with pytest.raises(ValueError, match=TOO_FEW_OR_MANY):
                oracle.add_tasks(ints(0), ints(n_pos), ints(n_neg), zeros(1))
        for form in ("ndcg@k", "p@k", "set-p@k", "set-r@k"):
            with pytest.raises(ValueError, match="k of at least 1"):
                _kernels.MeasureOracle(form, 0.0, zeros(0), 1)

    def test_names(self):
        with pytest.raises(ValueError, match="unknown algorithm"):
            _kernels.RankingOracle("bubble", True, 1)
        with pytest.raises(ValueError, match="unknown measure"):
            _kernels.MeasureOracle("bubble", 1.0, zeros(0), 1)


class TestQp:
    @pytest.mark.parametrize("sizes", [(3, 2, 2, 2), (2, 3, 2, 2), (2, 2, 3, 2), (2, 2, 2, 3)])
    def test_lengths(self, sizes):
        offsets, soft, names, start = sizes
        with pytest.raises(ValueError, match="expected"):
            _kernels.ActiveSet().solve(
                np.eye(2),
                zeros(offsets),
                np.ones(soft, dtype=bool),
                1.0,
                np.arange(names),
                zeros(start),
                1e-6,
            )

    def test_rows_stand_one_after_another(self):
        whole = np.eye(4)
        arguments = zeros(2), np.ones(2, dtype=bool), 1.0, np.arange(2), zeros(2), 1e-6
        _kernels.ActiveSet().solve(whole[:2, :2], *arguments)
        for gram in (whole[:2, :2].T, whole[::-1, ::2][:2], np.eye(3)[:2, :3]):
            with pytest.raises(ValueError, match="expected"):
                _kernels.ActiveSet().solve(gram, *arguments)

    def test_lengths_of_a_step(self):
        arguments = np.eye(2), zeros(2), np.ones(2, dtype=bool), 1.0, np.arange(2)
        with pytest.raises(ValueError, match="expected 2 offsets from the point"):
            _kernels.LevelSteps().step(*arguments, zeros(3), 1.0, 0.0, 1.0, 1.0, 1e-6)


class TestPairSums:
    ARRAYS: tuple[np.ndarray, ...] = (
        ints(0, 2, 5),  # starts
        ints(0, 1),  # classes
        ints(0, 2),  # queries
        ints(0, 0, 1),  # below: class 1 is preferred to class 0
        ints(0),
        ints(1),
        ints(0, 1, 1),  # above
        ints(1),
        ints(2),
    )

    def make(self, arrays=ARRAYS, objective="logistic", summation="auto", fourier=None, weights=None, threads=1):
        return _kernels.PairSums(objective, summation, fourier, *arrays, weights, threads)

    def test_lengths(self):
        sums = self.make()
        assert sums.pairs == 6
        sums(zeros(5), zeros(5), 1.0, True)
        for scores, slopes in ((4, 5), (5, 6), (6, 5)):
            with pytest.raises(ValueError, match="expected 5 "):
                sums(zeros(scores), zeros(slopes), 1.0, True)
        assert self.make(weights=zeros(5)).weight == 0.0
        with pytest.raises(ValueError, match="expected a weight for each row"):
            self.make(weights=zeros(4))

    @over(
        ("which", "array"),
        [
            (0, ints(0, 5)),
            (0, ints(0, 6, 5)),
            (0, ints(1, 2, 5)),
            (1, ints(0, 2)),
            (1, ints(-1, 1)),
            (1, ints(1, 0)),
            (2, ints(0, 3)),
            (2, ints()),
            (3, ints(0, 0, 2)),
            (3, ints(0)),
            (5, ints(1, 1)),
            (6, ints(0, 2, 1)),
        ],
    )
    def test_arrays_that_do_not_fit_together(self, which, array):
        arrays = list(self.ARRAYS)
        arrays[which] = array
        with pytest.raises(ValueError, match="expected"):
            self.make(arrays)

    def test_names_and_series(self):
        with pytest.raises(ValueError, match="unknown objective"):
            self.make(objective="hinge")
        with pytest.raises(ValueError, match="unknown summation"):
            self.make(summation="at once")
        with pytest.raises(ValueError, match="1 to 64 terms"):
            self.make(objective="erfc", summation="fourier", fourier=(0.1, 65, 3.0, 0.5))
        with pytest.raises(ValueError, match="beyond its cells"):
            self.make(objective="erfc", summation="fourier", fourier=(0.1, 8, 0.1, 0.5))


def test_the_parser_refuses_limits_that_int32_cannot_hold():
    with pytest.raises(ValueError, match="int32"):
        _kernels.SvmlightParser(narrow_limit=2**31)
    with pytest.raises(ValueError, match="at least one thread"):
        _kernels.SvmlightParser(threads=0)
    with pytest.raises(ValueError, match="fill_if from 0 to 4"):
        _kernels.SvmlightParser(fill_if=float("nan"))
