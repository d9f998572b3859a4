"""The tighter bound: from the hinge's minimiser, or any point, to a stationary point of

    J(w) = ½‖w‖² + C·{ h(w) − g(w) },     h(w) = max_R [Δ(R*, R) + w·Ψ(R) − w·Ψ(R*)],   g(w) = max_R w·Ψ(R) − w·Ψ(R*)

The ramp h − g (``risk.ramp``) lies between Δ of the ranking by score and the hinge h, and unlike h it gives a hopeless
positive no more weight than its loss.

First down by quasi-Newton steps (``solvers.quasi_newton``), which pass over the many small kinks where the other way to
go down would end. Then that way, concave-convex rounds (``solvers.concave_convex``): g(w) ≥ a·w, a = Xᵀc⁰ of the
ranking by score at w_t, with equality there, so that

    J(w) ≤ ½‖w‖² + C·h(w) − C·a·w = ½‖w − C·a‖² + C·h(w) − ½‖C·a‖²,

which the cutting-plane solver minimises about the centre C·a with the planes of h it has: they hold for every centre.
Each round may only lower J. The last one proves w_t stationary: no point lowers the convex majorant by more than ε·C.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.clock import Span
from apsvm.data.row_operator import ScoredRows
from apsvm.risk import OracleCall, Ramp, Risk
from apsvm.score_space import ScoreFunction
from apsvm.solvers import quasi_newton
from apsvm.solvers.concave_convex import Majorant
from apsvm.solvers.cutting_plane import CuttingPlaneSolution
from apsvm.solvers.quasi_newton import DescentStep
from apsvm.solvers.state import State, not_finite
from apsvm.trainers.base import Watch
from apsvm.trainers.structured_svm.rounds import Rounds, Spent
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import Stage, Trained, bounds_line, log_step

#: How many times ε is enough for the hinge's minimiser, where the descent begins.
HINGE_SLACKNESS = 30.0
#: A start is tried at its own length times these, and at the best of them times half and twice.
LENGTHS = tuple(4.0**k for k in range(-4, 5))
#: From this share of the risk at w = 0 on, the hinge's minimiser is no start to rely on.
HOPELESS = 0.9
#: Of ε·C, what a quasi-Newton step must gain.
LEAST_GAIN = 0.01


def majorant(ramp: Ramp, w: NDArray[np.float64], C: float) -> Majorant:
    """The one that touches J at ``w``; FloatingPointError where it is not finite."""
    scores, slopes = ramp.scores(w, ramp.vectors.empty()), ramp.vectors.empty()
    h = ramp.hinge.tangent(scores, slopes).value
    g = ramp.by_score.tangent(scores, slopes).value
    objective = 0.5 * float(w @ w) + C * (h - g)
    centre = C * ramp.by_score.combine(slopes)
    constant = -0.5 * float(centre @ centre)
    touching = Majorant(w, objective, h, centre, constant, constant + C * ramp.hinge.lower_bound)
    if not np.isfinite(touching.convex_value):
        raise not_finite("objective")
    return touching


def at_its_best_length(
    risk: ScoreFunction[NDArray[np.float64]], w: NDArray[np.float64], C: float
) -> NDArray[np.float64]:
    """``w`` at the length where J is lowest, of those tried: the hinge and the ramp are not indifferent to
    it."""
    scores = risk.scores(w, risk.vectors.empty())
    scaled, slopes = risk.vectors.empty(), risk.vectors.empty()
    square = float(w @ w)

    def objective(length: float) -> float:
        risk.vectors.scale(length, scores, scaled)
        try:
            value = 0.5 * length**2 * square + C * risk.tangent(scaled, slopes).value
        except FloatingPointError:
            return np.inf
        return value if np.isfinite(value) else np.inf

    coarse = min(LENGTHS, key=objective)
    return min((coarse, 0.5 * coarse, 2.0 * coarse), key=objective) * w


class _OfRows:
    """Rounds of the tight bound on rows (a ``RoundsProblem``): the stage's risk is every majorant's convex part."""

    name = "tight"

    def __init__(self, ramp: Ramp) -> None:
        self._ramp = ramp

    def majorise(self, w: NDArray[np.float64], C: float) -> Majorant:
        return majorant(self._ramp, w, C)

    def begin(self, majorant: Majorant) -> None:
        pass

    def account(self) -> tuple[list[OracleCall], dict[str, Span]]:
        return self._ramp.account()


class TightBound:
    """Tightens what ``stage`` has trained on ``risk``; one for a whole path of C.

    may_leave : False where the stage has constraints, which only its own solver keeps
    curvature : ``curvature_of`` the risk's rows, where it is known

    The ramp is made where the first descent begins: a training that stops before has no use for it.
    """

    def __init__(
        self,
        stage: Stage,
        risk: Risk,
        settings: StructuredSettings,
        watch: Watch,
        *,
        may_leave: bool = True,
        curvature: NDArray[np.float64] | None = None,
    ) -> None:
        self._stage = stage
        self._risk = risk
        self._settings = settings
        self._watch = watch
        self._may_leave = may_leave
        self._known_curvature = curvature
        self._at_zero: float | None = None

    @cached_property
    def ramp(self) -> Ramp:
        """What stands beside ½‖w‖²/C."""
        return Ramp(self._risk)

    @cached_property
    def _curvature(self) -> NDArray[np.float64]:
        return curvature_of(self._risk.rows) if self._known_curvature is None else self._known_curvature

    def tighten(
        self,
        hinge: Trained,
        C: float,
        start: NDArray[np.float64] | None = None,
        *,
        before: NDArray[np.float64] | None = None,
        seconds_used: float,
        only_from_start: bool = False,
    ) -> Trained:
        """The stationary point below the lowest that is reached from the hinge's solution, ``before``, that for the C
        before on a path, ``start``, and, where the hinge found nothing, the difference of the classes' means; or from
        ``start`` alone, unless the hinge found nothing: such data have low points that are far apart."""
        spent = Spent(seconds_used, time.perf_counter())
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found
                alone = only_from_start and start is not None and bool(start.any())
                lowest = (
                    self._lowest(hinge.solution, C, before, start, spent, alone=alone) if self._may_leave else hinge.w
                )
                rounds = Rounds(self._stage, _OfRows(self.ramp), self._settings, self._watch, C, spent)
                end = rounds.descend(lowest)
        except FloatingPointError as error:  # J has no finite point: the hinge's solution is what there is
            solution = replace(hinge.solution, state=State.NUMERICAL_TROUBLE, trouble=str(error))
            return replace(hinge, stages=[*hinge.stages[:-1], replace(hinge.stages[-1], solution=solution)])
        return replace(
            hinge,
            w=end.best.point,
            stages=[*hinge.stages, rounds.report(end)],
            hinge_objective=hinge.solution.certificate.primal,
        )

    def next(self, point: NDArray[np.float64], C: float, spent: Spent | None = None) -> NDArray[np.float64]:
        """Where the descent from ``point`` ends, without the proof; FloatingPointError if nowhere."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._descend("tight", point, C, spent or Spent(0.0, time.perf_counter()))

    def first(self, hinge: NDArray[np.float64], C: float) -> NDArray[np.float64]:
        """``next`` from the solution of the ``hinge``; where that has found nothing, the lower of the ends from there
        and from the difference of the classes' means."""
        risk = self.ramp.hinge
        with np.errstate(over="ignore", invalid="ignore"):
            value = risk.tangent(risk.scores(hinge), risk.vectors.empty()).value
            if value < HOPELESS * self._risk_at_zero():
                return self.next(hinge, C)
            starts = {"from the hinge": hinge, "from the means": self._difference_of_means()}
            return self._lowest_end(starts, C, Spent(0.0, time.perf_counter()))

    def _lowest(
        self,
        solution: CuttingPlaneSolution,
        C: float,
        before: NDArray[np.float64] | None,
        start: NDArray[np.float64] | None,
        spent: Spent,
        *,
        alone: bool = False,
    ) -> NDArray[np.float64]:
        """Where the lowest of the descents ends, or that from ``start`` ``alone``; a start from which there is none is
        left out."""
        self._stage.restart(solution.w)  # the descents need the memory of its score vectors
        is_hopeless = solution.certificate.primal >= HOPELESS * C * self._risk_at_zero()
        if alone and not is_hopeless:
            return self._lowest_end({"from the given start": start}, C, spent)
        starts = {"from the hinge": solution.w, "from the C before": before, "from the given start": start}
        if is_hopeless:
            starts["from the means"] = self._difference_of_means()
        return self._lowest_end(starts, C, spent)

    def _lowest_end(
        self, starts: Mapping[str, NDArray[np.float64] | None], C: float, spent: Spent
    ) -> NDArray[np.float64]:
        """Of the descents from those starts that there are; the first start, where there is no descent."""
        first, *others = starts
        ends = []
        for name in (first, *others):
            point = starts[name]
            if point is not None and (name == first or point.any()):
                try:
                    w = self._descend(f"tight, {name}", point, C, spent)
                    ends.append((majorant(self.ramp, w, C).objective, w))
                except FloatingPointError:
                    continue
        if ends:
            return min(ends, key=lambda end: end[0])[1]
        stays = starts[first]
        assert stays is not None
        return stays

    def _make_room(self, point: NDArray[np.float64]) -> None:
        """Gives back what the descents need: the solver's score vectors, as it will begin anew, at ``point`` or another
        one, and what passes over the rows took."""
        self._stage.restart(point)
        _ = self._curvature
        _kernels.give_back_memory()

    def _risk_at_zero(self) -> float:
        if self._at_zero is None:
            vectors = self.ramp.vectors
            self._at_zero = self.ramp.hinge.tangent(np.zeros(self.ramp.n_scores), vectors.empty()).value
        return self._at_zero

    def _difference_of_means(self) -> NDArray[np.float64]:
        """The mean of the positives less that of the negatives, in each feature over its variance: the mean over the
        queries."""
        layout = self.ramp.hinge.layout
        counts = np.column_stack([layout.n_pos, layout.n_neg]).ravel()
        shares = np.column_stack([layout.shares, -layout.shares]).ravel()
        difference = self.ramp.combine(np.repeat(shares / np.maximum(counts, 1), counts))
        return difference / self._curvature

    def _descend(self, name: str, point: NDArray[np.float64], C: float, spent: Spent) -> NDArray[np.float64]:
        """By quasi-Newton steps."""
        began = spent.seconds

        def accounted() -> tuple[list[OracleCall], dict[str, Span]]:
            calls, spans = self.ramp.account()
            spent.add(len(calls), spans)
            return calls, spans

        def on_step(step: DescentStep) -> None:
            spent.iterations += 1
            if not self._watch.is_followed:  # an account takes as long as the oracle of a hundred rows
                return
            calls, spans = accounted()
            seconds = spent.seconds - began
            log_step(self._watch.log, "tight", name, C, step, calls, spans, seconds)
            self._watch.progress(bounds_line(name, C, step.number, step.objective, -np.inf, np.inf, 0, seconds))

        limit = self._settings.time_limit
        descended = quasi_newton.descend(
            self.ramp,
            C,
            at_its_best_length(self.ramp, point, C),
            curvature=self._curvature,
            enough=LEAST_GAIN * self._settings.epsilon * C,
            max_iterations=self._settings.max_iterations,
            on_step=on_step,
            should_stop=lambda: self._watch.should_stop() or (limit is not None and spent.in_all >= limit),
        )
        accounted()
        return descended.w


def curvature_of(rows: ScoredRows) -> NDArray[np.float64]:
    """(dimension,) float64: how much the loss curves in each weight, as the variance of its feature."""
    variance = rows.moments().variance
    known = (variance > 0.0) & np.isfinite(variance)
    ascending = np.sort(variance[known])
    # np.median imports numpy.ma, which takes longer than a hundred rows do.
    median = 0.5 * (ascending[(ascending.size - 1) // 2] + ascending[ascending.size // 2]) if ascending.size else 1.0
    curvature = np.full(rows.dimension, median)
    curvature[: variance.size][known] = variance[known]
    return curvature
