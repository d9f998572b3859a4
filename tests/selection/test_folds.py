"""Folds: every row tested once, and what each fold has a fair share of."""

from __future__ import annotations

import numpy as np
import pytest

from apsvm.data.labels import Target, ordered
from apsvm.data.rows import Rows
from apsvm.models.header import Labels
from apsvm.selection.folds import FoldError, affordable_folds, copies_of, make_folds
from apsvm.trainers.base import TrainingSet


def check_partition(folds, n):
    assert (np.sort(np.concatenate([fold.test for fold in folds])) == np.arange(n)).all()
    for fold in folds:
        assert (np.sort(np.concatenate(fold)) == np.arange(n)).all()
        assert (np.diff(fold.training) > 0).all()
        assert (np.diff(fold.test) > 0).all()


@pytest.mark.parametrize("grouped", [False, True])
def test_two_classes(grouped, rng):
    relevant = rng.random(203) < 0.2
    target = Target(Labels(), relevant)
    groups = rng.integers(0, 40, size=203) if grouped else None
    folds = make_folds(target, groups, 4, 0)
    check_partition(folds, 203)
    for fold in folds:
        if groups is None:
            assert abs(fold.test.size - 203 / 4) <= 1
            assert abs(relevant[fold.test].sum() - relevant.sum() / 4) < 1
        else:
            assert not np.isin(groups[fold.test], groups[fold.training]).any()
            assert abs(np.unique(groups[fold.test]).size - np.unique(groups).size / 4) <= 1
    other = make_folds(target, groups, 4, 1)
    assert any(
        (one.test != two.test).any() for one, two in zip(folds, other, strict=True) if one.test.size == two.test.size
    )
    most = make_folds(target, groups, 200, 0)
    assert 2 <= len(most) < 200
    check_partition(most, 203)


@pytest.mark.parametrize("only_grades", [False, True])
def test_every_fold_has_its_share_of_every_grade(only_grades, rng):
    grades = rng.choice([0.0, 1.0, 2.0, 3.0], size=301, p=[0.5, 0.3, 0.19, 0.01])
    assert 0 < (grades == 3.0).sum() < 5  # fewer than folds: they are dealt out with the next lower grade
    target = ordered(grades, relevant_from=2.0)
    folds = make_folds(target, None, 5, 0, only_grades=only_grades)
    check_partition(folds, 301)
    for fold in folds:
        for these in (grades == 0.0, grades == 1.0, grades >= 2.0):
            assert abs(these[fold.test].sum() - these.sum() / 5) < 1


def test_real_targets(rng):
    targets = rng.normal(size=100)
    target = ordered(targets)
    assert (~target.relevant).sum() == 1
    with pytest.raises(FoldError, match="2 folds need at least 2 negative rows, found 1"):
        make_folds(target, None, 4, 0)
    folds = make_folds(target, None, 4, 0, only_grades=True)
    check_partition(folds, 100)
    in_order = np.argsort(np.argsort(targets))
    for fold in folds:  # one of each four that follow another in the order
        assert (np.sort(in_order[fold.test] // 4) == np.arange(25)).all()
    assert (make_folds(target, None, 4, 1, only_grades=True)[0].test != folds[0].test).any()
    assert len(make_folds(target, None, 60, 0, only_grades=True)) == 50


def test_queries_that_only_grades_can_rank():
    groups = np.repeat(np.arange(12), 3)
    grades = np.where(groups < 6, np.tile([1.0, 2.0, 2.0], 12), 2.0)  # the first six differ, none of them is irrelevant
    target = ordered(grades, relevant_from=1.0)
    for fold in make_folds(target, groups, 3, 0, only_grades=True):
        assert np.unique(groups[fold.test][grades[fold.test] == 1.0]).size == 2
    with pytest.raises(FoldError, match="queries with both a positive and a negative row, found 0"):
        make_folds(target, groups, 3, 0)
    assert len(make_folds(target, groups, 7, 0, only_grades=True)) == 6


def test_copies_of_a_row_stay_together(rng):
    """Where most rows of a class are copies, and there are not too few different ones."""
    X, relevant = rng.normal(size=(150, 3)) * [1e6, 1.0, 1e-6], rng.random(150) < 0.3
    order = rng.permutation(600) % 150
    rows, target = Rows(X[order]), Target(Labels(), relevant[order])
    copies = copies_of(rows, target)
    assert np.unique(copies).size == 150
    assert all(np.unique(order[copies == number]).size == 1 for number in range(150))
    folds = affordable_folds(TrainingSet(rows, target), 0)
    assert folds.how == "5 folds of rows, copies together"
    for training, test in folds.folds:
        assert not set(order[training]) & set(order[test])
    assert copies_of(Rows(X), Target(Labels(), relevant)) is None
    of_positives = np.r_[np.arange(150), np.repeat(np.flatnonzero(relevant), 2)]
    assert copies_of(Rows(X[of_positives]), Target(Labels(), relevant[of_positives])) is not None
    few = order[order < 90]
    assert copies_of(Rows(X[few]), Target(Labels(), relevant[few])) is None
