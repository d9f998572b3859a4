"""The losses and their structured hinges, from the definitions, in NumPy alone. Nothing of apsvm is imported here.

A loss over rankings is Δ = Σ_k u_k [D(k) − D(k + n_k)], n_k negatives above the k-th positive, n_1 ≤ … ≤ n_P, so that

    h(s) = max_{n_1 ≤ … ≤ n_P} Σ_k gain_k(n_k),
    gain_k(n) = u_k [D(k) − D(k + n)] − (2/PN) Σ_{j ≤ n} (s⁺_k − s⁻_j)

whatever D is. A dynamic programme over k has the maximum, M_k(n) = max_{m ≤ n} M_{k−1}(m) + gain_k(n), in O(P·n̄), where
no gain rises beyond n̄ ≤ N: then min(n_k, n̄) is as good as n_k, and no more need be tried.

A loss over labellings has Δ of a, the true positives, and b, the false ones, and

    h(s) = max_{a, b} Δ(a, b) + (1/n) Σ_{b highest negatives} s⁻ − (1/n) Σ_{P − a lowest positives} s⁺
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Values of a table that is filled at once.
BLOCK = 1 << 22


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
    weights : of P and N, u (P,)
    discount : of P + N and N, D at the positions 1..P + N
    convex_from : from this number of negatives above a positive on, further ones cost less and less
    gain : of grades, "exponential" or "linear"; None where grades mean nothing to it
    """

    weights: Callable[[int, int], Array]
    discount: Callable[[int, int], Array]
    convex_from: int = 0
    gain: str | None = None

    @property
    def by_query(self) -> bool:
        """Whether queries are tasks of their own."""
        return True

    @property
    def level_free(self) -> bool:
        """Whether a number added to all scores changes nothing."""
        return True

    def hinge(self, positives: Array, negatives: Array, costs: tuple[Array, Array] | None) -> Hinge:
        """Of one task, scores (P,) and (N,)."""
        P, N = positives.size, negatives.size
        return hinge_of_rankings(
            self.weights(P, N), self.discount(P + N, N), positives, negatives, convex_from=self.convex_from
        )

    def ideal(self, n_pos: int) -> float:
        """The DCG of so many positives at the top."""
        return float(self.discount(n_pos, 1).sum())


@dataclass(frozen=True)
class LabellingDefinition:
    """Δ of a loss over labellings.

    Attributes
    ----------
    loss : Δ of arrays a and b of true and false positives, and P
    labelled : how many rows are labelled positive, of P, if there are so many; None: any number
    level_free : as of ``RankingDefinition``: as many are labelled positive as are
    """

    loss: Callable[[Array, Array, int], Array]
    labelled: Callable[[int], int] | None = None
    level_free: bool = False

    @property
    def by_query(self) -> bool:
        return True

    def hinge(self, positives: Array, negatives: Array, costs: tuple[Array, Array] | None) -> Hinge:
        """Of one task, scores (P,) and (N,)."""
        return hinge_of_labellings(self, positives, negatives)


@dataclass(frozen=True)
class ZeroOneDefinition:
    """(1/n) Σ_i cost_i max(0, 1 − y_i s_i), of all rows as one task."""

    @property
    def by_query(self) -> bool:
        return False

    @property
    def level_free(self) -> bool:
        return False

    def hinge(self, positives: Array, negatives: Array, costs: tuple[Array, Array] | None) -> Hinge:
        """Of scores (P,) and (N,), and their costs."""
        share = 1.0 / (positives.size + negatives.size)
        down = np.where(positives < 1.0, -share, 0.0)
        up = np.where(negatives > -1.0, share, 0.0)
        if costs is not None:
            down, up = down * costs[0], up * costs[1]
        loss = float(up.sum() - down.sum())
        return Hinge(loss + float(down @ positives) + float(up @ negatives), loss, down, up)


Definition = RankingDefinition | LabellingDefinition | ZeroOneDefinition


