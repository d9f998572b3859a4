"""The threshold of a model of shards' rows that has none yet: of the highest F1 on the rows that it was trained
on, as ``selection.thresholds`` has it on one machine, from counts alone.

F1 is highest just below the score of a positive, so that the positives' scores and the negatives above each are all
there is to know; the threshold lies halfway to the next lower score.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from apsvm.dask.crew import ClusterError
from apsvm.dask.long_list import MOST_POSITIVES, higher_and_equal
from apsvm.metrics.thresholds import ChosenThreshold, halfway, place_of_highest_f1
from apsvm.models.header import LabelKind
from apsvm.selection.thresholds import is_graded, with_chosen

if TYPE_CHECKING:
    from apsvm.dask.data import ShardedData
    from apsvm.data.labels import Target
    from apsvm.models.linear import LinearRanker


def with_training_threshold(model: LinearRanker, data: ShardedData, target: Target) -> LinearRanker:
    """The model with a threshold, where that makes sense; itself where it has one, of grades and queries, and of more
    positives than the driver takes.

    Parameters
    ----------
    target : what the labels mean, a row each
    """
    takes_one = 0 < data.n_pos <= MOST_POSITIVES and data.n_neg > 0 and not data.has_qid and not is_graded(target)
    if model.header.threshold is not None or model.header.labels.kind is LabelKind.NONE or not takes_one:
        return model
    chosen = _of_highest_f1(model, data)
    return model if chosen is None else replace(model, header=with_chosen(model.header, chosen))


def _of_highest_f1(model: LinearRanker, data: ShardedData) -> ChosenThreshold | None:
    """None where scores are not finite, or all the same."""
    of_shards = data.crew.ask_surely("score_positives", model)
    if any(scores is None for scores in of_shards):
        return None
    scores, counts = np.unique(np.concatenate(of_shards), return_counts=True)
    higher, _ = higher_and_equal(data.crew.ask_surely("count_negatives", model, scores))
    hits = np.cumsum(counts[::-1])
    called = hits + higher[::-1]
    best = place_of_highest_f1(called, hits, data.n_pos)
    lowest = float(scores[::-1][best])
    next_lower = float(np.max(data.crew.ask_surely("highest_below", model, lowest)))
    if not next_lower < lowest:
        raise ClusterError(f"of the scores below {lowest}, the workers say that {next_lower} is the highest")
    below, highest = (None if next_lower == -np.inf else next_lower), float(scores[-1])
    if below is None:
        highest = max(data.crew.ask_surely("highest_below", model, np.inf))
        if highest == lowest:
            return None
    value = halfway(lowest, below, highest)
    higher, equal = higher_and_equal(data.crew.ask_surely("count_negatives", model, np.array([value])))
    rows, above = int(called[best]), int(counts[scores > value].sum() + higher[0] - equal[0])
    if above != rows:
        raise ClusterError(f"the workers count {rows:,} rows with scores from {lowest} on, and {above:,} above {value}")
    return ChosenThreshold(value, rows, int(hits[best]), data.n_pos, data.rows)
