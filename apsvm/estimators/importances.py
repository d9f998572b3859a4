"""Importance of each column of X: its share of the deviations of what columns add to the scores of training rows
(``explain``); they add up to 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm._support.types import Matrix
from apsvm.data.moments import column_moments
from apsvm.models.base import Ranker

#: Rows looked at, evenly drawn.
MOST_ROWS = 1_000


def importances(model: Ranker, X: Matrix) -> NDArray[np.float64] | None:
    """Importance of each column on rows X (n, width), (n_features_in_,) float64. None where the map mixes all features
    at once, or bags are pooled."""
    if model.header.features.pool is not None or not model.explainable:
        return None
    n, widths = X.shape[0], model.column_widths()
    rows = X if n <= MOST_ROWS else X[np.linspace(0, n - 1, MOST_ROWS).astype(np.int64)]
    if model.feature_map is None and not model.unit_rows and widths.size == model.width:  # sparse rows stay sparse
        deviations = np.sqrt(column_moments(rows).variance)
        each = [np.abs(part.coef) * deviations for part in model.linear_parts()]
    else:
        try:
            contributions = [model.contributions(rows, component) for component in range(model.components)]
        except ValueError:
            return None
        each = [of_rows.dealt_to(widths).deviations()[:-1] for of_rows in contributions]
    result: NDArray[np.float64] = np.sum(each, axis=0)
    total = float(result.sum())
    return result / total if total > 0.0 else result
