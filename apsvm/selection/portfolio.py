"""The comparison of ``apsvm cv``: screens the entries of a portfolio (``candidates``) and leaves few of them for all
folds.

Every entry is tried in one fold, and those that are not hopeless in two more. On many rows this is done on a small
sample and then, with the remaining entries, on a larger one (successive halving: Jamieson and Talwalkar, AISTATS 2016).
Of each kind the best entry goes on to the other folds if it is near the best of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.data.bags import rows_of_bags
from apsvm.data.features import FeatureMapError
from apsvm.data.labels import LabelOptions, Target, judge
from apsvm.losses.base import LossError
from apsvm.selection.bags import bags_as_rows, of_bags
from apsvm.selection.candidates import Entry, losses_of, portfolio
from apsvm.selection.choose import LEAST, best, is_near, share_error
from apsvm.selection.cross_validation import SelectionError
from apsvm.selection.folds import FEW_POSITIVES, make_folds
from apsvm.selection.grids import Grid
from apsvm.selection.race import Candidate
from apsvm.selection.search import Followers, SettingsSearch, unseen
from apsvm.trainers.fitting import FeatureOptions
from apsvm.trainers.settings import Multiple

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.metrics import Metric

#: Number of folds of the screening.
SCREENING_FOLDS = 3
#: Number of kinds that go on to more rows, with their best entry and those near it (``choose.is_near``). On all rows
#: every kind whose best entry is near the best of all goes on to the other folds, on at most this many times
#: ``MANY_ROWS``.
FINALISTS = 3
#: Standard errors by which an entry that is given up is behind the best in the first fold. The errors are those of one
#: entry; entries judged by the same rows differ less.
HOPELESS = 2.0
#: Largest share of the rows in a sample; otherwise all rows are screened.
MOST_ROWS = 0.5
#: Errors that end the trial of an entry but not the comparison.
FAILURES = FeatureMapError, LossError, FloatingPointError, np.linalg.LinAlgError
#: With more feature values or rows there are only as many folds as in the screening.
MANY_VALUES, MANY_ROWS = 10_000_000, 20_000


class Round(NamedTuple):
    """Limits of a sample: feature values, rows, and rows of the rarer class."""

    values: int
    rows: int
    positives: int


ROUNDS = (Round(400_000, 2_500, 500), Round(2_000_000, 10_000, 2_000))


class PortfolioSearch:
    """Screens the entries of a portfolio. Other parameters as for ``SettingsSearch``.

    Parameters
    ----------
    folds : number of folds; by default five, or three for large data. The screening uses at most three.
    judged_by : meaning of the labels to the metrics; by default that of ``labels``; otherwise grades if rows have
        queries or all metrics read grades, else two classes

    Attributes
    ----------
    entries : all entries
    racing : entries of the current search, by grid number

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
        large = dataset.n_values > MANY_VALUES or len(dataset) > MANY_ROWS
        self._folds = folds or (SCREENING_FOLDS if large else 5)
        self._labels, self._query_weights = labels, query_weights
        # With queries, labels beyond ±1 and 0 are grades; otherwise they may be classes, and the user has to name the
        # positive one.
        only_grades = all(metric.graded for metric in metrics.values())
        graded = only_grades or dataset.groups is not None
        self.target = judged_by or judge(dataset, labels, None, graded_metrics=graded)
        # Checks before training that there are enough rows for all folds.
        units, target = bags_as_rows(dataset), of_bags(dataset, self.target)
        self._folds = len(make_folds(target, units.groups, self._folds, seed, only_grades=only_grades, bags=units.bags))
        self.entries = portfolio(dataset, self.metric, features, self.target, labels)
        queries = dataset.groups is not None
        self._own_losses = losses_of(self.metric, self.target, dataset)[1:] if queries else []
        self.racing: Sequence[Entry] = self.entries

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

    def screen(
        self,
        jobs: int = 0,
        followers: Followers = Followers(),  # noqa: B008  # frozen
        ended: Callable[[Entry, Candidate | str], None] = unseen,
    ) -> SettingsSearch:
        """Returns the search over all rows among the remaining entries, to be run; after a stop among the best so far.

        Parameters
        ----------
        ended : called with each entry and its best candidate, or the reason why there is none

        Raises
        ------
        FoldError, SelectionError, ValueError : as ``SettingsSearch``, for reasons independent of the entry
        FeatureMapError, LossError, FloatingPointError, LinAlgError : no entry can be tried; the error of the last one
        """
        left = self.entries
        samples = (sample(self._dataset, self.target, self._seed, size) for size in ROUNDS)
        rounds = [which for which in samples if which is not None]
        for number, which in enumerate(rounds, start=1):
            _, kept = self._screened(left, which, jobs, followers, ended, is_last=number == len(rounds))
            left = [self.racing[one.grid] for one in kept]
            if number == len(rounds):
                left = [_around(entry, one) for entry, one in zip(left, kept, strict=True)]
            if followers.should_stop():
                return self._search(left[:1] or self.entries[:1], None, unseen)
        return self._screened(left, None, jobs, followers, ended, is_last=True)[0]

    def _screened(
        self,
        entries: Sequence[Entry],
        which: NDArray[np.int64] | None,
        jobs: int,
        followers: Followers,
        ended: Callable[[Entry, Candidate | str], None],
        *,
        is_last: bool,
    ) -> tuple[SettingsSearch, list[Candidate]]:
        """Screens entries on the rows ``which`` (None: all). Returns the search and the candidates that go on;
        ``is_last`` says that they go on to all rows or all folds."""
        search = self._search(entries, which, ended)
        folds = min(SCREENING_FOLDS, len(search.folds))
        kept = list[Candidate]()
        for number, within in ((1, range(1)), (folds, range(1, folds))):
            search.run(jobs, followers, within)
            ranked = self._ranked(search, number)
            if number == 1 and not ranked and search.failures:
                raise SelectionError("; ".join(dict.fromkeys(search.failures.values())))
            if not ranked:  # it was stopped
                break
            if number == 1:
                kept = self._hopeful(search, ranked)
            else:
                kept = self._finalists(ranked, search.positives, is_last=is_last)
            for one in ranked:
                if one not in kept:
                    ended(self.racing[one.grid], one)
            search.alive = [one.grid for one in kept]
        for grid, why in search.failures.items():
            ended(self.racing[grid], why)
        for one in kept if which is None else ():
            ended(self.racing[one.grid], one)
        return search, kept

    def _ranked(self, search: SettingsSearch, folds: int) -> list[Candidate]:
        """Best candidate of each grid alive after this many folds, in order of the metric; ties go to the simpler
        entry."""
        finished = [one for one in search.candidates(folds) if one.grid in search.alive]
        by_grid = {grid: [one for one in finished if one.grid == grid] for grid in search.alive}
        ranked = [best(of_grid, self.metric) for of_grid in by_grid.values() if of_grid]
        return sorted(ranked, key=lambda one: (-one.mean(self.metric), one.grid))

    def _hopeful(self, search: SettingsSearch, ranked: Sequence[Candidate]) -> list[Candidate]:
        """Candidates that, after one fold, are behind the best by at most ``LEAST`` or ``HOPELESS`` standard errors of
        a share among as many positives, or queries, as the fold has."""
        test, groups = search.folds[0].test, search.dataset.groups
        count = int(search.target.of(test).relevant.sum()) if groups is None else np.unique(groups[test]).size
        top = ranked[0].mean(self.metric)
        limit = top - max(LEAST, HOPELESS * share_error(top, count))
        kept = min(FINALISTS, self._most)
        return [one for place, one in enumerate(ranked) if place < kept or one.mean(self.metric) >= limit]

    def _finalists(self, ranked: Sequence[Candidate], positives: int | None, *, is_last: bool) -> list[Candidate]:
        """Candidates that go on after the screening, of several kinds, so that one kind does not crowd out another that
        improves with more rows."""
        metric = self.metric
        of_kinds: dict[object, list[Candidate]] = {}
        for one in ranked:
            of_kinds.setdefault(self.racing[one.grid].kind, []).append(one)
        kinds = list(of_kinds.values())
        if not is_last:
            kept = [one for of in kinds[:FINALISTS] for one in of if is_near(one, of[0], metric, positives)]
        else:
            kept = [of[0] for of in kinds if is_near(of[0], ranked[0], metric, positives)][: self._most]
        # With queries the metric's own loss always stays.
        for kind in dict.fromkeys(self.racing[one.grid].kind for one in kept):
            own = (one for one in of_kinds[kind] if self.racing[one.grid].loss in self._own_losses)
            kept += [one for one in list(own)[:1] if one not in kept]
        return sorted(kept, key=ranked.index)

    @property
    def _most(self) -> int:
        """Largest number of finalists."""
        return max(1, FINALISTS * MANY_ROWS // len(self._dataset))

    def _search(
        self,
        entries: Sequence[Entry],
        which: NDArray[np.int64] | None,
        ended: Callable[[Entry, Candidate | str], None],
    ) -> SettingsSearch:
        """A search among entries on the rows ``which`` (None: all). Raises as ``screen``."""
        racing, grids = list[Entry](), list[Grid]()
        failure: Exception | None = None
        for entry in entries:
            try:
                grids.append(entry.grid(self._seed))
                racing.append(entry)
            except FAILURES as error:
                failure = error
                ended(entry, str(error))
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
            folds=self._folds if which is None else min(SCREENING_FOLDS, self._folds),
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
    return replace(entry, multiples=(0.1 * C.factor, C.factor, 10.0 * C.factor))


def sample(dataset: Dataset, target: Target, seed: int, size: Round) -> NDArray[np.int64] | None:
    """Rows of a sample, ascending; None if it would hold most of the rows. Whole queries or bags are drawn; without
    queries the rarer class is kept up to the limit, and a share of the other."""
    share = min(size.values / max(1, dataset.n_values), size.rows / len(dataset))
    if share > MOST_ROWS:
        return None
    rng = np.random.default_rng(seed)
    if dataset.groups is not None:
        names, of_row = np.unique(dataset.groups, return_inverse=True)
        chosen = rng.random(names.size) < share
        chosen[rng.permutation(names.size)[: 4 * SCREENING_FOLDS]] = True
        return np.flatnonzero(chosen[of_row])
    relevant = of_bags(dataset, target).relevant
    keep = np.zeros(relevant.size, dtype=bool)
    for which in (relevant, ~relevant):
        units = np.flatnonzero(which)
        count = max(round(share * units.size), min(units.size, size.positives))
        keep[rng.permutation(units)[:count]] = True
    return rows_of_bags(dataset, np.flatnonzero(keep))
