"""Sums of float64 rounded once: error-free products (Dekker 1971), added by ``math.fsum``. NumPy only."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Half the distance from 1 to the next float64: the relative rounding error of one operation.
UNIT = 2.0**-53
_SPLITTER = 2.0**27 + 1.0


def products(a: Array | float, b: Array | float) -> tuple[Array, Array]:
    """p and e with a·b = p + e, p rounded. Exact unless a product overflows or vanishes (below 1e-290)."""
    p = np.multiply(a, b)
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return p, a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _halves(a: Array | float) -> tuple[Array, Array]:
    """Two numbers of 26 bits whose sum is a; products of such numbers are exact."""
    moved = np.multiply(_SPLITTER, a)
    high = moved - (moved - a)
    return high, a - high


def total(terms: Iterable[float]) -> float:
    """Sum of ``terms``, rounded once; NaN if it or a partial sum is not finite."""
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):
        return math.nan


def dot(a: Array | float, b: Array | float) -> list[float]:
    """Two numbers whose sum is a·b to a relative error of ``UNIT``²."""
    terms = np.concatenate([part.ravel() for part in products(a, b)]).tolist()
    high = total(terms)
    return [high, total([*terms, -high])]


def float64_error(count: int) -> float:
    """Bound on the rounding error of a sum of ``count`` products in float64, in any order, as a fraction of the sum of
    their magnitudes: errors add up as a random walk, and six deviations are not exceeded (Higham and Mary 2019)."""
    return (6.0 * math.sqrt(count) + 32.0) * UNIT
