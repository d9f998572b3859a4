"""Sections on a ranker and rows: metrics and curves, worst queries, features."""

from __future__ import annotations

import math

import numpy as np

from apsvm.metrics.evaluate import Evaluation
from apsvm.models.base import Ranker, norm_of
from apsvm.models.net import NetRanker
from apsvm.report import words
from apsvm.report.drawing import WHOLE, drawn
from apsvm.report.page import Markup, bar, element, pictures, section, table
from apsvm.report.pictures.precision_recall import Curve, PrecisionRecall
from apsvm.report.pictures.shapes import Shapes
from apsvm.report.pictures.top_of_list import TopOfList
from apsvm.report.run import JudgedRanker, Weights, weights
from apsvm.report.shapes import NoShapesError, check_curved, pairs_of, shapes, surfaces

MOST_FEATURES = 15
MOST_QUERIES = 10
MOST_SHAPES, MOST_SURFACES, MOST_PARTS, MOST_DOTS = 9, 3, 15, 1000


def evaluated(part: JudgedRanker) -> Evaluation | None:
    """Its figures, if it has any."""
    return part.evaluation if isinstance(part.evaluation, Evaluation) else None


def metrics_of(part: JudgedRanker) -> Markup:
    result = part.evaluation
    if not isinstance(result, Evaluation):
        return section("Metrics", element("p", f"None: {result}."))
    mean = ""
    if part.groups is not None:
        used = result.n_groups - result.groups_skipped
        mean = f" Figures are means over the {used:,} queries with both kinds of rows"
        mean += f", of {result.n_groups:,}" if result.groups_skipped else ""
        mean += "" if part.grades is None else ", of metrics that read grades over those with different grades"
        mean += "."
    lowest = part.target.lowest_relevant
    if lowest is not None:
        mean += f" Rows of grade {lowest:g} and above are relevant; nDCG and WMW read the grades."
    explanation = f"As apsvm eval gives them, rows of equal score as one block.{mean}"
    figures = table(["metric", "value"], [[name, f"{value:.6f}"] for name, value in result.values.items()])
    drawings = []
    if part.curve is not None:
        curve = PrecisionRecall([Curve(f"AP {part.curve.ap:.4f}", part.curve.steps)], part.curve.base_rate)
        of_queries = ", mean of the queries" if part.groups is not None else ""
        drawings.append(drawn(curve, f"Precision and recall{of_queries}"))
    if part.groups is None and part.relevant.any() and not part.relevant.all():
        drawings.append(drawn(TopOfList(part.scores, part.relevant), "Positives among the first rows of the list"))
    return section("Metrics", element("p", explanation), figures, pictures(*drawings))


def worst_queries(part: JudgedRanker) -> Markup:
    result = evaluated(part)
    if result is None or result.groups is None:
        return Markup("")
    first = part.trained_metric if part.trained_metric in result.values else next(iter(result.values))
    values = result.in_group[first]
    order = np.argsort(values, kind="stable")  # NaN last
    order = order[~np.isnan(values[order])][:MOST_QUERIES]
    names = [name for name in dict.fromkeys([first, "AP", "AUC", "nDCG"]) if name in result.values]
    groups = np.asarray(part.groups)
    rows = [
        [
            part.dataset.query_name(int(result.groups[at])),
            f"{int((groups == result.groups[at]).sum()):,}",
            f"{int((groups == result.groups[at])[part.relevant].sum()):,}",
            *(figure(result.in_group[name][at]) for name in names),
        ]
        for at in order.tolist()
    ]
    return section(f"The queries of the lowest {first}", table(["qid", "rows", "positive", *names], rows))


def figure(value: float | None) -> str:
    """A metric's value, or a dash without one."""
    return "–" if value is None or math.isnan(value) else f"{value:.6f}"


