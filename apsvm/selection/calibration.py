"""Scores as probabilities, fitted to rows held out (``selection.held_out``).

Isotonic regression is the non-decreasing function nearest in squares, with straight lines between its corners as
scikit-learn's ``IsotonicRegression`` has them; it follows any curve and needs many positives for it. Platt's has two
numbers, p = 1 / (1 + exp(−(a·s + b))), fitted by maximum likelihood to the targets (P + 1)/(P + 2) and 1/(N + 2), which
P positives and N negatives leave of 1 and 0: J. Platt, "Probabilistic outputs for support vector machines", 1999.
O(n log n) and O(n).

Both are clipped to what the rows held out support. Of n rows that are all positive the next is so with probability
1 − 1/(n + 2), by Laplace's rule: that is the most that the last block of isotonic regression, of n rows, may have, and
1/(m + 2) the least for its first, of m. Where a class is rare a few rows of the other are no surprise: with π the share
of positives the bounds are 1 − min(1, 2(1 − π))/(n + 2) and min(1, 2π)/(m + 2). Platt's sigmoid does not go beyond its
values at the lowest and the highest of the scores either, where it would only extrapolate.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm.models.header import Calibration

#: What ``--calibrate`` takes.
METHODS = ("auto", "isotonic", "platt")
#: From this many positives and negatives on ``auto`` is isotonic: below, its steps are those of single rows.
ENOUGH_FOR_ISOTONIC = 200


def calibrated(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_], method: str, *, held_out: str = ""
) -> Calibration:
    """The probabilities of rows of these scores.

    Parameters
    ----------
    scores : (n,) float64, finite; relevant : (n,) bool, of both classes
    method : one of ``METHODS``
    held_out : what these rows are, in words
    """
    positives = int(relevant.sum())
    fewer = min(positives, relevant.size - positives)
    if method == "auto":
        method = "isotonic" if fewer >= ENOUGH_FOR_ISOTONIC else "platt"
    fitted = Calibration(method=method, held_out=held_out, rows=int(relevant.size), positives=positives)
    corners, values, (first, last) = isotonic(scores, relevant)
    share = positives / relevant.size
    lower, upper = min(1.0, 2.0 * share) / (first + 2), 1.0 - min(1.0, 2.0 * (1.0 - share)) / (last + 2)
    if method == "isotonic":
        clipped = np.clip(values, lower, upper)
        return replace(fitted, scores=tuple(corners.tolist()), probabilities=tuple(clipped.tolist()))
    slope, offset = platt(scores, relevant)
    fitted = replace(fitted, slope=slope, offset=offset)
    low, high = np.sort(fitted.probability(np.array([scores.min(), scores.max()]))).tolist()
    return replace(fitted, lower=max(lower, low), upper=min(upper, high))


def isotonic(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[int, int]]:
    """The non-decreasing function of the scores (n,) that is nearest to ``relevant`` (n,) in squares: the places of its
    corners (k,), increasing, and its values there (k,), both float64; it is constant outside of them. Then the numbers
    of rows that have the lowest and the highest value."""
    from scipy.optimize import isotonic_regression

    places, of_row = np.unique(scores, return_inverse=True)
    count = np.bincount(of_row)
    values = isotonic_regression(np.bincount(of_row, weights=relevant) / count, weights=count).x
    # Of a run of equal values the first and the last place are corners.
    changes = np.flatnonzero(np.diff(values))
    kept = np.union1d(np.append(changes + 1, 0), np.append(changes, places.size - 1))
    first, last = (int(count[values == end].sum()) for end in (values[0], values[-1]))
    return places[kept], np.clip(values[kept], 0.0, 1.0), (first, last)


def platt(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> tuple[float, float]:
    """The slope a and the offset b of the most likely p = 1 / (1 + exp(−(a·s + b))) (see the module), on scores
    brought to mean 0 and deviation 1.

    Raises
    ------
    ValueError : all rows are relevant, or none is
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
        """−log likelihood, log(1 + e^u) − target·u in the mean, and its gradient."""
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
