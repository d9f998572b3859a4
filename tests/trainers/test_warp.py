"""WARP: the sampled step against its exact expectation, a twin in plain Python, and what the families of τ do."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from trainings import train_top
from warp_twin import Descent, Random, Search, run_rows

from apsvm._native import _kernels
from apsvm.data.rows import Rows
from apsvm.metrics.evaluate import evaluate
from apsvm.registry import UnknownNameError
from apsvm.risk import NothingToRankError
from apsvm.solvers.sgd import Ending
from apsvm.trainers import warp
from apsvm.trainers.base import Watch
from apsvm.trainers.families.warp import ESTIMATORS, LEARNING_RATES, WarpSettings, WarpTrainer
from apsvm.trainers.settings import SettingsError
from apsvm.trainers.warp import candidates

TAUS = ("auc", "harmonic", "p@5", "p@1")


def loop(
    w, positives, starts, counts, members, *, tau, estimator, rule="sgd", rate=1.0, l2=0.0, trials=0, seed=1, threads=1,
    instalment=16, scale=1.0,
):  # fmt: skip
    """The native loop, its memory as the trainer makes it."""
    table = warp.loss_of_rank(tau, int(np.max(counts)))
    memory = warp.rule_memory(rule, w)
    arrays = [np.asarray(part, dtype=np.int64) for part in (positives, starts, counts, members)]
    return _kernels.WarpRows(w, *memory, *arrays, table, estimator, scale, trials, rule, rate, l2, instalment, seed, threads)  # fmt: skip # noqa: E501


def run(native, X, order):
    order = np.asarray(order, dtype=np.int64)
    if sp.issparse(X):
        return native.run_csr(X.indptr, X.indices, X.data, order)
    return native.run_dense(X, order)


def expected_weight(tau, estimator, n, k, last=10**6):
    """E[L̂] where k of n negatives violate, by summing over the trials."""
    t = np.arange(1, last + 1)
    p = k / n
    weights = _kernels.warp_weight(warp.loss_of_rank(tau, n), estimator, n, t)
    return float((p * np.exp((t - 1) * np.log1p(-p)) if k < n else (t == 1)) @ weights)


class TestTheSampledStep:
    """Rows of one feature each: a weight is a score, and what moves is who was drawn. Steps so small that the scores
    stay what they are."""

    TINY = 1e-9
    DRAWS = 198_000

    def sampled(self, scores, n_pos, form, **settings):
        """Mean change of each score in a draw, and its standard error; mean trials in a draw."""
        n = scores.size
        X = {"dense": np.eye(n), "csr": sp.csr_array(np.eye(n))}[form]
        batches, trials = [], 0
        w = scores.copy()
        native = loop(
            w, range(n_pos), [0] * n_pos, [n - n_pos] * n_pos, range(n_pos, n), rate=self.TINY, **settings
        )  # fmt: skip
        for _ in range(20):
            before = w.copy()
            trials += run(native, X, np.arange(self.DRAWS // 20) % n_pos)[0]
            batches.append((w - before) / self.TINY / (self.DRAWS // 20))
        return np.mean(batches, axis=0), np.std(batches, axis=0, ddof=1) / np.sqrt(20), trials / self.DRAWS

    @pytest.mark.parametrize(("tau", "form"), list(product(TAUS, ["dense", "csr"])))
    def test_its_expectation_is_exact_with_the_margin_rank(self, tau, form, rng):
        n_pos, n_neg = 3, 40
        scores = np.concatenate([[0.2, 1.5, 3.5], rng.normal(size=n_neg)])
        found, error, trials = self.sampled(scores, n_pos, form, tau=tau, estimator="exact")
        table = warp.loss_of_rank(tau, n_neg)
        exact = np.zeros(scores.size)
        ranks = []
        for i in range(n_pos):
            violators = n_pos + np.flatnonzero(1 - scores[i] + scores[n_pos:] > 0)
            ranks.append(violators.size)
            if violators.size:
                exact[i] += table[violators.size] / n_pos
                exact[violators] -= table[violators.size] / violators.size / n_pos
        assert len(set(ranks)) == 3
        assert min(ranks) < n_neg / 4 < n_neg / 2 < max(ranks)
        np.testing.assert_array_less(np.abs(found - exact), 5 * error + 1e-6)
        assert trials == n_neg  # all are scored
        assert (found[n_pos:][exact[n_pos:] == 0] == 0).all()

    @pytest.mark.parametrize(
        ("tau", "estimator"),
        [("auc", "plugin"), ("harmonic", "plugin"), ("p@5", "plugin"), ("harmonic", "log-unbiased")],
    )
    @pytest.mark.parametrize("k", [1, 3, 20, 50])
    def test_its_expectation_follows_the_trials(self, tau, estimator, k):
        """p(1 − p)^(t − 1) over the trials; every violator is as likely; trials are counted."""
        n = 50
        scores = np.concatenate([[0.5], np.full(k, 0.1), np.full(n - k, -0.6)])
        found, error, trials = self.sampled(scores, 1, "csr", tau=tau, estimator=estimator, trials=10**6)
        weight = expected_weight(tau, estimator, n, k)
        assert abs(found[0] - weight) <= 5 * error[0] + 1e-6
        np.testing.assert_array_less(np.abs(found[1 : k + 1] + weight / k), 5 * error[1 : k + 1] + 1e-6)
        assert (found[k + 1 :] == 0).all()
        assert trials == pytest.approx(n / k, rel=5 / np.sqrt(self.DRAWS))

    def test_a_cap_on_the_trials(self):
        """k = 1 of 50: a violator within 10 trials comes with probability 1 − .98¹⁰."""
        scores = np.concatenate([[0.5, 0.1], np.full(49, -0.6)])
        w = scores.copy()
        native = loop(w, [0], [0], [50], range(1, 51), tau="auc", estimator="plugin", rate=self.TINY, trials=10)
        trials, updates, _ = run(native, np.eye(51), np.zeros(self.DRAWS))
        p = 1 - 0.98**10
        assert updates / self.DRAWS == pytest.approx(p, abs=5 * np.sqrt(p / self.DRAWS))
        t = np.arange(1, 11)
        mean = (0.02 * 0.98 ** (t - 1)) @ t + 10 * (1 - p)
        assert trials / self.DRAWS == pytest.approx(mean, rel=0.01)

    def test_the_margin_is_strict(self):
        """1 − s⁺ + s⁻ = 0 is no violation."""
        w = np.array([1.0, 0.0])
        native = loop(w, [0], [0], [1], [1], tau="auc", estimator="plugin")
        assert run(native, np.eye(2), [0, 0, 0]) == (3, 0, 0.0)
        assert w.tolist() == [1.0, 0.0]


class TestEstimators:
    @pytest.mark.parametrize(
        ("k", "plugin"), [(1, 6.4), (5, 26.1), (20, 79.5), (100, 255), (500, 693), (1000, 1000)]
    )  # fmt: skip
    def test_the_plug_in_rank_is_biased_upwards(self, k, plugin):
        """By about ln(1/p)/(1 − p). The figures are of an independent simulation with 1000 negatives, in which a count
        of trials beyond them gave the rank 0; here it gives 1, which matters at k = 1 alone: (1 − p)^N more."""
        n = 1000
        found = expected_weight("auc", "plugin", n, k)
        beyond = (1 - k / n) ** n
        assert found - beyond == pytest.approx(plugin, rel=0.01)
        p = k / n
        if k < n:
            assert found == pytest.approx(k * np.log(1 / p) / (1 - p), rel=0.02)

    @pytest.mark.parametrize(("k", "plugin", "exact"), [(1, 1.19, 1.0), (5, 2.75, 2.28), (100, 5.62, 5.19)])
    def test_the_plug_in_harmonic_loss_is_biased_too(self, k, plugin, exact):
        assert expected_weight("harmonic", "plugin", 1000, k) - (1 - k / 1000) ** 1000 == pytest.approx(
            plugin, abs=0.02
        )
        assert warp.loss_of_rank("harmonic", 1000)[k] == pytest.approx(exact, abs=0.01)

    @pytest.mark.parametrize("n", [10, 1000, 20_000])
    def test_the_logarithm_is_unbiased(self, n):
        """E[ln N − H_{T−1}] = ln k, the base of the log-unbiased weight; and the weight's expectation is H_k."""
        for k in {1, 2, 3, 5, 10, min(n, 500), n}:
            p = k / n
            t = np.arange(1, int(40 / p) + 2)
            chance = p * np.exp((t - 1) * np.log1p(-p)) if k < n else (t == 1) * 1.0
            harmonic = np.concatenate([[0.0], np.cumsum(1.0 / t)])
            assert chance @ (np.log(n) - harmonic[t - 1]) == pytest.approx(np.log(k), abs=1e-8)
            found = expected_weight("harmonic", "log-unbiased", n, k)
            assert found == pytest.approx(np.sum(1 / np.arange(1, k + 1)), abs=0.0084 / k**4 + 1e-6)

    def test_harmonic_numbers_of_every_size(self):
        """The weight's H_{t−1}, summed up and by its series, against sums."""
        t = np.arange(1, 3000)
        n = 100
        found = _kernels.warp_weight(np.ones(n + 1), "log-unbiased", n, t)
        harmonic = np.concatenate([[0.0], np.cumsum(1.0 / t)])[t - 1]
        np.testing.assert_allclose(
            found, np.log(n) + np.euler_gamma - harmonic + t / (2 * n) - t * (t + 1) / (24 * n * n), atol=1e-11
        )

    def test_the_families(self):
        assert warp.loss_of_rank("auc", 4).tolist() == [0, 1, 2, 3, 4]
        assert warp.loss_of_rank("p@1", 4).tolist() == [0, 1, 1, 1, 1]
        assert warp.loss_of_rank("p@3", 4).tolist() == [0, 1, 2, 3, 3]
        assert warp.loss_of_rank("p@30", 4).tolist() == [0, 1, 2, 3, 4]
        np.testing.assert_allclose(warp.loss_of_rank("harmonic", 4), [0, 1, 3 / 2, 11 / 6, 25 / 12])

    @pytest.mark.parametrize(
        "tau", ["", "AUC", "p@", "p@0", "p@-1", "p@1.5", "p@x", "p@³", "q@1", "p@1@1", "p@" + "9" * 30]
    )
    def test_unknown_families(self, tau):
        with pytest.raises(UnknownNameError, match="choose from auc, p@1, p@K, harmonic"):
            WarpTrainer("warp", WarpSettings(tau=tau))

    def test_settings_that_do_not_go_together(self):
        with pytest.raises(SettingsError, match="choose plugin or exact, or tau harmonic"):
            WarpTrainer("warp", WarpSettings(tau="p@1", rank_estimator="log-unbiased"))
        with pytest.raises(SettingsError, match="rule is one of adagrad, adadelta, sgd, found 'adam'"):
            WarpSettings(rule="adam")
        with pytest.raises(SettingsError, match=r"rank_estimator is one of plugin, .*, found 'best'"):
            WarpSettings(rank_estimator="best")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", list(LEARNING_RATES))
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_twin(estimator, rule, dtype, rng):
    """Step by step the same as plain Python, sparse and dense, in one call or many, the L2 penalty in instalments."""
    X = (rng.normal(size=(60, 7)) * (rng.random((60, 7)) < 0.5)).astype(dtype)
    grades = rng.integers(0, 3, size=60)
    groups = rng.integers(0, 5, size=60)
    pairs = candidates(grades, groups)
    negatives = [pairs.members[s : s + c].tolist() for s, c in zip(pairs.starts, pairs.counts, strict=True)]
    order = rng.permutation(np.tile(np.arange(pairs.rows.size), 6))
    settings = {"rate": LEARNING_RATES[rule], "l2": 0.01}
    seed, instalment, cap = 2**63 + 11, 16, 7
    table = warp.loss_of_rank("harmonic", pairs.counts.max())
    search = Search(table, estimator, 1 / table[-1], cap, Random(seed))
    descent = Descent(rng.normal(size=7) * 2.0, rule, instalment=instalment, **settings)
    start = descent.value.copy()
    run_rows(X.astype(float), pairs.rows, negatives, order, search, descent)
    assert np.abs(descent.value - start).max() > 0.01
    assert 0 < search.updates < order.size < search.trials
    index_types = {"csr 32": np.int32, "csr 64": np.int64}
    for form, pieces in product(["dense", *index_types], [1, 5]):
        matrix = X
        if form != "dense":
            matrix = sp.csr_array(X)
            matrix.indptr, matrix.indices = (a.astype(index_types[form]) for a in (matrix.indptr, matrix.indices))
        w = start.copy()
        native = loop(
            w, pairs.rows, pairs.starts, pairs.counts, pairs.members, tau="harmonic", estimator=estimator,
            rule=rule, trials=cap, seed=seed, instalment=instalment, scale=1 / table[-1], **settings,
        )  # fmt: skip
        found = np.sum([run(native, matrix, part) for part in np.array_split(order, pieces)], axis=0)
        native.settle()
        np.testing.assert_allclose(found, (search.trials, search.updates, search.loss), rtol=1e-10)
        np.testing.assert_allclose(w, descent.value, rtol=1e-9, atol=1e-12)


