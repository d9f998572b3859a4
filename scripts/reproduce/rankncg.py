"""RankNCG's tables 2 and 3 in shape: seconds of training and WMW on held-out rows, k-fold, for each data set.

    python scripts/reproduce/rankncg.py [DATA ...] [--classes S] [--folds 5] [--lambda 0.001]

DATA: svmlight files whose labels are ordered classes, or with --classes S real targets, cut into S of equal frequency;
without any, scikit-learn's diabetes, cut into three. --output gets the tables.
Features are standardised by the training rows'. Every method takes the same folds and one thread:

    direct      the paper's objective (erfc) by its nonlinear conjugate gradients, pair by pair
    fast        the same, sums by the Fourier series with ε = 1e-3
    default     the logistic objective by L-BFGS, sums exact to rounding
    logreg      scikit-learn's LogisticRegression on the differences of all pairs, where they fit into --memory
    auc         the structured SVM with the AUC loss, a linear RankSVM: each pair of classes is a query; where
                the loss is there

With λ the same for all: LogisticRegression's minimum is default's, and C = 1/λ for the SVM. A * is a method that was
not run. WMW counts ties one half. The published tables are of other classes and targets for some of these sets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from kept import data_files, tables_kept
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm.data.labels import of_relevance, ordered
from apsvm.data.rows import Rows
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.rank_ncg.preferences import classes_by_label, cut_into_classes
from apsvm.trainers.rank_ncg.settings import RankNCGSettings
from apsvm.trainers.rank_ncg.trainer import RankNCGTrainer
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


@dataclass(frozen=True)
class Part:
    """Rows (n, d) and their classes (n,) int64, 0 … S − 1."""

    X: np.ndarray
    of_row: np.ndarray

    def pairs(self) -> int:
        sizes = np.bincount(self.of_row)
        return int((self.of_row.size**2 - (sizes**2).sum()) // 2)


#: Trains on a part with this λ: w, or None if it cannot.
Method = Callable[[Part, float], np.ndarray | None]


def rank_ncg(**settings: object) -> Method:
    def train(part: Part, regularisation: float) -> np.ndarray:
        data = TrainingSet(Rows(part.X), ordered(part.of_row * 1.0))
        plan = RankNCGTrainer("wmw", RankNCGSettings(regularisation=regularisation, **settings))
        (outcome,) = plan.train(data, Watch())
        if not outcome.as_asked:
            print(f"    {settings}: {outcome.state}")
        return outcome.w

    return train


def logistic_regression(memory: float) -> Method:
    def train(part: Part, regularisation: float) -> np.ndarray | None:
        # Each pair both ways, twice for the solver's own copy.
        if 4 * 8 * part.pairs() * part.X.shape[1] > memory:
            return None
        above = [
            (part.X[part.of_row == high][:, None] - part.X[part.of_row == low]).reshape(-1, part.X.shape[1])
            for low, high in combinations(range(part.of_row.max() + 1), 2)
        ]
        pairs = np.concatenate(above)
        model = LogisticRegression(C=0.5 / (regularisation * len(pairs)), fit_intercept=False, max_iter=1000)
        model.fit(np.concatenate([pairs, -pairs]), np.repeat([1, 0], len(pairs)))
        return model.coef_[0]

    return train


def auc_svm(part: Part, regularisation: float) -> np.ndarray:
    edges = list(combinations(range(part.of_row.max() + 1), 2))
    members = [np.flatnonzero((part.of_row == low) | (part.of_row == high)) for low, high in edges]
    rows = np.concatenate(members)
    groups = np.repeat(np.arange(len(edges)), [which.size for which in members])
    relevant = np.concatenate([part.of_row[which] == high for which, (_, high) in zip(members, edges, strict=True)])
    data = TrainingSet(Rows(part.X).select(rows), of_relevance(relevant), groups)
    (outcome,) = StructuredSVMTrainer("auc", StructuredSettings(C=(1 / regularisation,), bound="hinge")).train(
        data, Watch()
    )
    return outcome.w


def wmw(scores: np.ndarray, of_row: np.ndarray) -> float:
    ahead = (scores[:, None] - scores)[of_row[:, None] > of_row]
    return float(np.mean((ahead > 0) + 0.5 * (ahead == 0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", metavar="DATA")
    parser.add_argument("--classes", type=int)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--lambda", dest="regularisation", type=float, default=1e-3)
    parser.add_argument("--memory", type=float, default=2e9, help="bytes that the pairs of logreg may take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("bench-output/rankncg"), help="folder for tables")
    options = parser.parse_args()
    if not options.data and options.classes is None:
        options.classes = 3
    options.data = data_files(parser, options.data, "diabetes", options.output)
    with tables_kept(options.output):
        measure(options)


def measure(options: argparse.Namespace) -> None:
    """Both tables, printed."""
    methods: dict[str, Method] = {
        "direct": rank_ncg(objective="erfc", summation="direct", optimizer="prcg", tolerance=1e-3),
        "fast": rank_ncg(objective="erfc", summation="fourier", optimizer="prcg"),
        "default": rank_ncg(),
        "logreg": logistic_regression(options.memory),
        "auc": auc_svm,
    }
    seconds_table, wmw_table = [], []
    for path in options.data:
        dataset = read_svmlight(path)
        labels = dataset.relevance
        classes = (
            cut_into_classes(labels, options.classes, "frequency") if options.classes else classes_by_label(labels)
        )
        X, of_row = dataset.X.toarray(), classes.of_row
        seconds: dict[str, list[float]] = {name: [] for name in methods}
        statistic: dict[str, list[float]] = {name: [] for name in methods}
        pairs = []
        folds = StratifiedKFold(options.folds, shuffle=True, random_state=options.seed)
        for train, test in folds.split(X, of_row):
            scaler = StandardScaler().fit(X[train])
            part = Part(np.ascontiguousarray(scaler.transform(X[train])), of_row[train])
            pairs.append(part.pairs())
            for name, method in methods.items():
                began = time.perf_counter()
                with threadpool_limits(1):
                    w = method(part, options.regularisation)
                if w is not None:
                    seconds[name].append(time.perf_counter() - began)
                    statistic[name].append(wmw(scaler.transform(X[test]) @ w, of_row[test]))
        title = f"{Path(path).stem:<22} {X.shape[0]:>6} {X.shape[1]:>4} {classes.names.size:>3} {np.mean(pairs):>10.0f}"
        seconds_table.append(title + "".join(_cell(seconds[name], 4) for name in methods))
        wmw_table.append(title + "".join(_cell(statistic[name], 3) for name in methods))
        print(f"{path} done", flush=True)
    heading = f"{'data':<22} {'rows':>6} {'d':>4} {'S':>3} {'pairs':>10}" + "".join(f"{name:>18}" for name in methods)
    for what, table in (("seconds of training", seconds_table), ("WMW on held-out rows", wmw_table)):
        print(f"\n{what}, mean ± standard deviation of {options.folds} folds, λ = {options.regularisation:g}")
        print("\n".join([heading, *table]))


def _cell(values: list[float], digits: int) -> str:
    return f"{'*':>18}" if not values else f"{f'{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}':>18}"


if __name__ == "__main__":
    main()
