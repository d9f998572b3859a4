"""A model in words: labels, threshold, probabilities, settings, the end of its training, certificate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from apsvm.data.dataset import shown_label
from apsvm.models.averages import headers_of
from apsvm.models.header import Calibration, Data, Header, Json, LabelKind, Labels, Threshold
from apsvm.trainers import TRAINERS
from apsvm.trainers.settings import declared
from apsvm.trainers.summary import evidence, state

#: More labels than this are not listed.
MOST_LABELS = 8
#: Thresholds chosen without figures on rows.
RULES = {
    "loss": "where the training loss puts the line",
    "probability": "above which a row is more likely positive than not",
    "break-even": "by which as many training rows are called positive as are positive",
    "class weights": "by which the weight of wrongly called training rows is the least",
}


def percent(share: float) -> str:
    return f"{100.0 * share:.3g} %"


def meaning(labels: Labels) -> str:
    """Meaning of the labels for a ranker."""
    match labels.kind:
        case LabelKind.BINARY:
            if labels.names is not None:
                return " against ".join(reversed(labels.names))
            others = _listed(labels.negative) if labels.negative else "the others"
            return f"{shown_label(1.0 if labels.positive is None else labels.positive)} is positive, {others} negative"
        case LabelKind.ONE_LABEL if labels.names is not None:
            return f"{labels.names[1]} is positive, all others are negative"
        case LabelKind.ONE_LABEL:
            others = f" ({_listed(labels.negative)})" if labels.negative else ""
            positive = "one label" if labels.positive is None else shown_label(labels.positive)
            return f"{positive} is positive, all others{others} are negative"
        case LabelKind.THRESHOLD:
            return f"{_threshold(labels)} are positive, the others negative"
        case LabelKind.GRADES:
            return "grades: the higher, the more a row is worth; those above 0 are relevant"
        case LabelKind.ORDER:
            cut = "" if labels.cuts is None else f"cut into {len(labels.cuts) + 1} classes, of which "
            return f"{cut}only the order counts; {_threshold(labels)} are relevant"
        case LabelKind.CLASSES:
            return "each label in turn against all others" + ("; a row may have several" if labels.several else "")
        case LabelKind.NONE:
            return "not looked at"


def _threshold(labels: Labels) -> str:
    if labels.relevant_from is not None:
        return f"{shown_label(labels.relevant_from)} and above"
    return "those above the lowest" if labels.relevant_above is None else f"those above {labels.relevant_above:g}"


def _listed(labels: Sequence[float]) -> str:
    names = [shown_label(label) for label in labels[:MOST_LABELS]]
    return ", ".join(names) + (", …" if len(labels) > MOST_LABELS else "")


def threshold_in_words(threshold: Threshold, data: Data | None = None) -> str:
    """``a score above 0.35 (f1 on rows held out, 5 folds of rows): precision 91 %, …``; counts instead of shares if the
    threshold was chosen on all rows of ``data``."""
    text = f"a score above {threshold.value:.6g}"
    if threshold.rule in RULES:
        return f"{text}, {RULES[threshold.rule]}"
    precision, recall, called = threshold.precision, threshold.recall, threshold.called
    on_all = threshold.held_out is None or re.fullmatch(r"\d+ folds of rows", threshold.held_out) is not None
    if data is None or not (data.rows and data.positives and on_all) or None in (precision, recall, called):
        shares = {"precision": precision, "recall": recall, "false positives": threshold.false_positive_rate}
        shares["called positive"] = called
        figures = [f"{name} {percent(value)}" for name, value in shares.items() if value is not None]
        flatters = ", which flatters" if threshold.held_out is None else ""
        return f"{text} ({rule_in_words(threshold)}{flatters}): {', '.join(figures)}"
    n_called, right = round((called or 0.0) * data.rows), round((recall or 0.0) * data.positives)
    where = "training rows (which flatters)" if threshold.held_out is None else "held-out rows"
    missed = "1 positive is" if data.positives - right == 1 else f"{data.positives - right:,} positives are"
    return (
        f"{text} ({_rule(threshold)}): of the {data.rows:,} {where} {n_called:,} are called positive, {right:,} "
        f"rightly ({percent(precision or 0.0)}); {missed} missed"
    )


def rule_in_words(threshold: Threshold) -> str:
    """``f1 on rows held out, 5 folds of rows``; only the rule if it uses no rows."""
    if threshold.rule in RULES:
        return threshold.rule
    rows = "the training rows" if threshold.held_out is None else f"rows held out, {threshold.held_out}"
    return f"{_rule(threshold)} on {rows}"


def _rule(threshold: Threshold) -> str:
    """The rule, with ``, not reached`` if the threshold falls short of its precision."""
    from apsvm.metrics.thresholds import ThresholdRule

    with suppress(ValueError):  # a header may have a rule of another program
        rule = ThresholdRule.parse(threshold.rule)
        if rule.name == "precision" and threshold.precision is not None and threshold.precision < rule.amount:
            return f"{threshold.rule}, not reached"
    return threshold.rule


def probabilities_in_words(calibration: Calibration) -> str:
    """``isotonic regression of 31 corners, on …``"""
    if calibration.method == "isotonic":
        low, high = calibration.probabilities[0], calibration.probabilities[-1]
        how = f"isotonic regression of {len(calibration.scores):,} corners"
    else:
        low, high = calibration.lower, calibration.upper
        how = f"Platt's sigmoid, 1 / (1 + exp(−({calibration.slope:.6g}·score + {calibration.offset:.6g})))"
    rows = f"{calibration.rows:,} rows held out ({calibration.held_out})"
    return f"{how}, from {percent(low)} to {percent(high)}, fitted to {rows}"


def settings_of(header: Header) -> Iterator[tuple[str, Json]]:
    """C, the settings that are not the trainer's defaults, and what the training itself settled, under the names that
    the trainer declares. Settings of a family unknown to this version keep their names from the file."""
    settings_type = TRAINERS[header.family].Settings if header.family in TRAINERS else None
    declarations = {} if settings_type is None else declared(settings_type)
    defaults = {} if settings_type is None else settings_type().to_json()
    values = {**header.settings, **{name: value for name, value in header.details.items() if _is_plain(value)}}
    if header.C is not None:
        yield "C", header.C
        multiple = values.pop("C", None)
        if isinstance(multiple, str) and multiple != "auto":
            yield "C, times the default", multiple.removesuffix("x")
    for name in sorted(values, key=[*declarations, *values].index):
        value = values[name]
        if value is not None and _is_plain(value) and (name not in defaults or value != defaults[name]):
            label = declarations[name][1].label if name in declarations else ""
            yield label or name.replace("_", " "), value


def as_text(value: Json) -> str:
    """The value as text; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return ",".join(map(as_text, value)) if isinstance(value, list) else str(value)


