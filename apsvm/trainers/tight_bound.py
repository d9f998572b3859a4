"""The tighter bound: from the hinge's minimiser, or any point, to a stationary point of

    J(w) = ½‖w‖² + C·{ h(w) − g(w) },     h(w) = max_R [Δ(R*, R) + w·Ψ(R) − w·Ψ(R*)],   g(w) = max_R w·Ψ(R) − w·Ψ(R*)

The ramp loss of structured estimation (Chapelle, Do, Le, Smola, Teo 2008): h − g lies between Δ of the ranking by score
and the hinge h, and unlike h it gives a hopeless positive no more weight than its loss.

First down by quasi-Newton steps (``solvers.quasi_newton``), which pass over the many small kinks where the other way to
go down would end. Then that way, the concave-convex procedure (Yuille and Rangarajan 2003): g(w) ≥ a·w, a = Xᵀc⁰ of the
ranking by score at w_t, with equality there, so that

    J(w) ≤ ½‖w‖² + C·h(w) − C·a·w = ½‖w − C·a‖² + C·h(w) − ½‖C·a‖²,

which the cutting-plane solver minimises about the centre C·a with the planes of h it has: they hold for every centre.
Each round may only lower J. The last one proves w_t stationary: no point lowers the convex majorant by more than ε·C.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from apsvm.clock import Span
from apsvm.data.rows import Rows
from apsvm.risk import OracleCall, Risk
from apsvm.solvers.certificate import Certificate, tolerance_of
from apsvm.solvers.cutting_plane import Solution, not_finite
from apsvm.solvers.quasi_newton import Step, descend
from apsvm.solvers.state import State
from apsvm.trainers.base import Watch
from apsvm.trainers.families.structured_svm import StructuredSettings
from apsvm.trainers.stage import ConvexPart, Stage, StageReport, Trained, bounds_line, log_step

#: A round ends when what its bounds leave open is at most this share of what it has gained.
OPEN_SHARE = 0.5
MOST_ROUNDS = 200
#: How many times ε is enough for the hinge's minimiser, where the descent begins.
HINGE_SLACKNESS = 30.0
#: A start is tried at its own length times these, and at the best of them times half and twice.
LENGTHS = tuple(4.0**k for k in range(-4, 5))
#: Of ε·C, what a quasi-Newton step must gain.
LEAST_GAIN = 0.01


@dataclass(frozen=True, slots=True)
class _Point:
    """w, J(w), and the centre C·a of the majorant that touches J there, whose value less ½‖C·a‖² is J."""

    w: NDArray[np.float64]
    objective: float
    risk: float
    centre: NDArray[np.float64]

    @property
    def majorant(self) -> float:
        """½‖w − centre‖² + C·h(w)."""
        return self.objective + 0.5 * float(self.centre @ self.centre)


class _Ramp:
    """h − g as a function of the scores (``solvers.smooth.Scored``), with what it took."""

    def __init__(self, risk: Risk) -> None:
        self._risk = risk
        self._by_score = risk.by_score()
        self._slopes = np.empty(risk.n_scores)

    @property
    def n_scores(self) -> int:
        return self._risk.n_scores

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        return self._risk.scores(w, out)

    def loss(self, scores: NDArray[np.float64], out: NDArray[np.float64]) -> float:
        hinge, order = self._risk.hinge(scores, out), self._by_score.hinge(scores, self._slopes)
        np.subtract(hinge.weights, order.weights, out=out)
        return hinge.value - order.value

    def combine(self, c: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._risk.combine(c)

    def point(self, w: NDArray[np.float64], C: float) -> _Point:
        scores = self._risk.scores(w)
        hinge, order = self._risk.hinge(scores), self._by_score.hinge(scores)
        objective = 0.5 * float(w @ w) + C * (hinge.value - order.value)
        point = _Point(w, objective, hinge.value, C * self._by_score.cut(order).plane)
        if not np.isfinite(point.majorant):
            raise not_finite("objective")
        return point

    def at_its_best_length(self, w: NDArray[np.float64], C: float) -> NDArray[np.float64]:
        """``w`` at the length where J is lowest, of those tried: h − g is not indifferent to it."""
        scores, slopes = self._risk.scores(w), np.empty(self.n_scores)
        square = float(w @ w)

        def objective(length: float) -> float:
            return 0.5 * length**2 * square + C * self.loss(length * scores, slopes)

        coarse = min(LENGTHS, key=objective)
        return min((coarse, 0.5 * coarse, 2.0 * coarse), key=objective) * w

    def account(self) -> tuple[list[OracleCall], dict[str, Span]]:
        """The hinge's oracle calls since the last time, and the time of the parts."""
        hinge, order = self._risk.account(), self._by_score.account()
        spans = {
            "scores": hinge.spans.parts.get("scores", Span()),
            "oracle": sum((call.span for call in hinge.calls), Span()),
            "by score": sum((call.span for call in order.calls), order.spans.parts.get("gradient", Span())),
            "gradient": hinge.spans.parts.get("gradient", Span()),
        }
        return hinge.calls, spans


