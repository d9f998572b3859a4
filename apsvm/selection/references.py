"""Common models on the same folds, judged by the same metrics, for comparison: logistic regression on standardised
features with the best of three C, and gradient-boosted trees with their defaults.

They are scikit-learn's. They learn which rows are relevant and ignore queries; of bags they see minimum, mean and
maximum of each feature. They take no part in the choice.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm._support.machine import thread_count
from apsvm._support.types import Matrix
from apsvm.data.bags import bags_of
from apsvm.data.pooling import pooled
from apsvm.models.header import POOLS
from apsvm.selection.choose import best
from apsvm.selection.race import Candidate, Measured
from apsvm.selection.search import SettingsSearch, never

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

LOGISTIC_C = (0.01, 1.0, 100.0)
#: Largest number of values of dense rows for trees.
MOST_DENSE_VALUES = 10_000_000


@dataclass(frozen=True, slots=True)
class Reference:
    """A model of scikit-learn, made by ``make(value)`` for each of ``values``, on ``dense`` rows."""

    name: str
    values: Sequence[float | None]
    make: Callable[[float | None], ClassifierMixin]
    dense: bool = False


def references(search: SettingsSearch, should_stop: Callable[[], bool] = never, jobs: int = 0) -> Iterator[Candidate]:
    """Best setting of each model on the folds of ``search``, ``jobs`` trained at a time (0: one per core). Models that
    are stopped, or that scikit-learn cannot train on these rows, are left out."""
    from joblib import Parallel, delayed
    from threadpoolctl import threadpool_limits

    parallel = Parallel(n_jobs=thread_count(jobs), backend="threading")
    X = search.units.X if bags_of(search.dataset) is None else pooled(search.dataset, POOLS).X
    for reference in _references(X, search.seed):
        tasks = [(value, fold) for value in reference.values for fold in range(len(search.folds))]
        with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
            warnings.simplefilter("ignore")  # about convergence
            try:
                measured = parallel(delayed(_measured)(search, X, reference, *task, should_stop) for task in tasks)
            except ValueError:
                continue
        if should_stop() or None in measured:
            return
        by_value = [measured[at : at + len(search.folds)] for at in range(0, len(tasks), len(search.folds))]
        candidates = [Candidate(-1, reference.name, folds[0].choice, folds) for folds in by_value]
        yield best(candidates, search.metric)


def _references(X: Matrix, seed: int) -> Iterator[Reference]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    sparse = sp.issparse(X)

    def logistic(C: float | None) -> ClassifierMixin:
        return make_pipeline(StandardScaler(with_mean=not sparse), LogisticRegression(C=C, max_iter=500))

    yield Reference("logistic regression", LOGISTIC_C, logistic)
    if X.shape[0] * X.shape[1] <= MOST_DENSE_VALUES:
        yield Reference(
            "boosted trees", (None,), lambda _: HistGradientBoostingClassifier(random_state=seed), dense=True
        )


def _measured(
    search: SettingsSearch,
    X: Matrix,
    reference: Reference,
    value: float | None,
    fold: int,
    should_stop: Callable[[], bool],
) -> Measured | None:
    """A setting in one fold; None if it was stopped."""
    from threadpoolctl import threadpool_limits

    if should_stop():
        return None
    training, test = search.folds[fold]
    began = time.perf_counter()
    # The limit holds for this thread. Small trees grown by several threads on a busy machine take 50 times as long.
    with threadpool_limits(1, user_api="openmp"), np.errstate(all="ignore"):
        model = reference.make(value).fit(_rows(X, training, dense=reference.dense), search.target.relevant[training])
        scores = np.asarray(model.decision_function(_rows(X, test, dense=reference.dense)), dtype=np.float64)
    seconds = time.perf_counter() - began
    values = search.judged(scores, fold)
    choice = {} if value is None else {"C": value}
    return Measured(choice, values, seconds, "", as_asked=True)


def _rows(X: Matrix, which: NDArray[np.int64], *, dense: bool) -> Matrix:
    rows = X[which]
    return rows.toarray() if dense and sp.issparse(rows) else rows
