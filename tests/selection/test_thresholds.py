"""Thresholds on their way from one ranker to another: the rows keep their order, whatever the shape of the scores."""

from __future__ import annotations

import numpy as np
import pytest

from apsvm.data.labels import graded, of_relevance
from apsvm.selection.race import OutOfFold
from apsvm.selection.thresholds import (
    carried,
    held_out_scores,
    line_by,
    threshold_by,
)
from apsvm.trainers.base import HeldOut


@pytest.mark.parametrize("bend", [lambda s: 3.0 * s - 7.0, np.exp, np.cbrt], ids=["line", "tail", "flat"])
def test_scores_of_another_shape_keep_their_place(bend, rng):
    own, new = rng.normal(size=500), rng.normal(size=300)
    theirs = bend(own)
    inside = (new > own.min()) & (new < own.max())
    result = carried(new, own, theirs)
    for score, there in zip(new[inside], result[inside], strict=True):
        assert (own > score).sum() == (theirs > there).sum()
    np.testing.assert_allclose(carried(own, own, theirs), theirs, rtol=1e-12)
    assert (np.diff(result[np.argsort(new)]) >= 0.0).all()


def test_beyond_all_rows_the_deviations_count():
    own, theirs = np.array([0.0, 1.0]), np.array([10.0, 30.0])
    assert carried(np.array([-1.0, 0.5, 1.5]), own, theirs).tolist() == [-10.0, 20.0, 40.0]


def test_folds_of_other_scales_have_the_model_s(rng):
    """Each fold's ranker is the model bent: its rows held out are where the model has them."""
    scores, relevant = rng.normal(size=90), rng.random(90) < 0.4
    fold_of = np.arange(90) % 3
    folds = []
    for fold, bend in enumerate((lambda s: 5.0 * s + 3.0, np.cbrt, np.arctan)):
        test, training = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        folds.append(OutOfFold(test, bend(scores[test]), training, bend(scores[training])))
    held_out = held_out_scores(folds, scores, relevant, "3 folds of rows")
    order = np.argsort(fold_of, kind="stable")
    np.testing.assert_array_equal(held_out.relevant, relevant[order])
    assert held_out.how == "3 folds of rows"
    for fold in range(3):
        own, carried_there = np.sort(scores[fold_of != fold]), held_out.scores[fold_of[order] == fold]
        test = scores[fold_of == fold]
        inside = (test >= own[0]) & (test <= own[-1])
        np.testing.assert_array_equal(
            np.searchsorted(own, test[inside]), np.searchsorted(own, carried_there[inside] - 1e-12)
        )


def test_rows_of_one_class_choose_no_threshold(rng):
    scores = rng.normal(size=20)
    for relevant in (np.zeros(20, dtype=bool), np.ones(20, dtype=bool)):
        assert threshold_by(HeldOut(scores, relevant, "5 folds of rows")) is None
    threshold = threshold_by(HeldOut(scores, scores > 0.0, "5 folds of rows"))
    assert (threshold.rule, threshold.held_out, threshold.precision, threshold.recall) == (
        "f1", "5 folds of rows", 1.0, 1.0
    )  # fmt: skip
    assert ((scores > threshold.value) == (scores > 0.0)).all()
    assert threshold.called == np.mean(scores > 0.0)
    assert threshold.false_positive_rate == 0.0


def test_the_line_of_scores():
    scores, positive = np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, False, True, True])
    assert 2.0 < line_by(scores, of_relevance(positive)) <= 3.0
    for relevant in (positive & False, positive | True):
        assert line_by(scores, of_relevance(relevant)) == 0.0
    assert line_by(np.ones(4), of_relevance(positive)) == 0.0
    two, three = graded(np.array([0.0, 0.0, 2.0, 2.0])), graded(np.array([0.0, 0.0, 1.0, 2.0]))
    assert not of_relevance(positive).is_graded
    assert (two.is_graded, three.is_graded) == (False, True)
    assert (line_by(scores, two) > 2.0, line_by(scores, three)) == (True, 0.0)
