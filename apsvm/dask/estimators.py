"""Estimators on a dask cluster, with the parameters, attributes and objective of the plain ones. X, a dask array, a
dask data frame or a list of delayed parts, stays on the workers. The driver gathers y, qid and sample_weight."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from apsvm._support.types import Collection, Column, Matrix
from apsvm.dask.cluster import Cluster
from apsvm.dask.collections import client_of, column_of, mapped, rows_of
from apsvm.dask.fitting import ClusterFit
from apsvm.dask.rows import checked_column
from apsvm.estimators.base import MOST_ROWS
from apsvm.estimators.linear import LinearEstimator
from apsvm.estimators.messages import logger
from apsvm.estimators.rank_ncg import RankNCG
from apsvm.estimators.structured import APSVMClassifier, APSVMRanker
from apsvm.trainers.fitting import Fit

if TYPE_CHECKING:
    from distributed import Client

    from apsvm.models.base import Model, Ranker
    from apsvm.trainers.base import Outcome, TrainingSet, Watch

#: Arguments besides X.
_COLUMNS = ("y", "qid", "sample_weight")


if TYPE_CHECKING:
    _Plain = LinearEstimator
else:
    _Plain = object  # avoids fields of a base, which would hide the plain estimator's defaults


class _OnCluster(_Plain):
    """Base of the estimators on a cluster."""

    client: Client | None
    _compares_maps = False

    def fit(  # type: ignore[override]  # no bags
        self, X: Collection, y: Collection, qid: Collection = None, sample_weight: Collection = None
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : dask array, dask data frame, or list of delayed parts
            (n, d) arrays, CSR matrices or data frames. Data frames are tables, as for the plain estimators.
        y : array or dask collection
            (n,) in the order of X, with any chunks; see the class.
        qid, sample_weight : array or dask collection, optional
            (n,) as for the plain estimators.

        Raises
        ------
        ValueError
            Input that does not fit, parameters that exclude each other, nothing to rank, or no client.
        TypeError
            X is not a dask collection.
        NotFiniteError
            Feature values so large that the objective is not finite; a ValueError too.
        """
        cluster = Cluster(client_of(self.client), logger.warning)
        columns = [column_of(cluster, *named) for named in zip(_COLUMNS, (y, qid, sample_weight), strict=True)]
        return super().fit(rows_of(cluster, X).X, *columns)

    def score(  # type: ignore[override]  # no bags
        self, X: Collection, y: Collection, qid: Collection = None, sample_weight: Collection = None
    ) -> float:
        """The metric named by the parameter ``metric``, from scores gathered on the driver; arguments as in ``fit``.

        Raises
        ------
        ValueError
            The metric is undefined for these rows.
        """
        check_is_fitted(self)
        cluster = Cluster(client_of(self.client), logger.warning)
        scores = column_of(cluster, "X", mapped(X, LinearEstimator._scores.__get__(self._alone())))
        columns = [column_of(cluster, *named) for named in zip(_COLUMNS, (y, qid, sample_weight), strict=True)]
        return super().score(_Scored(np.asarray(scores)), *columns)

    def decision_function(self, X: Collection) -> Collection:
        """Lazy scores of the rows of X: (n,) float64, a dask array, series or list of delayed parts, as X is."""
        check_is_fitted(self)
        return mapped(X, LinearEstimator.decision_function.__get__(self._alone()))

    def _alone(self) -> Self:
        """The estimator without its client, for sending to workers."""
        estimator = copy(self)
        estimator.client = None
        return estimator

    def _training(self, *arguments: Any) -> Fit:
        for name in ("threshold", "calibrate"):
            if getattr(self, name, None) is not None:
                raise ValueError(f"{name} is not available on a cluster: it needs held-out rows on one machine")
        return ClusterFit.over(super()._training(*arguments))

    def _outcomes(self, fit: Fit, watch: Watch, data: TrainingSet) -> Iterator[Outcome]:
        assert isinstance(fit, ClusterFit)
        return fit.outcomes(watch, data)

    def _finish(self, model: Ranker, X: Matrix, outcome: Outcome) -> None:
        n = X.shape[0]
        some = slice(None) if n <= MOST_ROWS else np.linspace(0, n - 1, MOST_ROWS).astype(np.int64)
        super()._finish(model, X[some], outcome)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores (n,) of rows whose features are on the workers."""

    scores: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, int]:
        return self.scores.size, 0

    def checked_for(self, estimator: object, y: Column, *, reset: bool) -> tuple[Self, Column]:
        """The rows, with y (n,), checked."""
        return self, checked_column(y, self.scores.size)

    def scored_by(self, model: Model) -> NDArray[np.float64]:
        return self.scores


@dataclass(eq=False, repr=False, kw_only=True)
class DaskAPSVMClassifier(_OnCluster, APSVMClassifier):  # type: ignore[misc]  # no bags
    """``APSVMClassifier`` on a dask cluster: the same objective and certificate, up to rounding of sums.

    Parameters
    ----------
    client : Client, optional
        Of the cluster; None: the current one.
    loss, metric, C, bound, features …
        See ``APSVMClassifier``. Values "auto" are chosen on rows in one process. ``latent``, ``pool``, ``threshold``
        and ``calibrate`` are not supported.

    Attributes
    ----------
    coef_, intercept_, classes_, C_, certificate_, n_iter_ …
        See ``APSVMClassifier``.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_breast_cancer
    >>> from apsvm.dask import DaskAPSVMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(0)) / X.std(0)
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
    ...     model = DaskAPSVMClassifier(C=10).fit(da.from_array(X, (200, -1)), da.from_array(y, 200))
    >>> model.certificate_.reached
    True
    """

    client: Client | None = None

    def predict(self, X: Collection) -> Collection:
        """Lazy class of each row of X (n, d), in the form of ``decision_function``."""
        check_is_fitted(self)
        return mapped(X, APSVMClassifier.predict.__get__(self._alone()), dtype=self.classes_.dtype)


@dataclass(eq=False, repr=False, kw_only=True)
class DaskAPSVMRanker(_OnCluster, APSVMRanker):
    """``APSVMRanker`` on a dask cluster; see ``DaskAPSVMClassifier``.

    Parameters
    ----------
    client : Client, optional
        Of the cluster; None: the current one.
    loss, metric, relevant_from, C …
        See ``APSVMRanker``.

    Attributes
    ----------
    coef_, intercept_, C_, certificate_, n_iter_, n_queries_ …
        See ``APSVMRanker``.
    """

    client: Client | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class DaskRankNCG(_OnCluster, RankNCG):
    """``RankNCG`` on a dask cluster.

    Parameters
    ----------
    client : Client, optional
        Of the cluster; None: the current one.
    alpha, graph, objective …
        See ``RankNCG``.

    Attributes
    ----------
    coef_, objective_, classes_, n_iter_ …
        See ``RankNCG``.
    """

    client: Client | None = None
