"""The risk of a training set as a function of w, and its value at w = 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.data.component_rows import ComponentRows
from apsvm.losses.base import Loss
from apsvm.oracles.base import AnyOracle
from apsvm.oracles.layout import Layout, lay_out
from apsvm.risk import Risk, bind_risk, loss_by_order, make_bag_risk
from apsvm.solvers.cutting_plane import CuttingPlaneSolution
from apsvm.solvers.state import State
from apsvm.trainers.base import TrainingSet
from apsvm.trainers.structured_svm.settings import POOR_BOUND

#: Share of Δ's maximum from which the order of the training rows counts as poor.
POOR = 0.9


def layout_of(data: TrainingSet, loss: Loss) -> Layout:
    """Layout of a training set for the loss; raises as ``lay_out``."""
    target, weights = data.target, data.query_weights
    return lay_out(
        loss, target.relevant, groups=data.queries, costs=data.costs, query_weights=weights, grades=target.grades
    )


def risk_of(data: TrainingSet, loss: Loss, oracle: AnyOracle, *, count_ranks: bool = False) -> Risk:
    """Risk of a training set, with rows stored for fast passes. Raises as ``lay_out``."""
    rows, layout = data.rows.for_many_passes(), layout_of(data, loss)
    if data.bags is not None:
        return make_bag_risk(rows, data.bags, layout, loss, oracle, count_ranks=count_ranks)
    if data.components > 1:
        instances = ComponentRows(rows, data.components)
        return make_bag_risk(instances, instances.offsets, layout, loss, oracle, count_ranks=count_ranks)
    return bind_risk(rows.select(layout.members), layout, loss, oracle, count_ranks=count_ranks)


def risk_at_zero(risk: Risk) -> float:
    """The risk at w = 0: the maximum of Δ."""
    value = risk.tangent(np.zeros(risk.n_scores), np.empty(risk.n_scores)).value
    risk.account()
    return value


def relative_bound(
    data: TrainingSet, loss: Loss, at_zero: float, solution: CuttingPlaneSolution, C: float
) -> float | None:
    """The bound at w divided by its value at w = 0, ``at_zero``. None if training stopped early. Also None if the
    training rows are ranked well, since a short w has a large bound even then."""
    if solution.state is not State.CONVERGED:
        return None
    w = solution.w
    bound = (solution.certificate.primal - 0.5 * float(w @ w)) / C
    if not (at_zero > 0.0 and np.isfinite(bound)):
        return None
    share = bound / at_zero
    has_order = loss.over_rankings or loss.over_labellings
    if share >= POOR_BOUND and has_order and loss_of_order(data, loss, w) < POOR * at_zero:
        return None
    return share


def loss_of_order(data: TrainingSet, loss: Loss, w: NDArray[np.float64]) -> float:
    """Δ of the order by w, mean over the queries."""
    return loss_by_order(loss, data.scores(w), data.target, data.queries, data.query_weights)
