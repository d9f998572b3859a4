"""Decisions from a model's scores: a threshold, and probabilities.

Both are chosen on held-out rows (``apsvm.selection.decision``) and refer to the model's own scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from apsvm._support.errors import require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Methods that turn scores into probabilities (``Calibration.method``).
CALIBRATIONS = ("isotonic", "platt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Rows with a score above ``value`` are called positive."""

    value: float  #: a score, including the model's constant
    #: "f1", "fpr=0.01" … (``apsvm.metrics.thresholds``); "loss": the loss reads the sign of scores; "class weights":
    #: the rows on the wrong side have the least weight; "probability": rows above have a probability above one half.
    rule: str
    held_out: str | None = None  #: the rows on which it was chosen ("5 folds of rows"); None: the training rows
    #: Figures on these rows, if known.
    precision: float | None = None
    recall: float | None = None
    false_positive_rate: float | None = None
    called: float | None = None  #: share of the rows that is called positive


def line_of(threshold: Threshold | None) -> float:
    """Score above which rows are called positive; 0 without a threshold."""
    return 0.0 if threshold is None else threshold.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Probability that a row with a given score is positive, non-decreasing in the score."""

    method: Annotated[str, CALIBRATIONS]
    #: Platt's method: p = 1 / (1 + exp(−(slope·score + offset))), within limits beyond which held-out scores give no
    #: evidence.
    slope: float | None = None
    offset: float | None = None
    lower: float = 0.0
    upper: float = 1.0
    #: Isotonic regression: the corners of a piecewise linear p, constant outside them.
    scores: tuple[float, ...] = ()
    probabilities: tuple[float, ...] = ()
    held_out: str = ""  #: the rows to which it was fitted, in words
    rows: int = 0  #: their number
    positives: int = 0  #: number of positives among them

    def __post_init__(self) -> None:
        require(_ascend(0.0, self.lower, self.upper, 1.0), "0 ≤ 'calibration.lower' ≤ 'calibration.upper' ≤ 1")
        if self.method == "platt":
            require(None not in (self.slope, self.offset), "a 'calibration.slope' and a 'calibration.offset'")
        else:
            is_paired = 0 < len(self.scores) == len(self.probabilities) and _ascend(*self.scores)
            require(is_paired, "non-decreasing 'calibration.scores', at least one, and a probability for each")
            require(_ascend(0.0, *self.probabilities, 1.0), "non-decreasing 'calibration.probabilities' in [0, 1]")

    def probability(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities (n,) float64 in [0, 1] for scores (n,) float64."""
        import numpy as np

        if self.method == "isotonic":
            return np.interp(scores, self.scores, self.probabilities)
        from scipy.special import expit

        assert self.slope is not None
        assert self.offset is not None
        result: NDArray[np.float64] = np.clip(expit(self.slope * scores + self.offset), self.lower, self.upper)
        return result


def _ascend(*values: float) -> bool:
    return all(before <= after for before, after in pairwise(values))
