"""The demonstration of scripts/demo: the digit 8 against the rest, from scikit-learn's handwritten digits.

A third of the images is put aside as the test set before anything is looked at. On the rest three rankers are trained,
by the apsvm command, as a user would: the papers' binary SVM, its C chosen by cross-validation; ``apsvm train --loss
ap`` with nothing else said; and what ``apsvm cv`` chooses with nothing said at all.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_digits
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split

OUT = Path("demo-output")
DIGIT = 8
APSVM = Path(sys.executable).with_name("apsvm")
TRAIN = OUT / "train.svm"
#: The name of each model, and the command that trains it.
COMMANDS = {
    "zero-one": ("cv", TRAIN, "--loss", "zero-one", "--bias", 1, "-o", OUT / "zero-one.model"),
    "ap": ("train", "--loss", "ap", TRAIN, OUT / "ap.model"),
    "cv": ("cv", TRAIN, "-o", OUT / "cv.model"),
}


def apsvm(*arguments: object, show: bool = False) -> str:
    words = [str(argument) for argument in arguments]
    if show:
        print("$ apsvm", *words, flush=True)
    return subprocess.run([APSVM, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def export(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    dump_svmlight_file(X, np.where(y, 1, -1), str(path), zero_based=False)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    X, digits = load_digits(return_X_y=True)
    X, y = X / 16.0, digits == DIGIT
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
    test = OUT / "test.svm"
    export(TRAIN, X_train, y_train)
    export(test, X_test, y_test)
    print(
        f"digit {DIGIT} against the rest: {len(y_train)} rows to train ({y_train.sum()} positive), "
        f"{len(y_test)} to test ({y_test.sum()} positive)\n"
    )
    table = []
    for name, command in COMMANDS.items():
        model, scores = OUT / f"{name}.model", OUT / f"{name}.scores"
        began = time.perf_counter()
        print(apsvm(*command, show=True), end="")
        seconds = time.perf_counter() - began
        apsvm("predict", test, model, scores, show=True)
        report = apsvm(
            "eval", test, "--scores", scores, "-m", "AP", "-m", "AP(voc2007)", "-m", "AUC", "--json", show=True
        )
        judge = average_precision_score(y_test, np.loadtxt(scores))
        table.append((name, json.loads(report)["metrics"], judge, json.loads(apsvm("info", "--json", model)), seconds))
        print()

    print(f"test set: {len(y_test)} rows, {y_test.sum()} positive\n")
    print(f"{'model':<9} {'loss':<9} {'bound':<6} {'features':<18}{'C':>9}", end="")
    print(f"{'AP':>10} {'AP(voc2007)':>12} {'AUC':>9} {'sklearn AP':>11} {'gap':>9} {'asked':>9} {'seconds':>8}")
    for name, metrics, judge, header, seconds in table:
        features, bounds = header["features"]["map"], header["certificate"]
        if bounds is None:  # an average, of which each member has its own: apsvm verify proves them
            features, bound, C, gap, tolerance = f"average of {features.count('+') + 1}", "", "", "", ""
        else:
            bound, C = bounds["bound"], f"{header['C']:.4g}"
            gap, tolerance = (f"{bounds[key]:.3g}" for key in ("gap", "tolerance"))
        print(f"{name:<9} {header['loss']:<9} {bound:<6} {features:<18}{C:>9}", end="")
        print(f"{metrics['AP']:>10.6f} {metrics['AP(voc2007)']:>12.6f} {metrics['AUC']:>9.6f} {judge:>11.6f}", end="")
        print(f" {gap:>9} {tolerance:>9} {seconds:>8.2f}")
    print("\nsklearn AP is sklearn.metrics.average_precision_score of the predicted scores: it must equal AP.")
    print(f"seconds are of the whole command, start-up included. Models and scores are in {OUT}/.")


if __name__ == "__main__":
    main()
