"""A model in words: labels, the end of its training, certificate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from apsvm.data.dataset import shown_label
from apsvm.models.averages import headers_of
from apsvm.models.header import Header, LabelKind, Labels
from apsvm.trainers.summary import evidence, state

#: More labels than this are not listed.
MOST_LABELS = 8


def number(value: float) -> str:
    return f"{value:.6g}"


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


def certificate(header: Header) -> list[str]:
    """The end of a model's training, and the evidence of its quality."""
    found = list(evidence(header))
    if header.members:
        found = [f"the average of {len(header.members)} rankers, each with a certificate of its own"]
    if header.certificate is not None:
        primal, dual = number(header.certificate.primal), number(header.certificate.dual)
        found.insert(0, f"objective {primal}, lower bound {dual}")
    return [state(header), *(found or ["no certificate: nothing shows how far from the best the model is"])]


def members(header: Header) -> Iterator[str]:
    """A text for each ranker in an average."""
    for member, one in zip(header.members, headers_of(header), strict=True):
        bounds = one.certificate
        unit, gap = one.C or 1.0, ""
        if bounds is not None:
            gap = f", gap {bounds.gap / unit:.3g} of the loss, {bounds.tolerance / unit:.3g} asked for"
        bound = "" if bounds is None else f", bound {bounds.bound}"
        C = "" if one.C is None else f", C = {one.C:.6g}"
        yield f"{one.features.map}: {one.loss}{bound}{C}{gap}; scores divided by {member.divisor:.4g}"


def in_seconds(value: float) -> str:
    """``value`` with a suitable unit."""
    if value < 0.0995:
        return f"{1e3 * value:.3g} ms"
    if value < 119.5:
        return f"{value:.3g} s"
    return f"{value / 60:.1f} min"


def share(value: float) -> str:
    """``value`` as a percentage; small values are not rounded to zero."""
    return f"{value:.1%}" if value >= 0.00995 or value == 0 else f"{100.0 * value:.2g}%"


def few(values: Iterable[str]) -> str:
    """The first four values, and their number if there are more."""
    listed = list(values)
    return ", ".join(listed[:4]) + (f", … ({len(listed)})" if len(listed) > 4 else "")
