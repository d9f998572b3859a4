"""Common parts of the scripts that repeat the papers' experiments: problems, cross-validation, timed trainings, tables.

A problem is one class against the rest of a data set, half its rows to train on and half to test on. Everything is
trained by the package's own trainers, on one thread. Times are those of the training's log, the CPU time of each call
of the oracle; a training is repeated, and of each call the fastest time counts: the calls are the same every time.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t
from sklearn.model_selection import StratifiedKFold, train_test_split

from apsvm import read_svmlight
from apsvm._support.clock import count_cpu_time
from apsvm.data.dataset import shown_label
from apsvm.data.labels import of_relevance
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.metrics import parse_metric
from apsvm.metrics.significance import bootstrap_means, interval, randomisation_test
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.approximate import solve_approximately
from apsvm.trainers.structured_svm.default_c import default_C
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import Trained
from apsvm.trainers.structured_svm.training import train as train_plan

#: C is tried at these multiples of the default C.
MULTIPLES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)
QUICK_MULTIPLES = (1e-2, 1.0)
DRAWS = 10_000


@dataclass(frozen=True, eq=False)
class Problem:
    """A class against the rest: ``relevant`` of the training ``rows``, ``test_relevant`` of the ``test_rows``, by the
    ``split``-th way to halve them."""

    data: str
    label: str
    split: int
    rows: Rows
    relevant: NDArray[np.bool_]
    test_rows: Rows
    test_relevant: NDArray[np.bool_]

    @property
    def name(self) -> str:
        return f"{self.data} {self.label}"

    @property
    def full_name(self) -> str:
        return f"{self.name}, split {self.split}"

    @property
    def training(self) -> TrainingSet:
        return TrainingSet(self.rows, of_relevance(self.relevant))

    def judge(self, metric: str, w: NDArray[np.float64]) -> float:
        return parse_metric(metric)(self.test_rows.scores(w), self.test_relevant)


@dataclass(frozen=True)
class Method:
    """A way to train: loss, bound, oracle, solver; ``keep_easy``: AP-SVM-APPX with this k, and this oracle for the
    difficult rows; ``log_ranks``: the log has the most violated rankings."""

    loss: str = "ap"
    oracle: str = "auto"
    solver: str = "cutting-plane"
    keep_easy: float | None = None
    log_ranks: bool = False
    bound: str = "hinge"

    def path(self, data: TrainingSet, choices: Sequence[float], watch: Watch) -> Iterator[Trained]:
        """One training for each C."""
        loss = make_loss(self.loss)
        settings = StructuredSettings(
            bound=self.bound, C=tuple(choices), oracle=self.oracle, solver=self.solver, log_ranks=self.log_ranks
        )
        if self.keep_easy is None:
            return train_plan(Plan(loss=loss, settings=settings), data, watch)
        approximate, began = replace(settings, keep_easy=self.keep_easy), time.perf_counter()
        return (solve_approximately(data, loss, approximate, C, watch, began, oracle=self.oracle) for C in choices)

    def train(self, data: TrainingSet, C: float, watch: Watch | None = None) -> Trained:
        (trained,) = self.path(data, [C], watch or Watch())
        return trained

    def weights(self, data: TrainingSet, choices: Sequence[float]) -> Iterator[NDArray[np.float64]]:
        """The weights for each C, ascending; a path where there is one."""
        return (trained.w for trained in self.path(data, choices, Watch()))


@dataclass(frozen=True)
class Timed:
    """A training, how long it took, and of each call of its oracle the milliseconds and the log's record."""

    trained: Trained
    training_seconds: float
    milliseconds: NDArray[np.float64]
    calls: list[dict[str, Any]]

    @property
    def seconds(self) -> float:
        """In the oracle."""
        return float(self.milliseconds.sum()) / 1e3

    def of_stage(self, stage: str) -> NDArray[np.float64]:
        return self.milliseconds[[call["stage"] == stage for call in self.calls]]


