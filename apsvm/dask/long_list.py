"""The risk of one list that lies on many workers: the bucket oracle's histogram, refined where it leaves ranks open.

    survey   each shard's positives' scores, a sample of its negatives', and, in bins made of the sample of the call
             before, how many negatives are in each
    bound    positions and edges of a bin bound the ranks in it; where the bounds agree the bin is settled
    refine   only open bins are cut, into parts, counted and bounded again, until at most ``MOST_GATHERED`` negatives
             are open
    gather   these negatives' scores, to be ranked one by one. A cell of one repeated score needs no scores: there ranks
             go by position, and shards are told where ranks change and how many rows stand before theirs
    assign   ranks, as runs over the cells, and the counts above each positive: each shard writes its slopes

Exact, ties included, and independent of how rows are cut into shards but for the rounding of sums, which are added in
the shards' order. A round moves O(B + open cells + P) numbers, whatever the number of negatives. On the driver stand
the P positives' scores and the loss's table of discounts, 8 bytes a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.clock import Spans
from apsvm.dask.messages import Runs
from apsvm.dask.shard_list import Settled, Survey, Ties
from apsvm.dask.sharded_risk import NOT_FINITE, ShardedRisk
from apsvm.dask.vectors import Handle, HandleVectors
from apsvm.losses.base import RankingLoss
from apsvm.ranking import descending_order
from apsvm.risk.rankings import OracleCall
from apsvm.score_space import Tangent

if TYPE_CHECKING:
    from apsvm.types import AnyArray

#: Scores that are gathered at most; above, cells are refined.
MOST_GATHERED = 65_536
#: Parts that an open cell is cut into: 2^k.
PARTS = 16
#: Scores in the sample that bins are made of.
SAMPLE = 4096
#: Positives whose scores the driver takes at most.
MOST_POSITIVES = 1_000_000


class Cells(NamedTuple):
    """Cells of negatives, by descending score; empty ones have rank bounds of no meaning.

    Attributes
    ----------
    first, counts : (c,) int64, positions from 1, and how many
    upper, lower : (c,) float64, edges
    low, high : (c,) int32, bounds on the ranks in the cell
    tied : (c,) bool, whether all its scores are known to be ``upper``
    """

    first: NDArray[np.int64]
    counts: NDArray[np.int64]
    upper: NDArray[np.float64]
    lower: NDArray[np.float64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    tied: NDArray[np.bool_]

    def of(self, which: NDArray[np.bool_]) -> Cells:
        return Cells(
            self.first[which],
            self.counts[which],
            self.upper[which],
            self.lower[which],
            self.low[which],
            self.high[which],
            self.tied[which],
        )


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
        most_gathered: int = MOST_GATHERED,
        sample: int = SAMPLE,
    ) -> None:
        super().__init__(vectors, n_pos + n_neg)
        self.n_pos, self.n_neg = n_pos, n_neg
        self.effort = Effort()
        self._loss = loss
        self._tables = loss.tables(n_pos, n_neg)
        self._most_gathered = most_gathered
        self._sample_size = sample
        self._bins_of: NDArray[np.float64] | None = None
        self._usually_open = 0  # after a count in bins made for its own scores

    def tangent(self, scores: Handle, slopes: Handle) -> Tangent:
        spans = Spans()
        with spans.time("oracle"):
            value, loss, gathered, violating = self._most_violated(scores, slopes)
        self._account.calls.append(
            OracleCall("bucket", self.n_pos, self.n_neg, 1, gathered, violating, value, loss, spans.parts["oracle"])
        )
        return Tangent(value, loss)

    def _most_violated(self, scores: Handle, slopes: Handle) -> tuple[float, float, int, int]:
        """The risk, Δ, how many scores were gathered, and how many negatives violate."""
        call = _Call(self, scores, slopes)
        call.survey(self._sample_size, self._bins_of)
        call.count(max(self._most_gathered, 2 * self._usually_open))
        if call.fresh:
            self._usually_open, self._bins_of = call.open_scores, call.sample
        self.effort.open_scores.append(call.open_scores)
        while call.untied > self._most_gathered:
            call.refine()
        self.effort.levels.append(call.levels)
        gathered = call.gather()
        above = np.cumsum(call.rank_counts[1 : self.n_pos + 1])
        loss = self._tables.loss(above)
        return loss + call.assign(above), loss, gathered, int(above[-1])

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
    def tables(self) -> Any:
        return self._tables


class _Call:
    """One call of the oracle, from survey to assignment.

    Attributes
    ----------
    sample : (k,) float64, of all negatives
    open_scores, levels : see ``Effort``
    fresh : whether its bins are made of its own scores
    rank_counts : (P + 2,) int64, at [r] the negatives of rank r that are settled
    """

    def __init__(self, risk: ListRisk, scores: Handle, slopes: Handle) -> None:
        self._risk = risk
        self._ask = risk.vectors.ask
        self._scores, self._slopes = scores, slopes
        self.rank_counts = np.zeros(risk.n_pos + 2, dtype=np.int64)
        self.open_scores = self.levels = 0
        self.fresh = False
        self._settled: Settled | None = None
        self._binned = False

    @property
    def _where(self) -> tuple[int, int]:
        return self._scores.number, self._slopes.number

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
        self._bins, self._counts = bins, None
        if bins is not None:
            self._counts = _added([survey.counts for survey in surveys if survey.counts is not None])

    def count(self, enough: int) -> None:
        """Bounds by bins; those of the call before, unless they leave more than ``enough`` open."""
        if self._lowest == self._highest:
            self._take_one_cell()
            return
        if self._counts is not None and self._bins is not None:
            self._bound_bins(self._bins, self._counts)
            if self.untied <= enough:
                return
        counts = _added(self._ask("count", self._scores.number, self.sample))
        self.fresh = True
        self._bound_bins(self.sample, counts)

    def _take_one_cell(self) -> None:
        one = np.ones(1, dtype=np.int64)
        edge = np.array([self._highest])
        ranks = one.astype(np.int32)
        self._open = self._bounded(
            Cells(one, one * self._risk.n_neg, edge, edge, ranks, ranks + np.int32(self._risk.n_pos), one > 0)
        )
        self.open_scores = self._risk.n_neg

    def _bound_bins(self, sample: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        lower, upper = _kernels.ScoreBins(sample, self._risk.n_neg, self._risk.n_pos).edges()
        counts, lower, upper = (
            counts[::-1],
            np.maximum(lower[::-1], self._lowest),
            np.minimum(upper[::-1], self._highest),
        )
        ranks = np.ones(counts.size, dtype=np.int32)
        first = np.cumsum(counts) - counts + 1
        cells = Cells(
            first, counts, upper, lower, ranks, ranks + np.int32(self._risk.n_pos), np.zeros(counts.size, dtype=bool)
        )
        self.rank_counts[:] = 0
        self._settle(cells, binned=True)
        self.open_scores = int(self._open.counts.sum())

    def _bounded(self, cells: Cells) -> Cells:
        low, high = self._search.bound(
            np.ascontiguousarray(cells.first),
            np.ascontiguousarray(cells.counts),
            np.ascontiguousarray(cells.upper),
            np.ascontiguousarray(cells.lower),
            np.ascontiguousarray(cells.low),
            np.ascontiguousarray(cells.high),
        )
        return cells._replace(low=low, high=high)

    def _settle(self, cells: Cells, *, binned: bool) -> None:
        """Bounds the cells that hold something; tells the settled from the open, what to tell the shards among them."""
        filled = cells.counts > 0
        bounded = self._bounded(cells.of(filled))
        is_open = bounded.low != bounded.high
        ranks = np.where(is_open, 0, bounded.low).astype(np.int32)
        np.add.at(self.rank_counts, ranks[~is_open], bounded.counts[~is_open])
        # An empty cell has the rank of one before it: runs are fewer so.
        of_all = np.full(filled.size, self._risk.n_pos + 1, dtype=np.int32)
        of_all[filled] = ranks
        before = np.maximum.accumulate(np.where(filled & (of_all > 0), np.arange(filled.size), -1))
        empty = ~filled & (before >= 0)
        of_all[empty] = of_all[before[empty]]
        self._settled, self._binned = Settled(Runs.of(of_all)), binned
        self._open = bounded.of(is_open)

    def refine(self) -> None:
        """Cuts the open cells into parts."""
        cells = self._open
        low_keys, high_keys = keys_of(cells.lower), keys_of(cells.upper)
        span = high_keys.view(np.uint64) - low_keys.view(np.uint64)
        bits = np.frexp(span.astype(np.float64))[1]  # 2^bits ≥ span, perhaps one too many
        shifts = np.clip(bits - (PARTS.bit_length() - 1), 0, 63).astype(np.uint8)
        shifts[cells.tied] = 63
        answers = self._ask("refine", *self._where, self._settled, low_keys, shifts, PARTS, self._binned)
        counts = _added([answer[0] for answer in answers]).reshape(-1, PARTS)[:, ::-1]
        lowest = np.min([answer[1] for answer in answers], axis=0)[:, None]
        highest = np.max([answer[2] for answer in answers], axis=0)[:, None]
        part = np.arange(PARTS, dtype=np.uint64)[::-1]
        steps, most = part << shifts.astype(np.uint64)[:, None], span[:, None]
        below = scores_of(low_keys, np.minimum(steps, most))
        ends = steps + ((np.uint64(1) << shifts.astype(np.uint64)) - np.uint64(1))[:, None]
        above = scores_of(low_keys, np.minimum(ends, most))
        lower = np.where(part == 0, lowest, np.clip(below, lowest, highest))
        upper = np.where(part == PARTS - 1, highest, np.clip(above, lowest, highest))
        before = np.cumsum(counts, axis=1) - counts
        wide = (counts.shape[0], PARTS)
        flat = Cells(
            (cells.first[:, None] + before).ravel(),
            counts.ravel(),
            upper.ravel(),
            lower.ravel(),
            np.broadcast_to(cells.low[:, None], wide).ravel(),
            np.broadcast_to(cells.high[:, None], wide).ravel(),
            np.broadcast_to(lowest == highest, wide).ravel(),
        )
        self._settle(flat, binned=False)
        self.levels += 1

    def gather(self) -> int:
        """Ranks of all that is open, one by one or by position; how many scores that took."""
        cells = self._open
        self._gathered: list[NDArray[np.int32]] = [np.empty(0, dtype=np.int32)] * len(self._sizes)
        self._ties: list[Ties | None] = [None] * len(self._sizes)
        self._gathered_any = cells.counts.size > 0
        if not self._gathered_any:
            return 0
        answers = self._ask("gather", *self._where, self._settled, cells.tied, self._binned)
        names = np.concatenate([answer[0] for answer in answers])
        order = np.argsort(names, kind="stable")
        scores = np.concatenate([answer[1] for answer in answers])[order]
        apart, tied = cells.of(~cells.tied), cells.of(cells.tied)
        ranks = np.empty(names.size, dtype=np.int32)
        ranks[order] = self._search.rank(apart.first, apart.counts, scores, apart.low, apart.high)
        np.add.at(self.rank_counts, ranks, 1)
        self._gathered = np.split(ranks, np.cumsum([answer[0].size for answer in answers])[:-1])
        if tied.counts.size:
            _, values, lengths = self._search.rank_tied(tied.first, tied.counts, tied.upper, tied.low, tied.high)
            np.add.at(self.rank_counts, values, lengths)
            of_shards = np.array([answer[2] for answer in answers], dtype=np.int64)
            offsets = np.cumsum(of_shards, axis=0) - of_shards
            runs = Runs(values, lengths)
            self._ties = [Ties(cells.tied, of_shard, tied.counts, runs) for of_shard in offsets]
        return names.size

    def assign(self, above: NDArray[np.int64]) -> float:
        """Has the slopes written; c·s. ``above`` (P,): by descending score of the positives."""
        of_positives = np.empty(above.size, dtype=np.int64)
        of_positives[self._order] = above
        vectors, foreseen = self._risk.vectors, self._risk.vectors.foreseen
        settled = None if self._gathered_any else self._settled
        each = zip(self._gathered, self._ties, np.split(of_positives, np.cumsum(self._sizes)[:-1]), strict=True)
        vectors.overwritten(self._slopes)
        # Σc = 0: measuring the scores from the top positive keeps a common offset from eating the digits.
        sums = self._ask(
            "assign",
            *self._where,
            settled,
            float(self._descending[0]),
            None if foreseen is None else foreseen.number,
            self._binned,
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
    answers = vectors.ask("counts_above", scores.number, thresholds)
    above = _added([answer[0] for answer in answers])
    equal = _added([answer[1] for answer in answers])
    # Entry i of ``above`` counts those between threshold i − 1, or equal to it, and threshold i.
    higher = np.cumsum(above[::-1])[::-1][1:]
    return higher, equal


def keys_of(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Scores (k,) as integers in the same order, as the kernels number them."""
    bits = (scores + 0.0).view(np.int64)
    return np.where(bits >= 0, bits, bits ^ np.int64(np.iinfo(np.int64).max))


def scores_of(low_keys: NDArray[np.int64], steps: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The scores whose keys are ``steps`` (k, p) above ``low_keys`` (k,): (k, p) float64."""
    keys = (low_keys.view(np.uint64)[:, None] + steps).view(np.int64)
    return np.where(keys >= 0, keys, keys ^ np.int64(np.iinfo(np.int64).max)).view(np.float64)


def _added(counts: list[AnyArray]) -> NDArray[np.int64]:
    """The sums of the shards' counts."""
    total: NDArray[np.int64] = np.sum([of_shard.astype(np.int64) for of_shard in counts], axis=0)
    return total
