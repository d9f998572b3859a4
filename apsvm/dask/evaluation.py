"""Exact ranking metrics of rows that lie in shards.

Of one list of two classes a metric needs, for each distinct score of a positive, how many negatives stand above it and
how many share it: each shard counts its own, O(P) numbers, and the sums make the runs of a ``RankingTable``. Queries
are whole in their shards, and each shard evaluates its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.dask.long_list import negatives_from
from apsvm.dask.recovery import repeated
from apsvm.dask.shards.lists import Survey
from apsvm.dask.shards.risk import NOT_FINITE
from apsvm.metrics.base import Metric
from apsvm.metrics.errors import MetricError
from apsvm.metrics.evaluate import Evaluation, mean, summarise
from apsvm.metrics.ndcg import NDCG, NDCGAtK
from apsvm.metrics.ranking_table import RankingTable
from apsvm.models.decision import line_of

if TYPE_CHECKING:
    from apsvm.dask.data import ShardedData
    from apsvm.dask.vectors import Handle
    from apsvm.data.labels import Target
    from apsvm.models.base import Ranker

#: Rows of one run whose discounts are added at once.
BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class CountedTable(RankingTable):
    """One ranking of two classes of which there are no rows here: runs that hold a positive are blocks of equal scores,
    the others all negatives between two of them. ``positives``: how many there are."""

    positives: int

    @cached_property
    def n_positives(self) -> NDArray[np.int64]:
        return np.array([self.positives])

    @classmethod
    def of(
        cls,
        scores: NDArray[np.float64],
        positives: NDArray[np.int64],
        higher: NDArray[np.int64],
        equal: NDArray[np.int64],
        n_neg: int,
        threshold: float,
    ) -> CountedTable:
        """By distinct scores (k,), ascending, those of all positives and the threshold among them: the positives of
        each, the negatives of at least each and of exactly each; and all negatives."""
        scores, positives, above, equal = scores[::-1], positives[::-1], (higher - equal)[::-1], equal[::-1]
        before = np.diff(above, prepend=0) - np.concatenate([[0], equal[:-1]])
        n, n_pos = n_neg + int(positives.sum()), int(positives.sum())
        sizes = np.column_stack([before, positives + equal]).ravel()
        sizes = np.append(sizes, n - sizes.sum())
        gains = np.append(np.column_stack([np.zeros_like(positives), positives]).ravel(), 0)
        lowest = np.append(np.repeat(scores, 2), -np.inf)
        lowest[:-1:2] = np.nextafter(scores, np.inf)  # of negatives between: somewhere above the positives that follow
        filled = sizes > 0
        mixed = (equal > 0) & (positives > 0)
        return cls(
            row_bounds=np.array([0, n]),
            relevant=np.empty(0, dtype=bool),
            grades=np.empty(0),
            judged=None,
            n_ranked=np.array([n]),
            run_bounds=np.array([0, int(filled.sum())]),
            ends=np.cumsum(sizes[filled]),
            hits=np.cumsum(gains[filled]),
            lowest_scores=lowest[filled],
            tied_blocks=np.array([int(mixed.sum())]),
            tied_rows=np.array([int((positives + equal)[mixed].sum())]),
            threshold=threshold,
            positives=n_pos,
        )


@dataclass(frozen=True)
class _CountedMetric(Metric):
    """nDCG of a ``CountedTable``, of gains 0 and 1: only the discounts of runs with positives are needed."""

    metric: NDCG | NDCGAtK

    @property
    def name(self) -> str:
        return self.metric.name

    def _compute(self, table: RankingTable) -> NDArray[np.float64]:
        depth = self.metric.k if isinstance(self.metric, NDCGAtK) else int(table.row_bounds[-1])
        gained = 0.0
        holds = table.gains > 0
        for begin, size, gain in zip(table.begins[holds], table.sizes[holds], table.gains[holds], strict=True):
            gained += gain / size * _discounts(int(begin), min(int(begin + size), depth))
        ideal = _discounts(0, min(int(table.n_positives[0]), depth))
        return np.minimum(1.0, np.array([gained]) / ideal)


def _discounts(begin: int, end: int) -> float:
    """Σ 1/log2(1 + p) over the positions p = begin + 1 … end."""
    if end - begin == 1:
        return float(1.0 / np.log2(begin + 2.0))
    return float(
        sum((1.0 / np.log2(np.arange(at, min(at + BLOCK, end)) + 2.0)).sum() for at in range(begin, end, BLOCK))
    )


def evaluate_on_shards(
    data: ShardedData,
    model: Ranker,
    target: Target,
    metrics: Mapping[str, Metric],
    *,
    leave_out_undefined: bool = False,
) -> Evaluation:
    """What the scores of ``model`` evaluate to; rows of equal score are one block.

    Parameters
    ----------
    data : rows whose labels are understood and that are as they were read
    target : of the labels, one row each

    Raises
    ------
    MetricError : a metric that is undefined, or not evaluated on a cluster
    """
    if data.has_qid:
        return _by_query(data, model, target, dict(metrics), leave_out=leave_out_undefined)
    if target.grades is not None:
        raise MetricError("grades of one list of all rows are not evaluated on a cluster: name the lowest relevant one")
    refused = [name for name, metric in metrics.items() if metric.form.startswith(("WMW", "bpref"))]
    if refused and not leave_out_undefined:
        raise MetricError(f"{refused[0]} of one list of all rows is not evaluated on a cluster")
    counted: dict[str, Metric] = {
        name: _CountedMetric(metric) if isinstance(metric, NDCG | NDCGAtK) else metric
        for name, metric in metrics.items()
        if name not in refused
    }
    threshold = line_of(model.header.threshold)
    table = repeated(data.vectors, lambda: table_of(data, scored(data, model), threshold))
    return summarise(counted, table, None, "block", leave_out_undefined=leave_out_undefined)


def scored(data: ShardedData, model: Ranker) -> Handle:
    """The scores that a model gives the rows, as one list."""
    data.take_list()
    scores = data.vectors.empty()
    data.vectors.later(scores, "model_scores", model, scores.number)
    return scores


def table_of(data: ShardedData, scores: Handle, threshold: float) -> CountedTable:
    """The runs of one list."""
    surveys: list[Survey] = data.vectors.ask("survey", scores.number, 1, None)
    if not all(survey.finite for survey in surveys):
        raise FloatingPointError(NOT_FINITE)
    # The threshold among them: on which side of it a score lies is what F looks at.
    scores_pos = np.concatenate([*(survey.positives for survey in surveys), [threshold]])
    thresholds, positives = np.unique(scores_pos, return_counts=True)
    positives[np.searchsorted(thresholds, threshold)] -= 1
    higher, equal = negatives_from(data.vectors, scores, thresholds)
    return CountedTable.of(thresholds, positives, higher, equal, data.n_neg, threshold)


def _by_query(
    data: ShardedData, model: Ranker, target: Target, metrics: dict[str, Metric], *, leave_out: bool
) -> Evaluation:
    lowest = target.lowest_relevant
    answers = data.crew.ask_surely("evaluate", model, metrics, lowest)
    ids = np.concatenate([answer[0] for answer in answers])
    order = np.argsort(ids)
    in_group = {
        name: np.concatenate([answer[1][name] for answer in answers])[order]
        for name in metrics
        if all(answer[1][name] is not None for answer in answers)
    }
    useless = [name for name, values in in_group.items() if np.isnan(values).all()]
    if useless and (not leave_out or len(useless) == len(in_group)):
        raise MetricError(f"nothing to evaluate: no query holds what {useless[0]} needs")
    in_group = {name: values for name, values in in_group.items() if name not in useless}
    skipped, blocks, rows = (sum(answer[2][at] for answer in answers) for at in range(3))
    return Evaluation(
        {name: mean(values) for name, values in in_group.items()},
        n_rows=data.rows,
        n_positives=data.n_pos,
        tied_blocks=blocks,
        tied_rows=rows,
        ties="block",
        n_groups=ids.size,
        groups_skipped=skipped,
        groups=ids[order],
        in_group=in_group,
    )


def order_statistic(data: ShardedData, scores: Handle, place: int) -> float:
    """The score at ``place``, from 0 and ascending, among all rows': digits of its key, a dozen bits a round."""
    bits = 12
    low, shift = -(1 << 63), 64 - bits
    while True:
        counts = np.sum(data.vectors.ask("count_keys", scores.number, low, shift, 1 << bits), axis=0)
        part = int(np.searchsorted(np.cumsum(counts), place, side="right"))
        place -= int(counts[:part].sum())
        low += part << shift
        if shift == 0:
            break
        bits = min(bits, shift)
        shift -= bits
    key = low if low >= 0 else low ^ ((1 << 63) - 1)
    return float(np.array([key]).view(np.float64)[0])
