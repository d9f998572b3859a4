"""The structured SVM (Yue et al. 2007): minimise ½‖w‖² + C·r(Xw) with an exact oracle, certified by its duality gap.

r is the hinge, or the ramp of the tight bound, of the scores of rows, bags or components (``apsvm.risk``). Kinds of
rows differ only in r and in the starting points; ``problem`` does the rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from apsvm.oracles import make_oracle
from apsvm.risk import Ramp, Risk
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.descent import Descent, Weights
from apsvm.trainers.structured_svm.objective import risk_of
from apsvm.trainers.structured_svm.plan import Plan, values_of_C
from apsvm.trainers.structured_svm.problem import Problem
from apsvm.trainers.structured_svm.stage import Stage, Trained
from apsvm.trainers.structured_svm.starts_of_rows import HINGE_SLACKNESS, StartsOfRows

#: From this many values on, the hinge starts at the weights of its candidate, which saves a third of the iterations.
#: With fewer values it starts at 0, whose result within ε was better by .001 of test AP.
WORTH_A_START = 1 << 20


def train(plan: Plan, data: TrainingSet, watch: Watch, risk: Risk | None = None) -> Iterator[Trained]:
    """Solves a plan for a sequence of C, each from the planes and the solution of the one before; ascending values are
    fastest.

    Parameters
    ----------
    data : TrainingSet
        Rows, bags, or rows for several components (``components.with_components``).
    risk : Risk, optional
        Risk of the training set, if already built.

    Raises
    ------
    LossError
        An oracle that does not fit (a ValueError).
    SettingsError
        A multiple of the default C beyond float64 (a ValueError).
    NothingToRankError
        No query with both a positive and a negative row (a ValueError).
    FloatingPointError
        Feature values too large for the objective to be finite.
    """
    values, origin = values_of_C(plan, data)
    if not plan.is_rough:
        settings, listed = plan.settings, values[0] if len(values) == 1 else values
        watch.log.write("start", oracle=settings.oracle, C=listed, epsilon=settings.epsilon)
    began = time.perf_counter()
    if plan.settings.oracle == "appx":
        from apsvm.trainers.structured_svm.approximate import solve_approximately

        def solve(C: float, before: Weights | None) -> Trained:
            return solve_approximately(data, plan.loss, plan.settings, C, watch, began)
    else:
        problem = _problem(plan, data, watch, risk)

        def solve(C: float, before: Weights | None) -> Trained:
            return problem.solve(C, before, began)

    before: Weights | None = None
    for C in values:
        trained = solve(C, before)
        before = trained.w
        yield replace(trained, C=C, origin_of_C=origin)


def _problem(plan: Plan, data: TrainingSet, watch: Watch, risk: Risk | None) -> Problem:
    """Problem for this kind of rows."""
    if risk is None:
        oracle = make_oracle(plan.settings.oracle, plan.loss)
        risk = risk_of(data, plan.loss, oracle, count_ranks=plan.settings.log_ranks)
    if data.bags is not None:
        return _of_bags(plan, data, watch, risk)
    if data.components > 1:
        return _of_components(plan, data, watch, risk)
    return _of_rows(plan, data, watch, risk)


def _of_rows(plan: Plan, data: TrainingSet, watch: Watch, risk: Risk) -> Problem:
    """The hinge; with the tight bound, roughly, followed by quasi-Newton steps."""
    settings, is_tight = plan.settings, plan.settings.bound == "tight"
    start, second_start = plan.start, plan.second_start
    is_large = len(settings.C) == 1 and data.rows.n_values >= WORTH_A_START
    if start is None and is_large and not is_tight:
        start = second_start
    stage = _stage(plan, watch, risk, start)
    slackness = HINGE_SLACKNESS if is_tight else 1.0
    descents = [Descent("train", risk, stage, settings, watch, slackness=slackness)]
    curved = data.rows if plan.is_rough else risk.rows  # other plans have computed its moments
    if is_tight:
        descents.append(Descent("tight", Ramp(risk), stage, settings, watch, curved=curved))
    point = start if second_start is None else second_start
    starts = StartsOfRows(risk, curved, point, is_rough=plan.is_rough and is_tight)
    return Problem(plan, data, risk, stage, descents, starts)


def _of_bags(plan: Plan, data: TrainingSet, watch: Watch, risk: Risk) -> Problem:
    """Rounds from all starts; the tight bound adds rounds from the best result. Quasi-Newton steps would undo the
    choice of instances by annealing."""
    from apsvm.trainers.structured_svm.starts_of_bags import StartsOfBags

    stage = _stage(plan, watch, risk)
    descents = [Descent("latent", risk, stage, plan.settings, watch)]
    if plan.settings.bound == "tight":
        descents.append(Descent("tight", Ramp(risk), stage, plan.settings, watch))
    starts = StartsOfBags(data, plan.loss, plan.settings, watch, plan.start, is_rough=plan.is_rough)
    return Problem(plan, data, risk, stage, descents, starts)


def _of_components(plan: Plan, data: TrainingSet, watch: Watch, risk: Risk) -> Problem:
    """Rounds by the hinge from all starts; the tight bound adds quasi-Newton steps, and rounds from the best result."""
    from apsvm.trainers.structured_svm.starts_of_components import DESCENTS, StartsOfComponents

    stage = _stage(plan, watch, risk)
    descent = Descent("latent", risk, stage, plan.settings, watch)
    if plan.settings.bound == "tight":
        descent = Descent("tight", Ramp(risk), stage, plan.settings, watch, curved=risk.rows, descents=DESCENTS)
    is_rough = plan.is_rough and descent.takes_steps
    start, second_start = (plan.second_start, None) if plan.started_by else (plan.start, plan.second_start)
    starts = StartsOfComponents(data, descent.function, plan.settings.seed, start, second_start, is_rough=is_rough)
    return Problem(plan, data, risk, stage, [descent], starts)


def _stage(plan: Plan, watch: Watch, risk: Risk, start: Weights | None = None) -> Stage:
    """The solver of the risk's convex part, from ``start`` (dimension,) or 0."""
    dimension = risk.rows.dimension
    return Stage(risk.convex, dimension, plan.settings, watch, oracle=risk.oracle.name, start=start)