def _is_plain(value: object) -> bool:
    """True if the value fits in a line: a number, a text, or a list of them."""
    if isinstance(value, list):
        return all(_is_plain(item) and not isinstance(item, list) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


def certificate(header: Header) -> list[str]:
    """The end of a model's training, and the evidence of its quality."""
    lines = list(evidence(header))
    if header.members:
        lines = [f"the average of {len(header.members)} rankers, each with its own certificate"]
    if header.certificate is not None:
        lines.insert(0, f"objective {header.certificate.primal:.6g}, lower bound {header.certificate.dual:.6g}")
    return [state(header), *(lines or ["no certificate: nothing shows how far from the best the model is"])]


def members(header: Header) -> Iterator[str]:
    """A text for each ranker in an average."""
    for member, of_member in zip(header.members, headers_of(header), strict=True):
        bounds = of_member.certificate
        unit, gap = of_member.C or 1.0, ""
        if bounds is not None:
            gap = f", gap {bounds.gap / unit:.3g} of the loss, {bounds.tolerance / unit:.3g} requested"
        bound = "" if bounds is None else f", bound {bounds.bound}"
        C = "" if of_member.C is None else f", C = {of_member.C:.6g}"
        yield f"{of_member.features.map}: {of_member.loss}{bound}{C}{gap}; scores divided by {member.divisor:.4g}"
