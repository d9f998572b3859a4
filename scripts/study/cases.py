"""The figures of docs/cases: what the methods of each page reach on data of examples/ and on scikit-learn's digits.

    python scripts/study/cases.py [CASE …] [--json docs/figures/cases.json]

Cases: fraud, search, images, tags, recommendation, bags. What is measured goes into the file, case by case;
the pages' tables show it. LightGBM is needed for its rows (fraud, search).
One thread, fixed seeds; rivals have their C chosen by AP in folds of the training rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from apsvm import (
    APSVMClassifier,
    APSVMClassifierCV,
    APSVMRanker,
    APSVMRankerCV,
    Dataset,
    RankNCG,
    WeakRankerWarning,
    load_any_model,
    read_svmlight,
)
from apsvm.cli import run
from apsvm.data.item_lists import hide, liked_items
from apsvm.metrics.evaluate import evaluate
from apsvm.trainers.base import Watch
from apsvm.trainers.warp.item_factors import evaluate_lists, train_items
from apsvm.trainers.warp.settings import WarpSettings
from apsvm.trainers.warp.trainer import WarpTrainer

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
FIGURES = ROOT / "docs" / "figures" / "cases.json"
FOLDS = StratifiedKFold(5, shuffle=True, random_state=1)
POWERS = 10.0 ** np.arange(-4, 5)

Figures = dict[str, Any]


def tuned(model: Any, values: Any = POWERS) -> Any:
    return GridSearchCV(model, {"C": list(values)}, scoring="average_precision", cv=FOLDS)


# fraud ---------------------------------------------------------------------------------------------------------


def spots(name: str) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    table = pd.read_csv(EXAMPLES / f"mammography_{name}.csv.gz", index_col="image")
    return table, table.pop("calcification").to_numpy()


RARE: dict[str, Callable[[], Any]] = {
    "logistic regression, tuned": lambda: make_pipeline(StandardScaler(), tuned(LogisticRegression(max_iter=2000))),
    "LinearSVC, tuned": lambda: make_pipeline(StandardScaler(), tuned(LinearSVC(max_iter=5000), POWERS / 100)),
    "apsvm train": APSVMClassifier,
    "apsvm train --features piecewise": lambda: APSVMClassifier(features="piecewise"),
    "apsvm cv": lambda: APSVMClassifierCV(random_state=0),
    "boosted trees": lambda: HistGradientBoostingClassifier(random_state=0),
}
if find_spec("lightgbm") is not None:
    from lightgbm import LGBMClassifier

    RARE["LightGBM"] = lambda: LGBMClassifier(n_jobs=1, random_state=0, verbose=-1)


def fraud() -> Figures:
    """Test AP, how many of the first 100 and of the first 200 are positive, and where each ranker has the positives."""
    X, y = spots("train")
    test, truth = spots("test")
    methods: Figures = {}
    for name, make in RARE.items():
        scores = scores_of(make().fit(X, y), test)
        order = np.argsort(-scores, kind="stable")
        places = np.flatnonzero(truth[order]) + 1
        methods[name] = {
            "AP": float(average_precision_score(truth, scores)),
            "of the first 100": int((places <= 100).sum()),
            "of the first 200": int((places <= 200).sum()),
            "beyond 1,000": int((places > 1000).sum()),
            "places": places.tolist(),
        }
        show_value(name, methods[name]["AP"])
    return {"rows": len(truth), "positive": int(truth.sum()), "methods": methods}


def scores_of(model: Any, X: Any) -> NDArray[np.float64]:
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.asarray(model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X))


def show_value(name: str, value: float) -> None:
    print(f"  {name}: {value:.4f}", file=sys.stderr, flush=True)


# search --------------------------------------------------------------------------------------------------------

SEARCH_METRICS = ["nDCG(exp)@10", "nDCG(exp)@3", "RR"]


def search() -> Figures:
    train = read_svmlight(EXAMPLES / "search_train.svm.gz")
    test = read_svmlight(EXAMPLES / "search_test.svm.gz", n_features=train.X.shape[1], ignore_unknown=True)
    methods: Figures = {}
    for name, scores_of_test in searchers(train, test).items():
        judged = evaluate(SEARCH_METRICS, scores_of_test, test.relevance, groups=test.groups, relevant_from=1)
        methods[name] = {metric: float(judged.values[metric]) for metric in SEARCH_METRICS}
        of_queries = judged.in_group[SEARCH_METRICS[0]]
        of_queries = of_queries[np.isfinite(of_queries)]
        methods[name]["standard error"] = float(of_queries.std(ddof=1) / np.sqrt(of_queries.size))
        show_value(name, judged.values[SEARCH_METRICS[0]])
    queries = {name: int(np.unique(data.groups).size) for name, data in (("train", train), ("test", test))}
    return {"rows": int(test.relevance.size), "queries": queries, "methods": methods}


def searchers(train: Dataset, test: Dataset) -> dict[str, NDArray[np.float64]]:
    """Scores of the test rows."""
    grades, qid = train.relevance, train.groups
    dense, dense_test = (np.asarray(data.X.todense()) for data in (train, test))
    ridge = GridSearchCV(Ridge(), {"alpha": 10.0 ** np.arange(-1, 5)}, cv=GroupKFold(5))
    trees = HistGradientBoostingRegressor(random_state=0)
    result = {"ridge regression on the grades, tuned": ridge.fit(dense, grades, groups=qid).predict(dense_test)}
    for name, ranker in {
        "apsvm train --loss ndcg": APSVMRanker("ndcg"),
        "apsvm train --loss ndcg --bound hinge": APSVMRanker("ndcg", bound="hinge"),
        "apsvm train --loss wmw": RankNCG(),
        "apsvm cv -m 'nDCG(exp)@10'": APSVMRankerCV("nDCG(exp)@10", random_state=0),
    }.items():
        result[name] = ranker.fit(train.X, grades, qid=qid).decision_function(test.X)
    result["boosted trees on the grades"] = trees.fit(dense, grades).predict(dense_test)
    if find_spec("lightgbm") is not None:
        from lightgbm import LGBMRanker

        sizes = np.unique(qid, return_counts=True)[1]  # queries stand in ascending order in the file
        ranker = LGBMRanker(n_jobs=1, random_state=0, verbose=-1, min_child_samples=10, n_estimators=100)
        result["LightGBM, lambdarank"] = ranker.fit(dense, grades, group=sizes).predict(dense_test)
    return result


# images --------------------------------------------------------------------------------------------------------


def images() -> Figures:
    """The digit 8 against the rest, the split of scripts/demo_digits.py; tops are numbers of images of load_digits."""
    X, digits = load_digits(return_X_y=True)
    rows = np.arange(digits.size)
    fit, test = train_test_split(rows, test_size=1 / 3, stratify=digits == 8, random_state=0)
    X, y = X / 16.0, digits == 8
    methods: Figures = {}
    for name, model in {
        "logistic regression, tuned": tuned(LogisticRegression(max_iter=5000)),
        "apsvm train": APSVMClassifier(),
        "apsvm cv": APSVMClassifierCV(random_state=0),
        "boosted trees": HistGradientBoostingClassifier(random_state=0),
        "SVC with an RBF kernel, tuned": tuned(SVC(), 10.0 ** np.arange(-1, 4)),
    }.items():
        scores = scores_of(model.fit(X[fit], y[fit]), X[test])
        order = test[np.argsort(-scores, kind="stable")]
        first = order[: y[test].sum()]
        methods[name] = {
            "AP": float(average_precision_score(y[test], scores)),
            "wrong": int((~y[first]).sum()),
            "top": first.tolist(),
        }
        show_value(name, methods[name]["AP"])
    return {"rows": int(test.size), "positive": int(y[test].sum()), "methods": methods}


# tags ----------------------------------------------------------------------------------------------------------


def tags() -> Figures:
    names = pd.read_csv(EXAMPLES / "tags_names.txt.gz", header=None)[0].tolist()
    train = read_svmlight(EXAMPLES / "tags_train.svm.gz", multilabel=True)
    test = read_svmlight(EXAMPLES / "tags_test.svm.gz", multilabel=True, n_features=train.X.shape[1])
    makers: dict[str, Callable[[], Any]] = {
        "logistic regression, tuned": lambda: tuned(LogisticRegression(max_iter=2000), 10.0 ** np.arange(-1, 4)),
        "LinearSVC, tuned": lambda: tuned(LinearSVC(max_iter=5000), 10.0 ** np.arange(-3, 2)),
        "random forest, 200 trees": lambda: RandomForestClassifier(200, random_state=0),
    }
    scores = {
        name: np.column_stack([scores_of(make().fit(train.X, train.have(at)), test.X) for at in range(len(names))])
        for name, make in makers.items()
    }
    scores["apsvm train --one-vs-rest"] = of_command(["--one-vs-rest", "tags_train.svm.gz"], test.X)
    methods: Figures = {}
    for name, of in scores.items():
        each = {tag: precision_of(test.have(at), of[:, at]) for at, tag in enumerate(names)}
        methods[name] = {"mAP": float(np.mean(list(each.values()))), "AP": each}
        show_value(name, methods[name]["mAP"])
    share = {tag: float(test.have(at).mean()) for at, tag in enumerate(names)}
    return {"rows": [train.X.shape[0], test.X.shape[0]], "words": train.X.shape[1], "share": share, "methods": methods}


def of_command(arguments: Sequence[str], X: Any) -> NDArray[np.float64]:
    """(n, k) float64, the scores of what ``apsvm train`` makes of a file of examples/."""
    with tempfile.TemporaryDirectory() as folder, chdir(EXAMPLES):
        model = str(Path(folder) / "model")
        assert run(["train", "--quiet", *arguments, model]) == 0
        return load_any_model(model).score(X)


# recommendation ------------------------------------------------------------------------------------------------

LISTS = ["P@5", "R@10", "AUC"]


def recommendation() -> Figures:
    """A fifth of each file's imports is hidden; the settings of each method are chosen on a fifth of the others."""
    X = read_svmlight(EXAMPLES / "imports.svm.gz").X
    likes, hidden, _ = hide(liked_items(X), 0.2, np.random.default_rng(0))
    fit, valid, _ = hide(likes, 0.2, np.random.default_rng(1))
    makers: dict[str, list[Callable[[Any], Any]]] = {
        "the most popular": [popular],
        "neighbours by cosine": [cosine],
        "truncated SVD": [lambda rows, k=k: of_svd(rows, k) for k in (4, 8, 16, 32)],
        "apsvm train --loss warp --rows-as-users": [
            lambda rows, k=k, rate=rate: of_warp(rows, k, rate) for k in (16, 64) for rate in (0.02, 0.05, 0.1)
        ],
    }
    methods: Figures = {}
    for name, settings in makers.items():
        best = settings[0]
        if len(settings) > 1:
            best = max(settings, key=lambda make: evaluate_lists(make(fit), fit, valid, ["R@10"]).values["R@10"])
        values = evaluate_lists(best(likes), likes, hidden, LISTS).values
        methods[name] = {metric: float(values[metric]) for metric in LISTS}
        show_value(name, values["R@10"])
    return {"rows": int(likes.shape[0]), "items": int(likes.shape[1]), "hidden": int(hidden.nnz), "methods": methods}


