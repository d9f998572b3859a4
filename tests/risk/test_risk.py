"""The risk over many queries, against the queries one by one: order of rows, weights, grades, threads."""

from __future__ import annotations

import numpy as np
import pytest
from graded_twin import graded_hinge
from trainings import make_risk

from apsvm import most_violated_ranking
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.oracles import make_oracle
from apsvm.risk import NothingToRankError

SIZES = [1, 2, 3, 5, 8, 20, 21, 40, 100, 300]


@pytest.fixture
def queries(rng):
    """Scattered rows of queries of many sizes, some without a pair to rank: X (n, 4), grades 0..3 and groups."""
    groups = rng.permutation(np.repeat(np.arange(3 * len(SIZES)) - 7, SIZES * 3))
    X = np.round(rng.normal(size=(groups.size, 4)), 1)
    grades = rng.integers(0, 4, size=groups.size).astype(float)
    grades[groups == 3] = 0.0
    grades[groups == 4] = 2.0
    return X, grades, groups


def risk_of(X, grades, groups, name, *, oracle="auto", threads=1, graded=False, query_weights=None):
    loss = make_loss(name)
    return make_risk(
        Rows(X, threads=threads),
        grades > 0,
        loss,
        make_oracle(oracle, loss),
        groups=groups,
        grades=grades if graded else None,
        query_weights=query_weights,
    )


def both_classes(grades, groups):
    return [g for g in np.unique(groups) if 0 < (grades[groups == g] > 0).sum() < (groups == g).sum()]


@pytest.mark.parametrize(
    ("name", "oracle"),
    [("ap", "auto"), ("ap", "greedy"), ("ap", "select"), ("ndcg", "qs"), ("mrr", "bucket"), ("p@3", "auto")],
)
def test_the_mean_of_the_queries_one_by_one(queries, name, oracle, rng):
    X, grades, groups = queries
    risk = risk_of(X, grades, groups, name, oracle=oracle)
    used = both_classes(grades, groups)
    assert 10 < len(used) < np.unique(groups).size - 5
    assert (risk.queries, risk.queries_skipped) == (len(used), np.unique(groups).size - len(used))
    for scale in (0.0, 0.1, 3.0):
        w = scale * rng.normal(size=4)
        values, plane = [], np.zeros(4)
        for g in used:
            rows = groups == g
            found = most_violated_ranking(X[rows] @ w, grades[rows], loss=name)
            values.append(found.value)
            plane += found.row_weights @ X[rows] / len(used)
        here = risk(w)
        assert here.value == pytest.approx(np.mean(values), rel=1e-12)
        if scale == 3.0:  # no ties between rankings
            np.testing.assert_allclose(here.plane, plane, atol=1e-12)


def test_weighted_queries(queries, rng):
    X, grades, groups = queries
    w = rng.normal(size=4)
    used = both_classes(grades, groups)
    weights = {int(g): float(k % 4) for k, g in enumerate(used)}  # every fourth has none
    values = [most_violated_ranking(X[groups == g] @ w, grades[groups == g]).value for g in used]
    risk = risk_of(X, grades, groups, "ap", query_weights=weights)
    expected = np.average(values, weights=[weights[int(g)] for g in used])
    assert risk(w).value == pytest.approx(expected, rel=1e-12)
    assert risk.queries == sum(weight > 0 for weight in weights.values())
    # Not named: one.
    risk = risk_of(X, grades, groups, "ap", query_weights={int(used[0]): 5.0})
    expected = np.average(values, weights=[5.0] + [1.0] * (len(used) - 1))
    assert risk(w).value == pytest.approx(expected, rel=1e-12)
    with pytest.raises(NothingToRankError):
        risk_of(X, grades, groups, "ap", query_weights=dict.fromkeys(np.unique(groups).tolist(), 0.0))


@pytest.mark.parametrize("name", ["ndcg", "ndcg(linear)", "ndcg@5", "ndcg-chakrabarti"])
def test_graded_losses_are_the_sum_of_their_levels(queries, name, rng):
    X, grades, groups = queries
    loss = make_loss(name)
    risk = risk_of(X, grades, groups, name, graded=True)
    used = [g for g in np.unique(groups) if np.unique(grades[groups == g]).size > 1]
    assert risk.queries == len(used) > len(both_classes(grades, groups))
    for scale in (0.0, 0.3, 3.0):
        w = scale * rng.normal(size=4)
        values, plane = [], np.zeros(4)
        for g in used:
            rows = groups == g
            found = graded_hinge(X[rows] @ w, grades[rows], loss)
            values.append(found.value)
            plane += found.row_weights @ X[rows] / len(used)
        here = risk(w)
        assert here.value == pytest.approx(np.mean(values), rel=1e-12)
        if scale == 3.0:
            np.testing.assert_allclose(here.plane, plane, atol=1e-12)


def test_graded_levels_without_a_kernel_of_their_own(queries, rng):
    """The tasks one after another in Python (an oracle without bind_queries) against the native sum."""
    X, grades, groups = queries
    small = np.isin(groups, [g for g in np.unique(groups) if (groups == g).sum() <= 8])
    X, grades, groups = X[small], grades[small], groups[small]
    w = rng.normal(size=4)
    judge = risk_of(X, grades, groups, "ndcg", oracle="brute-force", graded=True)(w)
    here = risk_of(X, grades, groups, "ndcg", graded=True)(w)
    assert here.value == pytest.approx(judge.value, rel=1e-12)
    np.testing.assert_allclose(here.plane, judge.plane, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("sizes", [[20] * 3000, [60_000, 5, 7, 900], [300_000]], ids=["many", "one large", "one"])
def test_threads_change_nothing(sizes, graded, rng):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(groups.size, 3))
    grades = np.maximum(np.round(X[:, 0] + rng.normal(size=groups.size)), 0.0)
    found = []
    for threads in (1, 2, 3):
        risk = risk_of(X, grades, groups, "ndcg", threads=threads, graded=graded)
        for w in (np.array([1.0, -0.5, 0.2]), np.array([0.9, -0.4, 0.1])):
            here = risk(w)
            found.append((here.value, here.plane))
    for at in range(2, len(found)):
        assert found[at][0] == found[at - 2][0]
        np.testing.assert_array_equal(found[at][1], found[at - 2][1])


def test_scores_too_far_apart_are_refused():
    """Differences of finite scores may overflow: then oracles would disagree, or give NaN."""
    loss = make_loss("ap")
    X = np.array([[1e308], [-1e308], [0.0], [1e307]])
    relevant = np.array([False, True, False, True])
    for name in ("bucket", "qs", "greedy"):
        risk = make_risk(Rows(X), relevant, loss, make_oracle(name, loss))
        with pytest.raises(FloatingPointError, match=r"scores from -1e.308 to 1e.308 are too far apart"):
            risk(np.ones(1))
        with pytest.raises(FloatingPointError, match="not finite"):
            risk(np.full(1, 10.0))
        assert np.isfinite(risk(np.full(1, 0.1)).value)
