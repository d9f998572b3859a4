"""What the estimators share: a training by a trainer's plan, scores out, models to and from files.

    X, y, qid, sample_weight  →  ``Fit`` of the plan that the parameters ask for  →  weights and a header

The header is the model's (``apsvm.models.header``) and is kept: what an estimator says of its training is read from it,
after a fit as after ``from_model``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
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
from apsvm._support.types import Column, JsonDict, JsonObject, Matrix
from apsvm.data.bags import Bags
from apsvm.data.component_rows import scores_of_weights
from apsvm.data.dataset import Dataset, TableRows
from apsvm.data.features import parsed
from apsvm.data.features.base import FeatureMap
from apsvm.data.features.scaling import NO_SCALING, SCALINGS
from apsvm.data.labels import Target
from apsvm.estimators.bags import Columns, checked_pool, each_alone, of_bags
from apsvm.estimators.following import FOR_STALLED, WeakRankerWarning, evidence_of, logger, training
from apsvm.estimators.frames import encoded, has_types_of_numbers, is_frame, learned, numbers_of, of_numbers
from apsvm.estimators.importances import importances
from apsvm.estimators.measure import trained_measure
from apsvm.estimators.parameters import in_python, in_words_of_python, parameters_of, settings_of
from apsvm.estimators.rows import Counted, count_rows
from apsvm.models.base import Model, Ranker, WeightedRanker
from apsvm.models.columns import Columns as ColumnsOfTable
from apsvm.models.components import ComponentRanker
from apsvm.models.header import Header
from apsvm.models.linear import LinearRanker
from apsvm.models.reading import load_any_model
from apsvm.selection.completion import outcomes
from apsvm.solvers.state import State
from apsvm.trainers.base import AnyTrainer, Outcome, TrainingSet
from apsvm.trainers.fitting import AUTO, FeatureOptions, Fit, asked_of
from apsvm.trainers.settings import Settings, SettingsError

#: How X is checked, in fit and after.
FEATURES: JsonDict = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
#: How Python begins to say that a value of an array is no number.
_NO_NUMBER = ("could not convert string to float", "float() argument must be")


def loaded(model: object) -> Ranker:
    """``model``, or that of the file of this name. Raises OSError, ModelError, ValueError for anything else."""
    if isinstance(model, (str, os.PathLike)):
        model = load_any_model(model)
    if not isinstance(model, Ranker):
        found = model.what if isinstance(model, Model) else type(model).__name__
        raise ValueError(f"expected a model of one ranking, or the name of its file, found {found}")
    return model


def validated(estimator: LinearEstimator, X: Matrix, *y: Column, reset: bool = True, **options: object) -> Any:
    """``validate_data`` of features; of a data frame with words, dates or missing cells, what becomes of these."""
    if str(getattr(X, "dtype", "")).startswith(("datetime", "timedelta")):
        raise ValueError("X has dates, and of an array they would be nanoseconds: a data frame's become features")
    if reset:
        estimator._table = None
        encodes = is_frame(X) and not of_numbers(X)
    elif estimator._table is None:
        encodes = is_frame(X) and not has_types_of_numbers(X)
    else:
        encodes = not estimator._table.is_of_numbers or (is_frame(X) and not of_numbers(X))
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
        X = numbers_of(X) if estimator._table is None else encoded(X, estimator._table)
    named = {"estimator": estimator, **options, **FEATURES}
    return check_X_y(X, *y, **named) if y else check_array(X, **named)


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

    #: Who trains, and parameters whose settings have other names.
    _trainer: ClassVar[type[AnyTrainer]]
    _renamed: ClassVar[Mapping[str, str]] = {}
    #: Whether the trainer draws: an exact one leaves ``random_state`` alone.
    _draws: ClassVar[bool] = False
    #: What helps where a training stopped early.
    _remedy: ClassVar[str] = "raise time_limit, or what else it stopped at"
    #: Parameters where the estimator has them.
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
    _header: Header
    #: What the columns of a data frame became, where they were more than numbers.
    _table: ColumnsOfTable | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def decision_function(self, X: Matrix) -> NDArray[np.float64]:
        """The scores of the rows of X (n, n_features_in_), the higher the more relevant: (n,) float64."""
        check_is_fitted(self)
        return self._as_decided(self._scores(validated(self, X, reset=False)))

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
        model = self.to_model()
        X = validated(self, X, reset=False)
        leading = model.leading(X)
        each = [model.contributions(X, component) for component in range(model.components)]
        gave = np.empty(each[0].shape)
        for component, contributions in enumerate(each):
            rows = np.flatnonzero(leading == component)
            gave[rows] = contributions[rows]
        return Explanation(np.array([one.base for one in each])[leading], each[0].names(model.features()), gave)

    def to_model(self) -> WeightedRanker:
        """The model, to be saved (``.save(path)``) and used by ``apsvm predict`` and ``apsvm eval``."""
        check_is_fitted(self)
        if np.size(self.intercept_) > 1:
            intercepts = np.array(self.intercept_, dtype=np.float64)
            return ComponentRanker(self.coef_.copy(), intercepts, self._header, self.feature_map_)
        coef, constant = self._weights()
        return LinearRanker(coef.copy(), constant, self._header, self.feature_map_)

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

    def _read_again(self, X: Matrix, y: Column) -> tuple[Matrix, Target]:
        """X as an array and what y means to the fitted estimator, checked."""
        raise NotImplementedError

    def _require_both(self, target: Target) -> None:
        """Raises ValueError if the rows that count are all alike."""
        raise NotImplementedError

    def _loss(self) -> str | object:
        """The loss that the trainer trains on."""
        return self._trainer.losses[0]

    def _values(self) -> JsonDict:
        """The parameters, by name, as settings take them."""
        values: JsonDict = self.get_params(deep=False)
        return values

    def _moves_line(self) -> bool:
        """Whether the constant is another one than that of the training."""
        return False

    def _weighted(self, plan: AnyTrainer, target: Target, sample_weight: Column) -> Column:
        """The weights of rows, with those of their classes."""
        return sample_weight

    def _trained_constant(self, plan: AnyTrainer) -> float | Literal["auto"] | None:
        """The value of a constant feature to be trained with the others, AUTO (``trainers.fitting``) or None."""
        return None

    def _free_constant(self, data: TrainingSet, scores: NDArray[np.float64]) -> float:
        """The constant where the loss does not depend on it; scores : (n,) of the training rows without it"""
        return 0.0

    def _described(self, header: Header, changes: JsonDict) -> Header:
        """The header with these ``changes``, fields by name, ``details`` among them, and with what the estimator itself
        has to say in it."""
        return replace(header, **changes)

    def _check_decision(self, fit: Fit) -> None:
        """Raises ValueError where ``_decided`` would."""

    def _decided(self, fit: Fit, outcome: Outcome, model: Ranker) -> Ranker:
        """The model with the threshold and the probabilities that the parameters ask for, if they do; ``fit``: its
        training, the features still to be learned."""
        return model

    def _recall(self, header: Header) -> None:
        """Sets the attributes that a header tells."""

    def _announce(self, target: Target) -> None:
        """What the log is told of the labels before a training."""

    def _as_decided(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The model's scores as ``decision_function`` gives them."""
        return scores

    def _weights(self) -> tuple[NDArray[np.float64], float]:
        """What scores relevance: the weights (n_features_in_,), and the constant."""
        return self.coef_.ravel(), float(np.ravel(self.intercept_)[0])

    def _set_weights(self, coef: NDArray[np.float64], intercept: float) -> None:
        """Sets ``coef_`` and ``intercept_`` by what scores relevance; what the header tells is set already."""
        self.coef_, self.intercept_ = coef, intercept

    # What they share.

    def _settings(self) -> Settings:
        """What the parameters ask for, checked. Raises ValueError, TypeError."""
        for name in ("fit_intercept", "warm_start"):
            if not isinstance(getattr(self, name, False), bool | np.bool_):
                raise TypeError(f"{name} must be True or False, found {getattr(self, name)!r}")
        return settings_of(
            self._values(),
            self._trainer.Settings,
            self._renamed,
            seed=self._seed(),
            threads=self._threads(),
        )

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
        loss = self._loss()
        settings = self._settings()
        with in_words_of_python(self._trainer.Settings, str(loss)):
            return self._trainer(loss, settings)

    def _fit(self, X: Matrix, y: Column, qid: Column, sample_weight: Column = None, bags: Column = None) -> Self:
        plan = self._plan()
        X, target = self._read(X, y, plan)
        self._require_memory(X)
        sample_weight = self._weighted(plan, target, sample_weight)
        ids: NDArray[np.int64] | None = None
        if plan.capabilities.bags:
            ids = self._columns(X, y, qid, sample_weight, bags).kept(plan.loss_name, self._pool()).bag_of_row
        else:
            X, target, qid, sample_weight = self._columns(X, y, qid, sample_weight, bags).pooled(self._pool(), target)
        counted = self._counted(X, qid, sample_weight, plan)
        fit = self._training(X, target, counted, plan, ids)
        self._require_both(fit.target.of(fit.selection))
        with training(self.verbose) as watch, in_words_of_python(self._trainer.Settings, plan.loss_name):
            raw, fit = fit, fit.prepared()
            self._check_decision(raw)
            data, start = fit.training_set(), self._start(plan, fit)
            self._announce(data.target)
            for remark in plan.check(data):
                text = in_python(remark, self._trainer.Settings, plan.loss_name)
                logger.warning("%s: %s", type(self).__name__, text)
            *_, outcome = outcomes(fit, watch, start, data)
            model = self._decided(raw, outcome, self._model_of(fit, data, outcome, counted))
        self._keep(model)
        self._set_importances(model, X)
        self._warn(outcome, plan.loss_name)
        return self

    @staticmethod
    def _require_memory(X: Matrix) -> None:
        """Raises ValueError for more columns than this machine can hold weights of."""
        if not can_train(X.shape[1]):
            raise ValueError(
                f"X has {X.shape[1]:,} columns, and a model a weight for each: more than this machine's memory can "
                "train; leave out those without a value, X[:, numpy.unique(X.indices)]"
            )

    def _model_of(self, fit: Fit, data: TrainingSet, outcome: Outcome, counted: Counted) -> Ranker:
        """The model of an outcome, with its constant, and what the estimator has to say."""
        (model,) = fit.model(outcome).rankers()
        assert isinstance(outcome.w, np.ndarray)
        if fit.bias is None or self._moves_line():
            scores = data.scores(outcome.w) if outcome.w.ndim == 1 else scores_of_weights(data.rows, outcome.w)
            model = model.at_level(model.level + self._free_constant(data, scores))
        return model.with_header(self._header_of(model.header, counted.groups))

    def _training(
        self, X: Matrix, target: Target, counted: Counted, plan: AnyTrainer, bags: NDArray[np.int64] | None
    ) -> Fit:
        every_row_once = np.array_equal(counted.members, np.arange(X.shape[0]))
        groups = of_members = counted.groups
        if of_members is not None and not every_row_once:  # of all rows, of which the members are selected
            groups = np.zeros(X.shape[0], dtype=np.int64)
            groups[counted.members] = of_members
        dataset = Dataset(
            X=X,
            relevance=target.relevant.astype(np.float64) if target.grades is None else target.grades,
            groups=groups,
            costs=counted.costs,
            zero_based=False,
            source="",
            fingerprint="",
            unknown_features=0,
            bags=bags,
            table=self._table_rows(),
        )
        return Fit(
            dataset,
            plan,
            target,
            asked_of(
                plan,
                FeatureOptions(
                    features=self._map_name(),
                    scale=self._scaling_name(plan),
                    bias=self._trained_constant(plan),
                    pool=self._pool(),
                ),
            ),
            selection=None if every_row_once else counted.members,
            query_weights=counted.query_weights,
        )

    def _start(self, plan: AnyTrainer, fit: Fit) -> NDArray[np.float64] | None:
        """Where to begin: at the weights of the fit before, where the user wants them and there was one. Raises
        ValueError where they are of other columns."""
        if not self.warm_start:
            return None
        refusal = plan.capabilities.refusal("warm_start")
        if refusal is not None:
            raise SettingsError(refusal)
        if not hasattr(self, "coef_"):
            return None
        before, width = self.to_model(), fit.dataset.X.shape[1]
        if before.width != width:
            raise ValueError(f"warm_start: the weights are of {before.width} features, X has {width}")
        try:
            return fit.start(before)
        except ModelError as error:
            raise ValueError(f"warm_start: of the fit before, {error}") from None

    def _table_rows(self) -> TableRows | None:
        """What a training set has of the data frame."""
        return None if self._table is None else TableRows(self._table)

    def _header_of(self, header: Header, groups: NDArray[np.int64] | None) -> Header:
        versions = {**header.versions, "scikit-learn": installed("scikit-learn")}
        changes: JsonDict = {"details": header.details, "estimator": type(self).__name__, "versions": versions}
        names = getattr(self, "feature_names_in_", None)
        if self._table is None and names is not None:  # the table's own are there
            changes["features"] = replace(header.features, names=tuple(names.tolist()))
        if header.data.queries is None and groups is not None:
            changes["data"] = replace(header.data, queries=int(np.unique(groups).size))
        return self._described(header, changes)

    def _pool(self) -> tuple[str, ...] | None:
        return checked_pool(self.pool)

    def _columns(self, X: Matrix, y: Column, qid: Column, sample_weight: Column, bags: Column) -> Columns:
        return Columns(type(self).__name__, X, y, qid, sample_weight, bags)

    def _scaling_name(self, plan: AnyTrainer) -> str:
        """The parameter ``scale``, checked."""
        if self.scale not in (AUTO, *SCALINGS):
            raise ValueError(f"scale is one of {', '.join((AUTO, *SCALINGS))}, found {self.scale!r}")
        refusal = None if self.scale in (AUTO, NO_SCALING.name) else plan.capabilities.refusal("scale")
        if refusal is not None:
            with in_words_of_python(self._trainer.Settings, plan.loss_name):
                raise SettingsError(refusal)
        return self.scale

    def _map_name(self) -> str:
        """The parameter ``features``, checked."""
        if not isinstance(self.features, str):
            raise TypeError(f"features is the name of a feature map, found {self.features!r}")
        return str(parsed(self.features))

    def _set_importances(self, model: Ranker, X: Matrix) -> None:
        """Sets ``feature_importances_`` by the training rows; a map that mixes all features has none."""
        if hasattr(self, "feature_importances_"):
            del self.feature_importances_
        found = importances(model, X, self._table)
        if found is not None:
            self.feature_importances_ = found

    def _keep(self, model: Ranker) -> None:
        """The fitted attributes, of a fit or of a model."""
        self._header = header = model.header
        self.feature_map_ = model.feature_map
        epochs = 0 if header.epochs is None else header.epochs.count
        self.n_iter_ = epochs if header.iterations is None else header.iterations
        data = header.data
        self.n_queries_ = 1 if data.queries is None else data.queries
        self.n_queries_skipped_ = data.queries_skipped or 0
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
        header = model.header
        refusal = cls._refusal(header)
        if refusal is not None:
            raise ValueError(refusal)
        own = cls._get_param_names()
        recorded = {name: value for name, value in cls._parameters(model).items() if name in own}
        estimator = cls(**{**recorded, **parameters})
        estimator.n_features_in_ = model.width // header.features.columns_of_feature
        names, table = header.features.names, header.features.columns
        if table is not None:
            estimator._table, names = table, tuple(column.name for column in table.features)
            estimator.n_features_in_ = len(names)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        estimator._keep(model)
        return estimator

    @classmethod
    def _refusal(cls, header: Header) -> str | None:
        """Why a model with this header is none that the class trains, if it is not."""
        if header.members:
            return (
                f"the average of {len(header.members)} rankers is none of {cls.__name__}'s: APSVMClassifierCV or "
                "APSVMRankerCV takes it"
            )
        if cls._trainer.serves(header.loss) if not header.family else header.family == cls._trainer.family:
            return None
        losses = ", ".join(cls._trainer.losses)
        return f"a model of loss {header.loss!r} is none of {cls.__name__}'s, whose losses are: {losses}"

    @classmethod
    def _parameters_trained(cls, header: Header) -> JsonDict:
        """The parameters of the training that a header tells."""
        return parameters_of(header.settings, cls._trainer.Settings, cls._renamed)

    @classmethod
    def _parameters(cls, model: Ranker) -> JsonDict:
        """The parameters that a model tells, and others perhaps."""
        header = model.header
        parameters = cls._parameters_trained(header)
        if header.seed or (header.seed is not None and cls._draws):
            parameters["random_state"] = header.seed
        parameters["features"] = header.features.map
        parameters["scale"] = header.features.scale
        if header.features.pool is not None:
            parameters["pool"] = ",".join(header.features.pool)
        if header.labels.kind == "threshold":
            parameters["relevant_from"] = header.labels.relevant_from
        return parameters

    def _score(self, X: Matrix, y: Column, qid: Column, sample_weight: Column = None, bags: Column = None) -> float:
        X, target = self._read_again(X, y)
        pool, plan = self._header.features.pool, self._judge()
        best_of: Bags | None = None
        if self._header.latent:
            best_of = self._columns(X, y, qid, sample_weight, bags).kept(self._header.loss, self._pool())
            target = target.of(best_of.first)
            qid, sample_weight = (
                None if values is None else of_bags(name, values, best_of)
                for name, values in (("qid", qid), ("sample_weight", sample_weight))
            )
        else:
            X, target, qid, sample_weight = self._columns(X, y, qid, sample_weight, bags).pooled(pool, target)
        by_query = plan is None or plan.capabilities.queries
        if qid is None and by_query and self.n_queries_ + self.n_queries_skipped_ > 1:
            raise ValueError(
                f"{type(self).__name__} was fitted with qid, {self.n_queries_ + self.n_queries_skipped_} queries, and "
                "is to be scored without: pass qid here too (all alike for one ranking of all rows). In searches and "
                "cross-validation sklearn.set_config(enable_metadata_routing=True) takes it to the score of each fold"
            )
        loss = getattr(plan, "loss", None)
        scores = self._scores_of_pooled(X)
        if best_of is not None:
            scores = best_of.best(scores)
        counted = self._counted(scores[:, None], qid, sample_weight, plan)
        return trained_measure(self._header.metric, loss, scores, target, counted)

    def _judge(self) -> AnyTrainer | None:
        """The plan whose loss ``score`` is about; None where the header's metric has to do."""
        return self._plan()

    def _counted(self, X: Matrix, qid: Column, sample_weight: Column, plan: AnyTrainer | None) -> Counted:
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            if not sample_weight.any():
                raise ValueError("all sample weights are zero")
        by_query = plan is None or plan.capabilities.queries
        by_pair = plan is not None and plan.capabilities.queries and plan.capabilities.costs
        return count_rows(X.shape[0], qid, sample_weight, by_query=by_query, by_pair=by_pair)

    def _scores(self, X: Matrix) -> NDArray[np.float64]:
        """Of rows as ``fit`` takes them, each as a bag of its own where bags are pooled."""
        pool = self._header.features.pool
        return self._scores_of_pooled(X if pool is None else each_alone(X, pool))

    def _scores_of_pooled(self, X: Matrix) -> NDArray[np.float64]:
        return self.to_model().score(X, threads=self._threads())

    def _warn(self, outcome: Outcome, loss: str = "") -> None:
        """Warnings: the training stopped early, or the ranker is not good for something."""
        if not outcome.as_asked:
            remedy = FOR_STALLED if outcome.state == State.STALLED else self._remedy
            message = f"{type(self).__name__} stopped early: {outcome.state}{evidence_of(outcome)}; {remedy}"
            warn_caller(message, ConvergenceWarning)
        for caution in outcome.cautions:
            text = in_python(caution, self._trainer.Settings, loss)
            warn_caller(f"{type(self).__name__}: {text}", WeakRankerWarning)
