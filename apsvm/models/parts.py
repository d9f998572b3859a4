"""What the kinds of models share: the header as their files have it, and the shape of the rows that they score."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm import sparse as sp
from apsvm.data.features.additive import Contributions
from apsvm.data.features.base import AdditiveMap, FeatureMap
from apsvm.data.features.linear import Linear
from apsvm.data.features.scaling import NO_SCALING, UNIT_ROWS, Scaling
from apsvm.models.container import ModelError
from apsvm.models.header import Header, HeaderError, LabelKind, Labels
from apsvm.types import JsonDict, JsonObject, Matrix

#: What stands in a file's header beside the fields of ``apsvm.models.header.Header``: the shape of the model itself.
_OF_THE_MODEL = ("kind", "width", "columns", "intercept", "factors", "components", "units")


def norm_of(weights: NDArray[np.floating]) -> float:
    """‖w‖ of an array of any shape, finite wherever float64 can hold it."""
    with np.errstate(over="ignore"):
        norm = float(np.linalg.norm(weights))
    if math.isfinite(norm):
        return norm
    largest = float(np.abs(weights).max())
    return largest * float(np.linalg.norm(weights / largest))


def header_in(content: JsonObject) -> Header:
    """The header that a file's content holds beside the shape of the model. Raises ModelError."""
    with _header_errors():
        # Schema 1 knew no header apart from the model.
        return Header.from_json(content if content["schema"] == 1 else _without_shape(content))


def _without_shape(content: JsonObject) -> JsonDict:
    return {key: value for key, value in content.items() if key not in _OF_THE_MODEL}


def shared_by_classes(whole: Header) -> Header:
    """What a class's header is compared with: no class has skipped classes of its own."""
    return replace(whole, classes_skipped=())


def headers_in(whole: JsonObject, classes: Sequence[JsonObject]) -> tuple[Header, list[Header]]:
    """The header of a set, and those of its classes from what each differs in. Raises ModelError."""
    if whole["schema"] == 1:
        return _headers_in_1(whole, classes)
    header = header_in(whole)
    shared = shared_by_classes(header)
    with _header_errors():
        return header, [Header.from_difference(_without_shape(difference), shared) for difference in classes]


def _headers_in_1(whole: JsonObject, classes: Sequence[JsonObject]) -> tuple[Header, list[Header]]:
    """The same of a file of schema 1, which did not say in the whole that there are classes."""
    from apsvm.models.schema_1 import of_a_class, of_a_set

    header = header_in(of_a_set(whole))
    labels = Labels(kind=LabelKind.CLASSES, several=header.labels.several)
    return replace(header, labels=labels), [header_in(of_a_class(whole, difference)) for difference in classes]


@contextmanager
def _header_errors() -> Iterator[None]:
    """Turns what is wrong with a header into a ModelError."""
    try:
        yield
    except HeaderError as error:
        raise ModelError(f"its header is not a model's: {error}") from None


def names_of_features(header: Header, width: int) -> list[str]:
    """The features' names, or their numbers in the file; of pooled ones max(7) … (width,)"""
    features, first = header.features, 0 if header.features.zero_based else 1
    names, width = features.names, width // features.columns_of_feature
    if names is None or len(names) != width:
        names = tuple(map(str, range(first, first + width)))
    if features.pool is None:
        return list(names)
    return [f"{pool}({name})" for pool in features.pool for name in names]


def contributions_of(
    X: Matrix, feature_map: FeatureMap | None, coef: NDArray[np.float64], *, unit_rows: bool
) -> Contributions:
    """What each feature gives to the scores coef·φ(x) of the rows of X; ValueError where the map makes columns of
    several features at once."""
    if feature_map is None:
        feature_map = Linear(int(coef.size))
    if not isinstance(feature_map, AdditiveMap):
        raise ValueError(f"the feature map {feature_map.name} makes columns of several features at once")
    return Contributions(X if sp.issparse(X) else np.asarray(X), feature_map, coef, unit_rows=unit_rows)


def scaling_in(header: Header) -> Scaling:
    """Of rows to be scored: other scalings are in the weights."""
    return UNIT_ROWS if header.features.scale == UNIT_ROWS.name else NO_SCALING


def check_labels(headers: Sequence[Header]) -> None:
    """Raises ModelError unless the headers of a set's classes name labels that increase."""
    labels = np.array([header.labels.positive for header in headers], dtype=np.float64)
    if not (np.isfinite(labels).all() and (labels[1:] > labels[:-1]).all()):
        raise ModelError("its classes are not finite labels that increase")


def check_shape(X: Matrix, width: int) -> None:
    """Raises ValueError unless X is (n, width)."""
    shape = np.shape(X)
    if len(shape) != 2 or shape[1] != width:
        raise ValueError(f"expected X of shape (n, {width}), found {shape}")