def definition_of(name: str) -> Definition:
    """The loss of this name, as ``--loss`` has it. Raises UnknownLossError."""
    at_k = re.fullmatch(r"(p|ndcg|set-p|set-r)@(\d+)", name)
    with_number = re.fullmatch(r"(rbp|f)\((.+)\)", name)
    if name == "ap":
        return RankingDefinition(lambda P, N: np.arange(1, P + 1) / P, lambda n, N: 1.0 / np.arange(1, n + 1))
    if name in ("ndcg", "ndcg(exponential)", "ndcg(linear)"):
        return _ndcg(lambda n, N: _logarithmic(n), gain="linear" if name == "ndcg(linear)" else "exponential")
    if name == "ndcg-chakrabarti":
        return _ndcg(lambda n, N: np.append(1.0, _logarithmic(n - 1)), convex_from=1)
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
    if at_k is not None:
        return _at_k(at_k[1], int(at_k[2]))
    if with_number is not None:
        number = _number(with_number[2], name)
        return _f_measure(number) if with_number[1] == "f" else _rank_biased(number)
    raise UnknownLossError(f"the loss {name!r} is not defined in apsvm.verification")


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UnknownLossError(f"the loss {name!r} is not defined in apsvm.verification") from None


def _logarithmic(n: int) -> Array:
    """1/log2(1 + p) for p = 1..n."""
    return 1.0 / np.log2(np.arange(2, n + 2))


def _ndcg(discount: Callable[[int, int], Array], convex_from: int = 0, gain: str = "exponential") -> RankingDefinition:
    return RankingDefinition(lambda P, N: np.full(P, 1.0 / float(discount(P, N).sum())), discount, convex_from, gain)


def _rank_biased(rho: float) -> RankingDefinition:
    return RankingDefinition(lambda P, N: np.full(P, 1.0 - rho), lambda n, N: np.power(rho, np.arange(n)))


def _at_k(form: str, k: int) -> Definition:
    if form == "p":
        return RankingDefinition(
            lambda P, N: np.full(P, 1.0 / k), lambda n, N: (np.arange(n) < k).astype(np.float64), convex_from=k
        )
    if form == "ndcg":
        return _ndcg(lambda n, N: _logarithmic(n) * (np.arange(n) < k), convex_from=k)
    if form == "set-p":
        return LabellingDefinition(lambda a, b, P: (min(P, k) - a) / k, lambda P: k)
    return LabellingDefinition(lambda a, b, P: (min(P, k) - a) / P, lambda P: k)


def _f_measure(beta: float) -> LabellingDefinition:
    square = beta**2
    return LabellingDefinition(lambda a, b, P: 1.0 - (1.0 + square) * a / (a + b + square * P))


def hinge_of_rankings(
    weights: Array, discount: Array, positives: Array, negatives: Array, *, convex_from: int = 0
) -> Hinge:
    """See the module, for u (P,), D (P + N,) and scores (P,) and (N,)."""
    P, N = positives.size, negatives.size
    order, order_neg = np.argsort(-positives), np.argsort(-negatives)
    ranked = _Ranked(weights, discount, positives[order], negatives[order_neg], convex_from)
    above = ranked.most_violated()
    down, up = np.empty(P), np.empty(N)
    down[order] = -ranked.unit * above
    up[order_neg] = ranked.unit * (P - np.searchsorted(above, np.arange(1, N + 1), side="left"))
    k = np.arange(P)
    loss = float(weights @ (discount[k] - discount[k + above]))
    return Hinge(loss + float(down @ positives) + float(up @ negatives), loss, down, up)


class _Ranked:
    """The dynamic programme of one task, whose scores are in descending order."""

    def __init__(self, weights: Array, discount: Array, positives: Array, negatives: Array, convex_from: int) -> None:
        P, N = positives.size, negatives.size
        self.unit = 2.0 / (P * N)
        self._weights, self._discount, self._positives, self._negatives = weights, discount, positives, negatives
        self._most = self._most_above(convex_from)
        self._count = np.arange(self._most + 1)
        self._sums = np.concatenate([[0.0], np.cumsum(negatives[: self._most])])

    def _most_above(self, convex_from: int) -> int:
        """n̄, beyond which no gain rises: by bisection, for the slope of each gain falls from ``convex_from`` on."""
        P, N = self._positives.size, self._negatives.size
        low, high = np.full(P, min(convex_from, N)), np.full(P, N)
        k = np.arange(P)
        while (low < high).any():
            middle = (low + high) // 2
            at = np.minimum(middle, N - 1)
            drop = self._discount[k + at] - self._discount[k + at + 1]
            rises = (middle < N) & (self._weights * drop > self.unit * (self._positives - self._negatives[at]))
            low, high = np.where(rises & (low < high), middle + 1, low), np.where(rises, high, middle)
        return int(low.max())

    def _gain(self, k: int) -> Array:
        """Of the positive k, from 0, for n = 0..n̄."""
        lost = self._discount[k] - self._discount[k : k + self._most + 1]
        gain: Array = self._weights[k] * lost - self.unit * (self._count * self._positives[k] - self._sums)
        return gain

    def most_violated(self) -> NDArray[np.int64]:
        """n_k, (P,). Of the programme's rows every √P-th is kept, and those between are computed once more."""
        P = self._positives.size
        step = math.isqrt(P)
        row, kept = np.zeros(self._most + 1), []
        for k in range(P):
            if k % step == 0:
                kept.append(row)
            row = np.maximum.accumulate(row) + self._gain(k)
        above = np.empty(P, dtype=np.int64)
        best = int(np.argmax(row))
        for begin in reversed(range(0, P, step)):
            rows = [kept.pop()]
            for k in range(begin, min(begin + step, P) - 1):
                rows.append(np.maximum.accumulate(rows[-1]) + self._gain(k))
            for k in reversed(range(begin, begin + len(rows))):
                above[k] = best
                best = int(np.argmax(rows[k - begin][: best + 1]))
        return above


