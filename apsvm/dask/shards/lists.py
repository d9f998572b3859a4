"""The shard's side of one list of all rows (``apsvm.dask.long_list``): scores counted, settled and ranked by cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.dask.messages import Few, Runs, narrow, packed
from apsvm.dask.shards.rows import ShardRows, product
from apsvm.dask.shards.scored import counted

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray
    from apsvm.models.base import Ranker


#: Bins that scores are counted into: their largest number, where positives are few, and for each of many.
LEAST_BINS, BINS_PER_POSITIVE, MOST_BINS = 1 << 16, 5, 1 << 22


class Survey(NamedTuple):
    """What a shard says of scores.

    Attributes
    ----------
    finite : whether they all are; the rest is of no use where they are not
    positives : (p,) float64, of the positives
    lowest, highest : of the negatives; +∞ and −∞ where there are none
    sample : (k,) float64, of the negatives
    counts : of the negatives in the requested bins, or None
    """

    finite: bool
    positives: NDArray[np.float64]
    lowest: float
    highest: float
    sample: NDArray[np.float64]
    counts: AnyArray | Few | None


class Splits(NamedTuple):
    """Where cells are cut, for all shards alike.

    Attributes
    ----------
    is_cut : which cells are, packed
    lower, upper : (k,) float64, edges of those
    pieces : (k,) into how many, at most
    by_key : whether they hold equally many floating-point numbers, rather than being of equal width
    extremes : whether the lowest and the highest score of each are requested
    """

    is_cut: NDArray[np.uint8]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    pieces: AnyArray
    by_key: bool
    extremes: bool

    def cut(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """How many pieces each becomes, and the lowest score of every piece but a cell's first."""
        return _kernels.cut_evenly(self.lower, self.upper, self.pieces.astype(np.int64), self.by_key)


class Pieces(NamedTuple):
    """What a shard says of the pieces of cut cells.

    Attributes
    ----------
    counts : of its negatives in each
    lowest, highest : of each cut cell, +∞ and −∞ where there is none here; None if not requested
    """

    counts: AnyArray | Few
    lowest: NDArray[np.float64] | None
    highest: NDArray[np.float64] | None


class Gathered(NamedTuple):
    """What a shard says of open cells, by ascending score.

    Attributes
    ----------
    counts : of its negatives in each cell whose scores are wanted
    scores : of these, cell after cell, and in their order
    tied : of its negatives in each tied cell
    """

    counts: AnyArray
    scores: NDArray[np.float64]
    tied: AnyArray


class Ties(NamedTuple):
    """Ranks of the open cells of one score, by position alone, for one shard.

    Attributes
    ----------
    cells : (t,) int64, ascending
    offsets : (t,) int64, how many of each tied cell's negatives stand in shards before
    sizes : (t,) int64, of each tied cell
    runs : ranks of all tied cells' negatives, cell after cell
    """

    cells: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    runs: Runs

    def ranks(self, counts: NDArray[np.int64]) -> AnyArray:
        """Of the shard's ``counts`` (t,) negatives in the tied cells, cell after cell and in their order."""
        begins = np.cumsum(self.sizes) - self.sizes + self.offsets
        position = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        ranks: AnyArray = self.runs.values[np.searchsorted(np.cumsum(self.runs.lengths), position, side="right")]
        return ranks


