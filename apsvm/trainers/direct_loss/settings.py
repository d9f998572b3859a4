"""What direct loss minimisation takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from apsvm.trainers.epochs import EpochSettings
from apsvm.trainers.settings import Range, setting

if TYPE_CHECKING:
    pass

#: What ε is for each update unless it is given.
PERTURBATIONS = {"positive": 0.03, "negative": 0.01}
LEARNING_RATE = 0.03
L2_WEIGHT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectSettings(EpochSettings):
    """The settings of direct loss minimisation; each field says the rest."""

    learning_rate: float | None = setting(
        None,
        label="learning rate",
        range=Range(0.0, open_low=True),
        default_text=f"{LEARNING_RATE:g} deviations of the scores",
        grid=(),  # those deviations fit
        help="How long a step is.",
    )
    l2: float | None = setting(
        None,
        label="l2",
        range=Range(0.0),
        default_text=f"{L2_WEIGHT:g}",
        help="Weight of ‖w‖² against the scores' variance.",
    )
    epochs: int = setting(30, range=Range(1), help="Passes over the rows, of ten steps at least.")
    update: str = setting(
        "positive",
        label="update",
        choices=tuple(PERTURBATIONS),
        help="positive: steps away from worse rankings, down an upper bound of the loss; negative: steps towards "
        "better ones, down a lower bound.",
    )
    perturbation: float | None = setting(
        None,
        label="perturbation",
        range=Range(1e-9, 1e9),
        default_text="0.03; of the negative update 0.01",
        grid=(0.01, 0.1, 1.0),
        help="ε, how much the loss counts when those rankings are looked for, in deviations of the scores.",
    )
    step_rows: int = setting(
        4096,
        label="rows a step",
        flags=("--batch-rows",),
        range=Range(2),
        help="Rows of a step: whole queries, or of a longer one a sample, its share of positives and of negatives, "
        "eight or more.",
    )

    @property
    def epsilon(self) -> float:
        """The perturbation, or its default."""
        return PERTURBATIONS[self.update] if self.perturbation is None else self.perturbation

    @property
    def rate(self) -> float:
        """The learning rate, or its default."""
        return LEARNING_RATE if self.learning_rate is None else self.learning_rate

    @property
    def penalty(self) -> float:
        """The weight of the scores' spread, or its default."""
        return L2_WEIGHT if self.l2 is None else self.l2
