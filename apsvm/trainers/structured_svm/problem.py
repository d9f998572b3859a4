"""Problem of a plan, solved for a sequence of C: it descends from starting points (``starts_of_…``) to a stationary
point (``descent``) of the hinge, of the ramp, or of the ramp after the hinge."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from apsvm.risk import Risk
from apsvm.solvers.state import State
from apsvm.trainers.base import TrainingSet
from apsvm.trainers.structured_svm.descent import Descent, Weights
from apsvm.trainers.structured_svm.objective import relative_bound, risk_at_zero
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.stage import Stage, StageReport, Trained

#: Returns starting points by log name, given C, the solution for the previous C (None at first) and the result of the
#: previous descent (None at first).
Starts: TypeAlias = Callable[[float, Weights | None, StageReport | None], Mapping[str, Weights]]


def go_down(
    descents: Sequence[Descent], starts: Starts, C: float, before: Weights | None, began: float
) -> list[StageReport]:
    """Run the descents in turn; a descent that stops early is the last one.

    Parameters
    ----------
    before : (dimension,) float64, the solution for the previous C
    began : start time of the training, from which its time limit counts

    Raises
    ------
    FloatingPointError : the first objective is not finite; a later one ends the sequence
    """
    reports: list[StageReport] = []
    with np.errstate(over="ignore", invalid="ignore"):  # non-finite values are checked below
        for descent in descents:
            last = reports[-1] if reports else None
            try:
                points = starts(C, before, last)
                reports.append(descent.go_down(C, points, time.perf_counter() - began))
            except FloatingPointError as error:
                if last is None:
                    raise
                stopped = replace(last.solution, state=State.NUMERICAL_TROUBLE, trouble=str(error))
                reports[-1] = replace(last, solution=stopped)
            if reports[-1].solution.state is not State.CONVERGED:
                break
    return reports


def trained_by(reports: list[StageReport], *, exact: bool, queries: int, skipped: int) -> Trained:
    """Result of a training from the reports of its descents: the hinge's, usually followed by the ramp's."""
    hinge = reports[-2].solution.certificate.primal if len(reports) > 1 else None
    return Trained(reports[-1].solution.w, reports, exact, queries, skipped, hinge_objective=hinge)


@dataclass(frozen=True)
class Problem:
    """See the module.

    Attributes
    ----------
    risk : the hinge
    stage : solver of its convex part
    descents : in their order
    starts : starting points of each
    """

    plan: Plan
    data: TrainingSet
    risk: Risk
    stage: Stage
    descents: Sequence[Descent]
    starts: Starts

    def solve(self, C: float, before: Weights | None, began: float) -> Trained:
        """Solve for C, given the solution ``before`` for the previous C, if any; raises as ``go_down``."""
        risk, last = self.risk, self.descents[-1]
        if self.plan.is_rough and last.takes_steps:
            return _rough(last.lowest(C, self.starts(C, before, None), time.perf_counter() - began))
        if before is not None and risk.convex is not risk:
            self.stage.begin()
        reports = go_down(self.descents, self.starts, C, before, began)
        if self.plan.is_rough:
            return _rough(reports[-1].solution.w)
        trained = trained_by(reports, exact=risk.oracle.exact, queries=risk.queries, skipped=risk.queries_skipped)
        if trained.state is State.CONVERGED:
            share = relative_bound(self.data, self.plan.loss, self._at_zero, trained.solution, C)
            trained = replace(trained, relative_bound=share)
        return trained

    @cached_property
    def _at_zero(self) -> float:
        return risk_at_zero(self.risk)


def _rough(w: Weights) -> Trained:
    """Weights without a certificate."""
    return Trained(w, [], True, 0, 0)
