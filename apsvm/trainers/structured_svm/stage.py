"""Common parts of the structured trainers: data, settings, observers, and a stage, which is a solver with a log."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from apsvm._support.clock import Span, Spans
from apsvm._support.log import Log, NoLog, span_fields
from apsvm._support.types import JsonDict, JsonObject
from apsvm.risk import Account, OracleCall
from apsvm.solvers.cutting_plane import Constraints, CuttingPlaneIteration, CuttingPlaneSolution, Solver
from apsvm.solvers.line_search import AfterLineSearch, AtTheQPsPoint, Cutter
from apsvm.solvers.qp import BACKENDS
from apsvm.solvers.quasi_newton import DescentStep
from apsvm.solvers.run import never
from apsvm.solvers.score_space import ScoreFunction
from apsvm.solvers.state import State
from apsvm.trainers.base import Progress, Watch, unseen
from apsvm.trainers.structured_svm.settings import StructuredSettings

#: Cutters by the name of ``--solver``.
CUTTERS: dict[str, Callable[[ScoreFunction], Cutter]] = {
    "line-search": AfterLineSearch,
    "cutting-plane": AtTheQPsPoint,
}


class AccountedFunction(ScoreFunction, Protocol):
    """A score function that records its work."""

    def account(self) -> Account: ...


#: Columns of the display.
_COLUMNS = {
    "iter": ">6d", "primal": ">14.7g", "dual": ">14.7g", "gap": ">11.4g", "planes": ">7d", "seconds": ">9.2f",
}  # fmt: skip


#: Longest pause of the display during a round or a layer.
SECONDS_UNSEEN = 2.0


def bounds_line(
    stage: str, C: float, iteration: int, primal: float, dual: float, gap: float, planes: int, seconds: float
) -> Progress:
    """Display line of an iteration; without a lower bound the gap is infinite. ``seconds``: of the stage."""
    is_bounded = gap < math.inf
    values = {
        "iter": iteration,
        "primal": primal,
        "dual": dual if is_bounded else None,
        "gap": gap if is_bounded else None,
        "planes": planes if is_bounded else None,
        "seconds": seconds,
    }
    return Progress(f"{stage} C={C:g}", _COLUMNS, values)


@dataclass(frozen=True, slots=True)
class StageReport:
    """Report of one run of the solver, or of several in concave-convex rounds: solution, time by part, and number of QP
    fallbacks."""

    name: str
    oracle: str
    oracle_calls: int
    solution: CuttingPlaneSolution
    spans: dict[str, Span]
    qp_fallbacks: int


@dataclass(frozen=True, slots=True)
class Trained:
    """Result of a training.

    Attributes
    ----------
    w : (dimension,) float64, the bias weight last if there is one
    stages : one report a stage; the last one produced w
    exact : False if the solved problem only approximates that of the loss
    queries, queries_skipped : numbers of queries in the risk and outside
    notes : remarks for the user on the data
    hinge_objective : for the tight bound, the minimum of the hinge's objective, to 30 ε
    relative_bound : bound on the loss divided by its value at w = 0; None if the two are not comparable
    C : of the training; origin_of_C : description of the default C
    """

    w: NDArray[np.float64]
    stages: list[StageReport]
    exact: bool
    queries: int
    queries_skipped: int
    notes: list[str] = field(default_factory=list)
    hinge_objective: float | None = None
    relative_bound: float | None = None
    C: float = 0.0
    origin_of_C: str = ""

    @property
    def solution(self) -> CuttingPlaneSolution:
        return self.stages[-1].solution

    @property
    def state(self) -> State:
        """State of the first stage that did not converge, else CONVERGED."""
        stopped = (stage.solution.state for stage in self.stages)
        return next((state for state in stopped if state is not State.CONVERGED), State.CONVERGED)


class Stage:
    """A solver for one convex risk, with its log and progress: every oracle call and iteration is recorded.

    start : (dimension,) float64, start of the first run; None: 0
    """

    def __init__(
        self,
        risk: AccountedFunction,
        dimension: int,
        settings: StructuredSettings,
        watch: Watch,
        *,
        oracle: str,
        start: NDArray[np.float64] | None = None,
        constraints: Constraints | None = None,
    ) -> None:
        self._risk = risk
        self._settings = settings
        self._watch = watch
        self.oracle = oracle
        self._start = np.zeros(dimension) if start is None else start
        self._constraints = constraints
        self._cutter = CUTTERS[settings.solver](risk)
        self.begin()

    def begin(self) -> None:
        """Resets: the next run begins at the first start, without planes."""
        self._cutter.restart()
        backend = BACKENDS[self._settings.qp]()
        self._solver = Solver(self._cutter, self._start.size, backend, start=self._start, constraints=self._constraints)

    def restart(self, point: NDArray[np.float64]) -> None:
        """The next run starts from ``point`` (dimension,)."""
        self._solver.restart(point)

    def move(self, change: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
        """Adapts the planes to a changed risk: see ``Solver.move``."""
        self._solver.move(change)

    def run(
        self,
        name: str,
        C: float,
        *,
        seconds_used: float = 0.0,
        slackness: float = 1.0,
        centre: NDArray[np.float64] | None = None,
        good_enough: Callable[[float, float], bool] = never,
        is_shown: bool = True,
    ) -> StageReport:
        """Minimise ½‖w‖² − centre·w + C·risk(w).

        Parameters
        ----------
        name : in logs and on the display
        seconds_used : part of the time limit already used
        slackness : multiple of ε that suffices, besides ``good_enough`` (``Solver.minimise``)
        is_shown : True to display every iteration, not one every ``SECONDS_UNSEEN``; the log has all of them
        """
        spans, qp = Spans(), Span()
        fallbacks = calls = 0
        seen, display_name = 0.0, name if is_shown else f"{name}, within a round"

        def accounted(qp: Span) -> tuple[list[OracleCall], Mapping[str, Span]]:
            nonlocal calls
            account = self._risk.account()
            calls += len(account.calls)
            parts = account.parts()
            spans_of_parts = {part: parts[part] for part in ("scores", "oracle", "gradient")} | {"qp": qp}
            spans.add(spans_of_parts)
            return account.calls, spans_of_parts

        def on_iteration(iteration: CuttingPlaneIteration) -> None:
            nonlocal fallbacks, qp, seen
            fallbacks += iteration.qp.fell_back is not None
            if not self._watch.is_followed:  # an account takes as long as the oracle on a hundred rows
                qp += iteration.qp_span
                return
            _log_iteration(self._watch.log, name, C, iteration, *accounted(iteration.qp_span))
            too_soon = not is_shown and iteration.seconds < seen + SECONDS_UNSEEN
            if too_soon or self._watch.progress is unseen:
                return
            bounds, seen = iteration.certificate, iteration.seconds
            line = bounds_line(
                display_name,
                C,
                iteration.index,
                bounds.primal,
                bounds.dual,
                bounds.gap,
                iteration.planes,
                iteration.seconds,
            )
            self._watch.progress(line)

        settings = self._settings
        solution = self._solver.minimise(
            C,
            epsilon=slackness * settings.epsilon,
            max_iterations=settings.max_iterations,
            time_limit=None if settings.time_limit is None else max(0.0, settings.time_limit - seconds_used),
            on_iteration=on_iteration,
            should_stop=self._watch.should_stop,
            centre=centre,
            good_enough=good_enough,
        )
        accounted(qp)
        return StageReport(name, self.oracle, calls, solution, spans, fallbacks)


def _log_iteration(
    log: Log, stage: str, C: float, iteration: CuttingPlaneIteration, calls: list[OracleCall], spans: Mapping[str, Span]
) -> None:
    if isinstance(log, NoLog):  # making a record takes as long as ranking a hundred rows
        return
    where: JsonDict = {"stage": stage, "C": C, "iteration": iteration.index}
    _log_calls(log, where, calls)
    log.write(
        "iteration",
        **where,
        primal=iteration.certificate.primal,
        dual=iteration.certificate.dual,
        gap=iteration.certificate.gap,
        planes=iteration.planes,
        oracle_calls=len(calls),
        qp=iteration.qp.backend,
        qp_gap=iteration.qp.gap,
        qp_fell_back=iteration.qp.fell_back,
        **span_fields(spans),
        seconds=iteration.seconds,
    )


def log_step(
    log: Log,
    stage: str,
    start: str,
    C: float,
    step: DescentStep,
    calls: list[OracleCall],
    spans: Mapping[str, Span],
    seconds: float,
) -> None:
    """Logs a quasi-Newton step of the descent from ``start``, and its oracle calls."""
    if isinstance(log, NoLog):
        return
    where: JsonDict = {"stage": stage, "start": start, "C": C, "step": step.number}
    _log_calls(log, where, calls)
    log.write("step", **where, objective=step.objective, oracle_calls=len(calls), **span_fields(spans), seconds=seconds)


def _log_calls(log: Log, where: JsonObject, calls: list[OracleCall]) -> None:
    for call in calls:
        log.write(
            "oracle",
            **where,
            oracle=call.oracle,
            n_pos=call.n_pos,
            n_neg=call.n_neg,
            queries=call.queries,
            ranks_evaluated=call.ranks_evaluated,
            violating=call.violating,
            risk=call.risk,
            loss=call.loss,
            **({} if call.ranks is None else {"ranks": call.ranks}),
            **span_fields({"oracle": call.span}),
        )
