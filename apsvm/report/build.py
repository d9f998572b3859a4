"""The page of a run, section by section."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from apsvm.data.dataset import DataError
from apsvm.metrics.evaluate import Evaluation
from apsvm.report.drawing import drawn
from apsvm.report.first_rows import first_rows_of, lowest_positives
from apsvm.report.judging import (
    drivers_of,
    evaluated,
    figure,
    metrics_of,
    worst_queries,
)
from apsvm.report.page import Markup, bar, breakable, element, folded, joined, page, pictures, section, table, tiles
from apsvm.report.pictures.precision_recall import PrecisionRecall, mean_and_each, mean_base_rate
from apsvm.report.run import JudgedRanker, Run, judge
from apsvm.report.training import data_of, how_trained
from apsvm.report.words import share

#: Rankers whose rows and weights are shown; with more classes, the worst.
MOST_PARTS = 6


def report(run: Run) -> str:
    """The whole page."""
    judged, failures = judged_rankers(run)
    title = f"{_name(run)} — apsvm report"
    one = judged[0] if len(judged) == 1 else None
    return page(
        title,
        _head(run, judged),
        *(element("p", note, class_="note") for note in (*run.notes, *failures)),
        *(_of_one(one, run) if one is not None else _of_several(run, judged)),
        data_of(run, judged),
        how_trained(run),
        element("p", f"Made by apsvm report of the run in {run.folder}.", class_="muted"),
    )


def _of_one(part: JudgedRanker, run: Run) -> Iterator[Markup]:
    """Sections on one ranker: rows, metrics, features, worst queries."""
    yield first_rows_of(part, run.lines)
    yield metrics_of(part)
    yield drivers_of(part)
    yield lowest_positives(part, run.lines)
    if part.groups is not None:
        yield worst_queries(part)


def judged_rankers(run: Run) -> tuple[list[JudgedRanker], list[str]]:
    """Every ranker on the rows, and why some cannot be judged."""
    judged: list[JudgedRanker] = []
    failures: list[str] = []
    if run.dataset is None:
        return judged, failures
    for title, ranker in run.rankers():
        try:
            judged.append(judge(title, ranker, run.dataset))
        except (DataError, ValueError) as error:
            failures.append(f"{title or 'The model'} cannot be judged on these rows: {error}")
    return judged, failures


def _name(run: Run) -> str:
    header = run.headers()[0][1]
    return f"{header.metric or header.loss} on {header.data.file}"


def _head(run: Run, judged: Sequence[JudgedRanker]) -> Markup:
    headers = [header for _, header in run.headers()]
    states = list(dict.fromkeys(header.state for header in headers))
    good = all(header.as_asked for header in headers)
    if good:
        state = states[0] if len(states) == 1 else "all as asked"
    else:
        state = next(header.state for header in headers if not header.as_asked)
    began = run.command.get("began", "")
    return joined(
        [
            element("h1", breakable(_name(run))),
            element(
                "p",
                element("span", state or "no state", class_=f"state {'good' if good else 'bad'}"),
                f" {began.replace('T', ' ').replace('Z', ' UTC')}" if began else "",
                class_="muted",
            ),
            tiles(_metric_tiles(run, judged)),
        ]
    )


def _metric_tiles(run: Run, judged: Sequence[JudgedRanker]) -> Iterator[tuple[str, str, str]]:
    results = [result for result in map(evaluated, judged) if result is not None]
    if not results:
        return
    if len(judged) == 1:
        header = judged[0].ranker.header
        held_out = header.details.get("held_out")
        in_full = "average precision (AP)"
        if isinstance(held_out, Mapping) and isinstance(held_out["AP"], Mapping):
            value, low, high = (held_out["AP"][name] for name in ("value", "low", "high"))
            yield in_full, f"{value:.4f}", f"on held-out rows, most likely {low:.2f} to {high:.2f} on others"
            in_full = "AP"
        if judged[0].groups is None:
            yield "share of positives", share(results[0].n_positives / results[0].n_rows), "the AP of a random order"
        is_own = judged[0].dataset.fingerprint == header.data.sha256
        where = "on its own training rows, which flatters" if is_own else "on the rows below"
        where = where if judged[0].groups is None else "mean over the queries"
        for name in dict.fromkeys([judged[0].trained_metric, "AP"]):
            if name in results[0].values:
                yield in_full if name == "AP" else name, f"{results[0].values[name]:.4f}", where
        return
    for name in dict.fromkeys([judged[0].trained_metric, "AP"]):
        values = [result.values[name] for result in results if name in result.values]
        if values:
            yield f"mean {name}", f"{math.fsum(values) / len(values):.4f}", f"of {len(values)} rankers"


def _in_order(judged: Sequence[JudgedRanker]) -> list[tuple[JudgedRanker, Evaluation | None]]:
    """Rankers and their figures, the lowest AP first."""
    evaluations = [(part, evaluated(part)) for part in judged]
    return sorted(evaluations, key=lambda pair: math.inf if pair[1] is None else pair[1].values.get("AP", math.inf))


def _of_several(run: Run, judged: Sequence[JudgedRanker]) -> Iterator[Markup]:
    """A table of all rankers and the curves of all; of the first rankers all the rest."""
    if not judged:
        return
    names = list(dict.fromkeys(["AP", "AUC", "P@10", "nDCG", judged[0].trained_metric]))
    evaluations = _in_order(judged)
    rows = [_row_of(part, result, names) for part, result in evaluations]
    means = [_mean([result.values.get(name) for _, result in evaluations if result is not None]) for name in names]
    rows.append([element("b", "mean"), "", *(element("b", figure(value)) for value in means)])
    yield section(
        "Metrics, the lowest AP first",
        table(["", "positives", *names], rows),
        *_curves([part for part, _ in evaluations]),
    )
    for at, (part, _) in enumerate(evaluations[:MOST_PARTS]):
        yield folded(f"{part.title}: rows, metrics, weights", *_of_one(part, run), is_open=at == 0)
    if len(evaluations) > MOST_PARTS:
        others = len(evaluations) - MOST_PARTS
        yield element("p", f"The other {others} have only the figures above.", class_="muted")


def _row_of(part: JudgedRanker, result: Evaluation | None, names: Sequence[str]) -> list[object]:
    values = {} if result is None else result.values
    ap, *others = (figure(values.get(name)) for name in names)
    return [part.title, f"{int(part.relevant.sum()):,}", bar(values.get("AP", 0.0), ap), *others]


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present else None


def _curves(judged: Sequence[JudgedRanker]) -> list[Markup]:
    """Precision and recall of all rankers that have both kinds of rows, and their mean."""
    curves = {part.title: curve for part in judged if (curve := part.curve) is not None}
    if not curves:
        return []
    picture = PrecisionRecall(mean_and_each(curves), mean_base_rate(curves))
    return [pictures(drawn(picture, "Precision and recall; the area is the AP"))]
