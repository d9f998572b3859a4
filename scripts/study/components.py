"""What do several components gain? Held-out AP and seconds of ``components=1, 2, 3 …`` with all else left to itself.

    python scripts/study/components.py tables FOLDER… [--components 1,2,3]
    python scripts/study/components.py pairs FILE… [--splits 3] [--components 1,2,3]
    python scripts/study/components.py chosen FILE… [--components 1,2,3,4]

``tables``: folders of Xtrain.npy, ytrain.npy, Xtest.npy and ytest.npy. ``pairs``: svmlight files of several classes;
the rows of two of them, joined, are the positives, and 70 % of the rows are trained on. ``chosen``: how many components
five folds choose, by the best mean and by the one-standard-error rule.
Features are brought to deviation 1. The numbers of components take turns on each split.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from apsvm import APSVMClassifier, read_svmlight


class Split(NamedTuple):
    """Rows to train on, and rows to judge by: matrices (n, d) and bool (n,)."""

    X: NDArray[np.floating]
    y: NDArray[np.bool_]
    X_test: NDArray[np.floating]
    y_test: NDArray[np.bool_]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("tables", "pairs", "chosen"):
        command = commands.add_parser(name)
        command.add_argument("paths", nargs="+", type=Path)
        command.add_argument("--components", default="1,2,3,4" if name == "chosen" else "1,2,3")
        if name == "pairs":
            command.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    counts = [int(count) for count in options.components.split(",")]
    if options.command == "tables":
        for path in options.paths:
            show(path.name, counts, [measured(split_of_table(path), counts)])
    elif options.command == "pairs":
        for path in options.paths:
            study_pairs(path, options.splits, counts)
    else:
        for path in options.paths:
            study_choice(path, counts)


def split_of_table(folder: Path) -> Split:
    X, y, X_test, y_test = (np.load(folder / f"{name}.npy") for name in ("Xtrain", "ytrain", "Xtest", "ytest"))
    return Split(X, y > 0, X_test, y_test > 0)


def measured(split: Split, counts: Sequence[int]) -> list[tuple[float, float]]:
    """AP on the test rows and seconds of training, for each number of components."""
    scaler = StandardScaler().fit(split.X)
    X, X_test = scaler.transform(split.X), scaler.transform(split.X_test)
    results = []
    for count in counts:
        began = time.perf_counter()
        model = APSVMClassifier(components=count, n_jobs=-1).fit(X, split.y)
        seconds = time.perf_counter() - began
        results.append((float(average_precision_score(split.y_test, model.decision_function(X_test))), seconds))
    return results


def study_pairs(path: Path, n_splits: int, counts: Sequence[int]) -> None:
    """Pairs of neighbouring labels; a label that more than a quarter of the rows have is the rest of them."""
    data = read_svmlight(path)
    X, labels = data.X.toarray(), data.relevance
    classes, sizes = np.unique(labels, return_counts=True)
    classes = classes[4 * sizes < labels.size]
    for first, second in zip(classes[::2], classes[1::2], strict=False):
        y = (labels == first) | (labels == second)
        splits = StratifiedShuffleSplit(n_splits, train_size=0.7, random_state=0).split(X, y)
        results = [measured(Split(X[train], y[train], X[test], y[test]), counts) for train, test in splits]
        show(f"{path.stem} {first:g}+{second:g}", counts, results)


def study_choice(path: Path, counts: Sequence[int]) -> None:
    """Both choices, by AP of five folds."""
    data = read_svmlight(path)
    X, y = data.X.toarray(), data.relevance > 0
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    results = [measured(Split(X[train], y[train], X[test], y[test]), counts) for train, test in folds]
    show(path.stem, counts, results)
    scores = np.array([[ap for ap, _ in of_fold] for of_fold in results])
    mean, error = scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
    top = int(mean.argmax())
    simplest = int(np.flatnonzero(mean >= mean[top] - error[top])[0])
    print(f"{path.stem}: the best mean has {counts[top]}, within one standard error {counts[simplest]}")


def show(name: str, counts: Sequence[int], results: Sequence[Sequence[tuple[float, float]]]) -> None:
    """A line: mean AP and seconds for each number of components."""
    print(f"{name:24s}", "   ".join(_cells(counts, results)), flush=True)


def _cells(counts: Sequence[int], results: Sequence[Sequence[tuple[float, float]]]) -> Iterator[str]:
    for count, (ap, seconds) in zip(counts, np.mean(np.array(results), axis=0).tolist(), strict=True):
        yield f"H={count} AP {ap:.3f} ({seconds:.1f} s)"


if __name__ == "__main__":
    main()
