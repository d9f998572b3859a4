"""Precision against recall: step functions whose area is the average precision (``metrics.curves``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from apsvm.metrics.curves import Judged, Steps, mean_curve
from apsvm.report.pictures.base import Picture
from apsvm.report.pictures.style import DOTTED, MUTED, legend_below

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: With more curves than this, none is named.
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Curve:
    """``name`` in the legend, if not empty; ``aside`` draws it thinly behind the others."""

    name: str
    steps: Steps
    aside: bool = False


def mean_and_each(curves: Mapping[str, Judged], of: str = "mean") -> list[Curve]:
    """The mean of several curves, named ``of``, and each of them drawn thinly, without names if there are many."""
    each = [Curve(f"{name}, AP {curve.ap:.4f}", curve.steps, aside=True) for name, curve in curves.items()]
    if len(each) > MOST_NAMED:
        each = [replace(curve, name="") for curve in each]
    ap = math.fsum(curve.ap for curve in curves.values()) / len(curves)
    return [Curve(f"{of}, AP {ap:.4f}", mean_curve([curve.steps for curve in curves.values()])), *each]


def mean_base_rate(curves: Mapping[str, Judged]) -> float:
    """The mean share of positives."""
    return math.fsum(curve.base_rate for curve in curves.values()) / len(curves)


@dataclass(frozen=True)
class PrecisionRecall(Picture):
    """curves : in the order of the legend; base_rate : share of positive rows, the precision of a random order"""

    curves: Sequence[Curve]
    base_rate: float

    def draw(self, figure: Figure, width: float) -> None:
        axes = figure.add_subplot(xlim=(0, 1), ylim=(0, 1.02))
        for curve in self.curves:
            recall = np.concatenate([[0.0], curve.steps.recall])
            precision = np.concatenate([curve.steps.precision[:1], curve.steps.precision])
            (line,) = axes.plot(recall, precision, drawstyle="steps-pre", label=curve.name)
            if curve.aside:
                line.set_linewidth(0.8)
            if not curve.name:
                line.set(color=MUTED, linestyle="solid", linewidth=0.5, zorder=1.5)
        random = f"random order, {self.base_rate:.3g}"
        axes.axhline(self.base_rate, color=MUTED, linewidth=0.8, linestyle=DOTTED, label=random)
        axes.set_xlabel("recall")
        axes.set_ylabel("precision")
        legend_below(figure, width, axes)
