"""Starting points for training components: clusters of the positives, each separated from the negatives.

Lloyd's k-means clusters the positives, with features divided by their deviations. A logistic regression separates each
cluster from the negatives; its constant makes the components comparable:

    min over w, b of   ½‖w‖² + C·mean over the cluster and the negatives of log(1 + exp(−y·(w·x + b·B)))

Both use only scores and combinations of rows, and so also serve sparse, mapped and scaled rows. The squared distance of
a row to a centre m is ‖x‖², the same for all centres, minus 2·x·m − ‖m‖².

Negatives beyond a few thousand for each positive are sampled, which shifts all constants alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from apsvm._support.clock import Spans
from apsvm.data.row_operator import RowOperator
from apsvm.data.rows import Rows
from apsvm.risk.of_rows import FunctionOfRows
from apsvm.solvers import quasi_newton
from apsvm.solvers.score_space import ScoreFunction, Tangent
from apsvm.trainers.base import TrainingSet
from apsvm.trainers.structured_svm.descent import at_its_best_length, curvature_of
from apsvm.trainers.structured_svm.stage import StageReport

#: Number of clusterings, and of descents from their starts with the lowest J; only one if there is another starting
#: point.
CLUSTERINGS, DESCENTS = 4, 2
#: Negatives of a regression: minimum number, and number for each positive.
NEGATIVES, NEGATIVES_A_POSITIVE = 20_000, 10
#: Maximum number of rounds of k-means, and number of starts.
KMEANS_ROUNDS, KMEANS_BEGINNINGS = 50, 4
#: Maximum number of iterations of a logistic regression, and the gain that ends it; it is only a start.
REGRESSION_ITERATIONS, REGRESSION_GAIN = 100, 1e-4


class StartsOfComponents:
    """Starting points: the lowest of different clusterings, each at its best length, and the solution for the previous
    C.

    Parameters
    ----------
    data : for several components
    function : the function to minimise
    start : (H·dimension,) float64, replaces clusters of the positives
    second_start : (H·dimension,) float64, another starting point for the first C
    is_rough : begins at one clustering, and for later values of C only at the previous solution
    """

    def __init__(
        self,
        data: TrainingSet,
        function: ScoreFunction,
        seed: int,
        start: NDArray[np.float64] | None,
        second_start: NDArray[np.float64] | None,
        *,
        is_rough: bool,
    ) -> None:
        self._data, self._function, self._seed = data, function, seed
        self._second_start, self._is_rough = second_start, is_rough
        self._points = None if start is None else [start]

    def __call__(
        self, C: float, before: NDArray[np.float64] | None, last: StageReport | None
    ) -> dict[str, NDArray[np.float64]]:
        """Starting points for C by log name; ``before``: the solution for the previous C."""
        if before is not None and self._is_rough:
            return {"from the C before": before}
        if self._points is None:
            self._points = starts(self._data, 1 if self._is_rough else CLUSTERINGS, self._seed)
        ranked = sorted((at_its_best_length(self._function, point, C) for point in self._points), key=lambda at: at[0])
        points = [point for _, point in ranked]
        second = self._second_start if before is None else before
        points = points[:DESCENTS] if second is None else [points[0], second]
        return {f"from start {number}": point for number, point in enumerate(points, 1)}


def starts(data: TrainingSet, count: int, seed: int) -> list[NDArray[np.float64]]:
    """Starting points, (H·dimension,) float64 each, from the distinct ones among ``count`` clusterings with different
    initial rows."""
    rng = np.random.default_rng(seed)
    rows = data.rows.select(np.flatnonzero(data.target.relevant))
    beginning = _Beginning(data, rng)
    clusterings = [clusters(rows, data.components, rng, data.rows) for _ in range(count)]
    different = {_by_first_member(members).tobytes(): members for members in clusterings}
    return [beginning.at(members) for members in different.values()]


def _by_first_member(members: NDArray[np.int64]) -> NDArray[np.int64]:
    """The clusters renumbered by their first rows."""
    _, first, inverse = np.unique(members, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def around(data: TrainingSet, w: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Starting point (H·dimension,) float64: one component from the score by w (dimension,), and the others for
    clusters of the positives that it ranks below their median."""
    rng = np.random.default_rng(seed)
    positives = np.flatnonzero(data.target.relevant)
    scores = data.rows.scores(w)[positives]
    worse = positives[scores <= np.median(scores)]
    of_worse = clusters(data.rows.select(worse), data.components - 1, rng, data.rows)
    members = np.zeros(positives.size, dtype=np.int64)
    members[np.isin(positives, worse)] = 1 + of_worse
    return _Beginning(data, rng, w).at(members)


def clusters(rows: RowOperator, count: int, rng: np.random.Generator, all_rows: RowOperator) -> NDArray[np.int64]:
    """Cluster of each row, (m,) int64 in 0..count − 1, by the best of a few runs of k-means; features are divided by
    their deviations in ``all_rows``. With fewer rows than ``count`` the last clusters are empty."""
    weights = 1.0 / curvature_of(all_rows)
    weights[rows.features :] = 0.0
    runs = [_k_means(rows, min(count, len(rows)), weights, rng) for _ in range(KMEANS_BEGINNINGS)]
    return min(runs, key=lambda run: run[0])[1]


