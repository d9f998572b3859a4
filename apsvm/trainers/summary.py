"""The outcome of a training, in lines for ``apsvm train`` and ``apsvm info``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from apsvm._support.naming import option
from apsvm.solvers.state import State

if TYPE_CHECKING:
    from apsvm.models.header import Bounds, Epochs, Gradient, Header
    from apsvm.trainers.base import Outcome


def summary(outcome: Outcome, metric: str | None) -> list[str]:
    """Full summary: reason for the end, choices made on held-out rows with all that was compared, remarks, evidence."""
    if outcome.classes:
        return [*_chosen_for_all(outcome, metric), *outcome.notes]
    end, *rest = end_in_full(outcome)
    return [end, *chosen(outcome, metric), *_compared(outcome), *rest]


def short_summary(outcome: Outcome, metric: str | None) -> list[str]:
    """Short summary: choices made on held-out rows, the reason for an early stop, and what was left out."""
    if outcome.classes:
        return [*_chosen_for_all(outcome, metric), *([] if outcome.as_asked else outcome.notes[-1:])]
    lines = [] if outcome.as_asked else [ending(outcome)]
    kept = "" if outcome.epochs is None else _kept(outcome.epochs)
    return [*lines, *chosen(outcome, metric), *([kept.removeprefix("; ")] if kept else []), *_left_out(outcome)]


def end_in_full(outcome: Outcome) -> list[str]:
    """Reason for the end, remarks, evidence, and what was left out."""
    return [ending(outcome), *outcome.notes, *evidence(outcome), *_left_out(outcome)]


def _chosen_for_all(outcome: Outcome, metric: str | None) -> Iterator[str]:
    """The choice that all classes share."""
    _, first = outcome.classes[0]
    return chosen(replace(first, details={"choice": first.details.get("choice")}), metric)


def chosen(end: Outcome | Header, metric: str | None) -> Iterator[str]:
    """The bound and C chosen by held-out rows, and their metric there; of an average the metric alone."""
    choice, worth = end.details.get("choice"), end.details.get("held_out")
    of_all = worth.get("AP") if isinstance(worth, dict) else None
    ap = ""
    if isinstance(worth, dict) and isinstance(of_all, dict):
        value, low, high = (float(str(of_all[name])) for name in ("value", "low", "high"))
        chance = f" ({float(str(worth['chance'])):.3f} by chance)" if "chance" in worth else ""
        ap = f"{value:.3f}{chance}, most likely {low:.2f} to {high:.2f} on other rows"
    if not isinstance(choice, dict):
        if ap:
            yield f"AP on held-out rows {ap}"
        return
    how, candidates = choice.get("held_out"), choice.get("candidates")
    best = candidates[0] if isinstance(candidates, list) and candidates else None
    loss = best.get("loss") if isinstance(best, dict) else None
    if not isinstance(best, dict) or not isinstance(loss, float):
        yield f"{choice.get('bound')} bound: {how}"
        return
    part = "" if " folds of " in str(how) else f" ({how})"
    text = f"chosen on held-out rows{part}: {best.get('bound')} bound, C = {choice.get('C', best.get('C'))}"
    if ap:
        yield f"{text}; AP there {ap}"
    elif choice.get("start") is None:
        yield f"{text}, {metric or 'AP'} {1.0 - loss:.4f}"
    else:
        of_start = choice.get("start_metric", "metric")
        yield f"{text}, {of_start} {1.0 - loss:.4f} by {choice['start']}, where training starts"


def _compared(outcome: Outcome) -> Iterator[str]:
    """Loss of each bound and C on held-out rows, the chosen one first."""
    choice = outcome.details.get("choice")
    candidates = choice.get("candidates") if isinstance(choice, dict) else None
    if isinstance(candidates, list) and len(candidates) > 1:
        each = (f"{one['bound']}, C = {one['C']}: {one['loss']:.4g}" for one in candidates if isinstance(one, dict))
        yield f"loss there: {'; '.join(each)}"


def _left_out(outcome: Outcome) -> Iterator[str]:
    """Lines on queries and users without anything to rank."""
    data = outcome.data
    if data.queries_skipped:
        noun, were = ("query", "was") if data.queries_skipped == 1 else ("queries", "were")
        yield f"{data.queries_skipped} {noun} without anything to rank {were} left out, {data.queries} trained on"
    if data.counts.get("users_skipped"):
        yield f"{data.counts['users_skipped']} users with fewer than two items, or with all, were left out"


def ending(outcome: Outcome) -> str:
    """Reason for the end; for a set of rankers, with counts."""
    if outcome.classes:
        return "; ".join(outcome.notes)
    trouble = "" if outcome.trouble is None else f": {outcome.trouble}"
    remedies = ""
    if outcome.state == State.STALLED and outcome.C is not None:
        remedies = f"; the best point is kept; try a smaller C, a larger epsilon or {option('scale', 'standard')}"
    return f"{state(outcome)}{trouble}{remedies}"


def state(end: Outcome | Header) -> str:
    """Reason for the end of a training, and its length."""
    if end.epochs is not None:
        return f"{end.state} after {end.epochs.count} epochs{_kept(end.epochs)}"
    after = "" if end.iterations is None else f" after {end.iterations} iterations"
    evaluations = "" if end.gradient is None else f", {end.gradient.evaluations} evaluations"
    return f"{end.state}{after}{evaluations}"


def evidence(end: Outcome | Header) -> Iterator[str]:
    """Distance of the result from the optimum, if known, as text."""
    if end.certificate is not None:
        yield _bounds(end.certificate, end.C or 1.0)
    if end.gradient is not None:
        yield _gradient(end.gradient)


def _kept(epochs: Epochs) -> str:
    chosen_by = epochs.validation
    if chosen_by is None:
        return ""
    return f"; kept epoch {epochs.best}, {chosen_by.metric} {chosen_by.value:.6f} on {chosen_by.file}"


def _bounds(bounds: Bounds, C: float) -> str:
    """Bound on the distance from the optimum, in units of the loss, independent of C."""
    kind = "exact" if bounds.exact else "approximate: a bound for the difficult rows' problem, not for the whole loss"
    claim = "off the optimum by at most"
    if bounds.layer is not None:
        claim = f"off the last convex majorant's minimum, in the weights of layer {bounds.layer}, by at most"
    elif bounds.stationary or bounds.hinge_objective is not None:
        claim = "a stationary point, from which the convex majorant can gain at most"
    sign = "≤" if bounds.reached else ">"
    return f"certificate: {claim} {bounds.gap / C:.3g} of the loss {sign} {bounds.tolerance / C:.3g} requested ({kind})"


def _gradient(gradient: Gradient) -> str:
    target = ""
    if gradient.target is not None:
        target = f" {'≤' if gradient.gradient_norm <= gradient.target else '>'} {gradient.target:.3g} requested"
    return f"objective {gradient.value:.9g}, gradient {gradient.gradient_norm:.3g}{target}"
