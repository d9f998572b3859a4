"""``apsvm export``: the model as text: what LIBLINEAR's and SVM-light's own predictors read, or all of it as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from apsvm.cli.parameters import LabelValue
from apsvm.cli.reading import one_linear_ranker, one_ranker, read_any_model
from apsvm.cli.shared import BAD_DATA, Failure, refuse_same_file, say, writing
from apsvm.types import JsonDict

if TYPE_CHECKING:
    from apsvm.model import LinearRanker, Model, RankerSet, WeightedRanker


@click.command()
@click.argument("model", metavar="MODEL")
@click.argument("out", metavar="[OUT]", default="-")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["liblinear", "svmlight", "json"]),
    required=True,
    help="liblinear: a model file of LIBLINEAR's predict; svmlight: of svm_classify; json: all that scoring takes.",
)
@click.option("--positive-label", type=LabelValue(), help="Of a model of several classes: the one to export.")
def export(model: str, out: str, layout: str, positive_label: float | str | None) -> None:
    """Write MODEL as text to OUT (default: stdout).

    A model of three classes or more is one multi-class model of LIBLINEAR; of any such model, --positive-label exports
    one class's ranker.

    JSON has for each ranker "coef" and "intercept" ("rankers", with the "label" of each class), of features that count
    from "first_feature", and score = coef·φ(x) + intercept, φ(x) divided by its length, unless that is 0, if
    "unit_rows". "features" names φ and has its arrays:

    \b
    linear     φ(x) = x
    piecewise  x, then of feature j = 0, 1 … for each q of knots[starts[j]:starts[j+1]]
               max(0, x_j − q) if q ≥ 0, else min(0, x_j − q)
    spline     of each feature its cubic B-splines on such knots, three more on either
               side at the outermost distance, straight lines beyond; x_j if it has none
    products   z = (x − centre) / deviation, then z_i·z_j for i = 0, 1 … and j = i, i+1 …
    nystroem   normalisation·k, k_i = exp(−gamma·‖z − landmarks[i]‖²)

    A ranker of several components (--components) has a list "components" of such "coef" and "intercept", and the
    highest of their scores.

    "ranges", where they are, are for pictures: each feature's lowest value in training, its mean, and its highest.

    Of a model of bags (train --pool) the features are those of a bag: "pool" says of what, and their names which.

    The other formats know no features but linear.
    """
    from apsvm.files import write_whole
    from apsvm.model import ComponentRanker, ComponentRankerSet, RankerSet

    refuse_same_file(out, model=model)
    stored = read_any_model(model)
    if layout == "json":
        text = _json(stored, positive_label, model)
        with writing(out):
            write_whole(out, text.encode())
        return
    if stored.header.features.map != "linear":
        raise Failure(
            BAD_DATA,
            f"{model}: its features are mapped ({stored.header.features.map}), which {layout} knows nothing of: "
            "--format json",
        )
    if isinstance(stored, ComponentRanker | ComponentRankerSet):
        raise Failure(
            BAD_DATA, f"{model}: its rankers have several components, which {layout} knows nothing of: --format json"
        )
    _warn_of_rows(stored)
    # With two classes LIBLINEAR has one column of weights.
    whole = layout == "liblinear" and positive_label is None
    if isinstance(stored, RankerSet) and whole and stored.classes.size > 2:
        text = _liblinear_classes(stored, model)
    else:
        ranker = one_linear_ranker(stored, positive_label, model)
        text = _liblinear(ranker) if layout == "liblinear" else _svmlight(ranker)
    with writing(out):
        write_whole(out, text.encode())


def _warn_of_rows(stored: Model) -> None:
    """Says in what the exported model wants other rows than this one."""
    if stored.zero_based:
        say("warning: the model counts features from 0; the exported one counts the same features from 1")
    if stored.header.features.scale == "l2":
        say("warning: the model divides each row by its length (--scale l2); give the exported one such rows")
    if stored.header.features.pool is not None:
        say("warning: the model ranks bags; give the exported one a row of each, as --pool makes them")


def _json(stored: Model, positive_label: float | str | None, name: str) -> str:
    """One JSON object, see ``export``."""
    import json

    from apsvm.model import AnyRankerSet

    if isinstance(stored, AnyRankerSet) and positive_label is None:
        rankers = [stored.ranker(label) for label in stored.classes.tolist()]
    else:
        rankers = [one_ranker(stored, positive_label, name)]
    first = rankers[0]
    arrays = {} if first.feature_map is None else first.feature_map.arrays()
    content = {
        "format": "apsvm",
        "version": 1,
        "width": first.width,
        "first_feature": 0 if first.zero_based else 1,
        "unit_rows": first.unit_rows,
        "features": {"name": first.header.features.map, **{key: array.tolist() for key, array in arrays.items()}},
        **({} if first.header.features.pool is None else {"pool": list(first.header.features.pool)}),
        "columns": first.columns(),
        "rankers": [{"label": ranker.header.labels.positive, **_weights(ranker)} for ranker in rankers],
        "header": stored.header.to_json(),
    }
    return json.dumps(content, allow_nan=False, indent=1, ensure_ascii=False) + "\n"


def _weights(ranker: WeightedRanker) -> JsonDict:
    """What the columns are weighed by."""
    from apsvm.model import ComponentRanker

    if not isinstance(ranker, ComponentRanker):
        return {"intercept": ranker.intercept, "coef": ranker.coef.tolist()}
    parts = zip(ranker.intercepts.tolist(), ranker.coef.tolist(), strict=True)
    return {"components": [{"intercept": intercept, "coef": coef} for intercept, coef in parts]}


def _liblinear(ranker: LinearRanker) -> str:
    from apsvm.header import LabelKind

    labels = ranker.header.labels
    label = labels.positive if labels.kind is LabelKind.ONE_LABEL else None
    # LIBLINEAR's labels are C ints; the negative side may have been many labels.
    positive = int(label) if label is not None and label.is_integer() and abs(label) < 2**31 else 1
    negative = -1 if positive != -1 else 1
    return _liblinear_text([positive, negative], [ranker])


def _liblinear_classes(rankers: RankerSet, name: str) -> str:
    """One against the rest is what LIBLINEAR's own multi-class models are."""
    labels = rankers.classes.tolist()
    odd = [label for label in labels if not (label.is_integer() and abs(label) < 2**31)]
    if odd:
        raise Failure(BAD_DATA, f"{name}: LIBLINEAR's labels are integers of 32 bits, and {odd[0]!r} is none")
    return _liblinear_text([int(label) for label in labels], [rankers.ranker(label) for label in labels])


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


def _svmlight(ranker: LinearRanker) -> str:
    """SVM-light's text format: a linear kernel and w as the one support vector; its threshold is subtracted."""
    entries = [f"{at}:{weight!r}" for at, weight in enumerate(ranker.coef.tolist(), start=1) if weight]
    return "\n".join(
        [
            "SVM-light Version V6.02",
            "0 # kernel type",
            "3 # kernel parameter -d",
            "1 # kernel parameter -g",
            "1 # kernel parameter -s",
            "1 # kernel parameter -r",
            "empty# kernel parameter -u",
            f"{ranker.width} # highest feature index",
            f"{ranker.header.data.rows} # number of training documents",
            "2 # number of support vectors plus 1",
            f"{-ranker.intercept!r} # threshold b, each following line is a SV (starting with alpha*y)",
            " ".join(["1", *entries, "#"]),
            "",
        ]
    )
