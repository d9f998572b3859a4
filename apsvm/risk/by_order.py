"""The loss of the order by score: Δ itself, not a bound. Held-out rows are judged by it.

Rows of equal score stand in the worst order: the negatives first. With several queries it is the weighted mean over
those with something to rank; a graded loss is the weighted sum over its levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.data.labels import Target
from apsvm.losses.base import Loss, LossError, is_over_labellings, is_over_rankings
from apsvm.losses.graded import takes_grades
from apsvm.oracles.layout import NothingToRankError

#: Number of rows ordered at a time.
_BLOCK = 1 << 22
#: The largest finite score.
_FARTHEST = np.finfo(np.float64).max


def loss_by_order(
    loss: Loss,
    scores: NDArray[np.float64],
    target: Target,
    groups: NDArray[np.int64] | None = None,
    query_weights: Mapping[int, float] | None = None,
) -> float:
    """Δ of the order by ``scores`` (n,); for a loss over labellings, Δ of calling rows above 0 positive.

    Parameters
    ----------
    target : the target of the n rows
    groups : (n,) int64, their queries; None: one for all
    query_weights : weight of each query in the mean; 1 for queries not listed

    Raises
    ------
    NothingToRankError : no query with a weight has rows of different relevance
    LossError : a loss over neither rankings nor labellings
    """
    losses, weights = losses_of_queries(loss, scores, target, groups, query_weights)
    return float(losses @ weights) / float(weights.sum())


def losses_of_queries(
    loss: Loss,
    scores: NDArray[np.float64],
    target: Target,
    groups: NDArray[np.int64] | None = None,
    query_weights: Mapping[int, float] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(G,) float64, Δ of each query that has a weight and rows of different relevance, in the order of the queries, and
    (G,) float64, the weights. Parameters and errors as in ``loss_by_order``."""
    losses, weights = list[float](), list[float]()
    for name, of_query, target_of_query in _queries(scores, target, groups):
        tasks = list(_tasks(loss, target_of_query))
        weight = 1.0 if groups is None or query_weights is None else query_weights.get(name, 1.0)
        if tasks and weight > 0.0:
            losses.append(sum(share * _of_task(loss, of_query, positive) for positive, share in tasks))
            weights.append(weight)
    if not weights:
        raise NothingToRankError("no query that counts has rows of different relevance")
    return np.array(losses), np.array(weights)


def _queries(
    scores: NDArray[np.float64], target: Target, groups: NDArray[np.int64] | None
) -> Iterator[tuple[int, NDArray[np.float64], Target]]:
    """Yields scores and target of each query; a single query is not copied."""
    if groups is None:
        yield 0, scores, target
        return
    by_group = np.argsort(groups, kind="stable")
    unique, starts = np.unique(groups[by_group], return_index=True)
    for name, rows in zip(unique.tolist(), np.split(by_group, starts[1:]), strict=True):
        yield name, scores[rows], target.of(rows)


def _tasks(loss: Loss, target: Target) -> Iterator[tuple[NDArray[np.bool_], float]]:
    """Binary tasks of a query: positive rows, and weight."""
    if target.grades is not None and takes_grades(loss):
        for threshold, weight in loss.levels(target.grades):
            yield target.grades >= threshold, weight
    elif 0 < np.count_nonzero(target.relevant) < target.relevant.size:
        yield target.relevant, 1.0


def _of_task(loss: Loss, scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    n_pos = int(np.count_nonzero(positive))
    n_neg = positive.size - n_pos
    if is_over_rankings(loss):
        return loss.of_ranking(_negatives_above(scores, positive), n_neg)
    if is_over_labellings(loss):
        labelled = scores > 0.0
        return loss.of_labelling(int((labelled & positive).sum()), int((labelled & ~positive).sum()), n_pos, n_neg)
    raise LossError(f"loss {loss.name!r} is neither over rankings nor over labellings: an order has no loss")


def _negatives_above(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number (P,) of negatives that score at least as high as each positive, positives in the order of their rank. NaN
    ranks last. Rows are processed in blocks, since a copy of all would double the memory."""
    if not _kernels.all_within(scores, _FARTHEST):
        scores = np.nan_to_num(scores, nan=-_FARTHEST, posinf=_FARTHEST, neginf=-_FARTHEST)
    positives = -scores[positive]
    counts = np.zeros(positives.size + 1, dtype=np.int64)  # at [k]: negatives below k positives
    for start in range(0, scores.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        above = _kernels.count_below(positives, -scores[block][~positive[block]])
        counts += np.bincount(above, minlength=counts.size)
    return counts[:-1].cumsum()
