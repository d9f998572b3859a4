"""The structured SVM (Yue et al. 2007): minimise ½‖w‖² + C·risk(w) with an exact oracle, certified by its duality gap.

With the 0-1 loss the same recipe is the papers' binary SVM baseline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from apsvm.clock import Span
from apsvm.data.rows import Rows
from apsvm.losses import LOSSES
from apsvm.oracles import make_oracle
from apsvm.records import Log, NoLog, span_fields
from apsvm.risk import OracleCall, make_risk
from apsvm.solvers.cutting_plane import Constraints, Cut, Iteration, Solution, State, minimise
from apsvm.solvers.qp import BACKENDS


class CountedCut(Cut, Protocol):
    """A cut that says what it took."""

    @property
    def call(self) -> OracleCall: ...


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """rows : n rows; relevant : (n,) bool; groups : (n,) int64 or None, one query; costs : (n,) float64 or None."""

    rows: Rows
    relevant: NDArray[np.bool_]
    groups: NDArray[np.int64] | None = None
    costs: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked of a training; epsilon in units of the loss, time_limit in seconds."""

    loss: str = "ap"
    oracle: str = "auto"
    C: float = 1.0
    epsilon: float = 1e-3
    max_iterations: int = 10_000
    time_limit: float | None = None
    qp: str = "auto"


@dataclass(frozen=True, slots=True)
class Progress:
    """What a watcher sees of an iteration; seconds since the stage began."""

    stage: str
    iteration: int
    primal: float
    dual: float
    gap: float
    planes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Watch:
    """Who follows a training: the log, a progress display, and a way to stop it between iterations."""

    log: Log = field(default_factory=NoLog)
    progress: Callable[[Progress], None] = lambda progress: None
    should_stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class StageReport:
    """One run of the solver: its solution, the time of its parts, and how often the QP fell back."""

    name: str
    oracle: str
    solution: Solution
    spans: dict[str, Span]
    qp_fallbacks: int


@dataclass(frozen=True, slots=True)
class Trained:
    """w : (dimension,) float64, the bias weight last if there is one; stages : one report a stage, the last is w's;
    exact : False where the problem solved only approximates the loss's; queries, queries_skipped : of the risk;
    notes : what the user should know of the data."""

    w: NDArray[np.float64]
    stages: list[StageReport]
    exact: bool
    queries: int
    queries_skipped: int
    notes: list[str] = field(default_factory=list)

    @property
    def solution(self) -> Solution:
        return self.stages[-1].solution

    @property
    def state(self) -> State:
        """Of the first stage that stopped short, or of the last."""
        stopped = (stage.solution.state for stage in self.stages)
        return next((state for state in stopped if state is not State.CONVERGED), State.CONVERGED)


def train_structured_svm(data: TrainingSet, settings: Settings, watch: Watch) -> Trained:
    """Train on ``data``.

    Raises
    ------
    UnknownNameError, LossError : a loss, oracle or backend that does not exist or does not fit (both ValueErrors)
    NothingToRankError : no query with both a positive and a negative row (a ValueError)
    FloatingPointError : feature values too large for the objective to be finite
    """
    loss = LOSSES[settings.loss]()
    oracle = make_oracle(settings.oracle, loss)
    risk = make_risk(data.rows, data.relevant, loss, oracle, groups=data.groups, costs=data.costs)
    report = run_stage("train", risk, data.rows.dimension, settings, watch, oracle=oracle.name)
    return Trained(report.solution.w, [report], oracle.exact, risk.queries, risk.queries_skipped)


def run_stage(
    name: str,
    risk: Callable[[NDArray[np.float64]], CountedCut],
    dimension: int,
    settings: Settings,
    watch: Watch,
    *,
    oracle: str,
    seconds_used: float = 0.0,
    start: NDArray[np.float64] | None = None,
    constraints: Constraints | None = None,
) -> StageReport:
    """Minimise ½‖w‖² + C·risk(w), logging every oracle call and iteration; ``seconds_used`` of the time limit are
    gone already."""
    spans: dict[str, Span] = {}
    fallbacks = 0

    def on_iteration(iteration: Iteration[CountedCut]) -> None:
        nonlocal fallbacks
        fallbacks += iteration.qp.fell_back is not None
        for part, span in (*iteration.cut.call.spans.items(), ("qp", iteration.qp_span)):
            spans[part] = spans.get(part, Span()) + span
        _log_iteration(watch.log, name, iteration)
        bounds = iteration.certificate
        watch.progress(
            Progress(name, iteration.index, bounds.primal, bounds.dual, bounds.gap, iteration.planes, iteration.seconds)
        )

    limit = None if settings.time_limit is None else max(0.0, settings.time_limit - seconds_used)
    solution = minimise(
        risk,
        dimension,
        settings.C,
        BACKENDS[settings.qp](),
        epsilon=settings.epsilon,
        max_iterations=settings.max_iterations,
        time_limit=limit,
        start=start,
        constraints=constraints,
        on_iteration=on_iteration,
        should_stop=watch.should_stop,
    )
    return StageReport(name, oracle, solution, spans, fallbacks)


def _log_iteration(log: Log, stage: str, iteration: Iteration[CountedCut]) -> None:
    call = iteration.cut.call
    where: dict[str, Any] = {"stage": stage, "iteration": iteration.index}
    log.write(
        "oracle",
        **where,
        oracle=call.oracle,
        n_pos=call.n_pos,
        n_neg=call.n_neg,
        queries=call.queries,
        ranks_evaluated=call.ranks_evaluated,
        violating=call.violating,
        risk=iteration.cut.value,
        loss=iteration.cut.offset,
        **span_fields(call.spans),
    )
    log.write(
        "iteration",
        **where,
        primal=iteration.certificate.primal,
        dual=iteration.certificate.dual,
        gap=iteration.certificate.gap,
        planes=iteration.planes,
        qp=iteration.qp.backend,
        qp_gap=iteration.qp.gap,
        qp_fell_back=iteration.qp.fell_back,
        **span_fields({"qp": iteration.qp_span}),
        seconds=iteration.seconds,
    )
