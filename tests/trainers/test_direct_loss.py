"""Direct loss minimisation: its bounds and their gradient, the theorem behind them, and what the descent does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from judge import METRICS, hinge_by_interleavings, loss_of_order
from over import over
from scipy.stats import norm
from sklearn.metrics import average_precision_score
from trainings import target_of, train_by_steps, training_set

from apsvm.data.rows import Rows
from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import LossOverRankings, RankingLoss
from apsvm.oracles import make_oracle
from apsvm.oracles.against_loss import AgainstLoss
from apsvm.oracles.bucket import Bucket
from apsvm.oracles.layout import Queries
from apsvm.risk import NoLoss, make_risk
from apsvm.solvers.sgd import Ending
from apsvm.trainers.base import Watch
from apsvm.trainers.direct_loss import descent as direct_loss
from apsvm.trainers.direct_loss.descent import StepOfQueries
from apsvm.trainers.direct_loss.settings import DirectSettings

UPDATES = ["positive", "negative"]
SERVED = {
    update: [LOSSES[form]().name for form in LOSSES if issubclass(LOSSES[form], kind)]
    for update, kind in (("positive", LossOverRankings), ("negative", RankingLoss))
}


def one_query(n_pos, n_neg):
    return Queries(np.array([n_pos]), np.array([n_neg]), np.ones(1))


def noisy(rng, n=600, share=0.15):
    """A signal, and a tenth of the positives where the negatives are."""
    relevant = rng.random(n) < share
    lift = np.where(rng.random(n) < 0.1, -1.0, 1.5) * relevant
    return training_set(rng.normal(size=(n, 5)) + lift[:, None] * np.array([1, 0.5, 0, 0, 0]), relevant)


def training_ap(data, w):
    return average_precision_score(data.target.relevant, data.rows.scores(w))


class TestBounds:
    @pytest.mark.parametrize("name", ["ap", "ndcg", "mrr", "auc", "rbp(0.8)"])
    def test_their_definition_on_tiny_queries(self, name, rng):
        loss, metric, apart = make_loss(name), METRICS[LOSSES.spelled(name).form], 0
        for _ in range(80):
            n_pos, n_neg = rng.integers(1, 5, size=2)
            relevant = np.arange(n_pos + n_neg) < n_pos
            scores = rng.normal(size=n_pos + n_neg)
            epsilon = float(rng.choice([0.05, 0.5, 5.0]))
            scaled = scores / scores.std()
            found = [
                StepOfQueries(
                    one_query(n_pos, n_neg),
                    loss,
                    make_oracle("auto", loss),
                    DirectSettings(update=update, perturbation=epsilon, l2=0.0),
                )
                .slope(scores, 1.0)
                .value
                for update in UPDATES
            ]
            # max [F ± εΔ] / ε is max [F/ε ± Δ]: F is linear in the scores.
            by_score = hinge_by_interleavings(scaled / epsilon, relevant, lambda order: 0.0)
            upper = hinge_by_interleavings(scaled / epsilon, relevant, metric) - by_score
            lower = by_score - hinge_by_interleavings(scaled / epsilon, relevant, lambda order: -metric(order))
            assert found == pytest.approx([upper, lower], abs=1e-10)
            lost = loss_of_order(metric, relevant[np.argsort(-scores)])
            assert lower <= lost + 1e-10
            assert lost <= upper + 1e-10
            apart += upper - lower > 0.01
        assert apart > 10

    @over("update", UPDATES)
    @over("l2", [0.0, 0.7])
    @over("queries", [1, 8])
    def test_their_gradient_by_finite_differences(self, update, l2, queries, rng):
        """Away from the kinks; the deviation of the scores moves along."""
        layout = Queries(rng.integers(1, 9, size=queries), rng.integers(1, 20, size=queries), rng.random(queries))
        n = int((layout.n_pos + layout.n_neg).sum())
        lists = StepOfQueries(layout, make_loss("ap"), Bucket(), DirectSettings(update=update, perturbation=0.3, l2=l2))
        length, step, nonzero = 1.4, 1e-6, 0
        for _ in range(20):
            scores, direction = rng.normal(size=n), rng.normal(size=n)
            here = lists.slope(scores, length)
            ahead, behind = (lists.slope(scores + at * direction, length).value for at in (step, -step))
            expected = here.of_scores @ direction
            assert (ahead - behind) / (2 * step) == pytest.approx(expected, rel=1e-4, abs=1e-6)
            ahead, behind = (lists.slope(scores, length + at).value for at in (step, -step))
            assert (ahead - behind) / (2 * step) == pytest.approx(here.of_length, rel=1e-4, abs=1e-6)
            assert here.of_scores.sum() == pytest.approx(0.0, abs=1e-12)
            # L does not change with the length of w.
            assert here.of_scores @ scores + length * here.of_length == pytest.approx(0.0, abs=1e-10)
            nonzero += abs(expected) > 1e-3
        assert nonzero > 10

    @pytest.mark.slow
    @pytest.mark.parametrize("update", UPDATES)
    def test_the_theorem(self, update, rng):
        """d E[Δ] / ds is the mean of ±(c± − c⁰)/ε as ε → 0. E[Δ] is known here: of one positive and negatives with
        normal noise, the number above the positive is a sum of independent choices, given the positive's noise."""
        means = np.array([0.3, 0.0, 0.9, -0.4, 0.5])
        points, weights = np.polynomial.hermite_e.hermegauss(80)

        def expected_loss(means):
            above = norm.cdf(means[1:, None] - means[0] - points[None, :])
            counts = np.zeros((means.size, points.size))
            counts[0] = 1.0
            for p in above:
                counts[1:] = counts[1:] * (1 - p) + counts[:-1] * p
                counts[0] *= 1 - p
            precision = (counts / np.arange(1, means.size + 1)[:, None]).sum(axis=0)
            return 1.0 - precision @ weights / weights.sum()

        step = 1e-5
        exact = np.array(
            [
                (expected_loss(means + step * e) - expected_loss(means - step * e)) / (2 * step)
                for e in np.eye(means.size)
            ]
        )
        assert exact[0] < -0.1
        draws, epsilon = 150_000, 0.03
        layout = Queries(np.full(draws, 1), np.full(draws, 4), np.ones(draws))
        scores = (means + rng.normal(size=(draws, 5))).ravel() / epsilon
        found, by_score = np.empty(scores.size), np.empty(scores.size)
        sign, oracle = (1, make_oracle("auto", make_loss("ap"))) if update == "positive" else (-1, AgainstLoss())
        oracle.bind_queries(make_loss("ap"), layout)(scores, found)
        make_oracle("bucket", NoLoss()).bind_queries(NoLoss(), layout)(scores, by_score)
        gradients = sign * (found - by_score).reshape(draws, 5) / epsilon
        error = gradients.std(axis=0) / np.sqrt(draws)
        assert (error < 0.02).all()
        # What ε itself adds is of its own order.
        np.testing.assert_array_less(np.abs(gradients.mean(axis=0) - exact), 4 * error + 0.01)


