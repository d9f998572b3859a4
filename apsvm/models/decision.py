"""Decisions from a model's scores: a threshold, and probabilities.

Both are chosen on rows held out (``apsvm.selection.thresholds``), and in the scale of the model's own scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: How scores become probabilities (``Calibration.method``).
CALIBRATIONS = ("isotonic", "platt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Rows of a score above ``value`` are called positive.

    Attributes
    ----------
    value : in the scale of the model's scores, its constant included
    rule : "f1", "fpr=0.01" … (``apsvm.metrics.thresholds``); "loss" where the loss itself is about scores above 0;
        "class weights" where the rows called wrongly weigh least; "probability" where one half is
    held_out : the rows it was chosen on, in words ("5 folds of rows"); None: the training rows
    precision, recall, false_positive_rate : on the rows that it was chosen on, where that is known
    called : the share of those rows that is called positive
    """

    value: float
    rule: str
    held_out: str | None = None
    precision: float | None = None
    recall: float | None = None
    false_positive_rate: float | None = None
    called: float | None = None


def line_of(threshold: Threshold | None) -> float:
    """The score above which rows are called positive: 0 of a model without a threshold."""
    return 0.0 if threshold is None else threshold.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The probability that a row of a score is positive, non-decreasing in the score.

    Attributes
    ----------
    method : one of ``CALIBRATIONS``
    slope, offset : Platt's method, p = 1 / (1 + exp(−(slope·score + offset)))
    lower, upper : of Platt's, what p is clipped to: beyond the scores held out nothing was seen that speaks for more
    scores, probabilities : isotonic regression, corners between which p is a straight line; constant beyond them
    held_out : the rows it was fitted to, in words
    rows, positives : the numbers of these rows
    """

    method: str
    slope: float | None = None
    offset: float | None = None
    lower: float = 0.0
    upper: float = 1.0
    scores: tuple[float, ...] = ()
    probabilities: tuple[float, ...] = ()
    held_out: str = ""
    rows: int = 0
    positives: int = 0

    def probability(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) float64 in [0, 1], of scores (n,) float64."""
        import numpy as np

        if self.method == "isotonic":
            return np.interp(scores, self.scores, self.probabilities)
        from scipy.special import expit

        assert self.slope is not None
        assert self.offset is not None
        result: NDArray[np.float64] = np.clip(expit(self.slope * scores + self.offset), self.lower, self.upper)
        return result

    def fault(self) -> str | None:
        """Error in a calibration that gives no probabilities, as "expected, found"; None if it is valid."""
        scores, values = self.scores, self.probabilities
        if self.method not in CALIBRATIONS:
            return f"one of {', '.join(CALIBRATIONS)} in 'calibration.method', found {self.method!r}"
        if self.method == "platt" and (self.slope is None or self.offset is None):
            return "'calibration.slope' and 'calibration.offset', which Platt's method has"
        if self.method == "isotonic" and not (0 < len(scores) == len(values)):
            return "as many 'calibration.scores' as 'calibration.probabilities', and one at least"
        if not _ascends((0.0, self.lower, self.upper, 1.0)):
            return "'calibration.lower' and 'calibration.upper' that do not fall, in [0, 1]"
        if not (_ascends(scores) and _ascends((0.0, *values, 1.0))):
            return "'calibration.scores' and 'calibration.probabilities' that do not fall, in [0, 1]"
        return None


def _ascends(values: tuple[float, ...]) -> bool:
    return all(before <= after for before, after in pairwise(values))
