"""The structured SVM of several components: to a stationary point of

    J(w) = ½‖w‖² + C·risk(m(w)),     m_i(w) = max over h = 1..H of w_h·x_i + b_h

A row is a bag of H copies of itself, one in each block of w (``data.component_rows``), and what is said of bags
(``risk.bags``, ``latent``) holds: concave-convex rounds in which each positive is held at the component that leads it.

Positives of several kinds lie in several regions, and a maximum adds regions. Which ones is decided by where training
begins: clusters of the positives (``starts_of_components``), of several clusterings the one that ends lowest.

With the tight bound quasi-Newton steps go down through the maximum first, and the rounds prove the end stationary. With
the hinge there are rounds only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import Loss
from apsvm.oracles import make_oracle
from apsvm.risk import BagRisk
from apsvm.score_space import ScoreFunction
from apsvm.solvers.concave_convex import StationaryPoint
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.constant_feature import mean_deviation
from apsvm.trainers.structured_svm.latent import OfBags, TightOfBags
from apsvm.trainers.structured_svm.objective import risk_at_zero, risk_of, share_of_nothing
from apsvm.trainers.structured_svm.rounds import Rounds, Spent
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import Path, Stage, StageReport, Trained, along_path
from apsvm.trainers.structured_svm.starts_of_components import around, starts
from apsvm.trainers.structured_svm.tight_bound import TightBound, at_its_best_length

#: Clusterings that are tried, and of their starts how many are descended from, those of the lowest J; one where there
#: is another point to descend from.
CLUSTERINGS, DESCENTS = 4, 2


def with_components(data: TrainingSet, components: int) -> TrainingSet:
    """The rows for so many components, with a constant feature: the one that they have, or else one of the size of the
    others, the geometric mean of their deviations."""
    size = mean_deviation(data.rows.moments().variance)
    return replace(data, rows=data.rows.with_bias(size), components=components)


def weights_and_constants(data: TrainingSet, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """(H, features + 1) float64: each component's weights and its constant b_h, of w (H·dimension,)."""
    blocks = w.reshape(data.components, -1).copy()
    blocks[:, -1] *= _constant_feature(data)
    return blocks