class TestDescent:
    @over(("update", "name"), [(update, name) for update in UPDATES for name in SERVED[update]])
    @over("kind", ["one query", "queries", "grades", "sampled"])
    def test_every_loss_goes_down(self, update, name, kind, rng):
        data = noisy(rng)
        more = {"step_rows": 150} if kind == "sampled" else {}
        if kind in ("queries", "grades"):
            data = replace(data, queries=rng.integers(0, 12, size=600))
        if kind == "grades":
            if "ndcg" not in name:
                return
            relevant = data.target.relevant
            grades = np.where(relevant, rng.integers(1, 4, size=600), 0).astype(float)
            data = replace(data, target=target_of(relevant, grades))
        trained = train_by_steps(data, name, update=update, epochs=10, **more)
        assert np.isfinite(trained.w).all()
        assert training_ap(data, trained.w) > 1.8 * data.target.relevant.mean()
        if kind == "one query" and name in ("ap", "ndcg", "auc"):
            assert trained.epochs[-1].passed.loss < trained.epochs[0].passed.loss
            assert training_ap(data, trained.w) >= training_ap(data, np.array([1.0, 0.5, 0, 0, 0])) - 0.02

    @pytest.mark.parametrize("update", UPDATES)
    def test_better_than_the_difference_of_means(self, update, rng):
        """Two correlated features, of which only the difference tells: the means alone do not see it."""
        relevant = np.arange(400) < 60
        shared = rng.normal(size=400)
        X = np.stack(
            [shared + 0.3 * rng.normal(size=400) + 0.6 * relevant, shared + 0.3 * rng.normal(size=400)], axis=1
        )
        data = training_set(X, relevant)
        trained = train_by_steps(data, update=update)
        means = X[relevant].mean(axis=0) - X[~relevant].mean(axis=0)
        assert training_ap(data, trained.w) > training_ap(data, means) + 0.1
        assert trained.w[1] < 0 < trained.w[0]

    def test_a_seed_is_a_model(self, rng):
        data = noisy(rng)
        first, again, other = (train_by_steps(data, step_rows=100, seed=seed).w for seed in (5, 5, 6))
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)

    @pytest.mark.parametrize("update", UPDATES)
    def test_sparse_rows_threads_and_float32(self, update, rng):
        data = noisy(rng)
        data = replace(data, queries=rng.integers(0, 20, size=600))
        settings = {"update": update, "epochs": 5, "step_rows": 200}
        X = data.rows.in_memory().matrix
        w = train_by_steps(data, **settings).w
        sparse = train_by_steps(replace(data, rows=Rows(sp.csr_array(X))), **settings).w
        threads = train_by_steps(replace(data, rows=Rows(X, threads=2)), **settings).w
        single = train_by_steps(replace(data, rows=Rows(X.astype(np.float32))), **settings).w
        assert np.array_equal(w, threads)
        np.testing.assert_allclose(sparse, w, rtol=1e-6)
        assert training_ap(data, single) == pytest.approx(training_ap(data, w), abs=0.01)

    @pytest.mark.parametrize("update", UPDATES)
    @pytest.mark.parametrize("factor", [2.0**-300, 2.0**10, 2.0**300])
    def test_the_scale_of_the_features_is_no_matter(self, update, factor, rng):
        data = noisy(rng)
        settings = {"update": update, "epochs": 3, "l2": 0.5}
        w = train_by_steps(data, **settings).w
        scaled = train_by_steps(replace(data, rows=Rows(factor * data.rows.in_memory().matrix)), **settings).w
        assert np.array_equal(scaled * factor, w)

    @pytest.mark.slow
    def test_l2_draws_away_from_directions_of_little_variance(self, rng):
        relevant = np.arange(400) < 60
        shared = rng.normal(size=400)
        X = np.stack(
            [shared + 0.3 * rng.normal(size=400) + 0.6 * relevant, shared + 0.3 * rng.normal(size=400)], axis=1
        )
        data = training_set(X, relevant)
        ratios = []
        for l2 in (0.0, 1.0, 100.0):
            w = train_by_steps(data, l2=l2, perturbation=10.0, epochs=100).w
            ratios.append(w[1] / w[0])
        assert ratios[0] < ratios[1] < ratios[2] < 0

    def test_a_start(self, rng):
        data = noisy(rng)
        settings = {"epochs": 1, "learning_rate": 1e-9}
        start = np.array([1.0, -2.0, 0.0, 0.0, 4.0])
        w = train_by_steps(data, **settings, start=start).w
        assert data.rows.scores(w).std() == pytest.approx(1.0)
        np.testing.assert_allclose(w / w[0], start, atol=1e-6)
        X, relevant = data.rows.in_memory().matrix, data.target.relevant
        means = X[relevant].mean(axis=0) - X[~relevant].mean(axis=0)
        for nothing in (None, np.zeros(5)):
            w = train_by_steps(data, **settings, start=nothing).w
            np.testing.assert_allclose(w / w[0], means / means[0], rtol=1e-5)

    @pytest.mark.parametrize(("step_rows", "rows", "steps"), [(600, 6000, 10), (150, 1500, 10), (55, 605, 11)])
    def test_an_epoch_takes_every_row_about_once_and_ten_steps(self, step_rows, rows, steps, rng):
        data, asked = noisy(rng), []
        watch = Watch(should_stop=lambda: bool(asked.append(None)))
        trained = train_by_steps(data, step_rows=step_rows, epochs=2, watch=watch)
        assert [epoch.passed.draws for epoch in trained.epochs] == [rows, rows]
        assert len(asked) == 2 * steps + 2  # and after each epoch

    def test_the_best_epoch_is_kept_and_patience_ends_it(self, rng):
        data, seen = noisy(rng), []

        def validate(w):
            seen.append(w.copy())
            return [0.1, 0.3, 0.2, 0.25, 0.3, 0.1, 0.9][len(seen) - 1]

        epochs = []
        trained = train_by_steps(data, patience=3, watch=Watch(progress=epochs.append), validate=validate)
        assert (trained.best_epoch, len(trained.epochs), trained.ending) == (2, 5, Ending.STOPPED_IMPROVING)
        assert [epoch.values["AP"] for epoch in epochs] == [0.1, 0.3, 0.2, 0.25, 0.3]
        assert np.array_equal(trained.w, seen[1])
        assert not np.array_equal(seen[1], seen[2])

    def test_it_can_be_stopped(self, rng):
        data, asked = noisy(rng), []

        def stop():
            asked.append(None)
            return len(asked) > 14

        trained = train_by_steps(data, watch=Watch(should_stop=stop))
        assert trained.ending == Ending.INTERRUPTED
        assert len(trained.epochs) < 3
        assert train_by_steps(data, time_limit=0.0).ending == Ending.TIME_LIMIT

    @pytest.mark.parametrize("update", UPDATES)
    def test_where_nothing_is_wrong_it_ends(self, update):
        X = np.array([[5.0], [5.1], [5.2], [-5.0], [-5.1], [-5.2]])
        data = training_set(X, X[:, 0] > 0)
        trained = train_by_steps(data, update=update, perturbation=1e-3)
        assert (trained.ending, len(trained.epochs)) == (Ending.NOTHING_VIOLATES, 1)
        assert trained.epochs[0].passed.loss == 0.0
        assert trained.w[0] > 0

    def test_the_smallest_query(self):
        data = training_set(np.array([[1.0], [0.0]]), np.array([True, False]))
        for update in UPDATES:
            assert train_by_steps(data, update=update, epochs=60, learning_rate=0.1).w[0] > 0

    @pytest.mark.parametrize("update", UPDATES)
    def test_constant_features_get_no_weight(self, update, rng):
        data = noisy(rng, n=200)
        X = np.column_stack([data.rows.in_memory().matrix, np.full(200, 1e6), np.zeros(200)])
        trained = train_by_steps(replace(data, rows=Rows(X, bias=1.0)), update=update, epochs=3)
        assert np.abs(trained.w[:5]).min() > 0
        np.testing.assert_allclose(trained.w[5:], 0.0, atol=1e-9)
        constant = replace(data, rows=Rows(np.ones((200, 2))))
        trained = train_by_steps(constant, update=update)
        assert trained.ending == Ending.NOTHING_VIOLATES
        np.testing.assert_allclose(trained.w, 0.0, atol=1e-9)


