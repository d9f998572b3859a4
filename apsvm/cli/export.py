"""``apsvm export``: the model as text that LIBLINEAR's and SVM-light's own predictors read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from apsvm.cli.parameters import Number
from apsvm.cli.reading import one_ranker, read_any_model
from apsvm.cli.shared import BAD_DATA, Failure, refuse_same_file, say, writing

if TYPE_CHECKING:
    from apsvm.model import LinearRanker, RankerSet


@click.command()
@click.argument("model", metavar="MODEL")
@click.argument("out", metavar="[OUT]", default="-")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["liblinear", "svmlight"]),
    required=True,
    help="liblinear: a model file of LIBLINEAR's predict; svmlight: of svm_classify.",
)
@click.option("--positive-label", type=Number(), help="Of a model of several classes: the one to export.")
def export(model: str, out: str, layout: str, positive_label: float | None) -> None:
    """Write MODEL as text to OUT (default: stdout).

    A model of three classes or more is one multi-class model of LIBLINEAR; of any such model, --positive-label exports
    one class's ranker.
    """
    from apsvm.files import write_whole
    from apsvm.model import RankerSet

    refuse_same_file(out, model=model)
    stored = read_any_model(model)
    if stored.zero_based:
        say("warning: the model counts features from 0; the exported one counts the same features from 1")
    if stored.header.features.scale == "l2":
        say("warning: the model divides each row by its length (--scale l2); give the exported one such rows")
    # With two classes LIBLINEAR has one column of weights.
    whole = layout == "liblinear" and positive_label is None
    if isinstance(stored, RankerSet) and whole and stored.classes.size > 2:
        text = _liblinear_classes(stored, model)
    else:
        ranker = one_ranker(stored, positive_label, model)
        text = _liblinear(ranker) if layout == "liblinear" else _svmlight(ranker)
    with writing(out):
        write_whole(out, text.encode())


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
