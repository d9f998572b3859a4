"""Independent references for the tests: definitions written out, sharing nothing with the package."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray


def average_precision_of_order(relevant_in_order: NDArray[np.bool_]) -> float:
    """Mean precision at the positives."""
    hits = 0
    total = 0.0
    for place, relevant in enumerate(relevant_in_order, start=1):
        if relevant:
            hits += 1
            total += hits / place
    return total / hits


def pair_score(scores: NDArray[np.float64], relevant: NDArray[np.bool_], place: NDArray[np.int64]) -> float:
    """w·Ψ(R) − w·Ψ(R*) of the order in which row i stands at ``place[i]``, pair by pair."""
    positives, negatives = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    total = 0.0
    for i in positives:
        for j in negatives:
            sign = 1 if place[i] < place[j] else -1
            total += (sign - 1) * (scores[i] - scores[j])
    return total / (positives.size * negatives.size)


def hinge_by_permutations(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> float:
    """max over ALL orders of Δ_AP + w·Ψ(R) − w·Ψ(R*)."""
    best = -np.inf
    for order in permutations(range(scores.size)):
        at = np.array(order)
        place = np.empty_like(at)
        place[at] = np.arange(at.size)
        value = 1.0 - average_precision_of_order(relevant[at]) + pair_score(scores, relevant, place)
        best = max(best, value)
    return best


def hinge_of_ranks(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_], ranks: NDArray[np.int32]
) -> tuple[float, float]:
    """(objective, Δ_AP) of the ranking with these interleaving ranks, from its definition: the order is laid out."""
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
    at = np.array(order)
    place = np.empty_like(at)
    place[at] = np.arange(at.size)
    loss = 1.0 - average_precision_of_order(relevant[at])
    return loss + pair_score(scores, relevant, place), loss
