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
        help="Length of a step.",
    )
    l2: float | None = setting(
        None,
        label="l2",
        range=Range(0.0),
        default_text="0",
        help="Weight of ½‖w‖²; the loss has weight 1.",
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
        help="Metric on the validation rows, named as in apsvm eval.",
    )
    tau: str = setting(
        "harmonic",
        label="τ",
        metavar="auc|p@1|p@K|harmonic",
        grid=("p@1", "p@10", "harmonic"),
        help="Cost of rank r: r (auc), at most 1 (p@1), at most K (p@K), or 1 + 1/2 + … + 1/r (harmonic).",
    )
    rank_estimator: str = setting(
        "plugin",
        label="rank estimator",
        choices=ESTIMATORS,
        help="Estimate of a rank: plugin (too high on average) and log-unbiased (only tau harmonic) use the number of "
        "trials until a violation; exact scores all negatives.",
    )
    max_trials: int | None = setting(
        None,
        range=Range(1),
        option=False,
        default_text="its negatives, at most 1000",
        help="Most trials for a positive in a pass.",
    )
    rule: str = setting(
        "adagrad", label="step rule", option=False, choices=tuple(LEARNING_RATES), help="Rule for the length of a step."
    )
    preference: bool = setting(
        False,
        help="Labels are grades: a row is a positive against all rows of its query with lower grades. For metrics, "
        "rows from --relevant-from up are relevant, by default all above the lowest grade.",
    )
    rows_as_users: bool = setting(
        False,
        help="Rows are users, columns with positive values the items they like; labels are ignored. Learns factors of "
        "the items; apsvm predict then lists the best items for each row.",
    )
    factors: int = setting(64, range=Range(1, 4096), help="For --rows-as-users: numbers per item.")

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
