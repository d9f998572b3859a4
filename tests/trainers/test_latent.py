"""Training on bags: monotone rounds, a certificate that holds, starts, and what becomes of other trainings' options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from over import over
from sklearn.metrics import average_precision_score
from trainings import solve

from apsvm.data.labels import Target
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.models.header import Labels
from apsvm.oracles import make_oracle
from apsvm.risk import Ramp
from apsvm.solvers.state import State
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.settings import SettingsError
from apsvm.trainers.structured_svm.objective import risk_of
from apsvm.trainers.structured_svm.settings import POOR_BOUND, StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


def made(seed: int = 0, bags: int = 120, positive: int = 40, size: int = 12, d: int = 8, shift: float = 3.0):
    """Bags of normal instances, in each positive one of which one is shifted: a training set and the shifted rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(bags, size, d))
    witness = rng.integers(size, size=positive)
    X[np.arange(positive), witness, 0] += shift
    relevant = np.arange(bags) < positive
    offsets = np.arange(bags + 1) * size
    data = TrainingSet(Rows(X.reshape(-1, d)), Target(Labels(), relevant), bags=offsets, unit="bags")
    return data, witness + np.arange(positive) * size


def trained(data: TrainingSet, loss: str = "ap", C: float = 100.0, **more: Any):
    settings = StructuredSettings(**{"epsilon": 1e-3, "latent": True, "bound": "hinge", **more})
    ((result),) = solve(data, make_loss(loss), settings, [C], Watch())
    return result


class Rounds:
    """A log of the rounds."""

    def __init__(self) -> None:
        self.rounds: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        if event == "round":
            self.rounds.append(fields)


def objective(data: TrainingSet, loss: str, w, C: float, *, tight: bool = False) -> float:
    risk = risk_of(data, make_loss(loss), make_oracle("auto", make_loss(loss)))
    function = Ramp(risk) if tight else risk
    return 0.5 * float(w @ w) + C * function.tangent(risk.scores(w), np.empty(risk.n_scores)).value


@over("loss", ["ap", "ndcg", "auc", "mrr", "zero-one", "f1", "p@5"])
@over("bound", ["hinge", "tight"])
def test_a_stationary_point_and_its_certificate(loss, bound):
    if bound == "tight" and loss in ("zero-one", "f1"):
        pytest.skip("no ranking has a tight bound there")
    data, _ = made()
    log = Rounds()
    settings = StructuredSettings(epsilon=1e-3, latent=True, bound=bound)
    ((result),) = solve(data, make_loss(loss), settings, [100.0], Watch(log=log))
    assert result.state is State.CONVERGED
    bounds = result.solution.certificate
    assert bounds.primal == pytest.approx(objective(data, loss, result.w, 100.0, tight=bound == "tight"), rel=1e-12)
    assert bounds.gap <= 1e-3 * 100.0
    last = None
    for one in log.rounds:
        if one["round"] > 1 and last is not None:
            assert one["objective"] <= last * (1.0 + 1e-12)
        last = one["objective"]
    # No w lowers the majorant there: neither a step down the gradient nor any other.
    if bound == "hinge":
        risk = risk_of(data, make_loss(loss), make_oracle("auto", make_loss(loss)))
        risk.hold(risk.maxima.best_of_positives(risk.scores(result.w)))
        risk = risk.convex
        rng = np.random.default_rng(1)
        for scale in (1e-3, 1e-2, 1e-1, 1.0):
            for _ in range(10):
                w = result.w + scale * rng.normal(size=result.w.size)
                assert 0.5 * float(w @ w) + 100.0 * risk(w).value >= bounds.dual - 1e-9


def test_the_instances_that_decide_are_found():
    data, witness = made(shift=4.0)
    result = trained(data)
    scores = data.rows.scores(result.w).reshape(-1, 12)
    found = scores[:40].argmax(axis=1) + np.arange(40) * 12
    assert np.mean(found == witness) >= 0.9
    assert average_precision_score(data.target.relevant, data.scores(result.w)) >= 0.95


def test_bags_of_one_are_trained_as_rows():
    rng = np.random.default_rng(3)
    X, relevant = rng.normal(size=(80, 5)), rng.random(80) < 0.3
    rows = TrainingSet(Rows(X), Target(Labels(), relevant))
    bags = replace(rows, bags=np.arange(81))
    settings = StructuredSettings(bound="hinge", epsilon=1e-6)
    (plain,) = solve(rows, make_loss("ap"), settings, [3.0], Watch())
    result = trained(bags, C=3.0, epsilon=1e-6)
    assert result.solution.certificate.primal == pytest.approx(plain.solution.certificate.primal, abs=2e-6 * 3.0)


def test_grades_queries_and_weights_of_queries():
    rng = np.random.default_rng(4)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 5, size=60))])
    grades = rng.integers(0, 4, size=60).astype(float)
    X = rng.normal(size=(offsets[-1], 5))
    X[offsets[:-1], 0] += grades
    data = TrainingSet(
        Rows(X),
        Target(Labels(), grades > 0, grades),
        queries=np.repeat(np.arange(6), 10),
        query_weights={0: 3.0, 5: 0.0},
        bags=offsets,
    )
    result = trained(data, "ndcg", C=10.0)
    assert result.state is State.CONVERGED
    assert result.queries == 5
    assert result.w[0] > np.abs(result.w[1:]).max()


@pytest.mark.slow
@pytest.mark.parametrize("start", ["anneal", "bag-means", "random:20"])
def test_starts(start):
    data, _ = made(shift=4.0)
    result = trained(data, start=start)
    again = trained(data, start=start)
    assert result.w.tolist() == again.w.tolist()
    if start == "anneal":
        assert result.solution.certificate.primal <= trained(data, start="random:3").solution.certificate.primal + 0.1


def test_a_start_that_finds_nothing_says_so_and_annealing_does_not():
    data, _ = made(bags=200, positive=60, size=20, d=20, shift=4.0)
    test, _ = made(seed=1, bags=2000, positive=600, size=20, d=20, shift=4.0)
    settings = StructuredSettings(latent=True, bound="hinge")
    (lost,) = solve(data, make_loss("ap"), settings, [30.0], Watch(), start=np.zeros(20))
    assert lost.relative_bound is not None
    assert lost.relative_bound >= POOR_BOUND
    found = trained(data, C=30.0)
    assert found.relative_bound is None or found.relative_bound < POOR_BOUND
    assert average_precision_score(test.target.relevant, test.scores(found.w)) >= 0.9


@pytest.mark.parametrize(
    ("settings", "given", "says"),
    [
        ({"oracle": "appx", "latent": True}, set(), "cannot serve --latent"),
        ({"start": "bag-means"}, {"start"}, "--start is for --latent"),
        ({"start": "random:0", "latent": True}, {"start"}, "random:N"),
        ({"start": "random:", "latent": True}, {"start"}, "random:N"),
        ({"start": "somewhere", "latent": True}, {"start"}, "random:N"),
    ],
)
def test_settings_that_do_not_go_together(settings, given, says):
    with pytest.raises(SettingsError, match=says):
        StructuredSVMTrainer("ap", StructuredSettings(**settings), frozenset(given))


def test_a_stop_gives_the_best_so_far():
    data, _ = made()
    settings = StructuredSettings(latent=True, bound="hinge", time_limit=0.0)
    ((result),) = solve(data, make_loss("ap"), settings, [100.0], Watch())
    assert result.state is State.TIME_LIMIT
    assert np.isfinite(result.w).all()
