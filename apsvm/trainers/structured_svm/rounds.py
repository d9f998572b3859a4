"""The concave-convex procedure as a part of a training: by a stage's solver, with log, progress and report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from apsvm.clock import Span
from apsvm.risk import OracleCall
from apsvm.solvers import concave_convex
from apsvm.solvers.certificate import tolerance_of
from apsvm.solvers.concave_convex import Majorant, Round, StationaryPoint
from apsvm.solvers.cutting_plane import CuttingPlaneSolution
from apsvm.trainers.base import Watch
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import ConvexPart, Stage, StageReport, bounds_line


@dataclass(slots=True)
class Spent:
    """What a tightening has taken: ``before`` of the time limit were gone when it ``began``."""

    before: float
    began: float
    oracle_calls: int = 0
    iterations: int = 0
    spans: dict[str, Span] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    @property
    def in_all(self) -> float:
        return self.before + self.seconds

    def add(self, oracle_calls: int, spans: Mapping[str, Span]) -> None:
        self.oracle_calls += oracle_calls
        for part, span in spans.items():
            self.spans[part] = self.spans.get(part, Span()) + span


class RoundsProblem(Protocol):
    """What rounds are about."""

    @property
    def name(self) -> str:
        """Of the stage, in logs and on the display."""

    def majorise(self, w: NDArray[np.float64], C: float) -> Majorant:
        """The convex function that touches J at w; FloatingPointError where it is not finite."""

    def begin(self, majorant: Majorant) -> None:
        """A round on this majorant begins: from now on the stage's risk is its convex part."""

    def account(self) -> tuple[list[OracleCall], dict[str, Span]]:
        """The oracle calls since the last time, and the time of the parts."""


class Rounds:
    """Rounds from one point, by the stage's solver, with their records."""

    def __init__(
        self, stage: Stage, problem: RoundsProblem, settings: StructuredSettings, watch: Watch, C: float, spent: Spent
    ) -> None:
        self._stage = stage
        self._problem = problem
        self._settings = settings
        self._watch = watch
        self._C = C
        self._spent = spent
        self._began = spent.seconds
        self._reports: list[StageReport] = []

    def descend(self, start: NDArray[np.float64]) -> StationaryPoint:
        """Rounds from ``start``; the planes are those of the stage."""
        self._stage.restart(start)
        return concave_convex.descend(
            lambda w: self._problem.majorise(w, self._C),
            self._minimise,
            start,
            tolerance_of(self._settings.epsilon, self._C),
            on_round=self._on_round,
        )

    def _minimise(self, convex: Majorant, good_enough: Callable[[float, float], bool]) -> CuttingPlaneSolution:
        self._problem.begin(convex)
        part = ConvexPart(self._problem.name, convex.centre, good_enough)
        report = self._stage.run(self._C, seconds_used=self._spent.in_all, convex=part)
        self._reports.append(report)
        return report.solution

    def _on_round(self, round_: Round) -> None:
        name, bounds, solved = self._problem.name, round_.certificate, self._reports[-1].solution
        seconds = self._spent.seconds - self._began
        self._watch.log.write(
            "round",
            stage=name,
            C=self._C,
            round=round_.number,
            objective=bounds.primal,
            dual=bounds.dual,
            gap=bounds.gap,
            iterations=solved.iterations,
            seconds=seconds,
        )
        self._watch.progress(
            bounds_line(name, self._C, round_.number, bounds.primal, bounds.dual, bounds.gap, solved.planes, seconds)
        )

    def report(self, end: StationaryPoint) -> StageReport:
        """The solution, with all that was spent."""
        spent = self._spent
        calls, spans = self._problem.account()
        spent.add(len(calls), spans)
        for report in self._reports:
            spent.add(report.oracle_calls, report.spans)
        solution = CuttingPlaneSolution(
            w=end.best.point,
            risk=end.best.risk,
            certificate=end.certificate,
            state=end.state,
            iterations=spent.iterations + sum(report.solution.iterations for report in self._reports),
            planes=self._reports[-1].solution.planes if self._reports else 0,
            seconds=spent.seconds,
            trouble=end.trouble,
        )
        fallbacks = sum(report.qp_fallbacks for report in self._reports)
        return StageReport(
            self._problem.name,
            self._stage.oracle,
            spent.oracle_calls,
            solution,
            spent.spans,
            fallbacks,
            len(self._reports),
        )
