"""Header of a model: its options, data and results. Typed, versioned, and written as JSON.

The other modules read the fields of ``Header``; only this one knows the keys. A field of the wrong type, an unknown
field and another schema are each a ``ModelError`` that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from apsvm._support.errors import ModelError
from apsvm.models import json as header_json
from apsvm.models.columns import Columns, label_number
from apsvm.models.decision import Calibration as Calibration
from apsvm.models.decision import Threshold as Threshold
from apsvm.models.json import Json as Json

#: The version of the layout that ``Header.to_json`` writes.
SCHEMA = 1

#: The scalings that a model may have been trained with.
SCALES = ("none", "maxabs", "standard", "l2")

#: What a bag's rows may be pooled by, feature by feature.
POOLS = ("min", "mean", "max")


class LabelKind(StrEnum):
    """Rule by which labels make rows relevant."""

    #: +1 against -1, or +1 against 0.
    BINARY = "binary"
    #: One label, ``positive``, against all others.
    ONE_LABEL = "one-label"
    #: Labels from ``relevant_from`` on against all others.
    THRESHOLD = "threshold"
    #: Grades with gains: those above 0 are relevant, those below count as 0.
    GRADES = "grades"
    #: Only the order of labels counts; those above ``relevant_above`` (or from ``relevant_from`` on) are relevant.
    ORDER = "order"
    #: Each label in turn against all others; a row may have several, or none.
    CLASSES = "classes"
    #: Labels are not looked at.
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Meaning of the training rows' labels, so that other rows are interpreted alike (``apsvm.data.labels``).

    Attributes
    ----------
    kind : see ``LabelKind``
    positive : the positive label, where one label is
    negative : the other labels of the training rows, at most a hundred
    relevant_from : the lowest relevant label, where it was named
    relevant_above : of ``ORDER`` the lowest label of the training rows, above which rows are relevant; of ``THRESHOLD``
        the label above which they are, where no lowest relevant one was named
    cuts : of ``ORDER``, where real targets were cut into classes, ascending; class 1 lies below the first
    several : True if a row may have several labels, or none
    names : the two classes' names, negative and positive, where they are no numbers
    """

    kind: LabelKind = LabelKind.BINARY
    positive: float | None = None
    negative: tuple[float, ...] = ()
    relevant_from: float | None = None
    relevant_above: float | None = None
    cuts: tuple[float, ...] | None = None
    several: bool = False
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Conversion of a file's columns to the features that w weighs.

    Attributes
    ----------
    zero_based : True if the training file counted features from 0
    map : the feature map between the columns and the scaling; its arrays are in the model
    scale : of the mapped columns: "none", "maxabs", "standard" (both are in the weights already) or "l2", by which rows
        are divided by their Euclidean length before they are scored
    bias : the value of the constant feature in training; None: there was none
    names : the columns' names, where they had any
    pool : how the rows of a bag are pooled, some of ``POOLS``, before all else: each of them gives a column of every
        feature of the file; None: rows are taken one by one
    columns : how the columns of a table become the features, where the training file was one
    """

    zero_based: bool = False
    map: str = "linear"
    scale: str = "none"
    bias: float | None = None
    names: tuple[str, ...] | None = None
    pool: tuple[str, ...] | None = None
    columns: Columns | None = None

    @property
    def columns_of_feature(self) -> int:
        """Number of columns that a feature of the file has before it is mapped."""
        return 1 if self.pool is None else len(self.pool)

    def check(self) -> None:
        """Raises ModelError for what no training makes."""
        if self.scale not in SCALES:
            raise ModelError(f"expected one of {', '.join(SCALES)} in 'features.scale', found {self.scale!r}")
        pool, columns = self.pool, self.columns
        if pool is not None and not (pool and set(pool) <= set(POOLS) and len(set(pool)) == len(pool)):
            raise ModelError(f"expected some of {', '.join(POOLS)} in 'features.pool', found {list(pool)!r}")
        if columns is None:
            return
        wrong = columns.fault()
        if wrong is not None:
            raise ModelError(f"expected {wrong}")
        if self.names != columns.feature_names():
            raise ModelError("expected the names that the columns' features have in 'features.names'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The certificate of a structured SVM: ``primal`` ≥ the optimum ≥ ``dual`` of ½‖w‖² + C·risk, from feasible points.

    Attributes
    ----------
    gap, tolerance : primal − dual, and the tolerance, ε·C
    bound : "hinge", or "tight": then the bounds are those of the convex majorant at the stationary point
    exact : False where the problem solved only approximates the loss's (oracle "appx")
    hinge_objective : for the tight bound, the hinge's optimum, where the descent began
    stationary : the bounds are those of a convex majorant of the objective that touches it at w: training on bags and
        the tight bound end at such a point, which need not be the optimum
    loss : whose problem it is, where that is not the model's own loss
    layer : of a network, from 1: they are those of the last convex problem, in this layer's weights, the others held
    """

    primal: float
    dual: float
    gap: float
    tolerance: float
    bound: str = "hinge"
    exact: bool = True
    hinge_objective: float | None = None
    stationary: bool = False
    loss: str | None = None
    layer: int | None = None

    @property
    def reached(self) -> bool:
        """True if the gap is at most the tolerance."""
        return self.gap <= self.tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """The evidence of a smooth convex training: the objective, its gradient's largest entry, and the tolerance."""

    value: float
    gradient_norm: float
    target: float | None = None
    evaluations: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The rows that an epoch was chosen by: their file and its SHA-256, the metric and its value there."""

    file: str
    sha256: str
    metric: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """A stochastic training: how many epochs ran, which one was kept (from 1), what its draws showed of the loss."""

    count: int
    best: int
    estimated_loss: float
    validation: Validation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The training rows: the base name of their file and the SHA-256 of its bytes, counts of rows and positives, of
    queries trained on and of those without anything to rank, and what else the family counted, by name."""

    file: str = ""
    sha256: str = ""
    rows: int = 0
    positives: int | None = None
    queries: int | None = None
    queries_skipped: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedClass:
    """A class that has no ranker, and why."""

    label: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One of the rankers that an average is of (``apsvm.models.averages``): the fields of its own header that are not
    those of the average's, its constant, and what its scores are divided by, above 0."""

    header: Mapping[str, Json]
    intercept: float
    divisor: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingResult:
    """Common fields of a training's outcome and its model's header.

    Attributes
    ----------
    metric : what the loss is the shortfall of, as ``apsvm eval`` names it
    state, as_asked : why the training stopped, and whether that is an end as requested
    iterations : of all stages, where the family counts them
    C : the weight of the risk, where there is one
    certificate, gradient, epochs : the evidence, of which a family has at most one
    details : what else the family says
    threshold : where rows begin to be called positive
    data : the rows; of an outcome what the training counted
    """

    metric: str | None = None
    state: str = ""
    as_asked: bool = True
    iterations: int | None = None
    C: float | None = None
    certificate: Bounds | None = None
    gradient: Gradient | None = None
    epochs: Epochs | None = None
    details: Mapping[str, Json] = field(default_factory=dict)
    threshold: Threshold | None = None
    data: Data = field(default_factory=Data)

    def result(self) -> dict[str, Any]:
        """These fields, by name."""
        return {one.name: getattr(self, one.name) for one in fields(TrainingResult)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Header(TrainingResult):
    """Header of a model. It contains no date: the same training gives the same file.

    Attributes
    ----------
    family : the trainer's (``apsvm.trainers.TRAINERS``)
    loss : as ``--loss`` names it
    settings : the family's own options
    calibration : how likely rows are positive
    latent : it was trained on bags, each by its best row, and ranks bags by theirs
    cautions : sentences on what the ranker is not good for
    selection : how its settings were chosen (``apsvm cv``), if they were
    classes_skipped : of a set of rankers
    members : of a linear ranker that is an average: one for each of the maps in ``features.map``
    """

    family: str = ""
    loss: str
    labels: Labels = Labels()
    features: Features = Features()
    settings: Mapping[str, Json] = field(default_factory=dict)
    seed: int | None = None
    calibration: Calibration | None = None
    latent: bool = False
    cautions: tuple[str, ...] = ()
    selection: Mapping[str, Json] | None = None
    classes_skipped: tuple[SkippedClass, ...] = ()
    members: tuple[Member, ...] = ()
    estimator: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.features.check()
        wrong = None if self.calibration is None else self.calibration.fault()
        if wrong is not None:
            raise ModelError(f"expected {wrong}")

    def shown_label(self, label: float) -> str:
        """A label as the training file had it: a word of a table, or its number."""
        words = () if self.features.columns is None else self.features.columns.label_words
        is_word = label.is_integer() and 0 <= label < len(words)
        return words[int(label)] if is_word else repr(float(label)).removesuffix(".0")

    def label_number(self, label: float | str) -> float | None:
        """The number of a label as a user writes it; None where training knew none such."""
        try:
            columns = self.features.columns
            return label_number(label) if columns is None else columns.label_value(label)
        except ValueError:
            return None

    def to_json(self) -> dict[str, Json]:
        """JSON values, the schema among them; ``from_json`` gives an equal header."""
        return {"schema": SCHEMA, **header_json.fields_of(self)}

    @classmethod
    def from_json(cls, value: object) -> Header:
        """The header that ``to_json`` wrote. Raises ModelError."""
        if not isinstance(value, Mapping):
            raise ModelError("it is not a JSON object")
        schema = value.get("schema")
        content = {key: item for key, item in value.items() if key != "schema"}
        if isinstance(content.get("data"), Mapping):  # some files also say how the training rows were spread
            content["data"] = {key: item for key, item in content["data"].items() if key != "spread"}
        if type(schema) is not int or schema != SCHEMA:
            raise ModelError(f"expected schema {SCHEMA}, found {schema!r}: it was written by another version of apsvm")
        return header_json.decoded(cls, content)

    def difference(self, whole: Header) -> dict[str, Json]:
        """The fields that are not those of ``whole``, as JSON values; ``from_difference`` gives an equal header."""
        return header_json.difference(self, whole)

    @classmethod
    def from_difference(cls, value: Mapping[str, object], whole: Header) -> Header:
        """Header from the output of ``difference``. Raises ModelError."""
        return header_json.decoded(cls, header_json.completed(value, whole))


def parse_pool(text: str) -> tuple[str, ...]:
    """The names in a list such as ``min,mean,max``. Raises ValueError for one that is none of POOLS, or given twice."""
    names = tuple(word.strip().lower() for word in text.split(","))
    if not set(names) <= set(POOLS) or len(set(names)) < len(names):
        raise ValueError(f"expected some of {', '.join(POOLS)}, with commas between them, found {text!r}")
    return names
