"""The estimators on a dask cluster: parameters, attributes and objective are those of the plain ones, rows stay on the
workers. X is a dask array, a dask data frame or a list of delayed parts; y and qid are cut alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apsvm._support.naming import named_as_parameters
from apsvm._support.types import Collection, Part, Seed
from apsvm.dask.actors import ActorCrew
from apsvm.dask.collections import (
    classes_of_part,
    client_of,
    coded,
    columns_of_parts,
    computed,
    distinct,
    mapped,
    require_names,
    scores_of_part,
)
from apsvm.dask.data import ShardedData
from apsvm.dask.evaluation import evaluate_on_shards, order_statistic, scored
from apsvm.dask.fitting import ShardedFit
from apsvm.dask.recovery import repeated
from apsvm.dask.sources import ArrayPart
from apsvm.dask.training import HINGE_ONLY
from apsvm.data.labels import Target, of_numbers, of_two
from apsvm.estimators.base import LinearEstimator, value_of
from apsvm.estimators.following import logger, training
from apsvm.estimators.rank_ncg import RankNCG
from apsvm.estimators.structured import APSVMClassifier, APSVMRanker
from apsvm.metrics.evaluate import parse_metrics
from apsvm.models.linear import LinearRanker
from apsvm.trainers.base import AnyTrainer
from apsvm.trainers.fitting import AUTO, FeatureOptions

if TYPE_CHECKING:
    from distributed import Client


class _OnCluster(LinearEstimator):
    """What the estimators on a cluster share. Parameters of the plain ones that mean nothing here are fixed."""

    client: Client | None
    # What the plain estimators read of themselves, and which is fixed here.
    oracle = "auto"
    keep_easy = 50.0
    components = 1
    pool = None
    latent = False
    start = "anneal"
    n_jobs: int | None = None
    warm_start = False
    random_state: Seed = None

    def fit(  # type: ignore[override]  # no bags
        self, X: Collection, y: Collection, qid: Collection = None, sample_weight: Collection = None
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : (n, d) dask array, dask data frame, or list of delayed parts: arrays, CSR matrices or data frames
        y : (n,) cut as X is; see the class
        qid : (n,) whole numbers, the query of each row, whose rows all lie in the parts of one worker; None: one list
        sample_weight : (n,) as of the plain estimators: with qid the weight of the row's query, else how often the row
            counts; fractions go with loss "zero-one"

        Raises
        ------
        ValueError : input that does not fit, parameters that do not go together, nothing to rank, no client
        TypeError : X, y or qid of another kind
        NotFiniteError : (a ValueError) feature values too large for the objective to be finite
        """
        plan = self._plan()
        client = client_of(self.client)
        by_query = plan.capabilities.queries
        if sample_weight is not None and by_query and not plan.capabilities.query_weights:
            raise ValueError(f"{type(self).__name__} takes no sample_weight")
        rows, parts_of_y, columns = columns_of_parts(X, y, qid=qid, sample_weight=sample_weight)
        labels, classes_found = self._labels(client, parts_of_y)
        copies = by_query and qid is None
        parts = computed(client, rows, labels, columns["qid"], columns["sample_weight"], copies=copies)
        self._take_names(ArrayPart(*parts[0]).names)
        crew = ActorCrew(client, parts)
        try:
            with training(self.verbose) as watch, named_as_parameters(self._names()):
                data = ShardedData.of(crew, "X")
                self.n_features_in_ = data.width
                weights = None if sample_weight is None else data.weigh(by_query=by_query)
                target = self._meaning(data, plan) if classes_found is None else _of_labels(classes_found, data)
                fit = ShardedFit.of(
                    data,
                    plan,
                    target,
                    FeatureOptions(
                        features=self._map_name(),
                        scale=self._scaling_name(plan),
                        bias=self._trained_constant(plan),
                    ),
                    query_weights=weights,
                )
                self._require_some_of_both(data, target)
                *_, outcome = fit.outcomes(watch)
                if HINGE_ONLY in outcome.notes:
                    logger.warning(
                        "%s: bound='auto' is the hinge on a cluster, which trains no tight bound", type(self).__name__
                    )
                model = fit.model(outcome)
                if fit.fit.bias is None:
                    model = model.at_level(model.level + self._level(data, model))
        finally:
            crew.close()
        self._keep(replace(model, header=self._header_of(model.header, None)))
        self._warn(outcome)
        return self

    def decision_function(self, X: Collection) -> Collection:
        """The scores of the rows of X: (n,) float64, lazily; a dask array of a dask array, a series of a data frame, a
        list of a list of delayed parts."""
        check_is_fitted(self)
        self._check_names(X)
        return mapped(X, scores_of_part, self.to_model(), self._of_decision())

    def predict(self, X: Collection) -> Collection:
        """The scores of the rows, as ``decision_function``."""
        return self.decision_function(X)

    def score(  # type: ignore[override]  # no bags
        self, X: Collection, y: Collection, qid: Collection = None, sample_weight: Collection = None
    ) -> float:
        """The parameter ``metric``, exact, of the rows where they are; arguments as in ``fit``.

        Raises
        ------
        ValueError : the metric is undefined for these rows, or not evaluated on a cluster
        """
        check_is_fitted(self)
        client = client_of(self.client)
        rows, parts_of_y, columns = columns_of_parts(X, y, qid=qid, sample_weight=sample_weight)
        labels, classes_found = self._labels_again(parts_of_y)
        self._check_names(X)
        crew = ActorCrew(
            client,
            computed(
                client,
                rows,
                labels,
                columns["qid"],
                columns["sample_weight"],
                copies=qid is None,
                expected=self._model.header.features.names,
            ),
        )
        try:
            data = ShardedData.of(crew, "X", width=self.n_features_in_)
            target = self._grades(data.labels) if classes_found is None else _of_labels(classes_found, data)
            data.tell(target)
            crew.set_up("scale_rows")
            metrics = parse_metrics([self.metric])
            weights = None if sample_weight is None else data.weigh(by_query=True)
            return value_of(evaluate_on_shards(data, self.to_model(), target, metrics), weights)
        finally:
            crew.close()

    def _take_names(self, names: Sequence[str] | None) -> None:
        """Names of columns, where there are some."""
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _check_names(self, X: Collection) -> None:
        """``require_names`` where a collection says what its columns are called; else each part is looked at."""
        if hasattr(X, "_meta"):
            require_names(self, X._meta)

    # What a kind of estimator says.

    def _labels(self, client: Client, parts: list[Part]) -> tuple[list[Part], Target | None]:
        """The parts of y as numbers, and what they mean where that is known already: a row each of 0 and 1."""
        return parts, None

    def _labels_again(self, parts: list[Part]) -> tuple[list[Part], Target | None]:
        return parts, None

    def _meaning(self, data: ShardedData, plan: AnyTrainer) -> Target:
        """What the labels there are mean."""
        lowest = getattr(self, "relevant_from", None)
        return of_numbers(data.labels, plan.capabilities.labels, relevant_from=lowest)

    def _require_some_of_both(self, data: ShardedData, target: Target) -> None:
        if target.grades is None and not (data.n_pos and data.n_neg):
            raise ValueError(
                f"expected relevant rows and others, found {data.n_pos} of {data.rows} relevant. relevant_from says "
                "where the line is"
            )

    def _level(self, data: ShardedData, model: LinearRanker) -> float:
        """The constant where the loss does not depend on it."""
        return 0.0

    def _of_decision(self) -> float:
        """The sign of ``decision_function`` against the model's scores."""
        return 1.0


