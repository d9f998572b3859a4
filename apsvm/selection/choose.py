"""Which candidate is chosen, the one of the highest mean over the folds, and what the choice is worth on other rows.

AP of rows held out is that of all of them as one list. The rankers of two folds need not have one scale, so each fold's
scores are brought to mean 0 and deviation 1 before they are pooled. The mean of the folds' APs would be higher where
positives are few: in a short list chance puts more of them at the top.

The interval is Wilson's (1927) of a share among P positives, as AP is one (the mean over the positives of the share of
positives down to it), for 90 % and ``SPREAD`` times the variance of such a share, as the other rows vary too. Of 240
trainings on 80 sets of KEEL (12 to 1,500 positives, two thirds as many in the test part) it held the test AP in 92 %,
and the value was .006 below it in the mean; samples of a bootstrap held it in 62 %. In 160 searches by ``apsvm cv`` the
value was .003, .009, −.004 and −.003 above test AP below 20, 50 and 200 positives and above, each ± a standard error of
.005 to .026; without what the choice adds taken off it was .043 and .038 above it below 20 and 50.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support.types import JsonDict
from apsvm.selection.grids import Axis, Grid
from apsvm.selection.race import Candidate, OutOfFold

#: Candidates on several feature maps that are behind the best by no more are compared in all folds and averaged, unless
#: that is ``CLEAR`` standard errors: by .02 or .05 test AP was .0005 less on 16 sets; without ``CLEAR`` nDCG@10 of
#: LightGBM's example was .773 for .780 (three seeds), and AP on 80 sets the same.
NEAR, CLEAR = 0.03, 4.0
#: Deviations of a normal distribution within which 90 % of it lie.
NORMAL_QUANTILE = 1.6449
#: 1 for the rows held out, and 1.5 for other rows with two thirds as many positives.
SPREAD = 2.5


def best(candidates: Sequence[Candidate], metric: str) -> Candidate:
    """The candidate of the highest mean; the first of equal ones."""
    return max(candidates, key=lambda candidate: candidate.mean(metric))


def standard_error(differences: Sequence[float] | NDArray[np.float64]) -> float:
    """Standard error of the mean of differences, fold by fold; 0 for a single fold."""
    values = np.asarray(differences)
    return float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else 0.0


def is_near(one: Candidate, best: Candidate, metric: str) -> bool:
    """True if a candidate is behind the best by little, or by no more than a standard error, fold by fold."""
    behind = np.subtract(best.values(metric), one.values(metric))
    error = standard_error(behind)
    return bool(behind.mean() <= max(min(NEAR, CLEAR * error) if behind.size > 1 else NEAR, error))


def chosen_by_others(candidates: Sequence[Candidate], metric: str) -> list[Candidate]:
    """For each fold the candidate that is best in the others, so that its value there is that of a choice on new rows.

    Candidates may lack the last of the folds: a fold is looked at by those that were finished in it, and these are
    compared by the folds that all of them have.
    """
    chosen = []
    for fold in range(max(len(one.folds) for one in candidates)):
        finished = [one for one in candidates if len(one.folds) > fold]
        common = min(len(one.folds) for one in finished)
        others = [replace(one, folds=[*one.folds[:fold], *one.folds[fold + 1 : common]]) for one in finished]
        chosen.append(finished[others.index(best(others, metric))])
    return chosen


class Estimate(NamedTuple):
    """AP on rows held out, and the interval in which it is on most other rows."""

    value: float
    low: float
    high: float


def pooled_ap(folds: Sequence[OutOfFold], relevant: NDArray[np.bool_], optimism: float = 0.0) -> Estimate:
    """The estimate by the scores of the rows that each fold tested on, some of which are positive.

    Parameters
    ----------
    relevant : (n,) bool, of all rows (or bags) that the folds number
    optimism : gain by choosing the best of many, which other rows do not have
    """
    from apsvm.metrics.evaluate import evaluate

    held_out = relevant[np.concatenate([fold.test for fold in folds])]
    scores = np.concatenate([_standardised(fold.scores) for fold in folds])
    value = max(0.0, evaluate(["AP"], scores, held_out).values["AP"] - optimism)
    count = int(held_out.sum()) / SPREAD
    share = NORMAL_QUANTILE**2 / count
    middle = (value + 0.5 * share) / (1.0 + share)
    half = math.sqrt(share * (value * (1.0 - value) + 0.25 * share)) / (1.0 + share)
    return Estimate(value, middle - half, middle + half)


def _standardised(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = float(scores.std())
    result: NDArray[np.float64] = (scores - scores.mean()) / (deviation if deviation > 0.0 else 1.0)
    return result


def at_the_edge(candidates: Sequence[Candidate], grid: Grid, chosen: Candidate) -> list[str]:
    """The settings of which ``chosen``, of this grid, has the lowest or the highest value that was tried."""
    names = []
    for axis in grid.axes:
        on_it = _line(candidates, chosen, axis)
        if axis.numeric and len(on_it) > 1 and chosen in (on_it[0], on_it[-1]):
            names.append(axis.name)
    return names


def _line(candidates: Sequence[Candidate], through: Candidate, axis: Axis) -> list[Candidate]:
    """Those that differ from ``through`` in nothing but this setting, ascending."""

    def others(candidate: Candidate) -> JsonDict:
        return {name: value for name, value in candidate.choice.items() if name != axis.name}

    on_it = [one for one in candidates if one.grid == through.grid and others(one) == others(through)]
    return sorted(on_it, key=lambda candidate: axis.position(candidate.choice[axis.name]))