def test_candidates_against_their_definition(rng):
    for _ in range(300):
        n = int(rng.integers(1, 12))
        grades = rng.integers(0, int(rng.integers(1, 5)), size=n) * 1.5 - 2
        if rng.random() < 0.3:
            grades = grades > -2
        groups = rng.integers(0, int(rng.integers(1, 5)), size=n) * 3 - 4 if rng.random() < 0.8 else None
        group = np.zeros(n) if groups is None else groups
        expected = {
            i: {j for j in range(n) if group[i] == group[j] and grades[j] < grades[i]} for i in range(n)
        }  # fmt: skip
        expected = {i: found for i, found in expected.items() if found}
        if not expected:
            with pytest.raises(NothingToRankError):
                candidates(grades, groups)
            continue
        found = candidates(grades, groups)
        stretches = zip(found.rows, found.starts, found.counts, strict=True)
        assert {i: set(found.members[s : s + c].tolist()) for i, s, c in stretches} == expected
        assert found.rows.size == len(expected)
        useful = len({group[i] for i in expected})
        assert (found.queries, found.queries_skipped) == (useful, np.unique(group).size - useful)


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
        w = train_top(X, relevant, queries=groups, tau=tau, **settings).w
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
        assert objective(trained.w)[0] <= 1.03 * best
        assert trained.epochs[-1].passed.loss == pytest.approx(best, rel=0.1)  # the estimate says so too


