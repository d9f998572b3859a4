"""The lists that the other tests run over are whole."""

from __future__ import annotations

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
)

from apsvm.losses import LOSSES, make_loss
from apsvm.metrics import METRICS, parse_metric
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
