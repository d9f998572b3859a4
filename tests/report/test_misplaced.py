"""Rows on the wrong side against counting pairs."""

from __future__ import annotations

import numpy as np

from apsvm.report.rows import misplaced


def test_against_counting(rng):
    wrong = 0
    for trial in range(200):
        n = int(rng.integers(1, 30))
        scores = rng.integers(0, 6, n).astype(np.float64)
        grades = rng.integers(0, int(rng.integers(1, 9)), n).astype(np.float64)
        groups = rng.integers(-2, 2, n) if trial % 2 else None
        found = misplaced(scores, grades, groups)
        query = np.zeros(n) if groups is None else groups
        for i in range(n):
            same = query == query[i]
            assert found.above[i] == (same & (scores > scores[i]) & (grades < grades[i])).sum()
            assert found.below[i] == (same & (scores < scores[i]) & (grades > grades[i])).sum()
            assert found.lower[i] == (same & (grades < grades[i])).sum()
            assert found.higher[i] == (same & (grades > grades[i])).sum()
            assert found.size[i] == same.sum()
            assert sorted(found.place[same]) == list(range(1, same.sum() + 1))
        assert found.above.sum() == found.below.sum()
        wrong += found.above.sum()
    assert wrong > 1000


def test_two_classes_and_places():
    found = misplaced(np.array([3.0, 2.0, 1.0, 0.0]), np.array([False, True, False, True]), None)
    assert found.above.tolist() == [0, 1, 0, 2]
    assert found.below.tolist() == [2, 0, 1, 0]
    assert found.place.tolist() == [1, 2, 3, 4]
    alike = misplaced(np.array([1.0, 2.0]), np.zeros(2), None)
    assert [counts.tolist() for counts in alike] == [[0, 0], [0, 0], [0, 0], [0, 0], [2, 1], [2, 2]]
