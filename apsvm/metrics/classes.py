"""Multi-class and multi-label: one ranking of all rows a class, and the mean over classes (mAP is the mean of AP).

    value = 1/|S| Σ_{c ∈ S} metric(all rows by scores[:, c], relevant where the row has label c)

where S are the classes with a positive and a negative row; the others are counted as skipped. With groups a class has
the mean over its groups, as in `evaluate`, and S are the classes with a group that has both. The PASCAL VOC challenge
(twenty classes) and one-vs-rest training report this mean. Cost: a sort of n rows for each class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from apsvm.metrics.base import Metric
from apsvm.metrics.checked import check_rows, check_ties
from apsvm.metrics.errors import MetricError
from apsvm.metrics.evaluate import Evaluation, mean, parse_metrics, summarise
from apsvm.metrics.ranking_table import Judgements

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


def evaluate_classes(
    metrics: Sequence[str | Metric],
    scores: ArrayLike,
    labels: ArrayLike,
    classes: ArrayLike | None = None,
    ties: str = "block",
    *,
    groups: ArrayLike | None = None,
    thresholds: ArrayLike | None = None,
) -> Evaluation:
    """Evaluate one ranking for each class; the groups of the result are the classes.

    metrics : names or metrics; duplicates are computed and reported once
    scores : (n, C) real, finite; column c ranks the rows for class c
    labels : (n, C) bool, True if the row has the label (several or none are possible); or (n,) with one label a row
    classes : (C,) the classes' labels, each once; needed with labels (n,), else 0..C−1 if None
    ties : one of `TIE_RULES`
    groups : (n,) integers in any order, or None
    thresholds : (C,) scores above them predict the class, as in `evaluate`; None: 0

    The result's counts: `n_rows` n; `n_positives` labels of all rows that are among the classes; `n_groups` C;
    `groups_skipped` classes without both positive and negative rows (in one group); ties summed over the classes.

    Raises `MetricError` for a bad name or input, an undefined metric, and if every class would be skipped.
    """
    parsed = parse_metrics(metrics)
    check_ties(ties)
    columns, of_rows, names = _checked(scores, labels, classes)
    n_rows, n_classes = columns.shape
    rows = Judgements.of(groups, np.zeros(n_rows, dtype=np.bool_))
    lines = np.zeros(n_classes) if thresholds is None else np.asarray(thresholds, dtype=np.float64)
    in_class = {name: np.full(n_classes, np.nan) for name in parsed}
    n_positives = skipped = tied_blocks = tied_rows = 0
    for c in range(n_classes):
        values, relevant = check_rows(columns[:, c], of_rows[:, c] if of_rows.ndim == 2 else of_rows == names[c])
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


def _checked(scores: ArrayLike, labels: ArrayLike, classes: ArrayLike | None) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Checked scores (n, C), labels (n,) or (n, C), and classes (C,). Raises `MetricError` if they do not fit."""
    columns, of_rows = np.asarray(scores), np.asarray(labels)
    if columns.ndim != 2 or columns.shape[1] == 0:
        raise MetricError(f"scores must be of shape (n, C), a column a class, found {columns.shape}")
    n_rows, n_classes = columns.shape
    names = np.arange(n_classes) if classes is None else np.asarray(classes)
    if names.shape != (n_classes,) or np.unique(names).size != n_classes:
        raise MetricError(f"classes must be {n_classes} labels, one for each column of scores, each once")
    if of_rows.ndim == 1 and classes is None:
        raise MetricError("labels of shape (n,) need classes, the label that each column of scores stands for")
    if of_rows.shape[:1] != (n_rows,) or of_rows.shape[1:] not in ((), (n_classes,)):
        raise MetricError(
            f"labels must be of shape ({n_rows},) or ({n_rows}, {n_classes}) to go with the scores, "
            f"found {of_rows.shape}"
        )
    return columns, of_rows, names
