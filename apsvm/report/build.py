"""The page of a run, section by section."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np

from apsvm.report.first_rows import first_rows_of, lowest_positives
from apsvm.report.judging import drivers_of, metrics_of
from apsvm.report.page import Markup, bar, breakable, drawn, element, facts, folded, page, section, table, tiles
from apsvm.report.pictures.base import PictureError
from apsvm.report.pictures.convergence import Convergence
from apsvm.report.pictures.precision_recall import PrecisionRecall, mean_and_each, mean_base_rate
from apsvm.report.pictures.style import PAGE
from apsvm.report.run import JudgedRanker, Run
from apsvm.report.words import (
    as_text,
    certificate,
    meaning,
    members,
    percent,
    probabilities_in_words,
    settings_of,
    threshold_in_words,
)
from apsvm.trainers.summary import chosen

#: Rankers whose rows and weights are shown; with more classes, the worst.
MOST_PARTS = 6
#: Names in a report for other counts than rows and queries.
_COUNTED = {"pairs": "pairs of the preference graph", "users_skipped": "users left out of the training"}


def report(run: Run) -> str:
    """The whole page."""
    (judged, failures), header = run.judged(), run.model.header
    name = f"{header.metric or header.loss} on {header.data.file}"
    began = run.command.get("began", "").replace("T", " ").replace("Z", " UTC")
    state = element("span", header.state or "no state", class_=f"state {'good' if header.as_asked else 'bad'}")
    return page(
        f"{name} — apsvm report",
        element("h1", breakable(name)),
        element("p", state, f" {began}", class_="muted"),
        tiles(_tiles(judged)),
        *(element("p", note, class_="note") for note in (*run.notes, *failures)),
        *(_of_one(judged[0], run) if len(judged) == 1 else _of_several(judged, run)),
        _data(run, judged),
        _how_trained(run),
        element("p", f"Made by apsvm report of the run in {run.folder}.", class_="muted"),
    )


def _of_one(part: JudgedRanker, run: Run) -> Iterator[Markup]:
    """Sections on one ranker: rows, metrics, features."""
    yield first_rows_of(part, run.lines)
    yield metrics_of(part)
    yield drivers_of(part)
    yield lowest_positives(part, run.lines)


def _of_several(judged: Sequence[JudgedRanker], run: Run) -> Iterator[Markup]:
    """A table of all rankers, the lowest AP first, with their curves; the sections of the first few."""
    if not judged:
        return
    names = list(dict.fromkeys(["AP", "AUC", "P@10", "nDCG", judged[0].metric]))
    judged = sorted(judged, key=lambda part: part.evaluation.values.get("AP", math.inf))
    values = np.array([[part.evaluation.values.get(name, math.nan) for name in names] for part in judged])
    rows: list[list[object]] = []
    for part, of_part in zip(judged, values, strict=True):
        ap, *others = map(_figure, of_part)
        rows.append([part.title, f"{part.target.relevant.sum():,}", bar(of_part[0], ap), *others])
    means = [column[~np.isnan(column)].mean() if (~np.isnan(column)).any() else math.nan for column in values.T]
    rows.append([element("b", "mean"), "", *(element("b", _figure(mean)) for mean in means)])
    content = [table(["", "positives", *names], rows)]
    curves = {part.title: part.curve for part in judged if part.curve is not None}
    if curves:
        picture = PrecisionRecall(mean_and_each(curves), mean_base_rate(curves))
        content.append(drawn(picture, "Precision and recall; the area is the AP", PAGE))
    yield section("Metrics, the lowest AP first", *content)
    for at, part in enumerate(judged[:MOST_PARTS]):
        yield folded(f"{part.title}: rows, metrics, weights", *_of_one(part, run), is_open=at == 0)
    if len(judged) > MOST_PARTS:
        yield element("p", f"The other {len(judged) - MOST_PARTS} have only the figures above.", class_="muted")


def _figure(value: float) -> str:
    """A metric's value, or a dash without one."""
    return "–" if math.isnan(value) else f"{value:.4f}"


def _tiles(judged: Sequence[JudgedRanker]) -> Iterator[tuple[str, str, str]]:
    """The figures that matter most: AP on held-out rows, and the metric of the loss and AP on these rows."""
    if not judged:
        return
    part, header, names = judged[0], judged[0].ranker.header, list(dict.fromkeys([judged[0].metric, "AP"]))
    if len(judged) > 1:
        for name in names:
            values = [ranker.evaluation.values[name] for ranker in judged if name in ranker.evaluation.values]
            yield f"mean {name}", _figure(float(np.mean(values))) if values else "–", f"of {len(values)} rankers"
        return
    held_out = header.details.get("held_out")
    if isinstance(held_out, Mapping) and isinstance(held_out["AP"], Mapping):
        value, low, high = (held_out["AP"][name] for name in ("value", "low", "high"))
        yield "AP on held-out rows", f"{value:.4f}", f"most likely {low:.2f} to {high:.2f} on others"
    if part.groups is None:
        yield "share of positives", percent(part.target.relevant.mean()), "the AP of a random order"
    where = "mean over the queries" if part.groups is not None else "on the rows below"
    where = "on its training rows, which flatters" if part.dataset.fingerprint == header.data.sha256 else where
    for name in names:
        if name in part.evaluation.values:
            full = "average precision (AP)" if name == "AP" else name
            yield full, f"{part.evaluation.values[name]:.4f}", where


