"""Uncertainty of a figure, and significance of a difference between two systems: the bootstrap, and paired
randomisation tests.

**Several queries**, a value v_q each. *Bootstrap*: the mean of u queries drawn with replacement, many
times; the interval lies between the percentiles (1 ± confidence)/2 (Efron, Tibshirani, "An introduction to the
bootstrap", 1993, ch. 13). *Randomisation test* of a against b: if the systems do not differ, the sign of each
d_q = b_q − a_q is random; p is the share of sign patterns whose |mean| reaches that of d (Fisher 1935; Smucker,
Allan, Carterette, CIKM 2007). If 2^u is at most the requested number, all patterns are tried and p is exact. Otherwise
patterns are random, and p = (1 + #)/(1 + tried), never 0. With fewer than six differing queries p cannot be below
.05; it is None.

**One ranking** has a single value, so its rows are drawn: *bootstrap* within the positives and within the negatives,
so that every draw has both classes; the copies of a row keep its score. *Randomisation*: each row swaps its ranks
under the two systems or keeps them, at random (Bandos, Rockette, Gur, Statistics in Medicine 24, 2005, for the ROC
area); ranks, because scores of different systems have no common scale. For metrics with a threshold, the sides of the
threshold are swapped. With one or two rows of one class every swap differs as much as the systems do, and p is None.

**Several classes** rank the same rows, so they are not independent: a row is swapped in all of them at once, and the
statistic is the mean over the classes.

Cost: O(draws · u); for one ranking the draws are evaluated as if they were queries, O(draws · n) and, for the
randomisation, O(draws · n log n).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.base import Metric
from apsvm.metrics.checked import sorted_rows
from apsvm.metrics.errors import MetricError
from apsvm.metrics.evaluate import Evaluation
from apsvm.metrics.ranking_table import Judgements, RankingTable

_AT_ONCE = 1 << 21  # numbers held for draws at a time
_ROUNDING = 1e-12  # differences of metrics up to this count as zero
_FEWEST_QUERIES = 6  # differing queries with which p can be below .05: 2/2⁶ < .05 < 2/2⁵
_FEWEST_ROWS = 3  # rows of each class: of 300 null rankings p < .05 in none with two, in 3.3 % with three

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """b against a under one metric.

    effect : b's value minus a's
    low, high : bootstrap interval of the effect; None if not requested
    p : two-sided p of the paired randomisation test; None if it cannot be below .05
    better, worse : number of queries in which b is better, worse; None for one ranking
    queries : number of queries with a value for both; None for one ranking
    of_a, of_b : means of a and b over these queries; None for one ranking
    """

    effect: float
    low: float | None
    high: float | None
    p: float | None
    better: int | None
    worse: int | None
    queries: int | None = None
    of_a: float | None = None
    of_b: float | None = None


@dataclass(frozen=True, eq=False)
class System:
    """A compared system: its scores (n,) and their evaluation."""

    scores: Floats
    rows: Judgements
    evaluation: Evaluation

    @property
    def is_one_ranking(self) -> bool:
        return self.evaluation.groups is None


def intervals(
    metrics: dict[str, Metric], system: System, confidence: float, n_draws: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Bootstrap interval (low, high) of each metric; the other metrics do not change it."""
    if system.is_one_ranking:
        draws = bootstrap_rows(metrics, [system], n_draws, np.random.default_rng(seed))
        return {name: interval(result[:, 0], confidence) for name, result in draws.items()}
    result = {}
    for name in metrics:
        values = system.evaluation.in_group[name]
        used = values[~np.isnan(values)]
        result[name] = interval(bootstrap_means(used, n_draws, np.random.default_rng(seed)), confidence)
    return result


