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
from apsvm.header import LabelKind
from apsvm.metrics.thresholds import ThresholdRule, choose_threshold
from apsvm.model import AnyRankerSet, ItemRanker
from apsvm.model_bags import ranked
from apsvm.trainers.score_scale import STANDARD, placed

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.header import Header
    from apsvm.model import Model


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
    if target.grades is not None and distinct(target.grades).size > 2:
        return model
    return replace(model, header=_decided(model.header, scores, target.relevant))


def _decided(header: Header, scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> Header:
    if header.threshold is not None or relevant.all() or not relevant.any():
        return header
    rule = ThresholdRule("f1")
    chosen = choose_threshold(scores, relevant, rule)
    return replace(header, threshold=placed(chosen, STANDARD, rule=str(rule), held_out=None))
