"""Several metrics of one set of scores, in one sort.

Ungrouped: each metric of all rows. With groups g = 1..G: the mean of the groups' values,

    value = 1/|S| Σ_{g ∈ S} metric(rows of g),

where S are the groups whose order can matter to the metric: those with a positive and a negative or, for metrics that
read grades (nDCG, WMW), with rows of different grades. Other groups are counted in the result. With ``all_groups`` the
mean is over every group, as in trec_eval, and a group for which the metric is undefined counts 0.

Cost: O(n log n) for the sort, then O(n) a metric, without a loop over groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apsvm._support.types import JsonDict
from apsvm.metrics import parse_metric
from apsvm.metrics.base import Metric
from apsvm.metrics.checked import check_rows, check_ties
from apsvm.metrics.errors import MetricError
from apsvm.metrics.ranking_table import Judgements, RankingTable

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


@dataclass(frozen=True)
class Evaluation:
    """Result of `evaluate`.

    values : canonical name → value, in the requested order
    n_rows, n_positives : numbers of all rows and positives, including those of skipped groups
    n_groups : number of all groups, including skipped ones; 0 when ungrouped
    groups_skipped : number of groups without both a positive and a negative; 0 with ``all_groups``
    tied_blocks : number of blocks of equal score (inside one group) with rows of different grades: the tie rule matters
    tied_rows : number of rows in those blocks
    ties : the tie rule
    groups : (G,) the groups' ids, rising; None when ungrouped
    in_group : canonical name → (G,) float64, the groups' values, NaN for groups left out of the mean
    """

    values: dict[str, float]
    n_rows: int
    n_positives: int
    n_groups: int
    groups_skipped: int
    tied_blocks: int
    tied_rows: int
    ties: str
    groups: AnyArray | None = field(default=None, repr=False, compare=False)
    in_group: dict[str, NDArray[np.float64]] = field(default_factory=dict, repr=False, compare=False)


def evaluate(
    metrics: Sequence[str | Metric],
    scores: ArrayLike,
    relevant: ArrayLike,
    groups: ArrayLike | None = None,
    ties: str = "block",
    *,
    relevant_from: float | None = None,
    threshold: float = 0.0,
    leave_out_undefined: bool = False,
) -> Evaluation:
    """Evaluate `metrics` on one ranking, or on one ranking a group.

    metrics : names or metrics; duplicates are computed and reported once
    scores : (n,) real, finite
    relevant : (n,) bool; or, with `relevant_from`, (n,) finite grades, relevant from that grade on
    groups : (n,) integers in any order, or None
    ties : one of `TIE_RULES`
    threshold : scores above it predict "relevant" (F, precision, recall, accuracy)
    leave_out_undefined : True to omit metrics that are undefined for these rows, unless all are

    Raises `MetricError` for a bad name or input, an undefined metric, and if every group would be skipped.
    """
    parsed = parse_metrics(metrics)
    check_ties(ties)
    values, grades = check_rows(scores, relevant, relevant_from)
    table = Judgements.of(groups, grades, relevant_from, threshold).table(values, ties)
    return summarise(parsed, table, leave_out_undefined=leave_out_undefined)


def summarise(
    metrics: dict[str, Metric], table: RankingTable, *, all_groups: bool = False, leave_out_undefined: bool = False
) -> Evaluation:
    """Evaluates sorted rankings; raises `MetricError` as `evaluate`. ``all_groups``: see the module."""
    groups = table.groups
    counts: JsonDict = {
        "n_rows": int(table.row_bounds[-1]),
        "n_positives": int(table.n_positives.sum()),
        "tied_blocks": int(table.tied_blocks.sum()),
        "tied_rows": int(table.tied_rows.sum()),
        "ties": table.ties,
    }
    values: dict[str, float] = {}
    in_group: dict[str, NDArray[np.float64]] = {}
    failures: list[MetricError] = []
    for name, metric in metrics.items():
        try:
            if groups is None:
                values[name] = metric.of(table)
            else:
                in_group[name] = _in_groups(metric, table, all_groups=all_groups)
                values[name] = mean(in_group[name])
        except MetricError as error:
            failures.append(error)
            if not leave_out_undefined:
                raise
    if failures and not values:
        raise failures[0]
    if groups is None:
        return Evaluation(values, n_groups=0, groups_skipped=0, **counts)
    both = (table.n_positives > 0) & (table.n_negatives > 0)
    return Evaluation(
        values,
        n_groups=groups.size,
        groups_skipped=0 if all_groups else int(np.count_nonzero(~both)),
        groups=groups,
        in_group=in_group,
        **counts,
    )


def _in_groups(metric: Metric, table: RankingTable, *, all_groups: bool) -> NDArray[np.float64]:
    """(G,) float64, the metric of each ranking, NaN if left out of the mean. Raises MetricError if all are."""
    values = metric.each(table)
    if all_groups:
        return np.nan_to_num(values)
    result = np.where(metric.telling(table), values, np.nan)
    if np.isnan(result).all():
        needed = "rows that differ in grade" if metric.graded else "both a positive and a negative"
        raise MetricError(
            f"nothing to evaluate: none of the {table.n_rankings} groups holds {needed}, which {metric.name} needs "
            f"({int(table.row_bounds[-1])} rows, {int(table.n_positives.sum())} of them positive)"
        )
    return result


def mean(values: NDArray[np.float64]) -> float:
    """Mean of the values that are not NaN, from a correctly rounded sum; NaN without any."""
    used = values[~np.isnan(values)]
    return math.fsum(used) / used.size if used.size else math.nan


def parse_metrics(metrics: Sequence[str | Metric]) -> dict[str, Metric]:
    """Canonical name → metric, each once. Raises `MetricError`."""
    if isinstance(metrics, str):
        raise MetricError(f"metrics must be a sequence of names, found the single string {metrics!r}")
    return {metric.name: metric for metric in (m if isinstance(m, Metric) else parse_metric(m) for m in metrics)}
