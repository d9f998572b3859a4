"""Caution for a training that failed to converge on features of very different scale."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from apsvm._support.naming import option
from apsvm.data.moments import column_moments
from apsvm.solvers.state import State
from apsvm.trainers.base import Outcome

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset

#: Ratio of the largest to the smallest deviation from which the caution is given.
FAR_APART = 1e3
#: End states that a common scale may prevent.
_ENDS = (State.STALLED, State.NUMERICAL_TROUBLE, State.ITERATION_LIMIT, State.TIME_LIMIT)


def scales_checked(outcome: Outcome, dataset: Dataset) -> Outcome:
    """Adds a caution to the outcome if the scales of the columns of ``dataset`` may have caused its end."""
    if outcome.state not in _ENDS:
        return outcome
    deviations = np.sqrt(column_moments(dataset.X).variance)
    varies = np.flatnonzero((deviations > 0.0) & np.isfinite(deviations))
    if varies.size < 2:
        return outcome
    low, high = (int(varies[at]) for at in (deviations[varies].argmin(), deviations[varies].argmax()))
    if deviations[high] < FAR_APART * deviations[low]:
        return outcome
    caution = (
        f"the features' deviations go from {deviations[low]:.3g} ({_name(dataset, low)}) to {deviations[high]:.3g} "
        f"({_name(dataset, high)}): {option('scale', 'standard')} gives them one scale; remove a column "
        "that only numbers or dates the rows"
    )
    return replace(outcome, cautions=(*outcome.cautions, caution))


def _name(dataset: Dataset, column: int) -> str:
    if dataset.table is not None:
        return dataset.table.columns.feature_names()[column]
    return f"feature {column if dataset.zero_based else column + 1}"
