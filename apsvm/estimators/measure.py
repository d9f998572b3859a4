"""What ``score`` returns: the metric that was trained for, of scores, with weights.

Of several queries it is the weighted mean of those that have something to rank. A loss that names no metric
(``ndcg-chakrabarti``) gives 1 − Δ of the order of the scores, rows of equal score in the worst order; one over rows
(``zero-one``) the share of rows on the right side of 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from apsvm.data.labels import Target
from apsvm.estimators.rows import Counted
from apsvm.losses.base import Loss, LossError, is_over_labellings, is_over_rankings
from apsvm.losses.graded import takes_grades
from apsvm.metrics.evaluate import evaluate


def trained_measure(
    metric: str | None, loss: Loss | None, scores: NDArray[np.float64], target: Target, counted: Counted
) -> float:
    """How well ``scores`` (n,) order n rows.

    Parameters
    ----------
    metric : what it is taken by, as ``apsvm eval`` names it; None: by ``loss``
    loss : what was trained on, or None
    target : of the n rows
    counted : which of them count, and how much

    Raises
    ------
    ValueError : it is undefined for these rows, or neither metric nor loss says what it is
    """
    if loss is not None and not loss.by_query:
        return float(np.average((scores > 0.0) == target.relevant, weights=counted.costs))
    scores, target = scores[counted.members], target.of(counted.members)
    if metric is None:
        return _one_minus_loss(loss, scores, target, counted)
    result = evaluate([metric], scores, target.judgements, counted.groups, relevant_from=target.lowest_relevant)
    (name,) = result.values
    if result.groups is None or counted.query_weights is None:
        return result.values[name]
    each = result.in_group[name]
    weights = np.array([counted.query_weights[group] for group in result.groups.tolist()])
    return _mean(each[~np.isnan(each)], weights[~np.isnan(each)])


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    if not weights.any():
        raise ValueError("the queries that have something to rank have weights of zero")
    return float(np.average(values, weights=weights))


def _one_minus_loss(loss: Loss | None, scores: NDArray[np.float64], target: Target, counted: Counted) -> float:
    if loss is None:
        raise ValueError("its trainer names no metric: nothing to score by")
    groups = np.zeros(scores.size, dtype=np.int64) if counted.groups is None else counted.groups
    by_group = np.argsort(groups, kind="stable")
    names, starts = np.unique(groups[by_group], return_index=True)
    values, weights = [], []
    for group, rows in zip(names.tolist(), np.split(by_group, starts[1:]), strict=True):
        tasks = list(_tasks(loss, target.of(rows)))
        if tasks:
            values.append(1.0 - sum(share * _loss_of(loss, scores[rows], positive) for positive, share in tasks))
            weights.append(1.0 if counted.query_weights is None else counted.query_weights[group])
    if not values:
        raise ValueError("nothing to score: no query has rows of different relevance")
    return _mean(np.array(values), np.array(weights))


def _tasks(loss: Loss, target: Target) -> Iterator[tuple[NDArray[np.bool_], float]]:
    """The binary tasks of a query, as which rows are positive, and their weights."""
    if target.grades is not None and takes_grades(loss):
        for threshold, weight in loss.levels(target.grades):
            yield target.grades >= threshold, weight
    elif target.relevant.any() and not target.relevant.all():
        yield target.relevant, 1.0


def _loss_of(loss: Loss, scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    n_pos = int(positive.sum())
    n_neg = positive.size - n_pos
    if is_over_rankings(loss):
        in_order = positive[np.lexsort((positive, -scores))]
        above = np.cumsum(~in_order, dtype=np.int64)[in_order]
        return loss.of_ranking(above, n_neg)
    if is_over_labellings(loss):
        labelled = scores > 0.0
        return loss.of_labelling(int((labelled & positive).sum()), int((labelled & ~positive).sum()), n_pos, n_neg)
    raise LossError(
        f"loss {loss.name!r} says neither of rankings nor of labellings what they lose: nothing to score by"
    )
