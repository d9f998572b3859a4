"""What a network takes, and what it is trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from apsvm.trainers.settings import Range, Settings, SettingsError, setting

if TYPE_CHECKING:
    from apsvm.losses.base import Loss

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
    """The settings of a network; each field says the rest."""

    net: str = setting(
        "32",
        label="hidden units",
        metavar="N[,N…]",
        help="Train a network with hidden layers of this many units, on --loss bce, smooth-ap, blackbox-ap, or any "
        "loss over rankings: its hinge, or ramp(loss), direct(loss). Needs the extra torch; predicting does not.",
    )
    net_epochs: int = setting(
        200,
        label="epochs",
        flags=("--epochs",),
        range=Range(1),
        help="Passes over the rows, of ten steps at least, those by BCE included.",
    )
    bce_epochs: int | None = setting(
        None,
        label="of these by BCE first",
        option=False,
        range=Range(0),
        default_text="half of them",
        help="Passes on cross-entropy before those on another loss; 0: none.",
    )
    net_patience: int = setting(
        30,
        label="patience",
        flags=("--patience",),
        range=Range(1),
        help="A loss ends after this many passes without a better held-out metric.",
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
    def of(cls, spec: str | object) -> NetLoss:
        """The loss of a name, in any case; of a ranking loss itself, its hinge; of a ``ListLoss``, that.

        Raises
        ------
        LossError, UnknownNameError : no such loss; one that is not over rankings, or that no network is trained on
        """
        from apsvm.losses import make_loss
        from apsvm.losses.base import LossError, is_of_two_arrays

        if not isinstance(spec, str) and hasattr(spec, "values_of"):
            return cls("module", str(spec), spec)
        name = str(spec).strip() if ":" in str(spec) else str(spec).strip().lower()
        if isinstance(spec, str) and name in PLAIN:
            return cls(name, name)
        inner: str | object = spec
        kind = "hinge"
        if isinstance(spec, str):
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
        return cls(kind, name if isinstance(spec, str) else loss.name, loss)

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