@pytest.mark.parametrize("rule", list(LEARNING_RATES))
@pytest.mark.parametrize("tau", TAUS)
def test_it_learns(tau, rule):
    X, relevant = cancer()
    trained = train_top(X, relevant, tau=tau, rule=rule, epochs=10)
    values = evaluate(["AUC", "AP"], X @ trained.w, relevant).values
    assert min(values.values()) > 0.985
    assert trained.positives == relevant.sum()
    assert (trained.queries, trained.queries_skipped) == (1, 0)


def test_a_seed_is_a_result(monkeypatch):
    """The same bits, however the passes are cut into calls; another seed gives another result."""
    X, relevant = cancer()
    first = train_top(X, relevant, epochs=3, l2=1e-4)
    for seconds in (0.1, 1e-9):
        monkeypatch.setattr(warp, "SECONDS_A_CALL", seconds)
        again = train_top(X, relevant, epochs=3, l2=1e-4)
        np.testing.assert_array_equal(again.w, first.w)
        for now, then in zip(again.epochs, first.epochs, strict=True):
            assert (now.passed.trials, now.passed.updates) == (then.passed.trials, then.passed.updates)
            assert now.passed.loss == pytest.approx(then.passed.loss, rel=1e-12)  # summed call by call
    other = train_top(X, relevant, epochs=3, l2=1e-4, seed=1)
    assert not np.array_equal(other.w, first.w)


