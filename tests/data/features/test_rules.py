"""Rules: the boosting against one written plainly, the leaves against their conditions, the sample, and the words."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from over import over

from apsvm._native import _kernels
from apsvm.data.features import FeatureMapError, binning, learn_map, map_of_arrays, rules
from apsvm.data.features.binning import binned, rows_to_learn_from


@pytest.fixture
def X(rng):
    X = rng.normal(size=(400, 4))
    X[:, 2] = np.round(2.0 * X[:, 2])
    X[rng.random(X.shape) < 0.3] = 0.0
    return X


@pytest.fixture
def y(X, rng):
    return ((X[:, 0] * X[:, 1] > 0.2) ^ (rng.random(400) < 0.05)).astype(float)


def plain_leaves(X, targets, trees, depth, logistic):
    """Boosting on all rows and features without noise, by the definition.

    For each tree the rows (bool) of each leaf, and the scores of each target."""
    n = len(X)
    scores = [np.full(n, np.log((y.sum() + 0.5) / (n - y.sum() + 0.5)) if logistic else y.mean()) for y in targets]
    grown = []
    for tree in range(trees):
        k = tree % len(targets)
        fit = 1.0 / (1.0 + np.exp(-scores[k])) if logistic else scores[k]
        slope, curvature = targets[k] - fit, fit * (1.0 - fit) if logistic else np.ones(n)
        leaves = [np.ones(n, dtype=bool)]
        for _ in range(depth):
            leaves = best_halves(X, slope, leaves)
        for leaf in leaves:
            if leaf.any():
                step = rules.RATE * slope[leaf].sum() / (curvature[leaf].sum() + rules.LEAF_PRIOR)
                scores[k][leaf] += np.clip(step, -1.0, 1.0) if logistic else step
        grown.append(leaves)
    return grown, scores


def best_halves(X, slope, leaves):
    def length(nodes):
        return sum(slope[rows].sum() ** 2 / (rows.sum() + rules.PRIOR) for rows in nodes)

    most, best = length(leaves) + 1e-12, [half for rows in leaves for half in (rows, np.zeros_like(rows))]
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        for low, high in pairwise(values):
            left = X[:, j] <= (low + high) / 2.0
            halves = [half for rows in leaves for half in (rows & left, rows & ~left)]
            if length(halves) > most + 1e-9:
                most, best = length(halves), halves
    return best


@over("depth", [1, 2, 3])
@over("kind", ["classes", "grades", "several"])
def test_leaves_are_those_of_boosting_written_plainly(depth, kind, X, y, monkeypatch):
    monkeypatch.setattr(rules, "ROWS", 1.0)
    monkeypatch.setattr(rules, "NOISE", 0.0)
    monkeypatch.setattr(rules, "TREES_OF_CLASS", 1)
    X, y = np.round(X[:120], 1), y[:120]
    targets = np.stack([y, X[:, 0] > 0.5]) if kind == "several" else y[None]
    if kind == "grades":
        targets = targets + 2.0 * (X[:, 1] > 0.3)
    learned = learn_map(f"rules:6:depth={depth}", X, targets=targets)
    expected, scores = plain_leaves(X, targets, 6, depth, kind != "grades")
    columns = learned.apply(X).toarray()[:, learned.beside.n_out :]
    columns, sums = columns[:, : -len(targets)], columns[:, -len(targets) :]
    regions = {rows.tobytes() for leaves in expected for rows in leaves if 0 < rows.sum() < 120}
    assert {column.tobytes() for column in columns.T.astype(bool)} == regions
    for column, score in zip(sums.T, scores, strict=True):
        np.testing.assert_allclose(
            column - column.mean(), rules.OF_SCORE * (score - score.mean()) / score.std(), atol=1e-9
        )


@over("logistic", [False, True])
def test_steps_are_of_the_rows_that_were_not_drawn_too(logistic, rng):
    n, trees, depth, rate = 90, 8, 3, 0.3
    codes = rng.integers(0, 6, (n, 5)).astype(np.uint8)
    targets = np.stack([codes[:, 0] > 2, codes[:, 1] + codes[:, 2] > 5]).astype(float)
    splits, bins, values, found = _kernels.boost(codes, targets, trees, depth, rate, 40, 3, 3.0, 0.3, 2.0, logistic, 1)
    mean = targets.mean(axis=1, keepdims=True)
    start = np.log((n * mean + 0.5) / (n - n * mean + 0.5)) if logistic else mean
    scores = np.repeat(start, n, axis=1)
    for tree in range(trees):
        of_nodes = splits.reshape(trees, -1)[tree], bins.reshape(trees, -1)[tree]
        leaves = np.array([leaf_of(row, *of_nodes) for row in codes])
        k = tree % 2
        fit = 1.0 / (1.0 + np.exp(-scores[k])) if logistic else scores[k]
        curvature = fit * (1.0 - fit) if logistic else np.ones(n)
        steps = np.zeros(2**depth)
        for leaf in np.unique(leaves):
            rows = leaves == leaf
            steps[leaf] = rate * (targets[k] - fit)[rows].sum() / (curvature[rows].sum() + 0.3)
        steps = np.clip(steps, -1.0, 1.0) if logistic else steps
        np.testing.assert_allclose(values.reshape(trees, -1)[tree], steps, atol=1e-12)
        scores[k] += steps[leaves]
    np.testing.assert_allclose(found, scores.ravel(), atol=1e-12)
    assert (splits >= 0).mean() > 0.5
    levels = splits.reshape(trees, -1)
    assert all(np.unique(level[2**k - 1 : 2 ** (k + 1) - 1]).size == 1 for level in levels for k in range(depth))


def leaf_of(row, splits, bins):
    node = 0
    while node < len(splits):
        node = 2 * node + 1 + int(splits[node] >= 0 and row[splits[node]] > bins[node])
    return node - len(splits)


@over("depth", [1, 2, 4, 6])
def test_a_column_is_1_where_its_conditions_hold(depth, X, y, rng):
    learned = learn_map(f"rules:50:depth={depth}", X, targets=y[None])
    rows = np.concatenate([X, 3.0 * rng.normal(size=(100, 4)), learned.thresholds[:4, :1] + np.zeros((4, 4))])
    *names, of_score = learned.names([f"X[:, {j}]" for j in range(4)])
    columns = learned.apply(rows).toarray()[:, :-1]
    first = learned.beside.n_out
    assert of_score == "score 1 of the boosting"
    assert columns.shape[1] == len(names) > first + depth
    for name, column in zip(names[first:], columns[:, first:].T, strict=True):
        held = np.ones(len(rows), dtype=bool)
        for condition in name.split(" & "):
            low, between, rest = condition.partition(" < ")
            held &= eval(rest if between else condition, {"X": rows})
            if between:
                held &= eval(f"{low} < {rest.split(' <= ')[0]}", {"X": rows})
        # Nine digits of a threshold.
        assert (held != column).mean() <= 0.01, name
    assert len(set(names)) == len(names)
    assert columns[:400, first:].any(axis=0).all()
    np.testing.assert_allclose(columns[:400, :first].std(axis=0), rules.BESIDE)


def test_draws_depend_on_the_seed_alone(X, y):
    one, again, other = (learn_map("rules", X, targets=y[None], seed=seed) for seed in (1, 1, 2))
    for key, array in one.arrays().items():
        np.testing.assert_array_equal(again.arrays()[key], array)
    assert any(array.tobytes() != other.arrays()[key].tobytes() for key, array in one.arrays().items())
    assert one.name == "rules:400:depth=5"
    assert learn_map("rules:depth=2", X, targets=y[None]).name == "rules:400:depth=2"


def test_each_column_is_drawn_as_often(rng, monkeypatch):
    """The last of eight tells the labels, so that a tree splits by it whenever it is among its four."""
    monkeypatch.setattr(rules, "MOST_COLUMNS", 4)
    y = rng.integers(0, 2, 300).astype(float)
    X = np.where(rng.random((300, 8)) < [0.4] * 7 + [0.0], 1.0 - y[:, None], y[:, None])
    assert (learn_map("rules:400:depth=1", X, targets=y[None]).features == 7).mean() == pytest.approx(0.5, abs=0.08)


def test_labels_that_tell_nothing(X, y):
    for targets in (None, np.zeros((1, 400))):
        with pytest.raises(FeatureMapError, match="labels of at least two kinds"):
            learn_map("rules", X, targets=targets)


def test_the_sample_keeps_the_rarer_class(rng, monkeypatch):
    monkeypatch.setattr(binning, "MOST_ROWS", 1000)
    targets = (rng.random((1, 20_000)) < 0.01).astype(float)
    rows = rows_to_learn_from(targets, 4, rng)
    assert rows.size == 1000
    assert (np.diff(rows) > 0).all()
    assert targets[0, rows].sum() == targets.sum()
    even = rows_to_learn_from((rng.random((1, 20_000)) < 0.5).astype(float), 4, rng)
    assert even.size == 1000
    assert rows_to_learn_from(rng.random((1, 20_000)), 4, rng).size == 1000
    np.testing.assert_array_equal(rows_to_learn_from(targets[:, :900], 4, rng), np.arange(900))


def test_of_many_features_those_that_go_along_with_the_target(rng, monkeypatch):
    monkeypatch.setattr(binning, "MOST_FEATURES", 3)
    X, y = rng.normal(size=(500, 40)), np.zeros(500)
    X[:, [7, 8, 30]] *= 1e-3
    y = (X[:, 7] + X[:, 8] - X[:, 30] > 0).astype(float)
    for form in (X, sp.csr_array(X)):
        np.testing.assert_array_equal(binned(form, np.arange(500), y[None]).columns, [7, 8, 30])
        assert set(learn_map("rules", form, targets=y[None]).features.ravel()) <= {-1, 7, 8, 30}


# What lies between two neighbours in floating point is rounded to the one or to the other.
@over("values", [np.arange(300.0), np.r_[np.zeros(5000), np.arange(600.0)], np.arange(3.0) * np.spacing(1.0) + 1.0])
def test_bins(values, rng):
    values = rng.permutation(values)
    sample = binned(values[:, None], np.arange(values.size), np.zeros((1, values.size)))
    (edges,) = sample.edges
    assert edges.size + 1 == min(np.unique(values).size, edges.size + 1) <= 256
    np.testing.assert_array_equal(sample.codes[:, 0], (values[:, None] > edges).sum(axis=1))
    counts = np.bincount(sample.codes[:, 0])
    frequent = np.unique(values)[np.unique(values, return_counts=True)[1] > values.size / 100]
    assert counts.size == edges.size + 1
    assert (counts > 0).all()
    assert np.delete(counts, sample.codes[np.isin(values, frequent), 0]).max(initial=0) <= values.size / 256 + 25


@over(
    ("change", "message"),
    [
        ({"features": [[4, -1, -1]]}, "outside the 4 features"),
        ({"features": [[-2, -1, -1]]}, "outside the 4 features"),
        ({"kept": [[2, 0, 0, 0]]}, "neither 0 nor 1"),
        ({"kept": [[0, 1, 0, 0]]}, "no row gets to"),
        ({"divisors": "0"}, "divisors is not above 0"),
        ({"sums": [[1.0]]}, "sums"),
    ],
)
def test_arrays_that_make_no_rules(change, message, X, y):
    learned = learn_map("rules:1:depth=2", X, targets=y[None])
    arrays = learned.arrays() | {
        "features": np.array([[0, -1, -1]]),
        "thresholds": np.zeros((1, 3)),
        "kept": np.array([[1, 0, 1, 0]]),
        "sums": np.zeros((2, 1)),
    }
    assert map_of_arrays(learned.name, 4, arrays).n_out == learned.beside.n_out + 3
    for key, value in change.items():
        arrays[key] = np.zeros_like(arrays[key]) if value == "0" else np.array(value)
    with pytest.raises(FeatureMapError, match=message):
        map_of_arrays(learned.name, 4, arrays)
