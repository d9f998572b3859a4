"""Loss-augmented inference as one call, for scores from anywhere (``apsvm.most_violated_ranking``)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apsvm._support.machine import memory
from apsvm.losses import make_loss
from apsvm.losses.base import LossError, is_over_rankings
from apsvm.oracles import make_oracle, ranking
from apsvm.oracles.base import BoundOracle, NativeQuery

#: Share of the machine's memory that prepared queries may take together, and how many are kept at most.
SHARE_KEPT = 1 / 32
MOST_QUERIES_KEPT = 8
#: Bytes that the oracles keep for a row.
_BYTES_A_ROW = 20


@dataclass(frozen=True, slots=True)
class MostViolatedRanking:
    """The ranking that maximises Δ(R*, R) + w·Ψ(R) − w·Ψ(R*).

    value : float, h, that maximum; ≥ 0
    loss : float, Δ of the ranking
    ranks : (n_neg,) int32, 1..n_pos+1, the interleaving ranks in the order of the negatives as given
    row_weights : (n,) float64, c, one per row as given; Σc = 0, value = loss + c·scores, and c is a subgradient of
        the value with respect to the scores
    """

    value: float
    loss: float
    ranks: NDArray[np.int32]
    row_weights: NDArray[np.float64]


def most_violated_ranking(
    scores: ArrayLike, relevance: ArrayLike, loss: str | object = "ap", oracle: str = "auto"
) -> MostViolatedRanking:
    """Find the most violated ranking of one query.

    Parameters
    ----------
    scores : ArrayLike
        (n,) finite numbers.
    relevance : ArrayLike
        (n,) booleans, or numbers: rows above 0 are positive.
    loss : str or object
        A ranking loss: its name (``"ap"``, ``"rbp(0.8)"``), or an object with ``weights(n_pos)`` and
        ``discount(n)``.
    oracle : str
        ``auto``, ``greedy``, ``search``, ``select``, ``search-select``, ``qs``, ``brute-force`` or another that
        serves the loss.

    Raises
    ------
    ValueError
        Different shapes; scores or relevance that are not finite; score differences beyond float64; no positive or no
        negative row.
    LossError
        (a ValueError) the oracle cannot serve the loss.
    UnknownNameError
        (a ValueError) unknown loss or oracle.

    Examples
    --------
    >>> result = most_violated_ranking([0.1, 0.3, -0.2], [1, 0, 0])
    >>> result.ranks
    array([1, 2], dtype=int32)
    """
    s = np.ascontiguousarray(scores, dtype=np.float64)
    grades = np.asarray(relevance)  # booleans are not copied
    if grades.dtype != np.bool_:
        grades = np.asarray(relevance, dtype=np.float64)
    if s.ndim != 1 or grades.shape != s.shape:
        raise ValueError(f"scores and relevance must be (n,) arrays of one length, found {s.shape} and {grades.shape}")
    if not ranking.certainly_add_up(s):
        trouble = "scores and relevance must be finite" if not np.isfinite(s).all() else ranking.too_far_apart(s)
        if trouble is not None:
            raise ValueError(trouble)
    if grades.dtype != np.bool_ and not np.isfinite(grades).all():
        raise ValueError("scores and relevance must be finite")
    relevant = np.ascontiguousarray(grades if grades.dtype == np.bool_ else grades > 0)
    n_pos = int(np.count_nonzero(relevant))
    n_neg = s.size - n_pos
    if n_pos == 0 or n_neg == 0:
        raise ValueError(f"a ranking needs a positive and a negative row, found {n_pos} and {n_neg}")
    query = _ready.take(loss, oracle, n_pos, n_neg)
    result = query.solve(s, relevant)
    _ready.give_back(loss, oracle, query)
    return result


@dataclass(slots=True)
class _Query:
    """An oracle prepared for queries of n_pos positives and n_neg negatives."""

    oracle: BoundOracle
    n_pos: int
    n_neg: int

    @classmethod
    def bind_to(cls, loss: str | object, oracle: str, n_pos: int, n_neg: int) -> _Query:
        trained = make_loss(loss)
        if not is_over_rankings(trained):
            raise LossError(f"expected a loss over rankings, found {trained.name!r}")
        return cls(make_oracle(oracle, trained).bind(trained, n_pos, n_neg), n_pos, n_neg)

    def solve(self, scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> MostViolatedRanking:
        row_weights = np.empty(scores.size)
        if isinstance(self.oracle, NativeQuery):
            ranks = np.empty(self.n_neg, dtype=np.int32)
            violation = self.oracle.mixed(scores, relevant, row_weights, ranks)
            return MostViolatedRanking(violation.value, violation.loss, ranks, row_weights)
        weights_pos, weights_neg = np.empty(self.n_pos), np.empty(self.n_neg)
        violation = self.oracle(scores[relevant], scores[~relevant], weights_pos, weights_neg)
        row_weights[relevant] = weights_pos
        row_weights[~relevant] = weights_neg
        return MostViolatedRanking(violation.value, violation.loss, ranking.ranks(weights_neg, self.n_pos), row_weights)


class _ReadyQueries:
    """Recently used queries, for losses given by name; objects may change between calls. A query that is taken belongs
    to one caller, so threads do not share it."""

    def __init__(self) -> None:
        self._queries: OrderedDict[tuple[str, str, int, int], _Query] = OrderedDict()

    def take(self, loss: str | object, oracle: str, n_pos: int, n_neg: int) -> _Query:
        kept = self._queries.pop((loss, oracle, n_pos, n_neg), None) if isinstance(loss, str) else None
        return kept or _Query.bind_to(loss, oracle, n_pos, n_neg)

    def give_back(self, loss: str | object, oracle: str, query: _Query) -> None:
        if not isinstance(loss, str) or ":" in loss:
            return
        self._queries[(loss, oracle, query.n_pos, query.n_neg)] = query
        kept, most = list(self._queries.items()), SHARE_KEPT * memory() / _BYTES_A_ROW
        while len(kept) > MOST_QUERIES_KEPT or sum(query.n_pos + query.n_neg for _, query in kept) > most:
            key, _ = kept.pop(0)
            self._queries.pop(key, None)


_ready = _ReadyQueries()
