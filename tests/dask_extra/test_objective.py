"""The objective on shards against that of one machine."""

from __future__ import annotations

import numpy as np
import pytest
from shards import crew_of
from trainings import train_pairs, train_svm, training_set

from apsvm.dask.crew import LocalCrew
from apsvm.dask.data import ShardedData
from apsvm.dask.fitting import ShardedFit
from apsvm.dask.sources import ArrayPart
from apsvm.dask.training import values_of_C
from apsvm.data.labels import LabelOptions
from apsvm.trainers.base import Watch
from apsvm.trainers.fitting import FeatureOptions
from apsvm.trainers.rank_ncg.preferences import classes_by_label
from apsvm.trainers.rank_ncg.settings import RankNCGSettings
from apsvm.trainers.rank_ncg.trainer import RankNCGTrainer
from apsvm.trainers.settings import Multiple, SettingsError
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


@pytest.mark.slow
def test_objectives_agree_as_far_as_the_gap_that_is_asked_for(rng):
    """Sums are rounded otherwise, which the QP can amplify; the certificates bound by how much."""
    X = rng.normal(size=(6000, 6))
    y = (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=6000) > 2.5).astype(float)
    plan = StructuredSVMTrainer("ap", StructuredSettings(bound="hinge", C=(1e4,), epsilon=1e-10))
    here = train_svm(training_set(X, y > 0.0), "ap", C=1e4, bound="hinge", epsilon=1e-10).solution.certificate
    for cuts in ([2000, 3000], [1, 3500]):
        data = ShardedData.of(crew_of(X, y, cuts), "the rows")
        fit = ShardedFit.of(data, plan, LabelOptions(), FeatureOptions())
        (outcome,) = fit.outcomes(Watch())
        there = outcome.certificate
        assert here.reached
        assert there.reached
        assert max(here.gap, there.gap) < 1e-9 * here.primal
        assert there.primal == pytest.approx(here.primal, rel=1e-9)
        assert max(here.dual, there.dual) <= min(here.primal, there.primal) * (1.0 + 1e-13)


@pytest.mark.parametrize(
    "plan",
    [
        StructuredSVMTrainer("ap", StructuredSettings(bound="hinge", C=(5.0,))),
        RankNCGTrainer("wmw", RankNCGSettings(tolerance=1e-9)),
    ],
    ids=["ap", "wmw"],
)
def test_a_worker_with_nothing_to_rank_changes_nothing(plan, rng):
    """One without rows, which has no queries either, and one whose query is of one label."""
    X, qid = rng.normal(size=(60, 2)), np.repeat(np.arange(6), 10)
    y = (X[:, 0] + rng.normal(size=60) > 0.5).astype(float)
    y[50:] = 0.0
    outcomes = []
    for crew in (
        crew_of(X, y, [], qid=qid),
        LocalCrew([[ArrayPart(X, y, qid)], [ArrayPart(X[:0], y[:0])]]),
        crew_of(X, y, [50], qid=qid),
    ):
        fit = ShardedFit.of(ShardedData.of(crew, "the rows"), plan, LabelOptions(), FeatureOptions(scale="none"))
        outcomes.extend(fit.outcomes(Watch()))
        assert crew.ask("extremes", outcomes[-1].w)[1:] in ([], [(np.inf, -np.inf)])
    one, *others = outcomes
    for other in others:
        np.testing.assert_allclose(other.w, one.w, rtol=1e-6)
        for name in ("queries", "queries_skipped", "counts"):
            assert getattr(other, name) == getattr(one, name)


class Records(list):
    """A log."""

    def write(self, event, **fields):
        self.append({"event": event, **fields})


def test_of_a_training_that_is_stopped_other_values_of_C_are_left_out(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2.0
    plan = StructuredSVMTrainer("ap", StructuredSettings(bound="hinge", C=(1.0, 10.0)))
    data = ShardedData.of(crew_of(X, y, [20]), "the rows")
    fit = ShardedFit.of(data, plan, LabelOptions(), FeatureOptions())
    assert [outcome.interrupted for outcome in fit.outcomes(Watch(should_stop=lambda: True))] == [True]
    outcomes = list(fit.outcomes(Watch()))
    assert [(outcome.interrupted, outcome.C) for outcome in outcomes] == [(False, 1.0), (False, 10.0)]
    assert fit.of_labels().source == "the rows"
    with pytest.raises(SettingsError, match=r"^-C 1e\+308x: 1e\+308x of C = .*, the default for these rows, is beyond"):
        values_of_C(data, plan.loss, StructuredSettings(C=(Multiple(1e308),)))


def test_sums_of_pairs_in_queries_are_by_the_method_that_is_named(rng):
    """A series is not exact."""
    X, y, qid = rng.normal(size=(60, 2)), rng.integers(0, 2, 60).astype(float), np.repeat(np.arange(6), 10)
    values = []
    for summation in ("auto", "direct", "fourier"):
        plan = RankNCGTrainer("wmw", RankNCGSettings(objective="erfc", summation=summation, accuracy=0.1))
        data = ShardedData.of(crew_of(X, y, [30], qid=qid), "the rows")
        (outcome,) = ShardedFit.of(data, plan, LabelOptions(), FeatureOptions()).outcomes(Watch())
        values.append(outcome.gradient.value)
    assert values[1] == pytest.approx(values[0], rel=1e-9)
    assert values[2] != pytest.approx(values[0], rel=1e-9)


@pytest.mark.parametrize("settings", [{"objective": "erfc"}, {"normalize": "none", "regularisation": 1.0}])
@pytest.mark.parametrize("by_query", [False, True])
def test_pairs_are_those_of_one_machine(settings, by_query, rng):
    X, qid = rng.normal(size=(90, 2)), np.repeat(np.arange(6), 15) if by_query else None
    y = np.clip(np.round(X[:, 0] + rng.normal(size=90)), 0.0, 2.0)
    settings = {"tolerance": 1e-9, **settings}
    here_log, there_log = Records(), Records()
    data = ShardedData.of(crew_of(X, y, [30, 45], qid=qid), "the rows")
    plan = RankNCGTrainer("wmw", RankNCGSettings(**settings))
    fit = ShardedFit.of(data, plan, LabelOptions(), FeatureOptions(scale="none", bias=None))
    (there,) = fit.outcomes(Watch(log=there_log))
    here = train_pairs(X, classes_by_label(y), queries=qid, watch=Watch(log=here_log), **settings)
    assert there.gradient.value == pytest.approx(here.solution.objective, rel=1e-11)
    np.testing.assert_allclose(there.w, here.w, rtol=1e-6)
    assert there.counts["pairs"] == here.pairs
    start = there_log[0]
    assert (start["event"], start["n_classes"], start["workers"]) == ("start", 3, data.crew.names())
    of_event = [{record["event"]: record.keys() for record in log} for log in (here_log, there_log)]
    for event in ("evaluation", "iteration"):
        # Scores wait for the next round, so that they take no time of their own.
        assert of_event[1][event] > of_event[0][event] - {"scores_wall_ns", "scores_cpu_ns"}
    assert (there.details["shards"], there.details["rows_of_classes"]) == (3, np.bincount(y.astype(int)).tolist())
