"""Is the default C a good one? Held-out AP along multiples of it, against rules that derive C otherwise.

    python scripts/study/default_c.py train DATA TABLES [--only PATTERN] [--bound hinge,tight] [--scale none,standard]
    python scripts/study/default_c.py compare TABLES [--only PATTERN] [--bound hinge,tight]

``train`` goes through the sets below, those of them that the folder DATA has, and writes a file into the folder TABLES
for each set × scaling × bound: held-out AP of every fold at every multiple of the C that ``default_C`` gave, and what
rules may look at: folds' covariance matrices, differences of class means and numbers of rows. A file that is there
already is kept, so that it can be stopped and started again. ``compare`` trains nothing: each rule, at the factor that
serves the sets best and left out of one set after another, gets the AP that its C would have had, interpolated in
log C between the multiples tried.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm.data.features.scaling import learn_scaling
from apsvm.data.labels import of_relevance
from apsvm.data.rows import Rows
from apsvm.metrics.evaluate import evaluate
from apsvm.solvers.state import State
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.default_c import default_C
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer
from apsvm.trainers.structured_svm.training import train as train_plan

MOST_ROWS = 10_000
#: Powers of ten, of the C that ``default_C`` gives.
STEPS = np.r_[-4.0, -3.0, np.arange(-2.0, 3.1, 0.5), 4.0]
FOLDS_LOOKED_AT = 3
#: Within so much of the best AP is near enough.
NEAR = 0.03


@dataclass(frozen=True)
class Source:
    """A set made of a file.

    Attributes
    ----------
    path : in the folder of data
    label, above : the positives are the rows of this label, or of a label above this; by default of a label above 0
    rows : at most this number of rows
    products : whether the products of two features come too
    knots : number of quantiles of each feature; at each it gets a column max(0, x − quantile) too
    query_size : rows of a query, from and to, of random queries; None: the file's, if it has any
    """

    path: str
    label: float | None = None
    above: float = 0.0
    rows: int = MOST_ROWS
    products: bool = False
    knots: int = 0
    query_size: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        parts = [Path(self.path).name.split(".svm")[0]]
        if self.label is not None:
            parts.append(f"={self.label:g}")
        if self.above:
            parts.append(f">{self.above:g}")
        if self.rows < MOST_ROWS:
            parts.append(f"[{self.rows}]")
        if self.products:
            parts.append("products")
        if self.knots:
            parts.append(f"piecewise{self.knots}")
        if self.query_size is not None:
            parts.append("q{}-{}".format(*self.query_size))
        return "".join(parts)


SETS = (
    *(
        Source(f"binary/{name}.svm")
        for name in ("a1a", "agaricus", "breast_cancer_wdbc", "german_scale", "heart_scale")
    ),
    *(Source(f"binary/{name}.svm") for name in ("higgs7k", "ijcnn1", "sick", "spambase", "svmguide1")),
    *(Source(f"imbalanced/{name}.svm") for name in ("mammography", "pendigits", "satimage-2", "thyroid")),
    Source("cnn_features/ResNet18_CIFAR10_0.svm.gz"),
    Source("cnn_features/ResNet18_CIFAR10_0.svm.gz", rows=600),
    *(Source("vision/digits8x8.svm", label=label) for label in (1, 8)),
    *(Source("vision/optdigits.svm", label=label) for label in (3, 8)),
    Source("vision/optdigits.svm", label=9, rows=500),
    Source("rankncg/abalone.ord3.svm", label=2),
    Source("rankncg/abalone.reg.svm", label=18),
    Source("rankncg/auto_mpg.ord3.svm", label=2),
    Source("rankncg/machine_cpu.ord4.svm", label=3),
    Source("rankncg/pyrimidines.ord3.svm", label=2),
    Source("rankncg/triazines.ord4.svm", label=3),
    Source("binary/agaricus.svm", rows=150),
    Source("binary/spambase.svm", rows=200),
    Source("binary/sick.svm", rows=400),
    Source("binary/a1a.svm", rows=200),
    Source("binary/breast_cancer_wdbc.svm", rows=60),
    Source("vision/optdigits.svm", label=3, rows=150),
    Source("binary/a1a.svm", rows=1000, products=True),
    Source("binary/agaricus.svm", rows=600, products=True),
    Source("binary/german_scale.svm", products=True),
    Source("binary/breast_cancer_wdbc.svm", products=True),
    *(Source(f"imbalanced/{name}.svm", knots=4) for name in ("mammography", "thyroid", "pendigits")),
    *(
        Source(f"binary/{name}.svm", knots=4)
        for name in ("german_scale", "sick", "breast_cancer_wdbc", "higgs7k", "heart_scale")
    ),
    Source("rankncg/abalone.reg.svm", above=14, knots=4),
    Source("binary/spambase.svm", knots=4, rows=2000),
    Source("ltr/lightgbm_rank_train.svm"),
    Source("ltr/lightgbm_rank_train.svm", above=1),
    Source("ltr/trec_news_2018_train.svm"),
    Source("ltr/trec_news_2018_train.svm", above=1),
    *(
        Source(f"binary/{name}.svm", query_size=(20, 100))
        for name in ("a1a", "german_scale", "higgs7k", "spambase", "sick", "svmguide1")
    ),
    *(Source(f"imbalanced/{name}.svm", query_size=(20, 100)) for name in ("mammography", "thyroid", "pendigits")),
    Source("vision/optdigits.svm", label=8, query_size=(20, 100)),
    Source("rankncg/abalone.ord3.svm", label=2, query_size=(20, 100)),
)


@dataclass
class Problem:
    """X (n, d), relevant (n,) bool, queries (n,) int64 or None."""

    X: sp.csr_array | NDArray[np.float64]
    relevant: NDArray[np.bool_]
    queries: NDArray[np.int64] | None


def load(source: Source, folder: Path) -> Problem:
    dataset = read_svmlight(folder / source.path)
    labels = dataset.relevance
    relevant = labels > source.above if source.label is None else labels == source.label
    queries = dataset.groups
    X = dataset.X
    if relevant.size > source.rows:
        order = np.argsort(~relevant, kind="stable")
        which = np.sort(order[np.linspace(0, order.size - 1, source.rows).astype(int)])
        X, relevant = X[which], relevant[which]
    if source.products:
        dense = X.toarray()
        first, second = np.triu_indices(dense.shape[1], 1)
        X = sp.csr_array(np.hstack([dense, dense[:, first] * dense[:, second]]))
    if source.knots:
        dense = X.toarray()
        quantiles = np.quantile(dense, np.arange(1, source.knots + 1) / (source.knots + 1), axis=0)
        X = sp.csr_array(np.hstack([dense, *(np.maximum(0.0, dense - at) for at in quantiles)]))
    if source.query_size is not None:
        rng = np.random.default_rng(0)
        sizes = rng.integers(*source.query_size, endpoint=True, size=relevant.size)
        queries = rng.permutation(np.repeat(np.arange(relevant.size), sizes)[: relevant.size])
    return Problem(X.toarray() if X.nnz > 0.3 * np.prod(X.shape) else X, relevant, queries)


def folds_of(problem: Problem) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows to train on and rows to hold out; small sets several times."""
    n = problem.relevant.size
    if problem.queries is not None:
        yield from GroupKFold(3).split(problem.X, groups=problem.queries)
    else:
        repeats = 1 if n > 2000 else 2 if n > 500 else 4
        splitter = RepeatedStratifiedKFold(n_splits=3, n_repeats=repeats, random_state=0)
        yield from splitter.split(problem.relevant, problem.relevant)


