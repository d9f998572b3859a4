"""Sections on a ranker and rows: metrics and curves, worst queries, features."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from apsvm.data.features.additive import ALL
from apsvm.metrics.evaluate import Evaluation
from apsvm.models.base import norm_of
from apsvm.models.linear import LinearRanker
from apsvm.models.net import NetRanker
from apsvm.report import words
from apsvm.report.drawing import drawn
from apsvm.report.page import Markup, bar, element, pictures, section, table
from apsvm.report.pictures.precision_recall import Curve, PrecisionRecall
from apsvm.report.pictures.shapes import Shapes
from apsvm.report.pictures.top_of_list import TopOfList
from apsvm.report.run import JudgedRanker
from apsvm.report.shapes import NoShapesError, check_curved, label_of, pairs_of, shapes, surfaces

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
    explanation = f"Computed as by apsvm eval; rows of equal score are one block.{mean}"
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
    return "–" if value is None or math.isnan(value) else f"{value:.4f}"


def drivers_of(part: JudgedRanker) -> Markup:
    """Section on the features that drive the scores of these rows, by component; empty for a net."""
    count, content = part.ranker.components, list[Markup]()
    if isinstance(part.ranker, NetRanker):
        return Markup("")
    for component in range(count):
        content += [element("h3", f"Component {component + 1}")] if count > 1 else []
        content += _drivers_in(part, component)
    return section("What drives the score", *content)


def _drivers_in(part: JudgedRanker, component: int) -> Iterator[Markup]:
    """Each column's share in what moves the scores, by one component; the weights of features as they are, or the
    curves of mapped ones."""
    ranker, linear = part.ranker, part.ranker.linear_parts()[component]
    try:
        contributions = ranker.contributions(part.dataset.X, component)
    except ValueError as error:
        yield element("p", f"No feature has a share of its own: {error}.")
        return
    deviations, widths = contributions.deviations(part.groups), ranker.column_widths()
    if not deviations.any():
        yield element("p", "All weights are zero: every row has the same score.")
        return
    within = " within queries" if part.groups is not None else ""
    said = f"A feature's share is in proportion to the deviation{within} of what it gives to these scores."
    if ranker.unit_rows:
        said += " The scores are divided by the length of the row."
    names, weighed = [*ranker.column_names(), ALL], Markup("")
    if ranker.feature_map is None:
        nonzero, norm = int(np.count_nonzero(linear.coef)), words.number(norm_of(linear.coef))
        said += f" {nonzero:,} of {linear.coef.size:,} weights are not zero; their norm is {norm}."
        weighed = _shares(ranker.features(), deviations, linear.coef)
    elif ranker.components == 1:
        weighed = pictures(*_curves_of(linear, part, deviations))
    yield element("p", said)
    if ranker.feature_map is None and widths.size == ranker.width:  # a column is a feature
        yield weighed
        return
    shares = _shares(names, contributions.dealt_to(widths).deviations(part.groups))
    yield element("div", shares, weighed, class_="beside")


def _shares(
    names: Sequence[str], deviations: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> Markup:
    """A table of the largest shares, with weights where there are any."""
    order, total = np.argsort(-deviations, kind="stable")[:MOST_FEATURES], float(deviations.sum())
    rows = []
    for j in order[deviations[order] > 0.0].tolist():
        weight = [] if weights is None else [f"{weights[j]:+.4g}".replace("-", "−")]
        share = bar(deviations[j] / deviations[order[0]], words.share(deviations[j] / total))
        rows.append([names[j], *weight, share])
    return table(["feature", *([] if weights is None else ["weight"]), "share"], rows)


def _curves_of(
    ranker: LinearRanker, part: JudgedRanker, deviations: NDArray[np.float64]
) -> Iterator[tuple[Markup, str]]:
    """The curves of the features and surfaces of pairs that move these rows' scores most, by the ``deviations`` of the
    map's parts."""
    try:
        check_curved(ranker)
    except NoShapesError:
        return
    moving = [j for j in np.argsort(-deviations, kind="stable").tolist() if deviations[j] > 0.0]
    curves = shapes(ranker, [j for j in moving if j < ranker.width][:MOST_SHAPES])
    pairs = surfaces(ranker, pairs_of(ranker, moving[:MOST_PARTS])[:MOST_SURFACES], part.dataset.X[:MOST_DOTS])
    caption, alone = "What a feature alone gives to the score; 0 at its mean in training", deviations[: ranker.width]
    if alone.sum() < deviations.sum():
        not_drawn = "more features give together is not drawn" if pairs else "features give together is not drawn"
        caption += f": {words.share(float(alone.sum() / deviations.sum()))} of what moves the scores. What {not_drawn}"
    if pairs:
        caption += "; below, what two give together, a dot a row"
    if curves or pairs:
        yield drawn(Shapes(curves, pairs, label_of(ranker)), caption)
