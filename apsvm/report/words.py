"""What became of a training, in words: why it stopped, and what its certificate says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apsvm.pictures.convergence import loss_of_epochs
from apsvm.records import Record

#: States that are what was asked for.
AS_ASKED = ("converged", "all epochs done", "validation stopped improving", "nothing violates")


def number(value: float) -> str:
    return f"{value:.6g}"


def certificate(header: Mapping[str, Any]) -> list[str]:
    """Sentences on a model of this header."""
    if "certificate" in header:
        return _bounds(header)
    if "result" in header:
        return _gradient(header)
    return _no_certificate(header)


def _bounds(header: Mapping[str, Any]) -> list[str]:
    found, C = header["certificate"], header["C"]
    primal, dual, gap, asked = (found[name] for name in ("primal", "dual", "gap", "tolerance"))
    state = header["state"]
    iterations = f"{header['iterations']} iteration" + ("" if header["iterations"] == 1 else "s")
    ended = {
        "converged": f"The training converged after {iterations}.",
        "interrupted": f"The training was interrupted after {iterations}: this is the best model it had.",
    }
    told = [ended.get(state, f"The training ended after {iterations} ({state}): this is the best model it had.")]
    off = f"{number(gap)}, or {gap / C:.3g} in units of the loss, where {asked / C:.3g} was asked for"
    if header.get("hinge_objective") is not None:
        told.append(
            f"It is a stationary point of ½‖w‖² + C·(tight bound on the loss), whose value is {number(primal)}: no "
            f"other weights lower its convex majorant by more than {off}. The convex hinge, where it began, came to "
            f"{number(header['hinge_objective'])}. The tight bound is not convex: there may be lower points."
        )
    else:
        told.append(
            f"The objective ½‖w‖² + C·risk is {number(primal)} for this model, and no less than {number(dual)} for any "
            f"weights whatever, which a feasible point of the dual problem proves. So the model is off the optimum by "
            f"at most {off}."
        )
    if not header.get("exact", True):
        told.append(
            "The certificate is that of the problem of the difficult rows (--oracle appx); for the loss over all rows "
            "it is an approximation."
        )
    return told


def of_several(header: Mapping[str, Any]) -> str:
    """A sentence on a table of bounds of models trained as this one."""
    if header.get("hinge_objective") is not None:
        return (
            "Primal is the objective ½‖w‖² + C·(tight bound on the loss) of each model, a stationary point: no other "
            "weights lower its convex majorant to less than dual."
        )
    return (
        "Primal is the objective ½‖w‖² + C·risk of each model; no weights whatever have one below dual. The gap "
        "between them, divided by C, is in units of the loss."
    )


def _gradient(header: Mapping[str, Any]) -> list[str]:
    found = header["result"]
    sign = "at most" if found["gradient_norm"] <= found["asked"] else "still above"
    return [
        f"The training ended as “{header['state']}” after {header['iterations']} iterations and "
        f"{header['evaluations']} evaluations of all pairs.",
        f"The objective, which is smooth and convex, is {number(found['value'])}; the largest entry of its gradient is "
        f"{number(found['gradient_norm'])}, {sign} the {number(found['asked'])} asked for. At the minimum it is zero.",
    ]


def _no_certificate(header: Mapping[str, Any]) -> list[str]:
    told = [
        f"The training ended as “{header['state']}” after {header['epochs']} epochs.",
        f"There is no certificate: the steps are stochastic, and the {loss_of_epochs(header)} is what the draws "
        "happened to show while the weights moved.",
    ]
    validation = header.get("validation")
    if validation is not None:
        told.insert(
            1,
            f"Kept is epoch {header['best_epoch']}, whose {validation['metric']} on {validation['file']} is "
            f"{validation['value']:.6f}.",
        )
    return told


def unfinished(records: Sequence[Record]) -> list[str]:
    """Sentences on a log without the end of a training."""
    last = next((record for record in reversed(records) if record["event"] in ("iteration", "epoch")), None)
    told = ["The log has no end: the run was killed, or is still going on. There is no model to judge."]
    if last is None:
        return [*told, "It has not finished an iteration."]
    if last["event"] == "epoch":
        start = next((record for record in records if record["event"] == "start"), {})
        return [*told, f"It came to epoch {last['epoch']}, {loss_of_epochs(start)} {number(last['loss'])}."]
    if "primal" in last:
        return [
            *told,
            f"It came to iteration {last['iteration']} at C = {number(last['C'])}: primal {number(last['primal'])}, "
            f"dual {number(last['dual'])}, gap {number(last['gap'])}.",
        ]
    return [*told, f"It came to iteration {last['iteration']}, gradient {number(last['gradient_norm'])}."]


def in_seconds(value: float) -> str:
    """With the unit that suits it."""
    if value < 0.0995:
        return f"{1e3 * value:.3g} ms"
    if value < 119.5:
        return f"{value:.3g} s"
    return f"{value / 60:.1f} min"


def share(value: float) -> str:
    """As a percentage, small ones not rounded to nothing."""
    return f"{value:.1%}" if value >= 0.0095 or value == 0 else f"{value:.2g}" if value < 1e-4 else f"{value:.2%}"
