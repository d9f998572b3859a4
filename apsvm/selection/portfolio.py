"""The comparison of ``apsvm cv``: tries the entries of a portfolio (``candidates``), and gives up what is hopeless.

Every entry is tried in one fold, and those that are not hopeless there in the others. Of many rows a sample is taken
for this, and the best entries of the sample are compared on all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.data.features import FeatureMapError
from apsvm.data.labels import LabelOptions, Target, judge
from apsvm.data.rows import Rows
from apsvm.losses.base import LossError
from apsvm.selection.bags import of_bags
from apsvm.selection.candidates import Entry, losses_of, portfolio
from apsvm.selection.choose import FEW_POSITIVES, LEAST, best, is_near, share_error
from apsvm.selection.cross_validation import SelectionError
from apsvm.selection.folds import FOLDS, FOLDS_OF_MANY, copies_of, differ
from apsvm.selection.grids import AROUND, Grid
from apsvm.selection.race import Candidate
from apsvm.selection.search import Followers, SettingsSearch
from apsvm.trainers.fitting import FeatureOptions
from apsvm.trainers.settings import Multiple

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.metrics import Metric

#: Standard errors by which an entry that is given up is behind the best in the first fold. The errors are those of one
#: entry; entries judged by the same rows differ less.
HOPELESS = 2.0
#: Feature values and rows of a sample, and rows (or bags) of a class that it keeps, where its share is less.
VALUES, ROWS, ROWS_OF_CLASS = 2_000_000, 10_000, 2_000
#: Kinds of entries times rows that go on from a sample to all rows; the best kind always does.
MOST_ROWS = 60_000
#: Errors that end the trial of an entry but not the comparison.
FAILURES = FeatureMapError, LossError, FloatingPointError, np.linalg.LinAlgError


class GivenUp(NamedTuple):
    """An entry that was given up, the reason, and its value of the metric, if there is one."""

    entry: Entry
    why: str
    value: float | None = None

    def __str__(self) -> str:
        return f"{self.entry} ({self.why})"


class PortfolioSearch:
    """Tries the entries of a portfolio. Other parameters as for ``SettingsSearch``.

    Parameters
    ----------
    folds : number of folds; by default ``FOLDS``, or ``FOLDS_OF_MANY`` for many rows
    judged_by : meaning of the labels to the metrics; by default that of ``labels``; otherwise grades if rows have
        queries or all metrics read grades, else two classes

    Attributes
    ----------
    entries : all entries
    racing : entries of the current search, by grid number
    given_up : entries that were given up

    Raises
    ------
    DataError : the labels do not fit
    FoldError : there are not enough rows for the folds
    """

    def __init__(
        self,
        dataset: Dataset,
        metrics: Mapping[str, Metric],
        *,
        labels: LabelOptions = LabelOptions(),  # noqa: B008  # frozen
        features: FeatureOptions = FeatureOptions(),  # noqa: B008  # frozen
        folds: int | None = None,
        seed: int = 0,
        judged_by: Target | None = None,
        query_weights: Mapping[int, float] | None = None,
    ) -> None:
        self.metrics, self.metric = metrics, next(iter(metrics))
        self._dataset, self._seed = dataset, seed
        self._labels, self._query_weights = labels, query_weights
        # With queries, labels beyond ±1 and 0 are grades; otherwise they may be classes, and the user has to name the
        # positive one.
        only_grades = all(metric.graded for metric in metrics.values())
        graded = only_grades or dataset.groups is not None
        self.target = judged_by or judge(dataset, labels, None, graded_metrics=graded)
        self._sample = sample(dataset, self.target, seed, only_grades=only_grades)
        self._folds = folds or (FOLDS_OF_MANY if is_large(dataset) else FOLDS)
        self.racing: Sequence[Entry] = []
        self.given_up: list[GivenUp] = []
        self.entries = portfolio(dataset, self.metric, features, self.target, labels)
        self._own_losses = () if dataset.groups is None else losses_of(self.metric, self.target)[1:]

    @property
    def caution(self) -> str | None:
        """A warning if positives are few; None otherwise."""
        positives = int(of_bags(self._dataset, self.target).relevant.sum())
        if positives >= FEW_POSITIVES:
            return None
        return (
            f"{positives} positives are few: which entry is best is mostly chance, and what it is worth on other rows "
            "a rough estimate"
        )

    def screen(self, jobs: int = 0, followers: Followers = Followers()) -> SettingsSearch:  # noqa: B008  # frozen
        """Returns the search over all rows among the remaining entries, to be run; after a stop among the best so far.

        Raises
        ------
        FoldError, SelectionError, ValueError : as ``SettingsSearch``, for reasons independent of the entry
        FeatureMapError, LossError, FloatingPointError, LinAlgError : no entry can be tried; the error of the last one
        """
        left = self.entries
        if self._sample is not None:
            search = self._hopeful(left, self._sample, jobs, followers)
            search.run(jobs, followers)
            # After a stop those count that were finished in the most folds.
            ranked = next(filter(None, (self._ranked(search, k) for k in range(len(search.folds), 0, -1))), [])
            kept = self._finalists(ranked, search.positives)
            self._give_up(search, ranked, kept, "on a sample")
            left = [_around(self.racing[one.grid], one) for one in kept] or left[:1]
            if followers.should_stop():
                return self._search(left[:1], None)
        return self._hopeful(left, None, jobs, followers)

    def _hopeful(
        self, entries: Sequence[Entry], which: NDArray[np.int64] | None, jobs: int, followers: Followers
    ) -> SettingsSearch:
        """A search on the rows ``which`` (None: all) among the entries that, after one fold, are behind the best by at
        most ``LEAST`` or ``HOPELESS`` standard errors of a share of the fold's positives or queries."""
        search = self._search(entries, which)
        search.run(jobs, followers, range(1))
        ranked = self._ranked(search, 1)
        if not ranked and search.failures:
            raise SelectionError("; ".join(dict.fromkeys(search.failures.values())))
        if ranked:  # otherwise it was stopped
            test, groups = search.folds[0].test, search.units.groups
            if groups is None:
                count = int(search.target.of(test).relevant.sum())
                count = min(count, getattr(self.metrics[self.metric], "k", count))
            else:
                count = np.unique(groups[test]).size
            top = ranked[0].mean(self.metric)
            limit = top - max(LEAST, HOPELESS * share_error(top, count))
            where = "in one fold" if which is None else "in one fold of a sample"
            self._give_up(search, ranked, [one for one in ranked if one.mean(self.metric) >= limit], where)
        return search

    def _give_up(
        self, search: SettingsSearch, ranked: Sequence[Candidate], kept: Sequence[Candidate], where: str
    ) -> None:
        """Keeps only these candidates' entries, and notes why the others of ``ranked``, and those that failed, go."""
        for grid in search.alive:
            if grid in search.failures:
                self.given_up.append(GivenUp(self.racing[grid], search.failures[grid]))
        for one in ranked:
            if one not in kept:
                value = one.mean(self.metric)
                self.given_up.append(GivenUp(self.racing[one.grid], f"{self.metric} {value:.3f} {where}", value))
        search.alive = sorted(one.grid for one in kept)

    def _ranked(self, search: SettingsSearch, folds: int) -> list[Candidate]:
        """Best candidate of each grid alive after this many folds, in order of the metric; ties go to the simpler
        entry."""
        finished = search.candidates(folds)
        by_grid = {grid: [one for one in finished if one.grid == grid] for grid in search.alive}
        ranked = [best(of_grid, self.metric) for of_grid in by_grid.values() if of_grid]
        return sorted(ranked, key=lambda one: (-one.mean(self.metric), one.grid))

    def _finalists(self, ranked: Sequence[Candidate], positives: int | None) -> list[Candidate]:
        """The best candidate of each kind that is near the best of all: of as many kinds as ``MOST_ROWS`` allows. With
        queries one by the metric's own loss is preferred."""
        of_kind: dict[object, Candidate] = {}
        for one in ranked:
            kind, is_own = self.racing[one.grid].kind, one.loss in self._own_losses
            is_preferred = kind not in of_kind or (is_own and of_kind[kind].loss not in self._own_losses)
            if is_preferred and is_near(one, ranked[0], self.metric, positives):
                of_kind[kind] = one
        return list(of_kind.values())[: max(1, MOST_ROWS // len(self._dataset))]

    def _search(self, entries: Sequence[Entry], which: NDArray[np.int64] | None) -> SettingsSearch:
        """A search among entries on the rows ``which`` (None: all). Raises as ``screen``."""
        racing, grids = list[Entry](), list[Grid]()
        failure: Exception | None = None
        for entry in entries:
            try:
                grids.append(entry.grid(self._seed))
                racing.append(entry)
            except FAILURES as error:
                failure = error
                self.given_up.append(GivenUp(entry, str(error)))
        if not grids and failure is not None:
            raise failure
        rows, target = self._dataset, self.target
        if which is not None:
            rows, target = rows.select(which), target.of(which)
        self.racing = racing
        return SettingsSearch(
            rows,
            grids,
            self.metrics,
            folds=self._folds if which is None else min(FOLDS_OF_MANY, self._folds),
            seed=self._seed,
            judged_by=of_bags(rows, target),
            tolerated=FAILURES,
            labels=self._labels,
            query_weights=self._query_weights,
            averages=True,
        )


def _around(entry: Entry, candidate: Candidate) -> Entry:
    """The entry with the candidate's C and the values a tenth and ten times as large."""
    C = candidate.choice.get("C")
    if not isinstance(C, Multiple):
        return entry
    return replace(entry, multiples=tuple(C.factor * factor for factor in AROUND))


def is_large(dataset: Dataset) -> bool:
    """True for so many rows that a sample is compared first, unless it would hold most of them."""
    return _share(dataset) <= 0.5


def _share(dataset: Dataset) -> float:
    return min(VALUES / max(1, dataset.n_values), ROWS / len(dataset))


def sample(dataset: Dataset, target: Target, seed: int, *, only_grades: bool = False) -> NDArray[np.int64] | None:
    """Rows of a sample, ascending; None if it would hold most of the rows. Queries, bags and copies of a row are drawn
    whole. ``ROWS_OF_CLASS`` of either class are kept where its share is less, or a few queries with something to rank.

    Parameters
    ----------
    target : meaning of the labels
    only_grades : True if only grades are judged, not which rows are relevant
    """
    if not is_large(dataset):
        return None
    compared, ids, fewest = target.relevant, dataset.bags, (ROWS_OF_CLASS, ROWS_OF_CLASS)
    if dataset.groups is not None:
        _, of_row = np.unique(dataset.groups, return_inverse=True)
        grades = target.grades if only_grades else None
        is_first, fewest = differ(compared if grades is None else grades, of_row), (4 * FOLDS_OF_MANY, 0)
    else:
        ids = copies_of(Rows(dataset.X), target) if ids is None else ids
        of_row = np.arange(len(dataset)) if ids is None else np.unique(ids, return_inverse=True)[1]
        is_first = np.bincount(of_row, weights=compared) > 0.0
    rng, keep = np.random.default_rng(seed), np.zeros(is_first.size, dtype=bool)
    for which, least in zip((is_first, ~is_first), fewest, strict=True):
        units = np.flatnonzero(which)
        count = max(round(_share(dataset) * units.size), min(units.size, least))
        keep[rng.permutation(units)[:count]] = True
    rows = np.flatnonzero(keep[of_row])
    return None if rows.size > 0.5 * len(dataset) else rows
