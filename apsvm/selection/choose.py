"""Chooses the candidate with the best mean over the folds, and estimates its value on new rows.

AP is that of all held-out rows as one list. Rankers of two folds need not share a scale, so each fold's scores are
standardised before they are pooled. The mean of the folds' APs would be higher with few positives, since in a short
list chance puts more of them at the top.

The interval is Wilson's (1927), at 90 %, of a share among P positives: AP is the mean over the positives of a share.
Its variance is multiplied by ``SPREAD``, since the new rows vary too. On 121 sets of KEEL and R, two fifths of the rows
held out, it contained the test AP in 89, 88 and 90 % of 93, 165 and 105 runs of ``apsvm train`` with below 50, below
200 and more positives, and in 90, 95 and 89 % of 31, 55 and 35 runs of ``apsvm cv``; a bootstrap over positives
contained it in 62 %. The estimate was too low by .025, .006 and .004 (train), and .005, .014 and .011 (cv), with
standard errors of .003 to .020. Without subtracting the optimism of the choice it was .043 and .038 too high below 20
and 50 positives. With 15 positives of 73 tables of R that of ``apsvm train`` is .023 too high, with 30 .004 too low.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.selection.race import Candidate, OutOfFold

#: With fewer positives the best candidate on held-out rows is mostly chance.
FEW_POSITIVES = 50
#: Difference of a metric below which candidates are about as good. Candidates within it, or within a standard error,
#: are averaged, and go on from a sample to all rows. On 121 tables of KEEL and R test AP is .0005 ± .001 lower if the
#: average takes those that are not clearly worse by precision at each positive.
LEAST = 0.02
#: Quantile of the normal distribution: nine of ten values are within as many deviations.
NORMAL_QUANTILE = 1.6449
#: Factor of the variance: 1 for the held-out rows and 1.5 for new rows with two thirds as many positives.
SPREAD = 2.5


def best(candidates: Sequence[Candidate], metric: str) -> Candidate:
    """The candidate with the highest mean; the first of equal ones."""
    return max(candidates, key=lambda candidate: candidate.mean(metric))


def standard_error(differences: Sequence[float] | NDArray[np.float64]) -> float:
    """Standard error of the mean of fold-by-fold differences; 0 for a single fold."""
    values = np.asarray(differences)
    return float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else 0.0


def share_error(value: float, count: int) -> float:
    """Standard error of a share of ``count``, as AP is one of the positives. By Laplace's rule, it is not 0 for 1."""
    share = (value * count + 1.0) / (count + 2.0)
    return math.sqrt(max(0.0, share * (1.0 - share)) / count)


def is_near(one: Candidate, best: Candidate, metric: str, positives: int | None) -> bool:
    """True if a candidate is behind the best by at most ``LEAST`` or a standard error: that of a share of the
    ``positives`` of a single list, or with queries (None) that of the fold-by-fold difference."""
    behind = np.subtract(best.values(metric), one.values(metric))
    error = standard_error(behind) if positives is None else share_error(best.mean(metric), positives)
    return bool(behind.mean() <= max(LEAST, error))


def chosen_by_others(candidates: Sequence[Candidate], metric: str, sign: float = 1.0) -> list[Candidate]:
    """For each fold the candidate that is best in the other folds, so that its value in the fold is that of a choice on
    new rows. ``sign`` is −1 if low values are best."""

    def of_others(one: Candidate, fold: int) -> float:
        values = one.values(metric)
        return sign * math.fsum([*values[:fold], *values[fold + 1 :]])

    return [max(candidates, key=partial(of_others, fold=fold)) for fold in range(len(candidates[0].folds))]


class Estimate(NamedTuple):
    """AP on held-out rows, and an interval that contains AP on most new rows."""

    value: float
    low: float
    high: float


def pooled_ap(
    folds: Sequence[OutOfFold], relevant: NDArray[np.bool_], others: Sequence[OutOfFold] | None = None
) -> Estimate:
    """Estimates AP by the scores of the test rows of all folds.

    Parameters
    ----------
    relevant : (n,) bool, of all rows (or bags)
    others : the folds scored by the candidate that is best in the other folds. A lower AP of these scores is the value:
        the difference is due to choosing the best of many.
    """
    value, positives = _ap(folds, relevant)
    if others is not None:
        value = min(value, _ap(others, relevant)[0])
    count = positives / SPREAD
    share = NORMAL_QUANTILE**2 / count
    middle = (value + 0.5 * share) / (1.0 + share)
    half = math.sqrt(share * (value * (1.0 - value) + 0.25 * share)) / (1.0 + share)
    return Estimate(value, min(value, middle - half), max(value, middle + half))  # of 1 the end is 1 but for rounding


def _ap(folds: Sequence[OutOfFold], relevant: NDArray[np.bool_]) -> tuple[float, int]:
    """AP of the test rows of all folds as one list, and the number of positives."""
    from apsvm.metrics.evaluate import evaluate

    held_out = relevant[np.concatenate([fold.test for fold in folds])]
    scores = np.concatenate([_standardised(fold.scores) for fold in folds])
    return evaluate(["AP"], scores, held_out).values["AP"], int(held_out.sum())


def _standardised(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = float(scores.std())
    result: NDArray[np.float64] = (scores - scores.mean()) / (deviation if deviation > 0.0 else 1.0)
    return result
