"""Whole trainings: published optima, an independent solver on pairs, and what is reported."""

from __future__ import annotations

import json
from io import StringIO
from itertools import product

import numpy as np
import pytest
from over import over
from scipy.special import erfc
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale
from trainings import train_pairs as train

from apsvm._support.log import JsonLinesLog
from apsvm.solvers.state import State
from apsvm.trainers.base import Watch
from apsvm.trainers.rank_ncg.pair_loss import NoPairsError
from apsvm.trainers.rank_ncg.preferences import GRAPHS, Classes, classes_by_label, cut_into_classes, from_edges
from apsvm.trainers.settings import SettingsError


def diabetes() -> tuple[np.ndarray, Classes]:
    X, y = load_diabetes(return_X_y=True)
    return scale(X), cut_into_classes(y, 3, "frequency")


def breast_cancer() -> tuple[np.ndarray, Classes]:
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), classes_by_label(y * 1.0)


def wmw(scores: np.ndarray, of_row: np.ndarray) -> float:
    ahead = (scores[:, None] - scores)[of_row[:, None] > of_row]
    return float(np.mean((ahead > 0) + 0.5 * (ahead == 0)))


def objective(X, of_row, w, kind: str, regularisation: float) -> float:
    ahead = (X @ w)[:, None] - X @ w
    ahead = ahead[of_row[:, None] > of_row]
    if kind == "logistic":
        loss = np.logaddexp(0, -ahead)
    else:
        c = np.sqrt(3 / 2) / np.pi
        loss = (np.exp(-((c * ahead) ** 2)) / np.sqrt(np.pi) - c * ahead * erfc(c * ahead)) / (2 * c)
    return regularisation / 2 * w @ w + loss.mean()


#: data, objective: pairs, the optimum at λ = 1e-3 and its WMW, from an independent implementation.
PUBLISHED = {
    (diabetes, "logistic"): (65_121, 0.370758260, 0.830423),
    (diabetes, "erfc"): (65_121, 0.374730054, 0.830500),
    (breast_cancer, "logistic"): (75_684, 0.012134429, 0.997886),
    (breast_cancer, "erfc"): (75_684, 0.011477612, 0.997873),
}


@over("optimizer", ["lbfgs", "prcg"])
@over(("case", "expected"), PUBLISHED.items(), ids=lambda case: getattr(case[0], "__name__", None))
def test_published_optima(case, expected, optimizer):
    (make, kind), (pairs, optimum, statistic) = case, expected
    X, classes = make()
    trained = train(X, classes, objective=kind, optimizer=optimizer)
    assert trained.state is State.CONVERGED
    assert trained.pairs == pairs
    assert trained.solution.objective == pytest.approx(optimum, abs=1e-7)
    assert trained.solution.objective == pytest.approx(objective(X, classes.of_row, trained.w, kind, 1e-3), rel=1e-12)
    closer = train(X, classes, objective=kind, optimizer=optimizer, tolerance=1e-7)
    assert closer.solution.objective == pytest.approx(optimum, abs=1e-9)
    assert wmw(X @ closer.w, classes.of_row) == pytest.approx(statistic, abs=1e-6)


@pytest.mark.parametrize(("kind", "value"), [("logistic", 0.693147181), ("erfc", 0.723601255)])
def test_the_objective_at_zero(kind, value):
    X, classes = diabetes()
    stopped = train(X, classes, objective=kind, time_limit=0.0)
    assert stopped.state is State.TIME_LIMIT
    assert not stopped.w.any()
    assert stopped.solution.objective == pytest.approx(value, abs=1e-9)


def test_it_is_logistic_regression_on_pairs(rng):
    X = rng.normal(size=(60, 4))
    labels, query = rng.integers(0, 3, 60) * 1.0, rng.integers(0, 4, 60)
    above = [(i, j) for i, j in product(range(60), repeat=2) if query[i] == query[j] and labels[i] > labels[j]]
    pairs = np.array([X[i] - X[j] for i, j in above])
    # Each pair both ways, for there must be two classes: half the weight each.
    model = LogisticRegression(C=1 / (2 * 0.01 * len(pairs)), fit_intercept=False, tol=1e-10, max_iter=1000)
    model.fit(np.concatenate([pairs, -pairs]), np.repeat([1, 0], len(pairs)))
    trained = train(X, classes_by_label(labels), queries=query, regularisation=0.01, tolerance=1e-9)
    assert trained.pairs == len(pairs)
    np.testing.assert_allclose(trained.w, model.coef_[0], rtol=1e-5)
    summed = train(
        X, classes_by_label(labels), queries=query, regularisation=0.01 * len(pairs), normalize="none", tolerance=1e-9
    )
    np.testing.assert_allclose(summed.w, trained.w, rtol=1e-6)


