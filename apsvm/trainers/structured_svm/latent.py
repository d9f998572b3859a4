"""The structured SVM of bags: to a stationary point of

    J(w) = ½‖w‖² + C·risk(m(w)),     m_b(w) = max over the instances x of bag b of w·x

Concave-convex rounds (``solvers.concave_convex``; latent AP-SVM of Behl, Jawahar and Kumar 2014, MI-SVM with the 0-1
loss): each positive bag is held at its best instance, which makes the risk convex and lowers it nowhere, the exact
solver goes down, and the positives choose again. Planes are carried from round to round: one whose ranking and whose
negatives stay is a plane of the next problem too, once its positives are moved.

Where it ends hangs on where it begins (``starts_of_bags``): by default at the ends of two annealings, and the lower J
wins. The last round proves that no w lowers the convex majorant there by more than ε·C; a global optimum it is not.

With the tight bound the ramp takes the hinge's place, from the hinge's end and by rounds alone: quasi-Newton steps
leave the instances that annealing has found.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from apsvm.clock import Span
from apsvm.losses.base import Loss
from apsvm.oracles import make_oracle
from apsvm.oracles.base import AnyOracle
from apsvm.risk import BagRisk, OracleCall, Ramp, make_bag_risk
from apsvm.solvers.concave_convex import Majorant, StationaryPoint
from apsvm.solvers.state import State, not_finite
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.objective import risk_at_zero, share_of_nothing
from apsvm.trainers.structured_svm.rounds import Rounds, Spent
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import Path, Stage, StageReport, Trained, along_path
from apsvm.trainers.structured_svm.starts_of_bags import first_start, starts
from apsvm.trainers.structured_svm.tight_bound import majorant as majorant_of_ramp


@dataclass(frozen=True, slots=True)
class _Held(Majorant):
    """A majorant, and the rows at which it holds the positives."""

    rows: NDArray[np.int64]


class OfBags:
    """Rounds on bags (``rounds.RoundsProblem``) by the hinge."""

    name = "latent"

    def __init__(self, stage: Stage, risk: BagRisk) -> None:
        self._stage = stage
        self._risk = risk

    def majorise(self, w: NDArray[np.float64], C: float) -> _Held:
        risk = self._risk
        held, risk.maxima.held = risk.maxima.held, None
        try:
            scores = risk.scores(w)
            return self._touching(w, C, scores, risk.maxima.best_of_positives(scores))
        finally:
            risk.maxima.held = held

    def _touching(
        self, w: NDArray[np.float64], C: float, scores: NDArray[np.float64], rows: NDArray[np.int64]
    ) -> _Held:
        risk = self._risk
        value = risk.tangent(scores, risk.vectors.empty()).value
        objective = 0.5 * float(w @ w) + C * value
        if not np.isfinite(objective):
            raise not_finite("objective")
        return _Held(w, objective, value, np.zeros_like(w), 0.0, C * risk.lower_bound, rows)

    def begin(self, majorant: Majorant) -> None:
        assert isinstance(majorant, _Held)
        before = self._risk.maxima.held
        change = self._risk.hold(majorant.rows)
        if before is not None and not np.array_equal(before, majorant.rows):
            self._stage.move(change)
            self._stage.restart(majorant.point)

    def account(self) -> tuple[list[OracleCall], dict[str, Span]]:
        account = self._risk.account()
        spans = {part: account.spans.parts.get(part, Span()) for part in ("scores", "gradient")}
        spans["oracle"] = sum((call.span for call in account.calls), Span())
        return account.calls, spans


class TightOfBags(OfBags):
    """The same by the ramp."""

    name = "tight"

    def __init__(self, stage: Stage, risk: BagRisk) -> None:
        super().__init__(stage, risk)
        self._ramp = Ramp(risk)

    def _touching(
        self, w: NDArray[np.float64], C: float, scores: NDArray[np.float64], rows: NDArray[np.int64]
    ) -> _Held:
        touching = majorant_of_ramp(self._ramp, w, C)
        return _Held(
            touching.point,
            touching.objective,
            touching.risk,
            touching.centre,
            touching.constant,
            touching.lower_bound,
            rows,
        )

    def account(self) -> tuple[list[OracleCall], dict[str, Span]]:
        return self._ramp.account()


def train_bags(
    data: TrainingSet,
    loss: Loss,
    settings: StructuredSettings,
    values_of_C: Sequence[float],
    watch: Watch,
    start: NDArray[np.float64] | None = None,
) -> Iterator[Trained]:
    """Train on bags for one C after another.

    Parameters
    ----------
    data : with ``bags``; its target, queries and costs are the bags'
    settings : all but ``C`` count
    values_of_C : > 0
    start : (dimension,) float64, where to begin instead of ``settings.start``; only its order of a bag's rows may be
        right, and not its length

    Raises
    ------
    LossError, NothingToRankError, FloatingPointError : as ``structured_svm.train_path``
    """
    oracle = make_oracle(settings.oracle, loss)
    data = replace(data, rows=data.rows.for_many_passes())
    began = time.perf_counter()

    risk = bag_risk_of(data, loss, oracle, count_ranks=settings.log_ranks)
    solver = Stage("latent", risk, data.rows.dimension, settings, watch, oracle=oracle.name)

    def solve(C: float, path: Path) -> tuple[Trained, None]:
        risk.hold(None)
        solver.begin(np.zeros(data.rows.dimension))
        spent = Spent(time.perf_counter() - began, time.perf_counter())
        begins = starts(data, loss, settings, C, watch, start)
        begins += [path.done[-1].w] if path.done else []
        problem = OfBags(solver, risk)
        ends = [_descend(solver, problem, settings, watch, C, point, spent) for point in begins]
        report, end = min(ends, key=lambda one: one[1].certificate.primal)
        stages = [report]
        if settings.bound == "tight" and report.solution.state is State.CONVERGED:
            tight = TightOfBags(solver, risk)
            spent = Spent(spent.in_all, time.perf_counter())
            report, end = _descend(solver, tight, settings, watch, C, end.best.point, spent)
            stages.append(report)
        trained = Trained(
            end.best.point,
            stages,
            oracle.exact,
            risk.queries,
            risk.queries_skipped,
            hinge_objective=stages[0].solution.certificate.primal if len(stages) > 1 else None,
            share_of_nothing=share_of_nothing(data, loss, risk_at_zero(risk), report.solution, C),
        )
        return trained, None

    yield from along_path(values_of_C, watch, f"bags, {loss.name}, {settings.bound}", solve)


def rough_path_of_bags(
    data: TrainingSet,
    loss: Loss,
    settings: StructuredSettings,
    values_of_C: Sequence[float],
    watch: Watch,
    start: NDArray[np.float64] | None = None,
) -> Iterator[NDArray[np.float64]]:
    """The weights alone, from one annealing with the loss itself, at the first C; parameters and errors as of
    ``train_bags``."""
    if start is None:
        start = first_start(data, loss, settings, values_of_C[0], watch)
    for C in values_of_C:
        (trained,) = train_bags(data, loss, settings, [C], watch, start)
        start = trained.w
        yield start


def bag_risk_of(data: TrainingSet, loss: Loss, oracle: AnyOracle, *, count_ranks: bool) -> BagRisk:
    """The risk of a training set of bags; errors as of ``make_risk``."""
    assert data.bags is not None
    return make_bag_risk(
        data.rows,
        data.bags,
        data.target.relevant,
        loss,
        oracle,
        groups=data.queries,
        costs=data.costs,
        query_weights=data.query_weights,
        grades=data.target.grades,
        count_ranks=count_ranks,
    )


def _descend(
    stage: Stage,
    problem: OfBags,
    settings: StructuredSettings,
    watch: Watch,
    C: float,
    start: NDArray[np.float64],
    spent: Spent,
) -> tuple[StageReport, StationaryPoint]:
    rounds = Rounds(stage, problem, settings, watch, C, spent)
    end = rounds.descend(start)
    return rounds.report(end), end
