"""A structured SVM with everything named: what ``training.train`` solves without a choice of its own.

    loss, bound, C, oracle, ε, kind of rows, where to begin   →   ``train(plan, data, watch)``   →   ``Trained``

A plan knows no "auto" and no folds: ``apsvm.selection`` completes what a user leaves open. A multiple of the default C
is a number that a rule gives for the rows (``default_c``), not a choice.
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
from apsvm.trainers.structured_svm.default_c import THE_RULE, default_C, default_C_at
from apsvm.trainers.structured_svm.settings import StructuredSettings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """What is minimised, how, and from where.

    Attributes
    ----------
    loss : Δ
    settings : ``bound`` is "hinge" or "tight"; ``C`` has numbers, or multiples of the default C
    start : (dimension,) float64, where to begin; None: where the kind of rows says
    besides : (dimension,) float64, another point from which the tight bound, or components, go down
    after : the plan, of one C, at whose solution this one begins
    descent : of a plan ``after`` another: how far the ramp has gone down at the default C (``default_c.default_C_at``)
    is_rough : whether only the ranking is wanted, and not the proof that w is stationary
    """

    loss: Loss
    settings: StructuredSettings
    start: NDArray[np.float64] | None = None
    besides: NDArray[np.float64] | None = None
    after: Plan | None = None
    descent: float = 0.1
    is_rough: bool = False

    def __post_init__(self) -> None:
        if self.settings.bound not in ("hinge", "tight"):
            raise SettingsError(f"a plan names its bound, hinge or tight, found {self.settings.bound!r}")


def values_of_C(plan: Plan, data: TrainingSet, start: NDArray[np.float64] | None = None) -> tuple[Sequence[float], str]:
    """The numbers that ``plan.settings.C`` stands for on these rows, and what the default C is, in words.

    Parameters
    ----------
    start : (dimension,) float64, the solution of the plan ``after`` which this one comes; its length decides the
        default C of a loss of the top

    Raises
    ------
    SettingsError : a multiple of the default C beyond float64
    """
    default, origin = 1.0, THE_RULE
    if any(isinstance(C, Multiple) for C in plan.settings.C):
        if start is not None and start.any() and plan.loss.starts_from is not None and plan.settings.bound == "tight":
            name = "" if plan.after is None else plan.after.loss.name
            default, origin = default_C_at(data, plan.loss, plan.settings.oracle, start, name, plan.descent)
        else:
            default = default_C(data, plan.loss, plan.settings.bound)
    values = [resolved(C, default) for C in plan.settings.C]
    for C, value in zip(plan.settings.C, values, strict=True):
        if not 0.0 < value < math.inf:
            raise SettingsError(f"-C {C}: {C} of C = {default:g}, the default for these rows, is beyond float64")
    return values, origin
