"""Starting points for training components: clusters of the positives, each separated from the negatives.

Lloyd's k-means of the positives, features divided by their deviations, and for each cluster a logistic regression
against the negatives, whose constants make the components comparable:

    min over w, b of   ½‖w‖² + C·mean over the cluster and the negatives of log(1 + exp(−y·(w·x + b·B)))

Both see rows through their scores and combinations alone, so that sparse, mapped and scaled rows are as good as any:
the square of a row's distance to a centre m is that row's own square, the same for all centres, less 2·x·m − ‖m‖².

Negatives beyond a few thousand for each positive are left out by lot, which moves all constants alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.data.row_operator import RowOperator
from apsvm.data.rows import Rows
from apsvm.solvers import quasi_newton
from apsvm.solvers.score_space import ArrayVectors, ScoreFunction, Tangent
from apsvm.trainers.base import TrainingSet
from apsvm.trainers.structured_svm.descent import at_its_best_length, curvature_of
from apsvm.trainers.structured_svm.stage import StageReport

#: Clusterings that are tried, and of their starts how many are descended from, those of the lowest J; one where there
#: is another point to descend from.
CLUSTERINGS, DESCENTS = 4, 2
#: Negatives that a regression looks at: at least this many, and this many for each positive.
NEGATIVES, NEGATIVES_A_POSITIVE = 20_000, 10
#: Rounds of k-means, at most, and of how many beginnings the best is taken.
KMEANS_ROUNDS, KMEANS_BEGINNINGS = 50, 4
#: Iterations of a logistic regression, at most, and the gain below which it ends: it is a start.
REGRESSION_ITERATIONS, REGRESSION_GAIN = 100, 1e-4


class StartsOfComponents:
    """The lowest points of different clusterings, each at its best length, and the solution for the C before.

    Parameters
    ----------
    data : for several components
    function : the function to minimise
    given : (H·dimension,) float64, a point that replaces clusters of the positives
    besides : (H·dimension,) float64, another point to begin at, for the first C
    is_rough : begins at one clustering, and later values of C at the C before alone
    """

    def __init__(
        self,
        data: TrainingSet,
        function: ScoreFunction[NDArray[np.float64]],
        seed: int,
        start: NDArray[np.float64] | None,
        besides: NDArray[np.float64] | None,
        *,
        is_rough: bool,
    ) -> None:
        self._data, self._function, self._seed = data, function, seed
        self._besides, self._is_rough = besides, is_rough
        # No cached property, whose lock other trainings, with which this one may share its passes, would wait for.
        self._points = None if start is None else [start]

    def __call__(
        self, C: float, before: NDArray[np.float64] | None, last: StageReport | None
    ) -> dict[str, NDArray[np.float64]]:
        """Points by what logs call them, for C; ``before``: the solution for the C before."""
        if before is not None and self._is_rough:
            return {"from the C before": before}
        if self._points is None:
            self._points = starts(self._data, 1 if self._is_rough else CLUSTERINGS, self._seed)
        ranked = sorted((at_its_best_length(self._function, point, C) for point in self._points), key=lambda at: at[0])
        points = [point for _, point in ranked]
        other = self._besides if before is None else before
        points = points[:DESCENTS] if other is None else [points[0], other]
        return {f"from start {number}": point for number, point in enumerate(points, 1)}


def starts(data: TrainingSet, count: int, seed: int) -> list[NDArray[np.float64]]:
    """Points to descend from, (H·dimension,) float64 each, of the different ones among ``count`` clusterings, which
    begin with other rows."""
    rng = np.random.default_rng(seed)
    rows = data.rows.select(np.flatnonzero(data.target.relevant))
    beginning = _Beginning(data, rng)
    clusterings = [clusters(rows, data.components, rng, data.rows) for _ in range(count)]
    different = {_by_first_member(members).tobytes(): members for members in clusterings}
    return [beginning.at(members) for members in different.values()]


def _by_first_member(members: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same clusters, numbered in the order of their first rows."""
    _, first, inverse = np.unique(members, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def around(data: TrainingSet, w: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """A point to descend from, (H·dimension,) float64: one component by the weights w (dimension,), as far as they say
    which row is better, and the others for clusters of the positives that it ranks below their median."""
    rng = np.random.default_rng(seed)
    positives = np.flatnonzero(data.target.relevant)
    scores = data.rows.scores(w)[positives]
    worse = positives[scores <= np.median(scores)]
    of_worse = clusters(data.rows.select(worse), data.components - 1, rng, data.rows)
    members = np.zeros(positives.size, dtype=np.int64)
    members[np.isin(positives, worse)] = 1 + of_worse
    return _Beginning(data, rng, w).at(members)


def clusters(rows: RowOperator, count: int, rng: np.random.Generator, all_rows: RowOperator) -> NDArray[np.int64]:
    """The cluster of each row, (m,) int64 in 0..count − 1, of the best of a few k-means; features are divided by their
    deviations in ``all_rows``. With fewer rows than ``count`` the last clusters are empty."""
    weights = 1.0 / curvature_of(all_rows)
    weights[rows.features :] = 0.0
    runs = [_k_means(rows, min(count, len(rows)), weights, rng) for _ in range(KMEANS_BEGINNINGS)]
    return min(runs, key=lambda run: run[0])[1]


def _k_means(
    rows: RowOperator, count: int, weights: NDArray[np.float64], rng: np.random.Generator
) -> tuple[float, NDArray[np.int64]]:
    """The sum of squares less what is the same for all clusterings, and each row's cluster."""
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
class _LogisticLoss(ScoreFunction[NDArray[np.float64]]):
    """mean of log(1 + exp(−y·s)); ``signs``: (m,) float64, y = ±1."""

    rows: RowOperator
    signs: NDArray[np.float64]

    @property
    def n_scores(self) -> int:
        return len(self.rows)

    @property
    def vectors(self) -> ArrayVectors:
        return ArrayVectors(self.n_scores)

    @property
    def lower_bound(self) -> float:
        return 0.0

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        return self.rows.scores(w, out)

    def tangent(self, scores: NDArray[np.float64], slopes: NDArray[np.float64]) -> Tangent:
        margins = self.signs * scores
        np.divide(-self.signs, self.n_scores * (1.0 + np.exp(np.minimum(margins, 700.0))), out=slopes)
        return Tangent(float(np.logaddexp(0.0, -margins).mean()))

    def combine(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.rows.combine(slopes)


class _Beginning:
    """Regressions of clusters against the same negatives.

    Parameters
    ----------
    w : (dimension,) float64, the first cluster's component goes the way of these weights; None: it is learned
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
        """(H·dimension,) float64: for each component its cluster's regression; where there are fewer clusters, several
        components have one.

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
        """(dimension,) float64: the regression on nothing but the score w·x."""
        rows, signs = self._against_negatives(positives)
        constant = np.zeros_like(w)
        constant[-1] = 1.0
        both = np.stack([w, constant])
        features = rows.scores_of_all(both)
        largest = np.abs(features).max(axis=0)
        scale: NDArray[np.float64] = 1.0 / np.where(largest > 0.0, largest, 1.0)
        return (_regression(Rows(features * scale), signs, np.ones(2)) * scale) @ both

    def _against_negatives(self, positives: NDArray[np.int64]) -> tuple[RowOperator, NDArray[np.float64]]:
        """The rows, and ±1 for each."""
        rows = self._data.rows.select(np.concatenate([positives, self._negatives]))
        return rows, np.repeat([1.0, -1.0], [positives.size, self._negatives.size])


def _regression(rows: RowOperator, signs: NDArray[np.float64], curvature: NDArray[np.float64]) -> NDArray[np.float64]:
    """(dimension,) float64; ``curvature`` (dimension,): about the features' variances."""
    C = len(rows) / float(np.exp(np.log(curvature).mean()))
    return quasi_newton.descend(
        _LogisticLoss(rows, signs),
        C,
        np.zeros(rows.dimension),
        enough=REGRESSION_GAIN * C,
        curvature=curvature,
        max_iterations=REGRESSION_ITERATIONS,
    )
