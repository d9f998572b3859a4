"""RankNCG (Raykar, Duraiswami, Krishnapuram 2008): a linear ranker that maximises a smooth lower bound on the
generalised Wilcoxon-Mann-Whitney statistic, in time linear in the rows.

    J(w) = λ/2 ‖w‖² + mean over the pairs of ℓ(w·x_l − w·x_k)        x_l preferred to x_k

By default ℓ is the exact logistic loss, summed to rounding, and L-BFGS minimises it. The paper's own way is
objective="erfc", summation="fourier", optimizer="prcg", normalize="none" (a sum in the place of the mean).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.clock import Span
from apsvm.data.rows import Rows
from apsvm.records import span_fields
from apsvm.solvers.smooth import SEARCHES, Limits, SmoothEvaluation, SmoothIteration, SmoothSolution, minimise
from apsvm.solvers.state import State
from apsvm.trainers.pair_loss import make_pair_loss
from apsvm.trainers.preferences import Classes, PreferenceGraph
from apsvm.trainers.watch import Watcher

#: ``Settings.tolerance`` where none is given: of exact sums, and of a Fourier series.
TOLERANCE, TOLERANCE_OF_A_SERIES = 1e-5, 1e-3


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """rows : n rows; classes : of the n rows; groups : (n,) int64 or None, one query."""

    rows: Rows
    classes: Classes
    graph: PreferenceGraph
    groups: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked of a training.

    tolerance : the gradient's largest entry, relative to that at w = 0, at which it has converged
    accuracy : for summation "fourier": the largest error of a sum per unit of weight, ε in the paper
    regularisation : λ ≥ 0
    time_limit : seconds
    """

    objective: str = "logistic"
    summation: str = "auto"
    optimizer: str = "lbfgs"
    normalize: str = "pairs"
    regularisation: float = 1e-3
    tolerance: float | None = None
    accuracy: float = 1e-3
    max_iterations: int = 10_000
    time_limit: float | None = None

    @property
    def tolerance_used(self) -> float:
        if self.tolerance is not None:
            return self.tolerance
        return TOLERANCE_OF_A_SERIES if self.summation == "fourier" else TOLERANCE


Watch = Watcher[SmoothIteration]


@dataclass(frozen=True, slots=True)
class Trained:
    """w : (dimension,) float64, the bias weight last if there is one; solution : w's objective and gradient, computed
    afresh with exact sums, and how the search went; spans : the time of its parts."""

    w: NDArray[np.float64]
    solution: SmoothSolution
    pairs: int
    queries: int
    queries_skipped: int
    spans: dict[str, Span]

    @property
    def state(self) -> State:
        return self.solution.state


def train_rank_ncg(
    data: TrainingSet, settings: Settings, watch: Watch, start: NDArray[np.float64] | None = None
) -> Trained:
    """Train on ``data``, from the point ``start`` (dimension,) if given.

    Raises
    ------
    NoPairsError : no query has two rows of which one is preferred to the other (a ValueError)
    UnknownNameError : an optimizer that does not exist (a ValueError)
    ValueError : a Fourier series for another objective than erfc
    FloatingPointError : feature values too large for the objective to be finite
    """
    loss = make_pair_loss(
        data.rows.for_many_passes(),
        data.classes,
        data.graph,
        data.groups,
        objective=settings.objective,
        summation=settings.summation,
        accuracy=settings.accuracy,
        normalize=settings.normalize,
    )
    spans: dict[str, Span] = {}

    def taken() -> dict[str, Span]:
        parts = loss.spans().parts
        for part, span in parts.items():
            spans[part] = spans.get(part, Span()) + span
        return parts

    def on_evaluation(evaluation: SmoothEvaluation) -> None:
        watch.log.write(
            "evaluation",
            iteration=evaluation.iteration,
            evaluation=evaluation.index,
            value=evaluation.objective,
            gradient_norm=evaluation.gradient_norm,
            step=evaluation.step,
            slope=evaluation.slope,
            **span_fields(taken()),
        )

    def on_iteration(iteration: SmoothIteration) -> None:
        watch.log.write(
            "iteration",
            iteration=iteration.index,
            value=iteration.objective,
            gradient_norm=iteration.gradient_norm,
            evaluations=iteration.evaluations,
            seconds=iteration.seconds,
        )
        watch.progress(iteration)

    limits = Limits(settings.tolerance_used, settings.max_iterations, settings.time_limit, watch.should_stop)
    search = SEARCHES[settings.optimizer]()
    solution = minimise(
        loss,
        data.rows.dimension,
        settings.regularisation,
        search,
        limits,
        start=start,
        on_evaluation=on_evaluation,
        on_iteration=on_iteration,
    )
    taken()
    return Trained(solution.w, solution, loss.pairs, loss.queries, loss.queries_skipped, spans)
