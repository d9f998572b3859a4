"""Timings side by side in one run, for ``apsvm bench`` and the repository's ``scripts/bench/``.

Every figure is the fastest of several repetitions where that is affordable, and stands beside a rival's from the same
run, as a ratio: seconds alone say more of the machine than of the program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from apsvm._support.types import JsonDict, Matrix
from apsvm.data.labels import of_relevance
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.metrics import parse_metric
from apsvm.oracles import make_oracle, serving
from apsvm.oracles.base import Violation
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import Trained
from apsvm.trainers.structured_svm.training import train as train_plan

T = TypeVar("T")
Scores = tuple[NDArray[np.float64], NDArray[np.float64]]
#: The values of C of apsvm's trainings, and of its rivals'.
CHOICES, RIVAL_CHOICES = (1.0, 10.0, 100.0, 1000.0, 10000.0), (0.01, 0.1, 1.0, 10.0, 100.0)


class LinearClassifier(Protocol):
    """The settings of a rival."""

    def set_params(self, *, C: float) -> Self: ...
    def fit(self, X: Matrix, y: NDArray[np.bool_]) -> Self: ...
    def decision_function(self, X: Matrix) -> NDArray[np.float64]: ...


def fastest(call: Callable[[], T], *, budget: float = 1.0, at_least: int = 3) -> tuple[float, T]:
    """Seconds of the fastest of ``at_least`` calls or as many as ``budget`` seconds hold, and the last result."""
    best, spent, count = np.inf, 0.0, 0
    while count < at_least or (spent < budget and count < 200):
        began = time.perf_counter()
        result = call()
        taken = time.perf_counter() - began
        best, spent, count = min(best, taken), spent + taken, count + 1
    return best, result


def normal_scores(rng: np.random.Generator, n_pos: int, n_neg: int, shift: float) -> Scores:
    """Normal scores, the positives' shifted: 1 leaves most negatives above some positive, as early in a training, 5
    leaves few, as at its end."""
    return rng.normal(size=n_pos) + shift, rng.normal(size=n_neg)


def oracle_table(queries: Sequence[Scores], *, timings: list[JsonDict], threads: int = 1) -> Iterator[str]:
    """Lines of a table: milliseconds a call of every oracle that serves AP's loss, and how many times faster than the
    first of them it is; beside it np.sort of all scores; the largest relative difference of their objectives.
    ``timings`` gets each of the oracles."""
    loss = make_loss("ap")
    names = [name for name in serving(loss) if name != "brute-force"]
    yield f"loss ap, {threads} thread(s); milliseconds a call (times faster than {names[0]})"
    yield (
        f"{'P':>7} {'N':>9} {'np.sort':>9} "
        + "".join(f"{name:>21}" for name in names)
        + f"{'r <= P':>10} {'differ':>8}"
    )
    for scores_pos, scores_neg in queries:
        n_pos, n_neg = scores_pos.size, scores_neg.size
        weights = np.empty(n_pos), np.empty(n_neg)
        sorting, _ = fastest(partial(np.sort, np.concatenate([scores_pos, scores_neg])), budget=0.3)
        cells: list[str] = []
        result: list[Violation] = []
        baseline = 0.0
        for name in names:
            oracle = make_oracle(name, loss).bind(loss, n_pos, n_neg, threads=threads)
            seconds, violation = fastest(partial(oracle, scores_pos, scores_neg, *weights))
            baseline = baseline or seconds
            cells.append(f"{1e3 * seconds:>11.3f} ({baseline / seconds:>6.1f}x)")
            result.append(violation)
            timings.append(
                {
                    "oracle": name,
                    "loss": loss.name,
                    "threads": threads,
                    "n_pos": n_pos,
                    "n_neg": n_neg,
                    "seconds": seconds,
                    "violating": violation.violating,
                }
            )
        values = [violation.value for violation in result]
        spread = (max(values) - min(values)) / (max(values) or 1.0)
        yield (
            f"{n_pos:>7} {n_neg:>9} {1e3 * sorting:>9.3f} "
            + "".join(f"{cell:>21}" for cell in cells)
            + f"{result[0].violating:>10} {spread:>8.0e}"
        )


def train_ap(data: TrainingSet, C: float, *, bound: str = "hinge", solver: str = "line-search") -> Trained:
    """An AP-SVM of which nothing is left to be chosen."""
    settings = StructuredSettings(C=(C,), bound=bound, solver=solver)
    (trained,) = train_plan(Plan(loss=make_loss("ap"), settings=settings), data, Watch())
    return trained


@dataclass(frozen=True, slots=True)
class TimedFit:
    """One training: test AP, seconds, and iterations of the solver where it has some."""

    ap: float
    seconds: float
    C: float
    iterations: int | None = None


def train_table(
    name: str,
    X: Matrix,
    relevant: NDArray[np.bool_],
    X_test: Matrix,
    relevant_test: NDArray[np.bool_],
    *,
    threads: int = 1,
    ratios: list[float] | None = None,
) -> Iterator[str]:
    """Lines of a table: AP-SVM by both solvers against scikit-learn's LinearSVC and LogisticRegression on the same
    rows, each at the C of its best test AP; training time only. ``ratios`` gets apsvm's time over LinearSVC's."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    ap = parse_metric("AP")

    def ours(solver: str, C: float) -> TimedFit:
        data = TrainingSet(Rows(X, threads=threads), of_relevance(relevant))
        seconds, trained = fastest(partial(train_ap, data, C, solver=solver), budget=0.5, at_least=1)
        scores = Rows(X_test).scores(trained.w)
        return TimedFit(ap(scores, relevant_test), seconds, C, trained.solution.iterations)

    def theirs(model: LinearClassifier, C: float) -> TimedFit:
        model.set_params(C=C)
        with warnings.catch_warnings():
            # At a C that a rival cannot manage, what it has when it gives up counts, and so does its time.
            warnings.simplefilter("ignore", ConvergenceWarning)
            seconds, _ = fastest(partial(model.fit, X, relevant), budget=0.5, at_least=1)
        return TimedFit(ap(np.asarray(model.decision_function(X_test)), relevant_test), seconds, C)

    methods: dict[str, tuple[Callable[[float], TimedFit], Sequence[float]]] = {
        "LinearSVC": (partial(theirs, LinearSVC()), RIVAL_CHOICES),
        "LogisticRegression": (partial(theirs, LogisticRegression(max_iter=1000)), RIVAL_CHOICES),
        "apsvm": (partial(ours, "line-search"), CHOICES),
        "apsvm cutting-plane": (partial(ours, "cutting-plane"), CHOICES),
    }
    yield f"{name}: {X.shape[0]} x {X.shape[1]}, {int(relevant.sum())} positive; {threads} thread(s)"
    yield f"  {'method':<20} {'C':>8} {'test AP':>8} {'seconds':>9} {'/ LinearSVC':>12} {'iterations':>11}"
    reference = 0.0
    for method, (train, values) in methods.items():
        best = max((train(C) for C in values), key=lambda fit: fit.ap)
        reference = reference or best.seconds
        iterations = "" if best.iterations is None else best.iterations
        if ratios is not None and method == "apsvm":
            ratios.append(best.seconds / reference)
        yield (
            f"  {method:<20} {best.C:>8g} {best.ap:>8.4f} {best.seconds:>9.4f} {best.seconds / reference:>12.2f} "
            f"{iterations:>11}"
        )


def parse_table(path: str, threads: Sequence[int]) -> Iterator[str]:
    """Lines of a table: megabytes a second of apsvm's reader against scikit-learn's, on a plain svmlight file."""
    import os

    from sklearn.datasets import load_svmlight_file

    from apsvm.data.svmlight import read_svmlight

    megabytes = os.path.getsize(path) / 1e6
    began = time.perf_counter()
    load_svmlight_file(path)
    rival = time.perf_counter() - began
    yield f"{path}: {megabytes:.1f} MB"
    yield f"  {'reader':<24} {'seconds':>9} {'MB/s':>8} {'times faster':>13}"
    yield f"  {'scikit-learn':<24} {rival:>9.3f} {megabytes / rival:>8.1f} {1.0:>13.1f}"
    for count in threads:
        seconds, _ = fastest(partial(read_svmlight, path, threads=count), budget=1.0)
        yield (
            f"  {f'apsvm, {count} thread(s)':<24} {seconds:>9.3f} {megabytes / seconds:>8.1f} {rival / seconds:>13.1f}"
        )
