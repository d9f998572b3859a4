"""AP of rows held out as one list, with an interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.metrics import average_precision_score

from apsvm.selection.choose import SPREAD, pooled_ap
from apsvm.selection.race import OutOfFold


def folds_of(rng, n=300, k=3):
    relevant = rng.random(n) < 0.2
    scores = rng.normal(size=n) + 1.5 * relevant
    parts = [np.arange(at, n, k) for at in range(k)]
    nothing = np.empty(0)
    return relevant, [OutOfFold(part, scores[part], nothing.astype(int), nothing) for part in parts]


def test_each_fold_in_a_scale_of_its_own(rng):
    relevant, folds = folds_of(rng)
    scores = np.empty(relevant.size)
    for fold in folds:
        scores[fold.test] = (fold.scores - fold.scores.mean()) / fold.scores.std()
    estimate = pooled_ap(folds, relevant)
    assert estimate.value == pytest.approx(average_precision_score(relevant, scores), abs=1e-12)
    other = [fold._replace(scores=10.0**at * fold.scores - at) for at, fold in enumerate(folds)]
    assert pooled_ap(other, relevant) == pytest.approx(estimate, abs=1e-12)


def test_the_ends_are_those_shares_at_which_the_value_is_barely_likely(rng):
    relevant, folds = folds_of(rng)
    estimate, count = pooled_ap(folds, relevant), relevant.sum() / SPREAD

    def beyond(share):
        return abs(estimate.value - share) / np.sqrt(share * (1.0 - share) / count) - 1.6449

    assert estimate.low == pytest.approx(brentq(beyond, 1e-9, estimate.value - 1e-9), abs=1e-9)
    assert estimate.high == pytest.approx(brentq(beyond, estimate.value + 1e-9, 1.0 - 1e-9), abs=1e-9)


def test_scores_that_are_all_the_same(rng):
    relevant, folds = folds_of(rng)
    constant = [fold._replace(scores=np.zeros(fold.scores.size)) for fold in folds]
    assert pooled_ap(constant, relevant).value == pytest.approx(relevant.mean())
