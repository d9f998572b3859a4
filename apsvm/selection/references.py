"""Common models on the same folds, judged by the same metrics, so that a choice can be seen beside what everybody has:
logistic regression on standardised features, of the best of three C, and gradient-boosted trees at their defaults.

They are scikit-learn's, learn which rows are relevant, and know nothing of queries. Nothing is chosen from them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from apsvm.machine import thread_count
from apsvm.selection.choice import Candidate, best
from apsvm.selection.cross_validation import Measured
from apsvm.selection.search import SettingsSearch

LOGISTIC_C = (0.01, 1.0, 100.0)
#: Up to so many rows, more threads than one cost these models more than they bring.
ROWS_FOR_ONE_THREAD = 50_000
#: Trees are grown on dense rows; where those would take more values than this, there are none.
MOST_DENSE_VALUES = 100_000_000


@dataclass(frozen=True, slots=True)
class Reference:
    """A model of scikit-learn: ``make(value)`` for each of ``values``."""

    name: str
    values: Sequence[float | None]
    make: Callable[[Any], Any]


def references(search: SettingsSearch, should_stop: Callable[[], bool]) -> Iterator[Candidate]:
    """The best setting of each, on the folds of ``search``; fewer where they are stopped."""
    for reference in _known(search):
        candidates = []
        for value in reference.values:
            measured = list(_measured(search, reference, value, should_stop))
            if len(measured) < len(search.folds):
                return
            candidates.append(Candidate(-1, reference.name, measured[0].choice, measured))
        yield best(candidates, search.metric)


def _known(search: SettingsSearch) -> Iterator[Reference]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X = search.dataset.X
    sparse = sp.issparse(X)

    def logistic(C: float) -> Any:
        return make_pipeline(StandardScaler(with_mean=not sparse), LogisticRegression(C=C, max_iter=500))

    yield Reference("logistic regression", LOGISTIC_C, logistic)
    if X.shape[0] * X.shape[1] <= MOST_DENSE_VALUES:
        yield Reference("boosted trees", (None,), lambda _: HistGradientBoostingClassifier(random_state=search.seed))


def _measured(
    search: SettingsSearch, reference: Reference, value: float | None, should_stop: Callable[[], bool]
) -> Iterator[Measured]:
    from threadpoolctl import threadpool_limits

    X, target, groups = search.dataset.X, search.target, search.dataset.groups
    dense = reference.values == (None,)
    for number, (training, test) in enumerate(search.folds):
        if should_stop():
            return
        began = time.perf_counter()
        threads = 1 if X.shape[0] <= ROWS_FOR_ONE_THREAD else thread_count(0)
        with warnings.catch_warnings(), threadpool_limits(threads):
            warnings.simplefilter("ignore")  # it did not converge: it is what it is
            model = reference.make(value).fit(_rows(X, training, dense=dense), target.relevant[training])
            scores = np.asarray(_scores(model, _rows(X, test, dense=dense)), dtype=np.float64)
        seconds = time.perf_counter() - began
        values = search.judged(scores, target.of(test), None if groups is None else groups[test], number)
        choice = {} if value is None else {"C": value}
        yield Measured(choice, values, seconds, "", as_asked=True)


def _rows(X: Any, which: Any, *, dense: bool) -> Any:
    rows = X[which]
    return rows.toarray() if dense and sp.issparse(rows) else rows


def _scores(model: Any, X: Any) -> Any:
    return model.decision_function(X)
