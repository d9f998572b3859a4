"""A twin of the risk of grades: the weighted sum of the levels' hinges of one query, a level after another.

    h(s) = Σ_l v_l h(s; grade ≥ l),    c = Σ_l v_l c_l

There is no single most violated ranking: each level has its own. h bounds the graded Δ of the order of the scores, and
c is a subgradient of h with respect to the scores (``apsvm.losses.graded``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.graded import GradedLoss
from apsvm.oracles import make_oracle


class GradedHinge(NamedTuple):
    """``value``: h. ``loss``: Σ_l v_l Δ_l of the levels' most violated rankings. ``row_weights``: c (n,) float64, with
    value = loss + c·scores and Σc = 0."""

    value: float
    loss: float
    row_weights: NDArray[np.float64]


def graded_hinge(
    scores: NDArray[np.float64], grades: NDArray[np.float64], loss: GradedLoss, oracle: str = "auto"
) -> GradedHinge:
    """The hinge of one query with ``scores`` (n,) and ``grades`` (n,), finite float64; 0 if all grades are equal.

    Raises LossError if the oracle cannot serve the loss, or a grade has no finite gain.
    """
    chosen = make_oracle(oracle, loss)
    value = lost = 0.0
    row_weights = np.zeros(scores.size)
    for threshold, weight in loss.levels(grades):
        positive = grades >= threshold
        n_pos = int(positive.sum())
        c_pos, c_neg = np.empty(n_pos), np.empty(scores.size - n_pos)
        bound = chosen.bind(loss, n_pos, scores.size - n_pos)
        violation = bound(scores[positive], scores[~positive], c_pos, c_neg)
        value += weight * violation.value
        lost += weight * violation.loss
        row_weights[positive] += weight * c_pos
        row_weights[~positive] += weight * c_neg
    return GradedHinge(value, lost, row_weights)
