"""The tighter bound: where it lies, that it only falls, and that it ends where the certificate says."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from judge import METRICS, hinge_by_permutations, pair_score
from over import over
from trainings import make_risk, solve, target_of, train_appx, train_svm, training_set

from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.oracles import make_oracle
from apsvm.risk import Risk
from apsvm.solvers.state import State
from apsvm.trainers.base import Watch
from apsvm.trainers.structured_svm.descent import Descent
from apsvm.trainers.structured_svm.settings import StructuredSettings

LOSSES = ["ap", "ndcg", "mrr", "auc", "rbp(0.8)", "p@3", "ndcg@5", "ndcg-chakrabarti"]


def risks(data, name):
    loss = make_loss(name)
    target, oracle = data.target, make_oracle("auto", loss)
    risk = make_risk(data.rows, target.relevant, loss, oracle, groups=data.queries, grades=target.grades)
    return risk, risk.by_score()


def value(risk, scores):
    return risk.tangent(scores, np.empty(scores.size)).value


def tight(data, name, w, C):
    risk, by_score = risks(data, name)
    scores = risk.scores(w)
    return 0.5 * float(w @ w) + C * (value(risk, scores) - value(by_score, scores))


@pytest.fixture
def noisy(rng):
    """A signal, and a tenth of the positives where the negatives are: 600 rows in one query."""
    relevant = rng.random(600) < 0.15
    lift = np.where(rng.random(600) < 0.1, -1.0, 1.5) * relevant
    return training_set(rng.normal(size=(600, 5)) + lift[:, None] * np.array([1, 0.5, 0, 0, 0]), relevant)


@pytest.mark.slow
def test_the_order_by_score_of_tiny_queries(rng):
    """g = max_R w·Ψ(R) − w·Ψ(R*) over all orders, from its definition."""
    positive = 0
    for _ in range(200):
        n = int(rng.integers(2, 7))
        relevant = rng.permutation(np.arange(n) < rng.integers(1, n))
        scores = rng.integers(-3, 4, size=n) / 4.0
        data = training_set(scores[:, None], relevant)
        _, by_score = risks(data, "ap")
        found = by_score(np.ones(1))
        expected = hinge_by_permutations(scores, relevant, lambda order: 1.0)
        assert found.value == pytest.approx(expected, abs=1e-12)
        positive += found.value > 0
        best = np.empty(n, dtype=np.int64)
        best[np.argsort(np.where(relevant, 0, 1), kind="stable")] = np.arange(n)
        place = np.empty(n, dtype=np.int64)
        place[np.argsort(-scores, kind="stable")] = np.arange(n)
        gain = pair_score(scores, relevant, place) - pair_score(scores, relevant, best)
        assert found.value == pytest.approx(gain, abs=1e-12)
    assert positive > 50


@over("name", LOSSES)
@over("n", [7, 300])
def test_between_the_loss_and_the_hinge(name, n, rng):
    metric = METRICS.get(name)
    strictly = 0
    for _ in range(40):
        relevant = rng.permutation(np.arange(n) < max(1, n // 5))
        data = training_set(rng.normal(size=(n, 3)) + 0.5 * relevant[:, None], relevant)
        w = rng.normal(size=3) * rng.choice([0.1, 1.0, 10.0])
        risk, by_score = risks(data, name)
        scores = risk.scores(w)
        hinge, beyond = value(risk, scores), value(by_score, scores)
        assert 0.0 <= beyond <= hinge + 1e-12
        strictly += beyond > 1e-6
        if metric is not None:
            order = np.argsort(-data.rows.scores(w))
            ideal = metric(np.sort(relevant)[::-1])
            lost = ideal - metric(relevant[order])
            assert lost <= hinge - beyond + 1e-9
    assert strictly > 20


def test_its_gradient_by_finite_differences(noisy, rng):
    """Away from the kinks: with scores all different, a small step crosses none of g."""
    _, by_score = risks(noisy, "ap")
    w, d = rng.normal(size=5), rng.normal(size=5)
    step = 1e-7
    here = by_score(w)
    ahead, behind = by_score(w + step * d).value, by_score(w - step * d).value
    assert (ahead - behind) / (2 * step) == pytest.approx(here.plane @ d, rel=1e-4)
    assert here.plane @ w == pytest.approx(here.value, rel=1e-9)  # homogeneous


@over(
    ("name", "kind"),
    [
        (name, kind)
        for name in LOSSES
        for kind in ("one query", "queries", "grades")
        if kind != "grades" or "ndcg" in name
    ],
)
def test_it_falls_to_a_stationary_point(noisy, name, kind, rng):
    data = noisy
    if kind != "one query":
        data = replace(data, queries=rng.integers(0, 12, size=600))
    if kind == "grades":
        relevant = data.target.relevant
        grades = np.where(relevant, rng.integers(1, 4, size=600), 0).astype(float)
        data = replace(data, target=target_of(relevant, grades))
    C, epsilon, seen = 200.0, 1e-3, []
    settings = {"loss": name, "C": C, "epsilon": epsilon}
    trained = train_svm(data, **settings, bound="tight", watch=Watch(progress=seen.append))
    descents = {progress.stage: [] for progress in seen if progress.stage.startswith("tight")}
    hinge = train_svm(data, **settings)
    risk, by_score = risks(data, name)
    starts = ["from the hinge", "from the means"]
    assert set(descents) in [{"tight C=200", f"tight, {start} C=200"} for start in starts]
    for progress in seen:
        descents.get(progress.stage, []).append(progress.values["primal"])
    for values in descents.values():
        assert all(after < before for before, after in pairwise(values))
    certificate = trained.solution.certificate
    assert trained.state == "converged"
    assert certificate.gap <= epsilon * C
    w = trained.w
    assert tight(data, name, w, C) == pytest.approx(certificate.primal, rel=1e-9)
    # Its start is the hinge's solution, whose own objective lies above.
    assert 0.0 <= trained.hinge_objective - hinge.solution.certificate.dual <= 31 * epsilon * C
    assert certificate.primal <= tight(data, name, hinge.w, C) + 1e-9 * C
    assert certificate.primal <= trained.hinge_objective + 1e-9 * C
    # The lower bound of the majorant that touches J at w holds everywhere.
    slope = by_score(w).plane
    for _ in range(50):
        there = w + rng.choice([0.01, 0.3, 3.0]) * rng.normal(size=w.size)
        majorant = 0.5 * there @ there + C * (risk(there).value - slope @ there)
        assert majorant >= certificate.dual - 1e-9 * C
        assert tight(data, name, there, C) <= majorant + 1e-9 * C


def test_hopeless_positives_weigh_less(rng):
    """Where some positives stand among the negatives the hinge gives up ranking that the tight bound keeps."""
    gains = []
    for _ in range(5):
        relevant = rng.random(800) < 0.15
        hopeless = relevant & (rng.random(800) < 0.2)
        X = rng.normal(size=(800, 4)) + 1.5 * (relevant & ~hopeless)[:, None] * np.array([1, 0.5, 0, 0])
        X[hopeless, 0] -= 4.0
        data = training_set(X, relevant)
        precision = []
        for bound in ("hinge", "tight"):
            w = train_svm(data, C=1000.0, bound=bound).w
            order = relevant[np.argsort(-(X @ w))]
            precision.append(METRICS["ap"](order))
        gains.append(precision[1] - precision[0])
    assert min(gains) > -0.01
    assert np.mean(gains) > 0.03


def test_with_the_easy_rows_held(noisy):
    trained, hinge = (train_appx(noisy, C=100.0, keep_easy=30.0, bound=bound) for bound in ("tight", "hinge"))
    assert [stage.name for stage in trained.stages] == ["binary", "difficult", "tight"]
    assert trained.solution.certificate.primal < hinge.solution.certificate.primal
    assert not trained.exact


@over("bound", ["hinge", "tight"])
@over("epsilon", [1e-3, 1e300])
@over(
    ("C", "unit"),
    [*product([1e-310, 1e-300, 1e300], [1e-150, 1e-70, 1.0, 1e70, 1e150]), (1e-196, 1e100), (1e-296, 1e150)],
)
def test_at_the_ends_of_floating_point(bound, epsilon, C, unit, noisy):
    """A certified model, an honest end, or an error that says what is too large; warnings fail the test."""
    data = replace(noisy, rows=Rows(unit * noisy.rows.in_memory().matrix))
    settings = {"C": C, "bound": bound, "epsilon": epsilon, "max_iterations": 200}
    try:
        trained = train_svm(data, **settings)
    except FloatingPointError:
        assert C == 1e300
        with pytest.raises(FloatingPointError, match="C are too large"):
            train_svm(data, **settings)
        return
    found = trained.solution.certificate
    assert np.isfinite(trained.w).all()
    assert np.isfinite([found.primal, found.dual, found.tolerance]).all()
    assert found.dual <= found.primal
    assert found.reached == (trained.state == "converged")


class Trouble:
    """``Risk.tangent`` that finds something not finite from its ``after``-th call on."""

    def __init__(self, monkeypatch, after=np.inf):
        self.calls, self.after, self.tangent = 0, after, Risk.tangent
        monkeypatch.setattr(Risk, "tangent", lambda risk, scores, slopes: self(risk, scores, slopes))

    def __call__(self, risk, scores, slopes):
        self.calls += 1
        if self.calls > self.after:
            raise FloatingPointError("scores are not finite")
        return self.tangent(risk, scores, slopes)


@pytest.mark.parametrize("bound", ["hinge", "tight"])
def test_late_trouble_ends_with_a_model_and_its_certificate(bound, noisy, monkeypatch):
    """Wherever it comes: in the hinge's training, in the descent, or in a round."""
    C, names = 200.0, set()
    with monkeypatch.context() as patched:
        count = Trouble(patched)
        train_svm(noisy, C=C, bound=bound)
    hinge = train_svm(noisy, C=C)
    with monkeypatch.context() as patched:
        Trouble(patched, 0)
        with pytest.raises(FloatingPointError):
            train_svm(noisy, C=C, bound=bound)
    # What is called last only compares what was found with w = 0.
    for after in np.linspace(1, count.calls - 2, 15).astype(int).tolist():
        with monkeypatch.context() as patched:
            Trouble(patched, after)
            trained = train_svm(noisy, C=C, bound=bound)
        assert trained.state is State.NUMERICAL_TROUBLE
        names.add(trained.stages[-1].name)
        certificate, w = trained.solution.certificate, trained.w
        objective = tight(noisy, "ap", w, C)
        if trained.stages[-1].name == "train":
            objective = 0.5 * w @ w + C * risks(noisy, "ap")[0](w).value
            assert trained.hinge_objective is None
            assert certificate.dual <= hinge.solution.certificate.primal
        assert certificate.primal == pytest.approx(objective, rel=1e-9)
        assert certificate.dual <= certificate.primal
        assert trained.solution.trouble == "scores are not finite"
    assert names == ({"train"} if bound == "hinge" else {"train", "tight"})


def test_the_descent_begins_at_the_lowest_start(noisy, monkeypatch):
    """The solution is lower than what else there is, and its opposite higher."""
    names, descend = [], Descent._by_steps

    def noted(self, name, *more):
        names.append(name)
        return descend(self, name, *more)

    def solved(second_start):
        settings = StructuredSettings(bound="tight", threads=1)
        (trained,) = solve(noisy, make_loss("ap"), settings, [200.0], Watch(), second_start=second_start)
        return trained.w

    monkeypatch.setattr(Descent, "_by_steps", noted)
    w = solved(None)
    solved(w)
    solved(-w)
    assert names == [names[0], "tight, from the given start", names[0]]
    assert names[0] in {"tight, from the hinge", "tight, from the means"}
