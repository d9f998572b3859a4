"""RankNCG (Raykar, Duraiswami, Krishnapuram 2008): a linear ranker that maximises a smooth lower bound on the
generalised Wilcoxon-Mann-Whitney statistic, in time linear in the rows.

    J(w) = λ/2 ‖w‖² + mean over the pairs of ℓ(w·x_l − w·x_k)        x_l preferred to x_k

By default ℓ is the exact logistic loss, summed to rounding, and L-BFGS minimises it. The paper's own way is
objective="erfc", summation="fourier", optimizer="prcg", normalize="none" (a sum instead of the mean).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm._support.clock import Span, Spans
from apsvm._support.log import span_fields
from apsvm.data.row_operator import RowOperator
from apsvm.solvers.smooth import SEARCHES, Limits, SmoothEvaluation, SmoothIteration, SmoothSolution, minimise
from apsvm.solvers.state import State
from apsvm.trainers.base import Progress, Watch
from apsvm.trainers.rank_ncg.pair_loss import PairLoss, make_pair_loss
from apsvm.trainers.rank_ncg.preferences import Classes, PreferenceGraph
from apsvm.trainers.rank_ncg.settings import RankNCGSettings

#: Columns of the display.
_COLUMNS = {"iter": ">6d", "objective": ">14.7g", "gradient": ">11.4g", "evaluations": ">11d", "seconds": ">9.2f"}


@dataclass(frozen=True, slots=True)
class TrainedPairs:
    """w : (dimension,) float64, the bias weight last if there is one; solution : objective and gradient at w, computed
    afresh with exact sums, and course of the search; spans : time by part."""

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
    rows: RowOperator,
    classes: Classes,
    graph: PreferenceGraph,
    queries: NDArray[np.int64] | None,
    settings: RankNCGSettings,
    watch: Watch,
    start: NDArray[np.float64] | None = None,
    weights: NDArray[np.float64] | None = None,
) -> TrainedPairs:
    """Train a linear ranker on the pairs of the graph.

    Parameters
    ----------
    rows : n rows; classes : of the n rows; graph : preferences between classes
    queries : (n,) int64, rows of one query share a value; None: one query
    start : (dimension,) float64, the starting point
    weights : (n,) of the rows; None: all 1

    Raises
    ------
    NoPairsError : no query has a pair of rows with a preference (a ValueError)
    FloatingPointError : feature values too large for the objective to be finite
    """
    loss = make_pair_loss(
        rows.for_many_passes(),
        classes,
        graph,
        queries,
        objective=settings.objective,
        summation=settings.summation,
        accuracy=settings.accuracy,
        normalize=settings.normalize,
        weights=weights,
    )
    recorder = _Recorder(loss, watch)
    limits = Limits(settings.tolerance_used, settings.max_iterations, settings.time_limit, watch.should_stop)
    solution = minimise(
        loss,
        rows.dimension,
        settings.regularisation,
        SEARCHES[settings.optimizer](),
        limits,
        start=start,
        on_evaluation=recorder.on_evaluation,
        on_iteration=recorder.on_iteration,
    )
    recorder.take_spans()
    return TrainedPairs(solution.w, solution, loss.pairs, loss.queries, loss.queries_skipped, recorder.spans)


class _Recorder:
    """Logs evaluations and iterations, shows iterations, and sums times.

    Attributes
    ----------
    spans : part of an evaluation → total time
    """

    def __init__(self, loss: PairLoss, watch: Watch) -> None:
        self._loss, self._watch = loss, watch
        self.spans = Spans()

    def take_spans(self) -> Mapping[str, Span]:
        """The time of each part since the last call; it is added to ``spans``."""
        spans = self._loss.spans()
        self.spans.add(spans)
        return spans

    def on_evaluation(self, evaluation: SmoothEvaluation) -> None:
        self._watch.log.write(
            "evaluation",
            iteration=evaluation.iteration,
            evaluation=evaluation.index,
            value=evaluation.objective,
            gradient_norm=evaluation.gradient_norm,
            step=evaluation.step,
            slope=evaluation.slope,
            **span_fields(self.take_spans()),
        )

    def on_iteration(self, iteration: SmoothIteration) -> None:
        self._watch.log.write(
            "iteration",
            iteration=iteration.index,
            value=iteration.objective,
            gradient_norm=iteration.gradient_norm,
            evaluations=iteration.evaluations,
            seconds=iteration.seconds,
        )
        values = {
            "iter": iteration.index,
            "objective": iteration.objective,
            "gradient": iteration.gradient_norm,
            "evaluations": iteration.evaluations,
            "seconds": iteration.seconds,
        }
        self._watch.progress(Progress("", _COLUMNS, values))
