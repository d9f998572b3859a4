"""A study of what the bounds and losses are worth: test metrics on many binary sets, against common linear rivals.

    python scripts/study/quality.py DATA [DATA …] [--folds 5] [--inner 5] [--jobs 1] [--only METHOD,…] [--json FILE]

DATA are svmlight files, plain or gzipped, or DATA@LABEL: that label against all others. Nested cross-validation: in
each fold features are standardised by the training rows; a method's setting (C; or the boosting rounds) is that of the
best mean over the inner folds, by the metric that is then reported, and is trained again on all training rows. Inner
folds are drawn anew, up to ten times, until 2,000 rows have been held out: small sets choose by chance otherwise. "ap
cv" chooses the bound as well. Printed: a table a metric, with mean ranks over the sets, Friedman's test and Nemenyi's
critical difference, Wilcoxon's signed-rank test of the bounds, and seconds of the trainings (of the choice by AP).

FILE keeps the results by set and method: what it has is not done again.
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
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm.data.labels import of_relevance
from apsvm.data.rows import Rows
from apsvm.metrics.evaluate import evaluate
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

METRICS = ("AP", "nDCG", "AUC")
CHOICES = {"hinge": [10.0**k for k in range(-3, 6)], "tight": [10.0**k for k in range(-1, 8)]}
LR_CHOICES = [10.0**k for k in range(-4, 3)]
SVC_CHOICES = [10.0**k for k in range(-5, 2)]

#: For each value of C: (name of the setting, scores of the test rows, seconds).
Fits = Iterator[tuple[str, NDArray[np.float64], float]]
Method = Callable[[NDArray[Any], NDArray[np.bool_], NDArray[Any]], Fits]


def structured(loss: str, bound: str) -> Method:
    def fits(X: NDArray[Any], relevant: NDArray[np.bool_], X_test: NDArray[Any]) -> Fits:
        began = time.perf_counter()
        data = TrainingSet(Rows(X), of_relevance(relevant))
        plan = StructuredSVMTrainer(loss, StructuredSettings(C=tuple(CHOICES[bound]), bound=bound))
        for C, outcome in zip(CHOICES[bound], plan.train(data, Watch()), strict=True):
            yield f"{C:g}", X_test @ outcome.w, time.perf_counter() - began
            began = time.perf_counter()

    return fits


def rival(make: Callable[[float], Any], choices: list[float]) -> Method:
    def fits(X: NDArray[Any], relevant: NDArray[np.bool_], X_test: NDArray[Any]) -> Fits:
        for C in choices:
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
        "LR": rival(lambda C: LogisticRegression(C=C, max_iter=2000), LR_CHOICES),
        "LinearSVC": rival(lambda C: LinearSVC(C=C, max_iter=5000, dual="auto"), SVC_CHOICES),
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


def short(spec: str) -> str:
    return Path(spec).name.replace(".gz", "").replace(".svm", "")


def load(spec: str) -> tuple[str, NDArray[Any], NDArray[np.bool_]]:
    path, _, label = spec.partition("@")
    dataset = read_svmlight(path)
    relevant = dataset.positives(float(label) if label else None)
    return short(spec), np.asarray(dataset.X.todense()), relevant


#: Of each fold: metric → [value, seconds].
Found = list[dict[str, list[float]]]


def one_fold(X, relevant, train, test, every: dict[str, Method], inner: int) -> dict[str, dict[str, list[float]]]:
    """Method → metric → [value, seconds]."""
    repeats = min(10, -(-2000 // train.size))
    folds = RepeatedStratifiedKFold(n_splits=inner, n_repeats=repeats, random_state=1)
    splits = list(folds.split(train, relevant[train]))

    def judged(method: Method, fit, held) -> dict[str, tuple[dict[str, float], float]]:
        scale = StandardScaler().fit(X[fit])
        return {
            setting: (evaluate(METRICS, scores, relevant[held]).values, seconds)
            for setting, scores, seconds in method(scale.transform(X[fit]), relevant[fit], scale.transform(X[held]))
        }

    settings: dict[str, dict[Any, tuple[dict[str, float], dict[str, float], float]]] = {}
    for name, method in every.items():
        within = [judged(method, train[fit], train[held]) for fit, held in splits]
        settings[name] = {
            setting: ({m: float(np.mean([of[setting][0][m] for of in within])) for m in METRICS}, values, seconds)
            for setting, (values, seconds) in judged(method, train, test).items()
        }
    if "ap hinge" in settings and "ap tight" in settings:
        settings["ap cv"] = {(b, s): of for b in ("hinge", "tight") for s, of in settings[f"ap {b}"].items()}
    found = {}
    for name, of in settings.items():
        chosen = {metric: of[max(of, key=lambda s: of[s][0][metric])] for metric in METRICS}
        found[name] = {metric: [values[metric], seconds] for metric, (_, values, seconds) in chosen.items()}
    return found


def one_set(spec: str, folds: int, inner: int, every: dict[str, Method]) -> dict[str, Found]:
    name, X, relevant = load(spec)
    print(f"{name}: {X.shape[0]} x {X.shape[1]}, {int(relevant.sum())} positive", file=sys.stderr, flush=True)
    splits = StratifiedKFold(folds, shuffle=True, random_state=0).split(X, relevant)
    with threadpool_limits(1):
        done = [one_fold(X, relevant, train, test, every, inner) for train, test in splits]
    return {method: [fold[method] for fold in done] for method in done[0]}


def show(results: dict[str, dict[str, Found]]) -> None:
    """Of the methods that every set has."""
    names = [name for name in next(iter(results.values())) if all(name in methods for methods in results.values())]
    linear = [name for name in names if name != "LightGBM"]
    for metric in METRICS:
        means = np.array([[np.mean([fold[metric][0] for fold in of[n]]) for n in names] for of in results.values()])
        print(f"\n{metric}, mean over the folds")
        print(f"{'set':<24} " + " ".join(f"{name:>10}" for name in names))
        for name, row in zip(results, means, strict=True):
            best = max(value for value, method in zip(row, names, strict=True) if method in linear)
            cells = [
                f"{value:.4f}{'*' if value >= best and method in linear else ' '}"
                for value, method in zip(row, names, strict=True)
            ]
            print(f"{short(name):<24} " + " ".join(f"{cell:>10}" for cell in cells))
        among = means[:, [names.index(name) for name in linear]]
        ranks = np.mean([rankdata(-row) for row in among], axis=0)
        print(f"{'mean rank (linear)':<24} " + " ".join(f"{rank:>9.2f} " for rank in ranks))
        if len(results) > 2:
            k, n = len(linear), len(results)
            difference = studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * n))
            print(
                f"Friedman's test of equal ranks: p = {friedmanchisquare(*among.T).pvalue:.2g}; Nemenyi's critical "
                f"difference of mean ranks, 5 %: {difference:.2f}"
            )
        for loss in both_bounds(names):
            tight, hinge = (means[:, names.index(f"{loss} {bound}")] for bound in ("tight", "hinge"))
            near = np.mean(tight >= among.max(axis=1) - 0.005)
            p = wilcoxon(tight, hinge).pvalue if np.any(tight != hinge) else 1.0
            print(
                f"{loss}: tight within .005 of the best linear method on {near:.0%} of the sets; tight - hinge "
                f"{np.mean(tight - hinge):+.4f} (wins {np.sum(tight > hinge)}, losses {np.sum(tight < hinge)}, "
                f"Wilcoxon p = {p:.2g})"
            )
    seconds = {n: np.array([np.sum([fold["AP"][1] for fold in of[n]]) for of in results.values()]) for n in names}
    print(f"\n{'seconds a set':<24} " + " ".join(f"{seconds[name].mean():>9.3f} " for name in names))
    for loss in both_bounds(names):
        ratio = np.exp(np.mean(np.log(seconds[f"{loss} tight"] / seconds[f"{loss} hinge"])))
        print(f"{loss}: tight takes {ratio:.1f} times the hinge's time (geometric mean)")


def both_bounds(names: list[str]) -> list[str]:
    return [loss for loss in ("ap", "ndcg", "auc") if {f"{loss} hinge", f"{loss} tight"} <= set(names)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--inner", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", help="methods, separated by commas")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    from joblib import Parallel, delayed

    every = methods()
    if arguments.only:
        every = {name: every[name] for name in arguments.only.split(",")}
    kept = Path(arguments.json) if arguments.json else None
    results: dict[str, dict[str, Found]] = json.loads(kept.read_text()) if kept is not None and kept.exists() else {}
    missing = {
        spec: {name: method for name, method in every.items() if name not in results.get(spec, {})}
        for spec in arguments.data
    }
    missing = {spec: of for spec, of in missing.items() if of}
    runs = Parallel(arguments.jobs, return_as="generator")(
        delayed(one_set)(spec, arguments.folds, arguments.inner, of) for spec, of in missing.items()
    )
    for spec, found in zip(missing, runs, strict=True):
        results.setdefault(spec, {}).update(found)
        if kept is not None:
            kept.write_text(json.dumps(results))
    show({spec: results[spec] for spec in arguments.data})


if __name__ == "__main__":
    main()
