"""Test AP of apsvm's defaults on many binary sets, beside tuned rivals.

    python scripts/study/defaults.py DATA [DATA …] [--splits 3] [--only METHOD,…] [--rows 8000] [--jobs 2] [--json FILE]

DATA are svmlight files, plain or gzipped; FILE@LABEL, that label against all others; folders, for all files in them
that have two to twenty labels and no queries; and sklearn:NAME, a set that comes with scikit-learn (iris, wine,
breast_cancer, digits, diabetes: its highest quarter). Of several labels the highest is the positive one. Of more than
--rows rows a random part is taken. Each split holds out a third of the rows, stratified; features are standardised by
the training rows.

"apsvm" is ``APSVMClassifier()``, "hinge" and "tight" are its two bounds at their default C, "piecewise" and "rules" are
``APSVMClassifier(features=…)``, "portfolio" is ``APSVMClassifierCV()``, "apsvm cv" with nothing named. The rivals:
logistic regression (also on the piecewise columns) and LinearSVC with C chosen by AP in five folds of the training
rows; scikit-learn's histogram gradient-boosted trees as they are and tuned in five folds; LightGBM with the best of 20
random settings by AP in three folds, and InterpretML's EBM as it is, where these are installed (``pip install lightgbm
interpret-core``).

Printed: a line a set, and each method against boosted trees, LightGBM, EBM and the better of the linear two by their
folds: the mean difference, and on how many sets it is level or better. FILE keeps what was measured, by set, method and
split, and is written after each: what is in it is not done again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from apsvm import APSVMClassifier, APSVMClassifierCV, WeakRankerWarning, read_svmlight
from apsvm.data.dataset import DataError
from apsvm.data.features import learn_map

Method = Callable[[], Any]
#: By set and method, of each split: test AP, processor seconds, and of what compares settings its own estimate.
Results = dict[str, dict[str, list[list[float]]]]

#: More than this behind, or ahead, counts as a loss, or a win.
MARGIN = 0.005
#: Of a folder, sets of more labels are no classes.
MOST_LABELS = 20


def tuned(model: Any, values: Any) -> Any:
    folds = StratifiedKFold(5, shuffle=True, random_state=1)
    return GridSearchCV(model, {"C": list(values)}, scoring="average_precision", cv=folds)


def lightgbm_tuned() -> Any:
    from lightgbm import LGBMClassifier

    settings = {
        "learning_rate": [0.02, 0.05, 0.1],
        "n_estimators": [100, 200, 400],
        "num_leaves": [4, 7, 15, 31],
        "min_child_samples": [5, 10, 20, 50],
        "subsample": [0.5, 0.7, 1.0],
        "colsample_bytree": [0.5, 0.7, 1.0],
        "reg_lambda": [0.0, 1.0, 10.0],
    }
    return RandomizedSearchCV(
        LGBMClassifier(n_jobs=1, verbose=-1, subsample_freq=1, random_state=0),
        settings,
        n_iter=20,
        scoring="average_precision",
        cv=StratifiedKFold(3, shuffle=True, random_state=1),
        random_state=0,
    )


def ebm() -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(n_jobs=1, random_state=0)


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
    **({"LightGBM tuned": lightgbm_tuned} if find_spec("lightgbm") else {}),
    **({"EBM": ebm} if find_spec("interpret") else {}),
}


def listed(specs: Sequence[str]) -> Iterator[str]:
    """The sets, with the files that fit in place of folders."""
    for spec in specs:
        if not Path(spec).is_dir():
            yield spec
            continue
        for path in sorted(Path(spec).rglob("*.svm*")):
            try:
                dataset = read_svmlight(path)
            except DataError:  # of bags, or no svmlight text
                continue
            if dataset.groups is None and 2 <= np.unique(dataset.relevance).size <= MOST_LABELS:
                yield str(path)


def load(spec: str, most_rows: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    if spec.startswith("sklearn:"):
        name = spec.removeprefix("sklearn:")
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        relevant = y >= np.quantile(y, 0.75) if name == "diabetes" else y == y.max()
    else:
        path, _, label = spec.partition("@")
        dataset = read_svmlight(path)
        X, relevant = np.asarray(dataset.X.todense()), dataset.relevance == float(label or dataset.relevance.max())
    if len(X) > most_rows:
        chosen = np.sort(np.random.default_rng(0).permutation(len(X))[:most_rows])
        X, relevant = X[chosen], relevant[chosen]
    return X, relevant


def short(spec: str) -> str:
    return Path(spec.removeprefix("sklearn:")).name.replace(".gz", "").replace(".svm", "")


def one(spec: str, name: str, split: int, most_rows: int) -> list[float]:
    """Values of ``Results`` for a split."""
    X, relevant = load(spec, most_rows)
    with threadpool_limits(1), warnings.catch_warnings():
        for kind in (ConvergenceWarning, WeakRankerWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # of LightGBM
        splits = StratifiedShuffleSplit(split + 1, test_size=1 / 3, random_state=0).split(X, relevant)
        fit, test = list(splits)[-1]
        model = make_pipeline(StandardScaler(), METHODS[name]())
        began = time.process_time()
        model.fit(X[fit], relevant[fit])
        seconds = time.process_time() - began
        precision = float(average_precision_score(relevant[test], scores_of(model, X[test])))
    estimate = getattr(model[-1], "best_score_", None)
    return [precision, seconds] if estimate is None else [precision, seconds, float(estimate)]


def scores_of(model: Any, X: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(
        model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1]
    )


def show(results: Results, names: list[str]) -> None:
    means = {
        spec: {name: float(np.mean([part[0] for part in of[name]])) for name in names} for spec, of in results.items()
    }
    print(f"{'set':<24}" + "".join(f"{name:>18}" for name in names))
    for spec, of in means.items():
        took = {name: float(np.mean([part[1] for part in results[spec][name]])) for name in names}
        print(f"{spec:<24}" + "".join(f"{of[name]:>9.4f} {took[name]:>6.2f} s" for name in names))
    print(f"{'mean':<24}" + "".join(f"{np.mean([of[name] for of in means.values()]):>9.4f}{'':>9}" for name in names))
    columns = {name: np.array([of[name] for of in means.values()]) for name in names}
    rivals = {name: columns[name] for name in ("boosted", "LightGBM tuned", "EBM") if name in names}
    if {"LR tuned", "LinearSVC tuned"} <= set(names):
        rivals["LR or LinearSVC by folds"] = np.array([by_folds(of) for of in results.values()])
    for name in names:
        for rival, its in rivals.items():
            off = columns[name] - its
            if name != rival:
                print(
                    f"{name} against {rival} on {off.size} sets: mean {off.mean():+.4f}, level or better on "
                    f"{(off >= -MARGIN).mean():.0%}, better by more than {MARGIN} on {(off > MARGIN).sum()}, worse on "
                    f"{(off < -MARGIN).sum()}, worst {off.min():+.4f}"
                )
        off = np.array([part[2] - part[0] for of in results.values() for part in of[name] if len(part) > 2])
        if off.size:
            quartiles = ", ".join(f"{value:+.4f}" for value in np.quantile(off, [0.25, 0.5, 0.75]))
            print(f"{name}: its own estimate is above the test's AP by {off.mean():+.4f}, quartiles {quartiles}")


def by_folds(methods: Mapping[str, list[list[float]]]) -> float:
    """Mean AP of the linear rival that has the higher AP in the folds, split by split."""
    pairs = zip(methods["LR tuned"], methods["LinearSVC tuned"], strict=True)
    return float(np.mean([max(pair, key=lambda part: part[2])[0] for pair in pairs]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", help="methods, separated by commas")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rows", type=int, default=8000)
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(METHODS)
    results: Results = {}
    if options.json is not None and options.json.exists():
        results = json.loads(options.json.read_text())
    specs = {short(spec): spec for spec in listed(options.data)}
    todo = [
        (spec, name, split)
        for split in range(options.splits)
        for name in names
        for spec in specs
        if len(results.get(spec, {}).get(name, ())) <= split
    ]
    measured = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(one)(specs[spec], name, split, options.rows) for spec, name, split in todo
    )
    for (spec, name, split), values in zip(todo, measured, strict=True):
        results.setdefault(spec, {}).setdefault(name, []).append(values)
        print(f"{spec}: {name}, split {split + 1}", file=sys.stderr, flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(results) + "\n")
    show({spec: results[spec] for spec in specs}, names)


if __name__ == "__main__":
    main()
