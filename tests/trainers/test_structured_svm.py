"""Whole trainings in Python: certified objectives against an independent solve, queries, costs, approximation."""

from __future__ import annotations

from itertools import pairwise, product

import cvxpy as cp
import numpy as np
import pytest
from over import over
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import scale
from trainings import make_risk, train_appx, train_svm, training_set

from apsvm import APSVMRanker
from apsvm.data.rows import Rows
from apsvm.losses import LOSSES
from apsvm.oracles import make_oracle
from apsvm.risk import NothingToRankError
from apsvm.solvers.state import State
from apsvm.trainers.base import Watch
from apsvm.trainers.structured_svm.approximate import EasyRows
from apsvm.trainers.structured_svm.stage import CUTTERS

EXACT = ["greedy", "search", "select", "search-select", "qs", "bucket"]


def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y == 0


def digit_eight() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X[:600] / 16.0, y[:600] == 8


DATA = {"breast cancer": breast_cancer, "digit eight": digit_eight}


def independent_optimum(X: np.ndarray, relevant: np.ndarray, C: float) -> float:
    """The primal optimum by cvxpy on planes built pair by pair, from most violated rankings found by an O(PN) loop that
    shares no code with the package; planes are added until none is violated."""
    pos, neg = X[relevant], X[~relevant]
    n_pos, n_neg = len(pos), len(neg)
    w, xi = cp.Variable(X.shape[1]), cp.Variable(nonneg=True)
    planes: list[tuple[np.ndarray, float]] = []
    point, slack = np.zeros(X.shape[1]), 0.0
    for _ in range(400):
        p, q = pos[np.argsort(-(pos @ point), kind="stable")], neg[np.argsort(-(neg @ point), kind="stable")]
        s, t = p @ point, q @ point
        k = np.arange(1, n_pos + 1)
        swapped = np.zeros((n_pos, n_neg), dtype=bool)
        for j in range(1, n_neg + 1):
            gain = k / n_pos * (1 / (k + j - 1) - 1 / (k + j)) - 2 / (n_pos * n_neg) * (s - t[j - 1])
            value = np.append(np.cumsum(gain[::-1])[::-1], 0.0)
            swapped[:, j - 1] = k > np.argmax(value)
        above = swapped.sum(axis=1)
        loss = 1 - np.mean(k / (k + above))
        plane = 2 / (n_pos * n_neg) * (swapped.sum(axis=0) @ q - above @ p)
        if plane @ point + loss <= slack + 1e-7:
            break
        planes.append((plane, loss))
        constraints = [np.array([a for a, _ in planes]) @ w + np.array([b for _, b in planes]) <= xi]
        problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + C * xi), constraints)
        problem.solve(solver=cp.CLARABEL)
        point, slack = w.value, float(xi.value)
    else:
        pytest.fail("the reference did not converge")
    return float(problem.value)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "C"), [("breast cancer", 1.0), ("breast cancer", 30.0), ("digit eight", 10.0)])
def test_objective_equals_an_independent_solve(name, C):
    X, relevant = DATA[name]()
    optimum = independent_optimum(X, relevant, C)
    for oracle, solver in product(EXACT, CUTTERS):
        trained = train_svm(training_set(X, relevant), oracle=oracle, C=C, solver=solver)
        bounds = trained.solution.certificate
        assert trained.state is State.CONVERGED
        assert bounds.gap <= 1e-3 * C
        assert bounds.dual <= optimum + 1e-6 * C
        assert optimum - 1e-6 * C <= bounds.primal <= optimum + 1e-3 * C


@over("loss", [LOSSES[form]().name for form in LOSSES])
def test_weak_duality_at_every_iteration(loss):
    X, relevant = breast_cancer()
    seen = []
    watch = Watch(progress=seen.append)
    trained = train_svm(training_set(X, relevant), loss, C=5.0, epsilon=1e-5, watch=watch)
    optimum = trained.solution.certificate.primal
    assert len(seen) > 2
    lines = [progress.values for progress in seen]
    for before, after in pairwise(lines):
        assert after["primal"] <= before["primal"]
        assert after["dual"] >= before["dual"]
    assert all(line["dual"] <= optimum * (1 + 1e-15) and line["gap"] >= 0 for line in lines)  # both may be the optimum


