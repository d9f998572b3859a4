"""Trainings that end in numerical trouble: the best point so far, an honest state, and what was not finite."""

from __future__ import annotations

import numpy as np
import pytest
from trainings import train_top, training_set

from apsvm.data.labels import of_relevance, ordered
from apsvm.data.rows import Rows
from apsvm.risk import Risk
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.rank_ncg.pair_loss import PairLoss
from apsvm.trainers.rank_ncg.trainer import RankNCGTrainer
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer
from apsvm.trainers.summary import end_in_full
from apsvm.trainers.warp.trainer import WarpTrainer

WHY = "the scores are not finite: scale them down"


def failing_after(calls, original):
    """``original`` for so many calls, then an overflow."""
    left = [calls]

    def method(*arguments):
        left[0] -= 1
        if left[0] < 0:
            raise FloatingPointError(WHY)
        return original(*arguments)

    return method


def check(outcome):
    assert (outcome.state, outcome.as_asked, outcome.interrupted) == ("numerical trouble", False, False)
    assert np.isfinite(outcome.w).all()
    assert outcome.w.any()
    assert end_in_full(outcome)[0].startswith("numerical trouble after ")
    assert end_in_full(outcome)[0].endswith(f": {WHY}")


@pytest.fixture
def rows(rng):
    relevant = rng.random(300) < 0.2
    return rng.normal(size=(300, 4)) + relevant[:, None], relevant


def test_of_a_structured_svm(rows, monkeypatch):
    monkeypatch.setattr(Risk, "tangent", failing_after(6, Risk.tangent))
    plan = StructuredSVMTrainer("ap", StructuredSettings(C=(1000.0,), epsilon=1e-9, bound="hinge"))
    (outcome,) = plan.train(training_set(*rows), Watch())
    check(outcome)
    assert outcome.certificate.dual <= outcome.certificate.primal


def test_of_rank_ncg(rows, monkeypatch):
    X, relevant = rows
    slopes, count = PairLoss.slopes, []

    def once(self, scores, out):
        """Overflows in the twelfth look at the slopes, which the search takes; the last check is spared."""
        count.append(None)
        if len(count) == 12:
            raise FloatingPointError(WHY)
        return slopes(self, scores, out)

    monkeypatch.setattr(PairLoss, "slopes", once)
    plan = RankNCGTrainer("wmw").with_settings(optimizer="prcg", tolerance=1e-12)
    (outcome,) = plan.train(TrainingSet(Rows(X), ordered(relevant * 1.0)), Watch())
    check(outcome)


def test_of_epochs(rows, monkeypatch):
    X, relevant = rows
    data = TrainingSet(Rows(X), of_relevance(relevant))
    held_out = TrainingSet(Rows(X), of_relevance(relevant))
    monkeypatch.setattr(held_out.rows, "scores", failing_after(1, held_out.rows.scores))
    (outcome,) = WarpTrainer("warp").train(data, Watch(), validation=held_out)
    check(outcome)
    assert (outcome.epochs.count, outcome.epochs.best) == (1, 1)


def test_the_first_pass_has_nothing_to_keep(rows):
    def validate(w):
        raise FloatingPointError(WHY)

    with pytest.raises(FloatingPointError, match="not finite"):
        train_top(*rows, validate=validate)
