"""Networks of dense layers, trained by gradients on any loss of ``apsvm.torch``: ``--net 32,32``.

Algorithm: ``apsvm.torch.training``; nothing here loads PyTorch before it trains. The model is arrays, and needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from apsvm.trainers.base import Outcome, Progress, Trainer, TrainingError, TrainingSet, Watch
from apsvm.trainers.families.epochs import check_metric, ending, evidence, progress_of
from apsvm.trainers.settings import Range, Settings, SettingsError, setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.labels import Takes
    from apsvm.losses.base import Loss
    from apsvm.solvers.sgd import Epoch

#: Losses of one form only, all of which are about average precision.
PLAIN = ("bce", "smooth-ap", "blackbox-ap")
#: Losses made of a ranking loss, and what they are short for.
MADE_OF = {"ramp": "ramp(ap)", "direct": "direct(ap)"}
LEARNING_RATE = 0.003
L2_WEIGHT = 1e-4
#: Units of a layer, and layers: more is a slip of the keys.
MOST_UNITS, MOST_LAYERS = 1 << 16, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class NetSettings(Settings):
    """What is asked of a network; each field says the rest."""

    net: str = setting(
        "32",
        label="hidden units",
        metavar="N[,N…]",
        help="Train a network with hidden layers of so many units, on --loss bce, smooth-ap, blackbox-ap, or any loss "
        "over rankings: its hinge, or ramp(loss), direct(loss). Needs the extra torch; predicting does not.",
    )
    net_epochs: int = setting(
        200, label="epochs", range=Range(1), help="Passes over the rows, of ten steps at least, those by BCE included."
    )
    bce_epochs: int | None = setting(
        None,
        label="of these by BCE first",
        range=Range(0),
        default_text="half of them",
        help="Passes on cross-entropy before those on another loss; 0: none.",
    )
    net_patience: int = setting(
        30, label="patience", range=Range(1), help="A loss ends after so many passes without a better held-out metric."
    )
    held_out: float = setting(
        0.2,
        label="held out",
        range=Range(0.0, 0.9),
        help="The share of the rows, or of the queries, that is not trained on but says which pass was best; 0: the "
        "last one is kept. --validation FILE stands in their place.",
    )
    batch_rows: int = setting(
        256,
        label="rows a step",
        range=Range(0),
        help="Rows of a step, of both classes in their shares, or whole queries; 0: all rows.",
    )
    learning_rate: float | None = setting(
        None,
        label="learning rate",
        range=Range(0.0, 1e6, open_low=True),
        default_text=f"{LEARNING_RATE:g}",
        grid=(0.001, 0.003, 0.01),
        help="How long a step is.",
    )
    l2: float | None = setting(
        None,
        label="l2",
        range=Range(0.0),
        default_text=f"{L2_WEIGHT:g}",
        help="Weight of ½‖w‖² against the loss.",
    )
    device: str = setting("cpu", label="device", metavar="NAME", help="Where it trains: cpu, cuda, cuda:1, mps …")

    @property
    def units(self) -> tuple[int, ...]:
        """The sizes of the hidden layers. Raises SettingsError."""
        return hidden_units(self.net)

    @property
    def rate(self) -> float:
        """The learning rate, or its default."""
        return LEARNING_RATE if self.learning_rate is None else self.learning_rate

    @property
    def penalty(self) -> float:
        """The weight of ½‖weights‖², or its default."""
        return L2_WEIGHT if self.l2 is None else self.l2


def hidden_units(text: str) -> tuple[int, ...]:
    """The numbers in ``"32,16"``; none in ``"0"``, a network without hidden layers, which is linear.

    Raises
    ------
    SettingsError : anything else
    """
    words = [word.strip() for word in text.split(",")]
    if words == ["0"]:
        return ()
    units = tuple(int(word) if word.isascii() and word.isdigit() and len(word) <= 9 else 0 for word in words)
    if not all(0 < number <= MOST_UNITS for number in units) or len(units) > MOST_LAYERS:
        raise SettingsError(
            f"--net takes a number of units, 1..{MOST_UNITS}, as in --net 32; or one for each of up to {MOST_LAYERS} "
            f"hidden layers, --net 32,32; or 0 for no hidden layer. Found {text!r}"
        )
    return units


@dataclass(frozen=True, slots=True, eq=False)
class NetLoss:
    """What a network is trained on.

    Attributes
    ----------
    kind : one of ``PLAIN``, ``"hinge"``, ``"ramp"`` or ``"direct"``; ``"module"`` for a ``ListLoss`` of the user's
    name : as ``--loss`` has it
    loss : the ranking loss that it is made of; or the module itself; None of a plain one
    """

    kind: str
    name: str
    loss: Loss | object = None

    @classmethod
    def of(cls, given: str | object) -> NetLoss:
        """The loss of a name, in any case; of a ranking loss itself, its hinge; of a ``ListLoss``, that.

        Raises
        ------
        LossError, UnknownNameError : no such loss; one that is not over rankings, or that no network is trained on
        """
        from apsvm.losses import make_loss
        from apsvm.losses.base import LossError, is_of_two_arrays

        if not isinstance(given, str) and hasattr(given, "values_of"):
            return cls("module", str(given), given)
        name = str(given).strip() if ":" in str(given) else str(given).strip().lower()
        if isinstance(given, str) and name in PLAIN:
            return cls(name, name)
        inner: str | object = given
        kind = "hinge"
        if isinstance(given, str):
            name = MADE_OF.get(name, name)
            inner = name
            stem, bracket, rest = name.partition("(")
            if stem in MADE_OF and bracket and rest.endswith(")"):
                kind, inner = stem, rest[:-1]
        loss = make_loss(inner)
        if not is_of_two_arrays(loss):
            raise LossError(
                f"a network is trained on {', '.join(PLAIN)}, on losses of two arrays such as ap or ndcg, and on "
                f"ramp(loss) and direct(loss) of these; {loss.name!r} is none"
            )
        return cls(kind, name if isinstance(given, str) else loss.name, loss)

    @property
    def is_bce(self) -> bool:
        """Whether it is cross-entropy, which takes each row for itself."""
        return self.kind == "bce"

    @property
    def takes_grades(self) -> bool:
        """Whether labels may be grades."""
        return bool(getattr(self.loss, "takes_grades", False)) and self.kind != "module"

    @property
    def metric(self) -> str:
        """What it is about, as ``apsvm eval`` names it; AP where it names nothing."""
        return getattr(self.loss, "metric", None) or "AP"


class NetTrainer(Trainer[NetSettings]):
    """See the module. ``loss`` is a name, a ranking loss, or a ``ListLoss``."""

    family: ClassVar[str] = "net"
    title: ClassVar[str] = "Networks (--net 32,32)"
    Settings = NetSettings
    losses: ClassVar[tuple[str, ...]] = (*PLAIN, "ramp(loss)")
    default_loss = "bce"
    chosen_by = "net"
    extra = "torch"
    takes_validation = True

    def __init__(
        self,
        loss: str | object = "bce",
        settings: NetSettings | None = None,
        given: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(loss, settings, given)
        self.net_loss = NetLoss.of(loss)
        self.loss_name = self.net_loss.name
        asked = self.settings
        hidden_units(asked.net)
        if self.net_loss.is_bce and asked.bce_epochs is not None:
            raise SettingsError("--bce-epochs is for other losses: --loss bce trains on cross-entropy throughout")
        if asked.bce_epochs is not None and asked.bce_epochs >= asked.net_epochs:
            raise SettingsError(
                f"--bce-epochs {asked.bce_epochs} leaves none of the {asked.net_epochs} --net-epochs for --loss "
                f"{self.loss_name}"
            )
        check_metric(self.validation_metric)

    @classmethod
    def serves(cls, loss: str) -> bool:
        name = loss.lower()
        return name in PLAIN or (name.startswith("ramp(") and name.endswith(")"))

    @property
    def takes(self) -> Takes:
        from apsvm.data.labels import Takes

        return Takes.GRADES if self.net_loss.takes_grades else Takes.TWO_CLASSES

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
        asked = self.settings
        if self.net_loss.is_bce:
            return asked.net_epochs
        return asked.net_epochs // 2 if asked.bce_epochs is None else asked.bce_epochs

    @property
    def classes_refusal(self) -> str | None:
        return "a network is trained for one ranking: train one for each --positive-label"

    @property
    def warm_start_refusal(self) -> str | None:
        return "a network begins with cross-entropy (--bce-epochs), from weights drawn by --seed"

    @property
    def checkpoint_refusal(self) -> str | None:
        return (
            "a loss that is a module of your own may remember what no file holds"
            if self.net_loss.kind == "module"
            else None
        )

    @property
    def scaling_refusal(self) -> str | None:
        return "a network scales its features itself, each to mean 0 and deviation 1: --scale does not apply"

    def check(self, data: TrainingSet) -> Iterator[str]:
        from apsvm.data.rows import Rows
        from apsvm.machine import memory
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

        asked = self.settings
        watch.log.write(
            "start",
            net=asked.net,
            net_epochs=asked.net_epochs,
            bce_epochs=self.bce_epochs,
            learning_rate=asked.rate,
            l2=asked.penalty,
            batch_rows=asked.batch_rows,
            device=asked.device,
            seed=asked.seed,
        )
        resolved = replace(asked, learning_rate=asked.rate, l2=asked.penalty)
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
