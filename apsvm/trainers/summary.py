"""The outcome of a training, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apsvm.models.header import Bounds, Epochs, Gradient
    from apsvm.trainers.base import Outcome


def summary(outcome: Outcome) -> list[str]:
    """Why it stopped, its evidence, and what else there is to say."""
    if outcome.classes:
        return list(outcome.notes)
    lines = [ending(outcome), *outcome.notes]
    if outcome.certificate is not None:
        lines.append(_bounds(outcome.certificate, outcome.C or 1.0))
    if outcome.gradient is not None:
        lines += _gradient(outcome.gradient)
    if outcome.queries_skipped:
        skipped = outcome.queries_skipped
        what, were = ("query", "was") if skipped == 1 else ("queries", "were")
        lines.append(f"{skipped} {what} without anything to rank {were} left out, {outcome.queries} trained on")
    return lines


def ending(outcome: Outcome) -> str:
    """Why it stopped, of a set of rankers how many of them did so."""
    if outcome.classes:
        return "; ".join(outcome.notes)
    trouble = "" if outcome.trouble is None else f": {outcome.trouble}"
    return f"{_state(outcome)}{trouble}"


def _state(outcome: Outcome) -> str:
    if outcome.epochs is not None:
        return f"{outcome.state} after {outcome.epochs.count} epochs{_kept(outcome.epochs)}"
    after = "" if outcome.iterations is None else f" after {outcome.iterations} iterations"
    evaluations = "" if outcome.gradient is None else f", {outcome.gradient.evaluations} evaluations"
    return f"{outcome.state}{after}{evaluations}"


def _kept(epochs: Epochs) -> str:
    chosen_by = epochs.validation
    if chosen_by is None:
        return ""
    return f"; kept epoch {epochs.best}, {chosen_by.metric} {chosen_by.value:.6f} on {chosen_by.file}"


def _bounds(bounds: Bounds, C: float) -> str:
    """How far from the best, in units of the loss, whatever C is."""
    kind = "exact" if bounds.exact else "approximate: a bound for the difficult rows' problem, not for the whole loss"
    what = "off the optimum by at most"
    if bounds.layer is not None:
        what = f"off the last convex majorant's minimum, in the weights of layer {bounds.layer}, by at most"
    elif bounds.stationary or bounds.hinge_objective is not None:
        what = "a stationary point, from which the convex majorant can gain at most"
    sign = "≤" if bounds.reached else ">"
    return f"certificate: {what} {bounds.gap / C:.3g} of the loss {sign} {bounds.tolerance / C:.3g} asked for ({kind})"


def _gradient(gradient: Gradient) -> Iterator[str]:
    target = ""
    if gradient.target is not None:
        target = f" {'≤' if gradient.gradient_norm <= gradient.target else '>'} {gradient.target:.3g} asked for"
    yield f"objective {gradient.value:.9g}, gradient {gradient.gradient_norm:.3g}{target}"
