"""A model in words: what its labels meant, why its training stopped, and what its certificate says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from apsvm.data.dataset import shown_label
from apsvm.models.averages import headers_of
from apsvm.models.header import Bounds, Epochs, Gradient, Header, LabelKind, Labels

#: More labels than this are not listed.
MOST_LABELS = 8


def number(value: float) -> str:
    return f"{value:.6g}"


def meaning(labels: Labels) -> str:
    """What labels meant to a ranker."""
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
    """Sentences on how the training of a model ended, and on what shows how good it is."""
    if header.certificate is not None:
        return [_ending(header), *_bounds(header, header.certificate)]
    if header.gradient is not None:
        return [_ending(header), *_gradient(header.gradient)]
    if header.epochs is not None:
        return [_ending(header), *_epochs(header.epochs)]
    if header.members:
        count = len(header.members)
        return [_ending(header), f"The score is the average of {count} rankers, each with a certificate of its own."]
    return [_ending(header), "There is no certificate: nothing shows how far from the best the model is."]


def members(header: Header) -> Iterator[str]:
    """Of an average, a text for each of the rankers that it is of."""
    for member, one in zip(header.members, headers_of(header), strict=True):
        bounds = one.certificate
        unit, gap = one.C or 1.0, ""
        if bounds is not None:
            gap = f", gap {bounds.gap / unit:.3g} of the loss, {bounds.tolerance / unit:.3g} asked for"
        bound = "" if bounds is None else f", bound {bounds.bound}"
        C = "" if one.C is None else f", C = {one.C:.6g}"
        yield f"{one.features.map}: {one.loss}{bound}{C}{gap}; scores divided by {member.divisor:.4g}"


def _ending(header: Header) -> str:
    after = ""
    if header.epochs is not None:
        after = f" after {_counted(header.epochs.count, 'epoch')}"
    elif header.iterations is not None:
        after = f" after {_counted(header.iterations, 'iteration')}"
    if header.gradient is not None and header.gradient.evaluations is not None:
        after += f" and {_counted(header.gradient.evaluations, 'evaluation')} of all pairs"
    best = "" if header.as_asked else ": this is the best model it had"
    match header.state:
        case "":
            return "Nothing is said of how the training ended."
        case "converged":
            return f"The training converged{after}."
        case "interrupted":
            return f"The training was interrupted{after}{best}."
        case "numerical trouble":
            return f"The training ran into numerical trouble{after}, a number beyond float64{best} until then."
    return f"The training ended{after} ({header.state}){best}."


def _counted(count: int, of: str) -> str:
    return f"{count:,} {of}" + ("" if count == 1 else "s")


def _bounded(header: Header, bounds: Bounds) -> str:
    """What of the loss stands in the objective of a stationary point."""
    if bounds.bound == "tight":
        return "tight bound on the loss"
    components = header.settings.get("components", 1)
    return "risk of the bags' best rows" if components == 1 else "risk of the best components' scores"


def _bounds(header: Header, bounds: Bounds) -> list[str]:
    C = header.C
    primal, dual, gap, target = (number(value) for value in (bounds.primal, bounds.dual, bounds.gap, bounds.tolerance))
    if C is None:
        off = f"{gap}, where {target} was requested"
    else:
        off = f"{gap}, or {bounds.gap / C:.3g} in units of the loss, where {bounds.tolerance / C:.3g} was requested"
    sentences = []
    if bounds.stationary or bounds.hinge_objective is not None:
        hinge = ""
        if bounds.hinge_objective is not None:
            hinge = f" The convex hinge, where it began, came to {number(bounds.hinge_objective)}."
        what = "The tight bound" if bounds.bound == "tight" else "The problem"
        sentences.append(
            f"It is a stationary point of ½‖w‖² + C·({_bounded(header, bounds)}), whose value is {primal}: no other "
            f"weights lower its convex majorant by more than {off}.{hinge} {what} is not convex: there may be lower "
            "points."
        )
    elif bounds.layer is not None:
        sentences.append(
            f"The last convex problem, a majorant of ½‖w‖² + C·risk in the weights of layer {bounds.layer} with the "
            f"others held, was solved to {primal}, off its optimum by at most {off}. For all layers together the "
            "problem is not convex, and the passes ended by the rows held out: there may be lower points."
        )
    else:
        sentences.append(
            f"The objective ½‖w‖² + C·risk is {primal} for this model, and no less than {dual} for any "
            f"weights whatever, which a feasible point of the dual problem proves. So the model is off the optimum by "
            f"at most {off}."
        )
    if not bounds.exact:
        sentences.append(
            "The certificate is that of the problem of the difficult rows (--oracle appx); for the loss over all rows "
            "it is an approximation."
        )
    return sentences


def _gradient(gradient: Gradient) -> list[str]:
    target = ""
    if gradient.target is not None:
        sign = "at most" if gradient.gradient_norm <= gradient.target else "still above"
        target = f", {sign} the {number(gradient.target)} asked for"
    return [
        f"The objective, which is smooth and convex, is {number(gradient.value)}; the largest entry of its gradient is "
        f"{number(gradient.gradient_norm)}{target}. At the minimum it is zero."
    ]


def _epochs(epochs: Epochs) -> list[str]:
    sentences = []
    chosen_by = epochs.validation
    if chosen_by is not None:
        sentences.append(
            f"Kept is epoch {epochs.best}, whose {chosen_by.metric} on {chosen_by.file} is {chosen_by.value:.6f}."
        )
    sentences.append(
        "There is no certificate: the steps are stochastic, and the estimated loss is what the draws happened to show "
        "while the weights moved."
    )
    return sentences


def in_seconds(value: float) -> str:
    """With the unit that suits it."""
    if value < 0.0995:
        return f"{1e3 * value:.3g} ms"
    if value < 119.5:
        return f"{value:.3g} s"
    return f"{value / 60:.1f} min"


def share(value: float) -> str:
    """As a percentage, small ones not rounded to nothing."""
    return f"{value:.1%}" if value >= 0.00995 or value == 0 else f"{100.0 * value:.2g}%"


def few(values: Iterable[str]) -> str:
    """The first ones, and how many there are if that is not all."""
    listed = list(values)
    return ", ".join(listed[:4]) + (f", … ({len(listed)})" if len(listed) > 4 else "")
