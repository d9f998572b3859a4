"""The structured SVM (Yue et al. 2007): minimise ½‖w‖² + C·risk(w) with an exact oracle, certified by its duality gap.

With the 0-1 loss the same recipe is the papers' binary SVM baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apsvm.data.component_rows import ComponentRows
from apsvm.losses.base import Loss
from apsvm.oracles import make_oracle
from apsvm.oracles.base import AnyOracle
from apsvm.risk import Risk, loss_by_order, make_bag_risk, make_risk
from apsvm.solvers.cutting_plane import CuttingPlaneSolution
from apsvm.solvers.state import State
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.settings import NEARLY_NOTHING, StructuredSettings
from apsvm.trainers.structured_svm.stage import Stage, Trained
from apsvm.trainers.structured_svm.tight_bound import HINGE_SLACKNESS, TightBound, curvature_of

#: From so many values on a training begins at the weights of its candidate: the hinge, which takes two thirds of the
#: iterations from there (of few rows, where that is no matter, what it comes to from 0 within ε was better by .001 of
#: test AP), and the tight bound, whose descent from the hinge ended no lower on ijcnn1 and two made sets.
WORTH_A_START = 1 << 20
#: Δ of the training rows, as a share of the largest there is, from which their order is poor.
POOR = 0.9


def train_path(
    data: TrainingSet,
    loss: Loss,
    settings: StructuredSettings,
    values_of_C: Sequence[float],
    watch: Watch,
    start: NDArray[np.float64] | None = None,
    *,
    tight_start: NDArray[np.float64] | None = None,
    stage: str = "train",
) -> Iterator[Trained]:
    """Train for one C after another, each from the planes and the solution of those before; ascending values go
    fastest.

    Parameters
    ----------
    settings : all but ``C`` count
    values_of_C : > 0
    start : (dimension,) float64, where to begin
    tight_start : (dimension,) float64, where the tight bound begins besides, or of many values and one C alone;
        None: at ``start``
    stage : its name in logs

    Raises
    ------
    LossError : an oracle that does not fit (a ValueError)
    NothingToRankError : no query with both a positive and a negative row (a ValueError)
    FloatingPointError : feature values too large for the objective to be finite
    """
    oracle = make_oracle(settings.oracle, loss)
    risk = risk_of(data, loss, oracle, count_ranks=settings.log_ranks)
    solver = Stage(stage, risk, data.rows.dimension, settings, watch, oracle=oracle.name, start=start)
    tight = TightBound(solver, risk, settings, watch) if settings.bound == "tight" else None
    seconds_used, at_zero = 0.0, None
    is_large = data.rows.n_values >= WORTH_A_START
    for C in values_of_C:
        report = solver.run(C, seconds_used=seconds_used, slackness=1.0 if tight is None else HINGE_SLACKNESS)
        seconds_used += report.solution.seconds
        trained = Trained(report.solution.w, [report], oracle.exact, risk.queries, risk.queries_skipped)
        if tight is not None and trained.state is State.CONVERGED:
            trained = tight.tighten(
                trained,
                C,
                start if tight_start is None else tight_start,
                seconds_used=seconds_used,
                only_from_start=tight_start is not None and is_large and len(values_of_C) == 1,
            )
            seconds_used += trained.solution.seconds
        share = None
        if trained.state is State.CONVERGED:
            at_zero = risk_at_zero(risk) if at_zero is None else at_zero
            share = share_of_nothing(data, loss, at_zero, trained.solution, C)
        yield replace(trained, share_of_nothing=share)


def rough_path(
    risk: Risk,
    data: TrainingSet,
    settings: StructuredSettings,
    values_of_C: Sequence[float],
    watch: Watch,
    start: NDArray[np.float64] | None = None,
    *,
    is_hopeless: bool = False,
) -> Iterator[NDArray[np.float64]]:
    """The weights alone, for one C after another; the tight bound's are without the proof that they are stationary,
    each from those before.

    Parameters
    ----------
    risk : of the training set; what is not said here, and errors, as of ``train_path``
    start : for the tight bound the hinge's minimiser
    is_hopeless : whether that has found nothing
    """
    solver = Stage("hinge", risk, risk.rows.dimension, settings, watch, oracle=risk.oracle.name, start=start)
    if settings.bound == "hinge":
        seconds_used = 0.0
        for C in values_of_C:
            solution = solver.run(C, seconds_used=seconds_used).solution
            seconds_used += solution.seconds
            yield solution.w
        return
    assert start is not None
    tight = TightBound(solver, risk, settings, watch, curvature=curvature_of(data.rows))
    w = start
    for at, C in enumerate(values_of_C):
        w = tight.beyond(w, C) if is_hopeless and at == 0 else tight.next(w, C)
        yield w


def risk_of(data: TrainingSet, loss: Loss, oracle: AnyOracle, *, count_ranks: bool = False) -> Risk:
    """The risk of a training set, its rows stored as passes over them go fastest; the rest as of ``make_risk``."""
    rows, target = data.rows.for_many_passes(), data.target
    known: dict[str, Any] = {
        "groups": data.queries,
        "costs": data.costs,
        "query_weights": data.query_weights,
        "grades": target.grades,
        "count_ranks": count_ranks,
    }
    if data.components > 1:
        instances = ComponentRows(rows, data.components)
        return make_bag_risk(instances, instances.offsets, target.relevant, loss, oracle, **known)
    return make_risk(rows, target.relevant, loss, oracle, **known)


def risk_at_zero(risk: Risk) -> float:
    """The risk at w = 0: the largest Δ there is."""
    value = risk.tangent(np.zeros(risk.n_scores), np.empty(risk.n_scores)).value
    risk.account()
    return value


def share_of_nothing(
    data: TrainingSet, loss: Loss, at_zero: float, solution: CuttingPlaneSolution, C: float
) -> float | None:
    """The bound at w as a share of its value ``at_zero``, for w = 0. None where training stopped early, and where the
    training rows are ranked well for all that: where w is short the bound is large, and the order may be good."""
    if solution.state is not State.CONVERGED:
        return None
    w = solution.w
    bound = (solution.certificate.primal - 0.5 * float(w @ w)) / C
    if not (at_zero > 0.0 and np.isfinite(bound)):
        return None
    share = bound / at_zero
    if share >= NEARLY_NOTHING and (loss.over_rankings or loss.over_labellings):
        order = loss_by_order(loss, data.scores(w), data.target, data.queries, data.query_weights)
        if order < POOR * at_zero:
            return None
    return share
