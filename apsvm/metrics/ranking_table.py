"""Many rankings as cumulative counts. Every metric reads the result of one sort.

The rows of each ranking q = 1..Q, sorted by falling score, are cut into runs; after the i-th run of a ranking,

    ends_i = #rows ranked so far,   hits_i = #positives among them,
    precision_i = hits_i / ends_i,  recall_i = hits_i / P_q.

Under the tie rule ``block`` a run is a block of equal scores; under ``pessimistic`` and ``file`` a run is one row, and
the rule sets the order inside blocks. The runs of all rankings form one array, and counts restart with each ranking. So
a metric takes a few array operations, for one ranking of millions of rows and for thousands of short ones.

A row may be unranked: it counts among the positives or negatives but has no position (TREC: judged, not retrieved).
Cost: O(n log n) for the sort, O(n) after it, whatever the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apsvm.metrics.checked import number_groups, sorted_rows

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

Counts = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judgements:
    """Checked rows of Q rankings, before any scores order them.

    grades : (n,) bool, or float64 with `relevant_from`
    relevant_from : rows of this grade or a higher one are relevant
    codes : (n,) integers 0..Q−1, the ranking of each row; every ranking has a row. None: one ranking
    groups : (Q,) the rankings' ids, rising; None if they have none
    ranked : (n,) bool, rows with a position; None: all. Scores of other rows are ignored
    judged : (n,) bool, rows that were judged; None: all. Others are not relevant
    threshold : scores above it predict "relevant"
    """

    grades: NDArray[np.bool_] | Values
    relevant_from: float | None = None
    codes: NDArray[np.integer] | None = None
    groups: AnyArray | None = None
    ranked: NDArray[np.bool_] | None = None
    judged: NDArray[np.bool_] | None = None
    threshold: float = 0.0

    @classmethod
    def of(
        cls,
        groups: ArrayLike | None,
        grades: NDArray[np.bool_] | Values,
        relevant_from: float | None = None,
        threshold: float = 0.0,
    ) -> Judgements:
        """Rows with a ranking for each of the `groups`, (n,) integers in any order, or one without. Raises
        `MetricError` for groups that do not fit."""
        ids, codes = (None, None) if groups is None else number_groups(groups, len(grades))
        return cls(grades, relevant_from, codes, ids, threshold=threshold)

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """(n,) bool, whether judged or not."""
        return self.grades >= (1 if self.relevant_from is None else self.relevant_from)

    def table(self, scores: Values, ties: str, *, in_order: bool = False) -> RankingTable:
        """The rankings by `scores` (n,) float64, finite where ranked, under a tie rule checked by `check_ties`.

        in_order : the rows are sorted already, as `sorted_rows` sorts them
        """
        worst_first = self.grades if ties == "pessimistic" else None
        order = np.arange(scores.size) if in_order else sorted_rows(scores, worst_first, self.codes, self.ranked)
        grades, relevant, judged = self.grades[order].astype(np.float64, copy=False), self.relevant[order], None
        if self.judged is not None:
            judged = self.judged[order]
            grades, relevant = grades * judged, relevant & judged
        row_bounds = np.array([0, order.size]) if self.codes is None else _bounds(np.bincount(self.codes))

        n_ranked, ranked_grades, ranked_relevant = np.diff(row_bounds), grades, relevant
        if self.ranked is not None and not self.ranked.all():
            is_ranked = self.ranked[order]
            n_ranked = np.diff(_bounds(is_ranked)[row_bounds])
            ranked_grades, ranked_relevant, order = grades[is_ranked], relevant[is_ranked], order[is_ranked]
        bounds = _bounds(n_ranked)
        sorted_scores = scores[order]
        last_rows = _ends_of_blocks(sorted_scores, bounds[1:][n_ranked > 0])
        tied_blocks, tied_rows = _ties(last_rows, ranked_grades, bounds)

        if ties != "block":
            last_rows = np.arange(order.size)
        run_bounds = np.searchsorted(last_rows, bounds, side="left")
        ends, hits = _counts(last_rows, ranked_relevant, bounds, run_bounds)
        return RankingTable(
            groups=self.groups,
            ties=ties,
            row_bounds=row_bounds,
            relevant=relevant,
            grades=grades,
            judged=judged,
            n_ranked=n_ranked,
            run_bounds=run_bounds,
            ends=ends,
            hits=hits,
            lowest_scores=sorted_scores[last_rows],
            tied_blocks=tied_blocks,
            tied_rows=tied_rows,
            threshold=self.threshold,
        )


@dataclass(frozen=True, eq=False)
class RankingTable:
    """Q rankings, highest score first. Arrays over rows, runs and rankings:

    groups : (Q,) the rankings' ids, rising; None if they have none
    ties : the tie rule
    row_bounds : (Q+1,) int64; the rows of ranking q are row_bounds[q] … row_bounds[q+1] − 1, at least one, the ranked
        ones first
    relevant : (n,) bool
    grades : (n,) float64; 1 and 0 for binary relevance
    judged : (n,) bool, or None if all rows are judged; unjudged rows are not relevant
    n_ranked : (Q,) int64, rows that have a position
    run_bounds : (Q+1,) int64; the runs of ranking q are run_bounds[q] … run_bounds[q+1] − 1, possibly empty
    ends : (m,) int64, strictly rising in a ranking
    hits : (m,) int64, non-decreasing in a ranking
    lowest_scores : (m,) float64, non-increasing in a ranking, the score at which each run ends
    tied_blocks : (Q,) int64, blocks of equal score whose rows differ in grade, whatever the tie rule
    tied_rows : (Q,) int64, rows in those blocks
    threshold : scores above it predict "relevant" (F)
    """

    groups: AnyArray | None
    ties: str
    row_bounds: Counts
    relevant: NDArray[np.bool_]
    grades: Values
    judged: NDArray[np.bool_] | None
    n_ranked: Counts
    run_bounds: Counts
    ends: Counts
    hits: Counts
    lowest_scores: Values
    tied_blocks: Counts
    tied_rows: Counts
    threshold: float

    @property
    def n_rankings(self) -> int:
        return self.row_bounds.size - 1

    @cached_property
    def n_rows(self) -> Counts:
        """(Q,) int64: rows of each ranking, the unranked ones included."""
        return np.diff(self.row_bounds)

    @cached_property
    def n_positives(self) -> Counts:
        """(Q,) int64: relevant rows, the unranked ones included."""
        return self.sum_rows(self.relevant)

    @cached_property
    def n_negatives(self) -> Counts:
        """(Q,) int64: rows that are not relevant, including unranked and unjudged ones."""
        return self.n_rows - self.n_positives

    @cached_property
    def begins(self) -> Counts:
        """(m,) int64: rows ranked above each run."""
        begins = np.empty_like(self.ends)
        begins[1:] = self.ends[:-1]
        begins[self._first_runs] = 0
        return begins

    @cached_property
    def sizes(self) -> Counts:
        """(m,) int64: rows in each run."""
        return self.ends - self.begins

    @cached_property
    def gains(self) -> Counts:
        """(m,) int64: positives in each run."""
        return self.in_runs(self.hits)

    @cached_property
    def hits_above(self) -> Counts:
        """(Q,) int64: ranked positives with a score above the threshold."""
        return self.sum_runs(self.gains * (self.lowest_scores > self.threshold))

    @cached_property
    def rows_above(self) -> Counts:
        """(Q,) int64: ranked rows with a score above the threshold."""
        return self.sum_runs(self.sizes * (self.lowest_scores > self.threshold))

    @cached_property
    def precision(self) -> Values:
        """(m,) float64: precision at the end of each run."""
        return self.hits / self.ends

    @cached_property
    def precision_envelope(self) -> Values:
        """(m,) float64, non-increasing in a ranking: the largest precision at this or a higher recall."""
        backwards = self.precision[::-1]
        envelope = np.empty_like(backwards)
        bounds = (self.ends.size - self.run_bounds).tolist()
        for first, last in zip(bounds[1:], bounds[:-1], strict=True):
            np.maximum.accumulate(backwards[first:last], out=envelope[first:last])
        return envelope[::-1]

    @cached_property
    def ranked_rows(self) -> Counts | slice:
        """Index that selects the ranked rows from an array over rows."""
        if np.array_equal(self.n_ranked, self.n_rows):
            return slice(None)
        return np.flatnonzero(self.positions <= np.repeat(self.n_ranked, self.n_rows))

    @cached_property
    def positions(self) -> Counts:
        """(n,) int64: the position of each row in its ranking, from 1; unranked rows follow the ranked ones."""
        return np.arange(1, self.relevant.size + 1) - np.repeat(self.row_bounds[:-1], self.n_rows)

    @cached_property
    def highest_grades(self) -> Values:
        """(Q,) float64: the highest grade in each ranking."""
        result: NDArray[np.float64] = np.maximum.reduceat(self.grades, self.row_bounds[:-1])
        return result

    @cached_property
    def lowest_grades(self) -> Values:
        """(Q,) float64: the lowest grade in each ranking."""
        result: NDArray[np.float64] = np.minimum.reduceat(self.grades, self.row_bounds[:-1])
        return result

    @cached_property
    def best_grades(self) -> Values:
        """(n,) float64: the grades of each ranking in falling order."""
        codes = np.repeat(np.arange(self.n_rankings), self.n_rows) if self.n_rankings > 1 else None
        return self.grades[sorted_rows(self.grades, codes=codes)]

    @cached_property
    def blocks(self) -> Counts:
        """(n,) int64: number of each row's run, rising over all rows; a ranking's unranked rows form another run."""
        starts = np.zeros(self.relevant.size, dtype=np.int64)
        starts[self.begins + self.of_runs(self.row_bounds[:-1])] = 1
        starts[(self.row_bounds[:-1] + self.n_ranked)[self.n_ranked < self.n_rows]] = 1
        return np.cumsum(starts) - 1

    def in_runs(self, cumulative: Counts) -> Counts:
        """(m,): increments by run of counts (m,) that restart with each ranking."""
        result = np.diff(cumulative, prepend=0)
        result[self._first_runs] = cumulative[self._first_runs]
        return result

    def sum_rows(self, values: AnyArray) -> AnyArray:
        """(Q,): the sum of `values` (n,) over the rows of each ranking; of bool, the count."""
        result: AnyArray = np.add.reduceat(values, self.row_bounds[:-1], dtype=_sum_type(values))
        return result

    def sum_runs(self, values: AnyArray) -> AnyArray:
        """(Q,): the sum of `values` (m,) over the runs of each ranking, 0 without runs; for bool, the count."""
        result = np.zeros(self.n_rankings, dtype=_sum_type(values))
        if values.size:
            result[self._filled] = np.add.reduceat(values, self._first_runs, dtype=result.dtype)
        return result

    def of_runs(self, per_ranking: AnyArray) -> AnyArray:
        """(m,): the value in `per_ranking` (Q,) for each run."""
        return np.repeat(per_ranking, np.diff(self.run_bounds))

    def accumulate_rows(self, marked: NDArray[np.bool_]) -> Counts:
        """(m,): number of `marked` ranked rows of the ranking up to the end of each run."""
        cumulative = np.concatenate([[0], np.cumsum(marked)])
        above = self.of_runs(self._ranked_above)
        result: Counts = cumulative[self.ends + above] - cumulative[above]
        return result

    def add_rows(self, values: NDArray[np.float64]) -> Values:
        """(m,): sum of `values` of the ranked rows of each run."""
        if values.size == self.ends.size:
            return values
        result: NDArray[np.float64] = np.add.reduceat(values, self.begins + self.of_runs(self._ranked_above))
        return result

    def hits_within(self, depth: Counts) -> Values:
        """(Q,) float64: the positives among the first `depth` (Q,) ≥ 0 positions, the expectation over the shuffles of
        the run that straddles it. Positions beyond the ranked rows count 0."""
        depth = np.minimum(depth, self.n_ranked)
        result = np.zeros(self.n_rankings)
        cut_rankings = np.flatnonzero(depth > 0)
        if cut_rankings.size == 0:
            return result
        above = self._ranked_above
        run = np.searchsorted(self.ends + self.of_runs(above), (above + depth)[cut_rankings], side="left")
        size, gain = self.sizes[run], self.gains[run]
        hits_above, rows_taken = self.hits[run] - gain, depth[cut_rankings] - self.begins[run]
        result[cut_rankings] = (hits_above * size + rows_taken * gain) / size
        return result

    def first_reaching(self, hits: Counts) -> tuple[Counts, NDArray[np.bool_]]:
        """First run of each ranking after which there are `hits` (..., Q) ≥ 0 positives, and True if it exists.

        Returns (..., Q) int64 and (..., Q) bool; the run is arbitrary if there is none.
        """
        apart = np.cumsum(self.n_positives + 1) - self.n_positives - 1
        run = np.searchsorted(self.hits + self.of_runs(apart), hits + apart, side="left")
        exists = (run < self.run_bounds[1:]) & (self.n_ranked > 0)
        return np.where(exists, run, 0), exists

    def interpolated_precision(self, hits: Counts) -> Values:
        """(Q,): mean over the points of the largest precision after at least `hits` (points, Q) positives, 0 if there
        are fewer."""
        if self.ends.size == 0:
            return np.zeros(self.n_rankings)
        run, exists = self.first_reaching(hits)
        result: Values = np.where(exists, self.precision_envelope[run], 0.0).mean(axis=0)
        return result

    @cached_property
    def _ranked_above(self) -> Counts:
        """(Q,): ranked rows in all rankings before this one."""
        return np.cumsum(self.n_ranked) - self.n_ranked

    @cached_property
    def _filled(self) -> Counts:
        """The rankings that have runs."""
        return np.flatnonzero(self.n_ranked)

    @cached_property
    def _first_runs(self) -> Counts:
        """First run of each ranking in ``_filled``."""
        return self.run_bounds[self._filled]


def _bounds(sizes: NDArray[np.integer] | NDArray[np.bool_]) -> Counts:
    """(k+1,): 0, and the sum of the sizes (k,) up to each."""
    return np.concatenate([[0], np.cumsum(sizes)])


def _ends_of_blocks(sorted_scores: Values, ends: Counts) -> NDArray[np.intp]:
    """Last row of each block of equal scores; the last row of a ranking, in ends − 1, also ends a block."""
    ends_block = np.ones(sorted_scores.size, dtype=np.bool_)
    ends_block[:-1] = sorted_scores[1:] != sorted_scores[:-1]
    ends_block[ends - 1] = True
    return np.flatnonzero(ends_block)


def _ties(last_rows: NDArray[np.intp], grades: Values, bounds: Counts) -> tuple[Counts, Counts]:
    """(Q,) and (Q,): number of blocks, ending with `last_rows`, whose `grades` (n,) differ, and of rows in them."""
    n_rankings = bounds.size - 1
    tied = _differing(last_rows, grades)
    ranking = np.searchsorted(bounds, last_rows[tied], side="right") - 1
    sizes = np.diff(last_rows, prepend=-1)[tied]
    rows = np.bincount(ranking, weights=sizes, minlength=n_rankings).astype(np.int64)
    return np.bincount(ranking, minlength=n_rankings), rows


def _counts(
    last_rows: NDArray[np.intp], relevant: NDArray[np.bool_], bounds: Counts, run_bounds: Counts
) -> tuple[Counts, Counts]:
    """(m,) and (m,): rows and relevant rows of a ranking up to the end of each run."""
    cumulative = _bounds(relevant)
    ends, hits = last_rows + 1, cumulative[1:][last_rows]
    if bounds.size > 2:
        per_run = np.diff(run_bounds)
        ends -= np.repeat(bounds[:-1], per_run)
        hits -= np.repeat(cumulative[bounds[:-1]], per_run)
    return ends, hits


def _differing(last_rows: Counts, grades: AnyArray) -> NDArray[np.intp]:
    """Mask of blocks, ending with `last_rows` (m,), whose `grades` (n,) differ."""
    if last_rows.size in (0, grades.size):
        return np.zeros(0, dtype=np.intp)
    changes = np.concatenate([[0], np.cumsum(grades[1:] != grades[:-1])])
    first_rows = np.concatenate([[0], last_rows[:-1] + 1])
    return np.flatnonzero(changes[last_rows] != changes[first_rows])


def _sum_type(values: AnyArray) -> type[np.int64] | type[np.float64]:
    return np.int64 if values.dtype.kind in "biu" else np.float64
