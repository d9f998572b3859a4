"""The tables of docs/benchmarks.md that are made from files in docs/figures, which scripts write (``--json``).

``scripts/dev/draw_cases.py`` puts them into the page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

#: Of the scores of a training: how far positives are shifted from negatives.
STAGES = {1.0: "early", 5.0: "late"}
Figures = Any


def benchmark_tables(figures: Path) -> dict[str, str]:
    """Markdown by the table's name, of the files in the folder ``figures``."""
    made = {"defaults": of_defaults, "oracles": of_oracles}
    return {name: table(_read(figures / f"{name}.json")) for name, table in made.items()}


def _read(path: Path) -> Figures:
    return json.loads(path.read_text(encoding="utf-8"))


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table, its first row the heading."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def of_defaults(measured: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> str:
    """A row a data set, of what scripts/study/defaults.py measured: by method AP first on each split."""
    columns = {
        "logistic regression": "LR tuned",
        "LinearSVC": "LinearSVC tuned",
        "`apsvm train`": "apsvm",
        "`--features rules`": "rules",
        "`apsvm cv`": "portfolio",
        "boosted trees": "boosted",
    }
    rows = [["test AP", *columns]]
    for name, methods in measured.items():
        values = [float(np.mean([split[0] for split in methods[key]])) for key in columns.values()]
        shown = [f"{value:.3f}".removeprefix("0") for value in values]
        best = max(values)
        cells = [f"**{text}**" if value == best else text for value, text in zip(values, shown, strict=True)]
        rows.append([name, *cells])
    return markdown(rows)


def of_oracles(measured: Sequence[Mapping[str, Any]]) -> str:
    """Milliseconds a call, of what scripts/bench/oracles.py measured: a row for a size and a stage of the training."""
    oracles = ("greedy", "search-select", "qs", "bucket")
    sizes = [(10_000, 1.0), (100_000, 1.0), (1_000_000, 1.0), (1_000_000, 5.0)]
    seconds = {(one["n_neg"], one["shift"], one["oracle"]): one["seconds"] for one in measured if one["n_pos"] == 1000}
    rows = [["N", *oracles]]
    for n_neg, shift in sizes:
        cells = [_two_digits(1e3 * seconds[n_neg, shift, oracle]) for oracle in oracles]
        rows.append([f"{n_neg:,}, {STAGES[shift]}", *cells])
    return markdown(rows)


def _two_digits(value: float) -> str:
    """At least two digits."""
    behind_the_point = 3 if value < 0.1 else 2 if value < 1.0 else 1 if value < 10.0 else 0
    return f"{value:.{behind_the_point}f}"
