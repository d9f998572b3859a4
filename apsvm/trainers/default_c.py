"""The C to begin with: what ½‖w‖² must be weighed against depends on the features' scale, and so does a C that is fair.

    C = factor / (d · geometric mean of the features' variances)

over the d features that vary; for losses by query, variances within queries, as only differences between the rows of a
query matter there. Multiplying all features by a multiplies this C by 1/a², which leaves the ranking learned as it is;
moving a feature's zero changes nothing, again as of the ranking. The geometric mean, and not the mean (the trace of the
covariance), so that a feature of huge scale does not decide alone: with a C that fits it, all others count for nothing.

The factors, and that neither the number of positives nor their share comes in, were found on real data
(``scripts/study_default_c.py``). For losses over rankings: 1000; for their tight bound, whose w must be long, 300 000;
where there are queries, 10 and 100: many short rankings are fitted to their noise sooner than one long one. Where each
row weighs 1/n, as in the 0-1 loss and those over labellings, the few positives of an imbalanced set are outvoted until
C is large: 50 000. O(nnz), one pass.
"""

from __future__ import annotations

import numpy as np

from apsvm.losses.base import Loss
from apsvm.trainers.base import TrainingSet

#: By the bound; of one ranking and of several.
FACTORS = {"hinge": (1e3, 10.0), "tight": (3e5, 100.0)}
FACTOR_OVER_ROWS = 5e4


def default_C(data: TrainingSet, loss: Loss, bound: str = "hinge") -> float:
    """The rule's C for these rows, this loss and its bound; 1 where no feature varies, or one does beyond what float64
    can square."""
    groups = data.queries if loss.by_query else None
    variance = data.rows.moments(groups).variance
    variance = variance[variance > 0.0]
    if variance.size == 0 or not np.isfinite(variance).all():
        return 1.0
    several = groups is not None and bool((groups != groups[0]).any())
    factor = FACTORS[bound][several] if loss.over_rankings else FACTOR_OVER_ROWS
    with np.errstate(over="ignore"):  # inf is told below
        C = float(np.exp(np.log(factor) - np.log(variance.size) - np.log(variance).mean()))
    return C if 0.0 < C < np.inf else 1.0
