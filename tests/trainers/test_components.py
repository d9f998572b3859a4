"""Training of several components: certificates, every loss, starts, paths, and what does not go together."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from over import over
from sklearn.metrics import average_precision_score
from trainings import make_risk, solve

from apsvm.data.component_rows import scores_of_weights
from apsvm.data.labels import Target
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.models.header import Labels
from apsvm.oracles import make_oracle
from apsvm.risk import Ramp
from apsvm.selection.completion import train_plan
from apsvm.solvers import concave_convex
from apsvm.trainers.base import Outcome, TrainingSet, Watch
from apsvm.trainers.settings import SettingsError
from apsvm.trainers.structured_svm import starts_of_components
from apsvm.trainers.structured_svm.components import start_from, weights_and_constants, with_components
from apsvm.trainers.structured_svm.objective import risk_of
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.starts_of_components import clusters
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


def two_kinds(seed: int = 0, n: int = 800, d: int = 5, shift: float = 3.5) -> TrainingSet:
    """Positives of two kinds, each shifted along a feature of its own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:20, 0] += shift
    X[20:40, 1] += shift
    return TrainingSet(Rows(X), Target(Labels(), np.arange(n) < 40))


def outcome(data: TrainingSet, loss: str = "ap", components: int = 2, **more: Any) -> Outcome:
    trainer = StructuredSVMTrainer(loss, StructuredSettings(components=components, **more))
    (result,) = train_plan(trainer, data, Watch())
    return result


def average_precision(data: TrainingSet, result: Outcome) -> float:
    assert isinstance(result.w, np.ndarray)
    return float(average_precision_score(data.target.relevant, scores_of_weights(data.rows, result.w)))


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["hinge", "tight", "auto"])
def test_positives_of_two_kinds_want_two_components(bound):
    data = two_kinds()
    one, two = (outcome(data, components=components, bound=bound) for components in (1, 2))
    assert average_precision(data, two) > average_precision(data, one) + 0.1
    assert two.w.shape == (2, 6)
    leading = (data.rows.scores_of_all(two.w[:, :-1].copy()) + two.w[:, -1]).argmax(axis=1)
    # One component for each kind.
    assert np.mean(leading[:20] == leading[0]) > 0.9
    assert np.mean(leading[20:40] == 1 - leading[0]) > 0.9


@over("loss", ["ap", "ndcg", "ndcg(linear)", "auc", "ndcg@5", "p@5", "mrr", "rbp(0.9)"])
@over("bound", ["hinge", "tight"])
def test_a_stationary_point_and_its_certificate(loss, bound):
    data = with_components(two_kinds(n=200), 2)
    settings = StructuredSettings(epsilon=1e-3, bound=bound, components=2)
    ((result),) = solve(data, make_loss(loss), settings, [50.0], Watch())
    bounds = result.solution.certificate
    assert bounds.reached
    risk = risk_of(data, make_loss(loss), make_oracle("auto", make_loss(loss)))
    function = risk if bound == "hinge" else Ramp(risk)
    value = function.tangent(risk.scores(result.w), np.empty(risk.n_scores)).value
    assert bounds.primal == pytest.approx(0.5 * float(result.w @ result.w) + 50.0 * value, rel=1e-10)
    # No worse than no ranking at all.
    at_zero = function.tangent(np.zeros(risk.n_scores), np.empty(risk.n_scores)).value
    assert bounds.primal <= 50.0 * at_zero * (1.0 + 1e-9)


@pytest.mark.parametrize("loss", ["zero-one", "f1", "prbep", "set-p@10"])
def test_losses_that_are_over_no_rankings(loss):
    data = two_kinds()
    one, two = (outcome(data, loss, components=components) for components in (1, 2))
    assert two.certificate.bound == "hinge"
    assert two.certificate.stationary
    assert average_precision(data, two) > average_precision(data, one) + 0.1


