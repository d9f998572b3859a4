"""Time trainings beside scikit-learn's classifiers; one thread.

    python scripts/bench/training.py [DATA …]            each at the C of its best test AP; without DATA a made set
    python scripts/bench/training.py DATA … --paths      eight values of C, standardised features
    python scripts/bench/training.py --classes           ten made classes, one against the rest

DATA are svmlight files with labels +1 and -1 (or 0), or FILE@LABEL: that label against all others. The made set has
200,000 x 100 dense rows, 1 % positive: a linear signal plus noise. Times are of the processor.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from oracles import fastest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm._support.types import Matrix
from apsvm.data.dataset import Dataset
from apsvm.data.labels import LabelOptions, of_relevance
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.selection.completion import train_fit
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.fitting import FeatureOptions, Fit
from apsvm.trainers.one_vs_rest import OneVsRestTrainer
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer
from apsvm.trainers.structured_svm.training import train

#: A data set's name, rows (n, d), and which of them are relevant (n,) bool.
Named = tuple[str, Matrix, np.ndarray]
#: Values of C of apsvm and of its rivals: of single trainings, and of paths.
VALUES, RIVAL_VALUES = np.geomspace(1.0, 1e4, 5), np.geomspace(1e-2, 1e2, 5)
PATH, RIVAL_PATH = np.geomspace(1e-2, 1e5, 8), np.geomspace(1e-4, 1e3, 8)
RIVALS: Mapping[str, Callable[[float], Any]] = {
    "LinearSVC": lambda C: LinearSVC(C=C),
    "LogisticRegression": lambda C: LogisticRegression(C=C, max_iter=1000),
}


@dataclass(frozen=True, slots=True)
class TimedFit:
    """Test AP, processor seconds and C of a training."""

    ap: float
    seconds: float
    C: float


def made(n: int = 300_000, d: int = 100) -> Named:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    target = X @ rng.normal(size=d) / np.sqrt(d) + 0.5 * rng.normal(size=n)
    return "made", X, target > np.quantile(target, 0.99)


def read(source: str) -> Named:
    file, _, label = source.partition("@")
    dataset = read_svmlight(file)
    return Path(source).name, dataset.X, dataset.positives(float(label) if label else None)


def seconds_of(call: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of the fastest call, and its result. Where a rival gives up, its time and result count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fastest(call, budget=0.5, at_least=2)


def path_of(data: TrainingSet, bound: str, values: Sequence[float]) -> list[np.ndarray]:
    """Weights of AP-SVMs, one for each C."""
    settings = StructuredSettings(bound=bound, C=tuple(map(float, values)), threads=1)
    return [trained.w for trained in train(Plan(loss=make_loss("ap"), settings=settings), data, Watch())]


def rival_path(rival: str, X: Matrix, relevant: np.ndarray) -> None:
    for C in RIVAL_PATH:
        RIVALS[rival](C).fit(X, relevant)


def train_table(name: str, X: Matrix, relevant: np.ndarray) -> Iterator[str]:
    """Lines of a table: AP-SVM by both bounds beside scikit-learn's classifiers, on two thirds of the rows, each at the
    C with the best AP on the rest."""
    fit, test = train_test_split(np.arange(relevant.size), test_size=1 / 3, stratify=relevant, random_state=0)
    X_fit, y_fit, X_test = X[fit], relevant[fit], X[test]

    def ours(bound: str, C: float) -> TimedFit:
        data = TrainingSet(Rows(X_fit, threads=1), of_relevance(y_fit))
        seconds, (w,) = seconds_of(partial(path_of, data, bound, [C]))
        return TimedFit(average_precision_score(relevant[test], Rows(X_test).scores(w)), seconds, C)

    def theirs(rival: str, C: float) -> TimedFit:
        seconds, model = seconds_of(lambda: RIVALS[rival](C).fit(X_fit, y_fit))
        return TimedFit(average_precision_score(relevant[test], model.decision_function(X_test)), seconds, C)

    yield f"{name}: {X_fit.shape[0]} x {X_fit.shape[1]}, {int(y_fit.sum())} positive"
    yield f"  {'method':<20} {'C':>8} {'test AP':>8} {'seconds':>9}"
    fits = {f"apsvm, {bound}": [ours(bound, C) for C in VALUES] for bound in ("hinge", "tight")}
    fits |= {rival: [theirs(rival, C) for C in RIVAL_VALUES] for rival in RIVALS}
    for method, timed in fits.items():
        best = max(timed, key=lambda one: one.ap)
        yield f"  {method:<20} {best.C:>8g} {best.ap:>8.4f} {best.seconds:>9.4f}"


def path_table(sets: Sequence[Named]) -> Iterator[str]:
    """Lines of a table: eight values of C in one go beside as many trainings of scikit-learn's classifiers."""
    yield f"eight values of C, ours {PATH[0]:g} to {PATH[-1]:g}, theirs {RIVAL_PATH[0]:g} to {RIVAL_PATH[-1]:g}"
    yield f"  {'data':<28} {'apsvm':>8} " + " ".join(f"{rival:>19}" for rival in RIVALS)
    for name, X, relevant in sets:
        scaled = StandardScaler(with_mean=False).fit_transform(X)
        data = TrainingSet(Rows(scaled, threads=1), of_relevance(relevant))
        taken, _ = seconds_of(partial(path_of, data, "hinge", PATH))
        cells = [seconds_of(partial(rival_path, rival, scaled, relevant))[0] for rival in RIVALS]
        yield f"  {name:<28} {taken:>8.3f} " + " ".join(f"{cell:>19.3f}" for cell in cells)


def class_table(n: int = 50_000, d: int = 50, k: int = 10) -> Iterator[str]:
    """Lines of a table: one against the rest, beside multinomial logistic regression."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    signal = X @ rng.normal(size=(d, k)) / np.sqrt(d)
    labels = np.argmax(signal + 0.5 * rng.normal(size=(n, k)), axis=1).astype(np.float64)
    dataset = Dataset(X, labels, None, None, False, "made", "", 0)

    def ours(settings: StructuredSettings) -> np.ndarray:
        plan = OneVsRestTrainer(StructuredSVMTrainer("ap", settings))
        fit = Fit.of(dataset, plan, LabelOptions(), FeatureOptions(bias=1.0))
        (outcome,) = train_fit(fit, Watch())
        return fit.rows().scores_of_all(np.stack([np.asarray(one.w) for _, one in outcome.classes]))

    calls = {
        "apsvm, hinge, C = 1": partial(ours, StructuredSettings(threads=1, bound="hinge", C=(1.0,))),
        "apsvm, defaults": partial(ours, StructuredSettings(threads=1)),
        "LogisticRegression": lambda: LogisticRegression(max_iter=1000).fit(X, labels).decision_function(X),
    }
    yield f"{k} classes of {n} x {d} rows"
    yield f"  {'method':<20} {'training AP':>12} {'seconds':>9}"
    for name, call in calls.items():
        seconds, scores = seconds_of(call)
        ap = average_precision_score(labels[:, None] == np.arange(k), scores, average="macro")
        yield f"  {name:<20} {ap:>12.4f} {seconds:>9.3f}"


def tables(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.classes:
        yield from class_table()
        return
    sets = [read(source) for source in arguments.data] or [made()]
    if arguments.paths:
        yield from path_table(sets)
        return
    for one in sets:
        yield from train_table(*one)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*")
    parser.add_argument("--paths", action="store_true")
    parser.add_argument("--classes", action="store_true")
    with threadpool_limits(1):
        for line in tables(parser.parse_args()):
            print(line, flush=True)


if __name__ == "__main__":
    main()
