"""Files of models of several components: round trips, scores, and every kind of damage is a ModelError."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm import ComponentRanker, RankerSet
from apsvm.models.header import Header, LabelKind, Labels

HEADER = Header(family="structured-svm", loss="ap", C=1.0, settings={"components": 3})


@pytest.fixture
def ranker(rng) -> ComponentRanker:
    return ComponentRanker(rng.normal(size=(3, 5)), rng.normal(size=3), HEADER)


@pytest.fixture
def ranker_set(rng) -> RankerSet:
    headers = [
        replace(HEADER, C=float(label), labels=Labels(kind=LabelKind.ONE_LABEL, positive=float(label)))
        for label in (1, 2, 5)
    ]
    rankers = [ComponentRanker(rng.normal(size=(3, 4)), rng.normal(size=3), header) for header in headers]
    return RankerSet(rankers, replace(HEADER, labels=Labels(kind=LabelKind.CLASSES)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores(ranker, rng, dtype):
    X = rng.normal(size=(20, 5)).astype(dtype)
    X[rng.random(X.shape) < 0.4] = 0
    expected = X.astype(np.float64) @ ranker.coef.T + ranker.intercepts
    for form in (X, np.asfortranarray(X), sp.csr_array(X), X.tolist()):
        np.testing.assert_allclose(ranker.score_components(form), expected, rtol=1e-12)
        np.testing.assert_allclose(ranker.score(form), expected.max(axis=1), rtol=1e-12)
        np.testing.assert_array_equal(ranker.leading(form), expected.argmax(axis=1))
        np.testing.assert_array_equal(ranker.score(form, threads=2), ranker.score(form))
    for h in range(3):
        given = ranker.contributions(X, h)[:].sum(axis=1) + ranker.intercepts[h]
        np.testing.assert_allclose(given, expected[:, h], rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match=r"shape \(n, 5\), found \(20, 4\)"):
        ranker.score(X[:, :4])


def test_a_class_of_a_set_scores_as_alone(ranker_set, rng):
    X = rng.normal(size=(20, 4))
    scores = ranker_set.score(X)
    for j, label in enumerate(ranker_set.classes.tolist()):
        alone = ranker_set.ranker(label)
        np.testing.assert_array_equal(scores[:, j], alone.score(X))
        assert label == alone.header.C
    with pytest.raises(KeyError):
        ranker_set.ranker(3.0)