class TestBatches:
    def test_each_query_once(self, rng):
        groups = np.repeat(np.arange(40), rng.integers(2, 30, size=40))
        relevant = rng.random(groups.size) < 0.4
        risk = make_risk(
            Rows(rng.normal(size=(groups.size, 2))), relevant, make_loss("ap"), make_oracle("auto", make_loss("ap")),
            groups=groups, query_weights={3: 5.0},
        )  # fmt: skip
        batches = list(direct_loss._batches(risk, DirectSettings(step_rows=60), rng))
        taken = np.sort(np.concatenate([batch.draw(rng).in_memory().selection for batch in batches]))
        assert np.array_equal(taken, np.sort(risk.rows.in_memory().selection))
        assert sum(batch.queries for batch in batches) == risk.queries
        sizes = [len(batch.draw(rng)) for batch in batches]
        assert max(sizes) <= 60
        assert len(batches) < risk.queries / 2

    def test_their_mean_is_the_whole(self, rng):
        """With σ the same everywhere (a large l2), the mean of the batches' L by their queries is L."""
        groups = np.repeat(np.arange(50), 10)
        rows, relevant = Rows(rng.normal(size=(500, 2))), np.arange(500) % 10 < 3
        loss = make_loss("ap")
        weights = {group: float(weight) for group, weight in enumerate(rng.random(50))}
        risk = make_risk(rows, relevant, loss, make_oracle("auto", loss), groups=groups, query_weights=weights)
        values = []
        for step_rows in (40, 5000):
            batches = list(direct_loss._batches(risk, DirectSettings(step_rows=step_rows, l2=1e9), rng))
            found = [
                batch.queries * batch.lists.slope(batch.rows.scores(np.ones(2)), 10.0).value
                for batch in batches
            ]  # fmt: skip
            values.append(sum(found) / risk.queries)
        assert len(found) == 1
        assert values[0] == pytest.approx(values[1], rel=1e-3)

    def test_a_rare_class_has_a_few_rows_in_a_sample(self, rng):
        loss = make_loss("ap")
        relevant = np.arange(2000) < 20
        risk = make_risk(Rows(np.zeros((2000, 1))), relevant, loss, make_oracle("auto", loss))
        (batch,) = direct_loss._batches(risk, DirectSettings(step_rows=100), rng)
        assert relevant[batch.draw(rng).in_memory().selection].sum() == 8

    @pytest.mark.parametrize("graded", [False, True])
    def test_a_sample_of_a_long_query(self, graded, rng):
        grades = np.repeat([3.0, 1.0, 0.0], [4, 96, 900])
        loss = make_loss("ndcg")
        risk = make_risk(
            Rows(np.arange(1000.0)[:, None]), grades > 0, loss, make_oracle("auto", loss),
            grades=grades if graded else None,
        )  # fmt: skip
        (batch,) = direct_loss._batches(risk, DirectSettings(step_rows=100), rng)
        counts = np.zeros(1000)
        for _ in range(300):
            rows = batch.draw(rng)
            kept = grades[rows.in_memory().selection]
            if graded:
                assert np.unique(kept, return_counts=True)[1].tolist() == [90, 10, 4]
            else:
                assert (kept > 0).sum() == 10
                assert kept.size == 100
            assert (np.diff(grades[rows.in_memory().selection]) <= 0).all()
            assert np.unique(rows.in_memory().selection).size == kept.size
            assert batch.steps == 10
            counts[rows.in_memory().selection] += 1
        assert counts[100:].min() > 0  # every row has its turn
        assert np.isfinite(batch.lists.slope(batch.draw(rng).scores(np.ones(1)), 1.0).value)
