"""The threshold of a model of shards' rows, against the one that its training rows give on one machine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from shards import crew_of, sharded

from apsvm.dask.data import ShardedData
from apsvm.dask.training_threshold import with_training_threshold
from apsvm.data.dataset import Dataset
from apsvm.data.labels import graded, threshold
from apsvm.models.header import Header, LabelKind, Labels, Threshold
from apsvm.models.linear import LinearRanker
from apsvm.selection.thresholds import with_training_threshold as on_one_machine

MODEL = LinearRanker(np.array([1.0, -0.5]), 0.0, Header(loss="ap", state="done"))


def both(X, y, cuts):
    """Here and there."""
    data = sharded(X, y, cuts)
    here = on_one_machine(MODEL, Dataset(X, y, None, None, False, "rows", "", 0)).header.threshold
    return here, with_training_threshold(MODEL, data, threshold(data.labels)).header.threshold


@pytest.mark.parametrize("digits", [0, 1, 12])
@pytest.mark.parametrize("share", [0.02, 0.4, 0.95])
def test_it_is_that_of_one_machine(digits, share, rng):
    """With ties and without."""
    for n, cuts in ((40, [13]), (400, [0, 399]), (900, [100, 101, 500])):
        y = np.where(rng.random(n) < share, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        X = np.round(rng.normal(size=(n, 2)) + 0.7 * (y > 0)[:, None], digits)
        here, there = both(X, y, cuts)
        assert isinstance(there, Threshold)
        assert there == here


@pytest.mark.parametrize(
    ("scores", "y"),
    [
        ([1, 0, 0, 0], [1, 1, -1, -1]),  # all are called positive
        ([0, 0, 0, 0], [1, 1, -1, -1]),
        ([3, 3, 1, 0], [-1, -1, 1, 1]),
        ([2, 2, 1, 1], [-1, -1, 1, 1]),  # the positives are of one score, and none is lower
        ([-2, -2, -2, -1], [1, 1, 1, -1]),
        ([2, 1, 0, 3], [1, -1, -1, -1]),  # one positive
    ],
)
def test_at_the_ends_of_the_scores(scores, y):
    X = np.column_stack([scores, np.zeros(4)])
    here, there = both(X, np.array(y, dtype=float), [1, 3])
    assert there == here


def test_where_there_is_none():
    X, y = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [1.7e308, -1.7e308]]), np.array([1.0, -1.0, 1.0, -1.0])
    finite = sharded(X[:3], y[:3], [1])
    grades = ShardedData.of(crew_of(X[:3], np.arange(3.0), [1]), "the rows")
    grades.tell(graded(grades.labels))
    assert with_training_threshold(MODEL, grades, graded(grades.labels)) is MODEL
    target = threshold(finite.labels)
    known = Threshold(value=4.0, rule="top=3", held_out=None, precision=None, recall=0.0, false_positive_rate=0.0)
    for header in (replace(MODEL.header, threshold=known), replace(MODEL.header, labels=Labels(kind=LabelKind.NONE))):
        model = replace(MODEL, header=header)
        assert with_training_threshold(model, finite, target) is model
    for rows, labels, columns in (
        (X, y, {}),
        (X[:3], y[:3], {"qid": np.array([1, 1, 2])}),
        (X[:3:2], y[:3:2], {}),
        (X[1:2], y[1:2], {}),
    ):
        data = sharded(rows, labels, [1], **columns)
        assert with_training_threshold(MODEL, data, threshold(data.labels)) is MODEL
