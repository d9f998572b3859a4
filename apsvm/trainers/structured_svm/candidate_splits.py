"""Rows held out to judge candidates by, as many as their trainings may cost.

Small data have five folds, twice. Where a pass over the rows takes longer there are fewer, and of large data a single
split: a training part on which an oracle call takes ``MS_OF_A_PART``, but of enough positives and of enough rows for
the values that each holds, and as many rows to judge by as are scored in twice that time. On ijcnn1 and a1a.t, whose
three folds took 2.5 times as long, test AP was within .001 of what it is with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.data.labels import Target
from apsvm.trainers.base import TrainingSet

#: Fewer positives, negatives or queries than these cannot be held out.
FEWEST = 6
#: Positives that a training part should have.
ENOUGH_POSITIVES = 500
#: How many times rarer negatives may be in a part, against its positives, than in the data: AP depends on it.
MOST_TIMES_RARER = 4.0
#: Rows that it should have for each value of a row: with fewer, weights fit their noise, and C means something else.
ROWS_A_VALUE = 10.0
#: Queries that a split is judged by, at most: each is ranked by itself.
MOST_JUDGED = 1000
#: What an oracle call costs, in nanoseconds: for a value of the features, and for a row.
NS_VALUE, NS_ROW = 2.0, 40.0
#: Milliseconds a call up to which there are five folds, twice; five folds; three of positives that are not enough.
MS_FOR_TWICE, MS_FOR_FIVE, MS_FOR_THREE = 0.3, 1.0, 3.0
#: Milliseconds a call of a single split: on its training part, and on the rows judged by.
MS_OF_A_PART, MS_OF_JUDGED = 1.0, 2.0
#: Most of the rows that a single split trains on.
LARGEST_PART = 2.0 / 3.0


class Split(NamedTuple):
    """Rows to train on and rows to judge by, ascending int64, and of those not trained on as many as have positives in
    the share of all rows: what a threshold is chosen on."""

    training: NDArray[np.int64]
    test: NDArray[np.int64]
    alike: NDArray[np.int64]


def candidate_splits(data: TrainingSet, seed: int) -> tuple[list[Split], str]:
    """The splits, and what they are in words; none where there is too little to hold anything out."""
    rng = np.random.default_rng(seed)
    n, kind = data.target.relevant.size, "rows" if data.bags is None else "bags"
    call = 1e-6 * (NS_VALUE * data.rows.n_values + NS_ROW * len(data.rows))  # milliseconds
    queries = data.queries
    if queries is not None and np.unique(queries).size > 1:
        units, of_unit = np.unique(queries, return_inverse=True)
        ranked = _ranked(data.target, of_unit, units.size)
        strata = [np.flatnonzero(ranked), np.flatnonzero(~ranked)]
        smallest = strata[0].size
        if smallest < FEWEST:
            return [], f"{smallest} queries with something to rank are too few to hold any out"
        kind = "queries"
    else:
        of_unit = np.arange(n)
        relevant = data.target.relevant
        strata = [np.flatnonzero(relevant), np.flatnonzero(~relevant)]
        smallest = min(stratum.size for stratum in strata)
        if smallest < FEWEST:
            return [], f"{smallest} {kind} of one class are too few to hold any out"
    if call <= MS_FOR_FIVE or (call <= MS_FOR_THREE and strata[0].size < ENOUGH_POSITIVES):
        repeats, folds = (2, 5) if call <= MS_FOR_TWICE else (1, 5) if call <= MS_FOR_FIVE else (1, 3)
        folds = min(folds, smallest // 2)
        splits = [split for _ in range(repeats) for split in _folds(strata, folds, of_unit, rng)]
        how = f"{folds} folds of {kind}" + (", twice" if repeats == 2 else "")
    else:
        values_a_row = data.rows.n_values / len(data.rows)
        split, counts = _single(strata, of_unit, call, ROWS_A_VALUE * values_a_row / len(data.rows), rng)
        splits, how = [split], "{1:,} {kind}, trained on {0:,} others".format(*counts, kind=kind)
    if kind == "queries":
        splits = [_judged_by_few(split, of_unit, strata[0], rng) for split in splits]
    return splits, how


def _single(
    strata: Sequence[NDArray[np.int64]],
    of_unit: NDArray[np.int64],
    call: float,
    least: float,
    rng: np.random.Generator,
) -> tuple[Split, tuple[int, int]]:
    """One split of rows on which a call takes so many milliseconds, and how many units train and judge; ``least``: the
    smallest share of them to train on."""
    enough = ENOUGH_POSITIVES / strata[0].size
    training = min(LARGEST_PART, max(MS_OF_A_PART / call, least))
    judging = MS_OF_JUDGED / call
    # Rare positives are what the ranking is about: more of them, where the share would leave few.
    of_first = min(LARGEST_PART, max(training, enough))
    first_judging = min(1.0 - of_first, max(judging, enough))
    of_others = max(training, of_first / MOST_TIMES_RARER)
    others_judging = min(1.0 - of_others, max(judging, first_judging / MOST_TIMES_RARER))
    trains, judges, alike = np.zeros((3, int(of_unit.max()) + 1), dtype=bool)
    shares = ((of_first, first_judging), (of_others, others_judging))
    for stratum, (train, judge) in zip(strata, shares, strict=True):
        shuffled = rng.permutation(stratum)
        end = max(1, round(train * stratum.size))
        trains[shuffled[:end]] = True
        judges[shuffled[end : end + max(1, round(judge * stratum.size))]] = True
        alike[shuffled[end : end + max(1, round(first_judging * stratum.size))]] = True
    counts = int(trains.sum()), int(judges.sum())
    return Split(*(np.flatnonzero(part[of_unit]) for part in (trains, judges, alike))), counts


def _judged_by_few(
    split: Split, of_row: NDArray[np.int64], ranked: NDArray[np.int64], rng: np.random.Generator
) -> Split:
    """The split with at most so many of its test queries that have something to rank."""
    queries = np.intersect1d(of_row[split.test], ranked)
    if queries.size <= MOST_JUDGED:
        return split
    kept = rng.permutation(queries)[:MOST_JUDGED]
    return split._replace(test=split.test[np.isin(of_row[split.test], kept)])


def _ranked(target: Target, of_row: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """(count,): which queries have rows of different relevance; of_row : (n,) the row's query, 0..count − 1."""
    values = target.relevant.astype(np.float64) if target.grades is None else np.maximum(target.grades, 0.0)
    lowest, highest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(lowest, of_row, values)
    np.maximum.at(highest, of_row, values)
    return highest > lowest


def _folds(
    strata: Sequence[NDArray[np.int64]], count: int, of_unit: NDArray[np.int64], rng: np.random.Generator
) -> Iterator[Split]:
    fold = np.empty(sum(stratum.size for stratum in strata), dtype=np.int64)
    for stratum in strata:
        fold[rng.permutation(stratum)] = np.arange(stratum.size) % count
    of_row = fold[of_unit]
    for at in range(count):
        test = np.flatnonzero(of_row == at)
        yield Split(np.flatnonzero(of_row != at), test, test)