class Calls:
    """A log that keeps the records of oracle calls, their CPU times among them."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        count_cpu_time()

    def write(self, event: str, **fields: Any) -> None:
        if event == "oracle":
            self.records.append({"event": event, **fields})


def problems(paths: Sequence[str], *, splits: int = 1, quick: bool = False) -> list[Problem]:
    """Each label of each data set against the rest (two labels: the higher one), halved in ``splits`` ways, the same
    for all classes of a set. Rows get a constant feature, which the binary SVM needs and a ranking loss ignores.
    ``quick``: two classes of a set and 600 rows."""
    found = []
    for path in paths:
        dataset = read_svmlight(path)
        labels, classes = dataset.relevance, dataset.classes()
        kept = np.arange(labels.size)
        if quick and labels.size > 600:
            kept, _ = train_test_split(kept, train_size=600, stratify=labels, random_state=0)
        chosen = classes[-1:] if classes.size == 2 else classes[: 2 if quick else None]
        name = Path(path).name.split(".")[0]
        for split in range(splits):
            halves = train_test_split(kept, test_size=0.5, stratify=labels[kept], random_state=split)
            train, test = (np.sort(half) for half in halves)
            rows, test_rows = (Rows(dataset.X[half], bias=1.0) for half in (train, test))
            for label in chosen.tolist():
                relevant = labels == label
                found.append(Problem(name, shown_label(label), split, rows, relevant[train], test_rows, relevant[test]))
    return found


def choose_C(
    problem: Problem, method: Method, metrics: Sequence[str], multiples: Sequence[float] = MULTIPLES, n_folds: int = 5
) -> dict[str, float]:
    """Metric → the C of its best mean over the folds of the training rows, the smallest of equals."""
    relevant = problem.relevant
    choices = [multiple * default_C(problem.training, make_loss(method.loss)) for multiple in multiples]
    values = np.zeros((len(metrics), len(choices)))
    method = replace(method, oracle="auto", solver="line-search")  # the same optimum, sooner
    for train, valid in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(relevant, relevant):
        part = TrainingSet(problem.rows.select(train), of_relevance(relevant[train]))
        held_out = problem.rows.select(valid)
        for at, w in enumerate(method.weights(part, choices)):
            scores = held_out.scores(w)
            values[:, at] += [parse_metric(metric)(scores, relevant[valid]) for metric in metrics]
    return {metric: choices[int(best)] for metric, best in zip(metrics, values.argmax(axis=1), strict=True)}


def timed(data: TrainingSet, method: Method, C: float, repeats: int = 3) -> Timed:
    """Trains ``repeats`` times and keeps each call's fastest time."""
    taken, seconds = [], []
    for _ in range(repeats):
        log = Calls()
        trained = method.train(data, C, Watch(log))
        taken.append([call["oracle_cpu_ns"] / 1e6 for call in log.records])
        seconds.append(sum(stage.solution.seconds for stage in trained.stages))
    return Timed(trained, min(seconds), np.min(taken, axis=0), log.records)


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences, its 95 % bootstrap interval, and p of a randomisation test."""

    mean: float
    low: float
    high: float
    p: float
    better: int
    n: int

    @property
    def is_shown(self) -> bool:
        return self.p <= 0.05 and not self.low <= 0.0 <= self.high

    def __str__(self) -> str:
        return (
            f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}], p = {self.p:.3f}, better on {self.better} of "
            f"{self.n} classes"
        )


def difference(first: Mapping[str, float], second: Mapping[str, float]) -> Difference:
    """Difference of two methods' values on the classes of ``second``."""
    d = np.array([first[name] - second[name] for name in second])
    means = bootstrap_means(d, DRAWS, np.random.default_rng(0))
    p = randomisation_test(d, DRAWS, np.random.default_rng(0))
    return Difference(float(d.mean()), *interval(means, 0.95), p, int((d > 0).sum()), d.size)