def differences(
    metrics: dict[str, Metric],
    a: System,
    b: System,
    *,
    n_swaps: int,
    seed: int,
    confidence: float | None = None,
    n_draws: int = 1000,
) -> dict[str, Difference]:
    """Difference of b against a by metric, over their common queries, or on one ranking of the same rows.

    Raises `MetricError` if they have no query in common.
    """
    if a.is_one_ranking:
        rng = np.random.default_rng(seed)
        draws = {} if confidence is None else bootstrap_rows(metrics, [a, b], n_draws, rng)
        swapped = swapped_rows(metrics, a, b, n_swaps, seed)
        result = {}
        for name in metrics:
            effect = b.evaluation.values[name] - a.evaluation.values[name]
            low, high = None, None
            if confidence is not None:
                low, high = interval(draws[name][:, 1] - draws[name][:, 0], confidence)
            result[name] = Difference(effect, low, high, _p_of_swaps(swapped, name), None, None)
        return result
    of_classes = a.scores.ndim == 2
    swapped = swapped_classes(metrics, a, b, n_swaps, seed) if of_classes else None
    result = {}
    for name in metrics:
        of_a, of_b = _paired(a.evaluation, b.evaluation, name)
        d = of_b - of_a
        low, high = None, None
        if confidence is not None:
            low, high = interval(bootstrap_means(d, n_draws, np.random.default_rng(seed)), confidence)
        p = _p_of_swaps(swapped, name)
        if not of_classes and np.count_nonzero(d) >= _FEWEST_QUERIES:
            p = randomisation_test(d, n_swaps, np.random.default_rng(seed))
        better, worse = int(np.count_nonzero(d > _ROUNDING)), int(np.count_nonzero(d < -_ROUNDING))
        means_there = float(of_a.mean()), float(of_b.mean())
        result[name] = Difference(float(d.mean()), low, high, p, better, worse, d.size, *means_there)
    return result


def _paired(a: Evaluation, b: Evaluation, name: str) -> tuple[Floats, Floats]:
    """(u,) and (u,): values of a and b in the queries where both have one."""
    assert a.groups is not None
    assert b.groups is not None
    _, in_a, in_b = np.intersect1d(a.groups, b.groups, assume_unique=True, return_indices=True)
    of_a, of_b = a.in_group[name][in_a], b.in_group[name][in_b]
    both = ~np.isnan(of_a + of_b)
    if not both.any():
        raise MetricError(f"nothing to compare: the two systems have no query in common in which {name} has a value")
    return of_a[both], of_b[both]


def interval(draws: Floats, confidence: float) -> tuple[float, float]:
    """Interval (low, high) that holds the central `confidence` of the draws (n,)."""
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def bootstrap_means(values: Floats, n_draws: int, rng: np.random.Generator) -> Floats:
    """(n_draws,): means over queries drawn with replacement, of values (u,) without NaN."""
    means = np.empty(n_draws)
    for first, last in batches(n_draws, values.size):
        means[first:last] = values[rng.integers(0, values.size, (last - first, values.size))].mean(axis=1)
    return means


def randomisation_test(differences: Floats, n_draws: int, rng: np.random.Generator) -> float:
    """p of the paired randomisation test. differences : (u,) float64, without NaN"""
    moving = differences[differences != 0]
    if moving.size == 0:
        return 1.0
    # sums that differ only by rounding are equal
    at_least = abs(moving.sum()) - _ROUNDING * np.abs(moving).sum()
    exact = moving.size < 63 and 1 << moving.size <= n_draws
    n_tried = 1 << moving.size if exact else n_draws
    count = 0
    for first, last in batches(n_tried, moving.size):
        if exact:
            heads = np.arange(first, last)[:, np.newaxis] >> np.arange(moving.size) & 1
        else:
            heads = rng.integers(0, 2, (last - first, moving.size), dtype=np.int8)
        count += int(np.count_nonzero(np.abs((2.0 * heads - 1.0) @ moving) >= at_least))
    return count / n_tried if exact else (1 + count) / (1 + n_tried)


