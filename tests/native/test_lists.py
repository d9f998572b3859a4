"""Arguments of the kernels of ``apsvm.torch`` are checked, and the kernels agree with the oracles."""

from __future__ import annotations

import numpy as np
import pytest
from over import over

from apsvm._native import _kernels
from apsvm.losses import make_loss
from apsvm.oracles.inference import most_violated_ranking


def arguments(**changes):
    """Two lists of three rows, of which the second has two that count."""
    loss = make_loss("ap")
    first, second = loss.tables(1, 2), loss.tables(1, 1)
    given = {
        "algorithm": "bucket",
        "unimodal": True,
        "form": "hinge",
        "scores": np.array([[0.1, 0.3, -0.2], [1.0, 2.0, 7.0]]),
        "positive": np.array([[True, False, False], [False, True, True]]),
        "valid": np.array([[True, True, True], [True, True, False]]),
        "weights_begin": np.array([0, 1], dtype=np.int64),
        "weights": np.concatenate([first.weights, second.weights]),
        "discount_begin": np.array([0, 3], dtype=np.int64),
        "discount": np.concatenate([first.discount, second.discount]),
        "values": np.empty(2),
        "counts": np.empty(2, dtype=bool),
        "row_weights": np.empty((2, 3)),
        "threads": 1,
    }
    return given | changes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_are_queries(dtype):
    given = arguments(scores=arguments()["scores"].astype(dtype), row_weights=np.empty((2, 3), dtype=dtype))
    _kernels.solve_lists(*given.values())
    for at, positive in enumerate(([1, 0, 0], [0, 1])):
        expected = most_violated_ranking(given["scores"][at, : len(positive)], positive)
        assert given["values"][at] == pytest.approx(expected.value, abs=1e-15)
        np.testing.assert_allclose(given["row_weights"][at, : len(positive)], expected.row_weights, rtol=1e-7)
    assert given["row_weights"][1, 2] == 0.0
    assert given["counts"].all()


@over(
    ("changes", "says"),
    [
        ({"algorithm": "quick"}, "unknown algorithm quick"),
        ({"form": "cliff"}, "unknown form cliff"),
        ({"scores": np.zeros(5)}, "expected 6 scores"),
        ({"positive": np.zeros((1, 2, 3), dtype=bool)}, "one list, or lists of as many rows"),
        ({"positive": np.array(True)}, "one list, or lists of as many rows"),
        ({"positive": np.array([[1, 0, 0], [0, 0, 2]], dtype=np.uint8).view(bool)}, "marks of 0 and 1"),
        ({"valid": np.array([[1, 0, 0], [0, 0, 255]], dtype=np.uint8).view(bool)}, "marks of 0 and 1"),
        ({"valid": np.ones(5, dtype=bool)}, "expected 6 marks of rows that count"),
        ({"weights_begin": np.array([0, 2])}, "weights for the positives of each list"),
        ({"weights_begin": np.array([0, 3])}, "weights for the positives of each list"),
        ({"weights_begin": np.array([-1, 1])}, "weights for the positives of each list"),
        ({"weights_begin": np.array([0])}, "expected 2 begins of weights"),
        ({"discount_begin": np.array([0, 4])}, "discounts for the positions of each list"),
        ({"discount_begin": np.array([2**62, 3])}, "discounts for the positions of each list"),
        ({"discount_begin": np.array([0])}, "expected 2 begins of discounts"),
        ({"values": np.empty(1)}, "expected 2 values"),
        ({"counts": np.empty(3, dtype=bool)}, "expected 2 marks of lists that count"),
        ({"row_weights": np.empty(5)}, "expected 6 row weights"),
        ({"threads": 0}, "at least one thread"),
    ],
)
def test_lists_that_do_not_fit(changes, says):
    with pytest.raises(ValueError, match=says):
        _kernels.solve_lists(*arguments(**changes).values())


@pytest.mark.parametrize(
    "changes", [{"row_weights": np.empty(6, dtype=np.float32)}, {"positive": np.zeros((2, 3), dtype=np.uint8)}]
)
def test_types_that_do_not_fit(changes):
    with pytest.raises(TypeError):
        _kernels.solve_lists(*arguments(**changes).values())


def test_classes_are_counted():
    positive, valid = np.array([[1, 0, 1], [0, 0, 0]], dtype=bool), np.array([[1, 1, 0], [0, 0, 1]], dtype=bool)
    assert _kernels.count_classes(positive, None) == [(2, 1), (0, 3)]
    assert _kernels.count_classes(positive, valid) == [(1, 1), (0, 1)]
    assert _kernels.count_classes(positive[0], None) == [(2, 1)]
    assert _kernels.count_classes(positive[:, :0], None) == [(0, 0), (0, 0)]


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
