"""The base of the estimators: one ``fit``, one ``score``, models to and from files.

    X, y, qid, sample_weight, bags  →  ``Fit`` of the plan that the parameters ask for  →  a model

The model is kept, and what an estimator says of its training is read from the model's header, after a fit as after
``from_model``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state, check_scalar
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_is_fitted,
    check_X_y,
    validate_data,
)

from apsvm._support.caller import warn_caller
from apsvm._support.container import ModelError
from apsvm._support.machine import can_train, installed
from apsvm._support.naming import named_as_parameters
from apsvm._support.types import Column, JsonDict, JsonObject, Matrix
from apsvm.data.bags import deciding_rows
from apsvm.data.dataset import Dataset, TableRows
from apsvm.data.features import parsed
from apsvm.data.features.base import FeatureMap
from apsvm.data.features.scaling import NO_SCALING, SCALINGS
from apsvm.data.labels import Target
from apsvm.data.pooling import pooled_rows
from apsvm.estimators.bags import Columns, bags_in, checked_pool, each_alone
from apsvm.estimators.following import FOR_STALLED, WeakRankerWarning, evidence_of, logger, training
from apsvm.estimators.frames import encoded, is_frame, is_sparse, learned
from apsvm.estimators.importances import importances
from apsvm.estimators.parameters import parameters_of, settings_of
from apsvm.estimators.rows import Counted, count_rows
from apsvm.metrics import parse_metric
from apsvm.metrics.evaluate import Evaluation, evaluate
from apsvm.models.base import Model, Ranker
from apsvm.models.columns import Columns as ColumnsOfTable
from apsvm.models.decision import line_of
from apsvm.models.header import Header
from apsvm.models.reading import load_any_model
from apsvm.selection.completion import outcomes
from apsvm.solvers.state import State
from apsvm.trainers.base import AnyTrainer, Outcome, TrainingSet
from apsvm.trainers.fitting import AUTO, FeatureOptions, Fit, asked_of, map_by_rule
from apsvm.trainers.settings import Settings, SettingsError

#: How X is checked, in fit and after.
FEATURES: JsonDict = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
#: How Python begins to say that a value of an array is no number.
_NO_NUMBER = ("could not convert string to float", "float() argument must be")


class Explanation(NamedTuple):
    """What features give to scores.

    Attributes
    ----------
    base : ndarray
        (n,) float64, the score of a row with the features' means in training, where the map knows them, else of a row
        of zeros; of several components by the one that is highest for the row.
    names : list[str]
        (p,) the features, and those that give something together with ``" & "`` between them.
    gave : ndarray
        (n, p) float64, what each gave to a row's score beyond the base; ``abs(gave).mean(axis=0)`` is what matters
        most for these rows.
    """

    base: NDArray[np.float64]
    names: list[str]
    gave: NDArray[np.float64]


class LinearEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """score(x) = coef·φ(x) + intercept, or the highest of several such."""

    #: Requested by default: there is one thing that each of these columns can mean.
    __metadata_request__fit: ClassVar[dict[str, bool | str]] = {"qid": True, "sample_weight": True, "bags": True}
    __metadata_request__score: ClassVar[dict[str, bool | str]] = __metadata_request__fit

    #: The family that trains, and parameters whose settings have other names.
    _trainer: ClassVar[type[AnyTrainer]]
    _renamed: ClassVar[Mapping[str, str]] = {}
    #: Whether the trainer draws: an exact one leaves ``random_state`` alone.
    _draws: ClassVar[bool] = False
    #: What helps where a training stopped early.
    _remedy: ClassVar[str] = "raise time_limit, or what else it stopped at"

    # Parameters that not every estimator has.
    pool: str | None = None
    scale: str = AUTO

    coef_: NDArray[np.float64]
    feature_importances_: NDArray[np.float64]
    intercept_: float | NDArray[np.float64]
    feature_map_: FeatureMap | None
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    n_iter_: int
    n_queries_: int
    n_queries_skipped_: int
    _model: Ranker
    #: What the columns of a data frame became, where they were more than numbers.
    _table: ColumnsOfTable | None = None

    def _store(self, parameters: JsonDict) -> None:
        """Sets the parameters: the local variables of ``__init__``."""
        for name, value in parameters.items():
            if name != "self":
                setattr(self, name, value)

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
            (n, d) numbers (CSR is used in place); words, dates and missing cells of a data frame become features as
            those of a table do on the command line.
        y : array
            (n,) see the class.
        qid : array, optional
            (n,) the query of each row, of any type that can be sorted, in any order: only rows of one query are
            compared; None: one query.
        sample_weight : array, optional
            (n,) with qid the weight of the row's query; without, how often the row counts. See the class.
        bags : array, optional
            (n,) the bag of each row, of any type that can be sorted, in any order, for ``pool`` and ``latent``; rows of
            a bag share y, qid and sample_weight.

        Raises
        ------
        ValueError
            Input that does not fit, parameters that do not go together, nothing to rank.
        NotFiniteError
            (a ValueError) feature values too large for the objective to be finite.
        """
        with named_as_parameters(self._names()):
            return self._fit(X, y, qid, sample_weight, bags)

    def score(
        self,
        X: Matrix,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        bags: ArrayLike | None = None,
    ) -> float:
        """The parameter ``metric`` of the scores, whatever loss was trained on; arguments as in ``fit``.

        Returns
        -------
        float
            Of several queries the mean over those that have something to rank, weighted by ``sample_weight``.

        Raises
        ------
        ValueError
            The metric is undefined for these rows; or the fit knew queries and ``qid`` is None.
        """
        check_is_fitted(self)
        header = self._model.header
        X, target = self._judged(X, y)
        columns = self._columns(X, y, qid, sample_weight, bags)
        if header.latent:
            scores, target, qid, sample_weight = columns.best(self._scores_of_pooled(X), target)
        else:
            X, target, qid, sample_weight = columns.pooled(header.features.pool, target)
            scores = self._scores_of_pooled(X)
        n_queries = self.n_queries_ + self.n_queries_skipped_
        if qid is None and n_queries > 1:
            raise ValueError(
                f"{type(self).__name__} was fitted with qid, {n_queries} queries, and is to be scored without: "
                "pass qid here too (all alike for one ranking of all rows). In searches and cross-validation "
                "sklearn.set_config(enable_metadata_routing=True) takes it to the score of each fold"
            )
        # Whole weights of rows are copies; a metric has no fractions of rows.
        by_pair = qid is None or self._trainer.capabilities.costs
        counted = self._counted(scores[:, None], qid, sample_weight, by_query=True, by_pair=by_pair)
        if counted.costs is not None:
            raise ValueError(
                "score counts whole rows: sample_weight of fractions is for fit alone (set_score_request(sample_weight="
                "False) keeps it from the score of a search)"
            )
        target, line = target.of(counted.members), line_of(header.threshold)
        result = evaluate(
            [self.metric], scores[counted.members], target.judgements, counted.groups,
            relevant_from=target.lowest_relevant, threshold=line,
        )  # fmt: skip
        return value_of(result, counted.query_weights)

    def decision_function(self, X: Matrix) -> NDArray[np.float64]:
        """The scores of the rows of X (n, n_features_in_), the higher the more relevant: (n,) float64."""
        check_is_fitted(self)
        return self._as_decided(self._scores(validated(self, X, reset=False)))

    def bag_scores(self, X: Matrix, bags: ArrayLike) -> NDArray[np.float64]:
        """The score of each bag, as ``decision_function`` has those of rows: (n_bags,) float64.

        Parameters
        ----------
        X : array, sparse matrix or data frame
            (n, n_features_in_).
        bags : array
            (n,) the bag of each row, in any order.

        Returns
        -------
        ndarray
            In the order in which the bags first appear; without ``pool`` a bag's score is that of its best row.

        Raises
        ------
        ValueError
            X or bags do not fit.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        by_bag, features = bags_in(bags, X.shape[0]), self._model.header.features
        if features.pool is not None:
            return self._as_decided(self._scores_of_pooled(pooled_rows(X, by_bag, features.pool)))
        scores = self._scores_of_pooled(X)
        if self._model.header.latent:
            return self._as_decided(by_bag.best(scores))
        return by_bag.best(self._as_decided(scores))

    def deciding_rows(self, X: Matrix, bags: ArrayLike) -> NDArray[np.int64]:
        """The row of X that each bag stands at, the one of the highest score of relevance, of equal ones the first:
        (n_bags,) int64, in the order in which the bags first appear. Parameters and errors: see ``bag_scores``."""
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        if self._model.header.features.pool is not None:
            raise ValueError(f"{type(self).__name__} pools the rows of a bag: none of them decides alone")
        return deciding_rows(bags_in(bags, X.shape[0]), self._scores_of_pooled(X))

    def explain(self, X: Matrix) -> Explanation:
        """What each feature, or several together, give to the scores of the rows of X (n, n_features_in_).

        Returns
        -------
        Explanation
            ``base + gave.sum(axis=1)`` are the scores: of several components, of the highest one.

        Raises
        ------
        ValueError
            The feature map makes columns of all features at once (nystroem).
        """
        check_is_fitted(self)
        model = self._model
        X = validated(self, X, reset=False)
        leading = model.leading(X)
        each = [model.contributions(X, component) for component in range(model.components)]
        gave = np.empty(each[0].shape)
        for component, contributions in enumerate(each):
            rows = np.flatnonzero(leading == component)
            gave[rows] = contributions[rows]
        return Explanation(np.array([one.base for one in each])[leading], each[0].names(model.features()), gave)

    def to_model(self) -> Ranker:
        """The model, to be saved (``.save(path)``) and used by ``apsvm predict`` and ``apsvm eval``."""
        check_is_fitted(self)
        return self._model

    @classmethod
    def from_model(cls, model: Ranker | str | os.PathLike[str]) -> Self:
        """An estimator that scores as ``model`` (``apsvm.load_model``, or its file) does, with its parameters as far as
        its header tells them.

        Raises
        ------
        ValueError
            This class does not train such models.
        """
        return cls._of_model(loaded(model), {})

    # What a class of estimators says.

    def _read(self, X: Matrix, y: Column, plan: AnyTrainer) -> tuple[Matrix, Target]:
        """X as an array and what y means, of a fit, checked."""
        raise NotImplementedError

    def _judged(self, X: Matrix, y: Column) -> tuple[Matrix, Target]:
        """X as an array and what y means to the metric, checked."""
        raise NotImplementedError

    def _check(self, fit: Fit) -> None:
        """Raises ValueError for rows that cannot be trained on; tells the log of the labels."""

    def _loss(self) -> str | object:
        """The loss that the trainer trains on."""
        return self._trainer.losses[0]

    def _values(self) -> JsonDict:
        """The parameters, by name, as settings take them."""
        values: JsonDict = self.get_params(deep=False)
        return values

    def _weighted(self, plan: AnyTrainer, target: Target, sample_weight: Column) -> Column:
        """The weights of rows, with those of their classes."""
        return sample_weight

    def _trained_constant(self, plan: AnyTrainer) -> float | Literal["auto"] | None:
        """The value of a constant feature to be trained with the others, AUTO (``trainers.fitting``) or None."""
        return None

    def _shift(self, fit: Fit, data: TrainingSet, outcome: Outcome) -> float:
        """A constant that is added to the model's."""
        return 0.0

    def _described(self, header: Header) -> Header:
        """The header with what the estimator itself has to say in it."""
        return header

    def _decided(self, fit: Fit, outcome: Outcome, model: Ranker) -> Ranker:
        """The model with the threshold and the probabilities that the parameters ask for, if they do; ``fit``: its
        training, the features still to be learned."""
        return model

    def _recall(self, header: Header) -> None:
        """Sets the attributes that a header tells."""

    def _as_decided(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The model's scores as ``decision_function`` gives them."""
        return scores

    def _set_weights(self, coef: NDArray[np.float64], intercept: float) -> None:
        """Sets ``coef_`` and ``intercept_`` by the model's; what the header tells is set already."""
        self.coef_, self.intercept_ = coef, intercept

    # What they share.

    def _names(self) -> dict[str, str]:
        """Setting → parameter, where their names differ."""
        return {setting: parameter for parameter, setting in self._renamed.items()}

    def _settings(self) -> Settings:
        """What the parameters ask for, checked. Raises ValueError, TypeError."""
        for name in ("fit_intercept", "warm_start"):
            if not isinstance(getattr(self, name, False), bool | np.bool_):
                raise TypeError(f"{name} must be True or False, found {getattr(self, name)!r}")
        parse_metric(check_scalar(self.metric, "metric", str))
        seed, threads = self._seed(), self._threads()
        return settings_of(self._values(), self._trainer.Settings, self._renamed, seed=seed, threads=threads)

    def _threads(self) -> int:
        """By the parameter ``n_jobs``, checked."""
        if not isinstance(self.n_jobs, Integral | None):
            raise TypeError(f"n_jobs is an integer or None, found {self.n_jobs!r}")
        return int(effective_n_jobs(self.n_jobs))

    def _seed(self) -> int:
        """An integer is the seed itself, as ``--seed`` is."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        state = check_random_state(self.random_state)
        return int(state.randint(2**31 - 1)) if self._draws else 0

    def _plan(self) -> AnyTrainer:
        """The trainer, its loss and settings checked. Raises ValueError, TypeError."""
        return self._trainer(self._loss(), self._settings())

    def _fit(self, X: Matrix, y: Column, qid: Column, sample_weight: Column, bags: Column) -> Self:
        plan = self._plan()
        X, target = self._read(X, y, plan)
        require_memory(X)
        sample_weight = self._weighted(plan, target, sample_weight)
        columns, ids = self._columns(X, y, qid, sample_weight, bags), None
        if plan.capabilities.bags:
            ids = columns.kept(plan.loss_name, self._pool()).bag_of_row
        else:
            X, target, qid, sample_weight = columns.pooled(self._pool(), target)
        by_query = plan.capabilities.queries
        by_pair = by_query and plan.capabilities.costs
        counted = self._counted(X, qid, sample_weight, by_query=by_query, by_pair=by_pair)
        raw = self._training(X, target, counted, plan, ids)
        with training(self.verbose) as watch:
            self._check(raw)
            fit = raw.prepared()
            data, start = fit.training_set(), self._start(plan, fit)
            for remark in plan.check(data):
                logger.warning("%s: %s", type(self).__name__, remark)
            *_, outcome = outcomes(fit, watch, start, data)
            (model,) = fit.model(outcome).rankers()
            model = model.at_level(model.level + self._shift(fit, data, outcome))
            model = model.with_header(self._header_of(model.header, counted.groups))
            model = self._decided(raw, outcome, model)
        self._keep(model)
        self._set_importances(model, X)
        self._warn(outcome)
        return self

    def _training(
        self, X: Matrix, target: Target, counted: Counted, plan: AnyTrainer, bags: NDArray[np.int64] | None
    ) -> Fit:
        every_row_once = np.array_equal(counted.members, np.arange(X.shape[0]))
        groups = of_members = counted.groups
        if of_members is not None and not every_row_once:  # of all rows, of which the members are selected
            groups = np.zeros(X.shape[0], dtype=np.int64)
            groups[counted.members] = of_members
        relevance = target.relevant.astype(np.float64) if target.grades is None else target.grades
        options = FeatureOptions(
            features=self._map_name(),
            scale=self._scaling_name(plan),
            bias=self._trained_constant(plan),
            pool=self._pool(),
        )
        dataset = self._dataset(X, relevance, groups, costs=counted.costs, bags=bags)
        return Fit(
            dataset,
            plan,
            target,
            map_by_rule(dataset, asked_of(plan, options)),
            selection=None if every_row_once else counted.members,
            query_weights=counted.query_weights,
        )

    def _dataset(
        self,
        X: Matrix,
        relevance: NDArray[np.float64],
        groups: NDArray[np.int64] | None,
        *,
        costs: NDArray[np.float64] | None = None,
        bags: NDArray[np.int64] | None = None,
        source: str = "",
    ) -> Dataset:
        return Dataset(
            X=X, relevance=relevance, groups=groups, costs=costs, zero_based=False, source=source, fingerprint="",
            unknown_features=0, bags=bags, table=None if self._table is None else TableRows(self._table),
        )  # fmt: skip

    def _start(self, plan: AnyTrainer, fit: Fit) -> NDArray[np.float64] | None:
        """Where to begin: at the weights of the fit before, where the user wants them and there was one. Raises
        ValueError where they are of other columns."""
        if not self.warm_start:
            return None
        refusal = plan.capabilities.refusal("warm_start")
        if refusal is not None:
            raise SettingsError(refusal)
        if not hasattr(self, "_model"):
            return None
        before, width = self._model, fit.dataset.X.shape[1]
        if before.width != width:
            raise ValueError(f"warm_start: the weights are of {before.width} features, X has {width}")
        try:
            return fit.start(before)
        except ModelError as error:
            raise ValueError(f"warm_start: of the fit before, {error}") from None

    def _header_of(self, header: Header, groups: NDArray[np.int64] | None) -> Header:
        """The header of a trained model, completed."""
        features, data, names = header.features, header.data, getattr(self, "feature_names_in_", None)
        if self._table is None and names is not None:  # the table's own are there
            features = replace(features, names=tuple(names.tolist()))
        if data.queries is None and groups is not None:
            data = replace(data, queries=int(np.unique(groups).size))
        versions = {**header.versions, "scikit-learn": installed("scikit-learn")}
        estimator = type(self).__name__
        return self._described(replace(header, features=features, data=data, versions=versions, estimator=estimator))

    def _pool(self) -> tuple[str, ...] | None:
        return checked_pool(self.pool)

    def _columns(self, X: Matrix, y: Column, qid: Column, sample_weight: Column, bags: Column) -> Columns:
        if bags is not None and "pool" not in self.get_params(deep=False):
            raise ValueError(f"{type(self).__name__} takes no bags: APSVMClassifier and APSVMRanker do")
        return Columns(type(self).__name__, X, y, qid, sample_weight, bags)

    def _scaling_name(self, plan: AnyTrainer) -> str:
        """The parameter ``scale``, checked."""
        if self.scale not in (AUTO, *SCALINGS):
            raise ValueError(f"scale is one of {', '.join((AUTO, *SCALINGS))}, found {self.scale!r}")
        refusal = None if self.scale in (AUTO, NO_SCALING.name) else plan.capabilities.refusal("scale")
        if refusal is not None:
            raise SettingsError(refusal)
        return self.scale

    def _map_name(self) -> str:
        """The parameter ``features``, checked."""
        if not isinstance(self.features, str):
            raise TypeError(f"features is the name of a feature map, found {self.features!r}")
        return AUTO if self.features == AUTO else str(parsed(self.features))

    def _set_importances(self, model: Ranker, X: Matrix) -> None:
        """Sets ``feature_importances_`` by the training rows; a map that mixes all features has none."""
        if hasattr(self, "feature_importances_"):
            del self.feature_importances_
        found = importances(model, X, self._table)
        if found is not None:
            self.feature_importances_ = found

    def _keep(self, model: Ranker) -> None:
        """The fitted attributes, of a fit or of a model."""
        self._model, header = model, model.header
        self.feature_map_ = model.feature_map
        epochs = 0 if header.epochs is None else header.epochs.count
        self.n_iter_ = epochs if header.iterations is None else header.iterations
        self.n_queries_ = 1 if header.data.queries is None else header.data.queries
        self.n_queries_skipped_ = header.data.queries_skipped or 0
        self._recall(header)
        parts = model.linear_parts()
        if len(parts) == 1:
            self._set_weights(parts[0].coef.copy(), parts[0].intercept)
        else:
            self.coef_ = np.stack([part.coef for part in parts])
            self.intercept_ = np.array([part.intercept for part in parts])

    @classmethod
    def _of_model(cls, model: Ranker, parameters: JsonObject) -> Self:
        """``from_model``, with ``parameters`` in the place of those of the header."""
        features = model.header.features
        refusal = cls._refusal(model.header)
        if refusal is not None:
            raise ValueError(refusal)
        own = cls._get_param_names()
        recorded = {name: value for name, value in cls._parameters(model).items() if name in own}
        estimator = cls(**{**recorded, **parameters})
        estimator.n_features_in_ = model.width // features.columns_of_feature
        names = features.names
        if features.columns is not None:
            estimator._table, names = features.columns, tuple(column.name for column in features.columns.features)
            estimator.n_features_in_ = len(names)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator._keep(model)
        return estimator

    @classmethod
    def _refusal(cls, header: Header) -> str | None:
        """Why the class does not train models with this header; None if it does."""
        if header.members:
            return (
                f"{cls.__name__} does not train averages, here of {len(header.members)} rankers: APSVMClassifierCV and "
                "APSVMRankerCV do"
            )
        if cls._trainer.serves(header.loss) if not header.family else header.family == cls._trainer.family:
            return None
        losses = ", ".join(cls._trainer.losses)
        return f"{cls.__name__} does not train on loss {header.loss!r}; its losses are: {losses}"

    @classmethod
    def _parameters(cls, model: Ranker) -> JsonDict:
        """The parameters that a model tells, and others perhaps."""
        header = model.header
        parameters = parameters_of(header.settings, cls._trainer.Settings, cls._renamed)
        if header.seed or (header.seed is not None and cls._draws):
            parameters["random_state"] = header.seed
        parameters["features"] = header.features.map
        parameters["scale"] = header.features.scale
        if header.features.pool is not None:
            parameters["pool"] = ",".join(header.features.pool)
        if header.labels.kind == "threshold":
            parameters["relevant_from"] = header.labels.relevant_from
        return parameters

    def _counted(self, X: Matrix, qid: Column, sample_weight: Column, *, by_query: bool, by_pair: bool) -> Counted:
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            if not sample_weight.any():
                raise ValueError("all sample weights are zero")
        return count_rows(X.shape[0], qid, sample_weight, by_query=by_query, by_pair=by_pair)

    def _scores(self, X: Matrix) -> NDArray[np.float64]:
        """Of rows as ``fit`` takes them, each as a bag of its own where bags are pooled."""
        pool = self._model.header.features.pool
        return self._scores_of_pooled(X if pool is None else each_alone(X, pool))

    def _scores_of_pooled(self, X: Matrix) -> NDArray[np.float64]:
        return self._model.score(X, threads=self._threads())

    def _warn(self, outcome: Outcome) -> None:
        """Warnings: the training stopped early, or the ranker is not good for something."""
        if not outcome.as_asked:
            remedy = FOR_STALLED if outcome.state == State.STALLED else self._remedy
            message = f"{type(self).__name__} stopped early: {outcome.state}{evidence_of(outcome)}; {remedy}"
            warn_caller(message, ConvergenceWarning)
        for caution in outcome.cautions:
            warn_caller(f"{type(self).__name__}: {caution}", WeakRankerWarning)


class OfQueries(LinearEstimator):
    """An estimator whose trainer takes queries, and neither weights nor bags."""

    __metadata_request__fit: ClassVar[dict[str, bool | str]] = {"sample_weight": UNUSED, "bags": UNUSED}
    __metadata_request__score: ClassVar[dict[str, bool | str]] = __metadata_request__fit

    def fit(self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None) -> Self:  # type: ignore[override]
        """Train, see ``APSVMRanker.fit``."""
        return super().fit(X, y, qid)

    def score(self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None) -> float:  # type: ignore[override]
        """The parameter ``metric`` of the scores, see ``APSVMRanker.score``."""
        return super().score(X, y, qid)


def loaded(model: object) -> Ranker:
    """``model``, or that of the file of this name. Raises OSError, ModelError, ValueError for anything else."""
    if isinstance(model, (str, os.PathLike)):
        model = load_any_model(model)
    if not isinstance(model, Ranker):
        found = model.what if isinstance(model, Model) else type(model).__name__
        raise ValueError(f"expected a model of one ranking, or the name of its file, found {found}")
    return model


def require_memory(X: Matrix) -> None:
    """Raises ValueError for more columns than this machine can hold weights of."""
    if not can_train(X.shape[1]):
        raise ValueError(
            f"X has {X.shape[1]:,} columns, and a model a weight for each: more than this machine's memory can train; "
            "leave out those without a value, X[:, numpy.unique(X.indices)]"
        )


def value_of(result: Evaluation, query_weights: Mapping[int, float] | None) -> float:
    """The metric of an evaluation: of queries the mean, by their weights. Raises ValueError where all are zero."""
    (name,) = result.values
    if result.groups is None or query_weights is None:
        return result.values[name]
    each = result.in_group[name]
    weights = np.array([query_weights[group] for group in result.groups.tolist()])
    ranked = ~np.isnan(each)
    if not weights[ranked].any():
        raise ValueError("the queries that have something to rank have weights of zero")
    return float(np.average(each[ranked], weights=weights[ranked]))


def validated(estimator: LinearEstimator, X: Matrix, *y: Column, reset: bool = True, **options: object) -> Any:
    """``validate_data`` of features; a data frame is a table, whatever its cells."""
    if str(getattr(X, "dtype", "")).startswith(("datetime", "timedelta")):
        raise ValueError("X has dates, and of an array they would be nanoseconds: a data frame's become features")
    if reset:
        estimator._table = None
        encodes = is_frame(X) and not is_sparse(X)
    else:
        encodes = estimator._table is not None and (is_frame(X) or not estimator._table.is_of_numbers)
    if not encodes:
        try:
            return validate_data(estimator, X, *y, reset=reset, **options, **FEATURES)
        except (TypeError, ValueError) as error:
            if not str(error).startswith(_NO_NUMBER):
                raise
            what = "an array has numbers alone, words and dates become features in a data frame"
            if any(np.asarray(values).dtype.kind in "OSU" for values in y):
                what = "y has to be numbers; of grades in words 0 for the lowest, as by y.map({'bad': 0, 'good': 1})"
            message = f"{error}: {what}"
            raise type(error)(message) from None
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    if reset:
        X, estimator._table = learned(X)
    else:
        assert estimator._table is not None
        X = encoded(X, estimator._table)
    named = {"estimator": estimator, **options, **FEATURES}
    return check_X_y(X, *y, **named) if y else check_array(X, **named)