def paired(more: NDArray[np.float64]) -> list[str]:
    """Two cells of a table: the mean of differences (seeds,) with half of its 95 % interval (Student's), which a single
    seed has none of, and how many are above 0."""
    count = more.size
    half = t.ppf(0.975, count - 1) * more.std(ddof=1) / count**0.5 if count > 1 else np.nan
    return [f"{more.mean():+.2f} ± {half:.2f}", f"{(more > 0).sum()}/{count}"]


def table(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Markdown that reads well as it is; the first column to the left, the others to the right."""
    cells = [list(map(str, row)) for row in (heading, *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(heading))]
    align = [str.ljust, *[str.rjust] * (len(widths) - 1)]
    lines = [
        "| " + " | ".join(put(cell, width) for put, cell, width in zip(align, row, widths, strict=True)) + " |"
        for row in cells
    ]
    rule = "|" + "|".join("-" * (width + 2) if at == 0 else "-" * (width + 1) + ":" for at, width in enumerate(widths))
    return "\n".join([lines[0], rule + "|", *lines[1:]])


def verdicts(claims: Sequence[tuple[str, bool, str]], *, quick: bool) -> str:
    """A claim of a paper with its verdict and evidence; ``quick``: too few rows for a verdict."""
    missing = "too few rows to tell" if quick else "NOT seen"
    return "\n".join(
        f"{'seen' if seen else missing:8}  {claim}\n          {by_what}" for claim, seen, by_what in claims
    )


def number(value: float | None) -> str:
    """Three digits that count, as seconds and milliseconds are read; - for none."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def machine() -> str:
    """The machine of the times."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        name = models[0] if models else name
    load = f"; load average {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores at the start"
    return f"{name}, one thread, Python {platform.python_version()}, NumPy {np.__version__}{load}"


class OfAProblem(Protocol):
    """A result of an experiment."""

    @property
    def problem(self) -> Problem: ...


ResultT = TypeVar("ResultT", bound=OfAProblem)


def by_data(results: Sequence[ResultT]) -> dict[str, list[ResultT]]:
    names = dict.fromkeys(result.problem.data for result in results)
    return {name: [result for result in results if result.problem.data == name] for name in names}


def means_by_class(results: Sequence[ResultT], value: Callable[[ResultT], float]) -> dict[str, float]:
    """Name of the class → the mean of ``value`` over the splits."""
    names = dict.fromkeys(result.problem.name for result in results)
    return {name: float(np.mean([value(of) for of in results if of.problem.name == name])) for name in names}


def describe(found: Sequence[Problem]) -> str:
    """A line a data set: what stands in for the paper's data."""
    lines = []
    for data in dict.fromkeys(problem.data for problem in found):
        of_it = [problem for problem in found if problem.data == data and problem.split == 0]
        n, n_test = len(of_it[0].rows), len(of_it[0].test_rows)
        positives = [int(problem.relevant.sum()) for problem in of_it]
        counts = f"{min(positives)} to {max(positives)}" if len(positives) > 1 else str(positives[0])
        share = 100 * np.mean(positives) / n
        lines.append(
            f"  {data}: {len(of_it)} class(es), {n} training rows ({counts} positive, {share:.1f} %), {n_test} test "
            f"rows, {of_it[0].rows.dimension - 1} features"
        )
    splits = len({problem.split for problem in found})
    lines.append(f"  halved at random in {splits} way(s), by class; figures are means over them")
    return "\n".join(lines)


def formats(quick: bool) -> tuple[str, ...]:
    """Formats of the figures."""
    return ("svg",) if quick else ("png", "svg")


def arguments(description: str | None, default_output: str) -> argparse.ArgumentParser:
    """The options that the scripts share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "data",
        nargs="*",
        metavar="DATA",
        help="svmlight files; every label is taken against the rest [default: scikit-learn's digits]",
    )
    parser.add_argument("--output", type=Path, default=Path(default_output), help="folder for tables and figures")
    parser.add_argument("--splits", type=int, default=3, help="ways to halve the rows [default: 3]")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="two classes of each set, 600 rows, one split, two values of C: times then mean little",
    )
    return parser
