"""Multi-class and multi-label: one ranking of all rows a class, and the mean over classes (mAP is the mean of AP).

    value = 1/|S| Σ_{c ∈ S} metric(all rows by scores[:, c], relevant where the row has label c)

where S are the classes with a positive and a negative row; the others are counted as skipped. With groups a class has
the mean over its groups, as in `evaluate`, and S are the classes with a group that has both. The PASCAL VOC challenge
(twenty classes) and one-vs-rest training report this mean. Cost: a sort of n rows for each class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from apsvm.metrics.base import Metric
from apsvm.metrics.checked import check_rows, check_ties
from apsvm.metrics.errors import MetricError
from apsvm.metrics.evaluate import Evaluation, mean, parse_metrics, summarise
from apsvm.metrics.ranking_table import Judgements


def evaluate_classes(
    metrics: Sequence[str | Metric],
    scores: ArrayLike,
    labels: ArrayLike,
    classes: ArrayLike,
    ties: str = "block",
    *,
    groups: ArrayLike | None = None,
    thresholds: ArrayLike | None = None,
) -> Evaluation:
    """Evaluate one ranking for each class; the groups of the result are the classes.

    metrics : names or metrics; duplicates are computed and reported once
    scores : (n, C) real, finite; column c ranks the rows for class c
    labels : (n, C) bool, True if the row is in the class; a row may be in several, or in none
    classes : (C,) the labels of the classes
    ties : one of `TIE_RULES`
    groups : (n,) integers in any order, or None
    thresholds : (C,) scores above them predict the class, as in `evaluate`; None: 0

    The result's counts: `n_rows` n; `n_positives` the number of labels; `n_groups` C; `groups_skipped` classes without
    both positive and negative rows (in one group); ties summed over the classes.

    Raises `MetricError` for a bad name or input, an undefined metric, and if every class would be skipped.
    """
    parsed = parse_metrics(metrics)
    check_ties(ties)
    columns, of_rows, names = np.asarray(scores), np.asarray(labels), np.asarray(classes)
    if columns.shape != of_rows.shape or columns.shape[1:] != names.shape or not names.size:
        shapes = f"{columns.shape} and {of_rows.shape}"
        raise MetricError(f"scores and labels must be of shape (n, C), a column for each class, found {shapes}")
    n_rows, n_classes = columns.shape
    rows = Judgements.of(groups, np.zeros(n_rows, dtype=np.bool_))
    lines = np.zeros(n_classes) if thresholds is None else np.asarray(thresholds, dtype=np.float64)
    in_class = {name: np.full(n_classes, np.nan) for name in parsed}
    n_positives = skipped = tied_blocks = tied_rows = 0
    for c in range(n_classes):
        values, relevant = check_rows(columns[:, c], of_rows[:, c])
        table = replace(rows, grades=relevant, threshold=float(lines[c])).table(values, ties)
        n_positives += int(table.n_positives.sum())
        if not ((table.n_positives > 0) & (table.n_negatives > 0)).any():
            skipped += 1
            continue
        result = summarise(parsed, table)
        tied_blocks += result.tied_blocks
        tied_rows += result.tied_rows
        for name, value in result.values.items():
            in_class[name][c] = value
    if skipped == n_classes:
        raise MetricError(
            f"nothing to evaluate: none of the {n_classes} classes has both positive and negative rows ({n_rows} rows)"
        )
    return Evaluation(
        values={name: mean(result) for name, result in in_class.items()},
        n_rows=n_rows,
        n_positives=n_positives,
        n_groups=n_classes,
        groups_skipped=skipped,
        tied_blocks=tied_blocks,
        tied_rows=tied_rows,
        ties=ties,
        groups=names,
        in_group=in_class,
    )
