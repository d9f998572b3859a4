"""WARP by stochastic sampling: ``--loss warp``, for rows to be ranked and for rows that are users.

Algorithms: ``apsvm.trainers.warp.descent``, ``item_factors``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from apsvm._support.machine import memory
from apsvm._support.naming import option
from apsvm.data.takes import Takes
from apsvm.models.header import Data
from apsvm.trainers.base import Outcome, Progress, Trainer, TrainingError, TrainingSet, Watch
from apsvm.trainers.capabilities import Capabilities
from apsvm.trainers.settings import SettingsError, SettingValue
from apsvm.trainers.warp.epochs import check_metric, ending, evidence, validator
from apsvm.trainers.warp.settings import LEARNING_RATES, WarpSettings, cutoff_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm._support import sparse as sp
    from apsvm.data.rows import Rows
    from apsvm.models.items import ItemFactors
    from apsvm.solvers.sgd import Epoch

#: Share of a user's items hidden by validation.
HIDDEN_SHARE = 0.2
#: Number of training users for the comparison with popularity, without validation; it takes .3 s.
USERS_JUDGED = 200


class WarpTrainer(Trainer[WarpSettings]):
    """See the module."""

    family: ClassVar[str] = "warp"
    title: ClassVar[str] = "Online learning of the top (--loss warp)"
    Settings = WarpSettings
    losses: ClassVar[tuple[str, ...]] = ("warp",)
    capabilities = Capabilities(
        validation=True,
        refused={"scale": "WARP reads the rows as they are"},
    )

    def __init__(
        self,
        loss: str | object = "warp",
        settings: WarpSettings | None = None,
        named: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(loss, settings, named)
        settings = self.settings
        cutoff_of(settings.tau)
        if settings.rank_estimator == "log-unbiased" and settings.tau != "harmonic":
            raise SettingsError(
                f"the rank estimator log-unbiased needs tau harmonic, found {settings.tau!r}: choose plugin or exact, "
                "or tau harmonic"
            )
        if settings.rows_as_users and "preference" in named:
            raise SettingsError(f"{option('preference')} does not apply to {option('rows_as_users')}")
        if not settings.rows_as_users and "factors" in named:
            raise SettingsError(f"{option('factors')} is for {option('rows_as_users')}")
        check_metric(self.validation_metric)
        self.capabilities = self._capabilities()

    def _capabilities(self) -> Capabilities:
        if self.settings.rows_as_users:
            return replace(self.capabilities, labels=Takes.NOTHING, queries=False).refusing(
                features="the columns are items",
            )
        return replace(self.capabilities, labels=Takes.ORDER) if self.settings.preference else self.capabilities

    @property
    def metric(self) -> str | None:
        """P@10 for users; otherwise the metric that τ emphasises."""
        if self.settings.rows_as_users:
            return "P@10"
        tau = self.settings.tau
        return {"auc": "WMW", "harmonic": "AP"}.get(tau, tau.upper())

    @property
    def validation_metric(self) -> str:
        """Metric that selects the best epoch."""
        return self.settings.validation_metric or ("P@10" if self.settings.rows_as_users else "AP")

    @property
    def grid(self) -> Mapping[str, Sequence[SettingValue]]:
        """Learning rates around the rule's default; τ only as the rank estimator allows."""
        default_rate = LEARNING_RATES[self.settings.rule]
        taus = {"tau": ("harmonic",)} if self.settings.rank_estimator == "log-unbiased" else {}
        return {**super().grid, "learning_rate": (default_rate / 10.0, default_rate, 10.0 * default_rate), **taus}

    def warnings(self) -> Iterator[str]:
        if self.settings.workers > 1:
            yield (f"{self.settings.workers} threads share the weights without locks: no two runs give the same model")

    def check(self, data: TrainingSet) -> Iterator[str]:
        from apsvm._support import sparse as sp
        from apsvm.data.rows import Rows
        from apsvm.trainers.warp.descent import candidates

        if not isinstance(data.rows, Rows):
            raise TrainingError("WARP draws single rows at random: they must be in memory")
        if data.rows.dimension > data.rows.features:
            yield "a constant feature moves no ranking: WARP leaves its weight 0"
        if not self.settings.rows_as_users:
            candidates(_grades(data), data.queries)
            return
        # Factors, state of the rule, and the best factors: float32.
        needed = 4 * 4 * (2 * self.settings.factors + 1) * data.rows.features
        if needed > memory():
            raise TrainingError(
                f"{self.settings.factors} factors of {data.rows.features:,} items need {needed:,} bytes, more than "
                "this machine's memory; is the highest item a stray one? (--max-features finds its line)"
            )
        matrix = data.rows.in_memory().matrix
        values = matrix.data if sp.issparse(matrix) else matrix
        disliked = int((values < 0).sum())
        if disliked:
            yield f"{disliked:,} values are negative: items that a user dislikes are never suggested to that user"

    def train(
        self,
        data: TrainingSet,
        watch: Watch,
        *,
        start: NDArray[np.float64] | None = None,
        validation: TrainingSet | None = None,
    ) -> Iterator[Outcome]:
        settings = self.settings
        watch.log.write(
            "start",
            tau=settings.tau,
            rank_estimator=settings.rank_estimator,
            rule=settings.rule,
            learning_rate=settings.rate,
            l2=settings.penalty,
            epochs=settings.epochs,
            threads=settings.workers,
            seed=settings.seed,
        )
        if settings.rows_as_users:
            yield self._train_items(data, watch, validation)
        else:
            yield self._train_rows(data, watch, start, validation)

    def show(self, epoch: Epoch) -> Progress:
        """Displays an epoch."""
        columns = {"epoch": ">6d", "trials": ">12d", "updates": ">10d", "est. loss": ">11.5g"}
        values: dict[str, float | None] = {
            "epoch": epoch.number,
            "trials": epoch.passed.trials,
            "updates": epoch.passed.updates,
            "est. loss": epoch.passed.loss,
        }
        if epoch.validation is not None:
            columns[self.validation_metric], values[self.validation_metric] = ">10.6f", epoch.validation
        return Progress("", {**columns, "seconds": ">9.2f"}, {**values, "seconds": epoch.seconds_in_all})

    def _train_rows(
        self,
        data: TrainingSet,
        watch: Watch,
        start: NDArray[np.float64] | None,
        validation: TrainingSet | None,
    ) -> Outcome:
        from apsvm.trainers.warp.descent import train_warp

        trained, pairs = train_warp(
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
            w=trained.best,
            settings=self._resolved,
            epochs=evidence(trained, validation, self.validation_metric),
            details={"threads": self.settings.workers},
            data=Data(
                positives=int(data.target.relevant.sum()), queries=pairs.queries, queries_skipped=pairs.queries_skipped
            ),
            notes=_pace(trained.epochs),
            **ending(trained),
        )

    def _train_items(self, data: TrainingSet, watch: Watch, validation: TrainingSet | None) -> Outcome:
        import numpy as np

        from apsvm.data.item_lists import hide, liked_items, rated_items
        from apsvm.metrics import MetricError
        from apsvm.risk import NothingToRankError
        from apsvm.trainers.warp.item_factors import evaluate_lists, popularity, train_items

        name, rng = self.validation_metric, np.random.default_rng(self.settings.seed)

        def lists_of(users: TrainingSet) -> sp.csr_array:
            return rated_items(_in_memory(users).in_memory().matrix)

        rated = lists_of(data)
        lists = liked_items(rated)
        if validation is None:  # drawn: files often keep similar users together
            judged = rated[np.sort(rng.permutation(rated.shape[0])[:USERS_JUDGED])]
        else:
            judged = lists_of(validation)
        known, hidden, _ = hide(judged, HIDDEN_SHARE, rng)

        def of_users(score: Callable[[sp.csr_array], NDArray[np.floating]]) -> NDArray[np.float64]:
            (values,) = evaluate_lists(score, known, hidden, [name]).of_users.values()
            return values

        validate: Callable[[ItemFactors], float] | None = None
        if validation is not None:

            def validate(factors: ItemFactors) -> float:
                try:
                    return float(of_users(factors.score).mean())
                except (MetricError, NothingToRankError) as error:
                    raise TrainingError(f"{validation.source}: {error}") from None

        trained, users = train_items(
            lists, self.settings.factors, self.settings, watch, show=self.show, validate=validate
        )
        skipped = lists.shape[0] - users
        cautions = []
        with suppress(MetricError, NothingToRankError):
            mine, simplest = of_users(trained.best.score), of_users(popularity(lists))
            ahead = mine - simplest
            # Two standard errors: factors that a penalty shrank to 0 rank by popularity plus noise, which is slightly
            # better half of the time.
            if not ahead.mean() > 2 * ahead.std() / np.sqrt(len(ahead)):
                whose = "the rows of the training" if validation is None else str(validation.source)
                cautions.append(
                    f"it is not clearly better than popularity: on likes hidden from {whose}, {name} is "
                    f"{mine.mean():.3g}, and {simplest.mean():.3g} if every user gets the most popular items; try a "
                    "lower l2 or more epochs"
                )
        notes = _pace(trained.epochs)
        notes.append(f"{lists.shape[1]} items with {self.settings.factors} factors, from {lists.nnz} likes")
        return Outcome(
            w=trained.best,
            cautions=cautions,
            settings=self._resolved,
            epochs=evidence(trained, validation, self.validation_metric),
            details={"threads": self.settings.workers},
            data=Data(counts={"users": users, "users_skipped": skipped, "likes": int(lists.nnz)}),
            notes=notes,
            **ending(trained),
        )

    @property
    def _resolved(self) -> WarpSettings:
        """Settings with their defaults filled in."""
        return replace(self.settings, learning_rate=self.settings.rate, l2=self.settings.penalty)


def _in_memory(data: TrainingSet) -> Rows:
    from apsvm.data.rows import Rows

    assert isinstance(data.rows, Rows)  # checked
    return data.rows


def _grades(data: TrainingSet) -> NDArray[np.float64] | NDArray[np.bool_]:
    """(n,) grades to train on; higher is better."""
    return data.target.relevant if data.target.grades is None else data.target.grades


def _pace(epochs: list[Epoch]) -> list[str]:
    trials = sum(epoch.passed.trials for epoch in epochs)
    seconds = sum(epoch.seconds for epoch in epochs)
    return [f"{trials:,} trials, {trials / max(seconds, 1e-9):,.0f} a second"]
