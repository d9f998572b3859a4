"""``apsvm export --format json``: everything needed for scores, decisions and probabilities, as one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apsvm._support.shown import as_json
from apsvm._support.types import JsonDict
from apsvm.cli.output.lists import names_of_two
from apsvm.cli.reading import one_ranker

if TYPE_CHECKING:
    from apsvm.models.base import Model, Ranker
    from apsvm.models.columns import Column, Columns
    from apsvm.models.header import Calibration

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

"ranges", where they are, are for pictures: each feature's lowest value in training, its mean, and its highest.

Of a model of bags (train --pool) the features are those of a bag: "pool" says of what, and their names which."""


def json_text(stored: Model, positive_label: float | str | None, name: str) -> str:
    """One JSON object of the model in the file ``name``, or of one of its classes; see ``LAYOUT``."""
    whole = stored.has_classes and positive_label is None
    rankers = stored.rankers() if whole else [one_ranker(stored, positive_label, name)]
    first = rankers[0]
    arrays = {} if first.feature_map is None else first.feature_map.arrays()
    features = first.header.features
    content = {
        "format": "apsvm",
        "version": 1,
        "width": first.width,
        "first_feature": 0 if first.zero_based else 1,
        "unit_rows": first.unit_rows,
        "features": {"name": features.map, **{key: array.tolist() for key, array in arrays.items()}},
        **({} if features.pool is None else {"pool": list(features.pool)}),
        "table": None if features.columns is None else table_of(features.columns),
        "columns": first.columns(),
        "rankers": [_json_of(ranker) for ranker in rankers],
        "header": stored.header.to_json(),
    }
    return as_json(content, allow_nan=False) + "\n"


def table_of(columns: Columns) -> list[JsonDict]:
    """JSON of a table's columns: kind, categories, and value for missing cells."""
    return [
        {
            "column": column.name,
            "kind": str(column.kind),
            "fill": column.fill,
            "categories": list(column.categories),
            "other": column.other,
            "missing": column.missing,
            **({"style": column.style} if column.style else {}),
            **(_of_dates(column) if column.parts else {}),
        }
        for column in columns.features
    ]


def _of_dates(column: Column) -> JsonDict:
    return {"order": column.order, "newest": column.newest, "parts": list(map(str, column.parts))}


def _json_of(ranker: Ranker) -> JsonDict:
    """JSON of a ranker: weights, threshold and calibration."""
    header = ranker.header
    return {
        "label": header.labels.positive,
        "classes": list(names_of_two(header)),
        **_weights(ranker),
        "threshold": None if header.threshold is None else header.threshold.value,
        "probability": None if header.calibration is None else _probability(header.calibration),
    }


def _probability(calibration: Calibration) -> JsonDict:
    if calibration.method == "platt":
        line = {"slope": calibration.slope, "offset": calibration.offset}
        return {"method": "platt", **line, "lower": calibration.lower, "upper": calibration.upper}
    corners = {"scores": list(calibration.scores), "probabilities": list(calibration.probabilities)}
    return {"method": calibration.method, **corners}


def _weights(ranker: Ranker) -> JsonDict:
    """JSON of the weights, of each component if there are several."""

    parts = [{"intercept": part.intercept, "coef": part.coef.tolist()} for part in ranker.linear_parts()]
    return parts[0] if len(parts) == 1 else {"components": parts}
