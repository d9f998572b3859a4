"""The steps of WARP against loops in Python: the sampled step, the estimators of the rank, the draws."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from over import over
from warp_twin import Descent, Random, Search, run_rows, weight_after

from apsvm._native import _kernels
from apsvm._support.registry import UnknownNameError
from apsvm.risk import NothingToRankError
from apsvm.trainers.settings import SettingsError
from apsvm.trainers.warp import descent as warp
from apsvm.trainers.warp.descent import candidates
from apsvm.trainers.warp.settings import ESTIMATORS, LEARNING_RATES, WarpSettings
from apsvm.trainers.warp.trainer import WarpTrainer

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
        return native.run_csr(_kernels.CsrMatrix(X.indptr, X.indices, X.data, *X.shape), order)
    return native.run_dense(X, order)


def expected_weight(tau, estimator, n, k, last=10**6):
    """E[L̂] where k of n negatives violate, by summing over the trials."""
    t = np.arange(1, last + 1)
    p = k / n
    weights = weight_after(warp.loss_of_rank(tau, n), estimator, n, t)
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

    @over(("tau", "form"), list(product(TAUS, ["dense", "csr"])))
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

    @pytest.mark.slow
    @over(
        ("tau", "estimator"),
        [("auc", "plugin"), ("harmonic", "plugin"), ("p@5", "plugin"), ("harmonic", "log-unbiased")],
    )
    @over("k", [1, 3, 20, 50])
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

    def test_weights_after_few_trials_and_many(self):
        """H_{t−1} is summed for small t, and a series for large ones."""
        n, hinge = 200, 0.6
        scores = np.concatenate([[0.5, 0.1], np.full(n - 1, -0.6)])
        native = loop(scores, [0], [0], [n], range(1, n + 1), tau="harmonic", estimator="log-unbiased", rate=0.0, trials=10**6)  # fmt: skip # noqa: E501
        steps = [run(native, np.eye(n + 1), [0]) for _ in range(300)]
        trials, losses = (np.array([step[at] for step in steps]) for at in (0, 2))
        assert trials.min() < 64 < 500 < trials.max()
        np.testing.assert_allclose(losses, hinge * weight_after(np.empty(0), "log-unbiased", n, trials), atol=1e-11)

    def test_the_families(self):
        assert warp.loss_of_rank("auc", 4).tolist() == [0, 1, 2, 3, 4]
        assert warp.loss_of_rank("p@1", 4).tolist() == [0, 1, 1, 1, 1]
        assert warp.loss_of_rank("p@3", 4).tolist() == [0, 1, 2, 3, 3]
        assert warp.loss_of_rank("p@30", 4).tolist() == [0, 1, 2, 3, 4]
        np.testing.assert_allclose(warp.loss_of_rank("harmonic", 4), [0, 1, 3 / 2, 11 / 6, 25 / 12])

    @over("tau", ["", "AUC", "p@", "p@0", "p@-1", "p@1.5", "p@x", "p@³", "q@1", "p@1@1", "p@" + "9" * 30])
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


@over("dtype", [np.float32, np.float64])
@over("rule", list(LEARNING_RATES))
@over("estimator", ESTIMATORS)
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


@pytest.mark.parametrize("rule", list(LEARNING_RATES))
@pytest.mark.parametrize(("columns", "step", "longest"), [(5120, 256, 4), (700, 2, 500)])
def test_rows_of_many_columns(columns, step, longest, rule, rng):
    """Columns whose lowest bits agree, and more of them than are moved at once; rows from empty to long."""
    X = np.zeros((40, columns))
    for row in X:
        n = rng.integers(0, longest + 1)
        row[rng.integers(0, columns // step, n) * step + rng.integers(0, 2, n)] = rng.normal()
    X[0] = X[1]  # no step
    grades = np.arange(40) % 2
    pairs = candidates(grades, None)
    order = rng.permutation(np.tile(np.arange(pairs.rows.size), 5))
    table = warp.loss_of_rank("auc", pairs.counts.max())
    search = Search(table, "plugin", 1 / table[-1], 7, Random(3))
    descent = Descent(rng.normal(size=columns), rule, rate=LEARNING_RATES[rule], l2=0.0, instalment=16)
    start = descent.value.copy()
    negatives = [pairs.members[s : s + c].tolist() for s, c in zip(pairs.starts, pairs.counts, strict=True)]
    run_rows(X, pairs.rows, negatives, order, search, descent)
    assert np.count_nonzero(descent.value != start) > (150 if longest > 128 else 10)
    for matrix in (X, sp.csr_array(X)):
        w = start.copy()
        native = loop(
            w, pairs.rows, pairs.starts, pairs.counts, pairs.members, tau="auc", estimator="plugin", rule=rule,
            trials=7, seed=3, rate=LEARNING_RATES[rule], scale=1 / table[-1],
        )  # fmt: skip
        found = run(native, matrix, order)
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
