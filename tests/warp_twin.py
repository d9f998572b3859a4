"""The WARP loops in plain Python, with the same generator: the native loops must follow them step by step."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

MASK = 2**64 - 1


class Random:
    """xoshiro256++ from splitmix64, after their authors' public-domain code."""

    def __init__(self, seed: int) -> None:
        self.state = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & MASK
            z = seed
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            self.state.append(z ^ (z >> 31))

    def next(self) -> int:
        def rotated(x: int, k: int) -> int:
            return ((x << k) | (x >> (64 - k))) & MASK

        s = self.state
        result = (rotated((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotated(s[3], 45)
        return result

    def below(self, n: int) -> int:
        return (self.next() * n) >> 64


def weight_after(loss_of_rank: NDArray[np.float64], estimator: str, n: int, trials: Any) -> Any:
    """The weight L̂ of a step after these numbers of trials among n negatives, not scaled."""
    t = np.asarray(trials)
    if estimator == "plugin":
        return loss_of_rank[np.maximum(n // t, 1)]
    before = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, t.max() + 1))])[t - 1]
    return np.log(n) + np.euler_gamma - before + t / (2 * n) - t * (t + 1) / (24 * n * n)


@dataclass
class Search:
    """RankLoss: an estimator of the weight and the trials it takes."""

    loss_of_rank: NDArray[np.float64]
    estimator: str
    scale: float
    max_trials: int
    random: Random
    trials: int = 0
    updates: int = 0
    loss: float = 0.0

    def find(self, n: int, positive: float, score_of: Callable[[int], float]) -> tuple[int, float] | None:
        """(the violator, the step's weight)"""
        found = self._all(n, positive, score_of) if self.estimator == "exact" else self._try(n, positive, score_of)
        if found is None:
            return None
        which, weight = found
        self.updates += 1
        self.loss += weight * (1.0 - positive + score_of(which))
        return found

    def _try(self, n: int, positive: float, score_of: Callable[[int], float]) -> tuple[int, float] | None:
        for t in range(1, (self.max_trials or min(n, 1000)) + 1):
            self.trials += 1
            which = self.random.below(n)
            if 1.0 - positive + score_of(which) > 0.0:
                return which, self.scale * weight_after(self.loss_of_rank, self.estimator, n, t)
        return None

    def _all(self, n: int, positive: float, score_of: Callable[[int], float]) -> tuple[int, float] | None:
        self.trials += n
        violators, kept = 0, -1
        for which in range(n):
            if 1.0 - positive + score_of(which) > 0.0:
                violators += 1
                if self.random.below(violators) == 0:
                    kept = which
        return (kept, self.scale * self.loss_of_rank[violators]) if violators else None


class Descent:
    """Parameters under a rule, in the numbers of ``parameters``' dtype."""

    def __init__(self, parameters: NDArray, rule: str, rate: float, l2: float, instalment: int) -> None:
        self.value, self.rule, self.eta, self.l2, self.instalment = parameters, rule, rate, l2, instalment
        self.squares = np.full_like(parameters, rule == "adagrad")
        self.steps = np.zeros_like(parameters)
        self.unpaid = 0

    def rates(self) -> NDArray:
        if self.rule == "sgd":
            return np.full(self.value.size, self.eta)
        if self.rule == "adagrad":
            return self.eta / np.sqrt(self.squares.astype(float))
        return self.eta * np.sqrt((self.steps + 1e-6) / (self.squares + 1e-6))

    def move(self, i: int, gradient: float) -> None:
        if self.rule == "adagrad":
            self.squares[i] = square = float(self.squares[i]) + gradient**2
            step = self.eta * gradient / math.sqrt(square)
        elif self.rule == "adadelta":
            mean = 0.95 * float(self.squares[i]) + 0.05 * gradient**2
            bare = math.sqrt((float(self.steps[i]) + 1e-6) / (mean + 1e-6)) * gradient
            self.squares[i], self.steps[i] = mean, 0.95 * float(self.steps[i]) + 0.05 * bare**2
            step = self.eta * bare
        else:
            step = self.eta * gradient
        self.value[i] = float(self.value[i]) - step

    def drawn(self, draws: int, *, settle: bool = False) -> None:
        self.unpaid += draws
        if self.l2 > 0 and self.unpaid and (settle or self.unpaid >= self.instalment):
            self.value[:] = self.value / (1 + self.rates() * self.l2 * self.unpaid)
            self.unpaid = 0


def run_rows(X: NDArray, positives, negatives_of, order, search: Search, descent: Descent) -> None:
    """``negatives_of[p]`` : the rows that are the negatives of row ``positives[p]``, as listed for the native loop."""
    w = descent.value
    for p in order:
        row, negatives = positives[p], negatives_of[p]
        found = search.find(len(negatives), float(X[row] @ w), lambda j, rows=negatives: float(X[rows[j]] @ w))
        if found is not None:
            difference = X[negatives[found[0]]] - X[row]
            for column in np.flatnonzero(difference):
                descent.move(column, found[1] * difference[column])
        descent.drawn(1)
    descent.drawn(0, settle=True)


def run_items(lists, items: int, K: int, order, search: Search, descent: Descent) -> None:
    """``lists[u]`` : ascending items; the parameters are U, V and b, flat."""
    value = descent.value
    U, V = value[: 2 * items * K].reshape(2, items, K)
    b = value[2 * items * K :]
    for user in order:
        liked = lists[user]
        n = len(liked)
        U, V, b = (
            value[: items * K].reshape(items, K),
            value[items * K : 2 * items * K].reshape(items, K),
            value[-items:],
        )
        gaps = [item - m for m, item in enumerate(liked)]
        assert all(a <= b for a, b in pairwise(gaps))
        others = [item for item in range(items) if item not in set(liked)]
        assert all(r + bisect_right(gaps, r) == other for r, other in enumerate(others))
        start = U[liked].copy()
        gradients = np.zeros((n, K))
        before = search.updates
        for m, item in enumerate(liked):
            h = (start.sum(axis=0) - start[m]) / (n - 1)
            scores = b + V @ h
            found = search.find(len(others), float(scores[item]), lambda r, s=scores[others]: float(s[r]))
            if found is None:
                continue
            other, weight = others[found[0]], found[1]
            mine = weight * (V[other] - V[item]) / (n - 1)
            gradients += mine
            gradients[m] -= mine
            for k in range(K):
                descent.move(items * K + item * K + k, -weight * h[k])
                descent.move(items * K + other * K + k, weight * h[k])
            descent.move(2 * items * K + item, -weight)
            descent.move(2 * items * K + other, weight)
        if search.updates > before:
            for m, item in enumerate(liked):
                for k in range(K):
                    descent.move(item * K + k, gradients[m, k])
        descent.drawn(n)
    descent.drawn(0, settle=True)
