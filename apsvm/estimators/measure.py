"""What ``score`` returns: the metric that was trained for, of scores, with weights.

Of several queries it is the weighted mean of those that have something to rank. A loss that names no metric
(``ndcg-chakrabarti``) gives 1 − Δ of the order of the scores, rows of equal score in the worst order; one over rows
(``zero-one``) the share of rows on the right side of 0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from apsvm.data.labels import Target
from apsvm.estimators.rows import Counted
from apsvm.losses.base import Loss
from apsvm.metrics.evaluate import Evaluation, evaluate
from apsvm.risk import NothingToRankError, loss_by_order


def trained_measure(
    metric: str | None, loss: Loss | None, scores: NDArray[np.float64], target: Target, counted: Counted
) -> float:
    """How well ``scores`` (n,) order n rows.

    Parameters
    ----------
    metric : str, optional
        What it is taken by, as ``apsvm eval`` names it; None: by ``loss``.
    loss : Loss, optional
        What was trained on, or None.
    target : Target
        Of the n rows.
    counted : Counted
        Which of them count, and how much.

    Raises
    ------
    ValueError
        It is undefined for these rows, or neither metric nor loss says what it is.
    """
    if loss is not None and not loss.by_query:
        return float(np.average((scores > 0.0) == target.relevant, weights=counted.costs))
    if counted.costs is not None:
        raise ValueError(
            "score counts whole rows: sample_weight of fractions is for fit alone (set_score_request(sample_weight="
            "False) keeps it from the score of a search)"
        )
    scores, target = scores[counted.members], target.of(counted.members)
    if metric is None:
        return _one_minus_loss(loss, scores, target, counted)
    result = evaluate([metric], scores, target.judgements, counted.groups, relevant_from=target.lowest_relevant)
    return value_of(result, counted.query_weights)


def value_of(result: Evaluation, query_weights: Mapping[int, float] | None) -> float:
    """The metric of an evaluation: of queries the mean, by their weights. Raises ValueError where all are zero."""
    (name,) = result.values
    if result.groups is None or query_weights is None:
        return result.values[name]
    each = result.in_group[name]
    weights = np.array([query_weights[group] for group in result.groups.tolist()])
    ranked = ~np.isnan(each)
    if not weights[ranked].any():
        raise ValueError("the queries that have something to rank have weights of zero")
    return float(np.average(each[ranked], weights=weights[ranked]))


def _one_minus_loss(loss: Loss | None, scores: NDArray[np.float64], target: Target, counted: Counted) -> float:
    if loss is None:
        raise ValueError("its trainer names no metric: nothing to score by")
    try:
        return 1.0 - loss_by_order(loss, scores, target, counted.groups, counted.query_weights)
    except NothingToRankError as error:
        raise ValueError(f"nothing to score: {error}") from None
