"""Several metrics of one set of scores, in one sort.

Ungrouped: each metric of all rows. With groups g = 1..G: the mean of the groups' values,

    value = 1/|S| Σ_{g ∈ S} metric(rows of g),        S = groups with a positive and a negative;

the groups left out are counted, never silently dropped. Cost: O(n log n) for the sorts, then O(n) a metric.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apsvm.metrics import parse_metric
from apsvm.metrics.base import Metric, MetricError
from apsvm.metrics.ranking_table import RankingTable, check_rows, check_ties


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found.

    values : canonical name → value, in the order asked for
    n_rows, n_positives : over all rows, those of skipped groups included
    n_groups : all groups, the skipped ones included; 0 when ungrouped
    groups_skipped : groups without both a positive and a negative; the values are means over all the others
    tied_blocks : blocks of equal score (inside one group) that hold both classes: where the tie rule matters
    tied_rows : rows in those blocks
    ties : the tie rule
    """

    values: dict[str, float]
    n_rows: int
    n_positives: int
    n_groups: int
    groups_skipped: int
    tied_blocks: int
    tied_rows: int
    ties: str


def evaluate(
    metrics: Sequence[str | Metric],
    scores: ArrayLike,
    relevant: ArrayLike,
    groups: ArrayLike | None = None,
    ties: str = "block",
) -> Evaluation:
    """Evaluate `metrics` on one ranking, or on one ranking a group.

    metrics : names or metrics; one asked for twice is computed and reported once
    scores : (n,) real, finite; relevant : (n,) bool; groups : (n,) integers in any order, or None
    ties : one of `TIE_RULES`

    Raises `MetricError` where a name, the input or a metric on it is at fault, and when every group would be skipped.
    """
    if isinstance(metrics, str):
        raise MetricError(f"metrics must be a sequence of names, found the single string {metrics!r}")
    parsed = {metric.name: metric for metric in (m if isinstance(m, Metric) else parse_metric(m) for m in metrics)}
    check_ties(ties)
    values, labels = check_rows(scores, relevant)
    if groups is None:
        table = RankingTable.from_checked(values, labels, ties)
        found = {name: metric.of(table) for name, metric in parsed.items()}
        return Evaluation(found, table.n_rows, table.n_positives, 0, 0, table.n_tied_blocks, table.n_tied_rows, ties)

    in_group: dict[str, list[float]] = {name: [] for name in parsed}
    n_groups = n_used = tied_blocks = tied_rows = 0
    for rows in _rows_by_group(_check_groups(groups, values.size)):
        n_groups += 1
        n_positives = np.count_nonzero(labels[rows])
        if n_positives in (0, rows.size):
            continue
        n_used += 1
        table = RankingTable.from_checked(values[rows], labels[rows], ties)
        tied_blocks += table.n_tied_blocks
        tied_rows += table.n_tied_rows
        for name, metric in parsed.items():
            in_group[name].append(metric.of(table))
    if n_used == 0:
        raise MetricError(
            f"nothing to evaluate: none of the {n_groups} groups holds both a positive and a negative "
            f"({values.size} rows, {np.count_nonzero(labels)} of them positive)"
        )
    return Evaluation(
        values={name: math.fsum(found) / n_used for name, found in in_group.items()},
        n_rows=values.size,
        n_positives=int(np.count_nonzero(labels)),
        n_groups=n_groups,
        groups_skipped=n_groups - n_used,
        tied_blocks=tied_blocks,
        tied_rows=tied_rows,
        ties=ties,
    )


def _check_groups(groups: ArrayLike, n_rows: int) -> NDArray[np.integer]:
    ids = np.asarray(groups)
    if ids.shape != (n_rows,):
        raise MetricError(f"groups must be of shape ({n_rows},), one for each row, found {ids.shape}")
    if ids.dtype.kind not in "iu":
        raise MetricError(f"groups must be integers, found dtype {ids.dtype}")
    return ids


def _rows_by_group(ids: NDArray[np.integer]) -> Iterator[NDArray[np.intp]]:
    """The rows of each group, in their own order."""
    order = np.argsort(ids, kind="stable")
    sorted_ids = ids[order]
    return iter(np.split(order, np.flatnonzero(sorted_ids[1:] != sorted_ids[:-1]) + 1))