def bootstrap_rows(
    metrics: dict[str, Metric], systems: Sequence[System], n_draws: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Values (n_draws, S), by metric, of S systems that rank the same rows once; all get the same draws."""
    first_rows, ties = systems[0].rows, systems[0].evaluation.ties
    n, relevant = first_rows.grades.size, first_rows.relevant
    worst_first = first_rows.grades if ties == "pessimistic" else None
    orders = [sorted_rows(system.scores, worst_first) for system in systems]
    classes = [part for part in (np.flatnonzero(relevant), np.flatnonzero(~relevant)) if part.size]
    result = {name: np.empty((n_draws, len(systems))) for name in metrics}
    for first, last in batches(n_draws, n):
        n_batch = last - first
        times = np.empty((n_batch, n), dtype=np.int64)
        for part in classes:
            drawn = rng.integers(0, part.size, (n_batch, part.size))
            drawn += part.size * np.arange(n_batch)[:, np.newaxis]
            times[:, part] = np.bincount(drawn.ravel(), minlength=n_batch * part.size).reshape(n_batch, part.size)
        for at, (system, order) in enumerate(zip(systems, orders, strict=True)):
            taken = np.repeat(np.tile(order, n_batch), times[:, order].ravel())
            rows = dataclasses.replace(system.rows, grades=system.rows.grades[taken])
            table = _many(system.scores[taken], rows, n_batch, ties, in_order=True)
            for name, metric in metrics.items():
                result[name][first:last, at] = metric.each(table)
    return result


#: Metric → observed difference, and (n_swaps,) differences with swapped rows; None with too few rows.
Swapped: TypeAlias = "dict[str, tuple[float, Floats]] | None"


def _p_of_swaps(swapped: Swapped, name: str) -> float | None:
    if swapped is None:
        return None
    observed, of_swaps = swapped[name]
    count = int(np.count_nonzero(np.abs(of_swaps) >= abs(observed) - _ROUNDING))
    return (1 + count) / (1 + of_swaps.size)


def swapped_classes(metrics: dict[str, Metric], a: System, b: System, n_swaps: int, seed: int) -> Swapped:
    """Mean of ``swapped_rows`` over the common classes with enough rows; a row is swapped in all classes at once. None
    without such a class, or if rows have queries."""
    if a.rows.codes is not None or b.rows.codes is not None:
        return None
    assert a.evaluation.groups is not None
    assert b.evaluation.groups is not None
    _, in_a, in_b = np.intersect1d(a.evaluation.groups, b.evaluation.groups, assume_unique=True, return_indices=True)
    parts = []
    for at_a, at_b in zip(in_a.tolist(), in_b.tolist(), strict=True):
        of_a, of_b = (
            dataclasses.replace(
                system,
                scores=system.scores[:, at],
                rows=dataclasses.replace(system.rows, grades=system.rows.grades[:, at]),
            )
            for system, at in ((a, at_a), (b, at_b))
        )
        parts.append(swapped_rows(metrics, of_a, of_b, n_swaps, seed))
    used = [part for part in parts if part is not None]
    if not used:
        return None
    return {
        name: (
            float(np.mean([part[name][0] for part in used])),
            np.asarray(np.mean([part[name][1] for part in used], axis=0)),
        )
        for name in metrics
    }


def swapped_rows(metrics: dict[str, Metric], a: System, b: System, n_swaps: int, seed: int) -> Swapped:
    """Metric of b minus metric of a on one ranking, and the same after random swaps of ranks; None with too few
    rows."""
    from scipy.stats import rankdata

    rows, ties, rng = a.rows, a.evaluation.ties, np.random.default_rng(seed)
    n = rows.grades.size
    relevant = int(rows.relevant.sum())
    if min(relevant, n - relevant) < _FEWEST_ROWS:
        return None
    faces = {
        False: (rankdata(a.scores), rankdata(b.scores)),
        True: tuple((system.scores > system.rows.threshold).astype(np.float64) for system in (a, b)),
    }
    zero = dataclasses.replace(rows, threshold=0.0)
    by_kind = {kind: {k: m for k, m in metrics.items() if m.thresholded == kind} for kind in faces}
    observed: dict[str, float] = {}
    of_swaps = {name: np.empty(n_swaps) for name in metrics}
    for kind, (of_a, of_b) in faces.items():
        before, after = zero.table(of_a, ties), zero.table(of_b, ties)
        observed |= {name: metric.of(after) - metric.of(before) for name, metric in by_kind[kind].items()}
    for first, last in batches(n_swaps, n):
        heads = rng.integers(0, 2, (last - first, n), dtype=np.int8).astype(np.bool_)
        for kind, (of_a, of_b) in faces.items():
            if not by_kind[kind]:
                continue
            copies = dataclasses.replace(zero, grades=np.concatenate([rows.grades] * (last - first)))
            before, after = (
                _many(np.where(coin, of_b, of_a).ravel(), copies, last - first, ties) for coin in (heads, ~heads)
            )
            for name, metric in by_kind[kind].items():
                of_swaps[name][first:last] = metric.each(after) - metric.each(before)
    return {name: (observed[name], of_swaps[name]) for name in metrics}


def _many(scores: Floats, rows: Judgements, n_rankings: int, ties: str, *, in_order: bool = False) -> RankingTable:
    """Table of concatenated rankings of equal length."""
    codes = np.repeat(np.arange(n_rankings), scores.size // n_rankings)
    return dataclasses.replace(rows, codes=codes).table(scores, ties, in_order=in_order)


def batches(n_draws: int, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of draws, each of `size` numbers, that fit in memory."""
    step = max(1, _AT_ONCE // size)
    for first in range(0, n_draws, step):
        yield first, min(n_draws, first + step)
