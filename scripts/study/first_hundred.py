"""Positives among the first hundred rows of a list: apsvm, logistic regression and boosted trees.

    python scripts/study/first_hundred.py [--customers FILE] [--splits 5] [--json docs/figures/first-hundred.json]

Three tables on which positives are rare and many look like any other row: spots in X-ray images (examples/), made
payments (``payments``), and customers who hold a caravan policy (CoIL Challenge 2000, 5,822 rows; FILE, say the
Caravan.csv of the package ISLP: its licence forbids us to hand it on). A random half of the rows is held out,
stratified, and ranked. Everything is at its defaults, except that logistic regression has its C chosen by AP in five
folds. What FILE of --json has of a table is not measured again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from apsvm import APSVMClassifier, APSVMClassifierCV

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures" / "first-hundred.json"
FIRST = 100

Table = tuple[pd.DataFrame, NDArray[np.bool_]]


def logistic_regression() -> Any:
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    powers = {"C": 10.0 ** np.arange(-4, 5)}
    search = GridSearchCV(LogisticRegression(max_iter=2000), powers, scoring="average_precision", cv=folds)
    return make_pipeline(StandardScaler(), search)


TOOLS: Mapping[str, Callable[[], Any]] = {
    "logistic regression": logistic_regression,
    "boosted trees": lambda: HistGradientBoostingClassifier(random_state=0),
    "apsvm train": APSVMClassifier,
    "apsvm cv": lambda: APSVMClassifierCV(random_state=0),
}


def spots() -> Table:
    halves = [ROOT / "examples" / f"mammography_{half}.csv.gz" for half in ("train", "test")]
    table = pd.concat([pd.read_csv(half, index_col="image") for half in halves])
    positive = table.pop("calcification").to_numpy() == 1
    return table, positive


def payments(n: int = 60_000, seed: int = 1) -> Table:
    """240 frauds among n payments of 30 features. A third of them look like any other payment; of the others half have
    another amount and features 5 to 12 shifted, half more payments in the last hour and features 11 to 20. 300 honest
    payments look like the first kind in features 5 to 8."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 30))
    X[:, 0] = np.exp(0.9 * X[:, 0] + 3.0)
    X[:, 1], X[:, 2], X[:, 3] = rng.integers(0, 24, n), rng.integers(0, 2, n), rng.poisson(1.2, n)
    rows = rng.permutation(n)
    frauds, decoys = rows[:240], rows[240:540]
    first, second = frauds[:80], frauds[80:160]
    X[first, 4:12] += 1.1
    X[first, 0] *= 3.0
    X[second, 10:20] -= 0.7
    X[second, 3] += 2.0
    X[decoys, 4:8] += 1.3
    positive = np.zeros(n, dtype=bool)
    positive[frauds] = True
    return pd.DataFrame(X, columns=[f"v{number}" for number in range(1, 31)]), positive


def customers(file: Path) -> Table:
    table = pd.read_csv(file)
    positive = table.pop("Purchase").to_numpy() == "Yes"
    return table.astype(np.float64), positive


def found(table: Table, tool: Callable[[], Any], splits: int) -> list[list[float]]:
    """A split: how many of the first rows of the half held out are positive, and the AP of their order."""
    X, positive = table
    result = []
    for fit, test in StratifiedShuffleSplit(splits, test_size=0.5, random_state=0).split(X, positive):
        model = tool().fit(X.iloc[fit], positive[fit])
        has_scores = hasattr(model, "decision_function")
        scores = model.decision_function(X.iloc[test]) if has_scores else model.predict_proba(X.iloc[test])[:, 1]
        first = np.argsort(-scores, kind="stable")[:FIRST]
        result.append([int(positive[test][first].sum()), average_precision_score(positive[test], scores)])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--customers", type=Path)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--json", type=Path, default=FIGURES)
    options = parser.parse_args()
    figures = json.loads(options.json.read_text()) if options.json.exists() else {}
    tables: dict[str, Callable[[], Table]] = {"payments": payments, "spots": spots}
    if options.customers is not None:
        tables["customers"] = lambda: customers(options.customers)
    for name, make in tables.items():
        X, positive = table = make()
        half = StratifiedShuffleSplit(1, test_size=0.5, random_state=0)
        _, test = next(half.split(X, positive))
        of = figures.setdefault(name, {"rows": test.size, "positive": int(positive[test].sum()), "tools": {}})
        for tool, build in TOOLS.items():
            if tool not in of["tools"]:
                of["tools"][tool] = found(table, build, options.splits)
                options.json.write_text(json.dumps(figures, indent=1) + "\n")
            counts, precisions = np.array(of["tools"][tool]).T
            error = counts.std(ddof=1) / np.sqrt(counts.size)
            print(f"{name:10} {tool:20} {counts.mean():5.1f} ± {error:.1f}  AP {precisions.mean():.3f}", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
