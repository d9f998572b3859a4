"""``--layer-wise`` of the structured SVM: a network instead of a linear ranker. Its options, and its results in words.

Algorithm: ``apsvm.trainers.structured_svm.layer_wise``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from apsvm._support.naming import option
from apsvm.trainers.settings import Multiple, SettingsError

if TYPE_CHECKING:
    from apsvm.trainers.base import Outcome
    from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

MOST_UNITS, MOST_LAYERS = 4096, 8
#: Default C. Features are standardised, so it needs no rule for their scale.
DEFAULT_C = 1e4
#: ``-C auto`` with ``--bound auto`` takes the best of these on held-out rows; without such rows, the first.
MULTIPLES_TRIED = tuple(map(Multiple, (1.0, 0.1, 0.01)))
#: Values that ``apsvm cv`` tries.
GRID_OF_C = MULTIPLES_TRIED[::-1]
HELD_OUT_LOSS = "loss on rows held out"


def hidden_layers(text: str) -> tuple[int, ...]:
    """Units of the hidden layers: (16, 8) for ``"16,8"`` or ``"16x8"``; empty, for a linear ranker, for ``""`` or
    ``"none"``.

    Raises
    ------
    SettingsError : not such numbers, or too many
    """
    if text.strip().lower() in ("", "none"):
        return ()
    words = text.lower().replace("x", ",").split(",")
    digits = [word.strip() for word in words]
    sizes = tuple(int(word) for word in digits if word.isascii() and word.isdecimal() and len(word) <= 6)
    if len(sizes) < len(words) or not all(1 <= size <= MOST_UNITS for size in sizes) or len(sizes) > MOST_LAYERS:
        raise SettingsError(
            f"{option('layer_wise')} names the units of 1 to {MOST_LAYERS} hidden layers, from 1 to {MOST_UNITS} each, "
            f"such as 16 or 16,8 (or 16x8); found {text!r}"
        )
    return sizes


def check_layer_wise(trainer: StructuredSVMTrainer) -> None:
    """Raises SettingsError for options that exclude a network."""
    settings = trainer.settings
    refused = {
        option("latent", True): settings.latent,
        option("oracle", "appx"): settings.oracle == "appx",
        option("bound", "tight"): settings.bound == "tight",
        option("log_ranks", True): settings.log_ranks,
        option("components"): settings.components > 1,
    }
    for name, value in refused.items():
        if value:
            raise SettingsError(f"{option('layer_wise')} does not go with {name}: remove one of them")


def held_out_loss(outcome: Outcome) -> float:
    """Loss of a network on the held-out rows of its training; infinite without such rows."""
    loss = outcome.details[HELD_OUT_LOSS]
    assert loss is None or isinstance(loss, float)
    return math.inf if loss is None else loss


def course(passes: int, risk: float, started_from: float, held_out: float | None) -> str:
    """Summary in words: the number of passes, the risks of the kept net and of the log loss's, and the kept net's loss
    on held-out rows."""
    on_held_out = "no rows were held out" if held_out is None else f"{held_out:.4g} on rows held out"
    if passes == 0:
        return f"no pass was better on rows held out than the network of the log loss: that one is kept ({on_held_out})"
    count = "1 pass" if passes == 1 else f"{passes} passes"
    return (
        f"kept the network after {count} through its layers: risk {risk:.4g}, of the log loss's network "
        f"{started_from:.4g}; {'' if held_out is None else 'loss '}{on_held_out}"
    )
