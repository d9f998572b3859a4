"""Loss-augmented inference as one call, for whoever has scores of their own (``apsvm.most_violated_ranking``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apsvm import ranking
from apsvm.losses import make_loss
from apsvm.losses.base import LossError, is_over_rankings
from apsvm.oracles import make_oracle


@dataclass(frozen=True, slots=True)
class MostViolatedRanking:
    """The ranking that maximises Δ(R*, R) + w·Ψ(R) − w·Ψ(R*).

    value : float, h, that maximum; ≥ 0
    loss : float, Δ of the ranking
    ranks : (n_neg,) int32, 1..n_pos+1, the interleaving ranks in the order of the negatives as given
    row_weights : (n,) float64, c, one a row as given; Σc = 0, value = loss + c·scores, and c is a subgradient of
        the value with respect to the scores
    """

    value: float
    loss: float
    ranks: NDArray[np.int32]
    row_weights: NDArray[np.float64]


def most_violated_ranking(
    scores: ArrayLike, relevance: ArrayLike, loss: str | object = "ap", oracle: str = "auto"
) -> MostViolatedRanking:
    """The most violated ranking of one query.

    Parameters
    ----------
    scores : (n,) finite numbers
    relevance : (n,) booleans, or numbers of which those above 0 are positive
    loss : a ranking loss: its name (``"ap"``, ``"rbp(0.8)"``), or an object with ``weights(n_pos)`` and
        ``discount(n)``
    oracle : ``auto``, ``greedy``, ``search``, ``select``, ``search-select``, ``qs``, ``brute-force`` or another that
        serves the loss

    Raises
    ------
    ValueError : shapes that differ, scores or relevance not finite, no positive or no negative row
    LossError : (a ValueError) a loss that the oracle cannot serve
    UnknownNameError : (a ValueError) no such loss or oracle

    Examples
    --------
    >>> found = most_violated_ranking([0.1, 0.3, -0.2], [1, 0, 0])
    >>> found.ranks
    array([1, 2], dtype=int32)
    """
    s = np.ascontiguousarray(scores, dtype=np.float64)
    grades = np.asarray(relevance, dtype=np.float64)
    if s.ndim != 1 or grades.shape != s.shape:
        raise ValueError(f"scores and relevance must be (n,) arrays of one length, found {s.shape} and {grades.shape}")
    if not np.isfinite(s).all() or not np.isfinite(grades).all():
        raise ValueError("scores and relevance must be finite")
    relevant = grades > 0
    n_pos = int(relevant.sum())
    n_neg = s.size - n_pos
    if n_pos == 0 or n_neg == 0:
        raise ValueError(f"a ranking needs a positive and a negative row, found {n_pos} and {n_neg}")
    trained = make_loss(loss)
    if not is_over_rankings(trained):
        raise LossError(f"loss {trained.name!r} is not over rankings: there is no ranking to find")
    weights_pos, weights_neg = np.empty(n_pos), np.empty(n_neg)
    bound = make_oracle(oracle, trained).bind(trained, n_pos, n_neg)
    violation = bound(s[relevant], s[~relevant], weights_pos, weights_neg)
    row_weights = np.empty(s.size)
    row_weights[relevant] = weights_pos
    row_weights[~relevant] = weights_neg
    return MostViolatedRanking(violation.value, violation.loss, ranking.ranks(weights_neg, n_pos), row_weights)