def test_the_papers_way_finds_the_same_ranker():
    X, classes = diabetes()
    exact = train(X, classes)
    for accuracy in (1e-2, 1e-3, 1e-6):
        faithful = train(
            X, classes, objective="erfc", summation="fourier", optimizer="prcg", normalize="none",
            regularisation=1e-3 * 65_121, accuracy=accuracy,
        )  # fmt: skip
        assert faithful.state is State.CONVERGED
        assert wmw(X @ faithful.w, classes.of_row) == pytest.approx(wmw(X @ exact.w, classes.of_row), abs=2e-3)
        cosine = faithful.w @ exact.w / np.linalg.norm(faithful.w) / np.linalg.norm(exact.w)
        assert cosine > 0.999
        # What is reported is the exact objective at w, not the series.
        value = objective(X, classes.of_row, faithful.w, "erfc", 1e-3)
        assert faithful.solution.objective == pytest.approx(65_121 * value, rel=1e-10)


@pytest.mark.parametrize("summation", ["direct", "chebyshev", "auto"])
def test_summations_take_the_same_way(summation):
    X, classes = breast_cancer()
    reference, found = train(X, classes, summation="direct"), train(X, classes, summation=summation)
    assert found.solution.iterations == reference.solution.iterations
    np.testing.assert_allclose(found.w, reference.w, rtol=1e-6)


@pytest.mark.parametrize("graph", ["adjacent", "bipartite", from_edges(3, {(0, 1), (1, 2), (2, 0)}, "a cycle")])
def test_any_graph(graph):
    X, classes = diabetes()
    trained = train(X, classes, graph=graph)
    assert trained.state is State.CONVERGED
    assert trained.pairs < 65_121 or not isinstance(graph, str)
    chosen = graph if not isinstance(graph, str) else GRAPHS[graph](3)
    edges = [(i, j) for j in range(3) for i in chosen.below.of(j)]

    def value(w):
        s = X @ w
        ahead = [s[classes.of_row == j][:, None] - s[classes.of_row == i] for i, j in edges]
        return 5e-4 * w @ w + np.concatenate([np.logaddexp(0, -a).ravel() for a in ahead]).mean()

    assert trained.solution.objective == pytest.approx(value(trained.w), rel=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert value(trained.w + 1e-2 * rng.normal(size=trained.w.size)) > trained.solution.objective


def test_what_cannot_be_trained_on(rng):
    with pytest.raises(NoPairsError, match="one class"):
        train(rng.normal(size=(5, 2)), classes_by_label(np.zeros(5)))
    with pytest.raises(FloatingPointError, match="not finite"), np.errstate(over="ignore", invalid="ignore"):
        train(rng.normal(size=(6, 2)) * 1e308, classes_by_label(np.arange(6.0) // 3))
    with pytest.raises(SettingsError, match="optimizer is one of lbfgs, prcg, found 'lbfg'"):
        train(rng.normal(size=(4, 2)), classes_by_label(np.arange(4.0)), optimizer="lbfg")


@pytest.mark.parametrize("optimizer", ["lbfgs", "prcg"])
def test_the_log(optimizer):
    X, classes = diabetes()
    stream = StringIO()
    shown = []
    trained = train(X, classes, watch=Watch(JsonLinesLog(stream), shown.append), optimizer=optimizer)
    records = [json.loads(line) for line in stream.getvalue().splitlines()]
    evaluations = [record for record in records if record["event"] == "evaluation"]
    iterations = [record for record in records if record["event"] == "iteration"]
    assert len(evaluations) == trained.solution.evaluations
    assert len(iterations) == trained.solution.iterations == len(shown)
    assert all(record["sums_wall_ns"] > 0 for record in evaluations)
    # The log's parts and the last check of the result are what the training took; their times are not promised.
    for part, span in trained.spans.items():
        logged = sum(record.get(f"{part}_wall_ns", 0) for record in evaluations)
        assert 0 < logged <= span.wall_ns
    assert iterations[-1]["gradient_norm"] <= trained.solution.target * (1 + 1e-6)
