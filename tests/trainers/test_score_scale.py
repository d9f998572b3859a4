"""Thresholds on their way from one ranker to another: the rows keep their order, whatever the shape of the scores."""

from __future__ import annotations

import numpy as np
import pytest

from apsvm.selection.thresholds import above_which, carried


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


def test_the_order_of_the_rows_themselves_does_not_matter(rng):
    own, theirs, new = rng.normal(size=50), rng.normal(size=50), rng.normal(size=20)
    expected = carried(new, np.sort(own), np.sort(theirs))
    np.testing.assert_array_equal(carried(new, own, theirs), expected)


def test_beyond_all_rows_the_deviations_count():
    own, theirs = np.array([0.0, 1.0]), np.array([10.0, 30.0])
    assert carried(np.array([-1.0, 0.5, 1.5]), own, theirs).tolist() == [-10.0, 20.0, 40.0]


def test_equal_scores_come_to_one_place():
    own, theirs = np.array([0.0, 0.0, 1.0, 1.0]), np.array([4.0, 1.0, 2.0, 9.0])
    assert carried(np.array([0.0, 1.0]), own, theirs).tolist() == [1.5, 6.5]
    assert carried(np.array([2.0, 3.0]), np.zeros(3), theirs[:3]).tolist() == pytest.approx([7 / 3 + 2, 7 / 3 + 3])


def test_a_share_of_the_rows_is_above(rng):
    scores = rng.normal(size=1000)
    for share in (0.001, 0.0104, 0.5, 0.999):
        assert (scores > above_which(scores, share)).sum() == round(1000 * share)
    assert (scores > above_which(scores, 0.0)).sum() == 1
    assert (scores > above_which(scores, 1.0)).sum() == 999
