"""Header of a model: options, data and results of its training, as typed and versioned JSON.

Other modules read the fields of ``Header``; only this one knows the keys. A field of the wrong type, an unknown field
and another schema are each a ``ModelError`` that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Annotated, Any

from apsvm._support.errors import ModelError, require
from apsvm.models.columns import Columns, label_number
from apsvm.models.decision import Calibration as Calibration
from apsvm.models.decision import Threshold as Threshold
from apsvm.models.json import Json as Json
from apsvm.models.json import decoded, fields_of

#: Version of the layout of ``Header.to_json``.
SCHEMA = 1

#: Scalings of the columns in training.
SCALES = ("none", "maxabs", "standard", "l2")

#: Functions that pool the rows of a bag, feature by feature.
POOLS = ("min", "mean", "max")


class LabelKind(StrEnum):
    """Rule by which labels make rows relevant."""

    #: +1 against −1, or +1 against 0.
    BINARY = "binary"
    #: One label, ``positive``, against all others.
    ONE_LABEL = "one-label"
    #: Labels of at least ``relevant_from`` against all others.
    THRESHOLD = "threshold"
    #: Grades with gains: those above 0 are relevant, negative ones count as 0.
    GRADES = "grades"
    #: Labels of which only the order counts; those above ``relevant_above``, or from ``relevant_from`` on, are
    #: relevant.
    ORDER = "order"
    #: Each label against all others, one after the other; a row may have several labels, or none.
    CLASSES = "classes"
    #: Labels are ignored.
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Meaning of the training labels, by which labels of other rows are read (``apsvm.data.labels``)."""

    kind: LabelKind = LabelKind.BINARY
    positive: float | None = None  #: the positive label, if there is a single one
    negative: tuple[float, ...] = ()  #: the other labels of the training rows, at most a hundred
    relevant_from: float | None = None  #: the lowest relevant label, if the user named one
    #: Rows with higher labels are relevant: for ``ORDER`` the lowest training label, for ``THRESHOLD`` the default if
    #: no lowest relevant label was named.
    relevant_above: float | None = None
    #: For ``ORDER``, the ascending values that divide real targets into classes; class 1 is below the first.
    cuts: tuple[float, ...] | None = None
    several: bool = False  #: a row may have several labels, or none
    names: tuple[str, ...] | None = None  #: of the negative and the positive class, if they are not numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Conversion of a file's columns to the features that w weighs."""

    zero_based: bool = False  #: the training file counted features from 0
    map: str = "linear"  #: the feature map, which comes before the scaling; its arrays are in the model
    #: Scaling of the mapped columns. The weights include "maxabs" and "standard"; with "l2" rows are divided by their
    #: Euclidean length before scoring.
    scale: Annotated[str, SCALES] = "none"
    bias: float | None = None  #: value of the constant feature in training; None without
    names: tuple[str, ...] | None = None  #: of the columns, if they had names
    #: Functions that first pool the rows of a bag, each giving a column for every feature of the file.
    pool: tuple[Annotated[str, POOLS], ...] | None = None
    columns: Columns | None = None  #: conversion of a table's columns to features, if the training file was a table

    def __post_init__(self) -> None:
        require(self.pool is None or 0 < len(self.pool) == len(set(self.pool)), "distinct names in 'features.pool'")
        is_named = self.columns is None or self.names == self.columns.feature_names()
        require(is_named, "the names of the columns' features in 'features.names'")

    @property
    def columns_of_feature(self) -> int:
        """Number of columns for each feature of the file, before they are mapped."""
        return 1 if self.pool is None else len(self.pool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The certificate of a structured SVM: ``primal`` ≥ the optimum ≥ ``dual`` of ½‖w‖² + C·risk, from feasible
    points."""

    primal: float  #: objective at w
    dual: float  #: lower bound of the optimum
    gap: float  #: primal − dual
    tolerance: float  #: the requested gap, ε·C
    bound: str = "hinge"  #: or "tight": the bounds are those of the convex majorant at the stationary point
    exact: bool = True  #: False if the solved problem only approximates that of the loss (oracle "appx")
    hinge_objective: float | None = None  #: for the tight bound, the hinge's optimum, where the descent began
    #: The bounds are those of a convex majorant that touches the objective at w. Training on bags and the tight bound
    #: end at such a stationary point, which need not be the optimum.
    stationary: bool = False
    loss: str | None = None  #: loss of the problem, if it is not the model's own
    #: Layer of a network, from 1, whose weights the last convex problem optimised with the others fixed.
    layer: int | None = None

    @property
    def reached(self) -> bool:
        """True if the gap is at most the tolerance."""
        return self.gap <= self.tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """Result of a smooth convex training."""

    value: float  #: the objective at w
    gradient_norm: float  #: largest absolute entry of its gradient
    target: float | None = None  #: tolerance of ``gradient_norm``
    evaluations: int | None = None  #: number of evaluations of the objective


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Rows by which an epoch was chosen: their file with its SHA-256, the metric and its value."""

    file: str
    sha256: str
    metric: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """A stochastic training: the number of epochs, the one that was kept (from 1), and its loss estimated from
    draws."""

    count: int
    best: int
    estimated_loss: float
    validation: Validation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Training rows."""

    file: str = ""  #: base name of their file
    sha256: str = ""  #: of the file's bytes
    rows: int = 0
    positives: int | None = None
    queries: int | None = None
    queries_skipped: int | None = None  #: number of queries without anything to rank
    counts: Mapping[str, int] = field(default_factory=dict)  #: further counts of the family, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedClass:
    """A class without a ranker, and the reason."""

    label: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A ranker in an average (``apsvm.models.averages``)."""

    header: Mapping[str, Json]  #: fields of its header that differ from the average's
    intercept: float  #: its constant
    divisor: float  #: divisor of its scores, above 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingResult:
    """Common fields of a training's outcome and its model's header."""

    metric: str | None = None  #: metric whose shortfall is the loss, as ``apsvm eval`` names it
    state: str = ""  #: reason why the training stopped
    as_asked: bool = True  #: it stopped as requested
    iterations: int | None = None  #: number of iterations of all stages, if the family counts them
    C: float | None = None  #: weight of the risk, if there is one
    #: Result of the optimisation; a family has at most one of these.
    certificate: Bounds | None = None
    gradient: Gradient | None = None
    epochs: Epochs | None = None
    details: Mapping[str, Json] = field(default_factory=dict)  #: other values of the family, by name
    threshold: Threshold | None = None
    data: Data = field(default_factory=Data)

    def result(self) -> dict[str, Any]:
        """These fields, by name."""
        return {field.name: getattr(self, field.name) for field in fields(TrainingResult)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Header(TrainingResult):
    """Header of a model. It contains no date: the same training gives the same file."""

    family: str = ""  #: name of the trainer (``apsvm.trainers.TRAINERS``)
    loss: str  #: name of the loss, as for ``--loss``
    labels: Labels = Labels()
    features: Features = Features()
    settings: Mapping[str, Json] = field(default_factory=dict)  #: the trainer's settings
    seed: int | None = None
    calibration: Calibration | None = None
    latent: bool = False  #: it was trained on bags by their best rows, and ranks bags
    cautions: tuple[str, ...] = ()  #: warnings about the ranker, in sentences
    selection: Mapping[str, Json] | None = None  #: how ``apsvm cv`` chose the settings; None if it did not
    classes_skipped: tuple[SkippedClass, ...] = ()  #: classes without a ranker, of a set of rankers
    members: tuple[Member, ...] = ()  #: members of an average, one for each map in ``features.map``
    estimator: str | None = None  #: name of the estimator, if one was trained
    versions: Mapping[str, str] = field(default_factory=dict)  #: versions of the packages in use, by name

    @property
    def label_words(self) -> tuple[str, ...]:
        """Labels that are words in the training table: word k is the label k."""
        return () if self.features.columns is None else self.features.columns.label_words

    def shown_label(self, label: float) -> str:
        """A label as in the training file: a word of a table, or a number."""
        is_word = label.is_integer() and 0 <= label < len(self.label_words)
        return self.label_words[int(label)] if is_word else repr(float(label)).removesuffix(".0")

    def label_number(self, label: float | str) -> float | None:
        """Number of a label as a user writes it; None if the training rows had no such label."""
        try:
            return label_number(label, self.label_words)
        except ValueError:
            return None

    def to_json(self) -> dict[str, Json]:
        """JSON values with the schema; ``from_json`` gives an equal header."""
        return {"schema": SCHEMA, **fields_of(self)}

    @classmethod
    def from_json(cls, value: object, whole: Header | None = None) -> Header:
        """Header from the output of ``to_json``, or of ``json.difference`` from the header ``whole``. Raises
        ModelError."""
        if not isinstance(value, Mapping):
            raise ModelError("its header is not a JSON object")
        content = dict(value)
        schema = content.pop("schema", None) if whole is None else SCHEMA
        if type(schema) is not int or schema != SCHEMA:
            raise ModelError(f"expected schema {SCHEMA}, found {schema!r}: it was written by another version of apsvm")
        if isinstance(content.get("data"), Mapping):  # a field of older files
            content["data"] = {key: item for key, item in content["data"].items() if key != "spread"}
        return decoded(cls, content, whole=whole)


def parse_pool(text: str) -> tuple[str, ...]:
    """Names in a list such as ``min,mean,max``. Raises ValueError for a name outside ``POOLS`` or a repeated one."""
    names = tuple(word.strip().lower() for word in text.split(","))
    if not set(names) <= set(POOLS) or len(set(names)) < len(names):
        raise ValueError(f"expected some of {', '.join(POOLS)}, with commas between them, found {text!r}")
    return names