def hinge_of_labellings(definition: LabellingDefinition, positives: Array, negatives: Array) -> Hinge:
    """See the module; the true labelling, of value 0, is always among those tried."""
    P, N = positives.size, negatives.size
    order, order_neg = np.argsort(-positives), np.argsort(-negatives)
    right = np.concatenate([[0.0], np.cumsum(positives[order])])
    wrong = np.concatenate([[0.0], np.cumsum(negatives[order_neg])])
    share = 1.0 / (P + N)
    value, true, false = 0.0, P, 0
    for a, b in _counts(definition, P, N):
        values = definition.loss(a, b, P) + share * (wrong[b.astype(int)] - (right[-1] - right[a.astype(int)]))
        at = np.unravel_index(int(np.argmax(values)), values.shape)
        if values[at] > value:
            a, b = np.broadcast_arrays(a, b)
            value, true, false = float(values[at]), int(a[at]), int(b[at])
    down, up = np.zeros(P), np.zeros(N)
    down[order[true:]] = -share
    up[order_neg[:false]] = share
    loss = value - (float(down @ positives) + float(up @ negatives))
    return Hinge(value, loss, down, up)


def _counts(definition: LabellingDefinition, P: int, N: int) -> Iterator[tuple[Array, Array]]:
    """Numbers a and b of true and false positives, in arrays that broadcast to one shape, block by block."""
    if definition.labelled is not None:
        labelled = min(definition.labelled(P), P + N)
        a = np.arange(max(0, labelled - N), min(P, labelled) + 1, dtype=np.float64)
        if a.size:
            yield a, labelled - a
        return
    step = max(1, BLOCK // (N + 1))
    for begin in range(0, P + 1, step):
        a = np.arange(begin, min(begin + step, P + 1), dtype=np.float64)
        yield a[:, None], np.arange(N + 1, dtype=np.float64)[None, :]


def ranking_by_score(positives: Array, negatives: Array) -> Hinge:
    """max_R w·Ψ(R) − w·Ψ(R*) = (2/PN) Σ (s⁻_j − s⁺_k) over the pairs in the wrong order, as a hinge of Δ = 0."""
    unit = 2.0 / (positives.size * negatives.size)
    below = np.searchsorted(np.sort(positives), negatives, side="left")
    above = negatives.size - np.searchsorted(np.sort(negatives), positives, side="right")
    down, up = np.multiply(-unit, above), np.multiply(unit, below)
    return Hinge(float(down @ positives) + float(up @ negatives), 0.0, down, up)


def levels(grades: Array, definition: RankingDefinition) -> list[tuple[float, float]]:
    """The thresholds of the binary tasks that one query's grades (n,) are the weighted sum of, and their weights:
    (G(l) − G(l − 1)) Z_l / Z at each grade l above 0 that some row falls short of."""
    found, counts = np.unique(np.maximum(grades, 0.0), return_counts=True)
    gains = np.exp2(found) - 1.0 if definition.gain == "exponential" else found
    n_pos = np.cumsum(counts[::-1])[::-1]
    shares = [
        step * definition.ideal(int(n)) if step > 0.0 else 0.0
        for step, n in zip(np.diff(gains, prepend=0.0), n_pos, strict=True)
    ]
    total = sum(shares)
    return [
        (float(grade), share / total)
        for grade, share, n in zip(found, shares, n_pos, strict=True)
        if share > 0.0 and n < grades.size
    ]
