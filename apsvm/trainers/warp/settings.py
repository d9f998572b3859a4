"""Settings of WARP."""

from __future__ import annotations

from dataclasses import dataclass

from apsvm._support.registry import UnknownNameError
from apsvm.trainers.settings import Range, Settings, setting

#: Default learning rate by rule. adadelta adapts its own rate; there it is a factor.
LEARNING_RATES = {"adagrad": 0.05, "adadelta": 1.0, "sgd": 0.05}
ESTIMATORS = ("plugin", "log-unbiased", "exact")


def cutoff_of(tau: str) -> float:
    """Rank up to which τ is constant: infinite for ``auc``, K for ``p@K``, 0 for ``harmonic``.

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
class WarpSettings(Settings):
    """Settings of WARP; see the help of each field.

    threads : several share the parameters without locks (Hogwild), and no two runs give the same model; 0: one
    """

    learning_rate: float | None = setting(
        None,
        label="learning rate",
        range=Range(0.0, open_low=True),
        default_text="0.05, with adadelta a factor of 1",
        grid=(0.005, 0.05, 0.5),
        help="How long a step is.",
    )
    l2: float | None = setting(
        None,
        label="l2",
        range=Range(0.0),
        default_text="0",
        help="Weight of ½‖w‖² against the loss.",
    )
    epochs: int = setting(
        30,
        range=Range(1),
        help="Passes over the positives.",
    )
    patience: int = setting(
        5, range=Range(1), needs="validation", help="Stop after this many epochs without a better validation."
    )
    validation_metric: str | None = setting(
        None,
        metric=True,
        needs="validation",
        metavar="NAME",
        default_text="AP; of users P@10",
        help="What is taken of the validation rows, as apsvm eval names it.",
    )
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
        option=False,
        default_text="its negatives, at most 1000",
        help="Trials for a positive before it is left in peace.",
    )
    rule: str = setting(
        "adagrad", label="step rule", option=False, choices=tuple(LEARNING_RATES), help="How long a step is."
    )
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
    factors: int = setting(64, range=Range(1, 4096), help="For --rows-as-users: numbers an item.")

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
