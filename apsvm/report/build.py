"""The page of a run, section by section."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from apsvm.data.dataset import DataError
from apsvm.metrics import MetricError
from apsvm.metrics.curves import judged_curve, mean_curve
from apsvm.model import ItemRanker
from apsvm.pictures.precision_recall import Curve, PrecisionRecall
from apsvm.report import words
from apsvm.report.judging import MOST_FEATURES, evaluated, metrics_of, most_violating, signed, weights_of, worst_queries
from apsvm.report.page import Drawn, Markup, bar, element, folded, joined, page, pictures, section, table, tiles
from apsvm.report.run import Judged, Run, judge
from apsvm.report.training import convergence, data_of, time_by_part, what_was_trained
from apsvm.report.words import in_seconds

#: Classes whose rows and weights are shown, the worst first.
MOST_CLASSES = 6
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
    data = run.command.get("data", "")
    return f"{run.command.get('options', {}).get('loss', 'ap')} on {data.rsplit('/', 1)[-1]}" if data else run.folder


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
    if judged:
        found = [one for one in (_AP(part) for part in judged) if one is not None]
        if found and len(judged) == 1:
            queries = judged[0].groups is not None
            yield "AP", f"{found[0]:.4f}", "mean over the queries" if queries else "on the rows below"
        elif found:
            yield "mean AP", f"{math.fsum(found) / len(found):.4f}", f"of {len(found)} rankers"
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


def _AP(part: Judged) -> float | None:
    try:
        return judged_curve(part.scores, part.judgements, part.relevant_from, part.groups).ap
    except MetricError:
        return None


def _several(run: Run, judged: Sequence[Judged], drawn: Drawn) -> Iterator[Markup]:
    """A table of all rankers, the curves of all, and of the worst ones all the rest."""
    evaluations = [(part, evaluated(part)) for part in judged]
    ordered = sorted(evaluations, key=lambda pair: math.inf if pair[1] is None else pair[1].values["AP"])
    names = ("AP", "AUC", "P@10", "nDCG", "F1")
    rows: list[list[object]] = []
    for part, result in ordered:
        values = ["–"] * len(names) if result is None else [f"{result.values[name]:.6f}" for name in names]
        share = 0.0 if result is None else result.values["AP"]
        rows.append([part.title, f"{int(part.relevant.sum()):,}", bar(share, values[0]), *values[1:]])
    found = [(part, result) for part, result in ordered if result is not None]
    means = [math.fsum(result.values[name] for _, result in found) / len(found) for name in names] if found else []
    if found:
        rows.append([element("b", "mean"), "", *(element("b", f"{value:.6f}") for value in means)])
    content: list[object] = [table(["", "positives", *names], rows)]
    if found:
        judged_curves = [
            judged_curve(part.scores, part.judgements, part.relevant_from, part.groups) for part, _ in found
        ]
        curves = [Curve(f"mean, AP {means[0]:.4f}", mean_curve([one.steps for one in judged_curves]))]
        few = len(found) <= 10
        curves += [
            Curve(f"{part.title}, AP {one.ap:.4f}" if few else "", one.steps, aside=True)
            for (part, _), one in zip(found, judged_curves, strict=True)
        ]
        rate = math.fsum(one.base_rate for one in judged_curves) / len(judged_curves)
        content.append(pictures(drawn(PrecisionRecall(curves, rate), "Precision and recall; the area is the AP")))
    yield section("Metrics, the lowest AP first", *content)
    for at, (part, _) in enumerate(ordered[:MOST_CLASSES]):
        inner = joined([metrics_of(part, drawn), *_details(part, run)])
        yield folded(f"{part.title}: metrics, rows, weights", inner, is_open=at == 0)
    if len(ordered) > MOST_CLASSES:
        others = len(ordered) - MOST_CLASSES
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
        for title, ranker in list(finished.rankers())[:MOST_CLASSES]:
            order = np.argsort(-np.abs(ranker.coef), kind="stable")[:MOST_FEATURES]
            base = 0 if ranker.zero_based else 1
            shown += [element("h3", title)] if title else []
            rows = [[str(j + base), signed(ranker.coef[j])] for j in order.tolist()]
            shown.append(table(["feature", "weight"], rows))
    return section("Weights of the largest features", *shown) if shown else Markup("")
