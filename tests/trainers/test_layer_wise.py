"""Layer-wise training of networks: what never rises, where it ends, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from over import over
from sklearn.metrics import average_precision_score

from apsvm.data.labels import Target
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.models.header import Labels
from apsvm.models.net import Net
from apsvm.risk import NothingToRankError
from apsvm.selection.completion import train_plan
from apsvm.trainers.base import Outcome, TrainingError, TrainingSet, Watch
from apsvm.trainers.one_vs_rest import OneVsRestTrainer
from apsvm.trainers.settings import Multiple, SettingsError
from apsvm.trainers.structured_svm.layer_wise import train_layer_wise
from apsvm.trainers.structured_svm.net_problem import held_out_part, log_loss_net
from apsvm.trainers.structured_svm.networks import DEFAULT_C, hidden_layers
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


def rings(seed: int = 0, n: int = 400, *, queries: int = 0, grades: bool = False) -> TrainingSet:
    """Rows that are the more relevant the farther they lie from the origin, which no linear ranker tells."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), 5.0 + 0.1 * rng.normal(size=n)])
    radius = np.hypot(X[:, 0], X[:, 1]) + 0.3 * rng.normal(size=n)
    relevant = radius > np.quantile(radius, 0.8)
    worth = np.digitize(radius, np.quantile(radius, [0.5, 0.8, 0.95])).astype(float) if grades else None
    target = Target(Labels(), relevant if worth is None else worth > 0, worth)
    return TrainingSet(Rows(X), target, queries=rng.integers(queries, size=n) if queries else None)


@pytest.fixture(autouse=True)
def _few_epochs(monkeypatch):
    monkeypatch.setattr("apsvm.trainers.structured_svm.net_problem.MOST_EPOCHS", 20)


class Records:
    def __init__(self) -> None:
        self.all: list[tuple[str, dict[str, Any]]] = []

    def write(self, event: str, **fields: Any) -> None:
        self.all.append((event, fields))

    def of(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.all if name == event]


def outcome_of(data: TrainingSet, loss: str = "ap", watch: Watch | None = None, **settings: Any) -> Outcome:
    trainer = StructuredSVMTrainer(loss, StructuredSettings(**{"layer_wise": "8", **settings}))
    (outcome,) = train_plan(trainer, data, watch or Watch())
    return outcome


def average_precision(data: TrainingSet, net: Net) -> float:
    assert isinstance(data.rows, Rows)
    return float(average_precision_score(data.target.relevant, net.scores(data.rows)))


@pytest.mark.slow
def test_neither_the_risk_nor_the_objective_ever_rises():
    solves = raised = 0
    for seed in range(6):
        for loss in ("ap", "ndcg", "zero-one"):
            for hidden in ((6,), (5, 4)):
                log = Records()
                settings = StructuredSettings(seed=seed, layer_wise="x", C=(300.0,))
                data = rings(seed, n=120 + 10 * seed)
                (outcome,) = train_layer_wise(data, make_loss(loss), settings, hidden, Watch(log=log))
                assert outcome.iterations == len(log.of("iteration"))
                assert "cvxpy" not in " ".join(outcome.notes)
                risk, objective = outcome.details["risk of the log loss's network"], np.inf
                for record in log.of("layer"):
                    assert record["risk"] <= record["majorant"] + 1e-9
                    assert record["objective"] <= objective * (1.0 + 1e-9)
                    if record["kept"]:
                        assert record["risk"] <= risk
                        risk, objective = record["risk"], record["objective"]
                    raised += not record["kept"]
                    solves += 1
    assert solves >= 100
    assert raised < solves / 10


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["ap", "ndcg", "auc", "zero-one", "f1", "mrr"])
def test_every_loss_ends_no_worse_than_it_began(loss):
    log = Records()
    outcome = outcome_of(rings(0), loss, Watch(log=log))
    assert outcome.as_asked
    assert isinstance(outcome.w, Net)
    assert outcome.w.units == [8, 1]
    assert log.of("layer")[-1]["risk"] < outcome.details["risk of the log loss's network"]
    assert outcome.details["risk"] <= outcome.details["risk of the log loss's network"]


@pytest.mark.slow
def test_it_ranks_what_no_linear_ranker_can():
    data, test = rings(0), rings(1, n=2000)
    outcome = outcome_of(data)
    linear = log_loss_net(data.rows.in_memory().matrix, data.target.relevant, (), 0)
    start = average_precision(test, log_loss_net(data.rows.in_memory().matrix, data.target.relevant, (8,), 0))
    assert average_precision(test, linear) < 0.5
    assert average_precision(test, outcome.w) > max(0.8, start + 0.1)


def test_the_certificate_is_that_of_the_last_convex_problem():
    outcome = outcome_of(rings(0), C=(100.0,))
    assert outcome.details["passes"] >= 1
    bounds = outcome.certificate
    assert bounds is not None
    assert bounds.reached
    assert bounds.layer == 1
    assert bounds.tolerance == pytest.approx(1e-3 * 100.0)
    assert 0.0 <= bounds.gap <= bounds.tolerance
    assert outcome.details["risk"] < outcome.details["risk of the log loss's network"]


