"""The page that compares runs: their metrics side by side, their curves over each other, and what was different."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apsvm.metrics.curves import Steps, mean_curve
from apsvm.report.build import judged_rankers
from apsvm.report.drawing import WHOLE, drawn
from apsvm.report.judging import evaluated, figure
from apsvm.report.page import Markup, element, page, pictures, section, table
from apsvm.report.pictures.base import PictureError
from apsvm.report.pictures.convergence import Convergence
from apsvm.report.pictures.precision_recall import Curve, PrecisionRecall
from apsvm.report.pictures.top_of_list import TopOfList
from apsvm.report.run import JudgedRanker, Run, metrics_to
from apsvm.report.training import facts_of_run
from apsvm.report.words import few, in_seconds

#: More curves than this are no picture.
MOST_CURVES = 12


@dataclass(frozen=True, slots=True)
class Column:
    """A model, or all the classes of a run together.

    Attributes
    ----------
    name : of the run, and of the model where it has several
    rankers : one, or one a class
    """

    name: str
    run: Run
    rankers: Sequence[JudgedRanker]

    def value(self, metric: str) -> float | None:
        """Of the model on its rows, or the mean over the classes that have one."""
        results = [result for result in map(evaluated, self.rankers) if result is not None]
        present = [result.values[metric] for result in results if metric in result.values]
        return math.fsum(present) / len(present) if present else None

    def curve(self) -> tuple[Steps, float] | None:
        """Precision and recall, and the share of positive rows; means over classes."""
        present = [curve for curve in (ranker.curve for ranker in self.rankers) if curve is not None]
        if not present:
            return None
        rate = math.fsum(curve.base_rate for curve in present) / len(present)
        return mean_curve([curve.steps for curve in present]), rate


def comparison(runs: Sequence[Run]) -> str:
    """The whole page, of runs with different names (``Run.folder``)."""
    columns: list[Column] = []
    failures: list[str] = []
    for run in runs:
        judged, failed = judged_rankers(run)
        columns += _columns(run, judged)
        failures += [f"{run.folder}: {failure}" for failure in failed]
    notes = [f"{run.folder}: {note}" for run in runs for note in run.notes] + failures
    if len({run.dataset.fingerprint for run in runs if run.dataset is not None}) > 1:
        notes.insert(0, "The runs are not judged on the same rows: their figures do not compare (--data)")
    names = few(run.folder for run in runs)
    return page(
        f"{names} — apsvm report",
        element("h1", f"{len(runs)} runs: {names}"),
        *(element("p", f"{note}.", class_="note") for note in notes),
        _metrics(columns),
        _curves(columns),
        _endings(runs),
        _convergence(runs),
        _differences(runs),
        element("p", "Made by apsvm report.", class_="muted"),
    )


def _columns(run: Run, judged: Sequence[JudgedRanker]) -> Iterator[Column]:
    if run.of_classes and judged:
        yield Column(run.folder, run, judged)
        return
    for part in judged:
        yield Column(run.folder if len(judged) == 1 else f"{run.folder}, {part.title}", run, [part])


def _metrics(columns: Sequence[Column]) -> Markup:
    """A metric a line, the best value of it in bold; what the models were trained for comes first."""
    if not columns:
        return section("Metrics", element("p", "None: no run has rows to be judged on (--data)."))
    trained = [ranker.trained_metric for column in columns for ranker in column.rankers]
    rows: list[list[object]] = []
    top = columns[0].run.top
    for name in dict.fromkeys([*trained, *metrics_to(top)]):
        values = [column.value(name) for column in columns]
        present = [value for value in values if value is not None]
        if present:
            rows.append([name, *(_cell(value, max(present), len(present) > 1) for value in values)])
    found = [column.rankers[0].found() if len(column.rankers) == 1 else None for column in columns]
    if any(found):
        rows.append([f"found in the first {top:,}", *(one or "–" for one in found)])
    rows.append(["rows", *(f"{column.rankers[0].scores.size:,}" for column in columns)])
    content: list[object] = [table(["metric", *(column.name for column in columns)], rows)]
    if any(len(column.rankers) > 1 for column in columns):
        content.insert(0, element("p", "Of runs with a ranker for each class, means over the classes."))
    return section("Metrics", *content)


def _cell(value: float | None, best: float, several: bool) -> Markup | str:
    text = figure(value)
    return element("b", text) if several and value == best else text


def _curves(columns: Sequence[Column]) -> Markup:
    present = [(column, curve) for column in columns if (curve := column.curve()) is not None]
    if not present or len(present) > MOST_CURVES:
        return Markup("")
    rate = math.fsum(rate for _, (_, rate) in present) / len(present)
    lines = [Curve(f"{column.name}, AP {steps.area:.4f}", steps) for column, (steps, _) in present]
    shown = [drawn(PrecisionRecall(lines, rate), "Precision and recall; the area is the AP")]
    lists = {
        column.name: (column.rankers[0].scores, column.rankers[0].relevant)
        for column, _ in present
        if len(column.rankers) == 1 and column.rankers[0].groups is None
    }
    if len(lists) == len(present):
        shown.append(drawn(TopOfList(lists, rate), "Positives among the first rows of the list"))
    return section("Curves", pictures(*shown))


def _endings(runs: Sequence[Run]) -> Markup:
    """How each run ended, and what it took."""
    rows = []
    for run in runs:
        headers = [header for _, header in run.headers()]
        good = bool(headers) and all(header.as_asked for header in headers)
        state = few(dict.fromkeys(header.state for header in headers)) if headers else "no model"
        gaps = [header.certificate.gap / (header.C or 1.0) for header in headers if header.certificate is not None]
        seconds = math.fsum(value for one in run.finished for value in one.end.get("seconds", {}).values())
        counts = [header.iterations for header in headers if header.iterations is not None]
        rows.append(
            [
                run.folder,
                element("span", state, class_="good" if good else "bad"),
                few(dict.fromkeys(header.loss for header in headers)),
                f"{max(gaps):.2g}" if gaps else "–",
                f"{sum(counts):,}" if counts else "–",
                in_seconds(seconds) if seconds else "–",
            ]
        )
    return section(
        "How they ended", table(["run", "state", "loss", "gap / C", "iterations", "time"], rows, left=(0, 1))
    )


def _convergence(runs: Sequence[Run]) -> Markup:
    try:
        picture = Convergence.of_logs({run.folder: run.records for run in runs})
    except PictureError as error:
        return section("Convergence", element("p", f"No picture: {error}.", class_="muted"))
    return section("Convergence", pictures(drawn(picture, "Convergence against steps and seconds", WHOLE)))


def _differences(runs: Sequence[Run]) -> Markup:
    """The settings in which the runs are not all alike."""
    facts = [facts_of_run(run) for run in runs]
    names = dict.fromkeys(name for one in facts for name in one)
    values = {name: [one.get(name, "–") for one in facts] for name in names}
    rows = [[name, *several] for name, several in values.items() if len(set(several)) > 1]
    if not rows:
        return section("What was different", element("p", "Nothing in how they were trained."))
    heading = ["", *(run.folder for run in runs)]
    return section("What was different", table(heading, rows, left=range(len(heading))))
