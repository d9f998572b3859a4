"""The risk of a network in one layer's weights: against the network itself, against the definition of the majorant."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from over import over
from trainings import make_risk

from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.oracles import make_oracle
from apsvm.oracles.layout import lay_out
from apsvm.risk import LayerRisk, make_risk_of_scores

LOSSES = ["ap", "ndcg", "auc", "mrr", "p@5", "ndcg@10", "zero-one", "f1"]
SIZES = {"two layers": [4, 5, 1], "three layers": [4, 5, 3, 1], "four layers": [4, 4, 3, 3, 1]}


class Case:
    """Random rows and a random network; integers where ties are wanted."""

    def __init__(self, seed: int, loss: str, sizes: list[int], *, ties: bool = False, queries: bool = False) -> None:
        rng = np.random.default_rng(seed)
        n = 40
        self.rng = rng

        def draw(*shape: int) -> np.ndarray:
            return rng.integers(-2, 3, size=shape).astype(float) if ties else rng.normal(size=shape)

        self.X = draw(n, sizes[0])
        self.layers = [(draw(out, into), draw(out)) for into, out in pairwise(sizes)]
        self.relevant = rng.permutation(n) < 12
        self.groups = rng.integers(3, size=n) if queries else None
        self.loss = make_loss(loss)
        self.grades = rng.integers(4, size=n).astype(float) if queries and loss.startswith("ndcg") else None
        oracle = make_oracle("auto", self.loss)
        more = {"groups": self.groups, "grades": self.grades}
        layout = lay_out(self.loss, self.relevant, **more)
        self.of_scores, self.members = make_risk_of_scores(Rows(self.X), layout, self.loss, oracle)
        self.plain = make_risk(Rows(np.eye(n)), self.relevant, self.loss, oracle, **more)

    def outputs(self, upto: int, layers=None) -> np.ndarray:
        h = self.X
        for number, (weights, bias) in enumerate((layers or self.layers)[:upto]):
            h = (np.maximum(h, 0.0) if number else h) @ weights.T + bias
        return h

    def risk(self, layers=None) -> float:
        """Risk of the network, by the risk of rows that are their own scores."""
        return self.plain(self.outputs(len(self.layers), layers)[:, 0]).value

    def of_layer(self, at: int) -> tuple[LayerRisk, np.ndarray]:
        inputs = np.maximum(self.outputs(at), 0.0) if at else self.X
        inputs = np.column_stack([inputs, np.ones(len(inputs))])[self.members]
        weights = np.column_stack(self.layers[at])
        return LayerRisk(self.of_scores, inputs, self.layers[at + 1 :], weights), weights.ravel()

    def with_layer(self, at: int, w: np.ndarray) -> list:
        layers = list(self.layers)
        matrix = w.reshape(layers[at][0].shape[0], -1)
        layers[at] = (matrix[:, :-1], matrix[:, -1])
        return layers


def value(risk: LayerRisk, w: np.ndarray) -> tuple[float, np.ndarray]:
    slopes = np.empty(risk.n_scores)
    result = risk.tangent(risk.scores(w), slopes).value
    return result, risk.combine(slopes)


@over("loss", LOSSES)
@over("sizes", SIZES.values(), ids=SIZES)
@over("queries", [False, True], ids=["one ranking", "queries"])
def test_a_convex_majorant_that_touches(loss, sizes, queries):
    below, changes = 0.0, 0
    for seed in range(5):
        case = Case(seed, loss, sizes, ties=seed >= 3, queries=queries)
        here = case.risk()
        for at in range(len(case.layers)):
            risk, w = case.of_layer(at)
            touching, slope = value(risk, w)
            assert touching == pytest.approx(here, rel=1e-10, abs=1e-12)
            other = w + case.rng.normal(size=w.size) * case.rng.choice([0.01, 0.3, 3.0])
            there, slope_there = value(risk, other)
            true = case.risk(case.with_layer(at, other))
            assert there >= true - 1e-9 * max(1.0, abs(true))
            below, changes = max(below, there - true), changes + (true != here)
            # Each slope gives a plane that lies below everywhere.
            middle = value(risk, 0.5 * (w + other))[0]
            scale = max(1.0, touching, there)
            assert there >= touching + slope @ (other - w) - 1e-9 * scale
            assert touching >= there + slope_there @ (w - other) - 1e-9 * scale
            assert middle <= 0.5 * (touching + there) + 1e-9 * scale
            assert there >= risk.lower_bound
    assert changes > 8
    assert below > 1e-3  # the majorant is not the risk itself


def test_slopes_are_the_derivatives():
    for seed in range(10):
        case = Case(seed, "ap", [4, 5, 3, 1])
        for at in range(3):
            risk, w = case.of_layer(at)
            point = w + 0.3 * case.rng.normal(size=w.size)
            _, slope = value(risk, point)
            direction = case.rng.normal(size=w.size)
            h = 1e-6
            numeric = (value(risk, point + h * direction)[0] - value(risk, point - h * direction)[0]) / (2 * h)
            assert numeric == pytest.approx(slope @ direction, rel=1e-3, abs=1e-6)


def test_the_last_layer_is_the_risk_of_rows():
    """Nothing stands above it: the score is linear in its weights."""
    case = Case(0, "ap", [4, 5, 1])
    risk, _ = case.of_layer(1)
    for _ in range(5):
        w = case.rng.normal(size=6)
        assert value(risk, w)[0] == pytest.approx(case.risk(case.with_layer(1, w)), rel=1e-12)


def test_a_row_between_two_grades_stands_in_two_places():
    case = Case(0, "ndcg", [4, 5, 1], queries=True)
    members, counts = np.unique(case.members, return_counts=True)
    assert counts.max() > 1
    twice = members[counts > 1][0]
    assert set(case.of_scores.layout.positive[case.members == twice]) == {False, True}


def test_its_account_and_its_refusals():
    case = Case(0, "ap", [4, 5, 1])
    risk, w = case.of_layer(0)
    risk.account()
    value(risk, w)
    account = risk.account()
    assert len(account.calls) == 1
    assert {"scores", "gradient"} <= set(account.spans)
    assert risk.account().calls == []
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(FloatingPointError, match="not finite"):
        value(risk, np.full(w.size, 1e308))
