"""The shard's side of one list of all rows (``apsvm.dask.long_list``): scores counted, settled and ranked by cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.dask.messages import Runs, narrow
from apsvm.dask.shard_rows import ShardRows, product

if TYPE_CHECKING:
    from apsvm.dask.sources import Source
    from apsvm.model import Ranker
    from apsvm.types import AnyArray


class Survey(NamedTuple):
    """What a shard says of scores.

    Attributes
    ----------
    finite : whether they all are; the rest is of no use where they are not
    positives : (p,) float64, of the positives
    lowest, highest : of the negatives; +∞ and −∞ where there are none
    sample : (k,) float64, of the negatives
    counts : of the negatives in the bins that were asked about, or None
    """

    finite: bool
    positives: NDArray[np.float64]
    lowest: float
    highest: float
    sample: NDArray[np.float64]
    counts: AnyArray | None


class Settled(NamedTuple):
    """Ranks of cells: ``ranks`` of all cells, 0 where the cell is open. None in the place of it: nothing is settled,
    and all negatives are in one open cell."""

    ranks: Runs


class Ties(NamedTuple):
    """Ranks of the open cells of one score, by position alone, for one shard.

    Attributes
    ----------
    tied : (cells,) bool, which open cells are such
    offsets : (t,) int64, how many of each tied cell's negatives stand in shards before
    sizes : (t,) int64, of each tied cell
    runs : ranks of all tied cells' negatives, cell after cell
    """

    tied: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    runs: Runs

    def ranks(self, cells: NDArray[np.int32]) -> AnyArray:
        """Of the shard's negatives in tied cells, in their order: ``cells`` (m,) among all open ones."""
        number = (np.cumsum(self.tied) - 1)[cells]
        order = np.argsort(number, kind="stable")
        counts = np.bincount(number, minlength=self.sizes.size)
        within = np.empty(number.size, dtype=np.int64)
        within[order] = np.arange(number.size) - np.repeat(np.cumsum(counts) - counts, counts)
        before = np.cumsum(self.sizes) - self.sizes
        position = (before + self.offsets)[number] + within
        ranks: AnyArray = self.runs.values[np.searchsorted(np.cumsum(self.runs.lengths), position, side="right")]
        return ranks


@dataclass(slots=True)
class _Open:
    """Negatives whose rank is open: their places, ascending, scores and cells, numbered by descending score."""

    places: NDArray[np.int64]
    scores: NDArray[np.float64]
    cells: NDArray[np.int32]