def test_threads_share_the_weights():
    """No two runs need agree: every draw is made, and it learns as well."""
    X, relevant = cancer()
    X, relevant = np.tile(X, (4, 1)), np.tile(relevant, 4)
    for matrix, l2 in product((X, sp.csr_array(X)), (0.0, 1e-4)):
        trained = train_top(matrix, relevant, epochs=3, threads=2, l2=l2)
        assert [epoch.passed.draws for epoch in trained.epochs] == [relevant.sum()] * 3
        assert evaluate(["AP"], X @ trained.w, relevant).values["AP"] > 0.985


def test_sparse_and_dense_and_their_storage():
    X, relevant = cancer()
    X = np.where(np.abs(X) > 0.8, X, 0.0).astype(np.float32).astype(np.float64)
    shuffled = sp.csr_array(X)
    for a, b in pairwise(shuffled.indptr):
        shuffled.indices[a:b], shuffled.data[a:b] = shuffled.indices[a:b][::-1].copy(), shuffled.data[a:b][::-1].copy()
    shuffled.has_sorted_indices = False
    forms = [X, np.asfortranarray(X), X.astype(np.float32), sp.csr_array(X), sp.csc_array(X), shuffled]
    found = [train_top(form, relevant, epochs=3, l2=1e-4).w for form in forms]
    for w in found[1:]:
        np.testing.assert_allclose(w, found[0], rtol=1e-8)
    assert (np.diff(shuffled.indices[: shuffled.indptr[1]]) < 0).all()  # the caller's matrix is left alone