def _data(run: Run, judged: Sequence[JudgedRanker]) -> Markup:
    result: list[tuple[object, object]] = []
    dataset = run.dataset
    if dataset is None:
        result += [("file", run.command["data"])] if run.command.get("data") else []
        result += [(name, f"{run.command[name]:,}") for name in ("rows", "features", "values") if name in run.command]
    else:
        rows, features = dataset.X.shape
        filled = percent(dataset.n_values / max(1, rows * features))
        result += [("file", breakable(dataset.source)), ("rows", f"{rows:,}"), ("features", f"{features:,}")]
        result.append(("values", f"{dataset.n_values:,} ({filled} of all)"))
        ranked, relevant = (judged[0].dataset, judged[0].target.relevant) if len(judged) == 1 else (dataset, None)
        if relevant is not None:
            result.append((f"positive {ranked.unit}", f"{relevant.sum():,} ({percent(relevant.mean())})"))
        if ranked.groups is not None:
            sizes = np.unique(ranked.groups, return_counts=True)[1]
            span = f"{sizes.min():,} to {sizes.max():,}, median {np.median(sizes):g}"
            result += [("queries", f"{sizes.size:,}"), (f"{ranked.unit} a query", span)]
        result += [("cost:", "given")] if dataset.costs is not None else []
        result.append(("sha256", element("code", f"{dataset.fingerprint[:16]}…")))
    data = run.model.header.data
    if data.queries_skipped:
        result.append(("queries left out of the training", f"{data.queries_skipped:,}"))
    result += [(_COUNTED.get(name, name.replace("_", " ")), f"{count:,}") for name, count in data.counts.items()]
    return section("Data", facts(result))


def _how_trained(run: Run) -> Markup:
    """The section on the training: its end, evidence, settings and convergence."""
    header, content = run.model.header, list[Markup]()
    if run.model.has_classes:
        content.append(_endings(run))
    else:
        texts = (*certificate(header), *members(header), *chosen(header, header.metric), *header.cautions)
        content += [element("p", text) for text in texts]
    content.append(facts((name, text) for name, text in _settings(run) if text))
    with suppress(PictureError):
        picture = Convergence.of_logs({"run": run.records})
        content.append(folded("Iterations", drawn(picture, "Convergence against steps and seconds", 9.6)))
    return section("How it was trained", *content)


def _settings(run: Run) -> Iterator[tuple[str, str]]:
    """Loss, metric, settings, the options given, versions, machine and time; an empty text without one."""
    header, features = run.model.header, run.model.header.features
    yield "loss", header.loss
    yield "metric", header.metric or ""
    yield "bound", "" if header.certificate is None else header.certificate.bound
    for name, value in settings_of(header):
        yield name, as_text(value)
    yield "features", features.map if features.map != "linear" else ""
    yield "scaling", features.scale if features.scale != "none" else ""
    yield "constant feature", as_text(features.bias)
    yield "labels", meaning(header.labels)
    yield "positive", "" if header.threshold is None else threshold_in_words(header.threshold)
    yield "probabilities", "" if header.calibration is None else probabilities_in_words(header.calibration)
    yield "seed", as_text(header.seed)
    typed = [
        f"--{name.replace('_', '-')}{'' if value is True else f' {as_text(value)}'}"
        for name, value in run.command.get("options", {}).items()
        if name not in ("quiet", "verbose")
    ]
    yield "options given", " ".join(typed)
    yield "versions", ", ".join(f"{name} {version}" for name, version in header.versions.items())
    yield "machine", run.command.get("machine", "")
    seconds = math.fsum(run.end.get("seconds", {}).values())
    yield "time", f"{seconds:.3g} s" if seconds else ""


def _endings(run: Run) -> Markup:
    """A table of each class's end of training and certificate, folded."""
    rows = []
    for title, header in run.headers():
        bounds, unit = header.certificate, header.C or 1.0
        evidence = ["", ""] if bounds is None else [f"{bounds.gap / unit:.2g}", f"{bounds.tolerance / unit:.2g}"]
        rows.append([title, header.state, "" if header.C is None else f"{header.C:.4g}", *evidence])
    listed = table(["", "state", "C", "gap / C", "requested"], rows, left=(0, 1))
    return folded(f"How all {len(rows)} trainings ended", listed)
