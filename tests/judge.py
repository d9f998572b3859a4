"""Independent references for the tests: definitions written out, sharing nothing with the package."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations
from math import log2

import numpy as np
from numpy.typing import NDArray

#: A metric of the relevant rows of an order, top first.
Metric = Callable[[NDArray[np.bool_]], float]


def average_precision_of_order(relevant_in_order: NDArray[np.bool_]) -> float:
    """Mean precision at the positives."""
    hits = 0
    total = 0.0
    for place, relevant in enumerate(relevant_in_order, start=1):
        if relevant:
            hits += 1
            total += hits / place
    return total / hits


def ndcg_of_order(relevant_in_order: NDArray[np.bool_]) -> float:
    """DCG over that of the best order."""
    found = sum(1 / log2(1 + p) for p, relevant in enumerate(relevant_in_order, start=1) if relevant)
    return found / sum(1 / log2(1 + p) for p in range(1, int(relevant_in_order.sum()) + 1))


def reciprocal_rank_of_order(relevant_in_order: NDArray[np.bool_]) -> float:
    """One over the position of the first positive."""
    return 1.0 / (1 + list(relevant_in_order).index(True))


def roc_area_of_order(relevant_in_order: NDArray[np.bool_]) -> float:
    """The share of pairs in the right order."""
    pairs = list(combinations(relevant_in_order, 2))
    return sum(bool(a and not b) for a, b in pairs) / sum(bool(a != b) for a, b in pairs)


def rank_biased_of_order(relevant_in_order: NDArray[np.bool_], rho: float = 0.8) -> float:
    """What a reader who goes on with probability rho gains a step."""
    return (1 - rho) * sum(rho**at for at, relevant in enumerate(relevant_in_order) if relevant)


#: By the forms of the registry, at the default parameters.
METRICS: dict[str, Metric] = {
    "ap": average_precision_of_order,
    "ndcg": ndcg_of_order,
    "mrr": reciprocal_rank_of_order,
    "auc": roc_area_of_order,
    "rbp(rho)": rank_biased_of_order,
}


def loss_of_order(metric: Metric, relevant_in_order: NDArray[np.bool_]) -> float:
    """How far the metric stays behind that of the best order."""
    return metric(np.sort(relevant_in_order)[::-1]) - metric(relevant_in_order)


def pair_score(scores: NDArray[np.float64], relevant: NDArray[np.bool_], place: NDArray[np.int64]) -> float:
    """w·Ψ(R) − w·Ψ(R*) of the order in which row i stands at ``place[i]``, pair by pair."""
    positives, negatives = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    total = 0.0
    for i in positives:
        for j in negatives:
            sign = 1 if place[i] < place[j] else -1
            total += (sign - 1) * (scores[i] - scores[j])
    return total / (positives.size * negatives.size)


def hinge_by_permutations(scores: NDArray[np.float64], relevant: NDArray[np.bool_], metric: Metric) -> float:
    """max over ALL orders of Δ + w·Ψ(R) − w·Ψ(R*)."""
    best = -np.inf
    for order in permutations(range(scores.size)):
        best = max(best, _objective(scores, relevant, np.array(order), metric)[0])
    return best


def hinge_by_interleavings(scores: NDArray[np.float64], relevant: NDArray[np.bool_], metric: Metric) -> float:
    """The same over the orders that keep each class sorted by score: where the positives may stand is tried out."""
    n, n_pos = scores.size, int(relevant.sum())
    s_pos, s_neg = -np.sort(-scores[relevant]), -np.sort(-scores[~relevant])
    margins = s_pos[:, None] - s_neg[None, :]
    best = -np.inf
    for places in combinations(range(n), n_pos):
        in_order = np.zeros(n, dtype=bool)
        in_order[list(places)] = True
        above = np.array(places) - np.arange(n_pos)
        lost = sum(margins[k, : above[k]].sum() for k in range(n_pos))
        best = max(best, loss_of_order(metric, in_order) - 2.0 * float(lost) / margins.size)
    return best


def hinge_of_ranks(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_], ranks: NDArray[np.int32], metric: Metric
) -> tuple[float, float]:
    """(objective, Δ) of the ranking with these interleaving ranks, from its definition: the order is laid out."""
    positives = np.flatnonzero(relevant)[np.argsort(-scores[relevant], kind="stable")]
    negatives = np.flatnonzero(~relevant)
    slots: list[list[int]] = [[] for _ in range(positives.size + 1)]
    for j, rank in zip(negatives, ranks, strict=True):
        slots[rank - 1].append(int(j))
    order: list[int] = []
    for k, slot in enumerate(slots):
        order += sorted(slot, key=lambda j: -scores[j])
        if k < positives.size:
            order.append(int(positives[k]))
    return _objective(scores, relevant, np.array(order), metric)


def _objective(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_], order: NDArray[np.int64], metric: Metric
) -> tuple[float, float]:
    """(Δ + w·Ψ(R) − w·Ψ(R*), Δ) of an order."""
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    loss = loss_of_order(metric, relevant[order])
    return loss + pair_score(scores, relevant, place), loss
