"""Where positives begin: thresholds chosen on scores of rows held out, or else on the training rows.

A threshold, or a probability, that is chosen on training scores promises too much: a ranker knows its training rows. So
it is chosen on scores that rankers of folds give to the rows which they have not seen (``race.OutOfFold``), as
scikit-learn's ``CalibratedClassifierCV(ensemble=False)`` does.

The rankers of two folds need not have one scale: a ranking loss looks at no scores, only at their order, and some
trainings end where they happen to. What a fold's ranker and the model have in common are the rows that both were
trained on: a fold's scores are carried to where the model has rows that are as far from the top there (55 trainings on
17 public sets: F1 fell short by .0163 in the mean; by mean and deviation of the scores alone by .0206).

On the training rows themselves a threshold costs a pass and a sort. Precision and recall there flatter the ranker, and
the model says so; the threshold is worth about as much as one chosen on rows held out, as long as the features are
fewer than the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import distinct
from apsvm.data.labels import recall
from apsvm.metrics.thresholds import ChosenThreshold, ThresholdRule, choose_threshold
from apsvm.models.bags import ranked
from apsvm.models.header import LabelKind, Threshold
from apsvm.trainers.base import HeldOut

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.data.labels import Target
    from apsvm.models.base import Model
    from apsvm.models.header import Header
    from apsvm.selection.race import OutOfFold

#: Of a threshold that was not requested.
RULE = ThresholdRule("f1")


def held_out_scores(
    folds: Sequence[OutOfFold], model_scores: NDArray[np.float64], relevant: NDArray[np.bool_], how: str
) -> HeldOut:
    """The rows that folds tested on, each with its score in the model's scale.

    Parameters
    ----------
    model_scores : (n,) float64, of all rows (or bags) that the folds number; relevant : (n,) bool
    how : what was held out, in words
    """
    scores = [carried(fold.scores, fold.own, model_scores[fold.training]) for fold in folds]
    return HeldOut(np.concatenate(scores), relevant[np.concatenate([fold.test for fold in folds])], how)


def carried(scores: NDArray[np.float64], own: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ``scores`` (m,) of one ranker in the scale of another, by the ``own`` scores and ``theirs`` (n,) of the same
    rows: interpolated between rows at the same distance from the top; beyond all of them stretched by the
    deviations."""
    places, counts = np.unique(own, return_counts=True)
    images = np.add.reduceat(np.sort(theirs), np.cumsum(counts) - counts) / counts
    spread = float(own.std())
    stretch = float(theirs.std()) / spread if spread > 0.0 else 1.0
    outside = np.minimum(scores - places[0], 0.0) + np.maximum(scores - places[-1], 0.0)
    result: NDArray[np.float64] = np.interp(scores, places, images) + stretch * outside
    return result


def placed(chosen: ChosenThreshold, *, rule: str, held_out: str | None) -> Threshold:
    """A chosen threshold as a header has it; ``held_out``: what it was chosen on, None: the training rows."""
    return Threshold(
        value=chosen.value,
        rule=rule,
        held_out=held_out,
        precision=chosen.precision,
        recall=chosen.recall,
        false_positive_rate=chosen.false_positive_rate,
        called=chosen.called / chosen.rows,
    )


def threshold_by(held_out: HeldOut) -> Threshold | None:
    """The threshold of the highest F1 on rows held out; None where one class has no rows there."""
    if held_out.relevant.all() or not held_out.relevant.any():
        return None
    return placed(choose_threshold(held_out.scores, held_out.relevant, RULE), rule=str(RULE), held_out=held_out.how)


def with_training_threshold(model: Model, dataset: Dataset) -> Model:
    """The model with a threshold in each header that has none, of the highest F1 on the training rows, where that makes
    sense.

    Parameters
    ----------
    dataset : what it was trained on, as it was read

    Returns
    -------
    The model itself where it is of items, grades or several queries: their scores are not compared with a constant
    """
    if model.lists_items or (dataset.groups is not None and np.unique(dataset.groups).size > 1):
        return model
    if model.header.labels.kind is LabelKind.NONE or all(header.threshold is not None for header in model.headers):
        return model
    rows, scores = ranked(model, dataset)
    if model.has_classes:
        parts = zip(model.headers, model.classes.tolist(), scores.T, strict=True)
        return model.with_headers([_decided(header, column, rows.have(label)) for header, label, column in parts])
    target = recall(rows, model.header.labels)
    return model if is_graded(target) else model.with_header(_decided(model.header, scores, target.relevant))


def line_by(scores: NDArray[np.float64], target: Target) -> float:
    """Above which of the ``scores`` (n,) of the rows that it was trained on a ranker would have its threshold; 0 where
    it would have none."""
    chosen = None if is_graded(target) else _chosen(scores, target.relevant)
    return 0.0 if chosen is None else chosen.value


def is_graded(target: Target) -> bool:
    """True if the rows have more than two grades."""
    return target.grades is not None and distinct(target.grades).size > 2


def _decided(header: Header, scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> Header:
    return header if header.threshold is not None else with_chosen(header, _chosen(scores, relevant))


def with_chosen(header: Header, chosen: ChosenThreshold | None) -> Header:
    """The header of a ranker with the threshold of the highest F1 on its training rows, where there is one."""
    return header if chosen is None else replace(header, threshold=placed(chosen, rule=str(RULE), held_out=None))


def _chosen(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> ChosenThreshold | None:
    """None where one class has no rows, or all scores are the same."""
    if relevant.all() or not relevant.any() or scores.min() == scores.max():
        return None
    return choose_threshold(scores, relevant, RULE)
