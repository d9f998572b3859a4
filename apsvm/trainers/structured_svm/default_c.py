"""The default C, derived from the scale of the features and the number of rows for each.

For losses over rankings, n rows and the d features that vary,

    C = factor · √n · min(1 + n/d, most)² / (d · geometric mean of the features' variances).

With few rows for each feature, a long w fits noise, so C must be small. With many, a small C only limits w. Beyond
``most`` rows a feature AP hardly depends on it: 100 for the hinge, and 3000 for the tight bound of one list, where
positives are rare and some are hopeless. On four generated tables of 210,000 payments with 30 features, 3000 gives a
test AP of .216, .120, .039 and .080, and 100 gives .192, .101, .039 and .073.

For losses by query, variances are within queries, since only differences between rows of a query matter. Multiplying
all features by a multiplies this C by 1/a² and leaves the ranking unchanged, as does shifting a feature. The geometric
mean is used, not the mean (the trace of the covariance): otherwise a feature of huge scale would decide alone.

The factors were found on real data: 0.3, and 1 for the tight bound; with queries 0.01 and 0.5. Held-out AP, raw
features / standardised, against the best of 14 values over eight decades:

                  sets      within .03      mean shortfall   that of factor / (d · geometric mean) alone
    hinge         27        25 / 26         .007 / .007      .010 / .011   (factor 1000)
    tight         27        26 / 26         .008 / .008      .017 / .020   (factor 300 000)
    hinge, qid    15        14 / 14         .007 / .008      .020 / .019   (factor 10)
    tight, qid    15        15 / 15         .006 / .007      .037 / .025   (factor 100)

The form and the factors were chosen on these sets. The hinge's factor is above the 0.08 that fits them best, because of
text with more features than rows. Two alternatives were no better on the same sets: the effective dimension
tr(R)²/tr(R²) of the correlation matrix R for d, and the eigenvalues of the covariance or the length of a ridge
discriminant for the geometric mean.

Losses over rows weigh each row 1/n, so the few positives of an imbalanced set need a large C: 50 000 / (d · geometric
mean), for any n. O(nnz), one pass.

For bags, n is the number of bags, variances are over rows, and C is ten times the hinge's. On 13 species of birds in
548 recordings, AP is within .015 of the best of six decades on 11. It is .07 and .16 below on two species heard in 15
and 20 recordings.

The scale of the features does not determine C for a loss of the top (``p@k``, ``ndcg@k``, ``mrr``, ``rbp``), whose
tight bound descends from the solution w₀ of another loss. It is found at w₀: the ramp r falls from r(0) to Δ(w₀) as w₀
is lengthened, and C is chosen so that the length t with

    r(t·w₀) = r(0) − φ·{r(0) − Δ(w₀)},   φ = 1/10,          is the best:   t·‖w₀‖² + C·d r(t·w₀)/dt = 0,

but at most 1e9 / (d · geometric mean). On a long list the weight of a pair, 2/(PN), is tiny. Rows of nearly equal score
at the top then need a w and a C for which float64 can prove nothing. On two generated queries of 40,000 documents
``ndcg@10`` had C = 3e12 and stalled after 1,240 iterations and 17 s. Up to C = 1e9 it takes 70 to 150 iterations and 2
s, to the same NDCG@10 on training and other rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import several_queries
from apsvm.losses.base import Loss
from apsvm.oracles import make_oracle
from apsvm.risk import Ramp
from apsvm.trainers.base import TrainingSet
from apsvm.trainers.structured_svm.objective import loss_of_order, risk_of

#: Factor by bound, for one ranking and for several.
FACTORS = {"hinge": (0.3, 0.01), "tight": (1.0, 0.5)}
FACTOR_OVER_ROWS = 5e4
#: For bags, a multiple of the hinge's factor for rows.
TIMES_FOR_BAGS = 10.0
#: The largest C of a loss of the top, times d and the geometric mean of the variances.
MOST_OF_THE_TOP = 1e9
#: Description of this C.
THE_RULE = "set by the scale of the features"
#: φ. On long lists .05 to .3 are alike; larger values fit noise.
DESCENT = 0.1
#: Factor between tried lengths of a start, and their number.
LENGTHEN, LENGTHENINGS = 4.0, 24
#: Rows a feature beyond which C no longer grows, by bound, for one ranking.
MOST_ROWS_A_FEATURE = {"hinge": 100.0, "tight": 3000.0}


def default_C(data: TrainingSet, loss: Loss, bound: str = "hinge") -> float:
    """Default C for these rows, loss and bound; 1 if no feature varies, or if a variance overflows."""
    variance, several = _variances(data, loss)
    n = data.target.relevant.size
    return C_by_rule(variance, n, loss, bound, several=several, bags=data.bags is not None)


def _variances(data: TrainingSet, loss: Loss) -> tuple[NDArray[np.float64], bool]:
    """Variances of the features (d,), within queries if the loss is by query; and True if there are several queries."""
    groups = data.queries if loss.by_query else None
    if groups is not None and data.bags is not None:
        groups = np.repeat(groups, np.diff(data.bags))
    several = several_queries(groups)
    return data.rows.moments(groups).variance, several


def C_by_rule(
    variance: NDArray[np.float64],
    n: int,
    loss: Loss,
    bound: str = "hinge",
    *,
    several: bool = False,
    bags: bool = False,
) -> float:
    """Default C from the features' variances (d,) and ``n`` rows or bags; ``several``: more than one query."""
    variance = variance[variance > 0.0]
    if variance.size == 0 or not np.isfinite(variance).all():
        return 1.0
    d = variance.size
    factor = FACTOR_OVER_ROWS
    if loss.over_rankings:
        factor = TIMES_FOR_BAGS * FACTORS["hinge"][several] if bags else FACTORS[bound][several]
        most = MOST_ROWS_A_FEATURE["hinge" if several else bound]
        factor *= math.sqrt(n) * min(1.0 + n / d, most) ** 2
    C = _per_variance(factor, variance)
    return C if 0.0 < C < np.inf else 1.0


