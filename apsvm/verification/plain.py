"""The losses and their structured hinges, from the definitions, in NumPy alone. Nothing of apsvm is imported here.

A loss over rankings is Δ = Σ_k u_k [D(k) − D(k + n_k)], n_k negatives above the k-th positive, n_1 ≤ … ≤ n_P, so that
for any D

    h(s) = max_{n_1 ≤ … ≤ n_P} Σ_k gain_k(n_k),
    gain_k(n) = u_k [D(k) − D(k + n)] − (2/PN) Σ_{j ≤ n} (s⁺_k − s⁻_j).

Where D is convex, each gain is concave in n, and the maximum is an isotonic regression: each n_k at its
own maximum, neighbours in the wrong order pooled; O(P log N), plus the pooling. Under a bound n_k ≤ c the maximiser is
the same one, clipped at c.

A D that is cut off at K is convex up to there and again behind it. Positions rise with k, so that for some m the first
m positives stand at the first K positions, n_1 ≤ … ≤ n_m ≤ K − m, and the others behind, K − m ≤ n_{m+1} ≤ … ≤ n_P: two
isotonic regressions under a bound. One pass over the positives solves the first for every m; a pass from the other end
solves the second.

A loss over labellings has Δ of a, the true positives, and b, the false ones, and

    h(s) = max_{a, b} Δ(a, b) + (1/n) Σ_{b highest negatives} s⁻ − (1/n) Σ_{P − a lowest positives} s⁺

where a + b is given, or Δ is concave in b, so that the best b of each a is found by bisection.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: The largest k of a loss at k: float64 holds all whole numbers up to it.
MOST = 2**53


class UnknownLossError(ValueError):
    """A loss that is not defined here."""


class Hinge(NamedTuple):
    """The structured hinge of one task, h(s') ≥ loss + positives·s⁺' + negatives·s⁻' for every s', equal at s.

    Attributes
    ----------
    value, loss : float, h and Δ of the most violated ranking or labelling
    positives, negatives : (P,) and (N,) float64, the row weights
    """

    value: float
    loss: float
    positives: Array
    negatives: Array


@dataclass(frozen=True)
class RankingDefinition:
    """u and D of a loss over rankings.

    Attributes
    ----------
    weights : function of P and N, u (P,)
    discount : function of P + N and N, D at the positions 1..P + N
    split : D is convex up to this position and again behind it, and all weights are equal; 0: it is convex throughout
    gain : the gain of grades, "exponential" or "linear"; None if the loss ignores grades
    """

    weights: Callable[[int, int], Array]
    discount: Callable[[int, int], Array]
    split: int = 0
    gain: str | None = None

    #: True if each query is a task; True if a constant added to all scores does not change the hinge.
    by_query: ClassVar[bool] = True
    level_free: ClassVar[bool] = True

    def hinge(self, positives: Array, negatives: Array, costs: tuple[Array, Array] | None) -> Hinge:
        """Hinge of one task, scores (P,) and (N,)."""
        P, N = positives.size, negatives.size
        return hinge_of_rankings(self.weights(P, N), self.discount(P + N, N), positives, negatives, split=self.split)

    def largest(self, P: int, N: int, costs: tuple[Array, Array] | None) -> Hinge:
        """Upper bound over all rankings of the magnitudes of the loss's terms and of each row's weight."""
        loss = 2.0 * float(self.weights(P, N).sum()) * float(np.abs(self.discount(P + N, N)).max())
        return Hinge(np.inf, loss, np.full(P, 2.0 / P), np.full(N, 2.0 / N))

    def ideal(self, n_pos: int) -> float:
        """DCG of a ranking with this many positives at the top."""
        return float(self.discount(n_pos, 1).sum())


@dataclass(frozen=True)
class LabellingDefinition:
    """Δ of a loss over labellings.

    Attributes
    ----------
    loss : Δ of arrays a and b of true and false positives, and P; concave in b where ``labelled`` is None
    labelled : the number of rows labelled positive, a function of P; None: any number
    level_free : see ``RankingDefinition``; True if as many rows are labelled positive as are positive
    """

    loss: Callable[[Integers, Integers, int], Array]
    labelled: Callable[[int], int] | None = None
    level_free: bool = False

    by_query: ClassVar[bool] = True

    def hinge(self, positives: Array, negatives: Array, costs: tuple[Array, Array] | None) -> Hinge:
        """Hinge of one task, scores (P,) and (N,)."""
        return hinge_of_labellings(self, positives, negatives)

    def largest(self, P: int, N: int, costs: tuple[Array, Array] | None) -> Hinge:
        """See ``RankingDefinition``."""
        share = 1.0 / (P + N)
        return Hinge(np.inf, 1.0, np.full(P, share), np.full(N, share))


@dataclass(frozen=True)
class ZeroOneDefinition:
    """(1/n) Σ_i cost_i max(0, 1 − y_i s_i), of all rows as one task."""

    by_query = False
    level_free = False

    def hinge(self, positives: Array, negatives: Array, costs: tuple[Array, Array] | None) -> Hinge:
        """Hinge of scores (P,) and (N,), with their costs."""
        share = 1.0 / (positives.size + negatives.size)
        down = np.where(positives < 1.0, -share, 0.0)
        up = np.where(negatives > -1.0, share, 0.0)
        if costs is not None:
            down, up = down * costs[0], up * costs[1]
        loss = float(up.sum() - down.sum())
        return Hinge(loss + float(down @ positives) + float(up @ negatives), loss, down, up)

    def largest(self, P: int, N: int, costs: tuple[Array, Array] | None) -> Hinge:
        """See ``RankingDefinition``."""
        down, up = (
            np.full(count, 1.0 / (P + N)) * (1.0 if costs is None else costs[at]) for at, count in ((0, P), (1, N))
        )
        return Hinge(np.inf, float(down.sum() + up.sum()), down, up)


@dataclass(frozen=True)
class PartialAreaDefinition:
    """Δ = (1/P) Σ_k min(n_k, b)/b, b = rate·N: each gain_k is concave in n, and its maximum rises with k."""

    rate: float

    by_query: ClassVar[bool] = True
    level_free: ClassVar[bool] = True

    def hinge(self, positives: Array, negatives: Array, costs: tuple[Array, Array] | None) -> Hinge:
        """Hinge of one task, scores (P,) and (N,)."""
        P, N = positives.size, negatives.size
        order, unit, b = np.argsort(-negatives, kind="stable"), 2.0 / (P * N), self.rate * N
        shares = np.clip(b - np.arange(N), 0.0, 1.0) / b
        # gain_k rises by unit (reach_j − s⁺_k) at n = j.
        reach = negatives[order] + 0.5 * N * shares
        above = np.searchsorted(-reach, -positives, side="left")
        down, up = np.multiply(-unit, above, dtype=np.float64), np.empty(N)
        up[order] = unit * (P - np.searchsorted(np.sort(above), np.arange(N), side="right"))
        loss = float(np.minimum(above / b, 1.0).mean())
        return Hinge(loss + float(down @ positives) + float(up @ negatives), loss, down, up)

    def largest(self, P: int, N: int, costs: tuple[Array, Array] | None) -> Hinge:
        """See ``RankingDefinition``."""
        return Hinge(np.inf, 1.0, np.full(P, 2.0 / P), np.full(N, 2.0 / N))


Definition = RankingDefinition | PartialAreaDefinition | LabellingDefinition | ZeroOneDefinition


def definition_of(name: str) -> Definition:
    """Definition of the loss ``name``, written as in ``--loss``. Raises UnknownLossError."""
    at_k = re.fullmatch(r"(p|ndcg|set-p|set-r)@(\d+)", name)
    with_number = re.fullmatch(r"(rbp|f|pauc)\((.+)\)", name)
    if name == "ap":
        return RankingDefinition(lambda P, N: np.arange(1, P + 1) / P, lambda n, N: 1.0 / np.arange(1, n + 1))
    if name in ("ndcg", "ndcg(exponential)", "ndcg(linear)"):
        return _ndcg(lambda n, N: _logarithmic(n), gain="linear" if name == "ndcg(linear)" else "exponential")
    if name == "ndcg-chakrabarti":
        return _ndcg(lambda n, N: np.append(1.0, _logarithmic(n - 1)), split=1)
    if name == "mrr":
        return RankingDefinition(
            lambda P, N: (np.arange(P) == 0).astype(np.float64), lambda n, N: 1.0 / np.arange(1, n + 1)
        )
    if name == "auc":
        return RankingDefinition(lambda P, N: np.full(P, 1.0 / P), lambda n, N: -np.arange(1, n + 1) / N)
    if name == "zero-one":
        return ZeroOneDefinition()
    if name == "prbep":
        return LabellingDefinition(lambda a, b, P: 1.0 - a / P, lambda P: P, level_free=True)
    if name == "f1":
        return _f_measure(1.0)
    if at_k is not None and 1 <= float(at_k[2]) <= MOST:
        return _at_k(at_k[1], int(at_k[2]))
    if with_number is not None:
        number = _number(with_number[2])
        if with_number[1] == "f" and 0.0 < number < 1e6:
            return _f_measure(number)
        if with_number[1] == "rbp" and 0.0 < number < 1.0:
            return _rank_biased(number)
        if with_number[1] == "pauc" and 0.0 < number <= 1.0:
            return PartialAreaDefinition(number)
    shortened = name if len(name) <= 60 else f"{name[:57]}..."
    raise UnknownLossError(f"the loss {shortened!r} is not defined in apsvm.verification")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _logarithmic(n: int) -> Array:
    """1/log2(1 + p) for p = 1..n."""
    return 1.0 / np.log2(np.arange(2, n + 2))


def _ndcg(discount: Callable[[int, int], Array], split: int = 0, gain: str = "exponential") -> RankingDefinition:
    return RankingDefinition(lambda P, N: np.full(P, 1.0 / float(discount(P, N).sum())), discount, split, gain)


def _rank_biased(rho: float) -> RankingDefinition:
    return RankingDefinition(lambda P, N: np.full(P, 1.0 - rho), lambda n, N: np.power(rho, np.arange(n)))


def _at_k(form: str, k: int) -> Definition:
    if form == "p":
        return RankingDefinition(
            lambda P, N: np.full(P, 1.0 / k), lambda n, N: (np.arange(n) < k).astype(np.float64), split=k
        )
    if form == "ndcg":
        return _ndcg(lambda n, N: _logarithmic(n) * (np.arange(n) < k), split=k)
    if form == "set-p":
        return LabellingDefinition(lambda a, b, P: (min(P, k) - a) / k, lambda P: k)
    return LabellingDefinition(lambda a, b, P: (min(P, k) - a) / P, lambda P: k)


def _f_measure(beta: float) -> LabellingDefinition:
    square = beta**2
    return LabellingDefinition(lambda a, b, P: 1.0 - (1.0 + square) * a / (a + b + square * P))


def hinge_of_rankings(weights: Array, discount: Array, positives: Array, negatives: Array, *, split: int) -> Hinge:
    """Hinge of a loss over rankings (see the module), for u (P,), D (P + N,) and scores (P,) and (N,)."""
    P, N = positives.size, negatives.size
    order, order_neg = np.argsort(-positives), np.argsort(-negatives)
    s_pos, s_neg = positives[order], negatives[order_neg]
    if 0 < split < P + N:
        above = _most_violated_in_two_parts(weights, discount, s_pos, s_neg, split)
    else:
        above = _Gains(weights, discount, s_pos, s_neg).most_violated(P)
    unit = 2.0 / (P * N)
    down, up = np.empty(P), np.empty(N)
    down[order] = -unit * above
    up[order_neg] = unit * (P - np.searchsorted(above, np.arange(1, N + 1), side="left"))
    k = np.arange(P)
    loss = float(weights @ (discount[k] - discount[k + above]))
    return Hinge(loss + float(down @ positives) + float(up @ negatives), loss, down, up)


def _most_violated_in_two_parts(
    weights: Array, discount: Array, positives: Array, negatives: Array, split: int
) -> Integers:
    """Most violated n_k, (P,), for scores in descending order; D is convex up to ``split``, K, and again behind it."""
    P, N = positives.size, negatives.size
    place = np.arange(P + N)
    # Each part's D is continued as a convex function beyond its own positions, which no n within the bounds reaches.
    drop = discount[split] - discount[split + 1] if split + 1 < P + N else 0.0
    tail = np.where(place < split, discount[split] + (split - place) * drop, discount)
    above = _Gains(weights, discount[np.minimum(place, split - 1)], positives, negatives)
    # Counted from the other end, N − n_k negatives precede a positive.
    below = _Gains(weights[::-1], tail[::-1], -positives[::-1], -negatives[::-1])
    m = np.arange(min(P, split) + 1)
    room = split - m  # for the negatives above the first m positives; the others have at least as many above them
    from_above = above.highest_sums(np.minimum(room, N))
    from_below = below.highest_sums(N - np.clip(split - np.arange(P, -1, -1), 0, N))[P - m]
    # Sums over the pairs of each positive, all in the wrong order: ``below`` counts from there.
    swapped = N * positives - negatives.sum()
    values = from_above + from_below - 2.0 / (P * N) * (swapped.sum() - np.append(0.0, np.cumsum(swapped))[m])
    values[(room > N) & (m < P)] = -np.inf
    best = int(np.argmax(values))
    first = np.minimum(above.most_violated(best), room[best])
    others = N - np.minimum(below.most_violated(P - best), N - room[best])[::-1] if best < P else np.empty(0, np.int64)
    return np.append(first, others)


class _Pool(NamedTuple):
    """Positives from ``first`` on that share ``n``; ``before`` is the sum of the gains of earlier positives."""

    first: int
    n: int
    before: float


class _Gains:
    """Gains gain_k(n) of one task for a convex D, without their constant D(k); scores are in descending order."""

    def __init__(self, weights: Array, discount: Array, positives: Array, negatives: Array) -> None:
        self._unit = 2.0 / (positives.size * negatives.size)
        self._weights, self._discount, self._positives, self._negatives = weights, discount, positives, negatives
        self._weight = float(weights[0]) if (weights == weights[0]).all() else None  # None unless all are equal
        self._sums = [np.append(0.0, np.cumsum(array)) for array in (discount, positives, negatives)]

    def most_violated(self, m: int) -> Integers:
        """Most violated n_k of the first m positives alone, (m,)."""
        pools: list[_Pool] = []
        for latest in self._pools(m):
            pools = latest
        starts = np.array([pool.first for pool in pools], dtype=np.int64)
        return np.repeat(np.array([pool.n for pool in pools], dtype=np.int64), np.diff(starts, append=m))

    def highest_sums(self, bounds: Integers) -> Array:
        """For each m = 0, 1, … the highest sum of the first m gains with n_k ≤ ``bounds``[m]; all u must be equal."""
        result = [0.0]
        for m, pools in enumerate(self._pools(bounds.size - 1, with_sums=True), 1):
            bound = int(bounds[m])
            at = min(bisect_right(pools, bound, key=lambda pool: pool.n), len(pools) - 1)
            result.append(pools[at].before + self._sum(pools[at].first, m, min(pools[at].n, bound)))
        return np.array(result)

    def _pools(self, m: int, *, with_sums: bool = False) -> Iterator[list[_Pool]]:
        """Pools of the first 1, 2, …, m positives, n ascending, by pooling adjacent violators (Best, Chakravarti and
        Ubhaya 2000)."""
        pools: list[_Pool] = []
        of_positives = self._sums[1]
        for k, n in enumerate(self._own_maxima(m).tolist()):
            first = k
            while pools and pools[-1].n > n:
                first, above, _ = pools.pop()
                n = self._maximum(first, k + 1, n, above, float(of_positives[k + 1] - of_positives[first]))
            last = pools[-1] if pools and with_sums else None
            before = 0.0 if last is None else last.before + self._sum(last.first, first, last.n)
            pools.append(_Pool(first, n, before))
            yield pools

    def _own_maxima(self, m: int) -> Integers:
        """(m,): the n at which each of the first m gains stops rising; by bisection, as the slope falls."""
        N, k = self._negatives.size, np.arange(m)
        low, high = np.zeros(m, dtype=np.int64), np.full(m, N)
        while (low < high).any():
            middle = (low + high) // 2
            at = np.minimum(middle, N - 1)
            drop = self._discount[k + at] - self._discount[k + at + 1]
            margins = self._unit * (self._positives[:m] - self._negatives[at])
            rises = (middle < N) & (self._weights[:m] * drop > margins)
            low, high = np.where(rises & (low < high), middle + 1, low), np.where(rises, high, middle)
        return low

    def _maximum(self, first: int, end: int, low: int, high: int, of_positives: float) -> int:
        """Maximiser in low..high of the sum of the gains of the positives ``first`` to ``end`` − 1, whose scores sum
        to ``of_positives``."""
        discount = self._discount
        while low < high:
            n = (low + high) // 2
            if self._weight is None:
                lost = -float(self._weights[first:end] @ np.diff(discount[first + n : end + n + 1]))
            else:
                lost = self._weight * float(discount[first + n] - discount[end + n])
            rises = lost > self._unit * (of_positives - (end - first) * float(self._negatives[n]))
            low, high = (n + 1, high) if rises else (low, n)
        return low

    def _sum(self, first: int, end: int, n: int) -> float:
        """Sum of the gains of positives ``first`` to ``end`` − 1, with n negatives above each; u must be equal."""
        assert self._weight is not None
        discounts, positives, negatives = self._sums
        lost = self._weight * (discounts[end + n] - discounts[first + n])
        margins = n * (positives[end] - positives[first]) - (end - first) * negatives[n]
        return -float(lost + self._unit * margins)


def hinge_of_labellings(definition: LabellingDefinition, positives: Array, negatives: Array) -> Hinge:
    """Hinge of a loss over labellings (see the module). The true labelling, of value 0, is always a candidate."""
    P, N = positives.size, negatives.size
    order, order_neg = np.argsort(-positives), np.argsort(-negatives)
    right = np.concatenate([[0.0], np.cumsum(positives[order])])
    wrong = np.concatenate([[0.0], np.cumsum(negatives[order_neg])])
    share = 1.0 / (P + N)
    a, b = _counts(definition, P, share, wrong)
    value, true, false = 0.0, P, 0
    if a.size:
        values = definition.loss(a, b, P) + share * (wrong[b] - (right[-1] - right[a]))
        at = int(np.argmax(values))
        if values[at] > value:
            value, true, false = float(values[at]), int(a[at]), int(b[at])
    down, up = np.zeros(P), np.zeros(N)
    down[order[true:]] = -share
    up[order_neg[:false]] = share
    loss = value - (float(down @ positives) + float(up @ negatives))
    return Hinge(value, loss, down, up)


def _counts(definition: LabellingDefinition, P: int, share: float, wrong: Array) -> tuple[Integers, Integers]:
    """Candidate numbers a and b of true and false positives; the best pair is among them. With ``labelled`` all pairs,
    else the best b of each a by bisection: Δ and ``wrong``, the sums of the b highest negatives, are concave in b."""
    N = wrong.size - 1
    if definition.labelled is not None:
        labelled = min(definition.labelled(P), P + N)
        a = np.arange(max(0, labelled - N), min(P, labelled) + 1)
        return a, labelled - a
    a = np.arange(P + 1)
    low, high = np.zeros(P + 1, dtype=np.int64), np.full(P + 1, N)
    while (low < high).any():
        b = np.minimum((low + high) // 2, N - 1)
        gained = definition.loss(a, b + 1, P) - definition.loss(a, b, P)
        rises = (low < high) & (gained + share * (wrong[b + 1] - wrong[b]) > 0.0)
        low, high = np.where(rises, b + 1, low), np.where(rises, high, np.minimum(high, b))
    return a, low


def ranking_by_score(positives: Array, negatives: Array) -> Hinge:
    """max_R w·Ψ(R) − w·Ψ(R*) = (2/PN) Σ (s⁻_j − s⁺_k) over the pairs in the wrong order, as a hinge of Δ = 0."""
    unit = 2.0 / (positives.size * negatives.size)
    below = np.searchsorted(np.sort(positives), negatives, side="left")
    above = negatives.size - np.searchsorted(np.sort(negatives), positives, side="right")
    down, up = np.multiply(-unit, above), np.multiply(unit, below)
    return Hinge(float(down @ positives) + float(up @ negatives), 0.0, down, up)


def levels(grades: Array, definition: RankingDefinition) -> list[tuple[float, float]]:
    """Thresholds of the binary tasks whose weighted sum is the loss of one query's grades (n,), and their weights:
    (G(l) − G(l − 1)) Z_l / Z at each grade l above 0 that some row falls short of."""
    distinct, counts = np.unique(np.maximum(grades, 0.0), return_counts=True)
    gains = np.exp2(distinct) - 1.0 if definition.gain == "exponential" else distinct
    n_pos = np.cumsum(counts[::-1])[::-1]
    shares = np.diff(gains, prepend=0.0) * [definition.ideal(n) for n in n_pos.tolist()]
    total = shares.sum()
    some = (shares > 0.0) & (n_pos < grades.size)
    return list(zip(distinct[some].tolist(), (shares[some] / total).tolist(), strict=True))
