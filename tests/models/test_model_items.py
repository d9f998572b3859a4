"""Models of items: there and back, damaged, and their scores against the definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from model_files import HEADER

from apsvm.models.items import ItemFactors, ItemRanker


@pytest.fixture
def items(rng) -> ItemRanker:
    arrays = (rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), rng.normal(size=6))
    return ItemRanker(ItemFactors(*(array.astype(np.float32) for array in arrays)), HEADER)


def test_item_scores_against_their_definition(items, rng):
    X = (rng.random((9, 6)) < 0.4) * rng.choice([-1.0, 0.5, 2.0], size=(9, 6))
    X[0], X[1] = 0.0, 1.0
    expected = np.full((9, 6), -np.inf)
    for user, y in np.ndindex(9, 6):
        liked = np.flatnonzero(X[user] > 0)
        h = items.factors.input[liked].mean(axis=0) if liked.size else np.zeros(3)
        if X[user, y] == 0:
            expected[user, y] = items.factors.bias[y] + items.factors.output[y] @ h
    for form in (X, sp.csr_array(X), sp.csc_array(X), X.astype(np.float32)):
        np.testing.assert_allclose(items.score(form), expected, rtol=1e-5)
        for scores, (best, values) in zip(expected, items.top(form, 3), strict=True):
            order = np.argsort(-scores, kind="stable")[: min(3, np.isfinite(scores).sum())]
            assert best.tolist() == order.tolist()
            np.testing.assert_allclose(values, scores[order], rtol=1e-5)
    with pytest.raises(ValueError, match=r"shape \(n, 6\), found \(9, 5\)"):
        items.score(X[:, :5])
    with pytest.raises(ValueError, match=r"shape \(n, 6\), found \(9, 5\)"):
        items.top(X[:, :5], 2)