def test_a_selection_of_rows_and_a_bias(rng):
    X, relevant = cancer()
    chosen = rng.permutation(len(relevant))[:300]
    whole = train_top(X[chosen], relevant[chosen], epochs=2)
    selected = train_top(Rows(X, bias=1.0).select(chosen), relevant[chosen], epochs=2)
    np.testing.assert_array_equal(selected.w[:-1], whole.w)
    assert selected.w[-1] == 0.0


def test_preference_between_grades():
    """Three grades on a line: a threshold sees two of them, preference all."""
    X = np.repeat([[2.0, 0.0], [1.0, 0.0], [0.0, 0.0]], 30, axis=0)
    X[:, 1] = np.tile([1.0, -1.0], 45)
    grades = np.repeat([2, 1, 0], 30)
    trained = train_top(X, grades, epochs=50)
    scores = X @ trained.w
    assert trained.positives == 60
    assert scores[:30].min() > scores[30:60].max()
    assert scores[30:60].min() > scores[60:].max()
    assert train_top(X, grades >= 2, epochs=1).positives == 30


def test_one_positive():
    X = np.array([[1.0], [0.0], [-1.0]])
    trained = train_top(X, np.array([True, False, False]), epochs=300)
    assert trained.ending is Ending.NOTHING_VIOLATES
    assert trained.w[0] > 1


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
    assert (trained.queries, trained.queries_skipped, trained.positives) == (1, 2, 1)
    assert trained.w[0] > 0 > trained.w[1]
    assert (trained.w[2:] == 0).all()


