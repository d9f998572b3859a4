"""``apsvm export``: the model as text that LIBLINEAR's and SVM-light's own predictors read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from apsvm.cli.shared import read_model, refuse_same_file, say, writing

if TYPE_CHECKING:
    from apsvm.model import LinearRanker


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
def export(model: str, out: str, layout: str) -> None:
    """Write MODEL as text to OUT (default: stdout)."""
    from apsvm.files import write_whole

    refuse_same_file(out, model=model)
    ranker = read_model(model)
    if ranker.zero_based:
        say("warning: the model counts features from 0; the exported one counts the same features from 1")
    text = _liblinear(ranker) if layout == "liblinear" else _svmlight(ranker)
    with writing(out):
        write_whole(out, text.encode())


def _liblinear(ranker: LinearRanker) -> str:
    """LIBLINEAR's text format; the constant is the weight of a bias feature of value 1."""
    label = ranker.positive_label
    # LIBLINEAR's labels are C ints; the negative side may have been many labels.
    positive = int(label) if label is not None and label.is_integer() and abs(label) < 2**31 else 1
    negative = -1 if positive != -1 else 1
    lines = [
        "solver_type L2R_L1LOSS_SVC_DUAL",
        "nr_class 2",
        f"label {positive} {negative}",
        f"nr_feature {ranker.width}",
        f"bias {1 if ranker.intercept else -1}",
        "w",
        *(f"{weight!r} " for weight in ranker.coef.tolist()),
    ]
    if ranker.intercept:
        lines.append(f"{ranker.intercept!r} ")
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
            f"{ranker.header.get('data', {}).get('rows', 0)} # number of training documents",
            "2 # number of support vectors plus 1",
            f"{-ranker.intercept!r} # threshold b, each following line is a SV (starting with alpha*y)",
            " ".join(["1", *entries, "#"]),
            "",
        ]
    )
