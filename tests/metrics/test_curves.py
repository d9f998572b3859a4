"""The precision–recall curve against scikit-learn's, and its area against AP."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_curve

from apsvm.metrics import MetricError
from apsvm.metrics.curves import judged_curve, mean_curve
from apsvm.metrics.evaluate import evaluate


def area(steps):
    return np.diff(steps.recall, prepend=0.0) @ steps.precision


@pytest.mark.parametrize("levels", [3, 10**6])
def test_one_ranking(levels, rng):
    for _ in range(50):
        n = int(rng.integers(2, 40))
        scores = rng.integers(0, levels, size=n).astype(np.float64)
        relevant = np.arange(n) < rng.integers(1, n)
        found = judged_curve(scores, relevant)
        assert area(found.steps) == pytest.approx(average_precision_score(relevant, scores), abs=1e-12)
        assert found.ap == evaluate(["AP"], scores, relevant).values["AP"]
        assert found.base_rate == relevant.mean()
        precision, recall, _ = precision_recall_curve(relevant, scores)
        theirs = {(r, p) for r, p in zip(recall[:-1], precision[:-1], strict=True)}
        assert set(zip(found.steps.recall, found.steps.precision, strict=True)) <= theirs
        assert found.steps.recall[-1] == 1.0


def test_the_mean_over_queries(rng):
    scores = rng.integers(0, 8, size=200).astype(np.float64)
    groups = rng.integers(0, 30, size=200)
    grades = rng.integers(0, 3, size=200).astype(np.float64)
    found = judged_curve(scores, grades, 1.0, groups)
    result = evaluate(["AP"], scores, grades, groups, relevant_from=1.0)
    assert result.groups_skipped < 30
    assert found.ap == result.values["AP"]
    assert area(found.steps) == pytest.approx(found.ap, abs=1e-12)
    assert (np.diff(found.steps.recall) > 0).all()
    queries = [groups == group for group in range(30)]
    used = [rows for rows in queries if 0 < (grades[rows] >= 1).sum() < rows.sum()]
    curves = [judged_curve(scores[rows], grades[rows] >= 1) for rows in used]
    at = 0.3141
    by_hand = np.mean([curve.steps.precision[np.searchsorted(curve.steps.recall, at)] for curve in curves])
    assert found.steps.precision[np.searchsorted(found.steps.recall, at)] == pytest.approx(by_hand)
    mean = mean_curve([curve.steps for curve in curves])
    assert mean.recall.tolist() == found.steps.recall.tolist()
    assert mean.precision == pytest.approx(found.steps.precision)


def test_undefined():
    with pytest.raises(MetricError):
        judged_curve(np.ones(3), np.zeros(3, dtype=np.bool_))
    with pytest.raises(MetricError):
        judged_curve(np.ones(2), np.array([True, False]), None, np.array([1, 2]))
