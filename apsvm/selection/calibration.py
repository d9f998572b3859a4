"""Fits probabilities to scores of held-out rows (``selection.thresholds``).

Isotonic regression is the non-decreasing function with the least squared error, linear between its corners as in
scikit-learn's ``IsotonicRegression``. It follows any curve but needs many positives. Platt's function p = 1 / (1 +
exp(−(a·s + b))) has two parameters, fitted by maximum likelihood to the targets (P + 1)/(P + 2) and 1/(N + 2) for P
positives and N negatives: J. Platt, "Probabilistic outputs for support vector machines", 1999. O(n log n) and O(n).

Both are clipped to what the held-out rows support. If n rows are all positive, the next one is positive with
probability 1 − 1/(n + 2) by Laplace's rule: this is the upper bound for the last block of isotonic regression, of n
rows, and 1/(m + 2) is the lower bound for its first, of m rows. If a class is rare, a few rows of the other are no
surprise: with the share π of positives the bounds are 1 − min(1, 2(1 − π))/(n + 2) and min(1, 2π)/(m + 2). Platt's
function is also constant beyond the lowest and the highest held-out score.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm._support.types import JsonDict
from apsvm.models.header import Calibration

#: Values of ``--calibrate``.
METHODS = ("auto", "isotonic", "platt")
#: Smallest number of positives and of negatives for isotonic regression by ``auto``: with fewer, its steps are those of
#: single rows.
ENOUGH_FOR_ISOTONIC = 200


def calibrated(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_], method: str, *, held_out: str = ""
) -> Calibration:
    """Fits probabilities to the scores of held-out rows.

    Parameters
    ----------
    scores : (n,) float64, finite
    relevant : (n,) bool, with both classes
    method : one of ``METHODS``
    held_out : description of the rows
    """
    positives = int(relevant.sum())
    fewer = min(positives, relevant.size - positives)
    if method == "auto":
        method = "isotonic" if fewer >= ENOUGH_FOR_ISOTONIC else "platt"
    common: JsonDict = {"method": method, "held_out": held_out, "rows": relevant.size, "positives": positives}
    corners, values, (first, last) = isotonic(scores, relevant)
    share = positives / relevant.size
    lower, upper = min(1.0, 2.0 * share) / (first + 2), 1.0 - min(1.0, 2.0 * (1.0 - share)) / (last + 2)
    if method == "isotonic":
        clipped = np.clip(values, lower, upper)
        return Calibration(**common, scores=tuple(corners.tolist()), probabilities=tuple(clipped.tolist()))
    slope, offset = platt(scores, relevant)
    fitted = Calibration(**common, slope=slope, offset=offset)
    low, high = np.sort(fitted.probability(np.array([scores.min(), scores.max()]))).tolist()
    return replace(fitted, lower=max(lower, low), upper=min(upper, high))


def isotonic(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[int, int]]:
    """Isotonic regression of ``relevant`` (n,) on the scores (n,). Returns the corners (k,), ascending, and the values
    there (k,), both float64; the function is constant beyond them. Also returns the numbers of rows with the lowest
    and the highest value."""
    from scipy.optimize import isotonic_regression

    places, of_row = np.unique(scores, return_inverse=True)
    count = np.bincount(of_row)
    values = isotonic_regression(np.bincount(of_row, weights=relevant) / count, weights=count).x
    # The first and the last place of a run of equal values are corners.
    changes = np.flatnonzero(np.diff(values))
    kept = np.union1d(np.append(changes + 1, 0), np.append(changes, places.size - 1))
    first, last = (int(count[values == end].sum()) for end in (values[0], values[-1]))
    return places[kept], np.clip(values[kept], 0.0, 1.0), (first, last)


def platt(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope a and offset b of the maximum-likelihood p = 1 / (1 + exp(−(a·s + b))) for scores s as they are given. They
    are standardised inside the fit.

    Raises
    ------
    ValueError : all rows are of one class
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    n_pos = int(relevant.sum())
    n_neg = relevant.size - n_pos
    if not n_pos or not n_neg:
        raise ValueError("probabilities need rows of both classes")
    target = np.where(relevant, (n_pos + 1.0) / (n_pos + 2.0), 1.0 / (n_neg + 2.0))
    mean, deviation = float(scores.mean()), float(scores.std()) or 1.0
    z = np.stack([(scores - mean) / deviation, np.ones(scores.size)])

    def cost(line: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Mean of −log likelihood, log(1 + e^u) − target·u, and its gradient."""
        u = line @ z
        return float((np.logaddexp(0.0, u) - target * u).mean()), z @ (expit(u) - target) / u.size

    def curvature(line: NDArray[np.float64]) -> NDArray[np.float64]:
        p = expit(line @ z)
        result: NDArray[np.float64] = (z * (p * (1.0 - p))) @ z.T / p.size
        return result

    start = np.array([0.0, np.log((n_pos + 1.0) / (n_neg + 1.0))])
    a, b = minimize(cost, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-10}).x
    slope = float(a) / deviation
    return slope, float(b) - slope * mean
