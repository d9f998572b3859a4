"""The structured SVM (Yue et al. 2007): minimise ½‖w‖² + C·risk(w) with an exact oracle, certified by its duality gap.

With the 0-1 loss the same recipe is the papers' binary SVM baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from apsvm.losses import make_loss
from apsvm.losses.base import LossError, LossOverRankings
from apsvm.oracles import make_oracle
from apsvm.risk import make_risk
from apsvm.solvers.state import State
from apsvm.trainers.stage import Settings, Stage, Trained, TrainingSet, Watch
from apsvm.trainers.tight_bound import HINGE_SLACKNESS, TightBound


def train_structured_svm(
    data: TrainingSet,
    settings: Settings,
    watch: Watch,
    start: NDArray[np.float64] | None = None,
    *,
    stage: str = "train",
) -> Trained:
    """Train on ``data``, from the point ``start`` (dimension,) if given; ``stage`` is its name in logs.

    Raises
    ------
    UnknownNameError, LossError : a loss, oracle or backend that does not exist or does not fit (both ValueErrors)
    NothingToRankError : no query with both a positive and a negative row (a ValueError)
    FloatingPointError : feature values too large for the objective to be finite
    """
    return next(train_path(data, settings, [settings.C], watch, start, stage=stage))


def train_path(
    data: TrainingSet,
    settings: Settings,
    values_of_C: Sequence[float],
    watch: Watch,
    start: NDArray[np.float64] | None = None,
    *,
    stage: str = "train",
) -> Iterator[Trained]:
    """Train for one C after another, each from the planes and the solution of those before; raises as
    ``train_structured_svm``. Ascending values go fastest."""
    loss = make_loss(settings.loss)
    oracle = make_oracle(settings.oracle, loss)
    risk = make_risk(
        data.rows.for_many_passes(),
        data.relevant,
        loss,
        oracle,
        groups=data.groups,
        costs=data.costs,
        query_weights=data.query_weights,
        grades=data.grades,
        count_ranks=settings.log_ranks,
    )
    if settings.bound == "tight" and not isinstance(loss, LossOverRankings):
        raise LossError(f"the tight bound needs a loss over rankings, and {loss.name!r} is none; the hinge serves it")
    solver = Stage(stage, risk, data.rows.dimension, settings, watch, oracle=oracle.name, start=start)
    tight = TightBound(solver, risk, settings, watch) if settings.bound == "tight" else None
    seconds_used = 0.0
    for C in values_of_C:
        report = solver.run(C, seconds_used=seconds_used, slackness=1.0 if tight is None else HINGE_SLACKNESS)
        seconds_used += report.solution.seconds
        trained = Trained(report.solution.w, [report], oracle.exact, risk.queries, risk.queries_skipped)
        if tight is not None and trained.state is State.CONVERGED:
            trained = tight.tighten(trained, C, start, seconds_used=seconds_used)
            seconds_used += trained.solution.seconds
        yield trained
