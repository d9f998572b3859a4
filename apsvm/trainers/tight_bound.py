"""The tighter bound: from the hinge's minimiser, or any point, to a stationary point of

    J(w) = ½‖w‖² + C·{ h(w) − g(w) },     h(w) = max_R [Δ(R*, R) + w·Ψ(R) − w·Ψ(R*)],   g(w) = max_R w·Ψ(R) − w·Ψ(R*)

The ramp loss of structured estimation (Chapelle, Do, Le, Smola, Teo 2008): h − g lies between Δ of the ranking by score
and the hinge h, and unlike h it gives a hopeless positive no more weight than its loss. The concave-convex procedure
(Yuille and Rangarajan 2003): g(w) ≥ a·w, a = Xᵀc⁰ of the ranking by score at w_t, with equality there, so that

    J(w) ≤ ½‖w‖² + C·h(w) − C·a·w = ½‖w − C·a‖² + C·h(w) − ½‖C·a‖²,

which the cutting-plane solver minimises about the centre C·a with the planes of h it has: they hold for every centre.
Each round may only lower J. The last one proves w_t stationary: no point lowers the convex majorant by more than ε·C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from apsvm.clock import Span
from apsvm.risk import Risk
from apsvm.solvers.certificate import Certificate
from apsvm.solvers.cutting_plane import Solution
from apsvm.solvers.state import State
from apsvm.trainers.stage import ConvexPart, Progress, Settings, Stage, StageReport, Trained, Watch

#: A round ends when what its bounds leave open is at most this share of what it has gained.
OPEN_SHARE = 0.5
MOST_ROUNDS = 200
#: A start is tried at its own length times these, and at the best of them times half and twice.
LENGTHS = tuple(4.0**k for k in range(-4, 5))
#: Shares of C to pass on the way to C, where no path does: at a small C there are few local minima, and following one
#: to larger C ends lower than starting there.
SMALLER = (0.001, 0.01, 0.1)
#: How many times ε is enough on the way.
SLACKNESS = 10.0


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


class TightBound:
    """Tightens what ``stage`` has trained on ``risk``; one for a whole path of C."""

    def __init__(
        self,
        stage: Stage,
        risk: Risk,
        settings: Settings,
        watch: Watch,
        *,
        may_scale: bool = True,
    ) -> None:
        self._stage = stage
        self._risk = risk
        self._by_score = risk.by_score()
        self._settings = settings
        self._watch = watch
        self._may_scale = may_scale
        self._last: tuple[float, NDArray[np.float64]] | None = None  # C and the solution before on the path

    def tighten(
        self, hinge: Trained, C: float, start: NDArray[np.float64] | None = None, *, seconds_used: float = 0.0
    ) -> Trained:
        """The best stationary point reached from the hinge's solution, from ``start``, and by way of smaller C."""
        runs: list[_Run] = []
        best: _Run | None = None

        def descend(name: str, point: NDArray[np.float64], weight: float, slackness: float = 1.0) -> _Run:
            run = _Run(self, f"tight, {name}", weight, seconds_used + sum(run.seconds for run in runs), slackness)
            run.descend(self._scaled(point, weight) if self._may_scale else point)
            runs.append(run)
            return run

        def stopped() -> bool:
            return bool(runs) and runs[-1].state not in (State.CONVERGED, State.STALLED)

        by_way, smaller = hinge.w, [C * factor for factor in SMALLER]
        if self._last is not None and self._last[0] <= C:
            by_way, smaller = self._last[1], [value for value in smaller if value > self._last[0]]
        for value in smaller:
            if not stopped():
                by_way = descend("smaller C", by_way, value, SLACKNESS).best.w
        for name, point in (("from smaller C", by_way), ("from the hinge", hinge.w), ("from the given start", start)):
            if point is None or (best is not None and (stopped() or not point.any())):
                continue
            run = descend(name, point, C)
            if best is None or run.best.objective < best.best.objective:
                best = run
        assert best is not None
        self._last = C, best.best.w
        report = best.report(runs)
        return replace(
            hinge,
            w=best.best.w,
            stages=[*hinge.stages, report],
            hinge_objective=hinge.solution.certificate.primal,
        )

    def _scaled(self, point: NDArray[np.float64], C: float) -> NDArray[np.float64]:
        """``point`` at the length where J is lowest, of those tried: h − g is not indifferent to it."""
        scores = self._risk.scores(point)
        beyond = self._by_score.hinge(scores).value
        square = float(point @ point)

        def objective(length: float) -> float:
            return 0.5 * length**2 * square + C * (self._risk.hinge(length * scores).value - length * beyond)

        coarse = min(LENGTHS, key=objective)
        return min((coarse, 0.5 * coarse, 2.0 * coarse), key=objective) * point


