"""How long a call takes against how much there is: time over the number of rows, on two logarithmic axes.

On such axes a time proportional to nᵖ is a straight line of slope p; a thin line shows slope 1. The papers' Figures 2
and 3 (Mohapatra, Rolínek et al. 2018) are such pictures, against all rows, the negatives and the positives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from apsvm._support.types import JsonObject
from apsvm.report.pictures.base import Picture, PictureError, as_written_by_train
from apsvm.report.pictures.style import MUTED, Size, colour, dash, legend_below, powers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What time can be drawn against: of a timing's positives and negatives.
AGAINST: Mapping[str, str] = {"total": "rows", "negatives": "negatives", "positives": "positives"}


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds a call of the oracle ``name`` took on this many rows; ``what`` tells it from timings under other
    conditions ("late", "P = 1000")."""

    name: str
    n_pos: int
    n_neg: int
    seconds: float
    what: str = ""

    @classmethod
    def checked(cls, name: object, n_pos: object, n_neg: object, seconds: object, what: str = "") -> Timing:
        """Of what a file says. Raises ValueError."""
        if not (isinstance(name, str) and isinstance(n_pos, int) and isinstance(n_neg, int)):
            raise ValueError(f"expected a name and two whole numbers, found {name!r}, {n_pos!r}, {n_neg!r}")
        if not (0 < n_pos < 2**53 and 0 < n_neg < 2**53):
            raise ValueError(f"expected rows of both classes, found {n_pos} and {n_neg}")
        if not (isinstance(seconds, int | float) and 0.0 < seconds < 1e300):
            raise ValueError(f"expected seconds above 0, found {seconds!r}")
        return cls(name, n_pos, n_neg, float(seconds), what)

    def size(self, against: str) -> int:
        return {"total": self.n_pos + self.n_neg, "negatives": self.n_neg, "positives": self.n_pos}[against]


@dataclass(frozen=True)
class TimingsBySize(Picture):
    """lines : name → points (n, seconds), n > 0 and rising; x_label : what n counts; y_label : what took so long;
    title : above it"""

    name: ClassVar[str] = "scaling"

    lines: Mapping[str, Sequence[tuple[float, float]]]
    x_label: str
    y_label: str = "milliseconds a call"
    title: str = ""

    @classmethod
    def of_timings(cls, timings: Sequence[Timing], against: str = "total", title: str = "") -> TimingsBySize:
        """One line an oracle and condition; of several timings at one size the fastest.

        Raises
        ------
        PictureError : no timings
        """
        if not timings:
            raise PictureError("no timings to draw")
        other = {"negatives": "n_pos", "positives": "n_neg"}.get(against)
        letter = {"n_pos": "P", "n_neg": "N"}
        several = other is not None and len({getattr(timing, other) for timing in timings}) > 1
        differ = len({timing.what for timing in timings}) > 1
        lines: dict[str, dict[int, float]] = {}
        for timing in timings:
            fixed = f"{letter[other]} = {getattr(timing, other):,}" if other is not None and several else ""
            name = ", ".join(part for part in (timing.name, timing.what if differ else "", fixed) if part)
            points = lines.setdefault(name, {})
            n = timing.size(against)
            points[n] = min(timing.seconds, points.get(n, np.inf))
        return cls({name: sorted(points.items()) for name, points in lines.items()}, AGAINST[against], title=title)

    def height(self, size: Size) -> float:
        return (0.85 if size.columns == 1 else 0.6) * size.width

    def draw(self, figure: Figure, size: Size) -> None:
        axes = figure.add_subplot(xscale="log", yscale="log")
        names = list(dict.fromkeys(name.split(", ")[0] for name in self.lines))
        seen: dict[str, int] = {}
        for name, points in self.lines.items():
            # An oracle keeps its colour under every condition, which the dashes tell apart.
            of, condition = names.index(name.split(", ")[0]), seen.setdefault(name.split(", ")[0], 0)
            seen[name.split(", ")[0]] += 1
            x, y = zip(*points, strict=True)
            axes.plot(
                x, [1e3 * seconds for seconds in y], marker="o", label=name, color=colour(of),
                linestyle=dash(of + 8 * condition),
            )  # fmt: skip
        self._draw_guide(axes)
        axes.set_xlabel(self.x_label)
        axes.set_ylabel(self.y_label)
        axes.set_title(self.title)
        powers(axes.xaxis)
        powers(axes.yaxis)
        legend_below(figure, size, axes)

    def _draw_guide(self, axes: Axes) -> None:
        """A line of slope 1 below all others."""
        points = [point for line in self.lines.values() for point in line]
        low, high = min(n for n, _ in points), max(n for n, _ in points)
        if low < high:
            per_row = min(1e3 * seconds / n for n, seconds in points) * 0.6
            axes.plot([low, high], [per_row * low, per_row * high], color=MUTED, linewidth=0.7, linestyle=(0, (1, 2)))
            axes.annotate(
                "∝ n", (high, per_row * high), textcoords="offset points", xytext=(0, -11), ha="right", color=MUTED
            )


def timings_of_log(records: Sequence[JsonObject]) -> list[Timing]:
    """The oracles' calls of a training's log: for each oracle and size the median call, under the stage's name.

    Raises
    ------
    PictureError : no oracle record of rows of both classes
    """
    calls: dict[tuple[str, int, int], list[int]] = {}
    with as_written_by_train():
        for record in records:
            if record["event"] == "oracle" and record["n_neg"] > 0:
                key = (record["oracle"], record["n_pos"], record["n_neg"])
                calls.setdefault(key, []).append(record["oracle_wall_ns"])
    if not calls:
        raise PictureError("no oracle record: expected the log of a structured training (--loss ap, ndcg, auc, …)")
    # A coarse clock may see none pass; a logarithmic axis has no 0.
    return [Timing(name, n_pos, n_neg, max(median(spans), 1) / 1e9) for (name, n_pos, n_neg), spans in calls.items()]
