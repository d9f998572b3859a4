"""``threshold``, ``calibrate`` and ``class_weight`` of the classifiers: where ``predict`` draws the line.

The line is the threshold of the model, the same as that of the command line. scikit-learn takes ``predict`` for
``decision_function(X) > 0``, so that ``decision_function`` is the score minus the threshold. With probabilities and no
rule ``predict`` is the likelier class, as everywhere there.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.thresholds import ThresholdRule
from apsvm.models.header import Calibration, Header, Threshold
from apsvm.selection.calibration import METHODS
from apsvm.selection.decision import DecisionRule, HeldOutError, decide
from apsvm.trainers.base import Outcome
from apsvm.trainers.fitting import Fit

#: Distance of the line from the held-out scores if all probabilities are on one side of one half, in ranges of these
#: scores: far enough for outliers, and near enough for scores to keep their digits.
_BEYOND = 1e3


def decision_rule(threshold: object, calibrate: object, *, fit_intercept: bool) -> DecisionRule:
    """Decision rule from the two parameters, checked. Raises ValueError, TypeError."""
    if not isinstance(threshold, str | None):
        raise TypeError(f"threshold is a rule such as 'f1' or 'fpr=0.01', or None, found {threshold!r}")
    if calibrate is not None and calibrate not in METHODS:
        raise ValueError(f"calibrate is one of {', '.join(METHODS)}, or None, found {calibrate!r}")
    if (threshold is not None or calibrate is not None) and not fit_intercept:
        raise ValueError("threshold and calibrate choose the constant: fit_intercept=False leaves none")
    return DecisionRule(None if threshold is None else ThresholdRule.parse(threshold), calibrate)


def decided(fit: Fit, outcome: Outcome, header: Header, rule: DecisionRule) -> Header:
    """The header with what the rule asks for. Raises ValueError."""
    try:
        decision = decide(fit, outcome, rule)
    except HeldOutError as error:
        raise ValueError(f"{'calibrate' if rule.threshold is None else 'threshold'}: {error}") from None
    assert decision is not None  # it is never stopped
    if rule.threshold is None and decision.calibration is not None:
        line, held_out = last_of_half(decision.calibration), decision.threshold.held_out
        decision = replace(decision, threshold=Threshold(value=line, rule="probability", held_out=held_out))
    return decision.header(header)


def last_of_half(calibration: Calibration) -> float:
    """The score above which rows are more likely positive than not; far beyond those held out where none or all are."""
    scores, values = calibration.scores, calibration.probabilities
    if calibration.method == "platt":
        values = calibration.lower, 0.5, calibration.upper
        scores = tuple(_score_of(value, calibration) for value in values)
    far = _BEYOND * (abs(scores[-1] - scores[0]) or 1.0)
    if values[-1] <= 0.5:
        return max(scores) + far
    if values[0] > 0.5:
        return min(scores) - far
    return float(np.interp(0.5, values, scores))


def _score_of(probability: float, calibration: Calibration) -> float:
    """The score at which Platt's sigmoid has this value; 0 where all scores have the same."""
    assert calibration.slope is not None
    assert calibration.offset is not None
    logit = math.log(probability / (1.0 - probability))
    return (logit - calibration.offset) / calibration.slope if calibration.slope else 0.0


def least_errors_line(scores: NDArray[np.float64], relevant: NDArray[np.bool_], weights: tuple[float, float]) -> float:
    """The line for which those of the ``scores`` (n,) that are on its wrong side weigh least; ``weights``: of a row
    that is not ``relevant`` (n,), and of one that is. Halfway between two scores, of equal ones the highest line.

    >>> least_errors_line(np.array([1.0, 5.0, 3.0]), np.array([True, True, False]), (1.0, 3.0))
    -1.0
    """
    negative, positive = weights
    order = np.argsort(-scores, kind="stable")
    ordered, width = scores[order], max(1.0, float(np.ptp(scores)))
    gained = np.concatenate(([0.0], np.cumsum(np.where(relevant[order], positive, -negative))))
    sides = np.concatenate(([ordered[0] + width], ordered, [ordered[-1] - width]))
    gained[1:-1][ordered[:-1] == ordered[1:]] = -np.inf
    at = int(np.argmax(gained))
    return float(sides[at] + (sides[at + 1] - sides[at]) / 2.0)
