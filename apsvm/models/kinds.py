"""The models: arrays and a header (``apsvm.models.header``), which is all that their files hold (``models.container``).

``LinearRanker``: a weight a feature and a constant. ``RankerSet``: one for each of several classes.
``ComponentRanker`` and ``ComponentRankerSet`` (``apsvm.models.components``): the best of several weight vectors.
``ItemRanker`` (``apsvm.models.items``): factors of items, for users known by what they like. ``NetRanker``
(``apsvm.models.net``): dense layers. The header of a file says in ``kind`` which of them it is; without one it is a
linear ranker.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from apsvm.data.features.additive import Contributions
from apsvm.data.features.scaling import UNIT_ROWS
from apsvm.data.rows import Rows
from apsvm.files import standard_input, write_whole
from apsvm.models.components import ComponentRanker as ComponentRanker
from apsvm.models.components import ComponentRankerSet as ComponentRankerSet
from apsvm.models.container import MAGIC, check_field, member_names, sealed, unsealed
from apsvm.models.container import ModelError as ModelError
from apsvm.models.header import SCHEMA, Header
from apsvm.models.items import ItemFactors as ItemFactors
from apsvm.models.items import ItemRanker as ItemRanker
from apsvm.models.json import is_finite_number
from apsvm.models.map import OF_THE_MAP, arrays_of_map, columns_in, map_in, shape_of
from apsvm.models.net import Net as Net
from apsvm.models.net import NetRanker as NetRanker
from apsvm.models.parts import (
    check_labels,
    check_shape,
    contributions_of,
    header_in,
    headers_in,
    names_of_features,
    scaling_in,
    shared_by_classes,
)
from apsvm.types import JsonObject, Matrix

if TYPE_CHECKING:
    from apsvm.data.features.base import FeatureMap
    from apsvm.types import AnyArray


@dataclass(frozen=True, slots=True)
class LinearRanker:
    """score(x) = coef·φ(x) + intercept, or coef·φ(x)/‖φ(x)‖ + intercept if ``unit_rows``; the higher, the better.

    coef : (columns,) float64; without a map, column j belongs to file index j, or j + 1 if not ``zero_based``
    intercept : float, the constant; it moves every score alike, so no ranking depends on it
    header : how, of what and how well it was made
    feature_map : φ, of (width,) features; None: the features as they are
    """

    kind: ClassVar[str] = "linear"
    what: ClassVar[str] = "a linear ranker"
    arrays: ClassVar[tuple[str, ...]] = ("coef",)

    coef: NDArray[np.float64]
    intercept: float
    header: Header
    feature_map: FeatureMap | None = None

    @property
    def width(self) -> int:
        """Number of features, before they are mapped."""
        return self.coef.size if self.feature_map is None else self.feature_map.n_in

    @property
    def zero_based(self) -> bool:
        """Whether the training file counted features from 0."""
        return self.header.features.zero_based

    def features(self) -> list[str]:
        """What the features are called: their names, or their numbers in the file; of pooled ones max(7) … (width,)"""
        return names_of_features(self.header, self.width)

    def columns(self) -> list[str]:
        """What the columns that are weighed are called, by the features they are made of."""
        names = self.features()
        return names if self.feature_map is None else self.feature_map.names(names)

    def contributions(self, X: Matrix) -> Contributions:
        """What each feature gives to the scores of the rows of X, (n, width) CSR or dense, relative to its mean in the
        training rows where the map knows it, else to 0.

        Raises
        ------
        ValueError : X is not (n, width); the map makes columns of several features at once
        """
        check_shape(X, self.width)
        return contributions_of(X, self.feature_map, self.coef, unit_rows=self.unit_rows)

    @property
    def unit_rows(self) -> bool:
        """Whether rows are divided by their Euclidean length before they are scored (``--scale l2``)."""
        return scaling_in(self.header) is UNIT_ROWS

    def score(self, X: Matrix, *, threads: int = 1) -> NDArray[np.float64]:
        """Scores of the rows of X, (n, width) CSR or dense, as they are in the file: (n,) float64.

        Raises
        ------
        ValueError : X is not (n, width)
        """
        check_shape(X, self.width)
        rows = Rows(X, threads=threads, feature_map=self.feature_map, scaling=scaling_in(self.header))
        return rows.scores(self.coef) + self.intercept

    def to_bytes(self) -> bytes:
        """The content of the model's file; the same model always gives the same bytes."""
        more = {"kind": self.kind, "intercept": self.intercept, **shape_of(self.width, self.feature_map)}
        arrays = {"coef": self.coef.astype("<f8", copy=False), **arrays_of_map(self.feature_map)}
        return sealed({**self.header.to_json(), **more}, arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model whole or not at all (OSError); ``-`` is standard output."""
        write_whole(path, self.to_bytes())

    @classmethod
    def from_parts(cls, content: JsonObject, arrays: Mapping[str, AnyArray]) -> LinearRanker:
        """What ``to_bytes`` wrote. Raises ModelError."""
        header = header_in(content)
        feature_map = map_in(content, header, arrays)
        return _linear_ranker(arrays["coef"], content, header, columns_in(content, feature_map), feature_map)


def _linear_ranker(
    coef: AnyArray, content: JsonObject, header: Header, width: int, feature_map: FeatureMap | None
) -> LinearRanker:
    """The ranker of the weights ``coef`` and the constant in ``content``, as read. Raises ModelError."""
    check_field(content, "intercept", (int, float))
    if not is_finite_number(content["intercept"]):
        raise ModelError("its constant is not finite")
    if coef.dtype != np.dtype("<f8") or coef.shape != (width,):
        raise ModelError(f"expected {width} float64 weights, found {coef.dtype} of shape {coef.shape}")
    if not np.isfinite(coef).all():
        raise ModelError("a weight is not finite")
    weights = np.ascontiguousarray(coef, dtype=np.float64)
    return LinearRanker(weights, float(content["intercept"]), header, feature_map)


@dataclass(frozen=True, slots=True)
class RankerSet:
    """A linear ranker a class, one against the rest: score_j(x) = coef_j·φ(x) + intercepts_j.

    coef : (k, columns) float64; intercepts : (k,) float64; class j is the label ``classes[j]``, increasing
    header : what holds for the whole
    headers : (k,) of each class's ranker, as if trained alone
    feature_map : φ, of (width,) features; None: the features as they are
    """

    kind: ClassVar[str] = "one-vs-rest"
    what: ClassVar[str] = "a set of rankers, one a class (--one-vs-rest)"
    arrays: ClassVar[tuple[str, ...]] = ("coef",)

    coef: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    header: Header
    headers: Sequence[Header]
    feature_map: FeatureMap | None = None

    @classmethod
    def of(cls, rankers: Sequence[LinearRanker], header: Header) -> RankerSet:
        """The set of ``rankers`` of one feature map, in the order of their labels. What ``header`` has in its mappings
        all rankers' headers have."""
        return cls(
            coef=np.stack([ranker.coef for ranker in rankers]),
            intercepts=np.array([ranker.intercept for ranker in rankers]),
            header=header,
            headers=[ranker.header for ranker in rankers],
            feature_map=rankers[0].feature_map,
        )

    @property
    def width(self) -> int:
        """Number of features, before they are mapped."""
        return int(self.coef.shape[1]) if self.feature_map is None else self.feature_map.n_in

    @property
    def zero_based(self) -> bool:
        """Whether the training file counted features from 0."""
        return self.header.features.zero_based

    @property
    def classes(self) -> NDArray[np.float64]:
        """(k,) float64, increasing: the label of each ranker."""
        return np.array([header.labels.positive for header in self.headers], dtype=np.float64)

    def ranker(self, label: float) -> LinearRanker:
        """The ranker of a class, as if trained alone.

        Raises
        ------
        KeyError : no class has this label
        """
        at = np.flatnonzero(self.classes == label)
        if at.size == 0:
            raise KeyError(label)
        j = int(at[0])
        return LinearRanker(self.coef[j].copy(), float(self.intercepts[j]), self.headers[j], self.feature_map)

    def score(self, X: Matrix, *, threads: int = 1) -> NDArray[np.float64]:
        """The scores of the rows of X, (n, width) CSR or dense, for each class: (n, k) float64. Column j has the bits
        of ``ranker(classes[j]).score(X)``.

        Raises
        ------
        ValueError : X is not (n, width)
        """
        check_shape(X, self.width)
        rows = Rows(X, threads=threads, feature_map=self.feature_map, scaling=scaling_in(self.header))
        return rows.scores_of_all(self.coef) + self.intercepts

    def to_bytes(self) -> bytes:
        """The content of the model's file; the same model always gives the same bytes. Of a class it says only what
        differs from the whole."""
        shared = shared_by_classes(self.header)
        classes = [
            {**header.difference(shared), "intercept": intercept}
            for header, intercept in zip(self.headers, self.intercepts.tolist(), strict=True)
        ]
        more = {"kind": self.kind, "classes": classes, **shape_of(self.width, self.feature_map)}
        arrays = {"coef": self.coef.astype("<f8", copy=False), **arrays_of_map(self.feature_map)}
        return sealed({**self.header.to_json(), **more}, arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model whole or not at all (OSError); ``-`` is standard output."""
        write_whole(path, self.to_bytes())

    @classmethod
    def from_parts(cls, content: JsonObject, arrays: Mapping[str, AnyArray]) -> RankerSet:
        """What ``to_bytes`` wrote. Raises ModelError."""
        check_field(content, "classes", list)
        classes, coef = content["classes"], arrays["coef"]
        if not all(isinstance(difference, dict) for difference in classes):
            raise ModelError("a class in its header is not a JSON object")
        whole = {key: value for key, value in content.items() if key != "classes"}
        header, headers = headers_in(whole, classes)
        feature_map = map_in(content, header, arrays)
        columns = columns_in(content, feature_map)
        if coef.dtype != np.dtype("<f8") or coef.shape != (len(classes), columns) or not classes:
            expected = f"{columns} float64 weights for each of at least one class, {len(classes)} in all"
            raise ModelError(f"expected {expected}, found {coef.dtype} of shape {coef.shape}")
        rankers = [
            _linear_ranker(row, difference, header, columns, feature_map)
            for row, difference, header in zip(coef, classes, headers, strict=True)
        ]
        check_labels(headers)
        return cls(
            np.stack([ranker.coef for ranker in rankers]),
            np.array([ranker.intercept for ranker in rankers]),
            header,
            headers,
            feature_map,
        )


#: A ranker of weights of columns; any ranker of rows; and a set of such, one a class.
WeightedRanker: TypeAlias = LinearRanker | ComponentRanker
Ranker: TypeAlias = WeightedRanker | NetRanker
AnyRankerSet: TypeAlias = RankerSet | ComponentRankerSet
Model: TypeAlias = Ranker | AnyRankerSet | ItemRanker
_Kind: TypeAlias = (
    type[LinearRanker]
    | type[ComponentRanker]
    | type[NetRanker]
    | type[RankerSet]
    | type[ComponentRankerSet]
    | type[ItemRanker]
)
_KINDS: dict[str, _Kind] = {
    kind.kind: kind for kind in (LinearRanker, ItemRanker, RankerSet, ComponentRanker, ComponentRankerSet, NetRanker)
}


def load_model(path: str | os.PathLike[str]) -> LinearRanker:
    """Reads a linear ranker (``-``: from standard input); never executes code.

    Raises
    ------
    OSError : the file cannot be read
    ModelError : it is not a whole, undamaged model of a schema this version knows, or it is another kind of model
    """
    model = load_any_model(path)
    if not isinstance(model, LinearRanker):
        raise ModelError(f"{_shown(path)}: expected {LinearRanker.what}, found {model.what}")
    return model


def load_any_model(path: str | os.PathLike[str]) -> Model:
    """``load_model`` for a model of any kind."""
    name = _shown(path)
    with nullcontext(standard_input()) if os.fspath(path) == "-" else open(path, "rb") as stream:
        start = stream.read(len(MAGIC))
        # Do not read gigabytes of something else.
        if start != MAGIC:
            raise ModelError(f"{name}: not an apsvm model (no zip archive)")
        content = start + stream.read()
    try:
        return _parse(content)
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None


def _shown(path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    return "<stdin>" if name == "-" else name


def _parse(content: bytes) -> Model:
    header, arrays = unsealed(content)
    kind = _kind_of(header)
    names = NetRanker.arrays_in(header) if issubclass(kind, NetRanker) else kind.arrays
    if [name for name in arrays if not name.startswith(OF_THE_MAP)] != list(names):
        expected = ", ".join(member_names(names))
        raise ModelError(f"expected the members {expected}, found {', '.join(member_names(arrays))}")
    return kind.from_parts(header, arrays)


def _kind_of(content: object) -> _Kind:
    """The class of the model, which a file of schema 1 need not name where it is linear."""
    if not isinstance(content, dict):
        raise ModelError("its header is not a JSON object")
    check_field(content, "schema", int)
    if content["schema"] not in (1, SCHEMA):
        raise ModelError(
            f"schema {content['schema']!r} is not known to this version of apsvm (it knows 1 and {SCHEMA})"
        )
    check_field(content, "width", int)
    kind = content.get("kind", LinearRanker.kind)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ModelError(f"kind {kind!r} is not known to this version of apsvm (it knows {', '.join(_KINDS)})")
    return _KINDS[kind]
