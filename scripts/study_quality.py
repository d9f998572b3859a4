"""A study of what the bounds and losses are worth: test metrics on many binary sets, against common linear rivals.

    python scripts/study_quality.py DATA [DATA …] [--folds 5] [--jobs 1] [--json FILE]

DATA are svmlight files, plain or gzipped, or DATA@LABEL: that label against all others. In each of the folds features
are standardised by the training rows; C is chosen on a third of them by the metric that is then reported (each method
chooses once for every metric), and the method trained again on all. Printed: a table a metric, with mean ranks over the
sets, Wilcoxon's signed-rank test of the bounds, and seconds of the final trainings (of the choice by AP).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import friedmanchisquare, rankdata, wilcoxon
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm.data.rows import Rows
from apsvm.metrics.evaluate import evaluate
from apsvm.trainers.stage import Settings, TrainingSet, Watch
from apsvm.trainers.structured_svm import train_path

METRICS = ("AP", "nDCG", "AUC")
CHOICES = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]
RIVAL_CHOICES = [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0]

#: For each value of C: (name of the setting, scores of the test rows, seconds).
Fits = Iterator[tuple[str, NDArray[np.float64], float]]
Method = Callable[[NDArray[Any], NDArray[np.bool_], NDArray[Any]], Fits]


def structured(loss: str, bound: str) -> Method:
    def fits(X: NDArray[Any], relevant: NDArray[np.bool_], X_test: NDArray[Any]) -> Fits:
        began = time.perf_counter()
        for C, trained in zip(
            CHOICES,
            train_path(TrainingSet(Rows(X), relevant), Settings(loss=loss, bound=bound), CHOICES, Watch()),
            strict=True,
        ):
            yield f"{C:g}", X_test @ trained.w, time.perf_counter() - began
            began = time.perf_counter()

    return fits


def rival(make: Callable[[float], Any]) -> Method:
    def fits(X: NDArray[Any], relevant: NDArray[np.bool_], X_test: NDArray[Any]) -> Fits:
        for C in RIVAL_CHOICES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                began = time.perf_counter()
                model = make(C).fit(X, relevant)
                yield f"{C:g}", model.decision_function(X_test), time.perf_counter() - began

    return fits


def boosted(X: NDArray[Any], relevant: NDArray[np.bool_], X_test: NDArray[Any]) -> Fits:
    """For scale: not linear."""
    import lightgbm

    for rounds in (50, 200):
        began = time.perf_counter()
        model = lightgbm.LGBMClassifier(n_estimators=rounds, num_leaves=15, learning_rate=0.1, n_jobs=1, verbose=-1)
        model.fit(X, relevant)
        yield str(rounds), model.predict_proba(X_test)[:, 1], time.perf_counter() - began


def methods() -> dict[str, Method]:
    found: dict[str, Method] = {
        "LR": rival(lambda C: LogisticRegression(C=C, max_iter=2000)),
        "LinearSVC": rival(lambda C: LinearSVC(C=C, max_iter=5000)),
    }
    for loss in ("ap", "ndcg", "auc"):
        for bound in ("hinge", "tight"):
            found[f"{loss} {bound}"] = structured(loss, bound)
    try:
        import lightgbm  # noqa: F401

        found["LightGBM"] = boosted
    except ImportError:
        print("LightGBM is not installed and left out")
    return found


def load(spec: str) -> tuple[str, NDArray[Any], NDArray[np.bool_]]:
    path, _, label = spec.partition("@")
    dataset = read_svmlight(path)
    name = Path(path).name.removesuffix(".gz").removesuffix(".svm")
    relevant = dataset.positives(float(label) if label else None)
    return f"{name}@{label}" if label else name, np.asarray(dataset.X.todense()), relevant


def one_fold(X, relevant, train, test, every: dict[str, Method]) -> dict[str, dict[str, tuple[float, float]]]:
    """Method → metric → (value, seconds)."""
    fit, valid = train_test_split(train, test_size=1 / 3, stratify=relevant[train], random_state=0)
    inner, outer = StandardScaler().fit(X[fit]), StandardScaler().fit(X[train])
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name, method in every.items():
        quality = {
            setting: evaluate(METRICS, scores, relevant[valid]).values
            for setting, scores, _ in method(inner.transform(X[fit]), relevant[fit], inner.transform(X[valid]))
        }
        final = {
            setting: (evaluate(METRICS, scores, relevant[test]).values, seconds)
            for setting, scores, seconds in method(outer.transform(X[train]), relevant[train], outer.transform(X[test]))
        }
        chosen = {metric: max(quality, key=lambda s: quality[s][metric]) for metric in METRICS}
        found[name] = {metric: (final[chosen[metric]][0][metric], final[chosen[metric]][1]) for metric in METRICS}
    return found


def one_set(spec: str, folds: int) -> tuple[str, list[dict[str, dict[str, tuple[float, float]]]]]:
    name, X, relevant = load(spec)
    print(f"{name}: {X.shape[0]} x {X.shape[1]}, {int(relevant.sum())} positive", file=sys.stderr, flush=True)
    splits = StratifiedKFold(folds, shuffle=True, random_state=0).split(X, relevant)
    every = methods()
    with threadpool_limits(1):
        return name, [one_fold(X, relevant, train, test, every) for train, test in splits]


def show(results: dict[str, list[dict[str, dict[str, tuple[float, float]]]]]) -> None:
    names = list(next(iter(results.values()))[0])
    linear = [name for name in names if name != "LightGBM"]
    for metric in METRICS:
        means = np.array(
            [[np.mean([fold[n][metric][0] for fold in folds]) for n in names] for folds in results.values()]
        )
        print(f"\n{metric}, mean over the folds")
        print(f"{'set':<24} " + " ".join(f"{name:>10}" for name in names))
        for name, row in zip(results, means, strict=True):
            best = max(value for value, method in zip(row, names, strict=True) if method in linear)
            cells = [
                f"{value:.4f}{'*' if value >= best and method in linear else ' '}"
                for value, method in zip(row, names, strict=True)
            ]
            print(f"{name:<24} " + " ".join(f"{cell:>10}" for cell in cells))
        among = means[:, [names.index(name) for name in linear]]
        ranks = np.mean([rankdata(-row) for row in among], axis=0)
        print(f"{'mean rank (linear)':<24} " + " ".join(f"{rank:>9.2f} " for rank in ranks))
        if len(results) > 2:
            print(f"Friedman's test of equal ranks: p = {friedmanchisquare(*among.T).pvalue:.2g}")
        for loss in ("ap", "ndcg", "auc"):
            tight, hinge = (means[:, names.index(f"{loss} {bound}")] for bound in ("tight", "hinge"))
            near = np.mean(tight >= among.max(axis=1) - 0.005)
            p = wilcoxon(tight, hinge).pvalue if np.any(tight != hinge) else 1.0
            print(
                f"{loss}: tight within .005 of the best linear method on {near:.0%} of the sets; tight - hinge "
                f"{np.mean(tight - hinge):+.4f} (wins {np.sum(tight > hinge)}, losses {np.sum(tight < hinge)}, "
                f"Wilcoxon p = {p:.2g})"
            )
    seconds = {n: np.array([np.sum([fold[n]["AP"][1] for fold in folds]) for folds in results.values()]) for n in names}
    print(f"\n{'seconds a set':<24} " + " ".join(f"{seconds[name].mean():>9.3f} " for name in names))
    for loss in ("ap", "ndcg", "auc"):
        ratio = np.exp(np.mean(np.log(seconds[f"{loss} tight"] / seconds[f"{loss} hinge"])))
        print(f"{loss}: tight takes {ratio:.1f} times the hinge's time (geometric mean)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    from joblib import Parallel, delayed

    done = Parallel(arguments.jobs)(delayed(one_set)(spec, arguments.folds) for spec in arguments.data)
    results = dict(done)
    show(results)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