def statistics_of(
    X: NDArray[np.float64], relevant: NDArray[np.bool_], queries: NDArray[np.int64] | None
) -> dict[str, NDArray]:
    """What rules may look at, of dense X, scaled; with queries within them: covariance (d, d), within, the difference
    of the class means (d,), and sizes and positives of each query."""
    member = np.zeros(relevant.size, dtype=int) if queries is None else np.unique(queries, return_inverse=True)[1]
    sizes = np.bincount(member)
    means = np.zeros((sizes.size, X.shape[1]))
    np.add.at(means, member, X)
    X = X - (means / sizes[:, None])[member]
    return {
        "covariance": X.T @ X / X.shape[0],
        "within": X[relevant].mean(axis=0) - X[~relevant].mean(axis=0),
        "sizes": sizes,
        "positives": np.bincount(member, relevant),
    }


def train(problem: Problem, scale: str, bound: str, time_limit: float) -> dict[str, NDArray]:
    """C and AP, (folds, steps) each, and rows (folds,); AP is NaN where the time was up."""
    settings = StructuredSettings(bound=bound, time_limit=time_limit)
    trainer = StructuredSVMTrainer("ap", settings)
    result: dict[str, list] = {}
    for fit, held_out in folds_of(problem):
        scaling = learn_scaling(scale, problem.X, fit)
        queries = None if problem.queries is None else problem.queries[fit]
        data = TrainingSet(
            Rows(problem.X, selection=fit, scaling=scaling), of_relevance(problem.relevant[fit]), queries
        )
        test = Rows(problem.X, selection=held_out, scaling=scaling)
        default = default_C(data, trainer.loss, bound)
        values_of_C = default * 10.0**STEPS
        groups = None if problem.queries is None else problem.queries[held_out]
        values = []
        path = Plan(loss=trainer.loss, settings=replace(settings, C=tuple(values_of_C)))
        for trained in train_plan(path, data, Watch()):
            evaluation = evaluate(["AP"], test.scores(trained.w), problem.relevant[held_out], groups=groups)
            values.append(np.nan if trained.state is State.TIME_LIMIT else evaluation.values["AP"])
        for name, value in (("C", values_of_C), ("AP", values), ("rows", fit.size)):
            result.setdefault(name, []).append(value)
    return {name: np.array(value) for name, value in result.items()}


