"""Checks whether a trained ranker gives its training rows different scores, and words the caution if not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm.data.component_rows import scores_of_weights
from apsvm.data.row_operator import RowOperator
from apsvm.data.rows import Rows
from apsvm.models.items import ItemFactors
from apsvm.models.net import Net
from apsvm.trainers.base import AnyTrainer, Outcome, TrainingSet

#: Number of rows in the first block, and in later ones.
_FIRST_BLOCK, _BLOCK = 1 << 10, 1 << 16

_RANKS_NOTHING = "this model ranks nothing: all training rows have the same score"
#: Remark for a ranker whose training was cut short.
_RANKS_NOTHING_YET = "this model ranks nothing: training was stopped too early"


def ranks_nothing(outcome: Outcome, trainer: AnyTrainer, **training: bool) -> str:
    """Caution for a ranker that gives all training rows the same score; ``training``: see ``Trainer.remedies``."""
    if not outcome.as_asked:
        return _RANKS_NOTHING_YET
    return f"{_RANKS_NOTHING}. Try {', '.join(trainer.remedies(outcome, **training))}, or features that vary"


def scores_of(w: NDArray[np.float64] | Net, rows: RowOperator) -> NDArray[np.float64]:
    """Scores (m,) float64 of a trained ranker; with several components, the highest."""
    if isinstance(w, Net):
        assert isinstance(rows, Rows)
        return w.scores(rows)
    return scores_of_weights(rows, w)


def ranking_checked(outcome: Outcome, data: TrainingSet, trainer: AnyTrainer) -> Outcome:
    """Outcome of a training by ``trainer``; if all training rows score alike, with a caution and without a
    threshold."""
    if outcome.classes:
        from apsvm.data.dataset import shown_label

        classes = [(label, ranking_checked(part, data, trainer)) for label, part in outcome.classes]
        useless = [shown_label(label) for label, part in classes if not part.ranks]
        if not useless:
            return replace(outcome, classes=classes)
        caution = f"the rankers of {len(useless)} classes rank nothing: {', '.join(useless)}"
        return replace(outcome, classes=classes, ranks=False, cautions=[*outcome.cautions, caution])
    if isinstance(outcome.w, ItemFactors) or outcome.w is None:
        return outcome
    if tells_apart(outcome.w, data.rows):
        return outcome
    lacks_constant = trainer.capabilities.constant and data.rows.dimension == data.rows.features
    caution = ranks_nothing(outcome, trainer, of_bags=data.bags is not None, lacks_constant=lacks_constant)
    return replace(outcome, ranks=False, threshold=None, cautions=[caution])


def tells_apart(w: NDArray[np.float64] | Net, rows: RowOperator) -> bool:
    """True if two rows have different scores; usually the first block decides."""
    low, high, start, size = np.inf, -np.inf, 0, _FIRST_BLOCK
    while start < len(rows):
        part = rows if len(rows) <= size else rows.select(np.arange(start, min(start + size, len(rows))))
        scores = scores_of(w, part)
        low, high = min(low, float(scores.min())), max(high, float(scores.max()))
        if high - low > 0.0:
            return True
        start, size = start + size, _BLOCK
    return False
