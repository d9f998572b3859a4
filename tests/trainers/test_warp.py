"""WARP: the sampled step against its exact expectation, a twin in plain Python, and what the families of τ do."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from over import over
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from trainings import train_top

from apsvm.metrics.evaluate import evaluate
from apsvm.risk import NothingToRankError
from apsvm.solvers.sgd import Ending
from apsvm.trainers.base import Watch
from apsvm.trainers.warp import descent as warp
from apsvm.trainers.warp.settings import LEARNING_RATES

TAUS = ("auc", "harmonic", "p@5", "p@1")


def two_signals(rng, queries, P=10, N=190, distractors=10):
    """One feature tells most positives from most negatives, but some negatives have the most of it; the other tells
    those, and a few positives, and is slightly lower for the other positives."""
    X, relevant = [], np.tile(np.arange(P + N + distractors) < P, queries)
    for _ in range(queries):
        positives = np.array([1.5, -0.7]) + rng.normal(size=(P, 2))
        few = rng.random(P) < 0.3
        positives[few] = rng.normal(size=(few.sum(), 2)) * 0.5 + [1.5, 4]
        X += [positives, rng.normal(size=(N, 2)), rng.normal(size=(distractors, 2)) * 0.3 + [5, -3]]
    return np.vstack(X), relevant, np.repeat(np.arange(queries), P + N + distractors)


@pytest.mark.parametrize("estimator", ["exact", "plugin"])
def test_the_families_trade_the_area_for_the_top(estimator, rng):
    """From auc to p@1 the angle turns, AUC falls and P@1 rises, on queries not trained on."""
    X, relevant, groups = two_signals(rng, 60)
    X_new, relevant_new, groups_new = two_signals(rng, 200)
    angles, areas, tops = [], [], []
    for tau in TAUS:
        settings = {"rank_estimator": estimator, "epochs": 30, "learning_rate": 0.1, "l2": 1e-3}
        w = train_top(X, relevant, queries=groups, tau=tau, **settings).best
        values = evaluate(["AUC", "P@1"], X_new @ w, relevant_new, groups=groups_new).values
        angles.append(np.degrees(np.arctan2(w[1], w[0])))
        areas.append(values["AUC"])
        tops.append(values["P@1"])
    assert all(a < b for a, b in pairwise(angles))
    assert all(a > b for a, b in pairwise(areas[:3]))
    assert areas[0] > areas[-1] + 0.02
    assert all(a <= b + 0.015 for a, b in pairwise(tops))  # harmonic on, they are within a query or two
    assert tops[-1] > tops[0] + 0.3


def cancer():
    data = load_breast_cancer()
    return scale(data.data), data.target == 0


def test_auc_comes_close_to_the_convex_optimum():
    """With τ = auc the objective is the mean pair hinge, and the exact estimator's steps are its gradients."""
    X, relevant = cancer()
    l2 = 1e-2
    P, N = X[relevant], X[~relevant]

    def objective(w):
        hinge = 1 - (P @ w)[:, None] + N @ w
        active = hinge > 0
        pairs = active.size
        gradient = (active.sum(axis=0) @ N - active.sum(axis=1) @ P) / pairs + l2 * w
        return hinge[active].sum() / pairs + 0.5 * l2 * w @ w, gradient

    best = minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 2000}).fun
    for rule, rate in (("adagrad", 0.05), ("sgd", 0.01)):
        settings = {"rule": rule, "learning_rate": rate, "l2": l2, "epochs": 60}
        trained = train_top(X, relevant, tau="auc", rank_estimator="exact", **settings)
        assert objective(trained.best)[0] <= 1.03 * best
        assert trained.epochs[-1].passed.loss == pytest.approx(best, rel=0.1)  # the estimate says so too


@over("rule", list(LEARNING_RATES))
@over("tau", TAUS)
def test_it_learns(tau, rule):
    X, relevant = cancer()
    trained = train_top(X, relevant, tau=tau, rule=rule, epochs=10)
    values = evaluate(["AUC", "AP"], X @ trained.best, relevant).values
    assert min(values.values()) > 0.985
    assert trained.epochs[0].passed.draws == relevant.sum()


def test_a_seed_is_a_result(monkeypatch):
    """The same bits, however the passes are cut into calls; another seed gives another result."""
    X, relevant = cancer()
    first = train_top(X, relevant, epochs=3, l2=1e-4)
    for seconds in (0.1, 1e-9):
        monkeypatch.setattr(warp, "SECONDS_A_CALL", seconds)
        again = train_top(X, relevant, epochs=3, l2=1e-4)
        np.testing.assert_array_equal(again.best, first.best)
        for now, then in zip(again.epochs, first.epochs, strict=True):
            assert (now.passed.trials, now.passed.updates) == (then.passed.trials, then.passed.updates)
            assert now.passed.loss == pytest.approx(then.passed.loss, rel=1e-12)  # summed call by call
    other = train_top(X, relevant, epochs=3, l2=1e-4, seed=1)
    assert not np.array_equal(other.best, first.best)


@pytest.mark.slow
def test_threads_share_the_weights():
    """No two runs need agree: every draw is made, and it learns as well."""
    X, relevant = cancer()
    X, relevant = np.tile(X, (4, 1)), np.tile(relevant, 4)
    for matrix, l2 in product((X, sp.csr_array(X)), (0.0, 1e-4)):
        trained = train_top(matrix, relevant, epochs=3, threads=2, l2=l2)
        assert [epoch.passed.draws for epoch in trained.epochs] == [relevant.sum()] * 3
        assert evaluate(["AP"], X @ trained.best, relevant).values["AP"] > 0.985


