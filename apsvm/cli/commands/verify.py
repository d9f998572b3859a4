"""``apsvm verify``: checks a model's certificate on the data by a second implementation."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from apsvm._support.shown import printable
from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.table import files, options
from apsvm.cli.reading import how_to_read, read_any_model, refuse_model, rows_for
from apsvm.cli.shared import DOES_NOT_HOLD, SAYS_NOTHING, STOPPED_EARLY, bad_data, put
from apsvm.cli.training import query_weights
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.models.base import Model
    from apsvm.verification.certificates import Verdict
    from apsvm.verification.plain import RankingDefinition

#: Width of the names at the left.
LEFT = 13


@click.command(cls=HelpfulCommand)
@files("MODEL", "DATA")
@options("query_weights", "gap", "max_iterations", "as_json",
         time_limit={"help": "Seconds for each proof."})  # fmt: skip
@how_to_read
def verify(model: str, data: str, read: ReadOptions, **wanted: Any) -> int:
    """Check the certificate of MODEL on DATA, the rows that it was trained on.

    The certificate of a structured SVM states that no weights have an objective lower than the model's by more than its
    gap; with the tight bound, bags or components, that the model is a stationary point. Both are proved again by a
    plain implementation that shares no code with the trainer. It takes from MODEL only the weights, and how features
    are mapped and scaled. For a loss that it does not define, it uses the loss's two arrays.

    \b
    Exit codes: 0 it holds; 5 it holds, but says nothing: its gap exceeds --gap, or the epsilon of the training;
    4 it does not hold; 3 neither was shown within the limits; 65 there is nothing to verify.
    """
    from apsvm.report.words import meaning
    from apsvm.verification.bound import Limits
    from apsvm.verification.certificates import Outcome, verify

    if model == data == "-":
        raise click.UsageError("only one of the files can be standard input")
    refuse_model(data)
    ranker = read_any_model(model)
    dataset = rows_for(ranker, data, read)
    weights = query_weights(wanted["query_weights"], dataset)
    verdicts: list[Verdict] = []
    limits = Limits(seconds=wanted["time_limit"], iterations=wanted["max_iterations"])
    with bad_data(model):
        for verdict in verify(
            ranker, dataset, query_weights=weights, telling=wanted["gap"], limits=limits,
            defined_elsewhere=definition_of_package,
        ):  # fmt: skip
            if not wanted["as_json"]:
                _put_verdict(ranker, dataset, verdict, first=not verdicts)
            verdicts.append(verdict)
    if wanted["as_json"]:
        header, sha256 = ranker.header, dataset.fingerprint
        figures = [{**asdict(one), "gap": one.gap, "share": one.share} for one in verdicts]
        about = {"same_data": header.data.sha256 == sha256, "sha256": sha256, "labels": meaning(header.labels)}
        put(json.dumps({**about, "certificates": figures}, indent=1, sort_keys=True))
    outcomes = {verdict.outcome for verdict in verdicts}
    codes = {Outcome.FAILS: DOES_NOT_HOLD, Outcome.UNDECIDED: STOPPED_EARLY, Outcome.SAYS_NOTHING: SAYS_NOTHING}
    return next((code for outcome, code in codes.items() if outcome in outcomes), 0)


def definition_of_package(name: str) -> RankingDefinition | None:
    """Definition of a registered loss of two arrays, for the plain implementation, which does not know it. None for
    other names: a loss that only a model file names (``module:Name``) is never imported."""
    from apsvm._support.registry import spelled
    from apsvm.losses import LOSSES, make_loss
    from apsvm.losses.base import is_of_two_arrays
    from apsvm.losses.graded import takes_grades
    from apsvm.verification.plain import RankingDefinition

    if ":" in name or spelled(name, LOSSES) is None:
        return None
    loss = make_loss(name)
    if not is_of_two_arrays(loss):
        return None
    return RankingDefinition(
        loss.weights_of, lambda n, n_neg: loss.discount_of(n), gain=loss.gain if takes_grades(loss) else None
    )


def _put_verdict(ranker: Model, dataset: Dataset, verdict: Verdict, *, first: bool) -> None:
    from apsvm.models.averages import headers_of
    from apsvm.report.words import meaning

    header, claimed = ranker.header, verdict.claimed
    others = bool(header.data.sha256) and header.data.sha256 != dataset.fingerprint
    if first:
        whose = f"{'not ' if others else ''}the file that the model was trained on, by its SHA-256"
        if not header.data.sha256:
            whose = "the model was trained on arrays or a frame, of which it has no SHA-256 to compare"
        _put("data", f"{dataset.source}: {whose}")
        _put("labels", meaning(header.labels))
    if verdict.label is not None:
        put("")
        _put("class", header.shown_label(verdict.label))
    if verdict.member is not None:
        put("")
        _put("member", f"{verdict.member} of {len(header.members)}, on {verdict.features}")
        _put("labels", meaning(headers_of(header)[verdict.member - 1].labels))
    whose = "" if verdict.plainly_defined else ", by the package's own definition: its two arrays are believed"
    _put("loss", f"{verdict.loss}, C = {verdict.C:.6g}, bound {claimed.bound}{whose}")
    _put("objective", f"{claimed.primal:.9g} by the model, {verdict.objective:.9g} recomputed")
    of = "convex majorant's minimum" if verdict.stationary else "optimum"
    _put("lower bound", f"{claimed.dual:.9g} by the model, {verdict.proved:.9g} proved anew, of the {of}")
    model_gap, proved, wanted = (gap / verdict.C for gap in (claimed.gap, verdict.gap, claimed.tolerance))
    share = f"{100.0 * verdict.share:.2g} % of the objective at w = 0"
    _put("gap", f"{model_gap:.3g} of the loss by the model, {proved:.3g} proved, {share}; requested: {wanted:.3g}")
    _put("certificate", _conclusion(verdict, other_rows=others))


def _conclusion(verdict: Verdict, *, other_rows: bool) -> str:
    if verdict.reasons:
        of_these = " of these rows, which are not those of the training" if other_rows else ""
        return f"does not hold{of_these}: {'; '.join(verdict.reasons)}"
    outcome = str(verdict.outcome)
    if outcome == "undecided":
        return "undecided: the limits were reached before its gap was proved or a point below its bound was found"
    early = "" if verdict.claimed.reached else "; the training ended before the requested gap"
    gap = f"{verdict.gap / verdict.C:.3g}"
    if verdict.stationary:
        where = " no lower than w = 0" if verdict.objective >= verdict.at_nothing else ""
        return f"{outcome}: the model stands at a stationary point{where}, to {gap} of the loss{early}"
    return f"{outcome}: no weights have an objective lower by more than {gap} of the loss{early}"


def _put(name: str, text: str) -> None:
    put(f"{name:<{LEFT}}{printable(text)}")
