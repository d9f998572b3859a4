"""What a ranker makes of each feature: the curves whose sum is the score, of additive feature maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm.report.pictures.base import Picture, PictureError
from apsvm.report.pictures.style import MUTED, Size, colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The curve of a feature.

    Attributes
    ----------
    name : of the feature
    x : (k,) its values, ascending
    y : (k,) what they give to the score
    """

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]


@dataclass(frozen=True)
class Shapes(Picture):
    """shapes : one panel each, in this order, all of one scale; y_label : what the curves are"""

    name: ClassVar[str] = "shapes"

    shapes: Sequence[Shape]
    y_label: str = "gives to the score"
    title: str = ""

    def __post_init__(self) -> None:
        if not self.shapes:
            raise PictureError("expected the curve of a feature, found none")

    def _columns(self, size: Size) -> int:
        return min(len(self.shapes), 3 if size.columns > 1 else 2)

    def height(self, size: Size) -> float:
        columns = self._columns(size)
        rows = -(-len(self.shapes) // columns)
        return 0.3 + 0.75 * rows * size.width / max(2, columns)

    def draw(self, figure: Figure, size: Size) -> None:
        columns = self._columns(size)
        rows = -(-len(self.shapes) // columns)
        panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
        for axes, shape in zip(panels, self.shapes, strict=False):
            axes.axhline(0.0, color=MUTED, linewidth=0.6)
            axes.plot(shape.x, shape.y, color=colour(0))
            axes.set_title(shape.name)
            axes.locator_params(axis="x", nbins=4)
        for axes in panels[len(self.shapes) :]:
            axes.set_visible(False)
        figure.supylabel(self.y_label, fontsize=size.font)
        if self.title:
            figure.suptitle(self.title, fontsize=size.font, fontweight="bold")
