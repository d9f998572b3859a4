"""Independent references for the tests: definitions written out, sharing nothing with the package but, of losses that
are not here, the two arrays that define them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations, permutations, product
from math import log2

import numpy as np
from numpy.typing import NDArray

from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import RankingLoss

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
    positives_above = np.cumsum(relevant_in_order)[~relevant_in_order]
    return float(positives_above.mean()) / int(relevant_in_order.sum())


def partial_roc_area_of_order(relevant_in_order: NDArray[np.bool_], beta: float = 0.05) -> float:
    """The area under the steps of the ROC curve from 0 to beta, over beta."""
    rate = np.cumsum(~relevant_in_order)[~relevant_in_order] / (~relevant_in_order).sum()  # after each negative
    widths = np.diff(np.minimum(rate, beta), prepend=0.0)
    found = np.cumsum(relevant_in_order)[~relevant_in_order] / relevant_in_order.sum()
    return float(widths @ found) / beta


def rank_biased_of_order(relevant_in_order: NDArray[np.bool_], rho: float = 0.8) -> float:
    """Gain per step of a reader who continues with probability rho."""
    return (1 - rho) * sum(rho**at for at, relevant in enumerate(relevant_in_order) if relevant)


def ndcg_at_of_order(relevant_in_order: NDArray[np.bool_], k: int = 10) -> float:
    """DCG of the first k over that of the best order's first k."""
    found = sum(1 / log2(1 + p) for p, relevant in enumerate(relevant_in_order[:k], start=1) if relevant)
    return found / sum(1 / log2(1 + p) for p in range(1, min(k, int(relevant_in_order.sum())) + 1))


def chakrabarti_ndcg_of_order(relevant_in_order: NDArray[np.bool_]) -> float:
    """DCG over that of the best order, with 1, 1, 1/log2 3, 1/log2 4, …"""
    found = sum(1 / log2(max(p, 2)) for p, relevant in enumerate(relevant_in_order, start=1) if relevant)
    return found / sum(1 / log2(max(p, 2)) for p in range(1, int(relevant_in_order.sum()) + 1))


def precision_at_of_order(relevant_in_order: NDArray[np.bool_], k: int = 10) -> float:
    """Positives among the first k, over k."""
    return float(relevant_in_order[:k].sum()) / k


#: By the forms of the registry, at the default parameters.
METRICS: dict[str, Metric] = {
    "ap": average_precision_of_order,
    "ndcg": ndcg_of_order,
    "ndcg(gain)": ndcg_of_order,
    "mrr": reciprocal_rank_of_order,
    "auc": roc_area_of_order,
    "pauc(beta)": partial_roc_area_of_order,
    "rbp(rho)": rank_biased_of_order,
    "ndcg@k": ndcg_at_of_order,
    "ndcg-chakrabarti": chakrabarti_ndcg_of_order,
    "p@k": precision_at_of_order,
}


#: What the parameter in a loss's name is to its metric.
_PARAMETERS: dict[str, tuple[str, type[int] | type[float]]] = {
    "pauc(beta)": ("beta", float),
    "rbp(rho)": ("rho", float),
    "ndcg@k": ("k", int),
    "p@k": ("k", int),
}


def definition(name: str) -> Metric:
    """The metric of a loss by its name or form in the registry (above); for a newcomer −Δ by its own two
    arrays, Δ = Σ_k u_k [D(k) − D(place of the k-th positive)], or by ``of_ranking``."""
    if name in METRICS:
        return METRICS[name]
    form, text = LOSSES.spelled(name)
    if form in METRICS:
        if text is None or form not in _PARAMETERS:
            return METRICS[form]
        keyword, convert = _PARAMETERS[form]
        return partial(METRICS[form], **{keyword: convert(text)})
    loss = LOSSES[form]() if name == form else make_loss(name)
    if not isinstance(loss, RankingLoss):

        def minus_delta(relevant_in_order: NDArray[np.bool_]) -> float:
            above = np.cumsum(~relevant_in_order)[relevant_in_order]
            return -loss.of_ranking(above, int((~relevant_in_order).sum()))

        return minus_delta

    def minus_loss(relevant_in_order: NDArray[np.bool_]) -> float:
        n, n_pos = relevant_in_order.size, int(relevant_in_order.sum())
        weights, discount = loss.weights(n_pos), loss.discount(n)
        places = np.flatnonzero(relevant_in_order)
        return -float(sum(weights[k] * (discount[k] - discount[places[k]]) for k in range(n_pos)))

    return minus_loss