def weights_of(part: JudgedRanker) -> Markup:
    """The largest weights; of a net the sizes of its layers, and nothing of a ranker of several components
    (``report.components``)."""
    parts, feature_map = part.ranker.linear_parts(), part.ranker.feature_map
    if len(parts) != 1:
        return layers_of(part.ranker)
    if feature_map is not None and feature_map.looks_at_targets:
        return Markup()  # hundreds of rules, each of several features: a weight alone says nothing
    (result,) = weights(part)
    base, names = 0 if part.ranker.zero_based else 1, part.ranker.columns()
    nonzero = int(np.count_nonzero(result.weight))
    within = " within queries" if part.groups is not None else ""
    explanation = (
        f"{nonzero:,} of {result.weight.size:,} weights are not zero; their norm is "
        f"{words.number(norm_of(result.weight))}. A feature moves scores by its weight times its own "
        f"deviation{within}, so that is the measure of what it does; a large weight may belong to a feature of tiny "
        f"values. Features are counted from {base}."
    )
    if nonzero == 0:
        return section("Weights", element("p", "All weights are zero: every row has the same score."))
    return section("Weights of the largest features", element("p", explanation), largest(result, names))


def largest(result: Weights, names: list[str]) -> Markup:
    """The weights that move scores the most."""
    contribution = result.contribution
    order = np.argsort(-contribution, kind="stable")[:MOST_FEATURES]
    most = float(contribution.max())
    return table(
        ["feature", "weight", "mean", "deviation", "|weight| · deviation"],
        [
            [
                names[j],
                signed(result.weight[j]),
                f"{result.mean[j]:.4g}",
                f"{result.deviation[j]:.4g}",
                bar(contribution[j] / most, f"{contribution[j]:.4g}"),
            ]
            for j in order[contribution[order] > 0.0].tolist()
        ],
    )


def layers_of(ranker: Ranker) -> Markup:
    """Sizes and weight norms of a net's layers; empty for other rankers."""
    if not isinstance(ranker, NetRanker):
        return Markup("")
    rows = [
        [str(number), f"{inputs:,}", f"{outputs:,}", words.number(norm_of(layer.weights))]
        for number, layer in enumerate(ranker.net.layers, start=1)
        for outputs, inputs in [layer.weights.shape]
    ]
    return section("Layers", table(["layer", "inputs", "units", "norm of the weights"], rows))


def shapes_of(part: JudgedRanker) -> Markup:
    """The curves that move these rows' scores most; empty without curves, or with several components."""
    parts = part.ranker.linear_parts()
    if len(parts) != 1:
        return Markup("")
    (ranker,) = parts
    try:
        check_curved(ranker)
    except NoShapesError:
        return Markup("")
    contributions = ranker.contributions(part.dataset.X)
    deviations = contributions.deviations(part.groups)
    order = np.argsort(-deviations, kind="stable")
    moving = [j for j in order[:MOST_PARTS].tolist() if deviations[j] > 0.0]
    if not moving:
        return Markup("")
    names, most = contributions.names(ranker.features()), float(deviations[moving[0]])
    within = " within queries" if part.groups is not None else ""
    together = contributions.shape[1] > ranker.width
    what = "curves, one a feature, and of what features give together" if together else "curves, one a feature"
    explanation = (
        f"The score is a sum of {what} ({ranker.header.features.map}). These move the scores of these "
        f"rows the most, by the deviation{within} of what they give; each is 0 at its features' means in training."
    )
    if ranker.unit_rows:
        explanation += " The sum is divided by the length of the mapped row."
    lines = [[names[j], bar(deviations[j] / most, f"{deviations[j]:.4g}")] for j in moving]
    curves = shapes(ranker, [j for j in moving if j < ranker.width][:MOST_SHAPES])
    pairs = surfaces(ranker, pairs_of(ranker, moving)[:MOST_SURFACES], part.dataset.X[:MOST_DOTS])
    caption = "What each feature gives to the score" + ("; below, what two give together, a dot a row" if pairs else "")
    drawings = [drawn(Shapes(curves, pairs), caption, WHOLE)] if curves or pairs else []
    return section(
        "Curves of the features",
        element("p", explanation),
        pictures(*drawings),
        table(["feature", "deviation of what it gives"], lines),
    )


def signed(value: float) -> str:
    return f"{value:+.4g}".replace("-", "−")
