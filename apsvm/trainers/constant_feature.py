"""Size of the constant feature, for losses that call rows with a score above 0 positive (``Loss.draws_line``).

½‖w‖² shortens the constant's weight too, so a small constant feature hardly has an effect. Its size therefore follows
the features' scale:

    B = 10 · geometric mean of the features' standard deviations, to two digits.

The mean is 1 where features are standardised. Multiplying all features by a multiplies B by a, and the default C by
1/a². The classifier stays the same, except that B is rounded to two digits, so that ``--bias`` can name it. Eight sets
of two classes, 1 % to 64 % positive, half of the rows held out, other settings default: mean F1 of ``f1`` and mean
accuracy of ``zero-one``

                        no constant     B = 1        B = 10       B = geometric mean    10 · geometric mean
    raw features        .709  .905    .795  .945    .799  .945    .795  .944            .802  .945
    standardised        .331  .779    .739  .944    .793  .945    .739  .944            .793  .945
    raw, times 1000     .710  .905    .708  .905    .710  .918    .795  .944            .802  .945

From 10 to 100 times the geometric mean no figure moves by more than .003.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: Multiple of the geometric mean of the features' deviations.
TIMES_THE_MEAN = 10.0


def constant_by_rule(variance: NDArray[np.float64]) -> float:
    """Size B of the constant feature by the variances (d,) of the others that vary and are finite; 10 without any."""
    return float(f"{TIMES_THE_MEAN * mean_deviation(variance):.2g}")


def mean_deviation(variance: NDArray[np.float64]) -> float:
    """Geometric mean of the standard deviations of features that vary, from their variances (d,); 1 if none varies."""
    variance = variance[(variance > 0.0) & np.isfinite(variance)]
    return math.exp(0.5 * float(np.log(variance).mean())) if variance.size else 1.0
