"""Every native entry, with arguments that do not fit: an error of the binding's, and the process lives on.

``scripts/dev/fuzz --target native`` goes on with other seeds, with the kernels built to stop at memory errors.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import fuzz_natives
import numpy as np
import pytest
from fuzz_natives import ENTRIES, Hostile
from over import over

from apsvm._native import _kernels
from apsvm.losses import make_loss
from tests.native.test_checks import TestPairSums, ints, zeros

#: Texts are damaged, and labellings asked for ranks, even where no argument is hostile.
MAY_FAIL = {"svmlight", "measure"}


def entries() -> list[str]:
    """Everything callable: functions, classes and their methods."""
    names = []
    for name, value in vars(_kernels).items():
        if inspect.isclass(value) and not issubclass(value, Exception):
            names += [name, *(method for method in vars(value) if not method.startswith("_"))]
        elif not name.startswith("_") and callable(value) and not inspect.isclass(value):
            names.append(name)
    return names


def test_no_entry_is_left_out():
    source = Path(fuzz_natives.__file__).read_text(encoding="utf-8")
    assert "getattr(_kernels, f" in source
    source += "scores_csr scores_dense combine_csr combine_dense"
    source += "ascending evaluated pairs queries_without_pairs"  # without arguments
    assert len(entries()) > 50
    assert [name for name in entries() if name not in source] == []


@over("name", ENTRIES)
def test_sound_calls_come_to_their_ends(name):
    for seed in range(20):
        try:
            ENTRIES[name](Hostile(seed, rate=0.0))
        except fuzz_natives.ERRORS:
            assert name in MAY_FAIL


@over("name", ENTRIES)
def test_hostile_calls_end_in_an_error_of_the_binding(name):
    errors = 0
    for seed in range(100):
        try:
            ENTRIES[name](Hostile(seed, rate=0.1))
        except fuzz_natives.ERRORS:
            errors += 1
    assert errors > 4


def nan_in(array: np.ndarray) -> np.ndarray:
    array[array.size // 2] = np.nan
    return array


class TestScoresWithoutAnOrder:
    """Sorting them would read beyond the array."""

    def test_of_oracles(self):
        oracle = _kernels.RankingOracle("greedy", True, 1)
        oracle.add_tables(3, *make_loss("ap").tables(2, 3))
        oracle.add_tasks(ints(0), ints(0), np.ones(1))
        relevant = np.array([True, False, False, True, False])
        for call in (
            lambda: oracle(nan_in(zeros(5)), zeros(5)),
            lambda: oracle(np.full(5, np.inf), zeros(5)),
            lambda: oracle.one(nan_in(zeros(2)), zeros(3), zeros(2), zeros(3)),
            lambda: oracle.one(zeros(2), nan_in(zeros(3)), zeros(2), zeros(3)),
            lambda: oracle.mixed(nan_in(zeros(5)), relevant, zeros(5), np.zeros(3, np.int32)),
        ):
            with pytest.raises(ValueError, match="expected finite scores"):
                call()

    def test_of_an_order(self):
        assert _kernels.descending_order(np.array([0.0, np.inf, -np.inf])).tolist() == [1, 0, 2]
        with pytest.raises(ValueError, match="found NaN"):
            _kernels.descending_order(nan_in(zeros(3)))

    def test_of_bags(self):
        with pytest.raises(ValueError, match="expected finite scores"):
            _kernels.top_of_bags(nan_in(zeros(3)), ints(0, 3), ints(2), ints(0, 0), 1)

    def test_of_pairs(self):
        sums = TestPairSums().make(objective="erfc", summation="chebyshev", threads=2)
        with pytest.raises(ValueError, match="expected finite scores"):
            sums(nan_in(zeros(5)), zeros(5), 1.0, True)
        sums = TestPairSums().make(objective="erfc", summation="fourier", fourier=(0.1, 8, 3.0, 0.05))
        with pytest.raises(ValueError, match="scores that cells can number"):
            sums(np.full(5, 1e308), zeros(5), 1.0, True)


class TestBoolsThatAreNone:
    """numpy calls any byte a bool; a kernel that adds them up would write beyond its arrays."""

    BYTES = np.array([0, 1, 2, 0, 1], dtype=np.uint8).view(np.bool_)

    def test_of_mixed_rows(self):
        oracle = _kernels.RankingOracle("bucket", True, 1)
        oracle.add_tables(3, *make_loss("ap").tables(2, 3))
        with pytest.raises(ValueError, match="marked by 0 and 1"):
            oracle.mixed(zeros(5), self.BYTES, zeros(5), np.zeros(3, np.int32))

    def test_of_planes(self):
        with pytest.raises(ValueError, match="marked soft by 0 and 1"):
            _kernels.ActiveSet().solve(np.eye(5), zeros(5), self.BYTES, 1.0, np.arange(5), zeros(5), 1e-6)
        with pytest.raises(ValueError, match="marked soft by 0 and 1"):
            _kernels.feasible(zeros(5), self.BYTES, 1.0)
        with pytest.raises(ValueError, match="expected 5 planes that are soft or not"):
            _kernels.feasible(zeros(5), np.ones(4, dtype=np.bool_), 1.0)


def test_labellings_have_no_ranks():
    oracle = _kernels.MeasureOracle("f(beta)", 1.0, zeros(0), 1)
    with pytest.raises(ValueError, match="labellings have no ranks"):
        oracle.mixed(zeros(3), np.array([True, False, False]), zeros(3), np.zeros(2, np.int32))


class TestPlanes:
    ARGUMENTS = np.eye(2), zeros(2), np.ones(2, dtype=np.bool_)

    @pytest.mark.parametrize("names", [(1, 0), (1, 1), (-1, 0)])
    def test_names_ascend(self, names):
        with pytest.raises(ValueError, match="names that ascend from 0"):
            _kernels.ActiveSet().solve(*self.ARGUMENTS, 1.0, ints(*names), zeros(2), 1e-6)

    def test_a_step_needs_names(self):
        with pytest.raises(ValueError, match="expected 2 names"):
            _kernels.LevelSteps().step(*self.ARGUMENTS, 1.0, ints(), zeros(2), 1.0, 0.0, 1.0, 1.0, 1e-6)

    @pytest.mark.parametrize("number", [np.nan, np.inf])
    def test_numbers_are_finite(self, number):
        start = np.array([0.0, number])
        for C, offsets, begin in ((number, zeros(2), zeros(2)), (1.0, start, zeros(2)), (1.0, zeros(2), start)):
            gram, _, soft = self.ARGUMENTS
            with pytest.raises(ValueError, match="expected finite"):
                _kernels.ActiveSet().solve(gram, offsets, soft, C, np.arange(2), begin, 1e-6)


def test_scores_too_far_apart_for_a_table_of_cells():
    """Their distance is infinite: it is no place in a table."""
    tables = make_loss("ap").tables(2, 2)
    row_weights = zeros(4)
    _kernels.solve_lists(
        "bucket", True, "ramp", np.array([-1e308, 1e308, 1e308, -1e308]), np.array([True, True, False, False]), None,
        ints(0), tables.weights, ints(0), tables.discount, zeros(1),
        np.empty(1, bool), row_weights, 1,
    )  # fmt: skip
    assert np.isfinite(row_weights).all()


@pytest.mark.parametrize("threads", [0, 2**16 + 1, -1])
def test_threads(threads):
    with pytest.raises((ValueError, TypeError), match=r"at least one thread|incompatible"):
        _kernels.scores_dense(np.zeros((1, 1)), None, zeros(1, 1), zeros(1, 1), threads)


def test_the_number_of_channels_may_be_anything():
    for channels, lists in ((2**63, 2), (2, 2**63), (0, 1), (1, 0)):
        with pytest.raises(ValueError, match="as many values for each list"):
            _kernels.decaying_sums(zeros(0), zeros(4), zeros(4), channels, lists, False, 1)
