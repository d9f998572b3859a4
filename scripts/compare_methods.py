"""The papers' comparison on one data set: every exact oracle, AP-SVM-APPX at k = 25, 50, 75 %, and the binary SVM.

k-fold cross-validation. In each fold C is chosen for each loss on a third of the training rows (APPX takes the AP
loss's C), then every method is trained on all of them. Printed are means over the folds: test AP with its standard
deviation, the primal objective, iterations, seconds in the oracle in all and milliseconds a call, seconds of training.
"rel. diff." is the largest relative difference of a fold's objective from greedy's. All methods run in one process, one
after the other, on one thread, with the papers' plain cutting-plane solver unless --solver says otherwise.

    python scripts/compare_methods.py DATA [--folds 5] [--choices 1,10,100,1000]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.metrics import parse_metric
from apsvm.oracles import serving
from apsvm.trainers.approximate import train_approximate
from apsvm.trainers.stage import CUTTERS, Settings, Trained, TrainingSet, Watch
from apsvm.trainers.structured_svm import train_structured_svm

EXACT = [name for name in serving(make_loss("ap")) if name != "brute-force"]
METHODS = ["zero-one", *EXACT, "appx 25", "appx 50", "appx 75"]


@dataclass
class Row:
    """One method's figures, a value a fold."""

    ap: list[float] = field(default_factory=list)
    primal: list[float] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    oracle_seconds: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    calls: int = 0


def train(method: str, data: TrainingSet, settings: Settings) -> Trained:
    if method == "zero-one":
        return train_structured_svm(data, replace(settings, loss="zero-one"), Watch())
    if method.startswith("appx"):
        return train_approximate(data, settings, float(method.split()[1]), Watch())
    return train_structured_svm(data, replace(settings, oracle=method), Watch())


def part(X, relevant, rows) -> TrainingSet:
    """With a bias of 1, which the binary SVM needs and the AP loss ignores."""
    return TrainingSet(Rows(X[rows], bias=1.0), relevant[rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--choices", default="1,10,100,1000,10000")
    parser.add_argument("--epsilon", type=float, default=1e-3)
    parser.add_argument("--solver", choices=list(CUTTERS), default="cutting-plane")
    arguments = parser.parse_args()
    settings = Settings(epsilon=arguments.epsilon, solver=arguments.solver)
    choices = [float(C) for C in arguments.choices.split(",")]
    dataset = read_svmlight(arguments.data)
    X, relevant = dataset.X, dataset.positives()
    ap = parse_metric("AP")
    table = {method: Row() for method in METHODS}
    chosen: dict[str, list[float]] = {"zero-one": [], "ap": []}
    folds = StratifiedKFold(arguments.folds, shuffle=True, random_state=0)
    for train_rows, test_rows in folds.split(X, relevant):
        fit, valid = train_test_split(train_rows, test_size=1 / 3, stratify=relevant[train_rows], random_state=0)
        validation = Rows(X[valid], bias=1.0)
        best = {}
        for loss, method in (("zero-one", "zero-one"), ("ap", "qs")):
            found = {}
            for C in choices:
                w = train(method, part(X, relevant, fit), replace(settings, C=C)).w
                found[C] = ap(validation.scores(w), relevant[valid])
            best[loss] = max(found, key=found.__getitem__)
            chosen[loss].append(best[loss])
        training, test = part(X, relevant, train_rows), Rows(X[test_rows], bias=1.0)
        for method in METHODS:
            C = best["zero-one" if method == "zero-one" else "ap"]
            trained = train(method, training, replace(settings, C=C))
            row = table[method]
            row.ap.append(ap(test.scores(trained.w), relevant[test_rows]))
            row.primal.append(trained.solution.certificate.primal)
            row.iterations.append(sum(stage.solution.iterations for stage in trained.stages))
            row.calls += sum(stage.oracle_calls for stage in trained.stages)
            row.oracle_seconds.append(sum(stage.spans["oracle"].wall_ns for stage in trained.stages) / 1e9)
            row.seconds.append(sum(stage.solution.seconds for stage in trained.stages))

    n, n_pos = relevant.size, int(relevant.sum())
    print(f"{dataset.source}: {n} rows, {n_pos} positive, {X.shape[1]} features")
    print(f"{arguments.folds} folds; solver {arguments.solver}; epsilon {arguments.epsilon:g}")
    print("C chosen: " + "; ".join(f"{loss} {', '.join(f'{C:g}' for C in values)}" for loss, values in chosen.items()))
    print(
        f"{'method':<14} {'test AP':>8} {'± dev':>8} {'primal':>14} {'rel. diff.':>11} {'iterations':>11} "
        f"{'oracle s':>9} {'ms/call':>9} {'total s':>9}"
    )
    judge = np.array(table["greedy"].primal)
    for method, row in table.items():
        differs = f"{np.max(np.abs(np.array(row.primal) / judge - 1)):>11.1e}" if method in EXACT else f"{'':>11}"
        print(
            f"{method:<14} {np.mean(row.ap):>8.4f} {np.std(row.ap):>8.4f} {np.mean(row.primal):>14.7g} {differs} "
            f"{np.mean(row.iterations):>11.1f} {np.mean(row.oracle_seconds):>9.4f} "
            f"{1e3 * sum(row.oracle_seconds) / row.calls:>9.4f} {np.mean(row.seconds):>9.3f}"
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
