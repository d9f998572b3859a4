"""Direct loss minimisation by stochastic steps: ``--loss 'direct(ap)'`` and its kin.

Algorithm: ``apsvm.trainers.direct_loss.descent``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from apsvm.data.takes import Takes
from apsvm.trainers.base import Outcome, Progress, Trainer, TrainingSet, Watch
from apsvm.trainers.capabilities import Capabilities
from apsvm.trainers.direct_loss.settings import DirectSettings
from apsvm.trainers.epochs import check_metric, ending, evidence, progress_of, validator
from apsvm.trainers.settings import SettingsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.losses.base import LossOverRankings
    from apsvm.solvers.sgd import Epoch

PREFIX = "direct("


class DirectLossTrainer(Trainer[DirectSettings]):
    """See the module. ``loss`` is ``"direct(name)"``, or an object: the loss itself."""

    family: ClassVar[str] = "direct-loss"
    title: ClassVar[str] = "Direct loss minimisation (--loss 'direct(ap)', 'direct(ndcg)', …)"
    Settings = DirectSettings
    losses: ClassVar[tuple[str, ...]] = ("direct(loss)",)
    default_loss = "direct(ap)"
    capabilities = Capabilities(validation=True)

    def __init__(
        self,
        loss: str | object,
        settings: DirectSettings | None = None,
        named: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(loss, settings, named)
        self.loss = self._checked_loss(loss[len(PREFIX) : -1] if isinstance(loss, str) else loss)
        self.loss_name = loss if isinstance(loss, str) else f"{PREFIX}{self.loss.name})"
        settings = self.settings
        for what, value, low in (("learning rate", settings.rate, 1e-300), ("weight l2", settings.penalty, 0.0)):
            if not low <= value <= 1e9:
                raise SettingsError(f"--loss {self.loss_name}: the {what} must lie in {low:g}..1e+09, found {value!r}")
        check_metric(self.validation_metric)
        if self.loss.takes_grades:
            self.capabilities = replace(self.capabilities, labels=Takes.GRADES)

    @classmethod
    def serves(cls, loss: str) -> bool:
        return loss.lower().startswith(PREFIX) and loss.endswith(")")

    def _checked_loss(self, named: str | object) -> LossOverRankings:
        from apsvm.losses import make_loss
        from apsvm.losses.base import LossError, is_over_rankings

        loss = make_loss(named)
        if not is_over_rankings(loss):
            raise LossError(f"direct loss minimisation is for losses over rankings, and {loss.name!r} is none")
        if self.settings.update == "negative" and not loss.of_two_arrays:
            raise LossError(
                f"the negative update is for losses of two arrays, weights and discount, and {loss.name!r} has none: "
                "choose the positive update"
            )
        return loss

    @property
    def gain(self) -> str | None:
        return getattr(self.loss, "gain", None)

    @property
    def metric(self) -> str | None:
        return self.loss.metric

    @property
    def validation_metric(self) -> str:
        """What the best epoch is chosen by."""
        return self.settings.validation_metric or "AP"

    def check(self, data: TrainingSet) -> Iterator[str]:
        from apsvm.risk import require_pairs

        if data.rows.dimension > data.rows.features:
            yield f"a constant feature moves no ranking: --loss {self.loss_name} leaves its weight as it is"
        if data.target.grades is None:
            require_pairs(data.target.relevant, data.queries)

    def show(self, epoch: Epoch) -> Progress:
        """An epoch on the display."""
        return progress_of(epoch, stage="", draws="rows", loss="bound", metric=self.validation_metric)

    def train(
        self,
        data: TrainingSet,
        watch: Watch,
        *,
        start: NDArray[np.float64] | None = None,
        validation: TrainingSet | None = None,
    ) -> Iterator[Outcome]:
        from apsvm.trainers.direct_loss.descent import train_direct

        settings = self.settings
        resolved = replace(settings, perturbation=settings.epsilon, learning_rate=settings.rate, l2=settings.penalty)
        watch.log.write(
            "start",
            update=settings.update,
            perturbation=settings.epsilon,
            learning_rate=settings.rate,
            l2=settings.penalty,
            step_rows=settings.step_rows,
            epochs=settings.epochs,
            seed=settings.seed,
        )
        trained = train_direct(
            data,
            self.loss,
            settings,
            watch,
            show=self.show,
            validate=validator(validation, self.validation_metric),
            start=start,
        )
        best = trained.epochs[trained.best_epoch - 1]
        bound = "upper" if settings.update == "positive" else "lower"
        yield Outcome(
            w=trained.w,
            settings=resolved,
            epochs=evidence(trained, validation, self.validation_metric),
            positives=int(data.target.relevant.sum()),
            queries=trained.queries,
            queries_skipped=trained.queries_skipped,
            notes=[f"{bound} bound of the loss, mean of the steps of epoch {best.number}: {best.passed.loss:.6g}"],
            **ending(trained),
        )