@pytest.mark.slow
def test_no_assignment_of_the_positives_is_much_better():
    """The least J there is, over all ways to give each positive a component: each is a convex problem."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(14, 2))
    X[:3, 0] += 4.0
    X[3:6, 0] -= 4.0
    relevant = np.arange(14) < 6
    data = with_components(TrainingSet(Rows(X), Target(Labels(), relevant)), 2)
    loss, C = make_loss("ap"), 5.0
    settings = StructuredSettings(epsilon=1e-5, bound="hinge", components=2)
    ((result),) = solve(data, loss, settings, [C], Watch())
    least = np.inf
    for assignment in itertools.product((0, 1), repeat=6):
        least = min(least, _held_at(data, np.array(assignment), C))
    reached = result.solution.certificate.primal
    assert reached >= least - 1e-4
    assert reached <= least * 1.02 + 1e-4


def _held_at(data: TrainingSet, assignment: np.ndarray, C: float) -> float:
    """The optimum with each positive held at a component, by the plain solver on copies written out."""
    from apsvm.solvers.cutting_plane import Solver
    from apsvm.solvers.line_search import AfterLineSearch
    from apsvm.solvers.qp import BACKENDS

    risk = risk_of(data, make_loss("ap"), make_oracle("auto", make_loss("ap")))
    risk.hold(2 * np.arange(6) + assignment)
    solver = Solver(AfterLineSearch(risk.convex), risk.rows.dimension, BACKENDS["auto"]())
    return solver.minimise(C, epsilon=1e-5).certificate.primal


@pytest.mark.parametrize("bound", ["hinge", "tight"])
def test_one_component_is_the_plain_trainer(bound):
    """The objective of components that are all alike but for one that never leads is the plain one's."""
    data = two_kinds(n=120)
    plain = replace(data, rows=data.rows.with_bias(1.0))
    loss = make_loss("ap")
    settings = StructuredSettings(epsilon=1e-6, bound=bound)
    (alone,) = solve(plain, loss, settings, [20.0], Watch())
    several = with_components(plain, 2)
    w = np.concatenate([alone.w, np.zeros(6)])
    w[-1] = -1e3
    risk, of_rows = (
        risk_of(several, loss, make_oracle("auto", loss)),
        make_risk(plain.rows, plain.target.relevant, loss, make_oracle("auto", loss)),
    )
    one = of_rows.tangent(of_rows.scores(alone.w), np.empty(of_rows.n_scores)).value
    assert risk.tangent(risk.scores(w), np.empty(risk.n_scores)).value == pytest.approx(one, rel=1e-12)


def test_grades_queries_and_weights_of_queries():
    rng = np.random.default_rng(4)
    grades = rng.integers(0, 4, size=240).astype(float)
    X = rng.normal(size=(240, 4))
    kind = rng.integers(2, size=240)
    X[np.arange(240), kind] += 1.5 * grades
    data = TrainingSet(
        Rows(X),
        Target(Labels(), grades > 0, grades),
        queries=np.repeat(np.arange(12), 20),
        query_weights={0: 3.0, 11: 0.0},
    )
    for bound in ("hinge", "tight"):
        result = outcome(data, "ndcg", bound=bound)
        assert (result.state, result.data.queries) == ("converged", 11)
        scores = scores_of_weights(data.rows, result.w)
        assert np.corrcoef(scores, grades)[0, 1] > 0.6


def test_fewer_positives_than_components():
    data = two_kinds(n=60)
    data = replace(data, target=Target(Labels(), np.arange(60) < 2))
    result = outcome(data, components=5, bound="tight")
    assert result.w.shape == (5, 6)
    assert np.isfinite(result.w).all()


@pytest.mark.parametrize(
    ("loss", "settings", "message"),
    [
        ("ap", {"components": 2, "latent": True}, "--latent"),
        ("ap", {"components": 2, "oracle": "appx"}, "--oracle appx"),
    ],
)
def test_what_does_not_go_together(loss, settings, message):
    with pytest.raises(SettingsError, match=message):
        StructuredSVMTrainer(loss, StructuredSettings(**settings))


def test_of_several_clusterings_the_tightest(monkeypatch):
    data = two_kinds(n=60)
    values = iter([3.0, 1.0, 2.0] + [4.0] * 100)
    monkeypatch.setattr(starts_of_components, "_k_means", lambda *_: (value := next(values), f"that of {value}"))
    assert clusters(data.rows, 2, np.random.default_rng(0), data.rows) == "that of 1.0"


def test_descents_begin_at_the_lowest_points(monkeypatch):
    """Where there are more starts than descents."""
    data, begun = two_kinds(), []
    good = outcome(data, bound="hinge", C=(10.0,)).w.ravel()
    points = [*np.random.default_rng(0).normal(size=(3, good.size)), good]
    descend = concave_convex.descend

    def recorded(majorise, minimise, start, *arguments, **more):
        begun.append(start)
        return descend(majorise, minimise, start, *arguments, **more)

    monkeypatch.setattr("apsvm.trainers.structured_svm.starts_of_components.starts", lambda *_: points)
    monkeypatch.setattr("apsvm.trainers.structured_svm.starts_of_components.DESCENTS", 1)
    monkeypatch.setattr(concave_convex, "descend", recorded)
    outcome(data, bound="hinge", C=(10.0,))
    (start,) = begun
    assert start @ good > 0.999 * np.linalg.norm(start) * np.linalg.norm(good)


def test_starts_from_models():
    data = two_kinds()
    trained = outcome(data, bound="tight", C=(100.0,))
    trainer = StructuredSVMTrainer("ap", StructuredSettings(components=2, bound="tight", C=(100.0,)))
    (again,) = trainer.train(data, Watch(), start=trained.w)
    assert again.certificate.primal <= trained.certificate.primal * (1.0 + 1e-9)
    (linear,) = StructuredSVMTrainer("ap", StructuredSettings(bound="tight", C=(100.0,))).train(data, Watch())
    (from_linear,) = trainer.train(data, Watch(), start=linear.w)
    assert average_precision(data, from_linear) > average_precision(data, linear) + 0.1
    # The weights of the model are those of a component, but for their length.
    several = with_components(data, 2)
    first = weights_and_constants(several, start_from(several, linear.w, 0))[0, :-1]
    assert float(first @ linear.w) == pytest.approx(np.linalg.norm(first) * np.linalg.norm(linear.w))
