"""The repository's training benchmark: iterations of both solvers, AP-SVM against scikit-learn's classifiers, the
tight bound against the hinge, and paths of C, also against scikit-learn's.

    python scripts/bench/training.py DATA [DATA …] [--made]
    python scripts/bench/training.py DATA [DATA …] --paths
    python scripts/bench/training.py DATA [DATA …] [--noisy] --against PYTHON [--losses ap,ndcg] [--C 1,1e6]

DATA are svmlight files with labels +1 and -1 (or 0), or FILE@LABEL: that label against all others. ``--made`` adds a
made set of 200,000 x 100, dense, 1 % positive, a linear signal plus noise. One thread everywhere.

``--against`` is the Python of another checkout's environment: both train on every set, loss and C in turns, in one
run, and the table shows the ratio of their shortest times. ``--noisy`` adds a made set of 50,000 x 300, 5 % positive,
as much noise as signal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from oracles import fastest, train_ap
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm._support.types import Matrix
from apsvm.data.features.scaling import learn_scaling
from apsvm.data.labels import of_relevance
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.metrics import parse_metric
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.training import train

#: A data set's name, rows (n, d), and which of them are relevant (n,) bool.
Named = tuple[str, Matrix, np.ndarray]
NOISY = "noisy 50,000 x 300"
LOSSES = "ap,ndcg,auc,zero-one"
VALUES_OF_C = "1,1e2,1e4,1e5,1e6,1e7"
#: Each case is trained this often at least, and again until that many seconds are spent on it.
TURNS, SECONDS = 2, 0.5
#: Eight values of C.
PATH = tuple(10.0**power for power in range(-2, 6))
#: The values of C of apsvm's trainings, and of its rivals', in the table of training times.
CHOICES, RIVAL_CHOICES = (1.0, 10.0, 100.0, 1000.0, 10000.0), (0.01, 0.1, 1.0, 10.0, 100.0)
#: The rivals' values of C.
RIVAL_PATH = tuple(10.0**power for power in range(-4, 4))


class LinearClassifier(Protocol):
    """The settings of a rival."""

    def set_params(self, *, C: float) -> Self: ...
    def fit(self, X: Matrix, y: np.ndarray) -> Self: ...
    def decision_function(self, X: Matrix) -> np.ndarray: ...


def made(rng: np.random.Generator, w: np.ndarray, n: int = 200_000) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, w.size))
    target = X @ w + 0.5 * rng.normal(size=n)
    return X, target > np.quantile(target, 0.99)


def noisy() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    w = rng.normal(size=300) / np.sqrt(300)
    X = rng.normal(size=(50_000, 300))
    target = X @ w + rng.normal(size=50_000)
    return X, target > np.quantile(target, 0.95)


def read(source: str) -> Named:
    if source == NOISY:
        return (source, *noisy())
    file, _, label = source.partition("@")
    dataset = read_svmlight(file)
    return Path(source).name, dataset.X, dataset.positives(float(label) if label else None)


def work() -> None:
    """Reads requests from standard input, a JSON object a line, trains, and answers likewise. It runs in the other
    checkout too."""
    at, data = "", None
    for line in sys.stdin:
        case = json.loads(line)
        if case["source"] != at:
            _, X, relevant = read(case["source"])
            at, data = case["source"], TrainingSet(Rows(X, threads=1), of_relevance(relevant))
        assert data is not None
        began = time.perf_counter()
        settings = StructuredSettings(bound="hinge", C=(case["C"],))
        (trained,) = train(Plan(loss=make_loss(case["loss"]), settings=settings), data, Watch())
        seconds = time.perf_counter() - began
        (report,) = trained.stages
        certificate = report.solution.certificate
        answer = {
            "seconds": seconds,
            "qp": report.spans["qp"].wall_ns / 1e9 / seconds,
            "calls": report.oracle_calls,
            "iterations": report.solution.iterations,
            "primal": certificate.primal,
            "dual": certificate.dual,
            "converged": certificate.reached,
        }
        print(json.dumps(answer), flush=True)


class Worker:
    """A process that trains by ``work``, in the environment of ``python``."""

    def __init__(self, python: str) -> None:
        command = [python, __file__, "--work"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def train(self, case: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def in_turns(ours: Worker, theirs: Worker, case: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The shortest training of each. Both certificates are of one optimum, which their bounds must leave room for."""
    runs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    while len(runs) < TURNS or sum(run["seconds"] for pair in runs for run in pair) < SECONDS:
        runs.append((theirs.train(case), ours.train(case))[::-1])
    first, second = (min(column, key=lambda run: run["seconds"]) for column in zip(*runs, strict=True))
    assert max(first["dual"], second["dual"]) <= min(first["primal"], second["primal"]) * (1.0 + 1e-12), (case, runs)
    return first, second


