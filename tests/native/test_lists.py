"""What crosses into the kernels of ``apsvm.torch`` is checked, and the kernels answer as the oracles do."""

from __future__ import annotations

import numpy as np
import pytest
from over import over

from apsvm._native import _kernels
from apsvm.losses import make_loss
from apsvm.oracles.inference import most_violated_ranking

NONE = np.empty(0, dtype=np.uint8)


def arguments(**changes):
    """Two lists, of three and of two rows."""
    loss = make_loss("ap")
    first, second = loss.tables(1, 2), loss.tables(1, 1)
    given = {
        "algorithm": "bucket",
        "unimodal": True,
        "form": "hinge",
        "scores": np.array([0.1, 0.3, -0.2, 1.0, 2.0]),
        "starts": np.array([0, 3, 5], dtype=np.int64),
        "positive": np.array([1, 0, 0, 0, 1], dtype=np.uint8),
        "valid": NONE,
        "weights_begin": np.array([0, 1], dtype=np.int64),
        "weights": np.concatenate([first.weights, second.weights]),
        "discount_begin": np.array([0, 3], dtype=np.int64),
        "discount": np.concatenate([first.discount, second.discount]),
        "values": np.empty(2),
        "counts": np.empty(2, dtype=bool),
        "row_weights": np.empty(5),
        "threads": 1,
    }
    return given | changes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_are_queries(dtype):
    given = arguments(scores=np.array([0.1, 0.3, -0.2, 1.0, 2.0], dtype=dtype), row_weights=np.empty(5, dtype=dtype))
    _kernels.solve_lists(*given.values())
    for at, (rows, positive) in enumerate(((slice(0, 3), [1, 0, 0]), (slice(3, 5), [0, 1]))):
        expected = most_violated_ranking(given["scores"][rows], positive)
        assert given["values"][at] == pytest.approx(expected.value, abs=1e-15)
        np.testing.assert_allclose(given["row_weights"][rows], expected.row_weights, rtol=1e-7)
    assert given["counts"].all()


@over(
    ("changes", "says"),
    [
        ({"algorithm": "quick"}, "unknown algorithm quick"),
        ({"form": "cliff"}, "unknown form cliff"),
        ({"scores": np.zeros(4)}, "expected 5 scores"),
        ({"starts": np.array([0, 3, 6])}, "lists from the first row to the last"),
        ({"starts": np.array([1, 3, 5])}, "lists from the first row to the last"),
        ({"starts": np.empty(0, dtype=np.int64)}, "lists from the first row to the last"),
        ({"starts": np.array([0, 7, 5])}, "lists that ascend"),
        ({"positive": np.array([1, 0, 0, 0, 2], dtype=np.uint8)}, "marks of 0 and 1"),
        ({"valid": np.array([1, 0, 0, 0, 255], dtype=np.uint8)}, "marks of 0 and 1"),
        ({"valid": np.ones(4, dtype=np.uint8)}, "expected 5 marks of rows that count"),
        ({"weights_begin": np.array([0, 2])}, "weights for the positives of each list"),
        ({"weights_begin": np.array([0, 3])}, "weights for the positives of each list"),
        ({"weights_begin": np.array([-1, 1])}, "weights for the positives of each list"),
        ({"weights_begin": np.array([0])}, "expected 2 begins of weights"),
        ({"discount_begin": np.array([0, 4])}, "discounts for the positions of each list"),
        ({"discount_begin": np.array([2**62, 3])}, "discounts for the positions of each list"),
        ({"discount_begin": np.array([0])}, "expected 2 begins of discounts"),
        ({"values": np.empty(1)}, "expected 2 values"),
        ({"counts": np.empty(3, dtype=bool)}, "expected 2 marks of lists that count"),
        ({"row_weights": np.empty(6)}, "expected 5 row weights"),
        ({"threads": 0}, "at least one thread"),
    ],
)
def test_lists_that_do_not_fit(changes, says):
    with pytest.raises(ValueError, match=says):
        _kernels.solve_lists(*arguments(**changes).values())


@pytest.mark.parametrize(
    "changes", [{"row_weights": np.empty(5, dtype=np.float32)}, {"positive": np.zeros(5, dtype=bool)}]
)
def test_types_that_do_not_fit(changes):
    with pytest.raises(TypeError):
        _kernels.solve_lists(*arguments(**changes).values())


def test_classes_are_counted():
    starts, positive = np.array([0, 3, 3, 5]), np.array([1, 0, 1, 0, 0], dtype=np.uint8)
    valid = np.array([1, 1, 0, 0, 1], dtype=np.uint8)
    for mask, sizes in ((NONE, [(2, 1), (0, 0), (0, 2)]), (valid, [(1, 1), (0, 0), (0, 1)])):
        assert _kernels.count_classes(starts, positive, mask) == sizes


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((6, 8, 8, 2, 1, 1), "expected 3 decays"),
        ((3, 8, 7, 2, 1, 1), "expected 8 sums"),
        ((3, 9, 9, 2, 1, 1), "as many values for each list"),
        ((3, 8, 8, 0, 1, 1), "as many values for each list"),
        ((3, 8, 8, 2, 1, 0), "at least one thread"),
    ],
)
def test_recurrences_that_do_not_fit(sizes, says):
    decays, values, sums, channels, lists, threads = sizes
    with pytest.raises(ValueError, match=says):
        _kernels.decaying_sums(np.ones(decays), np.ones(values), np.ones(sums), channels, lists, False, threads)
