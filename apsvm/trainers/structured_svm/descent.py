"""Descent to a stationary point of J(w) = ½‖w‖² + C·r(Xw), for one score function r: the hinge or the ramp, of rows,
bags or components.

For convex r the cutting-plane solver finds the minimiser. Otherwise concave-convex rounds (``solvers.concave_convex``)
descend: r has a majoriser at w_t, r(s') ≤ h(s') − c·s' with equality at Xw_t (``score_space``), so that with a = Xᵀc

    J(w) ≤ ½‖w‖² + C·h(Xw) − C·a·w = ½‖w − C·a‖² + C·h(Xw) − ½‖C·a‖²,

The solver minimises this with its planes of h, which are valid for every centre C·a. Planes of bags are adapted when
held rows change. A round never raises J. The last one proves w_t stationary: no point lowers the convex majorant by
more than ε·C.

Before the rounds, quasi-Newton steps (``solvers.quasi_newton``) from several points pass small kinks at which rounds
would end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from apsvm._support.clock import Span, Spans
from apsvm.data.row_operator import ScoredRows
from apsvm.risk import Account
from apsvm.solvers import concave_convex, quasi_newton
from apsvm.solvers.certificate import tolerance_of
from apsvm.solvers.concave_convex import Majorant, Round, StationaryPoint
from apsvm.solvers.cutting_plane import CuttingPlaneSolution
from apsvm.solvers.quasi_newton import DescentStep
from apsvm.solvers.score_space import ScoreFunction
from apsvm.solvers.state import not_finite
from apsvm.trainers.base import Watch
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import AccountedFunction, Stage, StageReport, bounds_line, log_step

Weights: TypeAlias = NDArray[np.float64]

#: Lengths tried for a start: its own, times powers of the first factor while J falls, up to the second factor or its
#: inverse; then half and twice the best.
LENGTHEN, LONGEST = 4.0, 256.0
#: Fraction of ε·C that a quasi-Newton step must gain.
LEAST_GAIN = 0.01
#: Multiple of ε that ends a round. Looser rounds gain little, so that more are needed (25 instead of 4 for ndcg@10 on
#: 3,000 rows).
OF_ROUND = 0.5


def at_its_best_length(function: ScoreFunction, w: Weights, C: float) -> tuple[float, Weights]:
    """J (inf if not finite) and ``w`` at the tried length with the lowest J, since hinge and ramp depend on the
    length."""
    scores, scaled, slopes = function.scores(w), np.empty(function.n_scores), np.empty(function.n_scores)
    square = float(w.dot(w))

    def objective(length: float) -> float:
        np.multiply(scores, length, out=scaled)
        try:
            value = 0.5 * length**2 * square + C * function.tangent(scaled, slopes).value
        except FloatingPointError:
            return np.inf
        return value if math.isfinite(value) else np.inf

    best, lowest = 1.0, objective(1.0)
    for factor in (LENGTHEN, 1.0 / LENGTHEN):
        while 1.0 / LONGEST < best < LONGEST and (tried := objective(factor * best)) < lowest:
            best, lowest = factor * best, tried
    lowest, best = min(((lowest, best), *((objective(length), length) for length in (0.5 * best, 2.0 * best))))
    return lowest, best * w


def curvature_of(rows: ScoredRows) -> Weights:
    """(dimension,) float64: curvature of the loss in each weight, estimated by the variance of its feature."""
    variance = rows.moments().variance
    is_scaled = (variance > 0.0) & np.isfinite(variance)
    ascending = np.sort(variance[is_scaled])
    # np.median imports numpy.ma, which takes longer than training on a hundred rows.
    median = 0.5 * (ascending[(ascending.size - 1) // 2] + ascending[ascending.size // 2]) if ascending.size else 1.0
    curvature = np.full(rows.dimension, median)
    curvature[: variance.size][is_scaled] = variance[is_scaled]
    return curvature


def majorant(function: ScoreFunction, w: Weights, C: float) -> Majorant:
    """Majorant that touches J at ``w``. Raises FloatingPointError if it is not finite."""
    at_w = function.majoriser(function.scores(w))
    objective = 0.5 * float(w @ w) + C * at_w.value
    centre = np.zeros_like(w) if at_w.slopes is None else C * function.combine(at_w.slopes)
    lower_bound = C * function.convex.lower_bound - 0.5 * float(centre @ centre)
    if not np.isfinite(objective - lower_bound):
        raise not_finite("objective")
    return Majorant(w, objective, at_w.convex_value, centre, lower_bound, at_w.held)


@dataclass(slots=True)
class _Spent:
    """Time and work of a descent; ``before`` is the part of the time limit used before it began."""

    before: float
    began: float = field(default_factory=time.perf_counter)
    oracle_calls: int = 0
    iterations: int = 0
    spans: Spans = field(default_factory=Spans)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    @property
    def in_all(self) -> float:
        return self.before + self.seconds

    def add(self, oracle_calls: int, spans: Mapping[str, Span]) -> None:
        self.oracle_calls += oracle_calls
        self.spans.add(spans)


class Descent:
    """Descends J for a sequence of C.

    Parameters
    ----------
    name : in logs and on the display
    function : r
    stage : the solver, of r's convex part
    curved : rows whose variances estimate the curvature of r, for quasi-Newton steps before the rounds; None: no such
        steps
    descents : number of starts to descend from, those lowest at their best length
    slackness : multiple of ε allowed for a minimiser
    """

    def __init__(
        self,
        name: str,
        function: AccountedFunction,
        stage: Stage,
        settings: StructuredSettings,
        watch: Watch,
        *,
        curved: ScoredRows | None = None,
        descents: int = 1,
        slackness: float = 1.0,
    ) -> None:
        self.name, self.function, self.takes_steps = name, function, curved is not None
        self._stage, self._settings, self._watch, self._descents = stage, settings, watch, descents
        self._curved, self._slackness = curved, slackness

    def go_down(self, C: float, starts: Mapping[str, Weights], seconds_used: float) -> StageReport:
        """Finds the lowest stationary point below the ``starts``, log name → (dimension,); for convex r the minimiser,
        from the stage's current point.

        ``seconds_used`` : part of the time limit already used

        Raises
        ------
        FloatingPointError : J is not finite at the start of a descent
        """
        if self.function.convex is self.function:
            return self._stage.run(self.name, C, seconds_used=seconds_used, slackness=self._slackness)
        spent = _Spent(seconds_used)
        points = list(starts.values()) if not self.takes_steps else [self._lowest(starts, C, spent)]
        reports = [self._by_rounds(point, C, spent) for point in points]
        return min(reports, key=lambda report: report.solution.certificate.primal)

    def lowest(self, C: float, starts: Mapping[str, Weights], seconds_used: float) -> Weights:
        """End point of the best quasi-Newton descent, without the proof that it is stationary."""
        return self._lowest(starts, C, _Spent(seconds_used))

    @cached_property
    def _curvature(self) -> Weights:
        assert self._curved is not None
        return curvature_of(self._curved)

    def _lowest(self, starts: Mapping[str, Weights], C: float, spent: _Spent) -> Weights:
        """End point of the best descent; the first start if no descent is possible. On rows, descents from several
        starts end close to each other, so that one is enough."""
        first = next(iter(starts.values()))
        self._stage.restart(first)  # frees the memory of its score vectors for the descents
        begun = {start: at_its_best_length(self.function, point, C) for start, point in starts.items()}
        tried = sorted(begun, key=lambda start: begun[start][0])[: self._descents]
        ends: list[tuple[float, Weights]] = []
        for start in tried:
            try:
                w = self._by_steps(f"{self.name}, {start}", begun[start][1], C, spent)
                ends.append((majorant(self.function, w, C).objective, w))
            except FloatingPointError:
                continue
        return min(ends, key=lambda end: end[0])[1] if ends else first

    def _by_steps(self, name: str, point: Weights, C: float, spent: _Spent) -> Weights:
        """End point of quasi-Newton steps."""
        began, limit = spent.seconds, self._settings.time_limit

        def accounted() -> Account:
            account = self.function.account()
            spent.add(len(account.calls), account.parts())
            return account

        def on_step(step: DescentStep) -> None:
            spent.iterations += 1
            if not self._watch.is_followed:  # an account takes as long as the oracle on a hundred rows
                return
            account, seconds = accounted(), spent.seconds - began
            log_step(self._watch.log, self.name, name, C, step, account.calls, account.parts(), seconds)
            self._watch.progress(bounds_line(name, C, step.number, step.objective, -np.inf, np.inf, 0, seconds))

        w = quasi_newton.descend(
            self.function,
            C,
            point,
            curvature=self._curvature,
            enough=LEAST_GAIN * self._settings.epsilon * C,
            max_iterations=self._settings.max_iterations,
            on_step=on_step,
            should_stop=lambda: self._watch.should_stop() or (limit is not None and spent.in_all >= limit),
        )
        accounted()
        return w

    def _by_rounds(self, start: Weights, C: float, spent: _Spent) -> StageReport:
        """Result of concave-convex rounds."""
        began, reports = spent.seconds, list[StageReport]()

        def minimise(convex: Majorant, good_enough: Callable[[float, float], bool]) -> CuttingPlaneSolution:
            change = self.function.hold(convex.held)
            if change is not None:
                self._stage.move(change)
                self._stage.restart(convex.point)
            report = self._stage.run(
                self.name,
                C,
                seconds_used=spent.in_all,
                slackness=OF_ROUND,
                centre=convex.centre,
                good_enough=good_enough,
                is_shown=False,
            )
            reports.append(report)
            return report.solution

        def on_round(round_: Round) -> None:
            bounds, solved, seconds = round_.certificate, reports[-1].solution, spent.seconds - began
            self._watch.log.write(
                "round",
                stage=self.name,
                C=C,
                round=round_.number,
                objective=bounds.primal,
                dual=bounds.dual,
                gap=bounds.gap,
                iterations=solved.iterations,
                seconds=seconds,
            )
            self._watch.progress(
                bounds_line(self.name, C, round_.number, bounds.primal, bounds.dual, bounds.gap, solved.planes, seconds)
            )

        self._stage.restart(start)
        end = concave_convex.descend(
            lambda w: majorant(self.function, w, C),
            minimise,
            start,
            tolerance_of(self._settings.epsilon, C),
            on_round=on_round,
        )
        return self._report(end, reports, spent)

    def _report(self, end: StationaryPoint, rounds: list[StageReport], spent: _Spent) -> StageReport:
        """Solution with all time and work spent."""
        account = self.function.account()
        spent.add(len(account.calls), account.parts())
        for report in rounds:
            spent.add(report.oracle_calls, report.spans)
        solution = CuttingPlaneSolution(
            w=end.best.point,
            risk=end.best.risk,
            certificate=end.certificate,
            state=end.state,
            iterations=spent.iterations + sum(report.solution.iterations for report in rounds),
            planes=rounds[-1].solution.planes if rounds else 0,
            seconds=spent.seconds,
            trouble=end.trouble,
        )
        fallbacks = sum(report.qp_fallbacks for report in rounds)
        return StageReport(self.name, self._stage.oracle, spent.oracle_calls, solution, spent.spans, fallbacks)
