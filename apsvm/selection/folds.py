"""Folds: rows to train on and rows to test on, k times; each row is tested once.

Where rows have queries, whole queries are dealt out, those that can be ranked and the others each evenly; else rows,
each fold with its share of the relevant ones and, where there are grades, of every grade. Rows of a bag are never
parted, nor, where they are many, copies of a row: a ranker would be judged by rows that it has learned by heart.
O(n log n).

``affordable_folds`` are as many as a quick comparison may cost: five; where a pass over the rows takes longer three of
positives that are few; of large data one part, or three where positives are few. On the training rows of a part an
oracle call takes ``MS_OF_A_PART``, but it has enough positives, enough rows for the values that each holds, and no
fewer rows than columns, and as many rows to judge by as are scored in twice that time. On ijcnn1 and a1a.t, whose three
folds took 2.5 times as long, test AP was within .001 of what it is with them. Of 1,000,000 rows and 100,000 columns
7,000 rows chose a C whose ranking had an AP of .548, and 100,000 rows one of .606.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.data.bags import Bags
from apsvm.data.labels import Target
from apsvm.data.row_operator import RowOperator
from apsvm.trainers.base import TrainingSet

#: Fewer positives, negatives or queries than these cannot be held out by a quick comparison.
FEWEST = 6
#: Of fewer positives what is best on rows held out is best by chance, mostly.
FEW_POSITIVES = 50
#: Positives that a single training part should have.
ENOUGH_POSITIVES = 500
#: How many times rarer negatives may be in a part, against its positives, than in the data: AP depends on it.
MOST_TIMES_RARER = 4.0
#: Rows that a part should have for each value of a row: with fewer, weights fit their noise, and C means another thing.
ROWS_A_VALUE = 10.0
#: Queries that a fold is judged by, at most: each is ranked by itself.
MOST_JUDGED = 1000
#: What an oracle call costs, in nanoseconds: for a value of the features, and for a row.
NS_VALUE, NS_ROW = 2.0, 40.0
#: Milliseconds a call up to which there are five folds; three of positives that are not enough.
MS_FOR_FIVE, MS_FOR_THREE = 1.0, 3.0
#: Milliseconds a call of a single split: on its training part, and on the rows judged by.
MS_OF_A_PART, MS_OF_JUDGED = 1.0, 2.0
#: Most of the rows that a single split trains on.
LARGEST_PART = 2.0 / 3.0
#: Copies are kept together where more than this share of the positives or the negatives have one, and this many rows or
#: more differ. Columns of few values have equal rows anyhow, as new rows will: a third of mammography's negatives.
MANY_COPIES, FEWEST_DIFFERENT = 0.9, 100


class FoldError(ValueError):
    """Rows that cannot be dealt out to this many folds; the message says which there are too few of."""


class Fold(NamedTuple):
    """The rows to train on, (m,) int64, and those to test on, (n − m,) int64; both ascending."""

    training: NDArray[np.int64]
    test: NDArray[np.int64]


def make_folds(
    target: Target,
    groups: NDArray[np.int64] | None,
    k: int,
    seed: int,
    *,
    only_grades: bool = False,
    bags: NDArray[np.int64] | None = None,
) -> list[Fold]:
    """k folds of n rows; fewer where positives, negatives or queries with something to rank are fewer.

    Parameters
    ----------
    target : what the rows are judged by
    groups : (n,) int64, the rows' queries, in any order; None without any
    k : at least 2
    seed : of who is dealt out where
    only_grades : whether the grades alone will be looked at, and not which rows are relevant
    bags : (n,) int64, the bags of rows that stand for themselves and have labels of their own, yet are alike; a bag is
        as relevant, and worth as much, as the best of its rows

    Raises
    ------
    FoldError : there are not enough for two folds
    """
    if bags is not None:
        return _of_bags(target, groups, bags, k, seed, only_grades)
    rng = np.random.default_rng(seed)
    grades = target.grades
    compared = grades if only_grades and grades is not None else target.relevant
    if groups is not None:
        _, of_row = np.unique(groups, return_inverse=True)
        can_be_ranked = _differ(compared, of_row)
        what = "rows of different grades" if compared is grades else "both a positive and a negative row"
        k = _most(k, {f"queries with {what}": int(can_be_ranked.sum())})
        strata = [np.flatnonzero(can_be_ranked), np.flatnonzero(~can_be_ranked)]
    else:
        of_row = np.arange(compared.size)
        if compared is grades:
            k = _most(k, {"pairs of rows": compared.size // 2})
            parts = [of_row]
        else:
            parts = [np.flatnonzero(target.relevant), np.flatnonzero(~target.relevant)]
            k = _most(k, {"positive rows": parts[0].size, "negative rows": parts[1].size})
        strata = parts if grades is None else [stratum for part in parts for stratum in _by_grade(part, grades, k)]
    fold_of = _dealt(strata, k, rng)[of_row]
    return [Fold(np.flatnonzero(fold_of != at), np.flatnonzero(fold_of == at)) for at in range(k)]


def copies_of(rows: RowOperator, target: Target) -> NDArray[np.int64] | None:
    """(n,) int64, a number that rows with equal features and labels share; None where not many are copies of others,
    or few differ."""
    deviations = np.sqrt(rows.moments().variance)
    w = np.random.default_rng(0).standard_normal(rows.dimension)
    with np.errstate(all="ignore"):  # of values beyond float64 no row is a copy
        w[: deviations.size] /= np.where(deviations > 0.0, deviations, 1.0)
        scores = rows.scores(w)  # of equal rows equal, and of others hardly ever
    if max(_share_of_equals(scores[of_class]) for of_class in (target.relevant, ~target.relevant)) < MANY_COPIES:
        return None  # a sort of numbers alone takes a twentieth of the time of the order below
    labels = target.relevant if target.grades is None else target.grades
    order = np.lexsort((labels, scores))
    values = np.stack([scores, labels])[:, order]
    new = np.r_[True, (values[:, 1:] != values[:, :-1]).any(axis=0)]
    alone, relevant = new & np.r_[new[1:], True], target.relevant[order]
    share = max(np.mean(~alone[of_class]) for of_class in (relevant, ~relevant) if of_class.any())
    if share < MANY_COPIES or np.count_nonzero(new) < FEWEST_DIFFERENT:
        return None
    of_row = np.empty(order.size, dtype=np.int64)
    of_row[order] = np.cumsum(new) - 1
    return of_row


def _share_of_equals(values: NDArray[np.float64]) -> float:
    """Share of the values that equal another one; 0 without values."""
    ordered = np.sort(values)
    equal = ordered[1:] == ordered[:-1]
    return float(np.count_nonzero(np.r_[equal, False] | np.r_[False, equal])) / max(1, values.size)


def _of_bags(
    target: Target,
    groups: NDArray[np.int64] | None,
    ids: NDArray[np.int64],
    k: int,
    seed: int,
    only_grades: bool,
) -> list[Fold]:
    """``make_folds`` of the bags, or of the queries where there are any."""
    bags = Bags.of_rows(ids, target.relevant.astype(np.float64), groups)
    of_row = bags.bag_of_row
    if groups is not None:
        assert bags.qid is not None
        parted = np.flatnonzero(bags.qid[of_row] != groups)
        if parted.size:
            raise FoldError("a bag has rows of several queries: no folds of whole queries keep it together")
        return make_folds(target, groups, k, seed, only_grades=only_grades)
    best = bags.best(target.relevant)
    grades = None if target.grades is None else bags.best(target.grades)
    of_bags = make_folds(Target(target.labels, best, grades), None, k, seed, only_grades=only_grades)
    test = np.empty(bags.n_bags, dtype=np.int64)
    for at, fold in enumerate(of_bags):
        test[fold.test] = at
    parts = range(len(of_bags))
    return [Fold(np.flatnonzero(test[of_row] != at), np.flatnonzero(test[of_row] == at)) for at in parts]


def _most(k: int, available: dict[str, int]) -> int:
    """At most k folds, one of each of what is ``available`` in every fold."""
    for what, count in available.items():
        if count < 2:
            raise FoldError(f"2 folds need at least 2 {what}, found {count}")
    return min(k, *available.values())


def _differ(values: NDArray[np.float64] | NDArray[np.bool_], of_row: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(G,) bool: True for the queries 0..G−1 whose rows differ in value."""
    order = np.lexsort((values, of_row))
    query, value = of_row[order], values[order]
    differs = np.zeros(int(of_row.max()) + 1, dtype=np.bool_)
    differs[query[1:][(query[1:] == query[:-1]) & (value[1:] != value[:-1])]] = True
    return differs


