"""Base class of the estimators: fit, score, explanations, and models to and from files.

An estimator keeps its model. Its fitted attributes are read from the model's header, after ``fit`` and ``from_model``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from apsvm._support.caller import warn_caller
from apsvm._support.machine import can_train, installed
from apsvm._support.naming import named_as_parameters
from apsvm._support.types import Column, JsonDict, Matrix, Seed
from apsvm.data.bags import Bags, deciding_rows
from apsvm.data.dataset import Dataset, TableRows
from apsvm.data.features.additive import ALL
from apsvm.data.labels import Target
from apsvm.data.moments import column_moments
from apsvm.data.pooling import pooled_rows
from apsvm.data.takes import Takes
from apsvm.estimators.bags import bags_in, first_of_bags, pooled_alone
from apsvm.estimators.frames import validated
from apsvm.estimators.messages import WeakRankerWarning
from apsvm.estimators.parameters import check_types, parameters_of
from apsvm.estimators.rows import count_rows
from apsvm.metrics.evaluate import Evaluation, evaluate
from apsvm.models.averages import headers_of
from apsvm.models.base import Model, Ranker
from apsvm.models.columns import Columns
from apsvm.models.decision import line_of
from apsvm.models.header import Header
from apsvm.models.reading import load_any_model
from apsvm.solvers.state import State
from apsvm.trainers.base import AnyTrainer, Outcome
from apsvm.trainers.summary import ending, evidence

#: Advice on a column that is missing.
ROUTING = (
    "In searches and cross-validation sklearn.set_config(enable_metadata_routing=True) passes it to each fit and score"
)
#: Maximum number of rows, evenly spaced, from which importances are computed.
MOST_ROWS = 1_000


class Explanation(NamedTuple):
    """Contributions of columns to scores."""

    #: (n,) the score of a row of training means if the feature map knows them, else of a row of zeros; with several
    #: components, by the highest one for each row.
    base: NDArray[np.float64]
    names: list[str]  #: (p,) the columns of X; the last one stands for all features together if the map mixes many
    gave: NDArray[np.float64]  #: (n, p) the contribution of each column to each score, above the base


@dataclass(eq=False, repr=False, kw_only=True)
class CommonParameters:
    """Parameters of every estimator."""

    metric: str = "AP"
    n_jobs: int | None = None
    random_state: Seed = None
    verbose: int = 0


class Estimator(CommonParameters, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of all estimators: score(x) = coef·φ(x) + intercept, or the highest of several such scores."""

    #: Columns that metadata routing requests by default; each has one possible meaning.
    __metadata_request__fit: ClassVar[dict[str, bool | str]] = {"qid": True, "sample_weight": True, "bags": True}
    __metadata_request__score: ClassVar[dict[str, bool | str]] = __metadata_request__fit

    #: The trainer, and the setting of each parameter that has another name.
    _trainer: ClassVar[type[AnyTrainer]]
    _renamed: ClassVar[Mapping[str, str]] = {}
    #: True if the trainer draws random numbers; an exact one does not read ``random_state``.
    _draws: ClassVar[bool] = False
    #: Advice in the warning about a training that stopped early.
    _remedy: ClassVar[str] = "raise time_limit, or what else it stopped at"
    #: True if ``features="auto"`` compares columns and rules.
    _compares_maps: ClassVar[bool] = True

    coef_: NDArray[np.float64]
    feature_importances_: NDArray[np.float64]
    intercept_: float | NDArray[np.float64]
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _model: Ranker
    #: Columns learned from a data frame; None after a fit on an array.
    _table: Columns | None = None
    #: ``decision_function`` is the sign times the model's score above the threshold.
    _sign: float = 1.0
    _threshold: float = 0.0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def fit(
        self,
        X: Matrix,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        bags: ArrayLike | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array, sparse matrix or data frame
            (n, d) numbers; CSR is used in place. Words, dates and missing cells of a data frame become features as
            those of a table do on the command line.
        y : array
            (n,) labels or grades, see the class.
        qid : array, optional
            (n,) the query of each row, of any type that can be sorted, in any order. Only rows of one query are
            compared. None: all rows are one query.
        sample_weight : array, optional
            (n,) with qid the weight of the row's query, without it the number of times that the row counts. See the
            class.
        bags : array, optional
            (n,) the bag of each row, of any type that can be sorted, in any order; for ``pool`` and ``latent``. Rows of
            a bag share y, qid and sample_weight.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Input that does not fit, parameters that exclude each other, or nothing to rank.
        NotFiniteError
            Feature values so large that the objective is not finite; a ValueError too.
        """
        check_types(self)
        with named_as_parameters({setting: parameter for parameter, setting in self._renamed.items()}):
            return self._fit(X, y, qid, sample_weight, bags)

    def score(
        self,
        X: Matrix,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        bags: ArrayLike | None = None,
    ) -> float:
        """The metric named by the parameter ``metric``, by default AP for classifiers and nDCG for rankers of grades,
        whatever the training loss; arguments as in ``fit``.

        Returns
        -------
        float
            With several queries, the mean over those with something to rank, weighted by ``sample_weight``.

        Raises
        ------
        ValueError
            The metric is undefined for these rows, or ``qid`` is None after a fit with several queries.
        """
        check_is_fitted(self)
        header = self._model.header
        X, target = self._read_for_metric(X, y)
        of_bags = header.latent or header.features.pool is not None
        by_bag = self._by_bag(X, bags, needed=of_bags, y=y, qid=qid, sample_weight=sample_weight)
        if by_bag is not None:
            target, qid, sample_weight = target.of(by_bag.first), *first_of_bags(by_bag, qid, sample_weight)
        scores = self._scores_of(X, by_bag)
        n_queries = self.n_queries_ + self.n_queries_skipped_
        if qid is None and n_queries > 1:
            raise ValueError(
                f"{type(self).__name__} was fitted with {n_queries} queries and is scored without qid: pass qid here "
                f"too (equal values rank all rows together). {ROUTING}"
            )
        # Row weights are copies of rows, and a metric cannot count fractions of rows.
        by_pair = qid is None or self._trainer.capabilities.costs
        counted = count_rows(scores[:, None], qid, sample_weight, by_query=True, by_pair=by_pair)
        if counted.costs is not None:
            raise ValueError(
                "score counts whole rows: a fractional sample_weight is for fit only (in a search, "
                "set_score_request(sample_weight=False) keeps it from score)"
            )
        target, line = target.of(counted.members), line_of(header.threshold)
        result = evaluate(
            [self.metric], scores[counted.members], target.judgements, counted.groups,
            relevant_from=target.lowest_relevant, threshold=line,
        )  # fmt: skip
        return value_of(result, counted.query_weights)

    def decision_function(self, X: Matrix) -> NDArray[np.float64]:
        """Scores of the rows of X (n, n_features_in_): (n,) float64. A ranker's are higher for more relevant rows. A
        classifier's are minus the model's threshold, and higher for the second of ``classes_``."""
        return (self._scores(X) - self._threshold) * self._sign

    def bag_scores(self, X: Matrix, bags: ArrayLike) -> NDArray[np.float64]:
        """Score of each bag, as ``decision_function`` scores rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame
            (n, n_features_in_).
        bags : array
            (n,) the bag of each row, in any order, of any type that can be sorted.

        Returns
        -------
        ndarray
            (n_bags,) float64, in the order in which the bags first appear. Without ``pool`` a bag has the score of its
            deciding row.

        Raises
        ------
        ValueError
            X or bags do not fit the model.
        """
        X = self._rows_in(X)
        return (self._scores_of(X, bags_in(bags, X.shape[0])) - self._threshold) * self._sign

    def deciding_rows(self, X: Matrix, bags: ArrayLike) -> NDArray[np.int64]:
        """Index of the deciding row of each bag, its most relevant row by the model; the first of equal ones.

        Returns
        -------
        ndarray
            (n_bags,) int64, in the order in which the bags first appear. Parameters and errors: see ``bag_scores``.
        """
        X = self._rows_in(X)
        if self._model.header.features.pool is not None:
            raise ValueError(f"{type(self).__name__} pools the rows of each bag: no single row decides")
        return deciding_rows(bags_in(bags, X.shape[0]), self._scores_of(X))

    def explain(self, X: Matrix) -> Explanation:
        """Explain the scores of the rows of X (n, n_features_in_) by the contribution of each column. Columns that
        contribute together get equal shares.

        Returns
        -------
        Explanation
            ``base + gave.sum(axis=1)`` equals ``decision_function`` of the positive class; with several components, of
            the highest one for each row.

        Raises
        ------
        ValueError
            The feature map makes each column from all features (nystroem).
        """
        X, model = self._rows_in(X), self._model
        columns, widths = model.table_columns()
        leading, names = model.leading(X), [*columns, ALL]
        each = [contributions.dealt_to(widths) for contributions in model.contributions(X)]
        gave = np.empty((X.shape[0], len(names)))
        for component, contributions in enumerate(each):
            rows = np.flatnonzero(leading == component)
            gave[rows] = contributions[rows]
        kept = len(names) if gave[:, -1].any() else len(names) - 1
        base = np.array([contributions.base for contributions in each])[leading] - self._threshold
        return Explanation(base, names[:kept], gave[:, :kept])

    def to_model(self) -> Ranker:
        """The fitted model, which ``.save(path)`` writes for ``apsvm predict`` and ``apsvm eval``."""
        check_is_fitted(self)
        return self._model

    @classmethod
    def from_model(cls, model: Ranker | str | os.PathLike[str], loss: str | object = None) -> Self:
        """Make a fitted estimator from a model; its parameters are those that the model's header records.

        Parameters
        ----------
        model : Ranker, str or path-like
            A model, as ``apsvm.load_model`` returns it, or its file.
        loss : str or object, optional
            For a structured SVM: the training loss, if it is one of your own. Nothing that a file names is imported;
            without the loss the estimator scores, but cannot be trained again.

        Raises
        ------
        OSError, ModelError
            The file cannot be read, or is no model.
        ValueError
            A model that this class does not train.
        """
        found: object = load_any_model(model) if isinstance(model, str | os.PathLike) else model
        if not isinstance(found, Ranker):
            text = found.description if isinstance(found, Model) else type(found).__name__
            raise ValueError(f"expected a model of one ranking, or the name of its file, found {text}")
        header, features = found.header, found.header.features
        refusal = cls._refusal(header)
        if refusal is not None:
            raise ValueError(refusal)
        recorded = cls._parameters(header) | ({} if loss is None else {"loss": loss})
        estimator = cls(**{name: recorded[name] for name in cls._get_param_names() if name in recorded})
        names = features.names
        if features.columns is not None:
            estimator._table, names = features.columns, tuple(column.name for column in features.columns.features)
        estimator.n_features_in_ = found.width // features.columns_of_feature if names is None else len(names)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator._set_model(found)
        return estimator

    # Methods that a class of estimators overrides.

    def _fit(self, X: Matrix, y: Column, qid: Column, sample_weight: Column, bags: Column) -> Self:
        raise NotImplementedError

    def _read(self, X: Matrix, y: Column, takes: Takes) -> tuple[Matrix, Target]:
        """X as an array and the meaning of y in fit, checked."""
        raise NotImplementedError

    def _read_for_metric(self, X: Matrix, y: Column) -> tuple[Matrix, Target]:
        """X as an array and the meaning of y to the metric, checked."""
        raise NotImplementedError

    def _check(self, target: Target) -> None:
        """Raises ValueError for rows that cannot be trained on; logs what the labels mean."""

    def _restore(self, header: Header) -> None:
        """Sets the fitted attributes that a header records."""

    def _set_weights(self, coef: NDArray[np.float64], intercept: float) -> None:
        """Sets ``coef_`` and ``intercept_``; ``_restore`` has set the other attributes."""
        self.coef_, self.intercept_ = coef, intercept

    # Methods that all classes share.

    def _threads(self) -> int:
        """Number of threads by the parameter ``n_jobs``."""
        return 1 if self.n_jobs is None else int(effective_n_jobs(self.n_jobs))

    def _seed(self) -> int:
        """The seed by the parameter ``random_state``: an integer itself, otherwise a draw."""
        seed: object = self.random_state
        if isinstance(seed, Integral):
            return int(seed)
        state = check_random_state(seed)
        return int(state.randint(2**31 - 1)) if self._draws else 0

    def _by_bag(self, X: Matrix, bags: Column, *, needed: bool, **shared: Column) -> Bags | None:
        """Bags of the rows of X, which must share the columns ``shared``; None without. Raises ValueError if ``bags``
        are missing though ``needed``, or given though not."""
        if needed and bags is None:
            raise ValueError(f"this {type(self).__name__} ranks bags: pass bags, one a row. {ROUTING}")
        if bags is not None and not needed:
            raise ValueError(
                f"bags were passed to {type(self).__name__}: APSVMClassifier and APSVMRanker take them with "
                "latent=True, pool='mean' or pool='min,mean,max'"
            )
        return None if bags is None else bags_in(bags, X.shape[0], **shared)

    def _scores(self, X: Matrix) -> NDArray[np.float64]:
        """The model's scores of the rows of X."""
        return self._scores_of(self._rows_in(X))

    def _rows_in(self, X: Matrix) -> Matrix:
        """The rows of X, checked, for the fitted model."""
        check_is_fitted(self)
        return validated(self, X, reset=False)

    def _scores_of(self, X: Matrix, bags: Bags | None = None) -> NDArray[np.float64]:
        """The model's scores of checked rows, or of their bags. A model of pooled bags scores each row as a bag of its
        own."""
        pool = self._model.header.features.pool
        if pool is not None:
            X = pooled_alone(X, pool) if bags is None else pooled_rows(X, bags, pool)
        scores: NDArray[np.float64] = self._model.score(X, threads=self._threads())
        return scores if bags is None or pool is not None else bags.best(scores)

    def _dataset(
        self, X: Matrix, relevance: NDArray[np.float64], groups: NDArray[np.int64] | None, **columns: Any
    ) -> Dataset:
        """A data set of rows with these columns. Raises ValueError for more features than memory can train."""
        if not can_train(X.shape[1]):
            raise ValueError(
                f"X has {X.shape[1]:,} columns, too many for this machine's memory: leave out those without a value, "
                "X[:, numpy.unique(X.indices)]"
            )
        table = None if self._table is None else TableRows(self._table)
        return Dataset(X, relevance, groups=groups, zero_based=False, table=table, **columns)

    def _header_of(self, header: Header, groups: NDArray[np.int64] | None) -> Header:
        """The header of a trained model, with the columns' names, the queries and the estimator."""
        features, data, names = header.features, header.data, getattr(self, "feature_names_in_", None)
        if self._table is None and names is not None:  # a table has named them already
            features = replace(features, names=tuple(names.tolist()))
        if data.queries is None and groups is not None:
            data = replace(data, queries=int(np.unique(groups).size))
        versions = {**header.versions, "scikit-learn": installed("scikit-learn")}
        estimator = type(self).__name__
        return replace(header, features=features, data=data, versions=versions, estimator=estimator)

    def _finish(self, model: Ranker, X: Matrix, outcome: Outcome) -> None:
        """Sets the attributes of a fit on X. Warns if it stopped early or if the ranker is weak."""
        self._set_model(model)
        if hasattr(self, "feature_importances_"):
            del self.feature_importances_
        importance = importances(model, X)
        if importance is not None:
            self.feature_importances_ = importance
        if not outcome.as_asked:
            remedy = () if outcome.state == State.STALLED else (self._remedy,)
            message = "; ".join([ending(outcome), *evidence(outcome), *remedy])
            warn_caller(f"{type(self).__name__} stopped early: {message}", ConvergenceWarning)
        for caution in outcome.cautions:
            warn_caller(f"{type(self).__name__}: {caution}", WeakRankerWarning)

    def _set_model(self, model: Ranker) -> None:
        """Sets the fitted attributes from the model."""
        self._model, header = model, model.header
        self.feature_map_ = model.feature_map
        epochs = 0 if header.epochs is None else header.epochs.count
        self.n_iter_ = epochs if header.iterations is None else header.iterations
        self.n_queries_ = 1 if header.data.queries is None else header.data.queries
        self.n_queries_skipped_ = header.data.queries_skipped or 0
        each = headers_of(header) or [header]
        self.certificates_ = {one.features.map: one.certificate for one in each if one.certificate is not None}
        self._restore(header)
        parts = model.linear_parts()
        if len(parts) == 1:
            self._set_weights(parts[0].coef.copy(), parts[0].intercept)
        else:
            self.coef_ = np.stack([part.coef for part in parts])
            self.intercept_ = np.array([part.intercept - self._threshold for part in parts])

    @classmethod
    def _refusal(cls, header: Header) -> str | None:
        """Reason why the class does not train models with this header; None if it does."""
        if header.members and header.selection is not None:
            return (
                f"{cls.__name__} does not take averages by cross-validation, such as this one of "
                f"{len(header.members)} rankers: use APSVMClassifierCV or APSVMRankerCV"
            )
        if cls._trainer.serves(header.loss) if not header.family else header.family == cls._trainer.family:
            return None
        losses = ", ".join(cls._trainer.losses)
        return f"{cls.__name__} does not train on loss {header.loss!r}; its losses are: {losses}"

    @classmethod
    def _parameters(cls, header: Header) -> JsonDict:
        """Parameters that a model's header records, perhaps with others."""
        return parameters_of(header, cls._trainer.Settings, cls._renamed, draws=cls._draws)


def value_of(result: Evaluation, query_weights: Mapping[int, float] | None) -> float:
    """Value of the only metric of an evaluation; over queries the weighted mean. Raises ValueError if all weights are
    0."""
    (name,) = result.values
    if result.groups is None or query_weights is None:
        return result.values[name]
    each = result.in_group[name]
    weights = np.array([query_weights[group] for group in result.groups.tolist()])
    ranked = ~np.isnan(each)
    if not weights[ranked].any():
        raise ValueError("all queries with something to rank have weights of zero")
    return float(np.average(each[ranked], weights=weights[ranked]))


def importances(model: Ranker, X: Matrix) -> NDArray[np.float64] | None:
    """Importance of each column, (n_features_in_,) float64: the standard deviation of its contribution to the scores of
    rows X (n, width), divided by the sum over the columns. None if the map makes columns from all features, or if bags
    are pooled."""
    if model.header.features.pool is not None or not model.linear_parts():
        return None
    n, (_, widths) = X.shape[0], model.table_columns()
    rows = X if n <= MOST_ROWS else X[np.linspace(0, n - 1, MOST_ROWS).astype(np.int64)]
    if model.feature_map is None and not model.unit_rows and widths.size == model.width:  # sparse rows stay sparse
        deviations = np.sqrt(column_moments(rows).variance)
        each = [np.abs(part.coef) * deviations for part in model.linear_parts()]
    else:
        try:
            contributions = model.contributions(rows)
        except ValueError:
            return None
        each = [of_rows.dealt_to(widths).deviations()[:-1] for of_rows in contributions]
    result: NDArray[np.float64] = np.sum(each, axis=0)
    total = float(result.sum())
    return result / total if total > 0.0 else result
