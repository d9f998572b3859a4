"""The risk of one list that lies on many workers: the bucket oracle's histogram, refined where it leaves ranks open.

    survey   each shard's positives' scores, a sample of its negatives', and how many negatives are in each of the bins
             that are made of the sampled rows' scores, as the driver knows these rows; where it does not, since they
             have too many features, of the sample of the call before
    bound    positions and edges of a bin bound the ranks in it; where the bounds agree the bin is settled
    split    where this leaves many negatives open, open bins are cut into pieces, counted and bounded again, until at
             most ``ENOUGH_GATHERED`` are open, or some for each positive
    gather   these negatives' scores, to be ranked one by one. A cell of one repeated score needs no scores: there ranks
             go by position, and shards are told where ranks change and how many rows stand before theirs
    assign   ranks, as runs over the cells, and the counts above each positive: each shard writes its slopes

Exact, ties included, and independent of how rows are cut into shards except for the rounding of sums, which are added
in the shards' order. A round moves O(B + P) numbers, whatever the number of negatives. On the driver stand
the P positives' scores and the loss's table of discounts, 8 bytes a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm._support.clock import Span
from apsvm.dask.messages import Runs, added, narrow, runs_where
from apsvm.dask.shards.lists import Gathered, Pieces, Splits, Survey, Ties, bins_of
from apsvm.dask.shards.risk import NOT_FINITE, ShardedRisk
from apsvm.dask.vectors import Handle, HandleVectors, SampledVectors
from apsvm.losses.base import LossTables, RankingLoss
from apsvm.oracles.ranking import descending_order
from apsvm.risk.rankings import OracleCall
from apsvm.solvers.score_space import Tangent

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: Scores that are gathered in any case, this many for each positive, and at most; above, cells are cut.
ENOUGH_GATHERED, PER_POSITIVE, MOST_GATHERED = 65_536, 40, 16_000_000
#: Pieces that an open cell is cut into at most, and what is in each, about, where they are fewer.
MOST_PIECES, LEAST_IN_PIECE = 16, 4
#: Scores in the sample that bins are made of.
SAMPLE = 4096
#: Dimensions of w up to which the driver has the sampled rows.
MOST_DIMENSIONS = 128
#: Positives whose scores the driver takes at most.
MOST_POSITIVES = 1_000_000


class Cells(NamedTuple):
    """Open cells, by ascending score: negatives of which no two bounds on the ranks agree.

    Attributes
    ----------
    numbers : (c,) int64, among all cells, which are numbered by ascending score
    first, counts : (c,) int64, positions from 1 for the highest score, and how many
    lower, upper : (c,) float64, edges
    low, high : (c,) int32, bounds on the ranks in the cell
    tied : (c,) bool, whether all its scores are known to be ``upper``
    """

    numbers: NDArray[np.int64]
    first: NDArray[np.int64]
    counts: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    tied: NDArray[np.bool_]

    def at(self, places: AnyArray | slice) -> Cells:
        """Those at these places, or of this mask."""
        columns: list[Any] = [np.ascontiguousarray(column[places]) for column in self]
        return Cells(*columns)

    def with_others(self, others: Cells) -> Cells:
        columns: list[Any] = [np.concatenate([one, other]) for one, other in zip(self, others, strict=True)]
        return Cells(*columns).at(np.argsort(columns[0], kind="stable"))


#: Turns cells round, for those who want the highest scores first.
DOWNWARDS = slice(None, None, -1)


@dataclass(slots=True)
class Effort:
    """What calls took, one entry a call: negatives that were open after the first count, and the levels of refining."""

    open_scores: list[int] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)


class ListRisk(ShardedRisk):
    """See the module. The shards have to have been told of the list (``Shard.take_list``).

    Parameters
    ----------
    n_pos, n_neg : int, of all shards
    most_gathered, sample : for tests
    threads : of the driver
    """

    queries = 1
    queries_skipped = 0

    def __init__(
        self,
        vectors: HandleVectors,
        loss: RankingLoss,
        n_pos: int,
        n_neg: int,
        *,
        most_gathered: int | None = None,
        sample: int = SAMPLE,
        threads: int = 1,
    ) -> None:
        super().__init__(vectors, n_pos + n_neg)
        self.n_pos, self.n_neg = n_pos, n_neg
        self.effort = Effort()
        self._loss = loss
        self._tables = loss.tables(n_pos, n_neg)
        if most_gathered is None:
            most_gathered = min(max(ENOUGH_GATHERED, PER_POSITIVE * n_pos), MOST_GATHERED)
        self._most_gathered = most_gathered
        self.threads = threads
        self._sample_size = sample
        self._bins_of: NDArray[np.float64] | None = None
        self._asked_for_rows = False
        self._usually_open = 0  # after a count in bins made for its own scores

    def tangent(self, scores: Handle, slopes: Handle) -> Tangent:
        span = Span()
        with span:
            value, loss, gathered, violating = self._most_violated(scores, slopes)
        self._account.calls.append(
            OracleCall("bucket", self.n_pos, self.n_neg, 1, gathered, violating, value, loss, span)
        )
        return Tangent(value, loss)

    def _most_violated(self, scores: Handle, slopes: Handle) -> tuple[float, float, int, int]:
        """The risk, Δ, how many scores were gathered, and how many negatives violate."""
        call = _ListCall(self, scores, slopes)
        own = self._own_sample(scores)
        call.survey(self._sample_size, self._bins_of if own is None else own)
        if self._vectors.sampled is not None:
            self._vectors.sampled.learn(scores, call.sample)
        call.count(np.inf if own is not None else max(self._most_gathered, 2 * self._usually_open))
        if call.fresh:
            self._usually_open, self._bins_of = call.open_scores, call.sample
        self.effort.open_scores.append(call.open_scores)
        if call.scores_repeat and call.untied > min(self._most_gathered, ENOUGH_GATHERED):
            call.split()  # most of it may be of cells that need no scores
        while call.untied > self._most_gathered:
            call.split()
        self.effort.levels.append(call.levels)
        gathered = call.gather()
        above = call.above()
        loss = self._tables.loss(above)
        return loss + call.assign(above), loss, gathered, int(above[-1])

    def _own_sample(self, scores: Handle) -> NDArray[np.float64] | None:
        """The sampled rows' scores, before the workers send any."""
        vectors = self._vectors
        if not self._asked_for_rows:
            rows = vectors.ask("sample_rows", self._sample_size, MOST_DIMENSIONS)
            self._asked_for_rows = True
            if all(of_shard is not None for of_shard in rows):
                vectors.sampled = SampledVectors(np.concatenate(rows))
        return None if vectors.sampled is None else vectors.sampled.of(scores)

    def loss_by_order(self, w: NDArray[np.float64]) -> float:
        """Δ of the ranking by score, rows of equal score in the worst order."""
        scores = self.scores(w)
        surveys: list[Survey] = self._vectors.ask("survey", scores.number, 1, None)
        thresholds = np.sort(np.concatenate([survey.positives for survey in surveys]))
        above = negatives_from(self._vectors, scores, thresholds)[0]
        return self._tables.loss(above[::-1])

    @property
    def loss(self) -> RankingLoss:
        return self._loss

    @property
    def tables(self) -> LossTables:
        return self._tables


