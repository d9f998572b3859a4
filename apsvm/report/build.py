"""The page of a run, section by section."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from apsvm.data.dataset import DataError
from apsvm.metrics.curves import mean_curve
from apsvm.model import ItemRanker
from apsvm.pictures.precision_recall import Curve, PrecisionRecall
from apsvm.report import words
from apsvm.report.judging import MOST_FEATURES, evaluated, metrics_of, most_violating, signed, weights_of, worst_queries
from apsvm.report.page import Drawn, Markup, bar, element, folded, joined, page, pictures, section, table, tiles
from apsvm.report.run import Judged, Run, judge
from apsvm.report.training import convergence, data_of, time_by_part, what_was_trained
from apsvm.report.words import in_seconds

#: Rankers whose rows and weights are shown, of classes the worst.
MOST_PARTS = 6
MOST_NAMED = 10


def report(run: Run) -> str:
    """The whole page."""
    drawn = Drawn()
    judged, failures = _judged(run)
    title = f"{_name(run)} — apsvm report"
    several = len(judged) > 1
    parts = list(_several(run, judged, drawn)) if several else [_alone(part, run, drawn) for part in judged]
    return page(
        title,
        _head(run, judged),
        *(element("p", note, class_="note") for note in (*run.notes, *failures)),
        what_was_trained(run),
        data_of(run, judged),
        convergence(run, drawn),
        *parts,
        *([] if judged else [_weights_alone(run)]),
        time_by_part(run),
        element("p", f"Made by apsvm report of the run in {run.folder}.", class_="muted"),
    )


def _judged(run: Run) -> tuple[list[Judged], list[str]]:
    """Every linear ranker on the rows, and why some cannot be judged."""
    found: list[Judged] = []
    failures: list[str] = []
    if run.dataset is None:
        return found, failures
    for finished in run.finished:
        model = finished.model
        if isinstance(model, ItemRanker):
            continue
        for title, ranker in finished.rankers():
            try:
                found.append(judge(title, ranker, finished.end, run.dataset))
            except (DataError, ValueError) as error:
                failures.append(f"{title or 'The model'} cannot be judged on these rows: {error}")
    return found, failures


def _name(run: Run) -> str:
    headers = run.headers()
    if headers:
        return f"{headers[0][1]['loss']} on {headers[0][1]['data']['file']}"
    data = run.command.get("data", "").rsplit("/", 1)[-1]
    return f"{run.start['loss']} on {data}" if data and "loss" in run.start else run.folder


def _head(run: Run, judged: Sequence[Judged]) -> Markup:
    headers = run.headers()
    states = [str(header["state"]) for _, header in headers]
    if not states:
        state, good = "no model", False
    elif all(one in words.AS_ASKED for one in states):
        state, good = states[0] if len(set(states)) == 1 else "all as asked", True
    else:
        state, good = next(one for one in states if one not in words.AS_ASKED), False
    began = run.command.get("began", "")
    return joined(
        [
            element("h1", _name(run)),
            element(
                "p",
                element("span", state, class_=f"state {'good' if good else 'bad'}"),
                f" {began.replace('T', ' ').replace('Z', ' UTC')}" if began else "",
                class_="muted",
            ),
            tiles(_tiles(run, judged, headers)),
        ]
    )


def _tiles(
    run: Run, judged: Sequence[Judged], headers: Sequence[tuple[str, Mapping[str, Any]]]
) -> Iterator[tuple[str, str, str]]:
    yield from _metric_tiles(run, judged)
    bounds = [(header["certificate"], header["C"]) for _, header in headers if "certificate" in header]
    if bounds:
        worst = max(found["gap"] / C for found, C in bounds)
        asked = max(found["tolerance"] / C for found, C in bounds)
        yield "gap / C", f"{worst:.2g}", f"{asked:.2g} asked for" + (", the widest" if len(bounds) > 1 else "")
    steps = sum(int(header.get("iterations", header.get("epochs", 0))) for _, header in headers)
    if steps:
        yield ("epochs" if any("epochs" in h for _, h in headers) else "iterations"), f"{steps:,}", "in all"
    seconds = sum(math.fsum(finished.end.get("seconds", {}).values()) for finished in run.finished)
    if seconds:
        yield "time", in_seconds(seconds), "reading included"


def _metric_tiles(run: Run, judged: Sequence[Judged]) -> Iterator[tuple[str, str, str]]:
    results = [result for result in map(evaluated, judged) if result is not None]
    if not results:
        return
    if len(judged) == 1:
        where = "on the rows below" if judged[0].groups is None else "mean over the queries"
        for name in dict.fromkeys([judged[0].trained_metric, "AP"]):
            yield name, f"{results[0].values[name]:.4f}", where
        return
    values = [result.values["AP"] for result in results]
    if run.of_classes:
        yield "mean AP", f"{math.fsum(values) / len(values):.4f}", f"of {len(values)} rankers"
    else:
        yield "best AP", f"{max(values):.4f}", f"of {len(values)} models, on the rows below"


def _several(run: Run, judged: Sequence[Judged], drawn: Drawn) -> Iterator[Markup]:
    """A table of all rankers, the curves of all, and of the worst ones all the rest; of several values of C in the
    order trained."""
    evaluations = [(part, evaluated(part)) for part in judged]
    if run.of_classes:
        evaluations.sort(key=lambda pair: math.inf if pair[1] is None else pair[1].values["AP"])
    names = ("AP", "AUC", "P@10", "nDCG")
    rows: list[list[object]] = []
    for part, result in evaluations:
        values = ["–"] * len(names) if result is None else [f"{result.values[name]:.6f}" for name in names]
        at = 0.0 if result is None else result.values["AP"]
        rows.append([part.title, f"{int(part.relevant.sum()):,}", bar(at, values[0]), *values[1:]])
    found = [(part, result) for part, result in evaluations if result is not None]
    content: list[object] = []
    if found:
        curves = [part.curve for part, _ in found]
        named = len(found) <= MOST_NAMED
        shown = [
            Curve(f"{part.title}, AP {one.ap:.4f}" if named else "", one.steps, aside=run.of_classes)
            for (part, _), one in zip(found, curves, strict=True)
        ]
        if run.of_classes:
            means = [math.fsum(result.values[name] for _, result in found) / len(found) for name in names]
            rows.append([element("b", "mean"), "", *(element("b", f"{value:.6f}") for value in means)])
            shown.insert(0, Curve(f"mean, AP {means[0]:.4f}", mean_curve([one.steps for one in curves])))
        rate = math.fsum(one.base_rate for one in curves) / len(curves)
        content = [pictures(drawn(PrecisionRecall(shown, rate), "Precision and recall; the area is the AP"))]
    yield section(
        "Metrics, the lowest AP first" if run.of_classes else "Metrics",
        table(["", "positives", *names], rows),
        *content,
    )
    for at, (part, _) in enumerate(evaluations[:MOST_PARTS]):
        inner = joined([metrics_of(part, drawn), *_details(part, run)])
        yield folded(f"{part.title}: metrics, rows, weights", inner, is_open=at == 0)
    if len(evaluations) > MOST_PARTS:
        others = len(evaluations) - MOST_PARTS
        yield element("p", f"Of the other {others} only the figures above are shown.", class_="muted")


def _alone(part: Judged, run: Run, drawn: Drawn) -> Markup:
    """The sections of the one ranker there is."""
    return joined([metrics_of(part, drawn), *_details(part, run)])


def _details(part: Judged, run: Run) -> list[Markup]:
    found = [most_violating(part, run.lines)]
    if part.groups is not None:
        found.append(worst_queries(part))
    return [*found, weights_of(part)]


def _weights_alone(run: Run) -> Markup:
    """The largest weights where there are no rows to weigh them by."""
    shown: list[object] = []
    for finished in run.finished:
        if isinstance(finished.model, ItemRanker):
            continue
        for title, ranker in list(finished.rankers())[:MOST_PARTS]:
            order = np.argsort(-np.abs(ranker.coef), kind="stable")[:MOST_FEATURES]
            base = 0 if ranker.zero_based else 1
            shown += [element("h3", title)] if title else []
            rows = [[str(j + base), signed(ranker.coef[j])] for j in order.tolist()]
            shown.append(table(["feature", "weight"], rows))
    return section("Weights of the largest features", *shown) if shown else Markup("")
