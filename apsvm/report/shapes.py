"""The curves of a ranker's features, as pictures show them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from apsvm.data.features.additive import curve
from apsvm.data.features.base import AdditiveMap
from apsvm.data.features.knots import KnottedMap
from apsvm.models.linear import LinearRanker
from apsvm.report.pictures.shapes import Shape

#: Values of a feature that its curve is drawn at, beside its knots.
POINTS = 200


class NoShapesError(ValueError):
    """A ranker whose score is no sum of curves, or of straight lines alone; the message says which."""


def curved_map(ranker: LinearRanker) -> KnottedMap:
    """The map that gives each feature a curve of its own. Raises NoShapesError."""
    name = ranker.header.features.map
    if isinstance(ranker.feature_map, KnottedMap):
        return ranker.feature_map
    if ranker.feature_map is None or isinstance(ranker.feature_map, AdditiveMap):
        raise NoShapesError(f"its features are as they are ({name}): every curve is a straight line, its weight")
    raise NoShapesError(f"its features ({name}) go into the score together: no feature has a curve of its own")


def shapes(ranker: LinearRanker, features: Iterable[int]) -> list[Shape]:
    """The curves of the features, numbered from 0, over the values that the training rows had. Raises NoShapesError."""
    feature_map, names = curved_map(ranker), ranker.features()
    result = []
    for j in features:
        low, high = feature_map.limits(j)
        x = np.union1d(np.linspace(low, high, POINTS), feature_map.of_feature(j))
        result.append(Shape(names[j], x, curve(feature_map, ranker.coef, j, x)))
    return result


def widest(ranker: LinearRanker, most: int) -> list[Shape]:
    """The ``most`` curves that go the farthest from their lowest to their highest point, the farthest first; none that
    is flat. Raises NoShapesError."""
    every = shapes(ranker, range(ranker.width))
    reach = np.array([np.ptp(shape.y) for shape in every])
    return [every[j] for j in np.argsort(-reach, kind="stable")[:most].tolist() if reach[j] > 0.0]
