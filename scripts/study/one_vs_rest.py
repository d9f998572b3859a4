"""Which loss wins on which metric, one class against the rest: AP, NDCG and the 0-1 loss, each judged by AP and nDCG.

k-fold cross-validation over rows with one label each. In each fold, for each loss and each metric, C is the one with
the best mean over the classes on a third of the training rows, the same for all classes; then every class is trained on
all training rows. Printed are means over folds and classes, bootstrap intervals of 95 % over these values, and for each
pair of losses the paired difference, its interval and the p of a randomisation test, two-sided, not corrected for their
number. The folds' training rows overlap, so intervals and p are somewhat too sure of themselves. A loss wins where the
interval leaves out 0 and p ≤ 0.05.

    python scripts/study/one_vs_rest.py DATA... [--folds 5] [--choices 0.1,1,10,100,…]
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm.data.labels import of_relevance
from apsvm.data.rows import Rows
from apsvm.metrics.classes import evaluate_classes
from apsvm.metrics.significance import bootstrap_means, interval, randomisation_test
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

LOSSES = ("ap", "ndcg", "zero-one")
METRICS = ("AP", "nDCG")
DRAWS = 10_000


def train(loss: str, rows: Rows, labels: np.ndarray, classes: np.ndarray, choices: list[float]) -> dict[float, list]:
    """C → the weights of each class; ``choices`` ascend, each trained from those before."""
    weights: dict[float, list] = {C: [] for C in choices}
    plan = StructuredSVMTrainer(loss, StructuredSettings(C=tuple(choices), bound="hinge"))
    for label in classes:
        path = plan.train(TrainingSet(rows, of_relevance(labels == label)), Watch())
        for C, outcome in zip(choices, path, strict=True):
            weights[C].append(outcome.w)
    return weights


def judge(rows: Rows, labels: np.ndarray, classes: np.ndarray, weights: list) -> dict[str, np.ndarray]:
    """Metric → its value for each class."""
    scores = np.stack([rows.scores(w) for w in weights], axis=1)
    return evaluate_classes(METRICS, scores, labels, classes).in_group


def compare(path: str, n_folds: int, choices: list[float]) -> None:
    dataset = read_svmlight(path)
    X, labels, classes = dataset.X, dataset.relevance, dataset.classes()
    values: dict[tuple[str, str], list[np.ndarray]] = {(loss, metric): [] for loss in LOSSES for metric in METRICS}
    chosen: dict[tuple[str, str], list[float]] = {key: [] for key in values}
    seconds = dict.fromkeys(LOSSES, 0.0)
    for train_rows, test_rows in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, labels):
        fit, valid = train_test_split(train_rows, test_size=1 / 3, stratify=labels[train_rows], random_state=0)
        parts = {name: Rows(X[rows], bias=1.0) for name, rows in
                 (("fit", fit), ("valid", valid), ("train", train_rows), ("test", test_rows))}  # fmt: skip
        for loss in LOSSES:
            weights = train(loss, parts["fit"], labels[fit], classes, choices)
            found = {C: judge(parts["valid"], labels[valid], classes, weights[C]) for C in choices}
            best = {metric: max(choices, key=lambda C, metric=metric: found[C][metric].mean()) for metric in METRICS}
            began = time.perf_counter()
            weights = train(loss, parts["train"], labels[train_rows], classes, sorted(set(best.values())))
            seconds[loss] += time.perf_counter() - began
            for metric, C in best.items():
                values[loss, metric].append(judge(parts["test"], labels[test_rows], classes, weights[C])[metric])
                chosen[loss, metric].append(C)

    print(f"{dataset.source}: {X.shape[0]} rows, {X.shape[1]} features, {classes.size} classes, {n_folds} folds")
    print(f"{'loss':<10}" + "".join(f"{f'mean {metric} [95 %]':<28}" for metric in METRICS) + "C chosen by AP; by nDCG")
    for loss in LOSSES:
        cells = ""
        for metric in METRICS:
            all_of_it = np.concatenate(values[loss, metric])
            low, high = spread(all_of_it)
            cells += f"{f'{all_of_it.mean():.4f} [{low:.4f}, {high:.4f}]':<28}"
        Cs = "; ".join(", ".join(f"{C:g}" for C in chosen[loss, metric]) for metric in METRICS)
        print(f"{loss:<10}{cells}{Cs}  ({seconds[loss]:.1f} s)")
    for metric in METRICS:
        print(f"{metric}: difference of the first from the second")
        for a, b in combinations(LOSSES, 2):
            d = np.concatenate(values[a, metric]) - np.concatenate(values[b, metric])
            low, high = spread(d)
            p = randomisation_test(d, DRAWS, np.random.default_rng(0))
            is_shown = not low <= 0 <= high and p <= 0.05
            verdict = f"{a if d.mean() > 0 else b} wins" if is_shown else "no difference shown"
            print(
                f"  {f'{a} - {b}':<16} {d.mean():+.4f} [{low:+.4f}, {high:+.4f}]  p {p:.4f}  better {np.sum(d > 0):>3} "
                f"worse {np.sum(d < 0):>3} of {d.size}  {verdict}"
            )
    print()


def spread(values: np.ndarray) -> tuple[float, float]:
    means = bootstrap_means(values[np.newaxis], DRAWS, np.random.default_rng(0))[:, 0]
    return interval(means, 0.95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--choices", default="0.1,1,10,100,1000,10000,100000,1000000")
    arguments = parser.parse_args()
    choices = sorted(float(C) for C in arguments.choices.split(","))
    for path in arguments.data:
        compare(path, arguments.folds, choices)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
