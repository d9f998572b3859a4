"""Precision among the first k rows against k: the positives found by working through a list from its top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.report.pictures.base import Picture
from apsvm.report.pictures.style import MUTED, Size, colour, legend_below, powers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class TopOfList(Picture):
    """scores : (n,) float64; relevant : (n,) bool"""

    scores: NDArray[np.float64]
    relevant: NDArray[np.bool_]

    def height(self, size: Size) -> float:
        return 0.6 * size.width

    def draw(self, figure: Figure, size: Size) -> None:
        from matplotlib.ticker import PercentFormatter

        axes = figure.add_subplot(xscale="log", xlim=(1, max(2, self.scores.size)), ylim=(0, 1.02))
        precision = precisions_at(self.scores, self.relevant)
        axes.plot(np.arange(1, precision.size + 1), precision, color=colour(0), label="this model")
        rate = float(self.relevant.mean())
        axes.axhline(rate, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)), label=f"random order, {rate:.3g}")
        powers(axes.xaxis)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
        axes.set_xlabel("rows from the top")
        axes.set_ylabel("share that is positive")
        legend_below(figure, size, axes)


def precisions_at(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Precision among the first k rows, k = 1..n, (n,) float64; scores (n,) float64, relevant (n,) bool. Rows of equal
    score count with the mean over their orders."""
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    ends = np.append(np.flatnonzero(falling[1:] != falling[:-1]) + 1, falling.size)
    hits = np.concatenate([[0.0], np.cumsum(relevant[order])])
    k = np.arange(1, falling.size + 1)
    precision: NDArray[np.float64] = np.interp(k, np.append(0, ends), hits[np.append(0, ends)]) / k
    return precision
