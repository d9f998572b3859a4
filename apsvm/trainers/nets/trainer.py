"""Networks of dense layers, trained by gradients on any loss of ``apsvm.torch``: ``--net 32,32``.

Algorithm: ``apsvm.torch.training``; nothing here loads PyTorch before it trains. The model is arrays, and needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from apsvm.data.takes import Takes
from apsvm.trainers.base import Outcome, Progress, Trainer, TrainingError, TrainingSet, Watch
from apsvm.trainers.capabilities import Capabilities
from apsvm.trainers.epochs import check_metric, ending, evidence, progress_of
from apsvm.trainers.nets.settings import PLAIN, NetLoss, NetSettings, hidden_units
from apsvm.trainers.settings import SettingsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.solvers.sgd import Epoch


class NetTrainer(Trainer[NetSettings]):
    """See the module. ``loss`` is a name, a ranking loss, or a ``ListLoss``."""

    family: ClassVar[str] = "net"
    title: ClassVar[str] = "Networks (--net 32,32)"
    Settings = NetSettings
    losses: ClassVar[tuple[str, ...]] = (*PLAIN, "ramp(loss)")
    chosen_by = "net"
    capabilities = Capabilities(
        validation=True,
        extra="torch",
        refused={
            "one_vs_rest": "a network is trained for one ranking: train one for each --positive-label",
            "warm_start": "a network begins with cross-entropy (bce_epochs), from weights drawn by --seed",
            "scale": "a network scales its features itself, each to mean 0 and deviation 1",
        },
    )

    def __init__(
        self,
        loss: str | object = "bce",
        settings: NetSettings | None = None,
        named: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(loss, settings, named)
        self.net_loss = NetLoss.of(loss)
        self.loss_name = self.net_loss.name
        settings = self.settings
        hidden_units(settings.net)
        if self.net_loss.is_bce and settings.bce_epochs is not None:
            raise SettingsError("bce_epochs is for other losses: --loss bce trains on cross-entropy throughout")
        if settings.bce_epochs is not None and settings.bce_epochs >= settings.net_epochs:
            raise SettingsError(
                f"bce_epochs {settings.bce_epochs} leaves none of the {settings.net_epochs} --epochs for --loss "
                f"{self.loss_name}"
            )
        check_metric(self.validation_metric)
        if self.net_loss.takes_grades:
            self.capabilities = replace(self.capabilities, labels=Takes.GRADES)

    @classmethod
    def serves(cls, loss: str) -> bool:
        name = loss.lower()
        return name in PLAIN or (name.startswith("ramp(") and name.endswith(")"))

    @property
    def gain(self) -> str | None:
        return getattr(self.net_loss.loss, "gain", None)

    @property
    def metric(self) -> str | None:
        return self.net_loss.metric

    @property
    def validation_metric(self) -> str:
        """What the best epoch is chosen by."""
        return self.net_loss.metric

    @property
    def bce_epochs(self) -> int:
        """Epochs of cross-entropy, before those of another loss if there is one."""
        settings = self.settings
        if self.net_loss.is_bce:
            return settings.net_epochs
        return settings.net_epochs // 2 if settings.bce_epochs is None else settings.bce_epochs

    def check(self, data: TrainingSet) -> Iterator[str]:
        from apsvm._support.machine import memory
        from apsvm.data.rows import Rows
        from apsvm.risk import require_pairs

        rows = data.rows
        if not isinstance(rows, Rows):
            raise TrainingError("a network draws single rows: they must be in memory")
        needed = (8 + 4 + 4) * len(rows) * rows.features  # while they are standardised
        if needed > memory():
            raise TrainingError(
                f"a network holds its rows dense: {len(rows):,} of {rows.features:,} features need {needed:,} bytes, "
                "more than this machine's memory"
            )
        if data.target.grades is None:
            require_pairs(data.target.relevant, data.queries)
        yield from ()

    def show(self, epoch: Epoch, stage: str) -> Progress:
        """An epoch of a loss on the display."""
        return progress_of(epoch, stage=stage, draws="rows", loss="loss", metric=self.validation_metric)

    def train(
        self,
        data: TrainingSet,
        watch: Watch,
        *,
        start: NDArray[np.float64] | None = None,
        validation: TrainingSet | None = None,
    ) -> Iterator[Outcome]:
        from apsvm.torch.training import count_queries, train_net

        settings = self.settings
        watch.log.write(
            "start",
            net=settings.net,
            net_epochs=settings.net_epochs,
            bce_epochs=self.bce_epochs,
            learning_rate=settings.rate,
            l2=settings.penalty,
            batch_rows=settings.batch_rows,
            device=settings.device,
            seed=settings.seed,
        )
        resolved = replace(settings, learning_rate=settings.rate, l2=settings.penalty)
        if not self.net_loss.is_bce:
            resolved = replace(resolved, bce_epochs=self.bce_epochs)
        queries, skipped = count_queries(data)
        trained = train_net(data, self, watch, validation=validation)
        yield Outcome(
            w=trained.net,
            settings=resolved,
            epochs=evidence(trained, trained.held_out, self.validation_metric),
            positives=int(data.target.relevant.sum()),
            queries=queries,
            queries_skipped=skipped,
            **ending(trained),
        )
