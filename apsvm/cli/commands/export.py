"""``apsvm export``: the model for the predictor of LIBLINEAR, or all of it as JSON or ONNX."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from apsvm._support.shown import as_json
from apsvm._support.types import JsonDict
from apsvm.cli.help import HelpfulCommand
from apsvm.cli.options.table import files, options
from apsvm.cli.output.lists import names_of_two
from apsvm.cli.reading import one_linear_ranker, one_ranker, read_any_model
from apsvm.cli.shared import BAD_DATA, Failure, refuse_same_file, say, writing
from apsvm.models.decision import line_of
from apsvm.models.header import LabelKind

if TYPE_CHECKING:
    from apsvm.models.base import Model, Ranker


@click.command(cls=HelpfulCommand)
@files("MODEL", "[OUT]")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["liblinear", "json", "onnx"]),
    required=True,
    help="liblinear: a model file of LIBLINEAR's predict; json: all that scoring takes; onnx: a graph for onnxruntime.",
)
@options("one_class")
def export(model: str, out: str, layout: str, one_class: float | str | None) -> None:
    """Write MODEL to OUT (default: stdout) for other programs.

    LIBLINEAR takes linear features; three classes or more are one multi-class model. Rows above 0 are positive there:
    the threshold of MODEL is subtracted from the constant.

    ONNX takes rows X, or the columns of a table by name, and gives score, label and probability (apsvm[onnx]).

    JSON has "rankers", one a class: the score is coef·φ(x) + intercept, the highest of "components" if there are
    several. φ(x) is divided by its length, unless that is 0, if "unit_rows". Features count from "first_feature".
    "features" has the name of φ and its arrays:

    \b
    linear     φ(x) = x
    piecewise  x, then of feature j = 0, 1 … for each q of knots[starts[j]:starts[j+1]]
               max(0, x_j − q) if q ≥ 0, else min(0, x_j − q)
    logarithms x, then of each feature j in tailed f(x_j) − f(0), f(v) = sign(z)·log(1 + |z|),
               z = (v − origin) / unit
    products   z = (x − centre) / deviation, then z_i·z_j for i = 0, 1 … and j = i, i+1 …
    nystroem   normalisation·k, k_i = exp(−gamma·‖z − landmarks[i]‖²)
    rules      the columns of piecewise over divisors; then for each 1 in kept, tree by
               tree, leaf by leaf, whether x gets there: from node i, first 0, to 2i + 1 if
               x of features[i] is at most thresholds[i], or that is −1, else to 2i + 2
    a+b        the columns of a, then those of b; array q of a is 0.q, of b 1.q

    Rows above "threshold" are positive, the second of "classes". "probability" is that of the positive class: of method
    platt 1 / (1 + exp(−(slope·score + offset))), between "lower" and "upper"; of isotonic interpolated between the
    points (scores[i], probabilities[i]). "table" has the columns in order: a "number" is itself, "fill" if missing; a
    "category" has a feature for each of its "categories", and one for all others if "other"; either has one more that
    is 1 where the cell is missing, if "missing". "pool" names the functions that make a row of a bag.
    """
    from apsvm._support.files import write_whole

    refuse_same_file(out, model=model)
    stored = read_any_model(model)
    if layout == "json":
        content = _json_text(stored, one_class, model).encode()
    elif layout == "onnx":
        from apsvm.cli.onnx import onnx_bytes

        content = onnx_bytes(stored if one_class is None else one_ranker(stored, one_class, model), model)
    else:
        content = _liblinear(stored, one_class, model).encode()
    with writing(out):
        write_whole(out, content)


def _liblinear(stored: Model, positive_label: float | str | None, name: str) -> str:
    """LIBLINEAR's text of a linear model, a column of weights a ranker (of two classes one); ends the command for
    another model. The constant, less the threshold, weighs a bias feature of value 1."""
    features, what = stored.header.features, ""
    if stored.components > 1:
        what = "its rankers have several components, which LIBLINEAR does not know"
    elif features.map != "linear":
        what = f"its features are mapped ({features.map}), which LIBLINEAR does not know"
    if what:
        raise Failure(BAD_DATA, f"{name}: {what}: use --format json")
    if stored.header.features.zero_based:
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


def _json_text(stored: Model, positive_label: float | str | None, name: str) -> str:
    """One JSON object of the model in the file ``name``, or of one of its classes; see ``LAYOUT``."""
    whole = stored.has_classes and positive_label is None
    rankers = stored.rankers() if whole else [one_ranker(stored, positive_label, name)]
    first = rankers[0]
    arrays = {} if first.feature_map is None else first.feature_map.arrays()
    features = first.header.features
    header: JsonDict = stored.header.to_json()
    content = {
        "format": "apsvm",
        "version": 1,
        "width": first.width,
        "first_feature": 0 if first.header.features.zero_based else 1,
        "unit_rows": first.unit_rows,
        "features": {"name": features.map, **{key: array.tolist() for key, array in arrays.items()}},
        **({} if features.pool is None else {"pool": list(features.pool)}),
        "table": None if features.columns is None else header["features"]["columns"]["features"],
        "columns": first.columns(),
        "rankers": [_json_of(ranker) for ranker in rankers],
        "header": header,
    }
    return as_json(content, allow_nan=False) + "\n"


def _json_of(ranker: Ranker) -> JsonDict:
    """JSON of a ranker: weights, of each component if there are several, threshold and calibration."""
    header = ranker.header
    parts = [{"intercept": part.intercept, "coef": part.coef.tolist()} for part in ranker.linear_parts()]
    return {
        "label": header.labels.positive,
        "classes": names_of_two(header),
        **(parts[0] if len(parts) == 1 else {"components": parts}),
        "threshold": None if header.threshold is None else header.threshold.value,
        "probability": None if header.calibration is None else asdict(header.calibration),
    }
