"""The structured SVM of several components: to a stationary point of

    J(w) = ½‖w‖² + C·risk(m(w)),     m_i(w) = max over h = 1..H of w_h·x_i + b_h

A row is a bag of H copies of itself, one in each block of w (``data.component_rows``). As for bags (``risk.bags``),
concave-convex rounds hold each positive at its highest component.

Positives of several kinds lie in several regions, and a maximum joins regions. The start decides which: training begins
at clusters of the positives (``starts_of_components``), and keeps the clustering that ends lowest.

With the tight bound, quasi-Newton steps descend first, and rounds prove the end stationary. With the hinge there are
only rounds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm.trainers.base import TrainingSet
from apsvm.trainers.constant_feature import mean_deviation
from apsvm.trainers.structured_svm.starts_of_components import around


def with_components(data: TrainingSet, components: int) -> TrainingSet:
    """Rows for this many components, with a constant feature: their own, or one of size equal to the geometric mean of
    the deviations."""
    size = mean_deviation(data.rows.moments().variance)
    relearned = data.relearned
    return replace(
        data,
        rows=data.rows.with_bias(size),
        components=components,
        relearned=None if relearned is None else lambda training: relearned(training).with_bias(size),
    )


def weights_and_constants(data: TrainingSet, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """(H, features + 1) float64: weights and constant b_h of each component, from w (H·dimension,)."""
    blocks = w.reshape(data.components, -1).copy()
    blocks[:, -1] *= constant_feature(data)
    return blocks


def start_from(data: TrainingSet, start: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Starting point (H·dimension,) float64 from a model's weights: (H, features + 1), or (dimension,) for one
    component, with or without the constant feature."""
    if start.ndim == 2:
        blocks = start.copy()
        blocks[:, -1] /= constant_feature(data)
        return blocks.ravel()
    w = np.zeros(data.rows.dimension)
    w[: start.size] = start
    return around(data, w, seed)


def constant_feature(data: TrainingSet) -> float:
    """The value B of the rows' last feature."""
    last = np.zeros(data.rows.dimension)
    last[-1] = 1.0
    return float(data.rows.select(np.zeros(1, dtype=np.int64)).scores(last)[0])
