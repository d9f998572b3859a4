"""The structured SVM (Yue et al. 2007): minimise ½‖w‖² + C·risk(w) with an exact oracle, certified by its duality gap.

With the 0-1 loss the same recipe is the papers' binary SVM baseline.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import Loss
from apsvm.oracles import make_oracle
from apsvm.risk import Risk
from apsvm.solvers.cutting_plane import WarmStart
from apsvm.solvers.state import State
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.settings import times
from apsvm.trainers.structured_svm.objective import risk_at_zero, risk_of, share_of_nothing
from apsvm.trainers.structured_svm.plan import Plan, values_of_C
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import Path, Stage, Trained, along_path
from apsvm.trainers.structured_svm.tight_bound import HINGE_SLACKNESS, TightBound, curvature_of

#: From so many values on a training begins at the weights of its candidate: the hinge, which takes two thirds of the
#: iterations from there (of few rows, where that is no matter, what it comes to from 0 within ε was better by .001 of
#: test AP), and the tight bound, whose descent from the hinge ended no lower on ijcnn1 and two made sets.
WORTH_A_START = 1 << 20


def train(plan: Plan, data: TrainingSet, watch: Watch, risk: Risk | None = None) -> Iterator[Trained]:
    """Solves a plan, for one C after another.

    Parameters
    ----------
    data : rows, bags, or rows for several components (``components.with_components``)
    risk : of the training set, where it is laid out already

    Raises
    ------
    LossError : an oracle that does not fit (a ValueError)
    SettingsError : a multiple of the default C beyond float64 (a ValueError)
    NothingToRankError : no query with both a positive and a negative row (a ValueError)
    FloatingPointError : feature values too large for the objective to be finite
    """
    values, origin = values_of_C(plan, data)
    if not plan.is_rough:
        settings, C = plan.settings, values[0] if len(values) == 1 else values
        watch.log.write("start", oracle=settings.oracle, C=C, epsilon=settings.epsilon)
    for given, C, trained in zip(plan.settings.C, values, _solved(plan, data, values, watch, risk), strict=False):
        yield replace(trained, C=C, origin_of_C=f"{times(given)}{origin}")


def _solved(
    plan: Plan,
    data: TrainingSet,
    values: Sequence[float],
    watch: Watch,
    risk: Risk | None,
) -> Iterator[Trained]:
    loss, settings, start, besides = plan.loss, plan.settings, plan.start, plan.besides
    if data.bags is not None:
        from apsvm.trainers.structured_svm.latent import rough_path_of_bags, train_bags

        if plan.is_rough:
            return _rough(rough_path_of_bags(data, loss, settings, values, watch, start))
        return train_bags(data, loss, settings, values, watch, start)
    if data.components > 1:
        from apsvm.trainers.structured_svm.components import rough_path_of_components, train_components

        if plan.is_rough:
            return _rough(rough_path_of_components(data, loss, settings, values, watch, start))
        if plan.started_by:
            start, besides = besides, None
        return train_components(data, loss, settings, values, watch, start, besides=besides)
    if settings.oracle == "appx":
        from apsvm.trainers.structured_svm.approximate import train_approximate

        return (train_approximate(data, loss, settings, C, watch) for C in values)
    if plan.is_rough:
        risk = risk or risk_of(data, loss, make_oracle(settings.oracle, loss))
        return _rough(rough_path(risk, data, settings, values, watch, start))
    if settings.bound == "hinge" and start is None and len(values) == 1 and data.rows.n_values >= WORTH_A_START:
        start = besides
    return train_path(data, loss, settings, values, watch, start, tight_start=besides)


def _rough(path: Iterator[NDArray[np.float64]]) -> Iterator[Trained]:
    """Weights without a certificate."""
    return (Trained(w, [], True, 0, 0) for w in path)


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
    stage_of_hinge = Stage(stage, risk, data.rows.dimension, settings, watch, oracle=oracle.name, start=start)
    tight = TightBound(stage_of_hinge, risk, settings, watch) if settings.bound == "tight" else None
    at_zero: float | None = None
    is_large = data.rows.n_values >= WORTH_A_START
    began = time.perf_counter()

    def solve(C: float, path: Path) -> tuple[Trained, WarmStart]:
        nonlocal at_zero
        before = path.done[-1].w if path.done else None
        if path.warm is not None:
            stage_of_hinge.begin(path.warm)
        seconds_used = time.perf_counter() - began
        report = stage_of_hinge.run(C, seconds_used=seconds_used, slackness=1.0 if tight is None else HINGE_SLACKNESS)
        trained = Trained(report.solution.w, [report], oracle.exact, risk.queries, risk.queries_skipped)
        if tight is not None and trained.state is State.CONVERGED:
            trained = tight.tighten(
                trained,
                C,
                start if tight_start is None else tight_start,
                before=before,
                seconds_used=time.perf_counter() - began,
                only_from_start=tight_start is not None and is_large and len(values_of_C) == 1,
            )
        share = None
        if trained.state is State.CONVERGED:
            at_zero = risk_at_zero(risk) if at_zero is None else at_zero
            share = share_of_nothing(data, loss, at_zero, trained.solution, C)
        return replace(trained, share_of_nothing=share), stage_of_hinge.warm_start

    yield from along_path(values_of_C, watch, f"{stage}, {loss.name}, {settings.bound}", solve)


def rough_path(
    risk: Risk,
    data: TrainingSet,
    settings: StructuredSettings,
    values_of_C: Sequence[float],
    watch: Watch,
    start: NDArray[np.float64] | None = None,
) -> Iterator[NDArray[np.float64]]:
    """The weights alone, for one C after another; the tight bound's are without the proof that they are stationary,
    each from those before.

    Parameters
    ----------
    risk : of the training set; what is not said here, and errors, as of ``train_path``
    start : for the tight bound the hinge's minimiser; where that has found nothing, the descent begins at the
        difference of the classes' means as well
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
        w = tight.next(w, C) if at else tight.first(w, C)
        yield w
