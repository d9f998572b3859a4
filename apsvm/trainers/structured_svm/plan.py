"""A complete plan of a structured SVM, which ``training.train`` solves without further choices.

    loss, bound, C, oracle, ε, kind of rows, start → ``train(plan, data, watch)`` → ``Trained``

A plan has no "auto" and no folds: ``apsvm.selection`` makes the choices that a user leaves open. A multiple of the
default C is a number by a rule (``default_c``), not a choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import Loss
from apsvm.trainers.base import TrainingSet
from apsvm.trainers.settings import Multiple, SettingsError, resolved
from apsvm.trainers.structured_svm.default_c import DESCENT, THE_RULE, default_C, default_C_at
from apsvm.trainers.structured_svm.settings import StructuredSettings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Objective, method and starting points of a training.

    Attributes
    ----------
    loss : Loss
        Δ.
    settings : StructuredSettings
        ``bound`` is "hinge" or "tight"; ``C`` holds numbers or multiples of the default C.
    start : ndarray, optional
        (dimension,) float64, the start; None: the default start of the kind of rows.
    second_start : ndarray, optional
        (dimension,) float64, another starting point of the tight bound or of components.
    started_by : str
        Loss whose solution ``second_start`` is; empty without one, or for a user's model.
    descent : float
        For a loss of the top: fraction by which the ramp has fallen at its default C (``default_c.default_C_at``).
    is_rough : bool
        True if only the ranking is needed, without the proof that w is stationary.
    """

    loss: Loss
    settings: StructuredSettings
    start: NDArray[np.float64] | None = None
    second_start: NDArray[np.float64] | None = None
    started_by: str = ""
    descent: float = DESCENT
    is_rough: bool = False


def values_of_C(plan: Plan, data: TrainingSet) -> tuple[Sequence[float], str]:
    """Numbers for ``plan.settings.C`` on these rows, and a description of the default C.

    Raises
    ------
    SettingsError
        A multiple of the default C beyond float64.
    """
    default, origin = 1.0, THE_RULE
    if any(isinstance(C, Multiple) for C in plan.settings.C):
        begins = plan.second_start if plan.started_by else plan.start
        is_of_the_top = plan.loss.starts_from is not None and plan.settings.bound == "tight" and data.bags is None
        if is_of_the_top and begins is not None and begins.any():
            default, origin = default_C_at(data, plan.loss, plan.settings.oracle, begins, plan.started_by, plan.descent)
        else:
            default = default_C(data, plan.loss, plan.settings.bound)
    values = [resolved(C, default) for C in plan.settings.C]
    for C, value in zip(plan.settings.C, values, strict=True):
        if not 0.0 < value < math.inf:
            raise SettingsError(f"-C {C}: this multiple of the default, {default:g} for these rows, exceeds float64")
    return values, origin
