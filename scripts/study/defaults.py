"""What the defaults are worth: test AP of apsvm's defaults, on many binary sets, beside tuned rivals.

    python scripts/study/defaults.py DATA [DATA …] [--splits 3] [--jobs 2] [--only METHOD,…] [--json FILE]

DATA are svmlight files, plain or gzipped, or DATA@LABEL: that label against all others. Each split holds out a third of
the rows, stratified; features are standardised by the training rows. "apsvm" is ``APSVMClassifier()``, "hinge" and
"tight" are its two bounds at their default C, "piecewise" and "rules" are ``APSVMClassifier(features=…)``, "portfolio"
is ``APSVMClassifierCV()``, "apsvm cv" with nothing named; logistic regression (also on the piecewise columns) and
LinearSVC have their C chosen by AP in five folds of the training rows, "boosted" are scikit-learn's histogram
gradient-boosted trees as they are and tuned in five folds. Printed: a line a set, wins and losses against the better of
the tuned linear two, and seconds of each. FILE keeps what was measured: it is not done again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from apsvm import APSVMClassifier, APSVMClassifierCV, WeakRankerWarning, read_svmlight
from apsvm.data.features import learn_map

Method = Callable[[], Any]

RIVALS = ("LR tuned", "LinearSVC tuned")
#: More than this behind, or ahead, counts as a loss, or a win.
MARGIN = 0.005


def tuned(model: Any, values: Any) -> Any:
    folds = StratifiedKFold(5, shuffle=True, random_state=1)
    return GridSearchCV(model, {"C": list(values)}, scoring="average_precision", cv=folds)


class Piecewise(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The columns of ``--features piecewise``."""

    def fit(self, X: NDArray[Any], y: object = None) -> Piecewise:
        self.map_ = learn_map("piecewise", X, None)
        return self

    def transform(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.map_.apply(np.ascontiguousarray(X)))


METHODS: Mapping[str, Method] = {
    "apsvm": APSVMClassifier,
    "hinge": lambda: APSVMClassifier(bound="hinge"),
    "tight": lambda: APSVMClassifier(bound="tight"),
    "piecewise": lambda: APSVMClassifier(features="piecewise"),
    "rules": lambda: APSVMClassifier(features="rules"),
    "portfolio": lambda: APSVMClassifierCV(cv=5),
    "LR piecewise": lambda: make_pipeline(
        Piecewise(), StandardScaler(), tuned(LogisticRegression(max_iter=1000), 10.0 ** np.arange(-4, 4))
    ),
    "boosted": lambda: HistGradientBoostingClassifier(random_state=0),
    "boosted tuned": lambda: GridSearchCV(
        HistGradientBoostingClassifier(random_state=0),
        {"learning_rate": [0.02, 0.1], "max_leaf_nodes": [7, 31], "l2_regularization": [0.0, 10.0]},
        scoring="average_precision",
        cv=StratifiedKFold(5, shuffle=True, random_state=1),
    ),
    "LR tuned": lambda: tuned(LogisticRegression(max_iter=1000), 10.0 ** np.arange(-4, 4)),
    "LinearSVC tuned": lambda: tuned(LinearSVC(max_iter=3000, dual="auto"), 10.0 ** np.arange(-6, 2)),
}


def load(spec: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    path, _, label = spec.partition("@")
    dataset = read_svmlight(path)
    return np.asarray(dataset.X.todense()), dataset.positives(float(label) if label else None)


def short(spec: str) -> str:
    return Path(spec).name.replace(".gz", "").replace(".svm", "")


def one(spec: str, name: str, splits: int) -> list[list[float]]:
    """AP and seconds on each split."""
    X, relevant = load(spec)
    results = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", WeakRankerWarning)
        for fit, test in StratifiedShuffleSplit(splits, test_size=1 / 3, random_state=0).split(X, relevant):
            model = make_pipeline(StandardScaler(), METHODS[name]())
            began = time.perf_counter()
            model.fit(X[fit], relevant[fit])
            seconds = time.perf_counter() - began
            results.append([average_precision_score(relevant[test], model.decision_function(X[test])), seconds])
    return results


def show(results: Mapping[str, Mapping[str, list[list[float]]]], names: list[str]) -> None:
    print(f"{'set':<24}" + "".join(f"{name:>18}" for name in names))
    means = {spec: {name: float(np.mean([ap for ap, _ in of[name]])) for name in names} for spec, of in results.items()}
    for spec, of in means.items():
        took = {name: float(np.mean([seconds for _, seconds in results[spec][name]])) for name in names}
        print(f"{short(spec):<24}" + "".join(f"{of[name]:>9.4f} {took[name]:>6.2f} s" for name in names))
    print(f"{'mean':<24}" + "".join(f"{np.mean([of[name] for of in means.values()]):>9.4f}{'':>9}" for name in names))
    if not all(name in names for name in RIVALS):
        return
    best = np.array([max(of[name] for name in RIVALS) for of in means.values()])
    for name in names:
        if name not in RIVALS:
            off = np.array([of[name] for of in means.values()]) - best
            print(
                f"{name}: against the better of tuned LR and LinearSVC on {off.size} sets: mean {off.mean():+.4f}, "
                f"better by more than {MARGIN} on {(off > MARGIN).sum()}, worse on {(off < -MARGIN).sum()}, "
                f"worst {off.min():+.4f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", help="methods, separated by commas")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(METHODS)
    results: dict[str, dict[str, list[list[float]]]] = {}
    if options.json is not None and options.json.exists():
        results = json.loads(options.json.read_text())
    todo = [(spec, name) for spec in options.data for name in names if name not in results.get(short(spec), {})]
    measured = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(one)(*task, options.splits) for task in todo
    )
    for (spec, name), values in zip(todo, measured, strict=True):
        results.setdefault(short(spec), {})[name] = values
        print(f"{short(spec)}: {name}", file=sys.stderr, flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(results) + "\n")
    wanted = [short(spec) for spec in options.data]
    show({spec: results[spec] for spec in wanted}, names)


if __name__ == "__main__":
    main()
