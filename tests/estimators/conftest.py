"""Rows that many tests share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray


class Data(NamedTuple):
    """X (n, 6); y (n,) grades 0..3; qid (n,), in no order, of seven sizes; relevant (n,) bool."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    qid: NDArray[np.int64]
    relevant: NDArray[np.bool_]


@pytest.fixture
def data(rng: np.random.Generator) -> Data:
    n = 240
    X = rng.normal(size=(n, 6))
    y = np.clip(np.round(X[:, 0] - 0.7 * X[:, 1] + 0.8 * rng.normal(size=n)), 0, 3).astype(np.int64)
    qid = rng.integers(0, 7, size=n)
    assert np.unique(y).size == 4
    assert np.unique(np.bincount(qid)).size > 1
    return Data(X, y, qid, y >= 2)
