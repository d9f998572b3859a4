"""How the scores of several kinds of rows lie: a histogram of each kind, as shares of the kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.report.pictures.base import Picture
from apsvm.report.pictures.style import Size, colour, legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 40
#: More kinds than this are outlines.
MOST_FILLED = 2


@dataclass(frozen=True)
class Histogram(Picture):
    """values : name of the kind → (n,) finite numbers, n ≥ 1: scores"""

    values: Mapping[str, NDArray[np.float64]]

    def shares(self) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """The edges (b + 1,) of bins that all kinds share, and for each kind the shares of its values in them (b,)."""
        # Beyond these, sums of edges would be infinite.
        within = {name: np.clip(values, -1e300, 1e300) for name, values in self.values.items()}
        low = float(min(values.min() for values in within.values()))
        high = float(max(values.max() for values in within.values()))
        if high - low <= 1e-9 * max(abs(low), abs(high)):  # too near each other for bins between them
            margin = max(0.5, 0.1 * abs(low))
            return np.array([low - margin, high + margin]), {name: np.ones(1) for name in self.values}
        edges = np.linspace(low, high, BINS + 1)
        return edges, {name: np.histogram(values, edges)[0] / values.size for name, values in within.items()}

    def height(self, size: Size) -> float:
        return (0.82 if size.columns == 1 else 0.45) * size.width

    def draw(self, figure: Figure, size: Size) -> None:
        from matplotlib.ticker import PercentFormatter

        axes = figure.add_subplot()
        edges, shares = self.shares()
        for at, (name, share) in enumerate(shares.items()):
            if len(shares) <= MOST_FILLED:
                axes.stairs(share, edges, fill=True, color=colour(at), alpha=0.25, linewidth=0)
            axes.stairs(share, edges, color=colour(at), linewidth=1.2, label=name, baseline=None)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("score")
        axes.set_ylabel("share of the kind")
        legend_below(figure, size, axes)
