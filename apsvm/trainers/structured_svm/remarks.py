"""Remarks on the training of a structured SVM: origin of C, fallbacks, and cautions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from apsvm._support.naming import option
from apsvm.trainers.settings import Multiple
from apsvm.trainers.structured_svm.settings import POOR_BOUND

if TYPE_CHECKING:
    from apsvm.trainers.base import Outcome
    from apsvm.trainers.structured_svm.stage import Trained
    from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

#: Normal quantile of the one-sided 5 % level.
ONE_SIDED = 1.64


def caution_of(
    outcome: Outcome,
    trainer: StructuredSVMTrainer,
    *,
    of_bags: bool = False,
    held_out: float = math.nan,
    by_chance: tuple[float, float] = (math.nan, math.nan),
    start: str | None = None,
    chosen: str | None = None,
) -> list[str]:
    """Caution for a model hardly better than chance, judged by held-out rows or else by its bound.

    Parameters
    ----------
    trainer : as requested
    held_out : loss on held-out rows, NaN without them; ``start``: that of another loss, if training starts from its
        model
    by_chance : mean and deviation of the loss of random orders
    chosen : the chosen bound, if any
    """
    if math.isfinite(held_out):
        share, measure = held_out, f"the {'' if start is None else f'{start} '}loss on rows held out"
    elif outcome.relative_bound is not None:
        share = outcome.relative_bound
        measure = "the bound on the loss, relative to w = 0,"
    else:
        return []
    if share < POOR_BOUND:
        mean, deviation = by_chance
        if not share > mean - ONE_SIDED * deviation:
            return []
        return [
            f"{measure} is {share:.1%}, and in random orders {mean:.1%} ± {deviation:.1%}: this model ranks hardly "
            "better than chance; try more positive rows or other features"
        ]
    remedies = []
    if trainer.settings.bound == "hinge" and trainer.loss.over_rankings:
        remedies.append(f"{option('bound', 'tight')} or {option('bound', 'auto')}")
    if chosen == "hinge" and not math.isfinite(held_out):
        remedies.append(option("bound", "tight"))
    remedies.append("a larger C")
    if of_bags:
        pooled = f"{option('pool', 'min,mean,max')} instead of {option('latent', True)}"
        remedies = [f"another {option('start')} (random:20)", "a larger C", pooled]
    remedies.append(f"other features ({option('features', 'piecewise')})")
    return [f"{measure} is {share:.1%}: this model may rank badly; try {', '.join(remedies)}"]


def origin_of_C(trained: Trained, setting: float | Multiple) -> list[str]:
    """Remark on C as a multiple of the default; empty for a number."""
    if not isinstance(setting, Multiple):
        return []
    return [f"C = {trained.C:.6g}, {setting.factor:g} times the default, which is {trained.origin_of_C}"]


def fallbacks_of(trained: Trained) -> list[str]:
    """Remark if QPs needed cvxpy."""
    count = sum(stage.qp_fallbacks for stage in trained.stages)
    return [f"{count} working-set QPs needed cvxpy"] if count else []
