"""The threshold of a classifier's ``predict``, from ``threshold``, ``calibrate`` and ``class_weight``.

It is the threshold of the model, as on the command line. scikit-learn expects ``predict`` to be
``decision_function(X) > 0``: so ``decision_function`` is the score minus the threshold. With ``calibrate`` and without
``threshold``, ``predict`` returns the likelier class.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from apsvm.models.header import Calibration, Header, Threshold
from apsvm.selection.decision import DecisionRule, HeldOutError, decide
from apsvm.trainers.base import Outcome
from apsvm.trainers.fitting import Fit

#: If all probabilities are on one side of one half, the threshold is this many score ranges beyond the held-out scores:
#: far enough for outliers, near enough for scores to keep their digits.
_BEYOND = 1e3


def with_decision(fit: Fit, outcome: Outcome, header: Header, rule: DecisionRule) -> Header:
    """The header with the threshold and the calibration that the rule requests. Raises ValueError."""
    try:
        decision = decide(fit, outcome, rule)
    except HeldOutError as error:
        raise ValueError(f"{'calibrate' if rule.threshold is None else 'threshold'}: {error}") from None
    assert decision is not None  # it is never stopped
    if rule.threshold is None and decision.calibration is not None:
        line, held_out = score_of_even_odds(decision.calibration), decision.threshold.held_out
        decision = replace(decision, threshold=Threshold(value=line, rule="probability", held_out=held_out))
    return decision.header(header)


def score_of_even_odds(calibration: Calibration) -> float:
    """Score above which a row is more likely positive than not; far outside the held-out scores if none is, or all
    are."""
    scores, values = np.array(calibration.scores), np.array(calibration.probabilities)
    if calibration.method == "platt":
        assert calibration.slope is not None
        values = np.array([calibration.lower, 0.5, calibration.upper])
        scores = (logit(values) - calibration.offset) / calibration.slope if calibration.slope else np.zeros(3)
    far = _BEYOND * (float(np.ptp(scores)) or 1.0)
    if values[-1] <= 0.5:
        return float(scores.max()) + far
    if values[0] > 0.5:
        return float(scores.min()) - far
    return float(np.interp(0.5, values, scores))


def cheapest_threshold(scores: NDArray[np.float64], relevant: NDArray[np.bool_], weights: tuple[float, float]) -> float:
    """Threshold with the least total weight of rows on its wrong side; the highest of equally good ones, halfway
    between two of the ``scores`` (n,). ``weights``: those of a row that is not ``relevant`` (n,), and of one that is.

    >>> cheapest_threshold(np.array([1.0, 5.0, 3.0]), np.array([True, True, False]), (1.0, 3.0))
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
