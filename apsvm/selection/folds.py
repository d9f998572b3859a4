"""Folds: rows to train on and rows to test on, k times; each row is tested once.

Where rows have queries, whole queries are dealt out, those that can be ranked and the others each evenly; else rows,
each fold with its share of the relevant ones and, where there are grades, of every grade. Rows of a bag are never
parted. O(n log n).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.data.bags import Bags
from apsvm.data.labels import Target


class FoldError(ValueError):
    """Rows that cannot be dealt out to so many folds; the message says which there are too few of."""


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
    """k folds of n rows.

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
    FoldError : a fold would go without
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
        _require(k, {f"queries with {what}": int(can_be_ranked.sum())})
        strata = [np.flatnonzero(can_be_ranked), np.flatnonzero(~can_be_ranked)]
    else:
        of_row = np.arange(compared.size)
        if compared is grades:
            _require(2 * k, {"rows": compared.size}, folds=k)
            parts = [of_row]
        else:
            parts = [np.flatnonzero(target.relevant), np.flatnonzero(~target.relevant)]
            _require(k, {"positive rows": parts[0].size, "negative rows": parts[1].size})
        strata = parts if grades is None else [stratum for part in parts for stratum in _by_grade(part, grades, k)]
    fold_of = _dealt(strata, k, rng)[of_row]
    return [Fold(np.flatnonzero(fold_of != at), np.flatnonzero(fold_of == at)) for at in range(k)]


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
            raise FoldError(
                f"bag {ids[parted[0]]} has rows of several queries: no folds of whole queries keep it together"
            )
        return make_folds(target, groups, k, seed, only_grades=only_grades)
    best = bags.best(target.relevant)
    grades = None if target.grades is None else bags.best(target.grades)
    of_bags = make_folds(Target(target.labels, best, grades), None, k, seed, only_grades=only_grades)
    test = np.empty(bags.n_bags, dtype=np.int64)
    for at, fold in enumerate(of_bags):
        test[fold.test] = at
    return [Fold(np.flatnonzero(test[of_row] != at), np.flatnonzero(test[of_row] == at)) for at in range(k)]


def _require(count: int, available: dict[str, int], *, folds: int | None = None) -> None:
    for what, result in available.items():
        if result < count:
            raise FoldError(f"{count if folds is None else folds} folds need at least {count} {what}, found {result}")


def _differ(values: NDArray[np.float64] | NDArray[np.bool_], of_row: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Of which queries 0..G−1 the rows differ in value: (G,) bool."""
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