def against_table(
    python: str, sources: Sequence[str], losses: Sequence[str], values_of_C: Sequence[float]
) -> Iterator[str]:
    """Lines of a table: this checkout against another one, by set, loss and C."""
    ours, theirs = Worker(sys.executable), Worker(python)
    yield f"  {'':<41} | {'seconds':>16} {'ratio':>5} | {'iterations':>11} | {'oracle calls':>12} | QP %"
    ratios: list[float] = []
    for source in sources:
        for loss in losses:
            for C in values_of_C:
                first, second = in_turns(ours, theirs, {"source": source, "loss": loss, "C": C})
                ratio = first["seconds"] / second["seconds"]
                ratios.append(ratio)
                columns = [
                    f"{first['seconds']:>7.3f}  {second['seconds']:>7.3f} {ratio:>5.2f}",
                    f"{first['iterations']:>5} {second['iterations']:>5}",
                    f"{first['calls']:>6} {second['calls']:>5}",
                    f"{100 * first['qp']:>3.0f} {100 * second['qp']:>3.0f}",
                ]
                end = "" if first["converged"] and second["converged"] else "  not converged"
                yield f"  {Path(source).name:<24} {loss:<9} {C:>6g} | {' | '.join(columns)}{end}"
    above = sum(ratio > 1.1 for ratio in ratios)
    yield (
        f"  this checkout / the other: geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, "
        f"largest {max(ratios):.2f}, above 1.1 in {above} of {len(ratios)}"
    )


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
    relevant: np.ndarray,
    X_test: Matrix,
    relevant_test: np.ndarray,
    *,
    ratios: list[float] | None = None,
) -> Iterator[str]:
    """Lines of a table: AP-SVM by both solvers against scikit-learn's LinearSVC and LogisticRegression on the same
    rows, each at the C of its best test AP; training time only. ``ratios`` gets apsvm's time over LinearSVC's."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    ap = parse_metric("AP")

    def ours(solver: str, C: float) -> TimedFit:
        data = TrainingSet(Rows(X, threads=1), of_relevance(relevant))
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
    yield f"{name}: {X.shape[0]} x {X.shape[1]}, {int(relevant.sum())} positive; one thread"
    yield f"  {'method':<20} {'C':>8} {'test AP':>8} {'seconds':>9} {'/ LinearSVC':>12} {'iterations':>11}"
    reference = 0.0
    for method, (fit, values) in methods.items():
        best = max((fit(C) for C in values), key=lambda timed: timed.ap)
        reference = reference or best.seconds
        iterations = "" if best.iterations is None else best.iterations
        if ratios is not None and method == "apsvm":
            ratios.append(best.seconds / reference)
        yield (
            f"  {method:<20} {best.C:>8g} {best.ap:>8.4f} {best.seconds:>9.4f} {best.seconds / reference:>12.2f} "
            f"{iterations:>11}"
        )


def processor_seconds(call: Callable[[], None]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def iteration_table(sets: Sequence[Named], choices: Sequence[float]) -> Iterator[str]:
    """Lines of a table: iterations and seconds to ε of the plain cutting-plane method and of the line search."""
    yield "iterations and seconds to epsilon = 0.001; one thread"
    yield f"  {'data':<28} {'C':>8} {'plain':>7} {'search':>7} {'ratio':>6} {'plain s':>9} {'search s':>9} {'ratio':>6}"
    ratios = []
    for name, X, relevant in sets:
        data = TrainingSet(Rows(X), of_relevance(relevant))
        for C in choices:
            counts, seconds = [], []
            for solver in ("cutting-plane", "line-search"):
                taken, trained = fastest(partial(train_ap, data, C, solver=solver), budget=0.3, at_least=1)
                counts.append(trained.solution.iterations)
                seconds.append(taken)
            ratios.append(counts[1] / counts[0])
            yield (
                f"  {name:<28} {C:>8g} {counts[0]:>7} {counts[1]:>7} {ratios[-1]:>6.2f} {seconds[0]:>9.4f} "
                f"{seconds[1]:>9.4f} {seconds[1] / seconds[0]:>6.2f}"
            )
    yield f"  iterations: geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, worst {max(ratios):.2f}"


def bound_table(sets: Sequence[Named], choices: Sequence[float]) -> Iterator[str]:
    """Lines of a table: seconds and oracle calls to the hinge's minimiser and to the tight bound's stationary point;
    features are standardised."""
    yield "the hinge and the tight bound, epsilon = 0.001; one thread"
    yield f"  {'data':<28} {'C':>8} {'hinge s':>9} {'calls':>6} {'tight s':>9} {'calls':>6} {'ratio':>6}"
    ratios = []
    for name, X, relevant in sets:
        data = TrainingSet(Rows(X, scaling=learn_scaling("standard", X)), of_relevance(relevant))
        for C in choices:
            seconds, calls = [], []
            for bound in ("hinge", "tight"):
                taken, trained = fastest(partial(train_ap, data, C, bound=bound), budget=0.3, at_least=1)
                seconds.append(taken)
                calls.append(sum(stage.oracle_calls for stage in trained.stages))
            ratios.append(seconds[1] / seconds[0])
            yield (
                f"  {name:<28} {C:>8g} {seconds[0]:>9.4f} {calls[0]:>6} {seconds[1]:>9.4f} {calls[1]:>6} "
                f"{ratios[-1]:>6.2f}"
            )
    yield f"  seconds: geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, worst {max(ratios):.2f}"


def path_table(sets: Sequence[Named]) -> Iterator[str]:
    """Lines of a table: a path of values of C in one go, against the dearest of them trained alone; features are
    standardised; processor time."""
    yield f"a path of C from {PATH[0]:g} to {PATH[-1]:g}, {len(PATH)} values, processor seconds; one thread"
    yield f"  {'data':<28} {'path':>8} {'dearest':>8} {'ratio':>6}"
    for name, X, relevant in sets:
        data = TrainingSet(Rows(X, scaling=learn_scaling("standard", X)), of_relevance(relevant))

        def seconds(values: Sequence[float], data: TrainingSet = data) -> float:
            settings = StructuredSettings(bound="hinge", C=tuple(values))

            def once() -> None:
                for _ in train(Plan(loss=make_loss("ap"), settings=settings), data, Watch()):
                    pass

            return min(processor_seconds(once) for _ in range(3))

        whole, dearest = seconds(PATH), max(seconds([C]) for C in PATH)
        yield f"  {name:<28} {whole:>8.3f} {dearest:>8.3f} {whole / dearest:>6.2f}"


def rival_path_table(sets: Sequence[Named]) -> Iterator[str]:
    """Lines of a table: eight values of C in one go, against scikit-learn's classifiers with eight values of theirs, as
    they come; features scaled to unit variance; processor time."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    ranges = f"ours {PATH[0]:g} to {PATH[-1]:g}, theirs {RIVAL_PATH[0]:g} to {RIVAL_PATH[-1]:g}"
    yield f"eight values of C, {ranges}; processor seconds"
    yield f"  {'data':<28} {'ours':>8} {'LinearSVC':>10} {'LogisticRegression':>19} {'ratio':>6}"
    ratios: list[float] = []
    for name, X, relevant in sets:
        scaled = StandardScaler(with_mean=False).fit_transform(X)
        data = TrainingSet(Rows(scaled), of_relevance(relevant))

        def ours(data: TrainingSet = data) -> None:
            settings = StructuredSettings(bound="hinge", C=PATH)
            for _ in train(Plan(loss=make_loss("ap"), settings=settings), data, Watch()):
                pass

        def theirs(model: LinearSVC | LogisticRegression, X: Matrix = scaled, relevant: np.ndarray = relevant) -> None:
            for C in RIVAL_PATH:
                model.set_params(C=C).fit(X, relevant)

        calls = (ours, partial(theirs, LinearSVC()), partial(theirs, LogisticRegression()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            taken = np.min([[processor_seconds(call) for call in calls] for _ in range(TURNS)], axis=0)
        ratios.append(taken[0] / min(taken[1:]))
        yield f"  {name:<28} {taken[0]:>8.3f} {taken[1]:>10.3f} {taken[2]:>19.3f} {ratios[-1]:>6.2f}"
    yield f"  ours / the faster: geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, largest {max(ratios):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*")
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--noisy", action="store_true")
    parser.add_argument("--against", metavar="PYTHON")
    parser.add_argument("--losses", default=LOSSES)
    parser.add_argument("--C", default=VALUES_OF_C)
    parser.add_argument("--paths", action="store_true", help="eight values of C against scikit-learn's, and no more")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sources = [*arguments.data, *([NOISY] if arguments.noisy else [])]
    if arguments.work:
        work()
    elif arguments.against:
        values_of_C = [float(value) for value in arguments.C.split(",")]
        for line in against_table(arguments.against, sources, arguments.losses.split(","), values_of_C):
            print(line, flush=True)
    elif arguments.paths:
        for line in rival_path_table([read(source) for source in sources]):
            print(line, flush=True)
    else:
        show_all([read(source) for source in sources], arguments.made)


def show_all(sets: list[Named], with_made: bool) -> None:
    if sets:
        print("\n".join(iteration_table(sets, (10.0, 100.0, 1000.0))), end="\n\n")
        print("\n".join(bound_table(sets, (10.0, 1e3, 1e5))), end="\n\n", flush=True)
        print("\n".join(path_table(sets)), end="\n\n", flush=True)
        print("\n".join(rival_path_table(sets)), end="\n\n", flush=True)
    ratios: list[float] = []
    for name, X, relevant in sets:
        fit, test = train_test_split(np.arange(relevant.size), test_size=1 / 3, stratify=relevant, random_state=0)
        table = train_table(name, X[fit], relevant[fit], X[test], relevant[test], ratios=ratios)
        print("\n".join(table), end="\n\n", flush=True)
    if ratios:
        mean = np.exp(np.mean(np.log(ratios)))
        print(f"apsvm / LinearSVC, seconds: geometric mean {mean:.2f}, largest {max(ratios):.2f}\n")
    if with_made:
        rng = np.random.default_rng(0)
        w = rng.normal(size=100) / 10.0
        print("\n".join(train_table("made", *made(rng, w), *made(rng, w))))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