def _of_labels(classes: Target, data: ShardedData) -> Target:
    """Of two classes, coded as 0 and 1, those that the rows have."""
    return classes.of(data.labels.astype(np.intp))


class DaskAPSVMClassifier(_OnCluster, APSVMClassifier):  # type: ignore[misc]  # no weights, no bags
    """``APSVMClassifier`` on a dask cluster, by the hinge: the same objective and certificate, to the rounding of sums.

    Parameters
    ----------
    client : Client, optional
        Of the cluster; None: the current one.
    loss, metric, pos_label, C, epsilon, fit_intercept, intercept_scaling, scale, features, solver, qp, max_iter,
    time_limit, verbose
        See ``APSVMClassifier``. Of one list of all rows the loss is one of two arrays ("ap", "ndcg", "mrr",
        "auc", "rbp(0.8)" …) or "zero-one"; of queries any.
    bound
        "hinge", or "auto", which is the hinge here and logged as a warning; losses of the top ("mrr", "rbp(0.8)")
        want "hinge" by name.

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

    def __init__(
        self,
        loss: str | object = "ap",
        *,
        client: Client | None = None,
        metric: str = "AP",
        pos_label: object = None,
        C: float | str = "auto",
        epsilon: float = 1e-3,
        fit_intercept: bool = True,
        intercept_scaling: float | str = AUTO,
        scale: str = AUTO,
        features: str = "auto",
        solver: str = "line-search",
        qp: str = "auto",
        bound: str = "auto",
        max_iter: int = 10_000,
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.client = client
        self.metric = metric
        self.pos_label = pos_label
        self.C = C
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scale = scale
        self.features = features
        self.solver = solver
        self.qp = qp
        self.bound = bound
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose

    def predict(self, X: Collection) -> Collection:
        """The class of each row of X (n, d), lazily, as ``decision_function``."""
        check_is_fitted(self)
        self._check_names(X)
        classes = self.classes_
        return mapped(X, classes_of_part, self.to_model(), self._sign, classes, dtype=classes.dtype)

    def _labels(self, client: Client, parts: list[Part]) -> tuple[list[Part], Target | None]:
        classes = distinct(client, parts)
        if classes.size != 2:
            what = "one class only" if classes.size == 1 else f"{classes.size} values"
            raise ValueError(f"expected y of two classes, found {what}; y == label makes two of them")
        self.classes_, self.pos_label_ = classes, self._positive_of(classes.tolist())
        return self._labels_again(parts)

    def _labels_again(self, parts: list[Part]) -> tuple[list[Part], Target | None]:
        negative, positive = self._negative_first.tolist()
        return coded(parts, positive, negative), of_two(self._negative_first, self._negative_first)

    def _level(self, data: ShardedData, model: LinearRanker) -> float:
        if not self.fit_intercept:
            return 0.0

        def around_the_break() -> tuple[float, float]:
            scores = scored(data, model)
            return order_statistic(data, scores, data.n_neg - 1), order_statistic(data, scores, data.n_neg)

        lower, upper = repeated(data.vectors, around_the_break)
        return -(lower + (upper - lower) / 2.0)

    def _of_decision(self) -> float:
        return self._sign


class DaskAPSVMRanker(_OnCluster, APSVMRanker):  # type: ignore[misc]
    """``APSVMRanker`` on a dask cluster, by the hinge. Grades need queries.

    Parameters
    ----------
    client : Client, optional
        Of the cluster; None: the current one.
    loss, metric, relevant_from, C, epsilon, fit_intercept, intercept_scaling, scale, features, solver, qp, max_iter,
    time_limit, verbose
        See ``APSVMRanker``.
    bound
        See ``DaskAPSVMClassifier``.

    Attributes
    ----------
    coef_, intercept_, C_, certificate_, n_iter_, n_queries_ …
        See ``APSVMRanker``.
    """

    def __init__(
        self,
        loss: str | object = "ndcg",
        *,
        client: Client | None = None,
        metric: str = "nDCG(exp)",
        relevant_from: float | None = None,
        C: float | str = "auto",
        epsilon: float = 1e-3,
        fit_intercept: bool = True,
        intercept_scaling: float | str = AUTO,
        scale: str = AUTO,
        features: str = "auto",
        solver: str = "line-search",
        qp: str = "auto",
        bound: str = "auto",
        max_iter: int = 10_000,
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.client = client
        self.metric = metric
        self.relevant_from = relevant_from
        self.C = C
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scale = scale
        self.features = features
        self.solver = solver
        self.qp = qp
        self.bound = bound
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose


class DaskRankNCG(_OnCluster, RankNCG):
    """``RankNCG`` on a dask cluster: rows ordered by their classes, of one list or of queries.

    Parameters
    ----------
    client : Client, optional
        Of the cluster; None: the current one.
    metric, alpha, graph, objective, optimizer, normalize, scale, features, tol, max_iter, time_limit, verbose : float
        See ``RankNCG``. Sums are exact to rounding: of one list by Chebyshev polynomials, whose moments add up
        over the shards.

    Attributes
    ----------
    coef_, objective_, gradient_norm_, n_pairs_, classes_, n_iter_ …
        See ``RankNCG``.
    """

    n_classes = None
    cut = "frequency"
    summation = "auto"
    accuracy = 1e-3

    def __init__(
        self,
        *,
        client: Client | None = None,
        metric: str = "WMW",
        alpha: float = 1e-3,
        graph: Any = "full",
        objective: str = "logistic",
        optimizer: str = "lbfgs",
        normalize: str = "pairs",
        scale: str = AUTO,
        features: str = "auto",
        tol: float | None = None,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.client = client
        self.metric = metric
        self.alpha = alpha
        self.graph = graph
        self.objective = objective
        self.optimizer = optimizer
        self.normalize = normalize
        self.scale = scale
        self.features = features
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose

    def _meaning(self, data: ShardedData, plan: AnyTrainer) -> Target:
        self.classes_ = data.labels
        return super()._meaning(data, plan)

    def _require_some_of_both(self, data: ShardedData, target: Target) -> None:
        """The trainer itself looks for pairs."""