def start_from(data: TrainingSet, given: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Where to begin, (H·dimension,) float64, from a model's weights: of as many components (H, features + 1), or of
    one, (dimension,), with or without the constant feature."""
    if given.ndim == 2:
        blocks = given.copy()
        blocks[:, -1] /= _constant_feature(data)
        return blocks.ravel()
    w = np.zeros(data.rows.dimension)
    w[: given.size] = given
    return around(data, w, seed)


def _constant_feature(data: TrainingSet) -> float:
    """The value B of the rows' last feature."""
    last = np.zeros(data.rows.dimension)
    last[-1] = 1.0
    return float(data.rows.select(np.zeros(1, dtype=np.int64)).scores(last)[0])


@dataclass(frozen=True, slots=True)
class _End:
    """Where the rounds ended, and their report."""

    report: StageReport
    point: StationaryPoint


def train_components(
    data: TrainingSet,
    loss: Loss,
    settings: StructuredSettings,
    values_of_C: Sequence[float],
    watch: Watch,
    start: NDArray[np.float64] | None = None,
    *,
    besides: NDArray[np.float64] | None = None,
) -> Iterator[Trained]:
    """Train for one C after another.

    Parameters
    ----------
    data : ``with_components``
    settings : all but ``C`` count; ``bound`` is hinge or tight
    values_of_C : > 0
    start : (H·dimension,) float64, where to begin instead of at clusters of the positives
    besides : (H·dimension,) float64, another point to begin at

    Raises
    ------
    LossError, NothingToRankError, FloatingPointError : as ``structured_svm.train_path``
    """
    training = _Training(data, loss, settings, watch, start)

    def solve(C: float, path: Path) -> tuple[Trained, None]:
        training.last = path.done[-1].w if path.done else besides
        return training.at(C), None

    yield from along_path(values_of_C, watch, f"components, {loss.name}, {settings.bound}", solve)


def rough_path_of_components(
    data: TrainingSet,
    loss: Loss,
    settings: StructuredSettings,
    values_of_C: Sequence[float],
    watch: Watch,
    start: NDArray[np.float64] | None = None,
) -> Iterator[NDArray[np.float64]]:
    """The weights alone, without the proof that they are stationary, after the first C from those before alone;
    parameters and errors as of ``train_components``."""
    training = _Training(data, loss, settings, watch, start)
    for C in values_of_C:
        yield training.rough(C)


class _Training:
    """The same risk for one C after another; parameters as of ``train_components``.

    Attributes
    ----------
    last : (H·dimension,) float64, another point to go down from: the solution for the C before
    """

    def __init__(
        self,
        data: TrainingSet,
        loss: Loss,
        settings: StructuredSettings,
        watch: Watch,
        start: NDArray[np.float64] | None,
    ) -> None:
        self._oracle = make_oracle(settings.oracle, loss)
        risk = risk_of(data, loss, self._oracle, count_ranks=settings.log_ranks)
        assert isinstance(risk, BagRisk)
        self._data, self._loss, self._settings, self._watch = data, loss, settings, watch
        self._risk = risk
        self._stage = Stage("components", risk, risk.rows.dimension, settings, watch, oracle=self._oracle.name)
        self._tight = TightBound(self._stage, risk, settings, watch) if settings.bound == "tight" else None
        self._problem = OfBags(self._stage, risk) if self._tight is None else TightOfBags(self._stage, risk)
        self._starts = None if start is None else [start]
        self.last: NDArray[np.float64] | None = None
        self._seconds_used = 0.0

    def at(self, C: float) -> Trained:
        """The stationary point for C."""
        self._risk.hold(None)
        self._stage.begin(np.zeros(self._risk.rows.dimension))
        spent = Spent(self._seconds_used, time.perf_counter())
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found
            if self._tight is None:
                end = min((self._rounds(C, point, spent) for point in self._begin(C)), key=_objective)
            else:
                end = self._rounds(C, self._lowest(self._tight, C, spent), spent)
        self.last = end.point.best.point
        self._seconds_used = spent.in_all
        risk = self._risk
        return Trained(
            self.last,
            [end.report],
            self._oracle.exact,
            risk.queries,
            risk.queries_skipped,
            share_of_nothing=share_of_nothing(self._data, self._loss, risk_at_zero(risk), end.report.solution, C),
        )

    def rough(self, C: float) -> NDArray[np.float64]:
        """(H·dimension,) float64: where the descents end."""
        spent = Spent(self._seconds_used, time.perf_counter())
        if self._tight is None:
            return self.at(C).w
        with np.errstate(over="ignore", invalid="ignore"):
            if self.last is None:
                self.last = self._lowest(self._tight, C, spent)
            else:
                with self._nobody_held():
                    self.last = self._tight.next(self.last, C, spent)
        self._seconds_used = spent.in_all
        return self.last

    def _begin(self, C: float) -> list[NDArray[np.float64]]:
        """Points to go down from: the lowest of the starts, each at its best length, and the solution for the C
        before."""
        if self._starts is None:
            self._starts = starts(self._data, CLUSTERINGS, self._settings.seed)
        function = self._risk if self._tight is None else self._tight.ramp
        with self._nobody_held():
            points = [at_its_best_length(function, point, C) for point in self._starts]
            points.sort(key=lambda point: self._value(function, point, C))
        return points[:DESCENTS] if self.last is None else [points[0], self.last]

    def _lowest(self, tight: TightBound, C: float, spent: Spent) -> NDArray[np.float64]:
        """The lowest of the points where descents end."""
        points = self._begin(C)
        with self._nobody_held():
            ends = [tight.next(point, C, spent) for point in points]
            return min(ends, key=lambda end: self._value(tight.ramp, end, C))

    def _rounds(self, C: float, start: NDArray[np.float64], spent: Spent) -> _End:
        rounds = Rounds(self._stage, self._problem, self._settings, self._watch, C, spent)
        point = rounds.descend(start)
        return _End(rounds.report(point), point)

    def _value(self, function: ScoreFunction[NDArray[np.float64]], w: NDArray[np.float64], C: float) -> float:
        """J(w)."""
        value = function.tangent(function.scores(w), function.vectors.empty()).value
        return 0.5 * float(w @ w) + C * value

    @contextmanager
    def _nobody_held(self) -> Iterator[None]:
        """Meanwhile each positive is led by whichever component is its best; then it is held again where the planes
        are that the stage has."""
        maxima = self._risk.maxima
        held, maxima.held = maxima.held, None
        try:
            yield
        finally:
            maxima.held = held


def _objective(end: _End) -> float:
    return end.point.certificate.primal
