"""Sections on the training: what was trained, on what, how it converged, where the time went."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import Dataset, shown_label
from apsvm.data.rows import Rows
from apsvm.model import RankerSet
from apsvm.pictures.base import PictureError
from apsvm.pictures.convergence import Convergence, loss_of_epochs
from apsvm.pictures.heatmap import Heatmap
from apsvm.report import words
from apsvm.report.page import Drawn, Markup, bar, element, facts, folded, joined, pictures, section, table
from apsvm.report.run import Judged, Run
from apsvm.report.words import in_seconds, share

#: More rows of a table than this are folded.
MOST_OPEN = 20

#: What a model's header, or without one the log's start, tells of its training, in this order, and how it is called.
_TOLD = (
    ("loss", "loss"), ("bound", "bound"), ("oracle", "oracle"), ("C", "C"), ("C_of_default", "C, times the default"),
    ("epsilon", "ε, the gap asked for, / C"), ("solver", "solver"), ("keep_easy", "easy rows kept easy, %"),
    ("objective", "objective"), ("summation", "summation"), ("optimizer", "optimizer"), ("lambda", "λ"),
    ("normalize", "mean over"), ("tolerance", "tolerance"), ("tau", "τ"), ("rank_estimator", "rank estimator"),
    ("update", "update"), ("perturbation", "perturbation"), ("step_rows", "rows a step"),
    ("rule", "step rule"), ("learning_rate", "learning rate"), ("l2", "l2"), ("threads", "threads"),
    ("scale", "scaling"), ("bias", "constant feature"), ("positive_label", "positive label"),
    ("relevant_from", "relevant from grade"), ("seed", "seed"),
)  # fmt: skip


def what_was_trained(run: Run) -> Markup:
    headers = run.headers() or [("", run.start)]
    told: list[tuple[object, object]] = []
    for key, name in _TOLD:
        values = list(dict.fromkeys(_shown(header.get(key)) for _, header in headers))
        values = [value for value in values if value not in ("", "none")]
        if key == "bias" and values == ["-1"]:
            continue
        if values:
            told.append((name, values[0] if len(values) == 1 else _few(values)))
    options = [
        f"--{name.replace('_', '-')}{'' if value is True else ' ' + _shown(value)}"
        for name, value in run.command.get("options", {}).items()
        if name not in ("quiet", "verbose")
    ]
    if options:
        told.append(("options given", " ".join(options)))
    versions = headers[0][1].get("versions") or run.command.get("versions", {})
    if versions:
        told.append(("versions", ", ".join(f"{name} {version}" for name, version in versions.items())))
    if run.command.get("machine"):
        told.append(("machine", run.command["machine"]))
    return section("What was trained", facts(told))


def _few(values: Sequence[str]) -> str:
    return ", ".join(values[:4]) + (f", … ({len(values)})" if len(values) > 4 else "")


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ",".join(_shown(one) for one in value)
    return str(value)


def data_of(run: Run, judged: Sequence[Judged]) -> Markup:
    headers = run.headers()
    told: list[tuple[object, object]] = []
    content: list[object] = []
    dataset = run.dataset
    if dataset is not None:
        rows, features = dataset.X.shape
        told += [
            ("file", dataset.source),
            ("rows", f"{rows:,}"),
            ("features", f"{features:,}"),
            ("values", f"{dataset.n_values:,} ({share(dataset.n_values / max(1, rows * features))} of all)"),
        ]
        told += _constants(dataset)
        if len(judged) == 1:
            positives = int(judged[0].relevant.sum())
            told.append(("positive rows", f"{positives:,} ({share(positives / rows)})"))
        if dataset.groups is not None:
            told += _queries(dataset.groups, judged[0].relevant if len(judged) == 1 else None)
        if dataset.costs is not None:
            told.append(("cost:", "given"))
        content = _labels(dataset, judged)
        told.append(("sha256", Markup(f"<code>{dataset.fingerprint[:16]}…</code>")))
    else:
        told += [(name, f"{run.command[name]:,}") for name in ("rows", "features", "values") if name in run.command]
        if run.command.get("data"):
            told.insert(0, ("file", run.command["data"]))
    for _, header in headers[:1]:
        data = header.get("data", {})
        if data.get("queries_skipped"):
            told.append(("queries left out of the training", f"{data['queries_skipped']:,}"))
        if "pairs" in data:
            told.append(("pairs of the preference graph", f"{data['pairs']:,}"))
        if "likes" in data:
            told += [("users", f"{data['users']:,}"), ("likes", f"{data['likes']:,}")]
    return section("Data", facts(told), *content)


def _constants(dataset: Dataset) -> list[tuple[object, object]]:
    constant = int((Rows(dataset.X).moments().variance == 0).sum())
    return [("features that never vary", f"{constant:,}")] if constant else []


def _queries(groups: NDArray[np.int64], relevant: NDArray[np.bool_] | None) -> list[tuple[object, object]]:
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    told: list[tuple[object, object]] = [
        ("queries", f"{sizes.size:,}"),
        ("rows a query", f"{sizes.min():,} to {sizes.max():,}, median {np.median(sizes):g}"),
    ]
    if relevant is not None:
        positives = np.bincount(codes, weights=relevant)
        both = int(((positives > 0) & (positives < sizes)).sum())
        told.append(("queries with both kinds of rows", f"{both:,}"))
    return told


def _labels(dataset: Dataset, judged: Sequence[Judged]) -> list[object]:
    """How many rows each label has, where it is not just two classes."""
    if dataset.label_sets is not None or (len(judged) == 1 and judged[0].grades is None):
        return []
    labels, counts = np.unique(dataset.relevance, return_counts=True)
    if not 2 < labels.size <= 40:
        return []
    most = int(counts.max())
    return [
        table(
            ["label", "rows"],
            [
                [shown_label(label), bar(count / most, f"{count:,}")]
                for label, count in zip(labels.tolist(), counts.tolist(), strict=True)
            ],
        )
    ]


def convergence(run: Run, drawn: Drawn) -> Markup:
    headers = run.headers()
    content: list[object] = []
    if not headers:
        content += [element("p", told) for told in words.unfinished(run.records)]
    elif len(headers) == 1:
        content += [element("p", told) for told in words.certificate(headers[0][1])]
    else:
        content.append(_certificates(headers))
    try:
        whole = Convergence.of_logs({"run": run.records})
    except PictureError as error:
        content.append(element("p", f"No picture: {error}.", class_="muted"))
    else:
        captions = {"iteration": "against iterations and seconds", "epoch": "against epochs and seconds"}
        content.append(
            pictures(
                *(
                    drawn(Convergence([panel], whole.step), f"{panel.label}, {captions[whole.step]}")
                    for panel in whole.panels
                )
            )
        )
    ranked = [record for record in run.records if record.get("ranks") is not None]
    if len({record.get("class") for record in ranked}) == 1:
        heatmap = Heatmap.of_log(run.records)
        content.append(element("h3", "The most violated rankings"))
        content.append(
            pictures(
                drawn(
                    heatmap,
                    "Interleaving ranks of the negatives by iteration; the deepest red: below every positive",
                )
            )
        )
    return section("Convergence", *content)


def _certificates(headers: Sequence[tuple[str, Mapping[str, Any]]]) -> Markup:
    if all("certificate" in header for _, header in headers):
        bounds = _bounds(headers)
        if len(headers) > MOST_OPEN:
            bounds = folded(f"The certificates of all {len(headers)}", bounds)
        return joined([element("p", words.of_several(headers[0][1])), bounds])
    return table(
        ["", "state", "epochs", loss_of_epochs(headers[0][1])],
        [
            [title, header["state"], _shown(header.get("epochs")), _shown(header.get("estimated_loss"))]
            for title, header in headers
        ],
        left=(0, 1),
    )


def _bounds(headers: Sequence[tuple[str, Mapping[str, Any]]]) -> Markup:
    return table(
        ["", "state", "C", "primal", "dual", "gap / C", "asked for"],
        [
            [
                title,
                header["state"],
                f"{header['C']:.4g}",
                *(words.number(header["certificate"][name]) for name in ("primal", "dual")),
                *(f"{header['certificate'][name] / header['C']:.2g}" for name in ("gap", "tolerance")),
            ]
            for title, header in headers
        ],
        left=(0, 1),
    )


def time_by_part(run: Run) -> Markup:
    """Seconds by part: as the runs' ends tell, or where several classes ran at a time, or it has no end, as the
    iterations do."""
    ends = [finished.end.get("seconds", {}) for finished in run.finished]
    spans = run.spans()
    told = ""
    if any(isinstance(finished.model, RankerSet) for finished in run.finished) and spans:
        told = (
            "Wall-clock seconds of the parts, added up over the classes, several of which ran at a time; the whole "
            f"took {in_seconds(sum(math.fsum(end.values()) for end in ends))}."
        )
        parts = {"reading": run.command.get("seconds", 0.0), **spans}
    elif ends and all(ends):
        parts = {}
        for end in ends:
            for name, seconds in end.items():
                parts[name] = parts.get(name, 0.0) + seconds
    else:
        parts = {"reading": run.command.get("seconds", 0.0), **spans}
        told = "As far as the log goes."
    total = math.fsum(parts.values())
    names = {"qp": "working-set QP", "scores": "scores X·w", "gradient": "gradient Xᵀc", "by score": "ranking by score"}
    calls = [record for record in run.records if record["event"] == "oracle"]
    if calls:
        spent = [record["oracle_wall_ns"] / 1e6 for record in calls]
        told += f" {len(calls):,} oracle calls, {np.median(spent):.3g} ms at the median."
    whole = total or 1.0
    rows = [
        [names.get(name, name), bar(seconds / whole, in_seconds(seconds)), share(seconds / whole)]
        for name, seconds in parts.items()
    ]
    return section("Time by part", element("p", told) if told else Markup(""), table(["part", "time", "share"], rows))
