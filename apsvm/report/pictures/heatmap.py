"""The interleaving ranks of the negatives in the most violated ranking, by iteration, as a heat map: Figure 1 of
Mohapatra, Jawahar and Kumar (NIPS 2014), the reason why AP-SVM-SELECT works.

A row is an iteration (its last oracle call), a column a negative, from the highest score to the lowest. The colour is
its rank, 1 (above every positive) to P + 1 (below all, the deepest red). Ranks rise along a row, so the number of
negatives per rank determines it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm._support.types import JsonObject
from apsvm.report.pictures.base import Picture, PictureError, as_written_by_train
from apsvm.report.pictures.style import HEAT, Size, whole_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Most pixels of the map; with more negatives, a column represents several.
MOST_COLUMNS, MOST_ROWS = 1600, 1200


@dataclass(frozen=True, slots=True)
class RankCounts:
    """Number of negatives at each interleaving rank: pairs (rank, count), ranks 1..P+1 ascending, counts ≥ 1."""

    pairs: Sequence[tuple[int, int]]

    def at(self, negatives: NDArray[np.int64]) -> NDArray[np.int64]:
        """The ranks of the ``negatives``, counted from 0 by falling score."""
        ranks, counts = np.array(self.pairs, dtype=np.int64).reshape(-1, 2).T
        result: NDArray[np.int64] = ranks[np.searchsorted(np.cumsum(counts), negatives, side="right")]
        return result


@dataclass(frozen=True)
class Heatmap(Picture):
    """rows : one per iteration, in order; n_pos, n_neg : sizes of the ranking"""

    rows: Sequence[RankCounts]
    n_pos: int
    n_neg: int

    @classmethod
    def of_log(cls, records: Sequence[JsonObject]) -> Heatmap:
        """From the records of a log of ``apsvm train --log-ranks``, of one class.

        Raises
        ------
        PictureError : no record has ranks, or the log is of several classes
        """
        calls = [record for record in records if record.get("event") == "oracle"]
        if not calls:
            raise PictureError("no oracle record: expected the log of a structured training (--loss ap, ndcg, auc, …)")
        ranked = [call for call in calls if call.get("ranks") is not None]
        if not ranked:
            raise PictureError("its oracle records have no ranks: train with --log-ranks")
        classes = {call.get("class") for call in ranked}
        if len(classes) > 1:
            raise PictureError(f"a log of {len(classes)} classes: expected that of one ranking")
        with as_written_by_train():
            return cls._of_calls(ranked)

    @classmethod
    def _of_calls(cls, ranked: Sequence[JsonObject]) -> Heatmap:
        # Stages may use different rows (appx): draw only those with the counts of the last.
        n_pos, n_neg = ranked[-1]["n_pos"], ranked[-1]["n_neg"]
        if n_neg == 0:
            raise PictureError("there are no negatives whose ranks could be drawn")
        rows: list[RankCounts] = []
        before: tuple[object, ...] = ()
        for call in ranked:
            if (call["n_pos"], call["n_neg"]) != (n_pos, n_neg):
                continue
            names = ("stage", "C", "iteration") if "iteration" in call else ("start", "C", "step")
            at = tuple(call[name] for name in names)
            counts = RankCounts([(int(rank), int(count)) for rank, count in call["ranks"]])
            result = sum(count for _, count in counts.pairs)
            if result != n_neg:
                raise PictureError(f"expected the ranks of {n_neg:,} negatives in a record, found {result:,}")
            if at == before:
                rows[-1] = counts  # the last call of an iteration represents it
                continue
            rows.append(counts)
            before = at
        return cls(rows, n_pos, n_neg)

    def height(self, size: Size) -> float:
        return 0.62 * size.width

    def pixels(self) -> NDArray[np.int64]:
        """The map: (rows, columns) int64 ranks, thinned out to the number of pixels."""
        columns = min(self.n_neg, MOST_COLUMNS)
        negatives = ((np.arange(columns) + 0.5) * self.n_neg / columns).astype(np.int64)
        which = np.arange(len(self.rows))
        if which.size > MOST_ROWS:
            which = ((np.arange(MOST_ROWS) + 0.5) * which.size / MOST_ROWS).astype(np.int64)
        return np.stack([self.rows[row].at(negatives) for row in which.tolist()])

    def draw(self, figure: Figure, size: Size) -> None:
        axes = figure.add_subplot()
        image = axes.imshow(
            self.pixels(),
            cmap=HEAT,
            vmin=1,
            vmax=self.n_pos + 1,
            aspect="auto",
            interpolation="nearest",
            extent=(0.5, self.n_neg + 0.5, len(self.rows) + 0.5, 0.5),
        )
        axes.grid(visible=False)
        whole_numbers(axes.xaxis)
        whole_numbers(axes.yaxis)
        axes.set_xlabel("negatives, highest score first")
        axes.set_ylabel("iteration")
        axes.set_title(f"{self.n_pos} positives, {self.n_neg} negatives")
        bar = figure.colorbar(image, ax=axes, pad=0.02, fraction=0.05)
        bar.outline.set_linewidth(0.4)
        last = self.n_pos + 1
        bar.set_ticks([1, last], labels=["1", "P+1"] if last > 2 else ["1", "2"])
        bar.set_label("interleaving rank", labelpad=-10)