def test_zero_one_is_the_binary_svm():
    """C/n·Σ hinge + ½‖w‖² against scikit-learn's liblinear on the same problem."""
    from sklearn.svm import LinearSVC

    X, relevant = breast_cancer()
    C, n = 20.0, len(relevant)
    trained = train_svm(training_set(X, relevant), "zero-one", C=C, epsilon=1e-5)
    judge = LinearSVC(C=C / n, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=1_000_000).fit(X, relevant)
    w = judge.coef_[0]
    y = np.where(relevant, 1, -1)
    objective = 0.5 * w @ w + C / n * np.maximum(0, 1 - y * (X @ w)).sum()
    assert trained.solution.certificate.primal == pytest.approx(objective, abs=2e-5 * C)


def test_auc_is_svm_rank(rng):
    """SVM-rank's two losses as in docs/compare.md, by liblinear on a difference of rows for each pair."""
    from sklearn.svm import LinearSVC

    qid = np.repeat(np.arange(8), 7)
    X = rng.normal(size=(qid.size, 3))
    y = (X[:, 0] - X[:, 1] + rng.normal(size=qid.size) > 0).astype(int)
    pairs = [(i, j) for i in np.flatnonzero(y) for j in np.flatnonzero((y == 0) & (qid == qid[i]))]
    D = np.array([X[i] - X[j] for i, j in pairs])
    sizes = np.bincount([qid[i] for i, _ in pairs], minlength=8)
    assert sizes.all()
    assert np.unique(sizes).size > 2
    for weight, C, queries in (
        (1.0 / sizes[[qid[i] for i, _ in pairs]], 1.0, None),  # -l 2
        (np.ones(len(pairs)), sizes.mean(), sizes[qid]),  # -l 1
    ):
        judge = LinearSVC(loss="hinge", fit_intercept=False, C=5.0 / 8, tol=1e-10, max_iter=1_000_000)
        judge.fit(np.vstack([D, -D]), np.repeat([1, -1], len(pairs)), sample_weight=np.tile(weight, 2) / 2)
        ranker = APSVMRanker("auc", bound="hinge", scale="none", C=5.0 * C / 4, epsilon=1e-9)
        ranker.fit(X, y, qid=qid, sample_weight=queries)
        np.testing.assert_allclose(2.0 * ranker.coef_, judge.coef_[0], rtol=1e-4)


def test_queries_are_averaged_and_the_useless_are_counted(rng):
    X = rng.normal(size=(90, 4))
    relevant = rng.random(90) < 0.3
    groups = rng.integers(0, 8, size=90) * 7 - 20
    relevant[groups == groups[0]] = False
    relevant[groups == groups[-1]] = True
    loss = LOSSES["ap"]()
    risk = make_risk(Rows(X), relevant, loss, make_oracle("qs", loss), groups=groups)
    assert (risk.queries, risk.queries_skipped) == (np.unique(groups).size - 2, 2)
    w = rng.normal(size=4)
    found = risk(w)
    values, planes = [], []
    for group in np.unique(groups):
        mine = groups == group
        if relevant[mine].all() or not relevant[mine].any():
            continue
        alone = make_risk(Rows(X[mine]), relevant[mine], loss, make_oracle("greedy", loss))(w)
        values.append(alone.value)
        planes.append(alone.plane)
    assert found.value == pytest.approx(np.mean(values), rel=1e-12)
    np.testing.assert_allclose(found.plane, np.mean(planes, axis=0), rtol=1e-10, atol=1e-14)
    assert found.value == pytest.approx(found.plane @ w + found.offset, rel=1e-10)
    with pytest.raises(NothingToRankError):
        make_risk(Rows(X), relevant, loss, make_oracle("qs", loss), groups=np.arange(90))


@over("keep_easy", [0.0, 25.0, 50.0, 100.0])
@over("name", DATA)
def test_approximation_solves_its_restricted_problem(name, keep_easy):
    X, relevant = DATA[name]()
    C = 5.0
    bias = 1.0
    trained = train_appx(training_set(Rows(X, bias=bias), relevant), C=C, keep_easy=keep_easy)
    assert trained.state is State.CONVERGED
    assert not trained.exact
    assert [stage.name for stage in trained.stages] == ["binary", "difficult"]
    binary = train_svm(training_set(Rows(X, bias=bias), relevant), "zero-one", C=C)
    y = np.where(relevant, 1, -1)
    Xb = np.column_stack([X, np.full(len(X), bias)])
    margins = y * (Xb @ binary.w)
    easy = np.flatnonzero(margins >= 1)
    easy = easy[np.argsort(-margins[easy], kind="stable")[: round(easy.size * keep_easy / 100)]]
    # Feasible, to rounding.
    assert (y[easy] * (Xb[easy] @ trained.w) >= 1 - 1e-9).all()
    # The primal is the restricted objective at w.
    hard = np.setdiff1d(np.arange(len(y)), easy)
    loss = LOSSES["ap"]()
    risk = make_risk(Rows(Xb[hard]), relevant[hard], loss, make_oracle("greedy", loss))
    bounds = trained.solution.certificate
    assert bounds.primal == pytest.approx(0.5 * trained.w @ trained.w + C * risk(trained.w).value, rel=1e-9)
    # And no feasible point beats the dual: not the binary SVM, not the exact AP-SVM scaled into feasibility.
    assert 0.5 * binary.w @ binary.w + C * risk(binary.w).value >= bounds.dual - 1e-9
    assert bounds.gap <= 1e-3 * C