def all_statistics(problem: Problem, scale: str) -> dict[str, NDArray]:
    """Of the first folds; the others are like them."""
    dense = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    result: dict[str, NDArray] = {}
    for fold, (fit, _) in enumerate(islice(folds_of(problem), FOLDS_LOOKED_AT)):
        scaling = learn_scaling(scale, problem.X, fit)
        X = dense[fit]
        if scaling.divisors is not None:
            X = X / scaling.divisors
        queries = None if problem.queries is None else problem.queries[fit]
        for name, value in statistics_of(X, problem.relevant[fit], queries).items():
            result[f"{fold}.{name}"] = value
    return result


def train_all(options: argparse.Namespace) -> None:
    options.tables.mkdir(exist_ok=True)
    for source in SETS:
        if not re.search(options.only, source.name) or not (options.data / source.path).exists():
            continue
        problem = load(source, options.data)
        for scale in options.scale.split(","):
            path = options.tables / f"{source.name}.{scale}.statistics.npz"
            if not path.exists():
                np.savez(path, **all_statistics(problem, scale))
            for bound in options.bound.split(","):
                path = options.tables / f"{source.name}.{scale}.{bound}.npz"
                if path.exists():
                    continue
                began = time.perf_counter()
                table = train(problem, scale, bound, options.time_limit)
                np.savez(path, **table, queries=problem.queries is not None)
                means = np.round(table["AP"].mean(axis=0), 3)
                print(f"{path.name:<50} {time.perf_counter() - began:6.1f} s {means}", flush=True)


class Fold:
    """What a rule may look at: n, d of the features that vary, their variances, effective dimension and a C of the
    length of a ridge discriminant that tells the class means apart by 1."""

    def __init__(self, statistics: dict[str, NDArray]) -> None:
        covariance = statistics["covariance"]
        variance = np.diag(covariance)
        varies = variance > 1e-12 * variance.max()
        covariance, self.variance = covariance[np.ix_(varies, varies)], variance[varies]
        self.n, self.d = int(statistics["sizes"].sum()), int(varies.sum())
        self.geometric_mean = float(np.exp(np.log(self.variance).mean()))
        deviation = np.sqrt(self.variance)
        self.effective_dimension = self.d**2 / float(((covariance / deviation / deviation[:, None]) ** 2).sum())
        difference = statistics["within"][varies]
        ridge = covariance + self.variance.sum() / self.n * np.eye(self.d)
        discriminant = np.linalg.solve(ridge, difference)
        self.discriminant = float(discriminant @ discriminant / (difference @ discriminant) ** 2)

    @property
    def unit(self) -> float:
        return 1.0 / (self.d * self.geometric_mean)