def _by_grade(rows: NDArray[np.int64], grades: NDArray[np.float64], k: int) -> list[NDArray[np.int64]]:
    """``rows``, ascending, by grade, the highest first; a grade of less than k rows joins those below it."""
    order = rows[np.argsort(-grades[rows], kind="stable")]
    ends = np.flatnonzero(np.diff(grades[order])) + 1
    kept, last = [], 0
    for end in ends.tolist():
        if end - last >= k and order.size - end >= k:
            kept.append(end)
            last = end
    return [np.sort(stratum) for stratum in np.split(order, kept)]


def _dealt(strata: Sequence[NDArray[np.int64]], k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The fold of each of those in ``strata``, which are dealt out one after the other, each shuffled."""
    members = np.concatenate([rng.permutation(stratum) for stratum in strata])
    fold_of = np.empty(members.size, dtype=np.int64)
    fold_of[members] = np.arange(members.size) % k
    return fold_of


@dataclass(frozen=True, slots=True, eq=False)
class AffordableFolds:
    """Folds of a quick comparison.

    Attributes
    ----------
    folds : of the rows, or of the bags; none where there is too little to hold anything out
    how : what they are, or why there are none, in words
    alike : (m,) int64 for each fold of a part of the rows: some that are not trained on, positives and negatives in the
        shares of all rows, where a threshold can be chosen; None: those that the folds test on
    """

    folds: Sequence[Fold]
    how: str
    alike: Sequence[NDArray[np.int64]] | None = None

    def first(self, k: int) -> AffordableFolds:
        """The first k of them."""
        if k >= len(self.folds):
            return self
        alike = None if self.alike is None else self.alike[:k]
        return AffordableFolds(self.folds[:k], f"{k} of {self.how}", alike)


def affordable_count(data: TrainingSet) -> int:
    """Number of folds for a comparison of single trainings."""
    if _milliseconds(data) <= MS_FOR_FIVE:
        return 5
    return 3 if np.count_nonzero(data.target.relevant) < ENOUGH_POSITIVES else 1


def _milliseconds(data: TrainingSet, trainings: int = 1) -> float:
    """Time of an oracle call on all rows, for each of these trainings."""
    return 1e-6 * trainings * (NS_VALUE * data.rows.n_values + NS_ROW * len(data.rows))


def affordable_folds(data: TrainingSet, seed: int, trainings: int = 1) -> AffordableFolds:
    """The folds for a comparison of this many ``trainings`` at each setting; see the module."""
    rng = np.random.default_rng(seed)
    target, kind = data.target, data.unit
    call = _milliseconds(data, trainings)
    queries = data.queries if data.queries is not None and np.unique(data.queries).size > 1 else None
    of_unit = np.arange(target.relevant.size)
    strata = [np.flatnonzero(target.relevant), np.flatnonzero(~target.relevant)]
    smallest, few = min(stratum.size for stratum in strata), f"{kind} of one class"
    copies = None
    if queries is None and data.bags is None and data.components == 1:
        copies = copies_of(data.rows, target)
    if copies is not None:
        kind, of_unit = "rows, copies together", copies
        strata = [np.unique(copies[stratum]) for stratum in strata]
        smallest = min(stratum.size for stratum in strata)
    if queries is not None:
        kind, few = "queries", "queries with something to rank"
        _, of_unit = np.unique(queries, return_inverse=True)
        compared = target.relevant if target.grades is None else np.maximum(target.grades, 0.0)
        ranked = _differ(compared, of_unit)
        strata = [np.flatnonzero(ranked), np.flatnonzero(~ranked)]
        smallest = strata[0].size
    if smallest < FEWEST:
        return AffordableFolds([], f"{smallest} {few} are too few to hold any out")
    alike = None
    if call <= MS_FOR_FIVE or (call <= MS_FOR_THREE and strata[0].size < ENOUGH_POSITIVES):
        k = min(5 if call <= MS_FOR_FIVE else 3, smallest // 2)
        fold_of = _dealt(strata, k, rng)[of_unit]
        folds = [Fold(np.flatnonzero(fold_of != at), np.flatnonzero(fold_of == at)) for at in range(k)]
        how = f"{k} folds of {kind}"
    else:
        least = max(ROWS_A_VALUE * data.rows.n_values / len(data.rows), data.rows.features) / len(data.rows)
        k = 1 if strata[0].size >= ENOUGH_POSITIVES else 3
        folds, alike, counts = _parts(strata, of_unit, call, least, k, rng)
        how = "{1:,} {kind}, trained on {0:,} others".format(*counts, kind=kind)
        if k > 1:
            how = f"{k} folds of {kind}" if sum(counts) == of_unit.max() + 1 else f"{k} times {how}"
    if queries is not None:
        folds = [_judged_by_few(fold, of_unit, strata[0], rng) for fold in folds]
    return AffordableFolds(folds, how, alike)


def _parts(
    strata: Sequence[NDArray[np.int64]],
    of_unit: NDArray[np.int64],
    call: float,
    least: float,
    k: int,
    rng: np.random.Generator,
) -> tuple[list[Fold], list[NDArray[np.int64]], tuple[int, int]]:
    """k splits of a part of the rows, on which a call takes this many milliseconds, the rows ``alike`` of each, and how
    many units train and judge; ``least``: the smallest share of them to train on."""
    enough = ENOUGH_POSITIVES / strata[0].size
    training = min(LARGEST_PART, max(MS_OF_A_PART / call, least))
    judging = MS_OF_JUDGED / call
    # Rare positives are what the ranking is about: more of them, where the share would leave few.
    of_first = min(LARGEST_PART, max(training, enough))
    first_judging = min(1.0 - of_first, max(judging, enough))
    of_others = max(training, of_first / MOST_TIMES_RARER)
    others_judging = min(1.0 - of_others, max(judging, first_judging / MOST_TIMES_RARER))
    shares = ((of_first, first_judging), (of_others, others_judging))
    orders = [rng.permutation(stratum) for stratum in strata]
    folds, alike = list[Fold](), list[NDArray[np.int64]]()
    for at in range(k):
        parts = np.zeros((3, int(of_unit.max()) + 1), dtype=bool)
        for order, (train, judge) in zip(orders, shares, strict=True):
            drawn = np.roll(order, at * order.size // k)
            end, *others = (max(1, round(share * order.size)) for share in (train, judge, first_judging))
            parts[0, drawn[:end]] = True
            for part, others_end in zip(parts[1:], others, strict=True):
                part[drawn[end : end + others_end]] = True
        training_rows, test, of_all = (np.flatnonzero(part[of_unit]) for part in parts)
        folds.append(Fold(training_rows, test))
        alike.append(of_all)
    return folds, alike, (int(parts[0].sum()), int(parts[1].sum()))


def _judged_by_few(fold: Fold, of_row: NDArray[np.int64], ranked: NDArray[np.int64], rng: np.random.Generator) -> Fold:
    """The fold with at most this many of its test queries that have something to rank."""
    queries = np.intersect1d(of_row[fold.test], ranked)
    if queries.size <= MOST_JUDGED:
        return fold
    kept = rng.permutation(queries)[:MOST_JUDGED]
    return fold._replace(test=fold.test[np.isin(of_row[fold.test], kept)])