def test_approximation_against_an_independent_solve():
    """The restricted problem with its hard constraints, given whole to cvxpy with the planes of the run."""
    X, relevant = breast_cancer()
    C = 3.0
    trained = train_appx(training_set(X, relevant), C=C, epsilon=1e-6, keep_easy=40.0)
    binary = train_svm(training_set(X, relevant), "zero-one", C=C, epsilon=1e-6)
    y = np.where(relevant, 1, -1)
    margins = y * (X @ binary.w)
    easy = np.flatnonzero(margins >= 1)
    easy = easy[np.argsort(-margins[easy], kind="stable")[: round(easy.size * 0.4)]]
    hard = np.setdiff1d(np.arange(len(y)), easy)
    loss = LOSSES["ap"]()
    risk = make_risk(Rows(X[hard]), relevant[hard], loss, make_oracle("greedy", loss))
    w, xi = cp.Variable(X.shape[1]), cp.Variable(nonneg=True)
    planes = [risk(trained.w)]
    for _ in range(300):
        constraints = [(y[easy][:, None] * X[easy]) @ w >= 1]
        constraints += [np.array([p.plane for p in planes]) @ w + np.array([p.offset for p in planes]) <= xi]
        problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + C * xi), constraints)
        problem.solve(solver=cp.CLARABEL)
        cut = risk(w.value)
        if cut.value <= xi.value + 1e-7:
            break
        planes.append(cut)
    else:
        pytest.fail("the reference did not converge")
    assert trained.solution.certificate.primal == pytest.approx(problem.value, abs=1e-5 * C)


def test_approximation_where_everything_is_easy():
    X = np.array([[2.0], [3.0], [-2.0], [-3.0]])
    relevant = np.array([True, True, False, False])
    trained = train_appx(training_set(X, relevant), C=100.0, keep_easy=100.0, epsilon=1e-8)
    assert trained.state is State.CONVERGED
    assert trained.w == pytest.approx(train_svm(training_set(X, relevant), C=100.0, epsilon=1e-8).w, rel=1e-3)
    assert trained.notes == ["0 rows held easy, 4 difficult"]


def test_restored_points_are_feasible(rng):
    X = rng.normal(size=(50, 6))
    interior = rng.normal(size=6)
    signs = np.sign(X @ interior)
    interior = interior / np.abs(X @ interior).min()
    constraints = EasyRows(Rows(X), signs, interior)
    for _ in range(200):
        w = rng.normal(size=6) * rng.choice([0.1, 1.0, 10.0]) + rng.choice([0.0, 1.0]) * interior
        restored = constraints(w)
        assert (signs * (X @ restored.point) >= 1 - 1e-9).all()
        assert (restored.planes @ w + restored.offsets > 0).all()
        violated = (signs * (X @ w) < 1 - 1e-9).sum()
        assert len(restored.planes) == min(violated, 10)


def test_one_thread_and_two_give_the_same_bits(rng):
    X = rng.normal(size=(3000, 300)).astype(np.float32)  # large enough for the kernels to use threads
    relevant = X[:, 0] + rng.normal(size=3000) > 1.5
    results = []
    for threads in (1, 2):
        trained = train_svm(training_set(Rows(X, threads=threads), relevant), C=100.0, max_iterations=15)
        results.append(trained.w)
    np.testing.assert_array_equal(results[0], results[1])


@over("loss", [LOSSES[form]().name for form in LOSSES])
def test_values_too_large_are_an_error_not_a_crash(loss, rng):
    X = rng.normal(size=(40, 3)) * 1e300
    with pytest.raises(FloatingPointError, match="scale them down"):
        train_svm(training_set(X, np.arange(40) < 5), loss)


@pytest.mark.parametrize("name", DATA)
def test_the_line_search_needs_fewer_iterations(name):
    X, relevant = DATA[name]()
    iterations = {
        solver: train_svm(training_set(X, relevant), C=100.0, solver=solver).solution.iterations for solver in CUTTERS
    }
    assert iterations["line-search"] < 0.8 * iterations["cutting-plane"]
