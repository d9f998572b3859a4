"""Several classes, folds and values of C: side by side with scikit-learn, and with another checkout.

    python scripts/bench/classes.py [DATA …] [--against PYTHON] [--cases 10,wide,100,cv] [--ways "defaults"] [--turns 3]

Made classes (a linear signal plus noise) one against the rest, by the hinge at a fixed C, by the hinge at the default
C, and with all defaults, over multinomial LogisticRegression; a choice among eight C on five folds and a training with
the best, over LogisticRegressionCV with as many on the same folds; and on each of DATA, svmlight files of two labels,
standardised, a path of eight C over the faster of LinearSVC and LogisticRegression. Each figure is the least processor
time of --turns turns, in which all take part; one thread. ``--against`` is the Python of another checkout's
environment, which takes part too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import label_binarize
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm.data.dataset import Dataset
from apsvm.data.features.scaling import learn_scaling
from apsvm.data.labels import LabelOptions, of_relevance
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.metrics import parse_metric
from apsvm.selection.completion import outcomes
from apsvm.selection.grids import Grid
from apsvm.selection.search import SettingsSearch
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.fitting import FeatureOptions, Fit
from apsvm.trainers.one_vs_rest import OneVsRestTrainer
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer
from apsvm.trainers.structured_svm.training import train

#: Rows, features and classes of the made sets, by the case's name.
MADE = {"10": (50_000, 50, 10), "wide": (50_000, 300, 10), "100": (50_000, 50, 100)}
CV_ROWS, CV_FEATURES = 50_000, 50
#: How the classes are trained, and how many times LogisticRegression's seconds they may take.
WAYS: dict[str, dict[str, Any]] = {
    "hinge, C = 1": {"bound": "hinge", "C": (1.0,)},
    "hinge, default C": {"bound": "hinge"},
    "defaults": {},
}
BARS = {"10": 1.0, "wide": 1.0, "100": 0.4, "cv": 1.0, "path": 0.7}
#: Ours and the rivals', of about the same range of fits.
PATH, RIVAL_PATH = (tuple(np.geomspace(*ends, 8).tolist()) for ends in ((0.1, 1e6), (1e-4, 1e3)))


def made(n: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(d, k)) / np.sqrt(d)
    X = rng.normal(size=(n, d))
    return X, np.argmax(X @ weights + 0.5 * rng.normal(size=(n, k)), axis=1).astype(np.float64)


def dataset_of(X: np.ndarray, labels: np.ndarray) -> Dataset:
    return Dataset(X, labels, None, None, False, "made", "", 0)


def mean_ap(scores: np.ndarray, labels: np.ndarray) -> float:
    return float(average_precision_score(label_binarize(labels, classes=np.unique(labels)), scores, average="macro"))


Case = tuple[Callable[[], Any], Callable[[Any], float]]


def classes(case: str, way: str) -> Case:
    """A training, and its mean training AP."""
    X, labels = made(*MADE[case])
    if way == "LogisticRegression":
        return lambda: LogisticRegression(max_iter=1000).fit(X, labels), lambda model: mean_ap(
            model.decision_function(X), labels
        )
    plan = OneVsRestTrainer(StructuredSVMTrainer("ap", StructuredSettings(threads=1, **WAYS[way])))
    fit = Fit.of(dataset_of(X, labels), plan, LabelOptions(), FeatureOptions(bias=1.0))

    def score(outcome: Any) -> float:
        return mean_ap(fit.rows().scores_of_all(np.stack([one.w for _, one in outcome.classes])), labels)

    return lambda: next(iter(outcomes(fit, Watch()))), score


def cross_validation(way: str) -> Case:
    """The choice and the training, and the AP of the best C on the folds."""
    X, labels = made(CV_ROWS, CV_FEATURES, 2)
    data, metrics = dataset_of(X, labels), {"AP": parse_metric("AP")}

    def search() -> SettingsSearch:
        grid = Grid.of(
            lambda one: StructuredSVMTrainer("ap", one), StructuredSettings(), {"C": PATH, "bound": ("hinge",)}
        )
        options = LabelOptions(positive_label=1.0)
        return SettingsSearch(data, [grid], metrics, labels=options, features=FeatureOptions(bias=1.0))

    def ours() -> float:
        run = search()
        run.run(1)
        candidates = run.candidates()
        best = run.choose(candidates)
        run.refit(best, candidates, jobs=1)
        return best.mean("AP")

    folds = [(fold.training, fold.test) for fold in search().folds]
    rival = LogisticRegressionCV(
        Cs=RIVAL_PATH,
        cv=folds,
        scoring="average_precision",
        max_iter=1000,
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    )
    if way == "LogisticRegressionCV":
        return lambda: rival.fit(X, labels), lambda model: float(model.scores_.mean(axis=0).max())
    return ours, lambda ap: ap


def path(source: str, way: str) -> Case:
    """Eight trainings, and the best training AP."""
    dataset = read_svmlight(source)
    relevant = dataset.positives(None)
    rows = Rows(dataset.X, scaling=learn_scaling("standard", dataset.X))
    dense = np.stack([rows.scores(column) for column in np.eye(rows.dimension)], axis=1)
    if way == "hinge":
        data, settings = TrainingSet(rows, of_relevance(relevant)), StructuredSettings(bound="hinge", C=PATH)

        def ours() -> list[np.ndarray]:
            return [one.w for one in train(Plan(loss=make_loss("ap"), settings=settings), data, Watch())]

        return ours, lambda path: max(average_precision_score(relevant, dense @ w) for w in path)
    kind = {"LinearSVC": LinearSVC, "LogisticRegression": LogisticRegression}[way]

    def theirs() -> list[Any]:
        return [kind(C=C, max_iter=1000).fit(dense, relevant) for C in RIVAL_PATH]

    return theirs, lambda path: max(average_precision_score(relevant, one.decision_function(dense)) for one in path)


def case_of(name: str, way: str) -> Case:
    if name in MADE:
        return classes(name, way)
    return cross_validation(way) if name == "cv" else path(name, way)


def work() -> None:
    """Reads requests from standard input, a JSON list [case, way] a line, and answers with seconds and AP. It
    runs in the other checkout too, and keeps to what has long been there."""
    import warnings

    warnings.simplefilter("ignore")  # at a C that a rival cannot manage, what it has when it gives up counts
    ready: dict[tuple[str, str], Case] = {}
    for line in sys.stdin:
        key = tuple(json.loads(line))
        if key not in ready:
            ready = {key: case_of(*key)}
        train, judge = ready[key]
        began = time.process_time()
        result = train()
        seconds = time.process_time() - began
        print(json.dumps([seconds, judge(result)]), flush=True)


class Worker:
    """A process of one way, in the environment of ``python``."""

    def __init__(self, python: str, case: str, way: str) -> None:
        self._process = subprocess.Popen(
            [python, __file__, "--work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._asks = json.dumps([case, way])
        self.seconds, self.ap = np.inf, 0.0

    def take_turn(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(self._asks, file=self._process.stdin, flush=True)
        seconds, self.ap = json.loads(self._process.stdout.readline())
        self.seconds = min(self.seconds, seconds)

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def compare(case: str, ways: list[str], turns: int, against: str | None) -> list[dict[str, Any]]:
    """A case: one row for each of our ways."""
    kind = case if case in BARS else "path"
    ours = {"cv": ["hinge"], "path": ["hinge"]}.get(kind, ways)
    rivals = {"cv": ["LogisticRegressionCV"], "path": ["LinearSVC", "LogisticRegression"]}.get(
        kind, ["LogisticRegression"]
    )
    workers = {way: Worker(sys.executable, case, way) for way in [*ours, *rivals]}
    before = {way: Worker(against, case, way) for way in ours} if against else {}
    everybody = [*workers.values(), *before.values()]
    for _ in range(turns):
        for worker in everybody:
            worker.take_turn()
    for worker in everybody:
        worker.end()
    rival = min((workers[way] for way in rivals), key=lambda worker: worker.seconds)
    rows: list[dict[str, Any]] = []
    for way in ours:
        mine = workers[way]
        row = {"case": Path(case).name, "way": way, "seconds": mine.seconds, "AP": mine.ap, "bar": BARS[kind]}
        row |= {"rival": rival.seconds, "rival AP": rival.ap, "ratio": mine.seconds / rival.seconds}
        if before:
            row |= {"before": before[way].seconds, "of before": mine.seconds / before[way].seconds}
        rows.append(row)
    return rows


def line(row: dict[str, Any]) -> str:
    before = f"{row['before']:>9.3f} {row['of before']:>6.2f}" if "before" in row else ""
    return (
        f"{row['case']:<22} {row['way']:<18} {row['seconds']:>9.3f} {row['rival']:>9.3f} {row['ratio']:>6.2f} "
        f"{row['bar']:>5.2f} {row['AP']:>7.4f} {row['rival AP']:>7.4f} {before}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*")
    parser.add_argument("--against")
    parser.add_argument("--cases", default="10,wide,100,cv")
    parser.add_argument("--ways", default=";".join(WAYS), help="of training classes, semicolons between them")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work()
        return
    print(
        f"{'case':<22} {'apsvm':<18} {'seconds':>9} {'rival':>9} {'ratio':>6} {'bar':>5} {'AP':>7} {'rival':>7} "
        + (f"{'before':>9} {'ratio':>6}" if arguments.against else "")
    )
    rows: list[dict[str, Any]] = []
    for case in [*filter(None, arguments.cases.split(",")), *arguments.data]:
        for row in compare(case, arguments.ways.split(";"), arguments.turns, arguments.against):
            print(line(row), flush=True)
            rows.append(row)
    paths = [row["ratio"] for row in rows if row["bar"] == BARS["path"]]
    if paths:
        print(f"paths of C: geometric mean {np.exp(np.mean(np.log(paths))):.2f}, largest {max(paths):.2f}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