def _per_variance(factor: float, variance: NDArray[np.float64]) -> float:
    """``factor`` / (d · geometric mean of the variances (d,) > 0); inf if it overflows."""
    d = variance.size
    with np.errstate(over="ignore"):
        return float(np.exp(np.log(factor) - np.log(d) - np.log(variance).sum() / d))


def default_C_at(
    data: TrainingSet, loss: Loss, oracle: str, start: NDArray[np.float64], started_by: str, descent: float
) -> tuple[float, str]:
    """C of the tight bound of a loss of the top, with its description. Falls back to the rule by feature scale if the
    start is no better than w = 0.

    Parameters
    ----------
    start : (dimension,) float64, w₀ of the module
    started_by : loss whose solution ``start`` is; empty for a user's model
    descent : φ of the module
    """
    C = _C_of_descent(data, loss, oracle, start, descent)
    if C is None:
        return default_C(data, loss, "tight"), THE_RULE
    variance, _ = _variances(data, loss)
    variance = variance[(variance > 0.0) & np.isfinite(variance)]
    most = _per_variance(MOST_OF_THE_TOP, variance) if variance.size else math.inf
    if most < C:
        return most, "the largest for a loss of the top at this scale of the features"
    model = f"the {started_by} model" if started_by else "the given model"
    share = f"{100.0 * descent:g} %"
    return C, f"set so that {model} has its best length where the ramp has fallen by {share} of its range"


def _C_of_descent(
    data: TrainingSet, loss: Loss, oracle: str, start: NDArray[np.float64], descent: float
) -> float | None:
    ramp = Ramp(risk_of(data, loss, make_oracle(oracle, loss)))
    scores, slopes = ramp.scores(start), np.empty(ramp.n_scores)
    none = ramp.tangent(np.zeros(scores.size), slopes).value
    at_start = loss_of_order(data, loss, start)
    target = none - descent * (none - at_start)

    def at(length: float) -> float:
        return ramp.tangent(length * scores, slopes).value

    square = float(start @ start)
    if not (square > 0.0 and at_start < none):
        return None
    low, high = _bracket(at, target)
    for _ in range(4):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if at(middle) > target else (low, middle)
    at(high)
    slope = float(slopes @ scores)
    C = -high * square / slope if slope < 0.0 else 0.0
    return C if 0.0 < C < np.inf else None


def _bracket(at: Callable[[float], float], target: float) -> tuple[float, float]:
    """Lengths between which the ramp passes ``target``."""
    length = 1.0
    if at(length) > target:
        for _ in range(LENGTHENINGS):
            length *= LENGTHEN
            if at(length) <= target:
                break
        return length / LENGTHEN, length
    for _ in range(LENGTHENINGS):
        length /= LENGTHEN
        if at(length) > target:
            break
    return length, length * LENGTHEN