def test_preference_between_grades():
    """Three grades on a line: a threshold sees two of them, preference all."""
    X = np.repeat([[2.0, 0.0], [1.0, 0.0], [0.0, 0.0]], 30, axis=0)
    X[:, 1] = np.tile([1.0, -1.0], 45)
    grades = np.repeat([2, 1, 0], 30)
    trained = train_top(X, grades, epochs=50)
    scores = X @ trained.best
    assert trained.epochs[0].passed.draws == 60
    assert scores[:30].min() > scores[30:60].max()
    assert scores[30:60].min() > scores[60:].max()
    assert train_top(X, grades >= 2, epochs=1).epochs[0].passed.draws == 30


def test_no_negatives_no_positives_and_empty_queries():
    X = np.eye(4)
    for relevant in (np.ones(4, dtype=bool), np.zeros(4, dtype=bool)):
        with pytest.raises(NothingToRankError):
            train_top(X, relevant)
    with pytest.raises(NothingToRankError):
        train_top(X, np.array([True, False, True, False]), queries=np.arange(4))
    with pytest.raises(NothingToRankError):
        train_top(X[:1], np.array([True]))
    # Queries of one class are left out, and nothing of theirs is learned.
    relevant = np.array([True, False, True, False])
    trained = train_top(X, relevant, epochs=2, queries=np.array([7, 7, 8, 9]))
    assert trained.epochs[0].passed.draws == 1
    assert trained.best[0] > 0 > trained.best[1]
    assert (trained.best[2:] == 0).all()


@pytest.mark.parametrize(("cap", "trials"), [(None, 40), (7, 7), (90, 90)])
def test_where_nothing_violates_a_draw_costs_the_cap(cap, trials):
    X = np.vstack([np.full((5, 1), 1.0), np.zeros((40, 1))])
    start = np.array([1.5])
    trained = train_top(X, np.arange(45) < 5, max_trials=cap, epochs=9, start=start)
    assert trained.ending is Ending.NOTHING_VIOLATES
    assert len(trained.epochs) == 1
    passed = trained.epochs[0].passed
    assert (passed.draws, passed.trials, passed.updates, passed.loss) == (5, 5 * trials, 0, 0.0)
    assert trained.best.tolist() == start.tolist()


def test_the_penalty_alone_shrinks_the_weights():
    """Nothing violates: w ← w/(1 + rate·l2·m) for each instalment of m draws, whatever the rule's accumulators say."""
    X = np.vstack([np.full((50, 1), 1.0), np.zeros((10, 1))])
    settings = {"rule": "sgd", "learning_rate": 0.1, "l2": 0.01, "epochs": 1}
    trained = train_top(X, np.arange(60) < 50, start=np.array([3.0]), **settings)
    assert trained.epochs[0].passed.updates == 0
    assert trained.best[0] == pytest.approx(3.0 / (1 + 0.001 * 16) ** 3 / (1 + 0.001 * 2), rel=1e-12)


def test_validation_and_the_best_epoch():
    X, relevant = cancer()
    seen, values = [], iter([0.3, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])
    weights = []

    def validate(w):
        weights.append(w.copy())
        return next(values)

    watch = Watch(progress=seen.append)
    trained = train_top(X, relevant, epochs=8, patience=3, watch=watch, validate=validate)
    assert trained.ending is Ending.STOPPED_IMPROVING
    assert (trained.best_epoch, len(trained.epochs)) == (2, 5)
    np.testing.assert_array_equal(trained.best, weights[1])
    assert [line.number for line in seen] == [epoch.number for epoch in trained.epochs] == [1, 2, 3, 4, 5]
    assert [line.values["AP"] for line in seen] == [0.3, 0.6, 0.5, 0.4, 0.3]
    for line, epoch in zip(seen, trained.epochs, strict=True):
        shown = {name: line.values[name] for name in ("trials", "updates", "est. loss")}
        assert shown == dict(zip(shown, (epoch.passed.trials, epoch.passed.updates, epoch.passed.loss), strict=True))


def test_stopped_within_a_pass():
    X, relevant = cancer()
    calls = []

    def should_stop():
        calls.append(True)
        return len(calls) > 1

    trained = train_top(X, relevant, epochs=50, watch=Watch(should_stop=should_stop))
    assert trained.ending is Ending.INTERRUPTED
    assert len(trained.epochs) == 1
    assert 0 < trained.epochs[0].passed.draws <= relevant.sum()
    assert trained.best.any()
    limited = train_top(X, relevant, epochs=10**6, time_limit=0.05)
    assert limited.ending is Ending.TIME_LIMIT


def test_values_too_large_are_an_error_not_a_crash(rng):
    X = rng.normal(size=(40, 3)) * 1e300
    with pytest.raises(FloatingPointError, match="scale them down"):
        train_top(X, np.arange(40) < 5, rule="sgd")


def test_sparse_and_dense_and_their_storage():
    X, relevant = cancer()
    X = np.where(np.abs(X) > 0.8, X, 0.0).astype(np.float32).astype(np.float64)
    shuffled = sp.csr_array(X)
    for a, b in pairwise(shuffled.indptr):
        shuffled.indices[a:b], shuffled.data[a:b] = shuffled.indices[a:b][::-1].copy(), shuffled.data[a:b][::-1].copy()
    shuffled.has_sorted_indices = False
    forms = [X, np.asfortranarray(X), X.astype(np.float32), sp.csr_array(X), sp.csc_array(X), shuffled]
    found = [train_top(form, relevant, epochs=3, l2=1e-4).best for form in forms]
    for w in found[1:]:
        np.testing.assert_allclose(w, found[0], rtol=1e-8)
    assert (np.diff(shuffled.indices[: shuffled.indptr[1]]) < 0).all()  # the caller's matrix is left alone
