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


#: Description of the object in ``--help``.
LAYOUT = """JSON has for each ranker "coef" and "intercept" ("rankers", with the "label" of each class), of features
that count from "first_feature", and score = coef·φ(x) + intercept, φ(x) divided by its length, unless that is 0, if
"unit_rows". "features" names φ and has its arrays:

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

A ranker of several components (--components) has a list "components" of such "coef" and "intercept", and the
highest of their scores.

A row is positive, the second of "classes", where its score is above the ranker's "threshold", if that is not null.
"probability", if it is not null, is that of the positive class: of method platt 1 / (1 + exp(−(slope·score +
offset))), at least "lower" and at most "upper", of isotonic the straight line between the points (scores[i],
probabilities[i]) on either side, and the outermost probability beyond them.

Of a model of a table "table" says what its columns become, one after the other: a "number" itself, and "fill" where it
is missing; a "category" a feature for each of its "categories", 1 where it is that word and else 0, and another for
all others if "other"; either of them last, if "missing", one that is 1 where the cell is missing.

"ranges", if present, serve pictures: each feature's lowest value in training, its mean, and its highest.

For a model of bags (train --pool), the features are those of a bag; "pool" names the functions that make them."""

#: Text of ``apsvm export --help``.
_HELP = f"""Write MODEL to OUT (default: stdout) for other programs.

A model of three classes or more is one multi-class model of LIBLINEAR; of any such model, --positive-label exports one
class's ranker.

LIBLINEAR calls rows above 0 positive, so the threshold of MODEL is subtracted from its constant.

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
@options(
    positive_label={"help": "Of a model of several classes: the one to export.", "show_default": False, "excludes": ""}
)
def export(model: str, out: str, layout: str, positive_label: float | str | None) -> None:
    from apsvm._support.files import write_whole

    refuse_same_file(out, model=model)
    stored = read_any_model(model)
    if layout == "json":
        content = _json_text(stored, positive_label, model).encode()
    elif layout == "onnx":
        from apsvm.cli.onnx import onnx_bytes

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
