"""``threshold`` and ``calibrate`` of the classifiers: where ``predict`` draws the line, and ``predict_proba``.

scikit-learn takes ``predict`` for ``decision_function(X) > 0``, so that a threshold becomes the constant: the scores
move until it is 0. With probabilities and no threshold ``predict`` is the likelier class, as everywhere there.
"""

from __future__ import annotations

import math
from dataclasses import replace

from apsvm.metrics.thresholds import ThresholdRule
from apsvm.models.base import Ranker
from apsvm.models.header import Calibration, Threshold
from apsvm.selection.calibration import METHODS
from apsvm.selection.decision import Decision, DecisionRule, HeldOutError, check_decision, decide
from apsvm.trainers.base import Outcome
from apsvm.trainers.fitting import Fit


def decision_rule(threshold: object, calibrate: object, *, fit_intercept: bool) -> DecisionRule:
    """What two parameters ask for, checked. Raises ValueError, TypeError."""
    if not isinstance(threshold, str | None):
        raise TypeError(f"threshold is a rule such as 'f1' or 'fpr=0.01', or None, found {threshold!r}")
    if calibrate is not None and calibrate not in METHODS:
        raise ValueError(f"calibrate is one of {', '.join(METHODS)}, or None, found {calibrate!r}")
    if (threshold is not None or calibrate is not None) and not fit_intercept:
        raise ValueError("threshold and calibrate choose the constant: fit_intercept=False leaves none")
    return DecisionRule(None if threshold is None else ThresholdRule.parse(threshold), calibrate)


def check(fit: Fit, rule: DecisionRule) -> None:
    """Raises ValueError for rows of which none can be held out."""
    if not rule.asks:
        return
    try:
        check_decision(fit)
    except HeldOutError as error:
        raise ValueError(f"{_option_of(rule)}: {error}") from None


def decided(fit: Fit, outcome: Outcome, model: Ranker, rule: DecisionRule) -> Ranker:
    """The model with what the rule asks for, its threshold at 0; itself where it ranks nothing. Raises ValueError."""
    if not rule.asks or not outcome.ranks:
        return model
    try:
        decision = decide(fit, outcome, rule)
    except HeldOutError as error:
        raise ValueError(f"{_option_of(rule)}: {error}") from None
    assert decision is not None  # it is never stopped
    (trained,) = fit.prepared().model(outcome).rankers()
    line = _line(decision, rule)
    moved = trained.at_level(trained.level - line)
    calibration = None if decision.calibration is None else decision.calibration.moved(-line)
    header = replace(decision, threshold=_threshold(decision, rule), calibration=calibration).header(model.header)
    return moved.with_header(header)


def _option_of(rule: DecisionRule) -> str:
    return "calibrate" if rule.threshold is None else "threshold"


def _line(decision: Decision, rule: DecisionRule) -> float:
    if rule.threshold is not None or decision.calibration is None:
        return decision.threshold.value
    return last_of_half(decision.calibration)


def _threshold(decision: Decision, rule: DecisionRule) -> Threshold:
    if rule.threshold is not None:
        return replace(decision.threshold, value=0.0)
    return Threshold(value=0.0, rule="probability", held_out=decision.threshold.held_out)


#: How far beyond the scores held out the line is where all probabilities are on one side of one half, in ranges of
#: these scores: far enough for outliers, and near enough for scores to keep their digits.
_BEYOND = 1e3


def last_of_half(calibration: Calibration) -> float:
    """The score above which rows are more likely positive than not; far beyond those held out where none or all are."""
    scores, values = calibration.scores, calibration.probabilities
    if calibration.method == "platt":
        values = calibration.lower, calibration.upper
        scores = tuple(_score_of(value, calibration) for value in values)
    far = _BEYOND * (abs(scores[-1] - scores[0]) or 1.0)
    if values[-1] <= 0.5:
        return max(scores) + far
    if values[0] > 0.5:
        return min(scores) - far
    if calibration.method == "platt":
        return _score_of(0.5, calibration)
    above = next(at for at, value in enumerate(values) if value > 0.5)
    share = (0.5 - values[above - 1]) / (values[above] - values[above - 1])
    return scores[above - 1] + share * (scores[above] - scores[above - 1])


def _score_of(probability: float, calibration: Calibration) -> float:
    """The score at which Platt's sigmoid has this value; 0 where all scores have the same."""
    assert calibration.slope is not None
    assert calibration.offset is not None
    logit = math.log(probability / (1.0 - probability))
    return (logit - calibration.offset) / calibration.slope if calibration.slope else 0.0