def _k_means(
    rows: RowOperator, count: int, weights: NDArray[np.float64], rng: np.random.Generator
) -> tuple[float, NDArray[np.int64]]:
    """Sum of squares, up to a constant, and the cluster of each row."""
    first = np.zeros((len(rows), count))
    first[rng.permutation(len(rows))[:count], np.arange(count)] = 1.0
    centres = rows.combine_all(first)
    members = np.full(len(rows), -1)
    value = np.inf
    for _ in range(KMEANS_ROUNDS):
        distances = np.einsum("hj,hj->h", centres * weights, centres) - 2.0 * rows.scores_of_all(centres * weights)
        nearest = distances.argmin(axis=1)
        value = float(distances.min(axis=1).sum())
        if np.array_equal(nearest, members):
            break
        members = nearest
        sizes = np.bincount(members, minlength=count)
        shares = np.zeros((len(rows), count))
        shares[np.arange(len(rows)), members] = 1.0 / sizes[members]
        centres = np.where(sizes[:, None] > 0, rows.combine_all(shares), centres)
    return value, members


@dataclass(slots=True)
class _LogisticLoss(FunctionOfRows):
    """mean of log(1 + exp(−y·s)); ``signs``: (m,) float64, y = ±1."""

    rows: RowOperator
    signs: NDArray[np.float64]
    _spans: Spans = field(default_factory=Spans)

    def tangent(self, scores: NDArray[np.float64], slopes: NDArray[np.float64]) -> Tangent:
        margins = self.signs * scores
        np.divide(-self.signs, self.n_scores * (1.0 + np.exp(np.minimum(margins, 700.0))), out=slopes)
        return Tangent(float(np.logaddexp(0.0, -margins).mean()))


class _Beginning:
    """Regressions of clusters against common negatives.

    Parameters
    ----------
    w : (dimension,) float64, direction of the first cluster's component; None: it is learned
    """

    def __init__(self, data: TrainingSet, rng: np.random.Generator, w: NDArray[np.float64] | None = None) -> None:
        relevant = data.target.relevant
        negatives = np.flatnonzero(~relevant)
        most = max(NEGATIVES, NEGATIVES_A_POSITIVE * int(relevant.sum()))
        if negatives.size > most:
            negatives = np.sort(rng.permutation(negatives)[:most])
        self._data = data
        self._positives = np.flatnonzero(relevant)
        self._negatives = negatives
        self._curvature = curvature_of(data.rows)
        self._w = w

    def at(self, members: NDArray[np.int64]) -> NDArray[np.float64]:
        """(H·dimension,) float64: the regression of each component's cluster; with fewer clusters, components share
        one.

        members : (positives,) int64, the cluster of each
        """
        names = np.unique(members)
        learned = [self._regression(self._positives[members == name]) for name in names]
        if self._w is not None:
            learned[0] = self._rescaled(self._w, self._positives[members == names[0]])
        return np.concatenate([learned[h % len(learned)] for h in range(self._data.components)])

    def _regression(self, positives: NDArray[np.int64]) -> NDArray[np.float64]:
        """(dimension,) float64."""
        rows, signs = self._against_negatives(positives)
        return _regression(rows, signs, self._curvature)

    def _rescaled(self, w: NDArray[np.float64], positives: NDArray[np.int64]) -> NDArray[np.float64]:
        """(dimension,) float64: the regression on the score w·x alone."""
        rows, signs = self._against_negatives(positives)
        constant = np.zeros_like(w)
        constant[-1] = 1.0
        both = np.stack([w, constant])
        features = rows.scores_of_all(both)
        largest = np.abs(features).max(axis=0)
        scale: NDArray[np.float64] = 1.0 / np.where(largest > 0.0, largest, 1.0)
        return (_regression(Rows(features * scale), signs, np.ones(2)) * scale) @ both

    def _against_negatives(self, positives: NDArray[np.int64]) -> tuple[RowOperator, NDArray[np.float64]]:
        """Rows of a cluster and the negatives, and ±1 for each."""
        rows = self._data.rows.select(np.concatenate([positives, self._negatives]))
        return rows, np.repeat([1.0, -1.0], [positives.size, self._negatives.size])


def _regression(rows: RowOperator, signs: NDArray[np.float64], curvature: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights (dimension,) float64; ``curvature`` (dimension,): roughly the features' variances."""
    C = len(rows) / float(np.exp(np.log(curvature).mean()))
    return quasi_newton.descend(
        _LogisticLoss(rows, signs),
        C,
        np.zeros(rows.dimension),
        enough=REGRESSION_GAIN * C,
        curvature=curvature,
        max_iterations=REGRESSION_ITERATIONS,
    )
