"""Bags by their best rows, beside bags made rows: AP of the ranking of bags, in five folds, and whether the right row
decides.

    python scripts/study/bags.py DATA[@LABEL] [… ] [--truth FILE] [--seed 0] [--json FILE]

DATA are svmlight files with bag:, DATA@LABEL has that label against all others (rows may have several). FILE of
--truth has a label a row, in the order of the rows; with it, "right" is the share of the positive bags of the
test folds whose deciding row has the label. Features are standardised by the training rows of each fold. All methods
choose their C inside the training part of a fold: latent training by its default (``--bound auto``), the others by AP
in five folds. LR is scikit-learn's logistic regression.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from apsvm import APSVMClassifier, WeakRankerWarning, read_svmlight
from apsvm.data.bags import bags_of, rows_of_bags
from apsvm.data.pooling import pooled_rows

LATENT = {"latent AP": "ap", "latent NDCG": "ndcg", "latent 0-1": "zero-one"}
POOLS = {"means": ("mean",), "min,mean,max": ("min", "mean", "max")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    columns = [*LATENT, *(f"LR, {pool}" for pool in POOLS), *(f"AP, {pool}" for pool in POOLS)]
    results: dict[str, dict[str, dict[str, float]]] = {}
    for name in options.data:
        results[name] = study(name, options.truth, options.seed, columns)
        print(f"{name} done", file=sys.stderr, flush=True)
    for what, title in (("AP", "AP of the bags"), ("seconds", "Seconds of the five trainings, their C chosen")):
        print(f"{title}\n\n{_table(results, columns, what)}\n")
    if options.truth is not None:
        print(f"The deciding row is right\n\n{_table(results, list(LATENT), 'right')}")
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1))


def study(name: str, truth: Path | None, seed: int, methods: Sequence[str]) -> dict[str, dict[str, float]]:
    """Of each method its AP, seconds and, with --truth, the share of right rows."""
    path, _, label = name.partition("@")
    dataset = read_svmlight(path, multilabel=bool(label))
    bags = bags_of(dataset)
    assert bags is not None, f"{path}: its rows are in no bags"
    positive = (dataset.have(float(label)) if label else dataset.relevance > 0)[bags.first]
    right = None if truth is None else np.loadtxt(truth) == float(label or 1)
    X = dataset.X.toarray() if hasattr(dataset.X, "toarray") else np.asarray(dataset.X)
    sums: dict[str, dict[str, list[float]]] = {method: {"AP": [], "seconds": [], "right": []} for method in methods}
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(positive, positive):
        rows, test_rows = (rows_of_bags(dataset, part) for part in (train, test))
        scaler = StandardScaler().fit(X[rows])
        of_row = bags.bag_of_row
        train_X, test_X = scaler.transform(X[rows]), scaler.transform(X[test_rows])
        for method in methods:
            began = time.process_time()
            if method in LATENT:
                model = APSVMClassifier(LATENT[method], latent=True)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", WeakRankerWarning)
                    model.fit(train_X, positive[of_row[rows]], bags=of_row[rows])
                seconds = time.process_time() - began
                scores = model.bag_scores(test_X, of_row[test_rows])
                order = list(dict.fromkeys(of_row[test_rows].tolist()))
                if right is not None:
                    deciding = test_rows[model.deciding_rows(test_X, of_row[test_rows])]
                    sums[method]["right"].append(float(right[deciding][positive[order]].mean()))
                relevant = positive[order]
            else:
                kind, pool = method.split(", ")
                everything = pooled_rows(X, bags, POOLS[pool])
                model = _tuned(LogisticRegression(max_iter=2000), "logisticregression__C", np.logspace(-3, 2, 6))
                if kind == "AP":
                    model = _tuned(
                        APSVMClassifier(bound="hinge"), "apsvmclassifier__C", [f"{10.0**k:g}x" for k in range(-3, 3)]
                    )
                model.fit(everything[train], positive[train])
                seconds = time.process_time() - began
                scores, relevant = model.decision_function(everything[test]), positive[test]
            sums[method]["AP"].append(float(average_precision_score(relevant, scores)))
            sums[method]["seconds"].append(seconds)
    return {
        method: {
            "AP": float(np.mean(values["AP"])),
            "seconds": float(np.sum(values["seconds"])),
            **({"right": float(np.mean(values["right"]))} if values["right"] else {}),
        }
        for method, values in sums.items()
    }


def _tuned(model: Any, parameter: str, values: Sequence[Any] | NDArray[np.float64]) -> GridSearchCV:
    folds = StratifiedKFold(5, shuffle=True, random_state=1)
    return GridSearchCV(
        make_pipeline(StandardScaler(), model), {parameter: list(values)}, scoring="average_precision", cv=folds
    )


def _table(results: dict[str, dict[str, dict[str, float]]], columns: Sequence[str], what: str) -> str:
    """A row a file, and their mean."""
    values = {Path(name).name: {column: of[column][what] for column in columns} for name, of in results.items()}
    frame = pd.DataFrame.from_dict(values, orient="index", columns=columns)
    frame.loc["mean"] = frame.mean()
    return frame.to_string(float_format="{:.3f}".format)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
