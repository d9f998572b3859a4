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
from apsvm.report.pictures.style import few_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Most pixels of the map; with more negatives, a column represents several.
MOST_COLUMNS, MOST_ROWS = 1600, 1200


@dataclass(frozen=True)
class Heatmap(Picture):
    """The map of one training.

    Attributes
    ----------
    rows : one per iteration, in order: (k, 2) int64, ranks 1..P+1, ascending, and the number of negatives at each
    n_pos, n_neg : sizes of the ranking
    """

    rows: Sequence[NDArray[np.int64]]
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
            # Stages may use different rows (appx): draw only those with the counts of the last.
            n_pos, n_neg = ranked[-1]["n_pos"], ranked[-1]["n_neg"]
            rows, before = list[NDArray[np.int64]](), None
            for call in ranked:
                if (call["n_pos"], call["n_neg"]) != (n_pos, n_neg):
                    continue
                names = ("stage", "C", "iteration") if "iteration" in call else ("start", "C", "step")
                at = tuple(call[name] for name in names)
                if at == before:  # the last call of an iteration represents it
                    rows.pop()
                rows.append(np.array(call["ranks"], dtype=np.int64).reshape(-1, 2))
                before = at
        for row in rows:
            if row[:, 1].sum() != n_neg or n_neg == 0:
                raise PictureError(f"expected the ranks of {n_neg:,} negatives in a record, found {row[:, 1].sum():,}")
        return cls(rows, n_pos, n_neg)

    def pixels(self) -> NDArray[np.int64]:
        """The map: (rows, columns) int64 ranks, thinned out to the number of pixels."""
        negatives, iterations = _thinned(self.n_neg, MOST_COLUMNS), _thinned(len(self.rows), MOST_ROWS)
        rows = [self.rows[at] for at in iterations.tolist()]
        return np.stack([row[np.searchsorted(np.cumsum(row[:, 1]), negatives, side="right"), 0] for row in rows])

    def draw(self, figure: Figure, width: float) -> None:
        axes = figure.add_subplot()
        extent = (0.5, self.n_neg + 0.5, len(self.rows) + 0.5, 0.5)
        last = self.n_pos + 1
        image = axes.imshow(
            self.pixels(), cmap="YlOrRd", vmin=1, vmax=last, aspect="auto", interpolation="nearest", extent=extent
        )
        axes.grid(visible=False)
        few_ticks(axes.xaxis, whole=True)
        few_ticks(axes.yaxis, whole=True)
        axes.set_xlabel("negatives, highest score first")
        axes.set_ylabel("iteration")
        axes.set_title(f"{self.n_pos} positives, {self.n_neg} negatives")
        bar = figure.colorbar(image, ax=axes, pad=0.02, fraction=0.05)
        bar.set_ticks([1, last], labels=["1", "P+1"])
        bar.set_label("interleaving rank", labelpad=-10)


def _thinned(count: int, most: int) -> NDArray[np.int64]:
    """``most`` of the numbers below ``count``, evenly spread, or all."""
    size = min(count, most)
    return ((np.arange(size) + 0.5) * count / size).astype(np.int64)
