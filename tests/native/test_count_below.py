"""Counts of values below each score, against a search in their order."""

from __future__ import annotations

import numpy as np
import pytest

from apsvm._native import _kernels


def scores_of(kind, n, rng):
    return {
        "normal": rng.normal(size=n),
        "cauchy": rng.standard_cauchy(size=n),
        "few": rng.choice([-1.5, 0.0, 2.0], n),
        "around zero": rng.normal(size=n) * 10.0 ** rng.integers(-320, -290, size=n),
    }[kind]


@pytest.mark.parametrize("kind", ["normal", "cauchy", "few", "around zero"])
def test_values_below_scores_are_counted(kind, rng):
    values = scores_of(kind, 300, rng)
    scores = np.r_[values, scores_of(kind, 900, rng)]
    expected = np.searchsorted(np.sort(values), scores, side="left")
    for order in (values, np.sort(values), np.sort(values)[::-1].copy()):
        np.testing.assert_array_equal(_kernels.count_below(order, scores), expected)
    with pytest.raises(ValueError, match="1 to 2\\^30 values"):
        _kernels.count_below(values[:0], scores)
    with pytest.raises(ValueError, match="finite values"):
        _kernels.count_below(np.array([np.nan]), scores)