RULES: dict[str, Callable[[Fold], float]] = {
    "1": lambda fold: 1.0,
    "1 / trace": lambda fold: 1.0 / fold.variance.sum(),
    "1 / (d · geometric mean)": lambda fold: fold.unit,
    "… · min(1 + n/d, 100)²": lambda fold: fold.unit * min(1.0 + fold.n / fold.d, 100.0) ** 2,
    "… · √n min(1 + n/d, 100)²": lambda fold: fold.unit * np.sqrt(fold.n) * min(1 + fold.n / fold.d, 100.0) ** 2,
    "… · min(n/d_eff, 300)²": lambda fold: fold.unit * min(fold.n / fold.effective_dimension, 300.0) ** 2,
    "‖ridge discriminant‖²": lambda fold: fold.discriminant,
    "… · (1 + n/d)": lambda fold: fold.discriminant * (1.0 + fold.n / fold.d),
}
FACTORS = np.arange(-6.0, 9.01, 0.1)


@dataclass
class Table:
    """C, AP : (folds, steps); looked_at : what the rules see of the first folds"""

    scale: str
    source: str
    C: NDArray[np.float64]
    AP: NDArray[np.float64]
    looked_at: list[Fold]

    def shortfall(self, rule: Callable[[Fold], float]) -> NDArray[np.float64]:
        """Behind the best multiple tried, at each of ``FACTORS``; beyond those tried, as at the last."""
        seen = [np.log10(rule(fold)) for fold in self.looked_at]
        values = [
            np.interp(seen[fold % len(seen)] + FACTORS, np.log10(C[trained]), AP[trained])
            for fold, (C, AP) in enumerate(zip(self.C, self.AP, strict=True))
            for trained in [~np.isnan(AP)]
        ]
        return np.nanmax(self.AP.mean(axis=0)) - np.mean(values, axis=0)


def read_tables(folder: Path, only: str, bound: str, queries: bool) -> list[Table]:
    tables = []
    for path in sorted(folder.glob(f"*.{bound}.npz")):
        name, scale = path.name.removesuffix(f".{bound}.npz").rsplit(".", 1)
        table = np.load(path)
        if bool(table["queries"]) is queries and re.search(only, name):
            with np.load(folder / f"{name}.{scale}.statistics.npz") as statistics:
                folds = sorted({key.split(".")[0] for key in statistics})
                names = ("covariance", "within", "sizes", "positives")
                looked_at = [Fold({key: statistics[f"{fold}.{key}"] for key in names}) for fold in folds]
            tables.append(Table(scale, name, table["C"], table["AP"], looked_at))
    return tables


def badness(shortfalls: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each factor over the sets: the mean shortfall, where a set counts .1 at most, and a penalty for those far
    behind."""
    return np.minimum(shortfalls, 0.1).mean(axis=0) + 0.02 * (shortfalls > NEAR).mean(axis=0)


def compare_all(options: argparse.Namespace) -> None:
    for bound in options.bound.split(","):
        for queries in (False, True):
            tables = read_tables(options.tables, options.only, bound, queries)
            if len({table.source for table in tables}) < 2:  # none would be left to find a factor on
                continue
            sources = np.array([table.source for table in tables])
            print(f"\n{bound}{', by query' if queries else ''}: {len(tables)} tables of {np.unique(sources).size} sets")
            for name, rule in RULES.items():
                shortfalls = np.array([table.shortfall(rule) for table in tables])
                best = badness(shortfalls).argmin()
                left_out = np.array(
                    [
                        row[badness(shortfalls[sources != source]).argmin()]
                        for row, source in zip(shortfalls, sources, strict=True)
                    ]
                )
                fitted = shortfalls[:, best]
                print(
                    f"{name:<28} factor {10 ** FACTORS[best]:>8.2g}: {(fitted <= NEAR).sum()} within {NEAR}, mean "
                    f"{fitted.mean():.4f}, most {fitted.max():.3f}; its set left out: {(left_out <= NEAR).sum()}, "
                    f"{left_out.mean():.4f}"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.add_argument("data", type=Path)
    training.add_argument("--scale", default="none,standard")
    training.add_argument("--time-limit", type=float, default=20.0, help="seconds a path")
    training.set_defaults(run=train_all)
    comparing = commands.add_parser("compare")
    comparing.set_defaults(run=compare_all)
    for command in (training, comparing):
        command.add_argument("tables", type=Path)
        command.add_argument("--bound", default="hinge,tight")
        command.add_argument("--only", default="", help="a pattern that names of sets match")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
