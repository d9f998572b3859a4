"""Contributions of features and pairs to the score: curves and surfaces that sum to it, or weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.report.pictures.base import Picture, PictureError
from apsvm.report.pictures.style import DIVERGING, FONT, INK, MUTED, Size, colour, few_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure, FigureBase


#: Label of the axis of curves and of the colour bar.
GIVES = "gives to the score"


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The curve of a feature.

    Attributes
    ----------
    name : the feature's name
    x : (k,) its values, ascending
    y : (k,) their contributions to the score
    """

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Joint contributions of two features to the score.

    Attributes
    ----------
    names : the features' names
    x, y : (k + 1,) and (m + 1,) edges of the cells, ascending
    gives : (m, k) contribution of each cell
    rows : (n, 2) values of the features in some rows, drawn as points
    """

    names: tuple[str, str]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    gives: NDArray[np.float64]
    rows: NDArray[np.float64]


@dataclass(frozen=True)
class Shapes(Picture):
    """shapes : one panel each, in this order, all of one scale; surfaces : below them heat maps, one panel each, of one
    scale of colours; label : of the curves' axis"""

    shapes: Sequence[Shape]
    surfaces: Sequence[Surface] = ()
    label: str = GIVES

    def __post_init__(self) -> None:
        if not self.shapes and not self.surfaces:
            raise PictureError("expected the curve of a feature, found none")

    def _heights(self, size: Size) -> list[float]:
        """Heights of the curves and of the surfaces; 0 if there are none."""
        heights = []
        for panels in (self.shapes, self.surfaces):
            columns = max(1, _columns(panels, size))
            heights.append(0.75 * -(-len(panels) // columns) * size.width / max(2, columns))
        return heights

    def height(self, size: Size) -> float:
        return 0.3 + sum(self._heights(size))

    def draw(self, figure: Figure, size: Size) -> None:
        if self.shapes and self.surfaces:
            parts = figure.subfigures(2, 1, squeeze=False, height_ratios=self._heights(size))
            self._draw_curves(parts[0, 0], size)
            self._draw_surfaces(parts[1, 0], size)
        elif self.shapes:
            self._draw_curves(figure, size)
        else:
            self._draw_surfaces(figure, size)

    def _draw_curves(self, figure: FigureBase, size: Size) -> None:
        columns = _columns(self.shapes, size)
        rows = -(-len(self.shapes) // columns)
        panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
        for axes, shape in zip(panels, self.shapes, strict=False):
            axes.axhline(0.0, color=MUTED, linewidth=0.6)
            axes.plot(shape.x, shape.y, color=colour(0))
            axes.set_title(shape.name)
            axes.locator_params(axis="x", nbins=4)
        for axes in panels[len(self.shapes) :]:
            axes.set_visible(False)
        figure.supylabel(self.label, fontsize=FONT)

    def _draw_surfaces(self, figure: FigureBase, size: Size) -> None:
        columns = _columns(self.surfaces, size)
        rows = -(-len(self.surfaces) // columns)
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        most = max(float(np.abs(surface.gives).max()) for surface in self.surfaces) or 1.0
        for axes, surface in zip(panels, self.surfaces, strict=False):
            mesh = axes.pcolormesh(
                surface.x, surface.y, surface.gives, cmap=DIVERGING, vmin=-most, vmax=most, rasterized=True
            )
            axes.plot(*surface.rows.T, ".", color=INK, markersize=1.5, alpha=0.35, rasterized=True)
            axes.set_xlim(surface.x[0], surface.x[-1])
            axes.set_ylim(surface.y[0], surface.y[-1])
            axes.set_xlabel(surface.names[0])
            axes.set_ylabel(surface.names[1])
            axes.grid(visible=False)
            axes.locator_params(nbins=4)
        for axes in panels[len(self.surfaces) :]:
            axes.set_visible(False)
        figure.colorbar(mesh, ax=panels.tolist(), label=GIVES, shrink=0.8)


@dataclass(frozen=True)
class Bars(Picture):
    """names, weights : (k,) features whose curves are straight lines; one bar each, from the top"""

    names: Sequence[str]
    weights: NDArray[np.float64]

    def height(self, size: Size) -> float:
        return 0.6 + 0.24 * len(self.names)

    def draw(self, figure: Figure, size: Size) -> None:
        axes = figure.add_subplot()
        places = np.arange(len(self.names))
        axes.barh(places, self.weights, color=[colour(0 if weight > 0 else 1) for weight in self.weights], height=0.7)
        axes.set_yticks(places, labels=self.names)
        axes.invert_yaxis()
        axes.axvline(0.0, color=MUTED, linewidth=0.6)
        axes.grid(visible=False, axis="y")
        few_ticks(axes.xaxis)
        axes.set_xlabel("weight: what one unit more gives to the score")


def _columns(panels: Sequence[object], size: Size) -> int:
    return min(len(panels), 3 if size.width > 6.0 else 2)
