"""Base class of trainers. A trainer is one file that declares settings and capabilities, and trains.

    rows, target, queries, weights → ``Trainer(loss, settings).train`` → weights of the features, and remarks

An instance is a plan: it parses and checks loss and settings once, when it is made. All commands, ``--one-vs-rest``,
the shell's completion and the estimators use a trainer through this interface only. Importing this is cheap. A
trainer's own file should be cheap too, and import numpy and the rest where it trains.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from apsvm._support.log import Log, NoLog
from apsvm._support.naming import option
from apsvm.models.header import SkippedClass, TrainingResult
from apsvm.trainers.capabilities import Capabilities
from apsvm.trainers.settings import Settings, SettingValue, declared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.labels import Target
    from apsvm.data.row_operator import RowOperator
    from apsvm.models.header import Labels
    from apsvm.models.items import ItemFactors
    from apsvm.models.linear import LinearRanker
    from apsvm.models.net import Net

SettingsT = TypeVar("SettingsT", bound=Settings)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """Rows with target, queries and weights; or bags of rows with those of the bags.

    Attributes
    ----------
    rows : RowOperator
        N rows.
    bags : NDArray[int64], optional
        (bags + 1,) int64, bag b is the rows bags[b] to bags[b + 1] − 1. All other fields then refer to bags, and n is
        their number. None: rows without bags.
    target : Target
        Meaning of their labels.
    queries : NDArray[int64], optional
        (n,) int64, rows of one query share a value, in any order; None: all rows are one query.
    costs : ndarray, optional
        (n,) float64 ≥ 0, weights of the rows, for losses over rows; None: all one.
    query_weights : Mapping[int, float], optional
        Weight ≥ 0 of each query in the risk; 1 for queries not listed; None: all one.
    source, fingerprint : str
        Name of the rows in messages, and the SHA-256 of their file.
    unit : str
        "rows" or "bags": the unit of n, also for bags pooled to rows.
    components : int
        H, number of weight vectors; a row has the highest of its H scores. With H > 1 the rows have a constant feature,
        and w is (H·dimension,), block by block.
    relearned : Callable, optional
        Returns the same rows with a feature map learned from the rows ``which`` (k,) int64 alone. None if the map does
        not depend on labels and so also serves held-out rows.
    """

    rows: RowOperator
    target: Target
    queries: NDArray[np.int64] | None = None
    costs: NDArray[np.float64] | None = None
    query_weights: Mapping[int, float] | None = None
    source: str = "the rows"
    fingerprint: str = ""
    bags: NDArray[np.int64] | None = None
    unit: str = "rows"
    components: int = 1
    relearned: Callable[[NDArray[np.int64]], RowOperator] | None = None

    @property
    def n(self) -> int:
        """Number of rows, or of bags."""
        return int(self.target.relevant.size)

    def scores(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) float64: scores of the rows, or of each bag's best row, for w (dimension,) float64; the highest of
        several components."""
        if self.components > 1:
            best: NDArray[np.float64] = self.rows.scores_of_all(w.reshape(self.components, -1)).max(axis=1)
            return best
        scores = self.rows.scores(w)
        if self.bags is None:
            return scores
        import numpy as np

        return np.maximum.reduceat(scores, self.bags[:-1])

    def without_labels_of_others(self, training: NDArray[np.int64]) -> TrainingSet:
        """The same rows, or bags, with a feature map learned from ``training`` (k,) int64 alone."""
        if self.relearned is None:
            return self
        rows = training
        if self.bags is not None:
            from apsvm.data.bags import rows_of_runs

            rows, _ = rows_of_runs(self.bags, training)
        return replace(self, rows=self.relearned(rows), relearned=None)

    def select(self, which: NDArray[np.int64]) -> TrainingSet:
        """The rows, or the bags, ``which`` (k,) int64, in that order."""
        rows, bags = which, self.bags
        if bags is not None:
            from apsvm.data.bags import rows_of_runs

            rows, bags = rows_of_runs(bags, which)
        relearned = self.relearned
        return replace(
            self,
            rows=self.rows.select(rows),
            relearned=None if relearned is None else lambda training: relearned(rows[training]).select(rows),
            bags=bags,
            target=self.target.of(which),
            queries=None if self.queries is None else self.queries[which],
            costs=None if self.costs is None else self.costs[which],
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """A line of a progress display.

    Attributes
    ----------
    stage : str
        Name of the stage; a new stage begins a new table.
    columns : Mapping[str, str]
        Name → format specification, in order.
    values : Mapping[str, float | None]
        Values by column; None for an empty cell.
    """

    stage: str
    columns: Mapping[str, str]
    values: Mapping[str, float | None]

    @property
    def number(self) -> int:
        """Value of the first column, which counts the lines."""
        first = self.values[next(iter(self.columns))]
        assert first is not None
        return int(first)


def unseen(_: object) -> None:
    """Ignores progress."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Observers of a training: its log, progress display and remarks; ``should_stop`` is called between iterations or
    several times a second."""

    log: Log = field(default_factory=NoLog)
    progress: Callable[[Progress], None] = unseen
    remark: Callable[[str], None] = unseen
    should_stop: Callable[[], bool] = lambda: False

    @property
    def is_followed(self) -> bool:
        """True if the log or the progress display is in use."""
        return not (isinstance(self.log, NoLog) and self.progress is unseen)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Rows (or bags) scored by rankers that have not seen them.

    Attributes
    ----------
    scores : ndarray
        (m,) float64, on the scale of the model.
    relevant : ndarray of bool
        (m,) bool.
    how : str
        Description, such as "5 folds of rows".
    """

    scores: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    how: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome(TrainingResult):
    """A trained ranker and the outcome of its training.

    Attributes
    ----------
    w : ndarray or Net or ItemFactors, optional
        (dimension,) float64, a weight for each column of the rows, the constant feature's last, if any. With H
        components (H, features + 1), each with its constant last. Or a net over the columns, or the factors of items.
    settings : Settings
        Settings of this training; with a path of values, those of its value.
    interrupted : bool
        True if a signal ended the training.
    trouble : str, optional
        Name of the value that was not finite, if that ended the training.
    ranks : bool
        True if two training rows have different scores; for a set of rankers, if this holds for each.
    cautions : Sequence[str]
        Warnings about the ranker, shown even with ``--quiet``.
    held_out : HeldOut, optional
        Training rows scored by rankers that have not seen them, trained as this one, if the choice of settings produced
        them.
    relative_bound : float, optional
        Bound on the loss divided by its value at w = 0, if the two are comparable.
    labels : Labels, optional
        Meaning of the labels, if the training determined it.
    notes : Sequence[str]
        Remarks for people that no field expresses.
    seconds : Mapping[str, float]
        Seconds of the training's parts, by name.
    classes : Sequence[tuple[float, Outcome]]
        For a set of rankers: the label and the outcome of each.
    skipped : Sequence[SkippedClass]
        For a set of rankers: the classes without a ranker.
    average : LinearRanker, optional
        For an average of rankers on several feature maps: the ranker itself; ``w`` is then None.
    scores : ndarray, optional
        (n,) float64, training scores of ``average``.
    """

    w: NDArray[np.float64] | Net | ItemFactors | None
    settings: Settings
    interrupted: bool = False
    trouble: str | None = None
    ranks: bool = True
    cautions: Sequence[str] = ()
    held_out: HeldOut | None = None
    relative_bound: float | None = None
    labels: Labels | None = None
    notes: Sequence[str] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    classes: Sequence[tuple[float, Outcome]] = ()
    skipped: Sequence[SkippedClass] = ()
    average: LinearRanker | None = None
    scores: NDArray[np.float64] | None = None


class TrainingError(ValueError):
    """Rows that a trainer cannot train on; the message gives the reason but not the file."""


class InputError(ValueError):
    """A file named by settings has the wrong content; the message begins with its name."""


class Trainer(ABC, Generic[SettingsT]):
    """A plan: a checked loss and settings. See the module.

    Parameters
    ----------
    loss : str or object
        Name of the loss as in ``--loss``; or an object, for trainers that accept one.
    settings : SettingsT, optional
        An instance of the class ``Settings``; its defaults if None.
    named : frozenset[str]
        Names of the settings that the user chose, for warnings about settings without effect.

    Raises
    ------
    SettingsError, UnknownNameError, LossError
        Unknown loss or settings, or settings that conflict.
    """

    #: Name in model files; heading in ``--help``; class of settings.
    family: ClassVar[str]
    title: ClassVar[str]
    Settings: ClassVar[type[Settings]] = Settings

    #: Values of ``--loss`` that it trains on, or their forms (``rbp(rho)``).
    losses: ClassVar[Sequence[str]]
    #: Supported inputs; ``__init__`` may narrow them for the plan.
    capabilities: Capabilities = Capabilities()

    def __init__(
        self, loss: str | object, settings: SettingsT | None = None, named: frozenset[str] = frozenset()
    ) -> None:
        self.loss_name = str(loss)
        self.settings: SettingsT = self.Settings() if settings is None else settings  # type: ignore[assignment]
        self.named = named

    @classmethod
    def serves(cls, loss: str) -> bool:
        """True if this family trains on ``loss``."""
        return loss in cls.losses

    def with_settings(self, **changes: Any) -> Self:
        """The same plan with other settings, without checking them against the loss again."""
        changed = copy(self)
        changed.settings = replace(self.settings, **changes)
        return changed

    def settled(self, outcome: Outcome) -> Self:
        """The plan completed by the choices of this outcome, for trainings on subsets of the same rows."""
        settings = outcome.settings
        return self.with_settings(**{item.name: getattr(settings, item.name) for item in fields(settings)})

    def compared(self) -> Self:
        """The plan for trainings on folds, which only compare rankings."""
        return self

    # Properties of a plan.

    @property
    def metric(self) -> str | None:
        """Metric of validation and choice, named as in ``apsvm eval``; None without a preference."""
        return "AP"

    @property
    def gain(self) -> str | None:
        """Gain of grades (``losses.graded.GAINS``); None if grades have no gain."""
        return None

    @property
    def grid(self) -> Mapping[str, Sequence[SettingValue]]:
        """Values worth trying for its settings, by name, if the user names none; may depend on other settings."""
        declarations = declared(type(self.settings))
        return {name: about.grid for name, (_, about) in declarations.items() if about.grid is not None}

    def inputs(self) -> Mapping[str, str]:
        """Description → file for files named by its settings, which no output may replace."""
        return {}

    def warnings(self) -> Iterator[str]:
        """Warnings about settings without effect."""
        return iter(())

    def remedies(self, outcome: Outcome, *, of_bags: bool = False, lacks_constant: bool = False) -> list[str]:
        """Untried options to suggest if a model of this plan gives all training rows the same score.

        Parameters
        ----------
        outcome : Outcome
            Outcome of the training.
        of_bags : bool
            True if the rows were in bags.
        lacks_constant : bool
            True if the plan wants a constant feature and the rows lack one.
        """
        return [f"another {option('loss')} ({'auc' if self.loss_name == 'ap' else 'ap'})"]

    def check(self, data: TrainingSet) -> Iterator[str]:
        """Yields warnings about rows that it can train on in a way the user may not expect.

        Raises
        ------
        TrainingError, NothingToRankError
            Rows that it cannot train on (ValueErrors).
        """
        return iter(())

    @abstractmethod
    def train(
        self,
        data: TrainingSet,
        watch: Watch,
        *,
        start: NDArray[np.float64] | None = None,
        validation: TrainingSet | None = None,
    ) -> Iterator[Outcome]:
        """Yields the trained rankers, one for each value of a path; fewer if stopped.

        Parameters
        ----------
        start : ndarray, optional
            (dimension,) float64, the starting point.
        validation : TrainingSet, optional
            Rows that choose the best epoch, with the same features.

        Raises
        ------
        TrainingError, NothingToRankError, LossError
            Rows that it cannot train on (ValueErrors).
        FloatingPointError
            Feature values too large for the objective to be finite.
        """


#: A trainer of any family.
AnyTrainer: TypeAlias = Trainer[Any]
