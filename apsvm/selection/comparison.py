"""Compares another ranker with the one that ``apsvm train`` chose, on the rows held out in its folds.

AP is the mean, over the positives, of the precision at each one's rank; a loss of queries is a mean over the queries.
The difference of two rankers is thus one number per held-out positive or query, and has a standard error even on a
single split. Copies of a row count once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.models.header import Json
from apsvm.risk.by_order import losses_of_queries
from apsvm.selection.choose import NORMAL_QUANTILE, standard_error
from apsvm.selection.quick import Choice, QuickRace


class Comparison(NamedTuple):
    """Means of two rankers over the held-out positives or queries.

    Attributes
    ----------
    of_other, of_chosen : AP, or 1 minus the loss of queries
    difference : of the means, in standard errors; beyond ``NORMAL_QUANTILE`` it is clear. Choosing columns, rules or
        their average by it, test AP on 115 sets of KEEL and R (two splits) was .6598; by 1, 2, 2.5 and 3 errors .6589,
        .6594, .6586 and .6577.
    how : description of the held-out rows
    """

    of_other: float
    of_chosen: float
    difference: float
    how: str

    @property
    def is_clear(self) -> bool:
        """True if the difference is more than chance."""
        return abs(self.difference) >= NORMAL_QUANTILE

    def figures(self, other: str, chosen: str) -> dict[str, Json]:
        """The comparison, for the header of the model, with names of the two rankers."""
        means = {f"of_{other}": self.of_other, f"of_{chosen}": self.of_chosen}
        return {**means, "standard_errors": self.difference, "held_out": self.how}


def compared(
    choice: Choice,
    scores: Callable[[int], NDArray[np.float64] | None],
    is_decided: Callable[[float], bool],
) -> Comparison | None:
    """Compares a ranker with the chosen one, fold by fold. None if it has no scores in a fold.

    Parameters
    ----------
    scores : returns the scores (m,) of the test rows of a fold
    is_decided : True if the remaining folds are skipped, by the difference in standard errors
    """
    race = choice.race
    assert race is not None
    chosen, values, errors = choice.candidates[0], list[NDArray[np.float64]](), 0.0
    for fold in range(len(race.folds)):
        others, test, w = scores(fold), race.test(fold), chosen.folds[fold].w
        if others is None:
            return None
        assert isinstance(w, np.ndarray)
        values.append(np.stack([_values(race, fold, one) for one in (others, test.scores(w))]))
        both = np.hstack(values)
        errors = _in_standard_errors(both[0] - both[1])
        if is_decided(errors):
            break
    how = choice.how if len(values) == len(race.folds) else f"{len(values)} of {choice.how}"
    of_other, of_chosen = both.mean(axis=1).tolist()
    return Comparison(of_other, of_chosen, errors, how)


def _values(race: QuickRace, fold: int, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """(units,) float64: 1 minus the loss of each test query, times its relative weight; or precision at the rank of
    each test positive, averaged over its copies."""
    test, copies = race.test(fold), race.affordable[0].copies
    if test.queries is not None:
        loss = race.trainer.loss
        losses, weights = losses_of_queries(loss, scores, test.target, test.queries, test.query_weights)
        weighted: NDArray[np.float64] = (1.0 - losses) * weights / weights.mean()
        return weighted
    values = precisions(scores, test.target.relevant)
    if copies is None:
        return values
    _, of_row = np.unique(copies[race.folds[fold].test[test.target.relevant]], return_inverse=True)
    means: NDArray[np.float64] = np.bincount(of_row, weights=values) / np.bincount(of_row)
    return means


def precisions(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(positives,) float64 with mean AP: precision at the rank of each positive, negatives of equal score before it."""
    positives, negatives = scores[relevant], np.sort(scores[~relevant])
    place = np.empty(positives.size)
    place[np.argsort(-positives, kind="stable")] = np.arange(1, positives.size + 1)
    result: NDArray[np.float64] = place / (place + negatives.size - np.searchsorted(negatives, positives))
    return result


def _in_standard_errors(values: NDArray[np.float64]) -> float:
    """The mean in standard errors; 0 for fewer than two values, or if all are equal."""
    error = standard_error(values)
    return float(values.mean()) / error if error > 0.0 else 0.0
