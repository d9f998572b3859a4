"""``apsvm export``: the model for the predictor of LIBLINEAR, or all of it as JSON or ONNX."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.table import files, options
from apsvm.cli.output.export_json import LAYOUT
from apsvm.cli.reading import one_linear_ranker, one_ranker, read_any_model
from apsvm.cli.shared import BAD_DATA, Failure, refuse_same_file, say, writing

if TYPE_CHECKING:
    from apsvm.models.base import Model
    from apsvm.models.linear import LinearRanker


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
        content = _liblinear_file(stored, positive_label, model).encode()
    with writing(out):
        write_whole(out, content)


def _liblinear_file(stored: Model, positive_label: float | str | None, name: str) -> str:
    """LIBLINEAR's text of a linear model; ends the command for another one."""
    features = stored.header.features
    several = "its rankers have several components, which LIBLINEAR has not" if stored.components > 1 else ""
    mapped = f"its features are mapped ({features.map}), which LIBLINEAR does not do"
    if several or features.map != "linear":
        raise Failure(BAD_DATA, f"{name}: {several or mapped}: --format json")
    if stored.zero_based:
        say("warning: the model counts features from 0; the exported one counts the same features from 1")
    if features.scale == "l2":
        say("warning: the model divides each row by its length (--scale l2); give the exported one such rows")
    if features.pool is not None:
        say("warning: the model ranks bags; give the exported one a row of each, as --pool makes them")
    # With two classes LIBLINEAR has one column of weights.
    if positive_label is None and stored.classes.size > 2:
        return _liblinear_classes(stored, name)
    ranker = _decided(one_linear_ranker(stored, positive_label, name))
    return _liblinear(ranker)


def _decided(ranker: LinearRanker) -> LinearRanker:
    """The ranker with its threshold subtracted from the intercept, so that positives score above 0."""
    threshold = ranker.header.threshold
    return ranker if threshold is None else replace(ranker, intercept=ranker.intercept - threshold.value)


def _liblinear(ranker: LinearRanker) -> str:
    from apsvm.models.header import LabelKind

    labels = ranker.header.labels
    label = labels.positive if labels.kind is LabelKind.ONE_LABEL else None
    # LIBLINEAR's labels are C ints; the negative side may have been many labels.
    positive = int(label) if label is not None and label.is_integer() and abs(label) < 2**31 else 1
    negative = -1 if positive != -1 else 1
    return _liblinear_text([positive, negative], [ranker])


def _liblinear_classes(stored: Model, name: str) -> str:
    """LIBLINEAR's text of a one-vs-rest model; its own multi-class models are the same."""
    labels = stored.classes.tolist()
    odd = [label for label in labels if not (label.is_integer() and abs(label) < 2**31)]
    if odd:
        raise Failure(BAD_DATA, f"{name}: LIBLINEAR's labels are integers of 32 bits, and {odd[0]!r} is none")
    rankers = [_decided(part) for ranker in stored.rankers() for part in ranker.linear_parts()]
    return _liblinear_text([int(label) for label in labels], rankers)


def _liblinear_text(labels: list[int], rankers: list[LinearRanker]) -> str:
    """LIBLINEAR's text format, a column of weights a ranker; the constant weighs a bias feature of value 1."""
    has_bias = any(ranker.intercept for ranker in rankers)
    lines = [
        "solver_type L2R_L1LOSS_SVC_DUAL",
        f"nr_class {len(labels)}",
        "label " + " ".join(map(str, labels)),
        f"nr_feature {rankers[0].width}",
        f"bias {1 if has_bias else -1}",
        "w",
        *("".join(f"{w!r} " for w in weights) for weights in zip(*(r.coef.tolist() for r in rankers), strict=True)),
    ]
    if has_bias:
        lines.append("".join(f"{ranker.intercept!r} " for ranker in rankers))
    return "\n".join(lines) + "\n"