class TightBound:
    """Tightens what ``stage`` has trained on ``risk``; one for a whole path of C.

    may_leave : False where the stage has constraints, which only its own solver keeps
    """

    def __init__(
        self, stage: Stage, risk: Risk, settings: StructuredSettings, watch: Watch, *, may_leave: bool = True
    ) -> None:
        self._stage = stage
        self._ramp = _Ramp(risk)
        self._settings = settings
        self._watch = watch
        self._may_leave = may_leave
        self._curvature = _curvature(risk.rows) if may_leave else None
        self._last: NDArray[np.float64] | None = None  # the solution for the C before on the path

    def tighten(
        self, hinge: Trained, C: float, start: NDArray[np.float64] | None = None, *, seconds_used: float = 0.0
    ) -> Trained:
        """The stationary point below the lowest that is reached from the hinge's solution, that for the C before on a
        path, and ``start``."""
        spent = _Spent(seconds_used, time.perf_counter())
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found
            lowest = hinge.w
            if self._may_leave:
                starts = {"from the hinge": hinge.w, "from the C before": self._last, "from the given start": start}
                reached = [
                    self._descend(f"tight, {name}", point, C, spent)
                    for name, point in starts.items()
                    if point is not None and (point is hinge.w or point.any())
                ]
                lowest = min(reached, key=lambda w: self._ramp.point(w, C).objective)
            rounds = _Rounds(self._stage, self._ramp, self._settings, self._watch, C)
            rounds.descend(lowest, spent)
        self._last = rounds.best.w
        report = rounds.report(spent)
        return replace(
            hinge,
            w=rounds.best.w,
            stages=[*hinge.stages, report],
            hinge_objective=hinge.solution.certificate.primal,
        )

    def _descend(self, name: str, point: NDArray[np.float64], C: float, spent: _Spent) -> NDArray[np.float64]:
        """By quasi-Newton steps."""
        began = spent.seconds

        def on_step(step: Step) -> None:
            calls, spans = self._ramp.account()
            spent.add(len(calls), spans)
            spent.iterations += 1
            seconds = spent.seconds - began
            log_step(self._watch.log, "tight", name, C, step, calls, spans, seconds)
            self._watch.progress(bounds_line(name, C, step.number, step.objective, -np.inf, np.inf, 0, seconds))

        limit = self._settings.time_limit
        return descend(
            self._ramp,
            C,
            self._ramp.at_its_best_length(point, C),
            curvature=self._curvature,
            enough=LEAST_GAIN * self._settings.epsilon * C,
            max_iterations=self._settings.max_iterations,
            on_step=on_step,
            should_stop=lambda: self._watch.should_stop() or (limit is not None and spent.in_all >= limit),
        )


@dataclass(slots=True)
class _Spent:
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


def _curvature(rows: Rows) -> NDArray[np.float64]:
    """(dimension,) float64: how much the loss curves in each weight, as the variance of its feature."""
    variance = rows.moments().variance
    known = (variance > 0.0) & np.isfinite(variance)
    found = np.full(rows.dimension, np.median(variance[known]) if known.any() else 1.0)
    found[: variance.size][known] = variance[known]
    return found


class _Rounds:
    """The concave-convex procedure from one point."""

    def __init__(self, stage: Stage, ramp: _Ramp, settings: StructuredSettings, watch: Watch, C: float) -> None:
        self._stage = stage
        self._ramp = ramp
        self._settings = settings
        self._watch = watch
        self._C = C
        self._reports: list[StageReport] = []
        self.state = State.ITERATION_LIMIT
        self.best: _Point
        self._certificate: Certificate

    def descend(self, start: NDArray[np.float64], spent: _Spent) -> None:
        """Rounds from ``start`` until no round can gain more than ε·C, or the solver has to stop."""
        C, began = self._C, spent.seconds
        self._stage.restart(start)
        self.best = here = self._ramp.point(start, C)
        for index in range(1, MOST_ROUNDS + 1):
            report = self._stage.run(
                C, seconds_used=spent.in_all, convex=ConvexPart(here.centre, _gained_enough(here.majorant))
            )
            self._reports.append(report)
            lower = report.solution.certificate.dual - 0.5 * float(here.centre @ here.centre)
            bounds = self._certificate = Certificate(
                here.objective, min(lower, here.objective), tolerance_of(self._settings.epsilon, C)
            )
            seconds = spent.seconds - began
            self._watch.log.write(
                "round",
                stage="tight",
                C=C,
                round=index,
                objective=here.objective,
                dual=bounds.dual,
                gap=bounds.gap,
                iterations=report.solution.iterations,
                seconds=seconds,
            )
            self._watch.progress(
                bounds_line("tight", C, index, here.objective, bounds.dual, bounds.gap, report.solution.planes, seconds)
            )
            if bounds.reached:
                self.state = State.CONVERGED
                return
            there = self._ramp.point(report.solution.w, C)
            if there.objective < here.objective:
                self.best = there
            if report.solution.state is not State.CONVERGED:
                self.state = report.solution.state
                return
            if there.objective >= here.objective:
                self.state = State.STALLED  # rounding: the majorant fell, and J lies below it
                return
            here = there

    def report(self, spent: _Spent) -> StageReport:
        """The solution, with what it took from the hinge's on."""
        calls, spans = self._ramp.account()
        spent.add(len(calls), spans)
        for report in self._reports:
            spent.add(report.oracle_calls, report.spans)
        last = self._reports[-1]
        solution = Solution(
            w=self.best.w,
            risk=self.best.risk,
            certificate=self._certificate,
            state=self.state,
            iterations=spent.iterations + sum(report.solution.iterations for report in self._reports),
            planes=last.solution.planes,
            seconds=spent.seconds,
        )
        fallbacks = sum(report.qp_fallbacks for report in self._reports)
        return StageReport("tight", last.oracle, spent.oracle_calls, solution, spent.spans, fallbacks)


def _gained_enough(majorant: float) -> Callable[[float, float], bool]:
    """Of a round that begins at this value."""
    return lambda primal, dual: primal - dual <= OPEN_SHARE * (majorant - primal)
