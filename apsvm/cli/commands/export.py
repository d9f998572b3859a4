"""``apsvm export``: the model for the predictor of LIBLINEAR, or all of it as JSON or ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.table import files, options
from apsvm.cli.output.export_json import LAYOUT
from apsvm.cli.reading import one_linear_ranker, one_ranker, read_any_model
from apsvm.cli.shared import BAD_DATA, Failure, refuse_same_file, say, writing
from apsvm.models.decision import line_of
from apsvm.models.header import LabelKind

if TYPE_CHECKING:
    from apsvm.models.base import Model


#: Text of ``apsvm export --help``.
_HELP = f"""Write MODEL to OUT (default: stdout) for other programs.

A model of three classes or more is one multi-class model of LIBLINEAR; of any such model, --positive-label exports one
class's ranker.

LIBLINEAR calls a row positive above 0: where MODEL has a threshold (train --threshold), its constant is less by it,
and so are its scores.

ONNX takes X, rows of float64 with MODEL's features, or where MODEL is of a table its columns: numbers as float64 (NaN
for a missing one), words as strings ("") and dates as int64 seconds from 1970 (NumPy's NaT). It gives score, label (1
above the threshold; of several classes the number, from 0, of the one that predict --classify names) and probability,
as far as MODEL has them. It needs apsvm[onnx].

{LAYOUT}

LIBLINEAR knows no features but linear.
"""


@click.command(cls=HelpfulCommand, help=_HELP)
@files("MODEL", "[OUT]")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["liblinear", "json", "onnx"]),
    required=True,
    help="liblinear: a model file of LIBLINEAR's predict; json: all that scoring takes; onnx: a graph for onnxruntime.",
)
@options(positive_label={"help": "Of a model of several classes: the one to export.", "excludes": ""})
def export(model: str, out: str, layout: str, positive_label: float | str | None) -> None:
    from apsvm._support.files import write_whole

    refuse_same_file(out, model=model)
    stored = read_any_model(model)
    if layout == "json":
        from apsvm.cli.output.export_json import json_text

        content = json_text(stored, positive_label, model).encode()
    elif layout == "onnx":
        from apsvm.cli.output.export_onnx import onnx_bytes

        content = onnx_bytes(stored if positive_label is None else one_ranker(stored, positive_label, model), model)
    else:
        content = _liblinear(stored, positive_label, model).encode()
    with writing(out):
        write_whole(out, content)


def _liblinear(stored: Model, positive_label: float | str | None, name: str) -> str:
    """LIBLINEAR's text of a linear model, a column of weights a ranker (of two classes one); ends the command for
    another model. The constant, less the threshold, weighs a bias feature of value 1."""
    features, what = stored.header.features, ""
    if stored.components > 1:
        what = "its rankers have several components, which LIBLINEAR has not"
    elif features.map != "linear":
        what = f"its features are mapped ({features.map}), which LIBLINEAR does not do"
    if what:
        raise Failure(BAD_DATA, f"{name}: {what}: --format json")
    if stored.zero_based:
        say("warning: the model counts features from 0; the exported one counts the same features from 1")
    if features.scale == "l2":
        say("warning: the model divides each row by its length (--scale l2); give the exported one such rows")
    if features.pool is not None:
        say("warning: the model ranks bags; give the exported one a row of each, as --pool makes them")
    if positive_label is None and stored.classes.size > 2:
        rankers, labels = [part for one in stored.rankers() for part in one.linear_parts()], stored.classes.tolist()
        odd = next((label for label in labels if not _is_int(label)), None)
        if odd is not None:
            raise Failure(BAD_DATA, f"{name}: LIBLINEAR's labels are integers of 32 bits, and {odd!r} is none")
    else:
        rankers = [one_linear_ranker(stored, positive_label, name)]
        label = rankers[0].header.labels.positive
        is_one = rankers[0].header.labels.kind is LabelKind.ONE_LABEL and label is not None and _is_int(label)
        positive = label if is_one else 1.0  # the negative side may have been many labels
        labels = [positive, -1.0 if positive != -1.0 else 1.0]
    constants = [one.intercept - line_of(one.header.threshold) for one in rankers]
    lines = [
        "solver_type L2R_L1LOSS_SVC_DUAL",
        f"nr_class {len(labels)}",
        f"label {' '.join(str(int(label)) for label in labels)}",
        f"nr_feature {rankers[0].width}",
        f"bias {1 if any(constants) else -1}",
        "w",
    ]
    rows = [*zip(*(one.coef.tolist() for one in rankers), strict=True), *([constants] if any(constants) else [])]
    return "".join(f"{line}\n" for line in [*lines, *("".join(f"{w!r} " for w in row) for row in rows)])


def _is_int(label: float) -> bool:
    """True for a label that is a C int."""
    return label.is_integer() and abs(label) < 2**31