def loss_of_order(metric: Metric, relevant_in_order: NDArray[np.bool_]) -> float:
    """Shortfall of the metric from that of the best order."""
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


def hinge_by_permutations(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_], metric: Metric = average_precision_of_order
) -> float:
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
    scores: NDArray[np.float64],
    relevant: NDArray[np.bool_],
    ranks: NDArray[np.int32],
    metric: Metric = average_precision_of_order,
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


def hinge_by_lattice(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_], gain: Callable[[int, int], float], best: float
) -> float:
    """max over rankings of Δ + w·Ψ(R) − w·Ψ(R*) where Δ = ``best`` − Σ gain(a, b) of the a-th positives with b
    negatives above: place by place, over all numbers (a, b) of rows placed. O(PN)."""
    s_pos, s_neg = -np.sort(-scores[relevant]), -np.sort(-scores[~relevant])
    n_pos, n_neg = s_pos.size, s_neg.size
    left = np.append(np.cumsum(s_pos[::-1])[::-1], 0.0)  # Σ of the positives not placed yet
    value = np.full((n_pos + 1, n_neg + 1), -np.inf)
    value[0, 0] = best
    for a in range(n_pos + 1):
        swapped = 2.0 / (n_pos * n_neg) * ((n_pos - a) * s_neg - left[a])
        for b in range(n_neg + 1):
            if a:
                value[a, b] = max(value[a, b], value[a - 1, b] - gain(a, b))
            if b:
                value[a, b] = max(value[a, b], value[a, b - 1] + swapped[b - 1])
    return float(value[n_pos, n_neg])


#: Δ of a labelling: (true positives, false positives, positives, negatives) → number.
LabellingLoss = Callable[[int, int, int, int], float]


def hinge_by_labellings(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_], loss: LabellingLoss, n_labels: int | None
) -> float:
    """max over all labellings of the rows (with ``n_labels`` positive labels, if given; and the true one, Δ = 0) of
    Δ + w·Ψ(y) − w·Ψ(y*), Ψ = Σ y_i x_i / 2n, y_i = ±1."""
    n, n_pos = scores.size, int(relevant.sum())
    truth = np.where(relevant, 1, -1)
    best = 0.0
    for labels in product([-1, 1], repeat=n):
        y = np.array(labels)
        if n_labels is not None and (y > 0).sum() != n_labels:
            continue
        delta = loss(int(((y > 0) & relevant).sum()), int(((y > 0) & ~relevant).sum()), n_pos, n - n_pos)
        best = max(best, delta + float((y - truth) @ scores) / (2 * n))
    return best


def hinge_by_counts(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_], loss: LabellingLoss, n_labels: int | None
) -> float:
    """The same in O(PN): for each number of true and of false positives the highest of them."""
    s_pos, s_neg = -np.sort(-scores[relevant]), -np.sort(-scores[~relevant])
    n_pos, n_neg = s_pos.size, s_neg.size
    best = 0.0
    for a in range(n_pos + 1):
        for b in range(n_neg + 1):
            if n_labels is None or a + b == n_labels:
                margin = (s_neg[:b].sum() - s_pos[a:].sum()) / scores.size
                best = max(best, loss(a, b, n_pos, n_neg) + float(margin))
    return best
