"""Base class of trainers: a trainer is one file that declares its settings and capabilities, and trains.

    rows, target, queries, weights  →  ``Trainer(loss, settings).train``  →  weights of the features, and what to say of
    them

An instance is a plan: the loss and the settings are read once, when it is made, and checked; nothing is told from a
string twice. ``apsvm train``, ``cv``, ``predict``, ``eval``, ``info``, ``report``, ``--one-vs-rest``, the shell's
completion and the estimators know a trainer by this face alone. Importing it loads nothing heavy; a trainer's own file
should not either, and import numpy and the rest where it trains.
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
    from apsvm.models.net import Net

SettingsT = TypeVar("SettingsT", bound=Settings)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """Rows, and what is known of them; or bags of rows, and what is known of the bags.

    Attributes
    ----------
    rows : RowOperator
        N rows.
    bags : NDArray[int64], optional
        (bags + 1,) int64, bag b is the rows bags[b] to bags[b + 1] − 1, and everything else here is of bags, n
        being their number; None: of rows.
    target : Target
        What their labels mean.
    queries : NDArray[int64], optional
        (n,) int64, rows of one query share a value, in any order; None: all rows are one query.
    costs : ndarray, optional
        (n,) float64 ≥ 0, weights of the rows, for losses over rows; None: all one.
    query_weights : Mapping[int, float], optional
        Weight ≥ 0 of each query in the risk, 1 where not named; None: all one.
    source, fingerprint : str
        What messages call the rows, and the SHA-256 of their file.
    unit : str
        What there are n of: "rows", or "bags", also where each was pooled to a row.
    components : int
        H, how many weight vectors the rows are scored by, of which the best counts; with more than one the rows
        have a constant feature, and w is (H·dimension,), block by block.
    relearned : Callable, optional
        The same rows, their features mapped by what is learned from the rows ``which`` (k,) int64 alone; None: their
        map knows nothing of their labels, and serves also where some are held out.
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
        """(n,) float64: of the rows, or each bag's best row's, for w (dimension,) float64; of components their best."""
        if self.components > 1:
            best: NDArray[np.float64] = self.rows.scores_of_all(w.reshape(self.components, -1)).max(axis=1)
            return best
        scores = self.rows.scores(w)
        if self.bags is None:
            return scores
        import numpy as np

        return np.maximum.reduceat(scores, self.bags[:-1])

    def without_labels_of_others(self, training: NDArray[np.int64]) -> TrainingSet:
        """The same rows, or bags, their features mapped by what is learned from ``training`` (k,) int64 alone."""
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
        What is going on; another stage begins another table.
    columns : Mapping[str, str]
        Name → format specification, in order.
    values : Mapping[str, float, optional]
        By column; None where there is nothing to show.
    """

    stage: str
    columns: Mapping[str, str]
    values: Mapping[str, float | None]

    @property
    def number(self) -> int:
        """The first column counts the lines."""
        first = self.values[next(iter(self.columns))]
        assert first is not None
        return int(first)


def unseen(_: object) -> None:
    """Ignores progress."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Observers of a training: its log, progress display and remarks, and ``should_stop``, which is asked between
    iterations or several times a second."""

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
        (m,) float64, in the model's scale.
    relevant : ndarray of bool
        (m,) bool.
    how : str
        In words, "5 folds of rows".
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
        (dimension,) float64, a weight for each column of the rows, the constant feature's last if there is one;
        of H components (H, features + 1), each one's weights, and its constant last; or a net over those
        columns, or the factors of items.
    settings : Settings
        It was trained with: of a path of values, with its own.
    interrupted : bool
        True if a signal ended the training.
    trouble : str, optional
        What was not finite, where that ended it.
    ranks : bool
        True if any two training rows have different scores; with a set of rankers, if this holds for each.
    cautions : Sequence[str]
        Sentences on what the ranker is not good for, which are said whether or not anybody asks.
    held_out : HeldOut, optional
        The training rows by rankers that have not seen them, trained as this one, where the choice of its
        settings has such.
    share_of_nothing : float, optional
        The bound on the loss as a share of what it is at w = 0, where the two can be compared.
    labels : Labels, optional
        What labels mean, where the training itself found out.
    notes : Sequence[str]
        Sentences for people, of what the fields do not say.
    seconds : Mapping[str, float]
        Seconds of the training's parts, by name.
    classes : Sequence[tuple[float, Outcome]]
        For a set of rankers: the label and the outcome of each.
    skipped : Sequence[SkippedClass]
        For a set of rankers: the classes without one.
    """

    w: NDArray[np.float64] | Net | ItemFactors | None
    settings: Settings
    interrupted: bool = False
    trouble: str | None = None
    ranks: bool = True
    cautions: Sequence[str] = ()
    held_out: HeldOut | None = None
    share_of_nothing: float | None = None
    labels: Labels | None = None
    notes: Sequence[str] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    classes: Sequence[tuple[float, Outcome]] = ()
    skipped: Sequence[SkippedClass] = ()


