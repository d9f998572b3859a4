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
    """Meaning of the training labels, by which labels of other rows are read (``apsvm.data.labels``).

    Attributes
    ----------
    kind : see ``LabelKind``
    positive : the positive label, if there is a single one
    negative : the other labels of the training rows, at most a hundred
    relevant_from : the lowest relevant label, if the user named one
    relevant_above : rows with higher labels are relevant: for ``ORDER`` the lowest training label, for ``THRESHOLD``
        the default if no lowest relevant label was named
    cuts : for ``ORDER``, the ascending values that divide real targets into classes; class 1 is below the first
    several : True if a row may have several labels, or none
    names : names of the negative and the positive class, if they are not numbers
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
    map : name of the feature map, which comes before the scaling; its arrays are in the model
    scale : scaling of the mapped columns. The weights include "maxabs" and "standard"; with "l2" rows are divided by
        their Euclidean length before scoring
    bias : value of the constant feature in training; None without
    names : names of the columns, if they had names
    pool : functions of ``POOLS`` that first pool the rows of a bag, each giving a column for every feature of the file;
        None: rows are not pooled
    columns : conversion of the columns of a table to features, if the training file was a table
    """

    zero_based: bool = False
    map: str = "linear"
    scale: Annotated[str, SCALES] = "none"
    bias: float | None = None
    names: tuple[str, ...] | None = None
    pool: tuple[Annotated[str, POOLS], ...] | None = None
    columns: Columns | None = None

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
    """The certificate of a structured SVM: ``primal`` ≥ the optimum ≥ ``dual`` of ½‖w‖² + C·risk, from feasible points.

    Attributes
    ----------
    primal, dual : objective at w, and a lower bound of the optimum
    gap, tolerance : primal − dual, and the requested gap, ε·C
    bound : "hinge", or "tight": then the bounds are those of the convex majorant at the stationary point
    exact : False if the solved problem only approximates that of the loss (oracle "appx")
    hinge_objective : for the tight bound, the hinge's optimum, where the descent began
    stationary : True if the bounds are those of a convex majorant that touches the objective at w. Training on bags and
        the tight bound end at such a stationary point, which need not be the optimum
    loss : loss of the problem, if it is not the model's own
    layer : layer of a network, from 1, whose weights the last convex problem optimised with the others fixed
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
    """Result of a smooth convex training.

    Attributes
    ----------
    value : the objective at w
    gradient_norm : largest absolute entry of its gradient
    target : tolerance of ``gradient_norm``
    evaluations : number of evaluations of the objective
    """

    value: float
    gradient_norm: float
    target: float | None = None
    evaluations: int | None = None


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
    """Training rows.

    Attributes
    ----------
    file, sha256 : base name of their file, and the SHA-256 of its bytes
    rows, positives : number of rows, and of positives among them
    queries, queries_skipped : number of queries, and of those without anything to rank
    counts : further counts of the family, by name
    """

    file: str = ""
    sha256: str = ""
    rows: int = 0
    positives: int | None = None
    queries: int | None = None
    queries_skipped: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedClass:
    """A class without a ranker, and the reason."""

    label: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A ranker in an average (``apsvm.models.averages``).

    Attributes
    ----------
    header : fields of its header that differ from the average's
    intercept : its constant
    divisor : divisor of its scores, above 0
    """

    header: Mapping[str, Json]
    intercept: float
    divisor: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingResult:
    """Common fields of a training's outcome and its model's header.

    Attributes
    ----------
    metric : metric whose shortfall is the loss, as ``apsvm eval`` names it
    state : reason why the training stopped
    as_asked : True if it stopped as requested
    iterations : number of iterations of all stages, if the family counts them
    C : weight of the risk, if there is one
    certificate, gradient, epochs : result of the optimisation; a family has at most one of them
    details : other values of the family, by name
    threshold : score above which rows are called positive
    data : the training rows
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
        return {field.name: getattr(self, field.name) for field in fields(TrainingResult)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Header(TrainingResult):
    """Header of a model. It contains no date: the same training gives the same file.

    Attributes
    ----------
    family : name of the trainer (``apsvm.trainers.TRAINERS``)
    loss : name of the loss, as for ``--loss``
    labels, features : meaning of labels, and conversion of columns to features
    settings : the trainer's settings
    seed : seed of the training
    calibration : probability that a row is positive
    latent : True if it was trained on bags by their best rows, and ranks bags
    cautions : warnings about the ranker, in sentences
    selection : how ``apsvm cv`` chose the settings; None if it did not
    classes_skipped : classes without a ranker, of a set of rankers
    members : members of an average, one for each map in ``features.map``
    estimator : name of the estimator, if one was trained
    versions : versions of the packages in use, by name
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