@pytest.mark.parametrize(("cap", "trials"), [(None, 40), (7, 7), (90, 90)])
def test_where_nothing_violates_a_draw_costs_the_cap(cap, trials):
    X = np.vstack([np.full((5, 1), 1.0), np.zeros((40, 1))])
    start = np.array([1.5])
    trained = train_top(X, np.arange(45) < 5, max_trials=cap, epochs=9, start=start)
    assert trained.ending is Ending.NOTHING_VIOLATES
    assert len(trained.epochs) == 1
    passed = trained.epochs[0].passed
    assert (passed.draws, passed.trials, passed.updates, passed.loss) == (5, 5 * trials, 0, 0.0)
    assert trained.w.tolist() == start.tolist()


def test_a_thousand_trials_at_most():
    X = np.vstack([np.full((2, 1), 1.0), np.zeros((5000, 1))])
    trained = train_top(X, np.arange(5002) < 2, epochs=1, start=np.array([2.0]))
    assert trained.epochs[0].passed.trials == 2000


def test_the_penalty_alone_shrinks_the_weights():
    """Nothing violates: w ← w/(1 + rate·l2·m) for each instalment of m draws, whatever the rule's accumulators say."""
    X = np.vstack([np.full((50, 1), 1.0), np.zeros((10, 1))])
    settings = {"rule": "sgd", "learning_rate": 0.1, "l2": 0.01, "epochs": 1}
    trained = train_top(X, np.arange(60) < 50, start=np.array([3.0]), **settings)
    assert trained.epochs[0].passed.updates == 0
    assert trained.w[0] == pytest.approx(3.0 / (1 + 0.001 * 16) ** 3 / (1 + 0.001 * 2), rel=1e-12)


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
    np.testing.assert_array_equal(trained.w, weights[1])
    assert [line.number for line in seen] == [epoch.number for epoch in trained.epochs] == [1, 2, 3, 4, 5]
    assert [line.values["AP"] for line in seen] == [0.3, 0.6, 0.5, 0.4, 0.3]
    for line, epoch in zip(seen, trained.epochs, strict=True):
        shown = {name: line.values[name] for name in ("trials", "updates", "est. loss")}
        assert shown == dict(zip(shown, (epoch.passed.trials, epoch.passed.updates, epoch.passed.loss), strict=True))


def test_the_log():
    class Records(list):
        def write(self, event, **fields):
            self.append((event, fields))

    X, relevant = cancer()
    log = Records()
    trained = train_top(X, relevant, epochs=3, watch=Watch(log=log))
    assert [event for event, _ in log] == ["epoch"] * 3
    for (_, fields), epoch in zip(log, trained.epochs, strict=True):
        assert fields["draws"] == relevant.sum()
        assert fields["trials"] == epoch.passed.trials >= fields["updates"] > 0
        assert fields["loss"] == epoch.passed.loss > 0
        assert fields["validation"] is None
        assert fields["seconds"] >= fields["pass_seconds"] > 0


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
    assert trained.w.any()
    limited = train_top(X, relevant, epochs=10**6, time_limit=0.05)
    assert limited.ending is Ending.TIME_LIMIT


def test_a_start_is_started_from():
    X, relevant = cancer()
    start = np.linspace(-1, 1, X.shape[1])
    trained = train_top(X, relevant, epochs=1, learning_rate=1e-12, start=start)
    np.testing.assert_allclose(trained.w, start, atol=1e-8)


def test_values_too_large_are_an_error_not_a_crash(rng):
    X = rng.normal(size=(40, 3)) * 1e300
    with pytest.raises(FloatingPointError, match="scale them down"):
        train_top(X, np.arange(40) < 5, rule="sgd")


def test_tiny_values_and_constant_features_are_fine(rng):
    X = rng.normal(size=(40, 3)) * 1e-300
    X[:, 2] = 5.0
    trained = train_top(X, np.arange(40) < 5, epochs=2)
    assert np.isfinite(trained.w).all()
    assert trained.w[2] == 0.0