class TrainingError(ValueError):
    """Rows that a trainer cannot train on; the message says why, without naming them."""


class InputError(ValueError):
    """A file that settings name does not hold what it should; the message begins with its name."""


class Trainer(ABC, Generic[SettingsT]):
    """A plan: a loss and settings, checked. See the module.

    Parameters
    ----------
    loss : str or object
        As ``--loss`` names it; or an object, for trainers that take one.
    settings : SettingsT, optional
        An instance of the class ``Settings``; by default its defaults.
    given : frozenset[str]
        The names of the settings that the user chose, for warnings about those of no effect.

    Raises
    ------
    SettingsError, UnknownNameError, LossError
        A loss or settings that do not exist, or do not go together.
    """

    #: Its name in model files; its heading in ``--help``; its settings.
    family: ClassVar[str]
    title: ClassVar[str]
    Settings: ClassVar[type[Settings]] = Settings

    #: The values of ``--loss`` that it trains on, or their forms (``rbp(rho)``).
    losses: ClassVar[Sequence[str]]
    #: What it takes and makes use of; ``__init__`` may narrow it to what holds of the plan.
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
        """The same plan with other settings, which are not checked against the loss again."""
        other = copy(self)
        other.settings = replace(self.settings, **changes)
        return other

    def settled(self, outcome: Outcome) -> Self:
        """The plan of this one of its outcomes, with what its training found out, for trainings on some of the same
        rows."""
        return self.with_settings(**{one.name: getattr(outcome.settings, one.name) for one in fields(outcome.settings)})

    def compared(self) -> Self:
        """The plan as it is trained on folds, for a comparison: as far as it changes a ranking."""
        return self

    # What a plan says of itself.

    @property
    def metric(self) -> str | None:
        """Metric of validation and choice, as ``apsvm eval`` names it; None: no particular one."""
        return "AP"

    @property
    def gain(self) -> str | None:
        """Gain of grades (``losses.graded.GAINS``); None if grades have none here."""
        return None

    @property
    def grid(self) -> Mapping[str, Sequence[SettingValue]]:
        """The values that are worth trying of its settings, by name, where none are named; its other settings may
        decide which."""
        declarations = declared(type(self.settings))
        return {name: about.grid for name, (_, about) in declarations.items() if about.grid is not None}

    def inputs(self) -> Mapping[str, str]:
        """Files that its settings name, by what they are: no output may replace one."""
        return {}

    def warnings(self) -> Iterator[str]:
        """Sentences on settings of no effect."""
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
        """Sentences on rows that it can train on, yet not as the user may expect.

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
        """The trained rankers, of a path one for each value; fewer if it is stopped.

        Parameters
        ----------
        start : ndarray, optional
            (dimension,) float64, where to begin.
        validation : TrainingSet, optional
            Rows to choose the best epoch by, of the same features.

        Raises
        ------
        TrainingError, NothingToRankError, LossError
            Rows that it cannot train on (ValueErrors).
        FloatingPointError
            Feature values too large for the objective to be finite.
        """


#: A trainer of some family or other.
AnyTrainer: TypeAlias = Trainer[Any]
