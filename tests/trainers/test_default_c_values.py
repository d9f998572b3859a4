"""The factors of the default C, as numbers that are written down: a change of one is a change of every default."""

from __future__ import annotations

import numpy as np
import pytest
from trainings import training_set

from apsvm.losses import make_loss
from apsvm.trainers.structured_svm.default_c import default_C

#: One ranking, and several, of 4 features of variance 1/4, within each query too: d · geometric mean = 4 · 1/4 = 1.
X = np.array([[0.5 if (row >> bit) & 1 else -0.5 for bit in range(4)] for row in range(16)] * 2)
QUERIES = np.repeat([3, 8], 16)
#: √n (1 + n/d)², which counts for losses over rankings.
ROWS = 32**0.5 * 9**2


@pytest.mark.parametrize(
    ("loss", "bound", "of_one_ranking", "of_several"),
    [
        ("ap", "hinge", 0.3 * ROWS, 0.01 * ROWS),
        ("ndcg@10", "hinge", 0.3 * ROWS, 0.01 * ROWS),
        ("ap", "tight", 1.0 * ROWS, 0.5 * ROWS),
        ("mrr", "tight", 1.0 * ROWS, 0.5 * ROWS),
        ("zero-one", "hinge", 50_000, 50_000),
        ("f1", "hinge", 50_000, 50_000),
        ("set-p@3", "hinge", 50_000, 50_000),
    ],
)
def test_factors(loss, bound, of_one_ranking, of_several):
    relevant = np.arange(32) % 3 == 0
    one, several = training_set(X, relevant), training_set(X, relevant, QUERIES)
    assert default_C(one, make_loss(loss), bound) == pytest.approx(of_one_ranking)
    assert default_C(several, make_loss(loss), bound) == pytest.approx(of_several)
