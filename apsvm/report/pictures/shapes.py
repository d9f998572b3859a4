"""Contributions of features and pairs to the score: curves and surfaces that sum to it, or weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.features.additive import part_at
from apsvm.data.features.base import FeatureMap, Parts
from apsvm.models.linear import LinearRanker
from apsvm.report.pictures.base import Picture, PictureError
from apsvm.report.pictures.style import MUTED, few_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Values per feature: of a curve, besides its bends and steps, and edges of a surface's cells.
POINTS, CELLS = 200, 50


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The curve of the feature ``name``: x (k,) are its values, ascending, y (k,) their contributions to the score."""

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
    """shapes : curves of one scale; surfaces : heat maps below them, of one scale of colours; label : of the curves"""

    shapes: Sequence[Shape]
    surfaces: Sequence[Surface] = ()
    label: str = "gives to the score"

    @classmethod
    def of_ranker(
        cls,
        ranker: LinearRanker,
        most: tuple[int, int],
        sizes: NDArray[np.float64] | None = None,
        rows: Matrix | None = None,
    ) -> Self:
        """The largest curves and surfaces of a ranker, over the values of its training rows.

        Parameters
        ----------
        most : most curves, and most surfaces
        sizes : (parts,) sizes of the map's parts; by default the range of a curve, and the weights of a pair
        rows : (n, width) rows to draw as points on the surfaces

        Raises
        ------
        PictureError : no feature has a curve of its own, or all are flat
        """
        feature_map, parts = ranker.feature_map, None if ranker.feature_map is None else ranker.feature_map.parts()
        if feature_map is None or parts is None or feature_map.limits(0) is None:
            raise PictureError(f"with --features {ranker.header.features.map}, no feature has a curve of its own")
        if sizes is None:
            weights = np.abs(parts.weights(ranker.coef))
            sizes = np.asarray(np.bincount(parts.of_column, weights, len(parts.features)), dtype=np.float64)
            sizes[: ranker.width] = [np.ptp(_curve(ranker, feature_map, parts, j).y) for j in range(ranker.width)]
        largest = [part for part in np.argsort(-sizes, kind="stable").tolist() if sizes[part] > 0.0]
        curves = [part for part in largest if part < ranker.width][: most[0]]
        pairs = [part for part in largest if len(parts.features[part]) == 2][: most[1]]
        if not curves and not pairs:
            raise PictureError("expected the curve of a feature, found none")
        return cls(
            [_curve(ranker, feature_map, parts, part) for part in curves],
            [_surface(ranker, feature_map, parts, part, rows) for part in pairs],
            cls.label + (" alone" if len(parts.features) > ranker.width else ""),
        )

    def _columns(self, width: float) -> int:
        return min(max(len(self.shapes), len(self.surfaces)), 3 if width > 6.0 else 2)

    def _rows(self, panels: Sequence[object], width: float) -> int:
        return -(-len(panels) // self._columns(width))

    def height(self, width: float) -> float:
        rows = self._rows(self.shapes, width) + self._rows(self.surfaces, width)
        return 0.3 + 0.75 * rows * width / max(2, self._columns(width))

    def draw(self, figure: Figure, width: float) -> None:
        columns, above = self._columns(width), self._rows(self.shapes, width)
        rows = above + self._rows(self.surfaces, width)
        values = np.concatenate([[0.0], *(shape.y for shape in self.shapes)])
        margin = 0.05 * (np.ptp(values) or 1.0)
        for at, shape in enumerate(self.shapes):
            axes = figure.add_subplot(rows, columns, at + 1, ylim=(values.min() - margin, values.max() + margin))
            axes.axhline(0.0, color=MUTED, linewidth=0.6)
            axes.plot(shape.x, shape.y)
            axes.set_title(shape.name)
            axes.locator_params(axis="x", nbins=4)
            axes.tick_params(labelleft=at % columns == 0)
            axes.set_ylabel("" if at % columns else self.label)
        most = max((float(np.abs(surface.gives).max()) for surface in self.surfaces), default=0.0) or 1.0
        drawn = []
        for at, surface in enumerate(self.surfaces, start=above * columns + 1):
            axes = figure.add_subplot(rows, columns, at)
            mesh = axes.pcolormesh(
                surface.x, surface.y, surface.gives, cmap="RdBu_r", vmin=-most, vmax=most, rasterized=True
            )
            axes.plot(*surface.rows.T, "k.", markersize=1.5, alpha=0.35, rasterized=True)
            axes.set(xlabel=surface.names[0], ylabel=surface.names[1])
            axes.set(xlim=surface.x[[0, -1]], ylim=surface.y[[0, -1]])
            axes.grid(visible=False)
            axes.locator_params(nbins=4)
            drawn.append(axes)
        if drawn:
            figure.colorbar(mesh, ax=drawn, label=Shapes.label, shrink=0.8)


@dataclass(frozen=True)
class Bars(Picture):
    """names, weights : (k,) features whose curves are straight lines; one bar each, from the top"""

    names: Sequence[str]
    weights: NDArray[np.float64]

    @classmethod
    def of_ranker(cls, ranker: LinearRanker, most: int) -> Self:
        """The ``most`` largest weights of columns, largest first. Raises PictureError if all are 0."""
        order = np.argsort(-np.abs(ranker.coef), kind="stable")[:most]
        order, names = order[ranker.coef[order] != 0.0], ranker.columns()
        if order.size == 0:
            raise PictureError("all its weights are 0")
        return cls([names[j] for j in order.tolist()], ranker.coef[order])

    def height(self, width: float) -> float:
        return 0.6 + 0.24 * len(self.names)

    def draw(self, figure: Figure, width: float) -> None:
        axes, places = figure.add_subplot(), np.arange(len(self.names))
        axes.barh(places, self.weights, color=["C0" if weight > 0 else "C1" for weight in self.weights], height=0.7)
        axes.set_yticks(places, labels=self.names)
        axes.invert_yaxis()
        axes.axvline(0.0, color=MUTED, linewidth=0.6)
        axes.grid(visible=False, axis="y")
        few_ticks(axes.xaxis)
        axes.set_xlabel("weight: what one unit more gives to the score")


def _curve(ranker: LinearRanker, feature_map: FeatureMap, parts: Parts, j: int) -> Shape:
    """The curve of feature j, numbered from 0."""
    low, high = _limits(feature_map, j)
    breaks = feature_map.breaks(j)
    # A step needs two values: its own, and the next float.
    breaks = np.concatenate([breaks, np.nextafter(breaks, np.inf)])
    x = np.union1d(np.linspace(low, high, POINTS), breaks[(low < breaks) & (breaks < high)])
    return Shape(ranker.features()[j], x, part_at(feature_map, parts, ranker.coef, j, x[:, None]))


def _surface(ranker: LinearRanker, feature_map: FeatureMap, parts: Parts, part: int, rows: Matrix | None) -> Surface:
    i, j = parts.features[part]
    x, y = (np.linspace(*_limits(feature_map, feature), CELLS + 1) for feature in (i, j))
    cells = np.stack(np.meshgrid(*((edges[1:] + edges[:-1]) / 2.0 for edges in (x, y))), axis=-1)
    gives = part_at(feature_map, parts, ranker.coef, part, cells.reshape(-1, 2)).reshape(cells.shape[:2])
    points: Matrix = np.empty((0, 2)) if rows is None else rows[:, [i, j]]
    names = ranker.features()
    return Surface((names[i], names[j]), x, y, gives, points.toarray() if sp.issparse(points) else points)


def _limits(feature_map: FeatureMap, j: int) -> tuple[float, float]:
    limits = feature_map.limits(j)
    assert limits is not None
    return limits
