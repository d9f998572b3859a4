"""WARP by stochastic sampling: ``--loss warp``, for rows to be ranked and for rows that are users.

Algorithms: ``apsvm.trainers.warp``, ``item_factors``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from apsvm.machine import memory
from apsvm.registry import UnknownNameError
from apsvm.trainers.base import Outcome, Progress, Trainer, TrainingError, TrainingSet, Watch
from apsvm.trainers.families.epochs import EpochSettings, check_metric, ending, evidence, progress_of, validator
from apsvm.trainers.settings import Range, SettingsError, SettingValue, setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.labels import LabelOptions, Takes
    from apsvm.data.rows import Rows
    from apsvm.model import ItemFactors
    from apsvm.solvers.sgd import Epoch

#: What a rule's learning rate is unless it is given. adadelta finds its own; there the rate is a factor.
LEARNING_RATES = {"adagrad": 0.05, "adadelta": 1.0, "sgd": 0.05}
ESTIMATORS = ("plugin", "log-unbiased", "exact")
#: The share of a user's items that a validation hides and looks for.
HIDDEN_SHARE = 0.2


def cutoff_of(tau: str) -> float:
    """Up to which rank the steps of τ are alike: infinite for ``auc``, K for ``p@K``, 0 for ``harmonic``.

    Raises
    ------
    UnknownNameError : no such τ
    """
    if tau in ("auc", "harmonic"):
        return float("inf") if tau == "auc" else 0.0
    name, _, digits = tau.partition("@")
    if name == "p" and digits.isascii() and digits.isdigit() and len(digits) <= 15 and int(digits) > 0:
        return float(digits)
    raise UnknownNameError(f"unknown tau {tau!r}: choose from auc, p@1, p@K, harmonic; K is an integer of at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpSettings(EpochSettings):
    """What is asked of WARP; each field says the rest.

    threads : more than one share the parameters without locks (Hogwild), and no two runs give the same model; 0: one
    """

    tau: str = setting(
        "harmonic",
        label="τ",
        metavar="auc|p@1|p@K|harmonic",
        grid=("p@1", "p@10", "harmonic"),
        help="What a rank costs: as many as stand above; 1 if any does; as many as K; 1 + 1/2 + … of them.",
    )
    rank_estimator: str = setting(
        "plugin",
        label="rank estimator",
        choices=ESTIMATORS,
        help="A rank is estimated from the trials until a violation (too high on average), without bias from the same "
        "(tau harmonic), or by scoring all negatives.",
    )
    max_trials: int | None = setting(
        None,
        range=Range(1),
        default_text="its negatives, at most 1000",
        help="Trials for a positive before it is left in peace.",
    )
    rule: str = setting("adagrad", label="step rule", choices=tuple(LEARNING_RATES), help="How long a step is.")
    preference: bool = setting(
        False,
        help="Labels are grades: a row is a positive against every row of its query of a lower one. Metrics take the "
        "rows as relevant that --relevant-from says, or all above the lowest grade.",
    )
    rows_as_users: bool = setting(
        False,
        help="Rows are users, columns of positive value the items they like; labels are not looked at. Learns factors "
        "of the items; apsvm predict then lists the best items for each row.",
    )
    factors: int = setting(32, range=Range(1, 4096), help="For --rows-as-users: numbers an item.")

    @property
    def rate(self) -> float:
        """The learning rate, or its default."""
        return LEARNING_RATES[self.rule] if self.learning_rate is None else self.learning_rate

    @property
    def penalty(self) -> float:
        """The weight of ½‖w‖²."""
        return self.l2 or 0.0

    @property
    def workers(self) -> int:
        """Threads that share the parameters."""
        return max(1, self.threads)


class WarpTrainer(Trainer[WarpSettings]):
    """See the module."""

    family: ClassVar[str] = "warp"
    title: ClassVar[str] = "Online learning of the top (--loss warp)"
    Settings = WarpSettings
    losses: ClassVar[tuple[str, ...]] = ("warp",)
    takes_validation = True

    def __init__(
        self,
        loss: str | object = "warp",
        settings: WarpSettings | None = None,
        given: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(loss, settings, given)
        asked = self.settings
        cutoff_of(asked.tau)
        if asked.rank_estimator == "log-unbiased" and asked.tau != "harmonic":
            raise SettingsError(
                f"the log-unbiased estimator is of the logarithm that harmonic sums, not of tau {asked.tau!r}: choose "
                "plugin or exact, or tau harmonic"
            )
        if asked.rows_as_users and "preference" in given:
            raise SettingsError("--preference does not apply to --rows-as-users")
        if not asked.rows_as_users and "factors" in given:
            raise SettingsError("--factors is for --rows-as-users")
        check_metric(self.validation_metric)

    @property
    def takes(self) -> Takes:
        from apsvm.data.labels import Takes

        if self.settings.rows_as_users:
            return Takes.NOTHING
        return Takes.ORDER if self.settings.preference else Takes.TWO_CLASSES

    @property
    def metric(self) -> str | None:
        """Of users P@10; else what τ stresses."""
        if self.settings.rows_as_users:
            return "P@10"
        tau = self.settings.tau
        return {"auc": "WMW", "harmonic": "AP"}.get(tau, tau.upper())

    @property
    def validation_metric(self) -> str:
        """What the best epoch is chosen by."""
        return self.settings.validation_metric or ("P@10" if self.settings.rows_as_users else "AP")

    @property
    def trains_classes(self) -> bool:
        return not (self.settings.rows_as_users or self.settings.preference)

    @property
    def uses_queries(self) -> bool:
        return not self.settings.rows_as_users

    @property
    def grid(self) -> Mapping[str, Sequence[SettingValue]]:
        """Learning rates around the rule's own, and of τ only what the rank estimator is for."""
        own_rate = LEARNING_RATES[self.settings.rule]
        taus = {"tau": ("harmonic",)} if self.settings.rank_estimator == "log-unbiased" else {}
        return {**super().grid, "learning_rate": (own_rate / 10.0, own_rate, 10.0 * own_rate), **taus}

    @property
    def warm_start_refusal(self) -> str | None:
        return "--rows-as-users learns factors of items" if self.settings.rows_as_users else None

    @property
    def scaling_refusal(self) -> str | None:
        return "--scale is not for --loss warp, whose steps read the rows as they are"

    @property
    def features_refusal(self) -> str | None:
        return "--features is not for --rows-as-users, whose columns are items" if self.settings.rows_as_users else None

    def label_refusal(self, options: LabelOptions) -> str | None:
        if self.settings.rows_as_users and options.relevant_from is not None:
            return "--relevant-from does not apply to --rows-as-users"
        if self.settings.rows_as_users and options.positive_label is not None:
            return "--positive-label does not apply to --rows-as-users"
        return super().label_refusal(options)

    def warnings(self) -> Iterator[str]:
        if self.settings.workers > 1:
            yield (f"{self.settings.workers} threads share the weights without locks: no two runs give the same model")

    def check(self, data: TrainingSet) -> Iterator[str]:
        from apsvm.data.rows import Rows
        from apsvm.trainers.warp import candidates

        if not isinstance(data.rows, Rows):
            raise TrainingError("WARP draws single rows at random: they must be in memory")
        if data.rows.dimension > data.rows.features:
            yield "a constant feature moves no ranking: --loss warp leaves its weight 0"
        if not self.settings.rows_as_users:
            candidates(_grades(data), data.queries)
            return
        # Factors, what the rule remembers of them, and the best of them so far: float32.
        needed = 4 * 4 * (2 * self.settings.factors + 1) * data.rows.features
        if needed > memory():
            raise TrainingError(
                f"{self.settings.factors} factors of {data.rows.features:,} items need {needed:,} bytes, more than "
                "this machine's memory; is the highest item a stray one? (--max-features finds its line)"
            )

    def train(
        self,
        data: TrainingSet,
        watch: Watch,
        *,
        start: NDArray[np.float64] | None = None,
        validation: TrainingSet | None = None,
    ) -> Iterator[Outcome]:
        asked = self.settings
        watch.log.write(
            "start",
            tau=asked.tau,
            rank_estimator=asked.rank_estimator,
            rule=asked.rule,
            learning_rate=asked.rate,
            l2=asked.penalty,
            epochs=asked.epochs,
            threads=asked.workers,
            seed=asked.seed,
        )
        if asked.rows_as_users:
            yield self._train_items(data, watch, validation)
        else:
            yield self._train_rows(data, watch, start, validation)

    def show(self, epoch: Epoch) -> Progress:
        """An epoch on the display."""
        return progress_of(epoch, stage="", draws="trials", loss="est. loss", metric=self.validation_metric)

    def _train_rows(
        self,
        data: TrainingSet,
        watch: Watch,
        start: NDArray[np.float64] | None,
        validation: TrainingSet | None,
    ) -> Outcome:
        from apsvm.trainers.warp import train_warp

        trained = train_warp(
            _in_memory(data),
            _grades(data),
            self.settings,
            watch,
            show=self.show,
            groups=data.queries,
            validate=validator(validation, self.validation_metric),
            start=start,
        )
        return Outcome(
            w=trained.w,
            settings=self._resolved,
            epochs=evidence(trained, validation, self.validation_metric),
            details={"threads": self.settings.workers},
            positives=int(data.target.relevant.sum()),
            queries=trained.queries,
            queries_skipped=trained.queries_skipped,
            notes=_pace(trained.epochs),
            **ending(trained),
        )

    def _train_items(self, data: TrainingSet, watch: Watch, validation: TrainingSet | None) -> Outcome:
        import numpy as np

        from apsvm.data.liked import hide, liked_items
        from apsvm.metrics import MetricError
        from apsvm.risk import NothingToRankError
        from apsvm.trainers.item_factors import evaluate_lists, train_items

        validate: Callable[[ItemFactors], float] | None = None
        if validation is not None:
            lists, name = liked_items(_in_memory(validation).in_memory().matrix), self.validation_metric
            known, hidden, _ = hide(lists, HIDDEN_SHARE, np.random.default_rng(self.settings.seed))

            def validate(factors: ItemFactors) -> float:
                try:
                    (value,) = evaluate_lists(factors.score, known, hidden, [name]).values.values()
                except (MetricError, NothingToRankError) as error:
                    raise TrainingError(f"{validation.source}: {error}") from None
                return value

        lists = liked_items(_in_memory(data).in_memory().matrix)
        trained = train_items(lists, self.settings.factors, self.settings, watch, show=self.show, validate=validate)
        notes = _pace(trained.epochs)
        if trained.users_skipped:
            notes.append(f"{trained.users_skipped} users of less than two items, or of all, were left out")
        notes.append(f"{lists.shape[1]} items with {self.settings.factors} factors, from {lists.nnz} likes")
        return Outcome(
            w=trained.factors,
            settings=self._resolved,
            epochs=evidence(trained, validation, self.validation_metric),
            details={"threads": self.settings.workers},
            counts={"users": trained.users, "users_skipped": trained.users_skipped, "likes": int(lists.nnz)},
            notes=notes,
            **ending(trained),
        )

    @property
    def _resolved(self) -> WarpSettings:
        """The settings with what their defaults came to."""
        from dataclasses import replace

        return replace(self.settings, learning_rate=self.settings.rate, l2=self.settings.penalty)


def _in_memory(data: TrainingSet) -> Rows:
    from apsvm.data.rows import Rows

    assert isinstance(data.rows, Rows)  # checked
    return data.rows


def _grades(data: TrainingSet) -> NDArray[np.float64] | NDArray[np.bool_]:
    """(n,) what is trained on: the higher, the better."""
    return data.target.relevant if data.target.grades is None else data.target.grades


def _pace(epochs: list[Epoch]) -> list[str]:
    trials = sum(epoch.passed.trials for epoch in epochs)
    seconds = sum(epoch.seconds for epoch in epochs)
    return [f"{trials:,} trials, {trials / max(seconds, 1e-9):,.0f} a second"]
