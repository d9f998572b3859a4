"""A model's threshold and probabilities in words. ``apsvm train`` prints them too: no heavy imports here."""

from __future__ import annotations

from apsvm.models.header import Calibration, Data, Threshold

_RULES = {
    "loss": "where the training loss puts the line",
    "probability": "above which a row is more likely positive than not",
    "break-even": "by which as many training rows are called positive as are positive",
    "class weights": "by which the weight of wrongly called training rows is the least",
}


def threshold_in_words(threshold: Threshold) -> str:
    """``a score above 0.35 (f1, on 5 folds of rows held out: precision 91 %, …)``"""
    text = f"a score above {threshold.value:.6g}"
    if threshold.rule in _RULES:
        return f"{text}, {_RULES[threshold.rule]}"
    figures = [
        f"{name} {_percent(value)}"
        for name, value in (
            ("precision", threshold.precision),
            ("recall", threshold.recall),
            ("false positives", threshold.false_positive_rate),
            ("called positive", threshold.called),
        )
        if value is not None
    ]
    flatters = ", which flatters" if threshold.held_out is None else ""
    return f"{text} ({rule_in_words(threshold)}{flatters}): {', '.join(figures)}"


def threshold_in_counts(threshold: Threshold, data: Data) -> str:
    """The threshold's effect on the rows it was chosen on, in counts; in shares if these are not all of ``data``."""
    flatters = threshold.held_out is None
    shares = (threshold.precision, threshold.recall, threshold.called)
    if threshold.rule in _RULES or None in shares or not data.positives or not data.rows:
        return threshold_in_words(threshold)
    if not flatters and not str(threshold.held_out).endswith(" folds of rows"):
        return threshold_in_words(threshold)
    precision, recall, called = (share or 0.0 for share in shares)
    n_called, right = round(called * data.rows), round(recall * data.positives)
    where = "training rows (which flatters)" if flatters else "held-out rows"
    missed = "1 positive is" if data.positives - right == 1 else f"{data.positives - right:,} positives are"
    return (
        f"a score above {threshold.value:.6g} ({threshold.rule}): of the {data.rows:,} {where} {n_called:,} are called "
        f"positive, {right:,} rightly ({_percent(precision)}); {missed} missed"
    )


def rule_in_words(threshold: Threshold) -> str:
    """``f1 on rows held out, 5 folds of rows``; only the rule if it uses no rows."""
    if threshold.rule in _RULES:
        return threshold.rule
    held_out = threshold.held_out
    return f"{threshold.rule} on {'the training rows' if held_out is None else f'rows held out, {held_out}'}"


def probabilities_in_words(calibration: Calibration) -> str:
    """``isotonic regression of 31 corners, on …``"""
    if calibration.method == "isotonic":
        low, high = calibration.probabilities[0], calibration.probabilities[-1]
        how = f"isotonic regression of {len(calibration.scores):,} corners, from {_percent(low)} to {_percent(high)}"
    else:
        low, high = calibration.lower, calibration.upper
        sigmoid = f"1 / (1 + exp(−({calibration.slope:.6g}·score + {calibration.offset:.6g})))"
        how = f"Platt's sigmoid, {sigmoid}, from {_percent(low)} to {_percent(high)}"
    return f"{how}, fitted to {calibration.rows:,} rows held out ({calibration.held_out})"


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %"