class ListShard(ShardRows):
    """Rows of one list; positives stand first."""

    def __init__(self, sources: Sequence[Source], threads: int = 1, worker: str = "") -> None:
        super().__init__(sources, threads, worker)
        self._names: NDArray[np.uint16] = np.empty(0, dtype=np.uint16)
        self._open = _Open(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int32))

    def take_list(self, n_pos: int, n_neg: int) -> None:
        """All rows of all shards are one list, of so many positives and negatives."""
        order = np.argsort(~self._target.relevant, kind="stable")
        self._order(order, int(self._target.relevant.sum()))
        self._all = (n_pos, n_neg)
        self._scale = 2.0 / (max(n_pos, 1) * max(n_neg, 1))

    def survey(self, scores: int, sample_size: int, bins: NDArray[np.float64] | None) -> Survey:
        """``sample_size`` : of all shards' sample together; ``bins`` : the sample that bins are made of, to count
        in."""
        values = self._vector(scores)
        positives, negatives = values[: self._n_pos], values[self._n_pos :]
        finite = bool(np.isfinite(values.sum()) or np.isfinite(values).all())
        if not finite or negatives.size == 0:
            nothing = None if bins is None else np.zeros(_kernels.ScoreBins(bins, *self._sizes).size, dtype=np.uint8)
            self._names = np.empty(0, dtype=np.uint16)
            return Survey(finite, positives.copy(), np.inf, -np.inf, np.empty(0), nothing)
        share = min(negatives.size, -(-sample_size * negatives.size // self._all[1]))
        sample = negatives[:: negatives.size // share][:share].copy()
        counts = None if bins is None else self.count(scores, bins)
        return Survey(True, positives.copy(), float(negatives.min()), float(negatives.max()), sample, counts)

    @property
    def _sizes(self) -> tuple[int, int]:
        """Of the whole list: negatives, positives."""
        return self._all[1], self._all[0]

    def count(self, scores: int, bins: NDArray[np.float64]) -> AnyArray:
        """How many negatives are in each bin."""
        self._names, counts = _kernels.ScoreBins(bins, *self._sizes).count(self._vector(scores)[self._n_pos :])
        return narrow(counts)

    def refine(
        self,
        scores: int,
        slopes: int,
        settled: Settled | None,
        lowest_keys: NDArray[np.int64],
        shifts: NDArray[np.uint8],
        parts: int,
        binned: bool,
    ) -> tuple[AnyArray, NDArray[np.float64], NDArray[np.float64]]:
        """Settles what is settled, and cuts the cells that are not: counts of the parts (cells · parts,), and the
        lowest and highest score of each cell."""
        self._settle(scores, slopes, settled, binned)
        counts, lowest, highest = _kernels.refine_cells(self._open.scores, self._open.cells, lowest_keys, shifts, parts)
        self._parts_of_cell = parts
        return narrow(counts), lowest, highest

    def gather(
        self, scores: int, slopes: int, settled: Settled | None, tied: NDArray[np.bool_], binned: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], AnyArray]:
        """Settles what is settled: cells and scores of the open negatives that are in no tied cell, in their order; and
        how many are in each tied cell."""
        self._settle(scores, slopes, settled, binned)
        cells = self._open.cells
        apart = ~tied[cells]
        counts = np.bincount(cells[~apart], minlength=tied.size)[tied]
        return cells[apart], self._open.scores[apart], narrow(counts)

    def assign(
        self,
        scores: int,
        slopes: int,
        settled: Settled | None,
        reference: float,
        foreseen: int | None,
        binned: bool,
        gathered: NDArray[np.int32],
        ties: Ties | None,
        above: AnyArray,
    ) -> tuple[float, float]:
        """The last step: all slopes, from ranks. ``settled``: where nothing had to be gathered; ``above`` (p,): how
        many negatives stand above each positive.

        Returns c·(s − reference) and c·foreseen, over the shard's rows."""
        values, to = self._vector(scores), self._vector(slopes)
        if settled is not None:
            self._settle(scores, slopes, settled, binned)
        weights = to[self._n_pos :]
        places, cells = self._open.places, self._open.cells
        if places.size:
            apart = np.ones(places.size, dtype=bool) if ties is None else ~ties.tied[cells]
            weights[places[apart]] = self._weight_of(gathered)
            if ties is not None:
                weights[places[~apart]] = self._weight_of(ties.ranks(cells[~apart]))
        self._open = _Open(places[:0], self._open.scores[:0], cells[:0])
        np.multiply(above, -self._scale, out=to[: self._n_pos])
        return product(to, values - reference), 0.0 if foreseen is None else product(to, self._vector(foreseen))

    def _weight_of(self, ranks: AnyArray) -> NDArray[np.float64]:
        weights: NDArray[np.float64] = self._scale * (self._all[0] + 1.0 - ranks)
        return weights

    def _settle(self, scores: int, slopes: int, settled: Settled | None, binned: bool) -> None:
        """Writes the weights of settled cells, and keeps the negatives of open ones; ``binned``: cells are the bins."""
        negatives, weights = self._vector(scores)[self._n_pos :], self._vector(slopes)[self._n_pos :]
        if settled is None:
            n = negatives.size
            self._open = _Open(np.arange(n), negatives.copy(), np.zeros(n, dtype=np.int32))
            return
        ranks = settled.ranks.expanded()
        is_open = ranks == 0
        numbers = (np.cumsum(is_open) - 1).astype(np.int32)
        if binned:  # bins ascend
            of_bin = np.where(is_open, -1.0, self._weight_of(ranks))[::-1].copy()
            places = _kernels.assign_part(of_bin, self._names, negatives, weights)
            self._open = _Open(places, negatives[places], numbers[::-1][self._names[places]])
            return
        # So do the parts of a cell, while cells descend.
        parts = self._parts_of_cell
        flipped = ranks.reshape(-1, parts)[:, ::-1].ravel()
        of_cell = flipped[self._open.cells]
        done = of_cell > 0
        weights[self._open.places[done]] = self._weight_of(of_cell[done])
        left = ~done
        numbered = numbers.reshape(-1, parts)[:, ::-1].ravel()
        self._open = _Open(self._open.places[left], self._open.scores[left], numbered[self._open.cells[left]])

    # Scores themselves.

    def do_model_scores(self, model: Ranker, out: int) -> None:
        """The scores that a model gives the rows, which are as they were read."""
        self._vector(out)[:] = model.score(self._X, threads=self._threads)[self._order_of_rows]

    def counts_above(self, scores: int, thresholds: NDArray[np.float64]) -> tuple[AnyArray, AnyArray]:
        """Of the negatives: how many are above each of the ``thresholds`` (k,), ascending, and how many equal it."""
        negatives = self._vector(scores)[self._n_pos :]
        left = np.searchsorted(thresholds, negatives, side="left")
        right = np.searchsorted(thresholds, negatives, side="right")
        equal = np.bincount(left[right > left], minlength=thresholds.size)
        above = np.bincount(right, minlength=thresholds.size + 1)
        return narrow(above), narrow(equal)

    def count_keys(self, scores: int, low: int, shift: int, parts: int) -> AnyArray:
        """How many scores have keys in each of ``parts`` ranges of 2^shift keys, the first from ``low`` on."""
        bits = (self._vector(scores) + 0.0).view(np.int64)
        keys = np.where(bits >= 0, bits, bits ^ np.int64(np.iinfo(np.int64).max)).view(np.uint64)
        # An offset to numbers that ascend as the keys do, without a sign.
        sign = np.uint64(1 << 63)
        steps = ((keys ^ sign) - np.uint64(low + (1 << 63))) >> np.uint64(shift)
        return np.bincount(steps[steps < np.uint64(parts)].astype(np.int64), minlength=parts)
