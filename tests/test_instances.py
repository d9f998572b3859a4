"""The lists that the other tests run over are whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from instances import (
    LABELLING_LOSSES,
    LOSS_NAMES,
    LOSS_PARAMETERS,
    LOSSES_AND_ORACLES,
    METRIC_LIST,
    METRIC_PARAMETERS,
    RANKING_LOSSES,
    TWO_ARRAY_LOSSES,
    form_of,
    loss_names,
    metrics,
)

from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import RankingLoss
from apsvm.metrics import METRICS, Metric, parse_metric
from apsvm.oracles import ORACLES


def test_every_loss_occurs():
    assert {form_of(name) for name in LOSS_NAMES} == set(LOSSES)
    made = [make_loss(name).name for name in LOSS_NAMES]
    assert made == LOSS_NAMES
    assert len(set(made)) == len(made)


def test_every_metric_occurs():
    assert {metric.form for metric in METRIC_LIST} >= {METRICS[form].form for form in METRICS}
    assert {parse_metric(metric.name) for metric in METRIC_LIST} == set(METRIC_LIST)
    assert len(set(METRIC_LIST)) == len(METRIC_LIST)


class HalfLife(RankingLoss):
    parameter = float
    examples = ("1.5", "50")

    def __init__(self, h=5.0):
        self.name = f"half-life({h:g})"

    def weights(self, n_pos):
        return np.ones(n_pos)

    def discount(self, n):
        return np.zeros(n)


@dataclass(frozen=True)
class Share(Metric):
    form: ClassVar[str] = "Share(of)"
    examples = ("0.25", "1")
    of: float

    @classmethod
    def from_text(cls, parameter):
        return cls(float(parameter))

    def _compute(self, table):
        return np.ones(table.n_rankings)


def test_a_newcomers_examples_occur(monkeypatch):
    """A loss' besides its default; a metric has none, and must name some."""
    monkeypatch.setitem(LOSSES._places, "half-life(h)", f"{__name__}:HalfLife")
    monkeypatch.setitem(METRICS._places, "Share(of)", f"{__name__}:Share")
    assert [*dict.fromkeys([*LOSS_NAMES, "half-life(5)", "half-life(1.5)", "half-life(50)"])] == loss_names()
    assert [*METRIC_LIST, Share(0.25), Share(1.0)] == metrics()
    monkeypatch.setattr(HalfLife, "examples", ())
    assert loss_names()[-1] == "half-life(5)"
    monkeypatch.setattr(Share, "examples", ())
    with pytest.raises(LookupError, match=r"Share.examples: name values of the parameter of Share\(of\)"):
        metrics()


def test_every_oracle_occurs():
    exact = {name for name in ORACLES if ORACLES[name].exact} - {"brute-force"}
    assert {oracle for _, oracle in LOSSES_AND_ORACLES} == exact
    assert {loss for loss, _ in LOSSES_AND_ORACLES} == set(LOSS_NAMES)


def test_the_kinds_of_losses():
    assert set(TWO_ARRAY_LOSSES) <= set(RANKING_LOSSES)
    assert not set(RANKING_LOSSES) & set(LABELLING_LOSSES)
    assert {"rbp(0.05)", "rbp(0.99)", "ndcg(linear)", "auc"} <= set(TWO_ARRAY_LOSSES)
    assert {"ndcg@1", "ndcg@100", "p@1"} <= set(RANKING_LOSSES) - set(TWO_ARRAY_LOSSES)
    assert {"f1", "f(2.0)", "set-p@3", "set-r@100", "prbep"} <= set(LABELLING_LOSSES)


@pytest.mark.parametrize(
    ("parameters", "forms"), [(LOSS_PARAMETERS, LOSSES), (METRIC_PARAMETERS, METRICS)], ids=["losses", "metrics"]
)
def test_no_parameters_are_left_over(parameters, forms):
    for placeholder, values in parameters.items():
        assert any(form.endswith(placeholder) for form in forms)
        assert len(set(values)) == len(values) >= 2
