"""Sections on the training: data, settings, convergence, time by part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from apsvm.models.header import Header
from apsvm.report import words
from apsvm.report.decisions import probabilities_in_words, threshold_in_words
from apsvm.report.drawing import WHOLE, drawn
from apsvm.report.page import Markup, breakable, element, facts, folded, pictures, section, table
from apsvm.report.pictures.base import PictureError
from apsvm.report.pictures.convergence import Convergence
from apsvm.report.run import JudgedRanker, Run
from apsvm.report.settings import settings_of, shown
from apsvm.report.words import in_seconds, share
from apsvm.trainers.summary import chosen

#: Tables with more rows are folded.
MOST_OPEN = 20
#: Names in a report for other counts than rows and queries.
_COUNTED = {"pairs": "pairs of the preference graph", "users_skipped": "users left out of the training"}


def _settings(run: Run) -> list[tuple[object, object]]:
    """Loss, metric and settings of all models, the options given, versions, machine and time."""
    headers = [header for _, header in run.headers()]
    values: dict[str, list[str]] = {}
    for header in headers:
        for name, value in _facts_of(header):
            values.setdefault(name, []).append(value)
    result: list[tuple[object, object]] = [(name, words.few(dict.fromkeys(each))) for name, each in values.items()]
    options = [
        f"--{name.replace('_', '-')}{'' if value is True else ' ' + shown(value)}"
        for name, value in run.command.get("options", {}).items()
        if name not in ("quiet", "verbose")
    ]
    if options:
        result.append(("options given", " ".join(options)))
    versions = headers[0].versions
    if versions:
        result.append(("versions", ", ".join(f"{name} {version}" for name, version in versions.items())))
    if run.command.get("machine"):
        result.append(("machine", run.command["machine"]))
    seconds = math.fsum(run.end.get("seconds", {}).values())
    if seconds:
        result.append(("time", in_seconds(seconds)))
    return result


def _facts_of(header: Header) -> Iterator[tuple[str, str]]:
    yield "loss", header.loss
    if header.metric is not None:
        yield "metric", header.metric
    if header.certificate is not None:
        yield "bound", header.certificate.bound
    for name, value in settings_of(header):
        if shown(value):
            yield name, shown(value)
    features = header.features
    if features.map != "linear":
        yield "features", features.map
    if features.scale != "none":
        yield "scaling", features.scale
    if features.bias is not None:
        yield "constant feature", shown(features.bias)
    yield "labels", words.meaning(header.labels)
    if header.threshold is not None:
        yield "positive", threshold_in_words(header.threshold)
    if header.calibration is not None:
        yield "probabilities", probabilities_in_words(header.calibration)
    if header.seed is not None:
        yield "seed", str(header.seed)


def data_of(run: Run, judged: Sequence[JudgedRanker]) -> Markup:
    result: list[tuple[object, object]] = []
    dataset = run.dataset
    if dataset is not None:
        rows, features = dataset.X.shape
        result += [
            ("file", breakable(dataset.source)),
            ("rows", f"{rows:,}"),
            ("features", f"{features:,}"),
            ("values", f"{dataset.n_values:,} ({share(dataset.n_values / max(1, rows * features))} of all)"),
        ]
        ranked, relevant = (judged[0].dataset, judged[0].relevant) if len(judged) == 1 else (dataset, None)
        if relevant is not None:
            positives = int(relevant.sum())
            result.append((f"positive {ranked.unit}", f"{positives:,} ({share(positives / relevant.size)})"))
        if ranked.groups is not None:
            result += _queries(ranked.groups, relevant, ranked.unit)
        if dataset.costs is not None:
            result.append(("cost:", "given"))
        result.append(("sha256", Markup(f"<code>{dataset.fingerprint[:16]}…</code>")))
    else:
        result += [(name, f"{run.command[name]:,}") for name in ("rows", "features", "values") if name in run.command]
        if run.command.get("data"):
            result.insert(0, ("file", run.command["data"]))
    data = run.headers()[0][1].data
    if data.queries_skipped:
        result.append(("queries left out of the training", f"{data.queries_skipped:,}"))
    result += [(_COUNTED.get(name, name.replace("_", " ")), f"{count:,}") for name, count in data.counts.items()]
    return section("Data", facts(result))


def _queries(groups: NDArray[np.int64], relevant: NDArray[np.bool_] | None, unit: str) -> list[tuple[object, object]]:
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    result: list[tuple[object, object]] = [
        ("queries", f"{sizes.size:,}"),
        (f"{unit} a query", f"{sizes.min():,} to {sizes.max():,}, median {np.median(sizes):g}"),
    ]
    if relevant is not None:
        positives = np.bincount(codes, weights=relevant)
        both = int(((positives > 0) & (positives < sizes)).sum())
        result.append((f"queries with both kinds of {unit}", f"{both:,}"))
    return result


def how_trained(run: Run) -> Markup:
    """The section on the training: its end, evidence, settings and time by part."""
    headers = run.headers()
    content: list[object] = []
    if len(headers) == 1:
        header = headers[0][1]
        said = (*words.certificate(header), *words.members(header), *chosen(header, header.metric), *header.cautions)
        content += [element("p", text) for text in said]
    else:
        content.append(_endings(headers))
    content.append(facts(_settings(run)))
    with suppress(PictureError):
        picture = drawn(Convergence.of_logs({"run": run.records}), "Convergence against steps and seconds", WHOLE)
        content.append(folded("Iterations", pictures(picture)))
    return section("How it was trained", *content)


def _endings(headers: Sequence[tuple[str, Header]]) -> Markup:
    """A table of each model's end of training and certificate."""
    rows = []
    for title, header in headers:
        bounds, unit = header.certificate, header.C or 1.0
        evidence = ["", ""] if bounds is None else [f"{bounds.gap / unit:.2g}", f"{bounds.tolerance / unit:.2g}"]
        rows.append([title, header.state, "" if header.C is None else f"{header.C:.4g}", *evidence])
    listed = table(["", "state", "C", "gap / C", "asked for"], rows, left=(0, 1))
    return listed if len(rows) <= MOST_OPEN else folded(f"How all {len(rows)} trainings ended", listed)
