"""The repository's training benchmark: iterations of both solvers, AP-SVM against scikit-learn's classifiers, the
tight bound against the hinge, and paths of C.

    python scripts/bench_training.py DATA [DATA …] [--made]

DATA are svmlight files with labels +1 and -1 (or 0), or FILE@LABEL: that label against all others. ``--made`` adds a
made set of 200,000 x 100, dense, 1 % positive, a linear signal plus noise. One thread everywhere.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm.benchmarks import bound_table, iteration_table, path_table, train_table


def made(rng: np.random.Generator, w: np.ndarray, n: int = 200_000) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, w.size))
    target = X @ w + 0.5 * rng.normal(size=n)
    return X, target > np.quantile(target, 0.99)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*")
    parser.add_argument("--made", action="store_true")
    arguments = parser.parse_args()
    sets = []
    for path in arguments.data:
        file, _, label = path.partition("@")
        dataset = read_svmlight(file)
        sets.append((Path(path).name, dataset.X, dataset.positives(float(label) if label else None)))
    if sets:
        print("\n".join(iteration_table(sets, (10.0, 100.0, 1000.0))), end="\n\n")
        print("\n".join(bound_table(sets, (10.0, 1e3, 1e5))), end="\n\n", flush=True)
        print("\n".join(path_table(sets)), end="\n\n", flush=True)
    ratios: list[float] = []
    for name, X, relevant in sets:
        fit, test = train_test_split(np.arange(relevant.size), test_size=1 / 3, stratify=relevant, random_state=0)
        table = train_table(name, X[fit], relevant[fit], X[test], relevant[test], ratios=ratios)
        print("\n".join(table), end="\n\n", flush=True)
    if ratios:
        mean = np.exp(np.mean(np.log(ratios)))
        print(f"apsvm / LinearSVC, seconds: geometric mean {mean:.2f}, largest {max(ratios):.2f}\n")
    if arguments.made:
        rng = np.random.default_rng(0)
        w = rng.normal(size=100) / 10.0
        print("\n".join(train_table("made", *made(rng, w), *made(rng, w))))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
