"""The data of ``apsvm.report.pictures`` as charts that the page draws itself (``svg``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from apsvm.metrics.curves import Steps
from apsvm.report.pictures.convergence import MOST_NAMED, Convergence, Panel
from apsvm.report.pictures.heatmap import Heatmap
from apsvm.report.pictures.histogram import Histogram
from apsvm.report.pictures.precision_recall import Curve
from apsvm.report.pictures.shapes import Shape
from apsvm.report.svg import LOWER_BOUND, Chart, HeatMap, Line


def of_convergence(picture: Convergence) -> Iterator[tuple[Chart, str]]:
    """Each panel against steps and against seconds, with the words under it."""
    steps = f"{picture.step}es" if picture.step.endswith("s") else f"{picture.step}s"
    for panel in picture.panels:
        yield _of_panel(panel, picture.step), f"{panel.label} against {steps}"
        yield _of_panel(panel, "seconds"), f"{panel.label} against seconds"


def _of_panel(panel: Panel, against: str) -> Chart:
    named = len({line.name for line in panel.lines}) <= MOST_NAMED
    by_seconds = against == "seconds"
    lines = [
        Line(
            line.name if named else "",
            line.seconds if by_seconds else line.steps,
            line.values,
            line.series,
            LOWER_BOUND if line.dashed else None,
            marked=True,
        )
        for line in panel.lines
    ]
    if any(line.dashed and not line.name for line in panel.lines):
        lines.append(Line("dual", [], [], None, LOWER_BOUND))
    return Chart(
        lines,
        against,
        panel.label,
        logarithmic_y=panel.logarithmic,
        x_from_zero=by_seconds,
        whole_x=not by_seconds,
        level=("asked for", panel.level) if panel.level is not None and panel.level > 0 else None,
    )


def of_ranks(picture: Heatmap) -> Chart:
    """Interleaving ranks, iteration by iteration."""
    heat = HeatMap(picture.pixels(), picture.n_pos + 1, picture.n_neg, len(picture.rows))
    return Chart([], "negatives, highest score first", "iteration", whole_x=True, heat=heat)


def of_precision_recall(curves: Sequence[Curve], base_rate: float) -> Chart:
    """Step functions whose area is the average precision; ``base_rate`` : the precision of a random order."""
    lines = []
    at = 0
    for curve in curves:
        x, y = _corners(curve.steps)
        if curve.aside and not curve.name:
            lines.append(Line("", x, y, None, "", "before", width=0.5))
        else:
            lines.append(Line(curve.name, x, y, at, None, "before", width=0.9 if curve.aside else 1.6))
            at += 1
    return Chart(
        lines[::-1] if any(curve.aside for curve in curves) else lines,
        "recall",
        "precision",
        x_limits=(0.0, 1.0),
        y_limits=(0.0, 1.02),
        level=(f"random order, {base_rate:.3g}", base_rate),
    )


def _corners(steps: Steps) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.concatenate([[0.0], steps.recall]), np.concatenate([steps.precision[:1], steps.precision])


def precisions_at(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Precision among the first k rows, k = 1..n, of one list: scores (n,) float64, relevant (n,) bool; (n,) float64.
    Of rows of equal score it is the mean over their orders."""
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    ends = np.append(np.flatnonzero(falling[1:] != falling[:-1]) + 1, falling.size)
    hits = np.concatenate([[0.0], np.cumsum(relevant[order])])
    k = np.arange(1, falling.size + 1)
    precision: NDArray[np.float64] = np.interp(k, np.append(0, ends), hits[np.append(0, ends)]) / k
    return precision


def of_top(lists: Mapping[str, tuple[NDArray[np.float64], NDArray[np.bool_]]], base_rate: float) -> Chart:
    """Precision among the first k rows against k, for lists of scores and who is relevant, by name."""
    lines = []
    longest = 2
    for at, (name, (scores, relevant)) in enumerate(lists.items()):
        precision = precisions_at(scores, relevant)
        lines.append(Line(name, np.arange(1, precision.size + 1), precision, at, None))
        longest = max(longest, precision.size)
    return Chart(
        lines,
        "rows from the top",
        "share that is positive",
        logarithmic_x=True,
        x_limits=(1.0, longest),
        y_limits=(0.0, 1.02),
        percent=True,
        level=(f"random order, {base_rate:.3g}", base_rate),
    )


def of_scores(values: Mapping[str, NDArray[np.float64]]) -> Chart:
    """Shares of the scores of each kind of row."""
    edges, shares = Histogram(values).shares()
    filled = len(shares) <= 2
    lines = [
        Line(name, edges, share, at, None, "edges", filled=filled, width=1.2)
        for at, (name, share) in enumerate(shares.items())
    ]
    return Chart(lines, "score", "share of the kind", y_from_zero=True, percent=True)


def of_shapes(shapes: Sequence[Shape], y_label: str = "gives to the score") -> Iterator[tuple[Chart, str]]:
    """A chart for each curve, all of one scale, and the name of its feature."""
    low = min(0.0, *(float(shape.y.min()) for shape in shapes))
    high = max(0.0, *(float(shape.y.max()) for shape in shapes))
    margin = 0.04 * (high - low) or 1.0
    for shape in shapes:
        lines = [Line("", shape.x[[0, -1]], [0.0, 0.0], None, "", width=0.7), Line("", shape.x, shape.y, 0)]
        yield Chart(lines, shape.name, y_label, y_limits=(low - margin, high + margin)), shape.name
