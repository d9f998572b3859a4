"""What scripts/demo runs: the digit 8 against the rest, from the handwritten digits that scikit-learn ships.

A third of the images is put aside as the test set before anything is looked at. C is chosen for each loss on a third of
what is left, then the ranker is trained on all of it. Everything goes through the apsvm command, as a user would.
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
LOSSES = ("zero-one", "ap")
CHOICES_OF_C = (1, 10, 100, 1_000, 10_000, 100_000)
APSVM = Path(sys.executable).with_name("apsvm")


def apsvm(*arguments: object, show: bool = False) -> str:
    words = [str(argument) for argument in arguments]
    if show:
        print("$ apsvm", *words, flush=True)
    return subprocess.run([APSVM, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def export(name: str, X: np.ndarray, y: np.ndarray) -> Path:
    path = OUT / name
    dump_svmlight_file(X, np.where(y, 1, -1), str(path), zero_based=False)
    return path


def main() -> None:
    OUT.mkdir(exist_ok=True)
    X, digits = load_digits(return_X_y=True)
    X, y = X / 16.0, digits == DIGIT
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
    X_fit, X_valid, y_fit, y_valid = train_test_split(
        X_train, y_train, test_size=1 / 3, stratify=y_train, random_state=0
    )
    train, test = export("train.svm", X_train, y_train), export("test.svm", X_test, y_test)
    fit, valid = export("fit.svm", X_fit, y_fit), export("valid.svm", X_valid, y_valid)
    print(
        f"digit {DIGIT} against the rest: {len(y_train)} rows to train ({y_train.sum()} positive), "
        f"{len(y_test)} to test ({y_test.sum()} positive)\n"
    )
    table = []
    for loss in LOSSES:
        options = ["--loss", loss, "--bias", 1]
        scores_of_c = {}
        for C in CHOICES_OF_C:
            apsvm("train", *options, "-q", "-C", C, fit, OUT / "choice.model")
            found = json.loads(apsvm("eval", valid, "--model", OUT / "choice.model", "--json"))
            scores_of_c[C] = found["metrics"]["AP"]
        C = max(scores_of_c, key=scores_of_c.__getitem__)
        model, scores = OUT / f"{loss}.model", OUT / f"{loss}.scores"
        began = time.perf_counter()
        apsvm("train", *options, "-C", C, "--log", OUT / f"{loss}.log", train, model, show=True)
        seconds = time.perf_counter() - began
        apsvm("predict", test, model, scores, show=True)
        report = apsvm(
            "eval", test, "--scores", scores, "--ap", "ap", "--ap", "voc2007", "--ap", "voc2010", "--json", show=True
        )
        metrics = json.loads(report)["metrics"]
        header = json.loads(apsvm("info", "--json", model))
        judge = average_precision_score(y_test, np.loadtxt(scores))
        table.append((loss, C, metrics, judge, header, seconds))
        print()

    print(f"test set: {len(y_test)} rows, {y_test.sum()} positive; C chosen on held-out training rows\n")
    columns = ("AP", "AP(voc2007)", "AP(voc2010)", "AUC")
    print(f"{'loss':<9} {'C':>6} " + "".join(f"{name:>13}" for name in columns), end="")
    print(f"{'sklearn AP':>13} {'gap':>9} {'asked':>9} {'seconds':>8}")
    for loss, C, metrics, judge, header, seconds in table:
        bounds = header["certificate"]
        print(f"{loss:<9} {C:>6} " + "".join(f"{metrics[name]:>13.6f}" for name in columns), end="")
        print(f"{judge:>13.6f} {bounds['gap']:>9.3g} {bounds['tolerance']:>9.3g} {seconds:>8.2f}")
    print("\nsklearn AP is sklearn.metrics.average_precision_score of the predicted scores: it must equal AP.")
    print(f"seconds are of the whole command, start-up included. Models, scores and logs are in {OUT}/.")


if __name__ == "__main__":
    main()