def unknown(rows: Any, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(rows.toarray() > 0, -np.inf, scores)


def popular(likes: Any) -> Any:
    counts = np.asarray(likes.sum(axis=0)).ravel()
    return lambda rows: unknown(rows, np.broadcast_to(counts, rows.shape))


def cosine(likes: Any) -> Any:
    lengths = np.sqrt(np.asarray(likes.sum(axis=0)).ravel())
    unit = likes.toarray() / np.maximum(lengths, 1.0)
    similar = unit.T @ unit
    np.fill_diagonal(similar, 0.0)
    return lambda rows: unknown(rows, rows.toarray() @ similar)


def of_svd(likes: Any, k: int) -> Any:
    items = np.linalg.svd(likes.toarray(), full_matrices=False)[2][:k]
    return lambda rows: unknown(rows, rows.toarray() @ items.T @ items)


def of_warp(likes: Any, factors: int, rate: float) -> Any:
    plan = WarpTrainer("warp", WarpSettings(rows_as_users=True, learning_rate=rate, epochs=20))
    trained, _ = train_items(sp.csr_array(likes), factors, plan.settings, Watch(), show=plan.show)
    return trained.best.score


# bags ----------------------------------------------------------------------------------------------------------

DIGITS_A_PAGE, SPLITS = 7, 10


def pages(seed: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Which digits are on which page (pages, 7), and which pages have an 8."""
    digits = load_digits().target
    rows = np.random.default_rng(seed).permutation(digits.size)
    rows = rows[: rows.size // DIGITS_A_PAGE * DIGITS_A_PAGE].reshape(-1, DIGITS_A_PAGE)
    return rows, (digits[rows] == 8).any(axis=1)


def bags() -> Figures:
    sums: dict[str, list[tuple[float, float | None]]] = {}
    example: Figures = {}
    for seed in range(SPLITS):
        for name, precision, right, shown in one_of_bags(seed):
            sums.setdefault(name, []).append((precision, right))
            example = shown or example
    methods = {
        name: {"AP": mean_of([ap for ap, _ in values]), "right": mean_of([right for _, right in values])}
        for name, values in sums.items()
    }
    return {"pages": pages(0)[1].size, "splits": SPLITS, "methods": methods, "example": example}


def mean_of(values: Sequence[float | None]) -> float | None:
    return None if None in values else float(np.mean(values))  # type: ignore[arg-type]


def one_of_bags(seed: int) -> list[tuple[str, float, float | None, Figures]]:
    """AP of each method, the share of pages with an 8 in which an 8 decides, and the first pages of seed 0."""
    X, digits = load_digits(return_X_y=True)
    X = X / 16.0
    rows, positive = pages(seed)
    fit, test = train_test_split(np.arange(positive.size), test_size=1 / 3, stratify=positive, random_state=seed)
    result: list[tuple[str, float, float | None, Figures]] = []
    for name, pool in {"mean": np.mean, "max": np.max}.items():
        model = tuned(LogisticRegression(max_iter=5000)).fit(pool(X[rows[fit]], axis=1), positive[fit])
        scores = model.decision_function(pool(X[rows[test]], axis=1))
        result.append((f"logistic regression on the {name} of a page", precision_of(positive[test], scores), None, {}))
    model = APSVMClassifier("ap", latent=True)
    of_bag = np.repeat(fit, DIGITS_A_PAGE)
    model.fit(X[rows[fit].ravel()], positive[of_bag], bags=of_bag)
    test_bags = np.repeat(test, DIGITS_A_PAGE)
    scores = model.bag_scores(X[rows[test].ravel()], test_bags)
    deciding = rows[test].ravel()[model.deciding_rows(X[rows[test].ravel()], test_bags)]
    right = float((digits[deciding] == 8)[positive[test]].mean())
    order = np.argsort(-scores, kind="stable")[:8]
    shown = {"pages": rows[test][order].tolist(), "deciding": deciding[order].tolist()} if seed == 0 else {}
    return [*result, ("apsvm train --latent", precision_of(positive[test], scores), right, shown)]


def precision_of(positive: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    return float(average_precision_score(positive, scores))


CASES: Mapping[str, Callable[[], Figures]] = {
    case.__name__: case for case in (fraud, search, images, tags, recommendation, bags)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--json", type=Path, default=FIGURES)
    arguments = parser.parse_args()
    for name in arguments.cases or CASES:
        if name not in CASES:
            parser.error(f"no case {name!r}: there are {', '.join(CASES)}")
        print(name, file=sys.stderr, flush=True)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", WeakRankerWarning)
            figures = CASES[name]()
        results = json.loads(arguments.json.read_text(encoding="utf-8")) if arguments.json.exists() else {}
        results[name] = figures
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