class ListShard(ShardRows):
    """Rows of one list; positives stand first."""

    _cells: NDArray[np.int32]  # of each negative, numbered by ascending score
    _counts: NDArray[np.int64]  # of each cell

    def take_list(self, n_pos: int, n_neg: int) -> None:
        """All rows of all shards are one list, of this many positives and negatives."""
        order = np.argsort(~self._target.relevant, kind="stable")
        self._order(order)
        self._n_pos = int(self._target.relevant.sum())
        self._all = (n_pos, n_neg)
        self._cells = np.zeros(order.size - self._n_pos, dtype=np.int32)

    def survey(self, scores: int, sample_size: int, bins: NDArray[np.float64] | None) -> Survey:
        """``sample_size`` : of all shards' sample together; ``bins`` : the sample that bins are made of, to count
        in."""
        values = self._vector(scores)
        positives, negatives = values[: self._n_pos], values[self._n_pos :]
        counts = None
        if bins is None:
            self._in_one_cell()
            lowest, highest = negatives.min(initial=np.inf), negatives.max(initial=-np.inf)  # NaN where one is
        else:
            counts, lowest, highest = self._number(negatives, bins)
        of_negatives = negatives.size == 0 or (np.isfinite(lowest) and np.isfinite(highest))
        finite = bool(of_negatives and np.isfinite(positives).all())
        sample = negatives[self._sampled(sample_size)]
        return Survey(finite, positives.copy(), float(lowest), float(highest), sample, counts)

    def _sampled(self, sample_size: int) -> NDArray[np.int64]:
        """The places among its negatives of its share in a sample of this many of all shards."""
        n_neg = self._cells.size
        share = min(n_neg, -(-sample_size * n_neg // max(self._all[1], 1)))
        return np.arange(share) * (n_neg // share if share else 0)

    def sample_rows(self, sample_size: int, most: int) -> NDArray[np.float64] | None:
        """(share, dimension) the rows of the sample, as w sees them; None for more than ``most`` dimensions."""
        if self._rows.dimension > most:
            return None
        rows = self._rows.select(self._n_pos + self._sampled(sample_size))
        return rows.scores_of_all(np.eye(self._rows.dimension))

    @property
    def _sizes(self) -> tuple[int, int]:
        """Of the whole list: negatives, positives."""
        return self._all[1], self._all[0]

    def _in_one_cell(self) -> None:
        self._cells[:] = 0
        self._counts = np.array([self._cells.size], dtype=np.int64)

    def count(self, scores: int, bins: NDArray[np.float64]) -> AnyArray | Few:
        """How many negatives are in each bin; the bins are the cells from now on."""
        return self._number(self._vector(scores)[self._n_pos :], bins)[0]

    def _number(self, negatives: NDArray[np.float64], bins: NDArray[np.float64]) -> tuple[AnyArray | Few, float, float]:
        """Their counts in the bins, the lowest and the highest; NaN where one is not finite."""
        self._counts, lowest, highest = bins_of(bins, *self._sizes).number(negatives, self._cells)
        return packed(self._counts), lowest, highest

    def split(self, scores: int, splits: Splits) -> Pieces:
        """Cuts cells."""
        negatives = self._vector(scores)[self._n_pos :]
        is_cut = np.unpackbits(splits.is_cut, count=self._counts.size).view(bool)
        lowest = highest = None
        if splits.extremes:
            lows, highs = _kernels.cell_extremes(negatives, self._cells, is_cut.size)
            lowest, highest = lows[is_cut], highs[is_cut]
        pieces, thresholds = splits.cut()
        times = np.ones(is_cut.size, dtype=np.int64)
        times[is_cut] = pieces
        starts = np.concatenate([[0], np.cumsum(times - 1)]).astype(np.int32)
        self._counts = _kernels.split_cells(negatives, self._cells, starts, thresholds)
        return Pieces(packed(self._counts[np.repeat(is_cut, times)]), lowest, highest)

    def gather(self, scores: int, apart: NDArray[np.uint8], tied: NDArray[np.uint8]) -> Gathered:
        """Scores of the cells ``apart``, packed, and counts of those that are ``tied``."""
        n_cells = self._counts.size
        wanted = np.unpackbits(apart, count=n_cells)
        of_tied = np.unpackbits(tied, count=n_cells).view(bool)
        values = self._vector(scores)[self._n_pos :]
        collected = _kernels.collect_scores(values, self._cells, self._counts, wanted)
        return Gathered(narrow(self._counts[wanted.view(bool)]), collected, narrow(self._counts[of_tied]))

    def assign(
        self,
        scores: int,
        slopes: int,
        settled: Runs,
        reference: float,
        foreseen: int | None,
        ranks: AnyArray,
        ties: Ties | None,
        above: AnyArray,
    ) -> tuple[float, float]:
        """The last step: all slopes, from ranks.

        Parameters
        ----------
        settled : ranks of all cells, 0 where the negatives of a cell have their own
        ranks : of these, except for cells of one score: cell after cell, and in their order
        ties : ranks in open cells of one score
        above : (p,) how many negatives stand above each positive

        Returns c·(s − reference) and c·foreseen, over the shard's rows.
        """
        values, to = self._vector(scores), self._vector(slopes)
        of_cell = settled.expanded()
        of_open = np.concatenate([np.empty(0, dtype=np.int32), ranks])
        if ties is not None:
            counts, is_tied = self._counts[of_cell == 0], np.zeros(of_cell.size, dtype=bool)
            is_tied[ties.cells] = True
            of_ties = np.repeat(is_tied[of_cell == 0], counts)
            of_open = np.empty(of_ties.size, dtype=np.int32)
            of_open[of_ties], of_open[~of_ties] = ties.ranks(self._counts[ties.cells]), ranks
        other = None if foreseen is None else self._vector(foreseen)
        n_pos, scale = self._n_pos, 2.0 / (self._all[0] * self._all[1])
        of_negatives = _kernels.weigh_cells(
            values[n_pos:],
            self._cells,
            self._counts,
            of_cell,
            of_open,
            self._all[0],
            scale,
            reference,
            None if other is None else other[n_pos:],
            to[n_pos:],
        )
        np.multiply(above, -scale, out=to[:n_pos])
        return (
            of_negatives[0] + product(to[:n_pos], values[:n_pos] - reference),
            0.0 if other is None else of_negatives[1] + product(to[:n_pos], other[:n_pos]),
        )

    # Scores themselves.

    def do_model_scores(self, model: Ranker, out: int) -> None:
        """The scores that a model gives the rows, which are as they were read."""
        self._vector(out)[:] = model.score(self._X, threads=self._threads)[self._order_of_rows]

    def counts_above(self, scores: int, thresholds: NDArray[np.float64]) -> tuple[AnyArray, AnyArray]:
        """``counted``, of the negatives' scores."""
        return counted(self._vector(scores)[self._n_pos :], thresholds)

    def count_keys(self, scores: int, low: int, shift: int, parts: int) -> AnyArray:
        """How many scores have keys in each of ``parts`` ranges of 2^shift keys, the first from ``low`` on."""
        bits = (self._vector(scores) + 0.0).view(np.int64)
        keys = np.where(bits >= 0, bits, bits ^ np.int64(np.iinfo(np.int64).max)).view(np.uint64)
        # An offset to numbers that ascend as the keys do, without a sign.
        sign = np.uint64(1 << 63)
        steps = ((keys ^ sign) - np.uint64(low + (1 << 63))) >> np.uint64(shift)
        return np.bincount(steps[steps < np.uint64(parts)].astype(np.int64), minlength=parts)


def bins_of(sample: NDArray[np.float64], n_neg: int, n_pos: int) -> _kernels.ScoreBins:
    """Bins made of a sample, for a list of this many rows: more where positives are many, as ranks change so often."""
    return _kernels.ScoreBins(sample, n_neg, n_pos, min(max(LEAST_BINS, BINS_PER_POSITIVE * n_pos), MOST_BINS))
