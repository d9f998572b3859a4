"""The threshold of a model that nobody asked one for, of the highest F1 on the rows that it was trained on.

It costs a pass over the rows and a sort. A ranker knows its training rows, so that precision and recall there flatter
it, and the model says so; the threshold itself is worth about as much as one chosen on rows held out, as long as the
features are fewer than the rows (``scripts/study_thresholds.py``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import distinct
from apsvm.data.labels import recall
from apsvm.metrics.thresholds import ChosenThreshold, ThresholdRule, choose_threshold
from apsvm.models.bags import ranked
from apsvm.models.header import LabelKind
from apsvm.models.kinds import AnyRankerSet, ItemRanker
from apsvm.trainers.score_scale import STANDARD, placed

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.data.labels import Target
    from apsvm.models.header import Header
    from apsvm.models.kinds import Model

RULE = ThresholdRule("f1")


def with_training_threshold(model: Model, dataset: Dataset) -> Model:
    """The model with a threshold in each header that has none, where that makes sense.

    Parameters
    ----------
    dataset : what it was trained on, as it was read

    Returns
    -------
    The model itself where it is of items, grades or several queries: their scores are not compared with a constant
    """
    if isinstance(model, ItemRanker) or (dataset.groups is not None and np.unique(dataset.groups).size > 1):
        return model
    if isinstance(model, AnyRankerSet):
        if all(header.threshold is not None for header in model.headers):
            return model
        rows, scores = ranked(model, dataset)
        parts = zip(model.headers, model.classes.tolist(), scores.T, strict=True)
        return replace(model, headers=[_decided(header, column, rows.have(label)) for header, label, column in parts])
    if model.header.threshold is not None or model.header.labels.kind is LabelKind.NONE:
        return model
    rows, scores = ranked(model, dataset)
    target = recall(rows, model.header.labels)
    return model if is_graded(target) else replace(model, header=_decided(model.header, scores, target.relevant))


def line_by(scores: NDArray[np.float64], target: Target) -> float:
    """Above which of the ``scores`` (n,) of the rows that it was trained on a ranker would have its threshold; 0 where
    it would have none."""
    chosen = None if is_graded(target) else _chosen(scores, target.relevant)
    return 0.0 if chosen is None else chosen.value


def is_graded(target: Target) -> bool:
    """Whether the rows have more than two grades."""
    return target.grades is not None and distinct(target.grades).size > 2


def _decided(header: Header, scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> Header:
    return header if header.threshold is not None else with_chosen(header, _chosen(scores, relevant))


def with_chosen(header: Header, chosen: ChosenThreshold | None) -> Header:
    """The header of a ranker with the threshold of the highest F1 on its training rows, where there is one."""
    if chosen is None:
        return header
    return replace(header, threshold=placed(chosen, STANDARD, rule=str(RULE), held_out=None))


def _chosen(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> ChosenThreshold | None:
    """None where one class has no rows, or all scores are the same."""
    if relevant.all() or not relevant.any() or scores.min() == scores.max():
        return None
    return choose_threshold(scores, relevant, RULE)
