"""Sections on a ranker and rows: metrics with the precision–recall curve, and what drives the score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from apsvm.data.features.additive import ALL, Contributions
from apsvm.models.base import norm_of
from apsvm.models.linear import LinearRanker
from apsvm.models.net import NetRanker
from apsvm.report.page import Markup, bar, drawn, element, section, table
from apsvm.report.pictures.base import PictureError
from apsvm.report.pictures.precision_recall import Curve, PrecisionRecall
from apsvm.report.pictures.shapes import Shapes
from apsvm.report.run import JudgedRanker
from apsvm.report.words import percent

MOST_FEATURES = 15
#: Curves and surfaces drawn, and rows drawn on a surface.
MOST_SHAPES, MOST_DOTS = (9, 3), 1000


def metrics_of(part: JudgedRanker) -> Markup:
    """Section on the metrics, with the precision–recall curve."""
    result, text, of_queries = part.evaluation, "Computed as by apsvm eval; rows of equal score are one block.", ""
    if part.groups is not None:
        of_queries = ", mean of the queries"
        used = result.n_groups - result.groups_skipped
        text += f" Figures are means over {used:,} of {result.n_groups:,} queries, those with both kinds of rows"
        text += "." if part.target.grades is None else "; metrics that read grades need different grades only."
    if part.target.lowest_relevant is not None:
        text += f" Rows of grade {part.target.lowest_relevant:g} and above are relevant; nDCG and WMW read the grades."
    content = [table(["metric", "value"], [[name, f"{value:.6f}"] for name, value in result.values.items()])]
    if part.curve is not None:
        curve = PrecisionRecall([Curve(f"AP {part.curve.ap:.4f}", part.curve.steps)], part.curve.base_rate)
        content.append(drawn(curve, f"Precision and recall{of_queries}"))
    return section("Metrics", element("p", text), element("div", *content, class_="beside"))


def drivers_of(part: JudgedRanker) -> Markup:
    """Section on the features that drive the scores of these rows, by component; empty for a net."""
    if isinstance(part.ranker, NetRanker):
        return Markup("")
    try:
        each = part.ranker.contributions(part.dataset.X)
    except ValueError as error:
        return section("What drives the score", element("p", f"No feature has a share of its own: {error}."))
    content = list[Markup]()
    for number, (linear, contributions) in enumerate(zip(part.ranker.linear_parts(), each, strict=True), start=1):
        content += [element("h3", f"Component {number}")] if len(each) > 1 else []
        content += _drivers_in(part, linear, contributions)
    return section("What drives the score", *content)


def _drivers_in(part: JudgedRanker, linear: LinearRanker, contributions: Contributions) -> Iterator[Markup]:
    """Each column's share in what moves the scores, by one component; the weights of features as they are, or the
    curves of mapped ones."""
    ranker, deviations = part.ranker, contributions.deviations(part.groups)
    columns, widths = ranker.table_columns()
    if not deviations.any():
        yield element("p", "All weights are zero: every row has the same score.")
        return
    within = " within queries" if part.groups is not None else ""
    text = f"A feature's share is in proportion to the deviation{within} of its contribution to these scores."
    if ranker.unit_rows:
        text += " The scores are divided by the length of the row."
    tables = [] if widths.size == ranker.width and ranker.feature_map is None else [
        _shares([*columns, ALL], contributions.dealt_to(widths).deviations(part.groups))
    ]  # fmt: skip
    if ranker.feature_map is None:
        nonzero = int(np.count_nonzero(linear.coef))
        text += f" {nonzero:,} of {linear.coef.size:,} weights are not zero; their norm is {norm_of(linear.coef):.6g}."
        tables.append(_shares(ranker.features(), deviations, linear.coef))
    elif ranker.components == 1:
        tables += _curves(part, deviations)
    yield element("p", text)
    yield element("div", *tables, class_="beside")


def _shares(
    names: Sequence[str], deviations: NDArray[np.float64], weights: NDArray[np.float64] | None = None
) -> Markup:
    """A table of the largest shares, with weights where there are any."""
    order, total = np.argsort(-deviations, kind="stable")[:MOST_FEATURES], float(deviations.sum())
    rows = []
    for j in order[deviations[order] > 0.0].tolist():
        weight = [] if weights is None else [f"{weights[j]:+.4g}".replace("-", "−")]
        rows.append([names[j], *weight, bar(deviations[j] / deviations[order[0]], percent(deviations[j] / total))])
    return table(["feature", *([] if weights is None else ["weight"]), "share"], rows)


def _curves(part: JudgedRanker, deviations: NDArray[np.float64]) -> Iterator[Markup]:
    """The curves of the features and surfaces of pairs that move these rows' scores most, by the ``deviations`` of the
    map's parts; none if the map gives features no curves."""
    ranker = part.ranker.linear_parts()[0]
    try:
        picture = Shapes.of_ranker(ranker, MOST_SHAPES, deviations, part.dataset.X[:MOST_DOTS])
    except PictureError:
        return
    caption, alone = "What a feature alone gives to the score; 0 at its mean in training", deviations[: ranker.width]
    if alone.sum() < deviations.sum():
        together = "more features" if picture.surfaces else "features"
        caption += f": {percent(float(alone.sum() / deviations.sum()))} of what moves the scores. What {together} give "
        caption += "together is not drawn"
    if picture.surfaces:
        caption += "; below, what two give together, a dot a row"
    yield drawn(picture, caption)
