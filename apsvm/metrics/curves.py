"""The precision–recall curve whose area is the average precision, of one ranking or the mean of many.

    p(r) = P_i  for R_{i−1} < r ≤ R_i,      ∫₀¹ p(r) dr = Σ_i (R_i − R_{i−1}) P_i = AP

with recall R_i and precision P_i after the i-th run of a `RankingTable`: a step function whose area is AP under the
same tie rule. The mean of several rankings' step functions has the mean of their APs as its area. O(m log m).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.errors import MetricError
from apsvm.metrics.evaluate import parse_metrics, summarise
from apsvm.metrics.ranking_table import Judgements


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """A step function.

    recall : (m,) float64, rising, above 0
    precision : (m,) float64, its value between the previous recall (at first 0) and this one
    """

    recall: NDArray[np.float64]
    precision: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A precision–recall curve.

    ap : its area, as `evaluate` computes AP
    base_rate : share of positives, the precision of a random order; over several rankings the mean
    """

    steps: Steps
    ap: float
    base_rate: float


def judged_curve(
    scores: NDArray[np.float64],
    grades: NDArray[np.bool_] | NDArray[np.float64],
    relevant_from: float | None = None,
    groups: NDArray[np.int64] | None = None,
) -> Judged:
    """Precision–recall curve and AP of checked rows: scores (n,) float64, finite; grades (n,) bool, or float64 with
    ``relevant_from``; groups (n,) int64 or None. Over several groups the mean of the curves of those with a positive
    and a negative row. Rows of equal score are one block. Raises `MetricError` if AP is undefined."""
    table = Judgements.of(groups, grades, relevant_from).table(scores, "block")
    ap = summarise(parse_metrics(["AP"]), table).values["AP"]
    used = (table.n_positives > 0) & (table.n_negatives > 0)
    if not used.any():
        raise MetricError("no precision–recall curve: no ranking has both a positive and a negative row")
    per_run = np.diff(table.run_bounds)
    steps = np.repeat(used, per_run) & (table.gains > 0)
    n_pos = np.repeat(table.n_positives, per_run)[steps]
    ends, gains = table.hits[steps], table.gains[steps]
    curve = _mean((ends - gains) / n_pos, ends / n_pos, table.precision[steps], int(used.sum()))
    return Judged(curve, ap, float((table.n_positives / table.n_rows)[used].mean()))


def mean_curve(curves: Sequence[Steps]) -> Steps:
    """Mean of one or more curves."""
    begins = [np.concatenate([[0.0], curve.recall[:-1]]) for curve in curves]
    return _mean(
        np.concatenate(begins),
        np.concatenate([curve.recall for curve in curves]),
        np.concatenate([curve.precision for curve in curves]),
        len(curves),
    )


def _mean(begins: NDArray[np.float64], ends: NDArray[np.float64], values: NDArray[np.float64], count: int) -> Steps:
    """The sum of steps with these ``values`` between ``begins`` and ``ends``, divided by the number of curves,
    ``count``. Equal fractions are equal numbers, since division rounds correctly."""
    if count == 1:
        return Steps(ends, values)
    recall, place = np.unique(np.concatenate([begins, ends]), return_inverse=True)
    change = np.bincount(place, weights=np.concatenate([values, -values]), minlength=recall.size)
    return Steps(recall[1:], np.cumsum(change)[:-1] / count)