@pytest.mark.slow
def test_queries_and_grades():
    data, test = rings(0, queries=20, grades=True), rings(1, n=2000, grades=True)
    outcome = outcome_of(data, "ndcg")
    assert outcome.data.queries is not None
    assert 10 <= outcome.data.queries < 20  # the others are held out
    scores = outcome.w.scores(test.rows)
    assert np.corrcoef(scores, test.target.grades)[0, 1] > 0.6


def test_grades_that_are_all_relevant():
    data = rings(0, queries=20, grades=True)
    above = Target(Labels(), np.ones(data.n, dtype=bool), data.target.grades + 1.0)
    data = TrainingSet(data.rows, above, queries=data.queries)
    scores = outcome_of(data, "ndcg").w.scores(data.rows)
    assert np.corrcoef(scores, above.grades)[0, 1] > 0.6


@pytest.mark.slow
def test_C_is_chosen_by_the_rows_held_out_unless_it_is_named():
    free = outcome_of(rings(0))
    values = [100.0, 1000.0, 10000.0]
    alone = {C: outcome_of(rings(0), C=(C,)).details["loss on rows held out"] for C in values}
    assert free.details["loss on rows held out"] == min(alone.values())
    assert alone[free.C] == min(alone.values())
    assert len(set(alone.values())) > 1
    assert outcome_of(rings(0), bound="hinge").C == DEFAULT_C
    assert outcome_of(rings(0), C=(Multiple(3.0),)).C == 3.0 * DEFAULT_C


def test_what_is_held_out():
    data = rings(0, n=400)
    training, test = held_out_part(data, 0)
    assert sorted([*training, *test]) == list(range(400))
    assert data.target.relevant[test].sum() == 20
    assert test.size == 100
    by_query = rings(0, n=400, queries=20)
    training, test = held_out_part(by_query, 0)
    assert not set(by_query.queries[training]) & set(by_query.queries[test])
    assert len(set(by_query.queries[test])) == 5
    one_query = TrainingSet(data.rows, data.target, np.full(400, 7))
    np.testing.assert_array_equal(held_out_part(one_query, 0)[1], held_out_part(data, 0)[1])
    few = TrainingSet(data.rows, Target(Labels(), np.arange(400) < 5))
    assert held_out_part(few, 0)[1].size == 0
    outcome = outcome_of(few)
    assert outcome.state == "all passes done"
    assert outcome.details["loss on rows held out"] is None


def test_it_stops_when_it_is_told_to():
    asked = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 3

    outcome = outcome_of(rings(0), watch=Watch(should_stop=stop))
    assert outcome.interrupted
    assert not outcome.as_asked
    assert isinstance(outcome.w, Net)
    late = outcome_of(rings(0, n=4000), time_limit=1e-3)
    assert (late.state, late.as_asked) == ("time limit", False)


def test_rows_that_cannot_be_trained_on():
    data = rings(0)
    with pytest.raises(NothingToRankError):
        outcome_of(TrainingSet(data.rows, Target(Labels(), np.zeros(400, dtype=bool))))
    with pytest.raises(TrainingError, match="rows without features: a network has nothing"):
        outcome_of(TrainingSet(Rows(np.empty((400, 0))), data.target))
    with pytest.raises(FloatingPointError, match="too large for a network"):
        outcome_of(TrainingSet(Rows(data.rows.in_memory().matrix * 1e200), data.target))
    wide = sp.csr_array((np.ones(400), (np.arange(400), np.arange(400))), shape=(400, 2_000_000_000))
    with pytest.raises(TrainingError, match="400 rows of 2,000,000,000 features do not fit"):
        outcome_of(TrainingSet(Rows(wide), data.target))


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("", ()),
        ("none", ()),
        ("16", (16,)),
        ("16,8", (16, 8)),
        ("16x8", (16, 8)),
        (" 4 , 2 ", (4, 2)),
        ("4096", (4096,)),
    ],
)
def test_hidden_layers(text, sizes):
    assert hidden_layers(text) == sizes


@over("text", ["0", "-1", "16,", "x", "1.5", "sixteen", "4097", "1,1,1,1,1,1,1,1,1", "٣", "9" * 30])
def test_what_names_no_hidden_layers(text):
    with pytest.raises(SettingsError, match="--layer-wise names the units of 1 to 8 hidden layers"):
        hidden_layers(text)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"latent": True}, "does not go with --latent"),
        ({"oracle": "appx"}, "does not go with --oracle appx"),
        ({"bound": "tight"}, "does not go with --bound tight"),
        ({"log_ranks": True}, "does not go with --log-ranks"),
        ({"components": 2}, "does not go with --components"),
    ],
)
def test_what_does_not_go_with_it(settings, message):
    with pytest.raises(SettingsError, match=message):
        StructuredSVMTrainer("ap", StructuredSettings(layer_wise="8", **settings))


def test_what_it_refuses_of_others():
    trainer = StructuredSVMTrainer("ap", StructuredSettings(layer_wise="8"))
    assert "standardises" in (trainer.capabilities.refusal("scale") or "")
    with pytest.raises(SettingsError, match="one network is trained"):
        OneVsRestTrainer(trainer)
    with_bias = TrainingSet(rings(0).rows.with_bias(1.0), rings(0).target)
    assert list(trainer.check(with_bias)) == [
        "a constant feature is of no use to a network, whose layers have constants"
    ]