class _Run:
    """One descent from one start."""

    def __init__(self, bound: TightBound, name: str, C: float, seconds_used: float, slackness: float) -> None:
        self._bound = bound
        self._name = name
        self._slackness = slackness
        self._C = C
        self._seconds_used = seconds_used
        self._rounds: list[StageReport] = []
        self.state = State.ITERATION_LIMIT
        self.best: _Point
        self._certificate: Certificate

    @property
    def seconds(self) -> float:
        return sum(report.solution.seconds for report in self._rounds)

    def descend(self, start: NDArray[np.float64]) -> None:
        """Rounds from ``start`` until no round can gain more than ε·C, or the solver has to stop."""
        bound, C = self._bound, self._C
        tolerance = self._slackness * bound._settings.epsilon * C
        bound._stage.restart(start)
        self.best = here = self._point(start)
        for index in range(1, MOST_ROUNDS + 1):
            report = bound._stage.run(
                C,
                seconds_used=self._seconds_used + self.seconds,
                convex=ConvexPart(here.centre, _gained_enough(here.majorant)),
            )
            self._rounds.append(report)
            lower = report.solution.certificate.dual - 0.5 * float(here.centre @ here.centre)
            self._certificate = Certificate(here.objective, min(lower, here.objective), tolerance)
            bound._watch.progress(
                Progress(self._name, C, index, here.objective, self._certificate.dual, self._certificate.gap,
                         report.solution.planes, self.seconds)
            )  # fmt: skip
            there = self._point(report.solution.w)
            if self._certificate.reached:
                self.state = State.CONVERGED
                return
            if there.objective < here.objective:
                self.best = there
            if report.solution.state is not State.CONVERGED:
                self.state = report.solution.state
                return
            if there.objective >= here.objective:
                self.state = State.STALLED  # rounding: the majorant fell, and J lies below it
                return
            here = there

    def _point(self, w: NDArray[np.float64]) -> _Point:
        risk, by_score, C = self._bound._risk, self._bound._by_score, self._C
        scores = risk.scores(w)
        hinge = risk.hinge(scores)
        order = by_score.hinge(scores)
        objective = 0.5 * float(w @ w) + C * (hinge.value - order.value)
        return _Point(w, objective, hinge.value, C * by_score.cut(order).plane)

    def report(self, runs: list[_Run]) -> StageReport:
        """This run's solution, with what all of them took."""
        rounds = [report for run in runs for report in run._rounds]
        spans: dict[str, Span] = {}
        for report in rounds:
            for part, span in report.spans.items():
                spans[part] = spans.get(part, Span()) + span
        account = self._bound._by_score.account()
        spans["by score"] = sum((call.span for call in account.calls), Span()) + account.spans.parts["gradient"]
        last = self._rounds[-1]
        solution = Solution(
            w=self.best.w,
            risk=self.best.risk,
            certificate=self._certificate,
            state=self.state,
            iterations=sum(report.solution.iterations for report in rounds),
            planes=last.solution.planes,
            seconds=sum(report.solution.seconds for report in rounds),
        )
        calls = sum(report.oracle_calls for report in rounds) + len(account.calls)
        return StageReport("tight", last.oracle, calls, solution, spans, sum(report.qp_fallbacks for report in rounds))


def _gained_enough(majorant: float) -> Callable[[float, float], bool]:
    """Of a round that begins at this value."""
    return lambda primal, dual: primal - dual <= OPEN_SHARE * (majorant - primal)