class _ListCall:
    """One call of the oracle, from survey to assignment.

    Attributes
    ----------
    sample : (k,) float64, of all negatives
    open_scores, levels : see ``Effort``
    fresh : whether its bins are made of its own scores
    """

    def __init__(self, risk: ListRisk, scores: Handle, slopes: Handle) -> None:
        self._risk = risk
        self._ask = risk.vectors.ask
        self._scores, self._slopes = scores, slopes
        self.open_scores = self.levels = 0
        self.fresh = False

    @property
    def untied(self) -> int:
        """Negatives whose rank is open and does not go by position alone."""
        return int(self._open.counts[~self._open.tied].sum())

    def survey(self, sample_size: int, bins: NDArray[np.float64] | None) -> None:
        surveys: list[Survey] = self._ask("survey", self._scores.number, sample_size, bins)
        if not all(survey.finite for survey in surveys):
            raise FloatingPointError(NOT_FINITE)
        positives = np.concatenate([survey.positives for survey in surveys])
        self._order = descending_order(positives)
        self._sizes = [survey.positives.size for survey in surveys]
        self._descending = positives[self._order]
        self.sample = np.concatenate([survey.sample for survey in surveys])
        self._lowest = min(survey.lowest for survey in surveys)
        self._highest = max(survey.highest for survey in surveys)
        weights, discount = self._risk.tables
        self._search = _kernels.RankSearch(self._descending, weights, discount, unimodal=self._risk.loss.unimodal)
        self._binned: tuple[NDArray[np.float64], NDArray[np.int64]] | None = None
        if bins is not None:
            self._binned = bins, added([survey.counts for survey in surveys if survey.counts is not None])

    def count(self, enough: float) -> None:
        """Bounds by bins; those of the call before, unless they leave more than ``enough`` open."""
        if self._binned is not None:
            self._bound_bins(*self._binned)
            if self.untied <= enough:
                return
        self.fresh = True
        self._bound_bins(self.sample, added(self._ask("count", self._scores.number, self.sample)))

    def _bound_bins(self, sample: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        bins = bins_of(sample, self._risk.n_neg, self._risk.n_pos)
        self._counts = counts
        self._ranks, numbers, first, open_counts, low, high = self._search.bound_bins(
            bins, counts, threads=self._risk.threads
        )
        lower, upper = bins.edges()
        lower, upper = np.maximum(lower[numbers], self._lowest), np.minimum(upper[numbers], self._highest)
        down = Cells(numbers.astype(np.int64), first, open_counts, lower, upper, low, high, lower == upper)
        self._open = down.at(DOWNWARDS)
        self.open_scores = int(open_counts.sum())

    def split(self) -> None:
        """Cuts the open cells into pieces, and bounds the ranks in these."""
        cells, kept = self._open.at(~self._open.tied), self._open.at(self._open.tied)
        pieces = np.clip(cells.counts // LEAST_IN_PIECE, 2, MOST_PIECES)
        is_cut = np.zeros(self._counts.size, dtype=bool)
        is_cut[cells.numbers] = True
        splits = Splits(
            np.packbits(is_cut), cells.lower, cells.upper, narrow(pieces), self.levels % 2 == 1, self.scores_repeat
        )
        answers: list[Pieces] = self._ask("split", self._scores.number, splits)
        pieces, lowest = splits.cut()
        times = np.ones(is_cut.size, dtype=np.int64)
        times[is_cut] = pieces
        begins = np.cumsum(times) - times
        counts = added([answer.counts for answer in answers])
        self._ranks, self._counts = np.repeat(self._ranks, times), np.repeat(self._counts, times)
        numbers = np.flatnonzero(np.repeat(is_cut, times))
        self._counts[numbers] = counts
        is_first = np.zeros(numbers.size, dtype=bool)
        is_first[np.cumsum(pieces) - pieces] = True
        is_last = np.roll(is_first, -1)
        each = cells.at(np.repeat(np.arange(pieces.size), pieces))
        lower, upper = each.lower.copy(), each.upper.copy()
        lower[~is_first] = lowest
        upper[~is_last] = np.nextafter(lowest, -np.inf)
        tied = np.zeros(numbers.size, dtype=bool)
        if splits.extremes:
            lows = [answer.lowest for answer in answers if answer.lowest is not None]
            highs = [answer.highest for answer in answers if answer.highest is not None]
            bottom, top = np.repeat(np.min(lows, axis=0), pieces), np.repeat(np.max(highs, axis=0), pieces)
            lower, upper, tied = np.clip(lower, bottom, top), np.clip(upper, bottom, top), bottom == top
        # A cell's first position is that of its highest piece.
        upwards = np.cumsum(counts)
        ends = np.repeat(upwards[is_last], pieces)
        first = each.first + ends - upwards
        filled = counts > 0
        new = Cells(numbers, first, counts, lower, upper, each.low, each.high, tied | (lower == upper)).at(filled)
        self._open = self._bounded(new).with_others(kept._replace(numbers=begins[kept.numbers]))
        self.levels += 1

    @property
    def scores_repeat(self) -> bool:
        """Whether it pays to look for cells of one repeated score."""
        return self.levels > 0 or np.unique(self.sample).size < self.sample.size

    def _bounded(self, cells: Cells) -> Cells:
        """Bounds the ranks in cells, none of them empty; those that are still open."""
        down = cells.at(DOWNWARDS)
        low, high = (
            bound[::-1]
            for bound in self._search.bound(down.first, down.counts, down.upper, down.lower, down.low, down.high)
        )
        is_open = low != high
        self._ranks[cells.numbers] = np.where(is_open, 0, low)
        return cells._replace(low=low, high=high).at(is_open)

    def gather(self) -> int:
        """Ranks of all that is open, one by one or by position; how many scores that took."""
        self._gathered: list[AnyArray] = [np.empty(0, dtype=np.int32)] * len(self._sizes)
        self._of_ranks = np.zeros(self._risk.n_pos + 2, dtype=np.int64)
        self._ties: list[Ties | None] = [None] * len(self._sizes)
        cells = self._open
        if not cells.counts.size:
            return 0
        is_tied, is_apart = np.zeros((2, self._counts.size), dtype=bool)
        is_tied[cells.numbers[cells.tied]] = is_apart[cells.numbers[~cells.tied]] = True
        answers: list[Gathered] = self._ask("gather", self._scores.number, np.packbits(is_apart), np.packbits(is_tied))
        if cells.tied.any():
            self._rank_tied(cells.at(cells.tied), np.array([answer.tied for answer in answers], dtype=np.int64))
        return self._rank_apart(cells.at(~cells.tied).at(DOWNWARDS), answers)

    def _rank_apart(self, down: Cells, answers: Sequence[Gathered]) -> int:
        counts = np.array([answer.counts[::-1] for answer in answers], dtype=np.int32)
        scores = [answer.scores for answer in answers]
        ranks, self._of_ranks = self._search.rank(
            down.first, counts, scores, down.low, down.high, threads=self._risk.threads
        )
        narrowest = np.uint16 if self._risk.n_pos < np.iinfo(np.uint16).max else np.int32
        self._gathered = [of_shard.astype(narrowest, copy=False) for of_shard in ranks]
        return sum(of_shard.size for of_shard in scores)

    def _rank_tied(self, cells: Cells, of_shards: NDArray[np.int64]) -> None:
        down = cells.at(DOWNWARDS)
        starts, values, lengths = self._search.rank_tied(down.first, down.counts, down.upper, down.low, down.high)
        # Ascending cells, but the runs of one as they are.
        order = ranges(starts[:-1][::-1], np.diff(starts)[::-1])
        runs = Runs(values[order], lengths[order])
        offsets = np.cumsum(of_shards, axis=0) - of_shards
        self._ties = [Ties(cells.numbers, of_shard, cells.counts, runs) for of_shard in offsets]

    def above(self) -> NDArray[np.int64]:
        """(P,) how many negatives stand above each positive, by descending score of the positives."""
        n_pos = self._risk.n_pos
        counts = np.bincount(self._ranks, self._counts, n_pos + 2).astype(np.int64) + self._of_ranks
        ties = self._ties[0]
        if ties is not None:
            np.add.at(counts, ties.runs.values, ties.runs.lengths)
        return np.cumsum(counts[1 : n_pos + 1])

    def assign(self, above: NDArray[np.int64]) -> float:
        """Has the slopes written; c·s. ``above`` (P,): by descending score of the positives."""
        of_positives = np.empty(above.size, dtype=narrow(above).dtype)
        of_positives[self._order] = above
        vectors, foreseen = self._risk.vectors, self._risk.vectors.foreseen
        each = zip(self._gathered, self._ties, np.split(of_positives, np.cumsum(self._sizes)[:-1]), strict=True)
        vectors.overwritten(self._slopes)
        # Σc = 0: measuring the scores from the top positive keeps a common offset from eating the digits.
        sums = self._ask(
            "assign",
            self._scores.number,
            self._slopes.number,
            runs_where(self._counts > 0, self._ranks),
            float(self._descending[0]),
            None if foreseen is None else foreseen.number,
            each=list(each),
        )
        if foreseen is not None:
            vectors.keep_product(self._slopes, foreseen, sum(product for _, product in sums))
        return float(sum(value for value, _ in sums))


def negatives_from(
    vectors: HandleVectors, scores: Handle, thresholds: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many negatives have a score of at least each of the ``thresholds`` (k,), ascending, and how many exactly
    that: (k,) int64 both."""
    return higher_and_equal(vectors.ask("counts_above", scores.number, thresholds))


def higher_and_equal(answers: Sequence[tuple[AnyArray, AnyArray]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of scores that shards have ``counted`` by thresholds (k,), how many are at least each, and exactly each: (k,)
    int64 both."""
    above = added([answer[0] for answer in answers])
    equal = added([answer[1] for answer in answers])
    # Entry i of ``above`` counts those between threshold i − 1, or equal to it, and threshold i.
    return np.cumsum(above[::-1])[::-1][1:], equal


def ranges(begins: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """begins[0], begins[0] + 1, …, ``sizes[0]`` of them, then those from begins[1] on, and so forth."""
    return np.repeat(begins - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
