"""Curves and surfaces of a ranker's features and pairs, for pictures."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.data.features.additive import part_at
from apsvm.data.features.base import FeatureMap, Parts
from apsvm.models.linear import LinearRanker
from apsvm.report.pictures.shapes import GIVES, Bars, Shape, Surface

#: Values per feature: of a curve, besides its bends and steps, and edges of a surface's cells.
POINTS, CELLS = 200, 50


class NoShapesError(ValueError):
    """A ranker whose score is no sum of curves over known ranges."""


def check_curved(ranker: LinearRanker) -> tuple[FeatureMap, Parts]:
    """The map that gives features curves of their own. Raises NoShapesError."""
    feature_map = ranker.feature_map
    parts = None if feature_map is None else feature_map.parts()
    if feature_map is None or parts is None or feature_map.limits(0) is None:
        raise NoShapesError(f"with --features {ranker.header.features.map}, no feature has a curve of its own")
    return feature_map, parts


def shapes(ranker: LinearRanker, features: Iterable[int]) -> list[Shape]:
    """The curves of the features, numbered from 0, over the values that the training rows had. Raises NoShapesError."""
    feature_map, parts = check_curved(ranker)
    names = ranker.features()
    result = []
    for j in features:
        breaks = feature_map.breaks(j)
        low, high = _limits(feature_map, j)
        # A step needs two values: its own, and the next float.
        breaks = np.concatenate([breaks, np.nextafter(breaks, np.inf)])
        x = np.union1d(np.linspace(low, high, POINTS), breaks[(low < breaks) & (breaks < high)])
        result.append(Shape(names[j], x, part_at(feature_map, parts, ranker.coef, j, x[:, None])))
    return result


def surfaces(ranker: LinearRanker, pairs: Iterable[int], rows: Matrix) -> list[Surface]:
    """Joint contributions of pairs of features over the values of the training rows. ``pairs`` are numbers of parts;
    ``rows`` (n, width) are drawn as points. Raises NoShapesError."""
    feature_map, parts = check_curved(ranker)
    names = ranker.features()
    result = []
    for part in pairs:
        i, j = parts.features[part]
        x, y = (np.linspace(*_limits(feature_map, one), CELLS + 1) for one in (i, j))
        cells = [(edges[1:] + edges[:-1]) / 2.0 for edges in (x, y)]
        both = np.stack(np.meshgrid(*cells), axis=-1)
        gives = part_at(feature_map, parts, ranker.coef, part, both.reshape(-1, 2)).reshape(both.shape[:2])
        dots = rows[:, [i, j]]
        result.append(Surface((names[i], names[j]), x, y, gives, dots.toarray() if sp.issparse(dots) else dots))
    return result


def widest(ranker: LinearRanker, most: int) -> list[Shape]:
    """The ``most`` curves with the largest range, largest first, without flat ones. Raises NoShapesError."""
    every = shapes(ranker, range(ranker.width))
    reach = np.array([np.ptp(shape.y) for shape in every])
    return [every[j] for j in np.argsort(-reach, kind="stable")[:most].tolist() if reach[j] > 0.0]


def largest_weights(ranker: LinearRanker, most: int) -> Bars:
    """The ``most`` largest weights of columns, largest first. Raises NoShapesError if all are 0."""
    order = np.argsort(-np.abs(ranker.coef), kind="stable")[:most]
    order = order[ranker.coef[order] != 0.0]
    if order.size == 0:
        raise NoShapesError("all its weights are 0")
    names = ranker.columns()
    return Bars([names[j] for j in order.tolist()], ranker.coef[order])


def pairs_of(ranker: LinearRanker, of: Iterable[int] | None = None) -> list[int]:
    """The parts that are pairs: of all, those of the largest weights first, or of some, in their order. Raises
    NoShapesError."""
    _, parts = check_curved(ranker)
    if of is None:
        sizes = np.bincount(parts.of_column, np.abs(parts.weights(ranker.coef)), len(parts.features))
        of = np.argsort(-sizes, kind="stable").tolist()
    return [part for part in of if len(parts.features[part]) == 2]


def label_of(ranker: LinearRanker) -> str:
    """The axis of the curves: what a feature gives, alone where several features also give something together."""
    _, parts = check_curved(ranker)
    return f"{GIVES} alone" if len(parts.features) > ranker.width else GIVES


def _limits(feature_map: FeatureMap, j: int) -> tuple[float, float]:
    limits = feature_map.limits(j)
    assert limits is not None
    return limits
