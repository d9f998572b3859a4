"""What the estimators share: rows in, scores out, models to and from files."""

from __future__ import annotations

import logging
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from apsvm.data.rows import Rows
from apsvm.model import LinearRanker
from apsvm.registry import UnknownNameError

logger = logging.getLogger("apsvm")


class LinearEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """score(x) = coef·x + intercept."""

    #: Requested by default: there is one thing that a column of query ids can mean.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    coef_: NDArray[np.float64]
    intercept_: Any
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    n_iter_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The scores of the rows of X (n, n_features_in_), the higher the more relevant: (n,) float64."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **_FEATURES)
        return self._scores(self._rows(X))

    def to_model(self) -> LinearRanker:
        """The model, to be saved (``.save(path)``) and used by ``apsvm predict`` and ``apsvm eval``."""
        check_is_fitted(self)
        header: dict[str, Any] = {
            "zero_based": False,
            "positive_label": None,
            "estimator": type(self).__name__,
            "versions": {name: version(name) for name in ("apsvm", "numpy", "scikit-learn")},
            **self._header(),
        }
        if hasattr(self, "feature_names_in_"):
            header["feature_names"] = self.feature_names_in_.tolist()
        return LinearRanker(self.coef_.ravel().copy(), float(np.ravel(self.intercept_)[0]), header)

    @classmethod
    def from_model(cls, model: LinearRanker) -> Self:
        """An estimator that scores as ``model`` (``apsvm.load_model``) does, with its parameters as far as its file
        tells them. Raises ValueError if this class does not train such models."""
        estimator = cls(**cls._parameters(model.header))
        estimator.n_features_in_ = model.width
        if "feature_names" in model.header:
            estimator.feature_names_in_ = np.array(model.header["feature_names"], dtype=object)
        if "iterations" in model.header:
            estimator.n_iter_ = int(model.header["iterations"])
        estimator._set_weights(model.coef.copy(), model.intercept)
        estimator._recall(model.header)
        return estimator

    # What a class of estimators says.

    def _header(self) -> dict[str, Any]:
        """What its model file tells of the training, in JSON values."""
        raise NotImplementedError

    @classmethod
    def _parameters(cls, header: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that a model's header tells."""
        raise NotImplementedError

    def _recall(self, header: Mapping[str, Any]) -> None:
        """Sets what else a model's header tells."""

    # What they share.

    def _set_weights(self, coef: NDArray[np.float64], intercept: float) -> None:
        self.coef_, self.intercept_ = coef, intercept

    def _rows(self, X: Any, *, bias: float | None = None) -> Rows:
        return Rows(X, bias=bias, threads=effective_n_jobs(self.n_jobs))

    def _scores(self, rows: Rows) -> NDArray[np.float64]:
        return rows.scores(self.coef_.ravel()) + float(np.ravel(self.intercept_)[0])

    def _warm_coef(self, width: int) -> NDArray[np.float64] | None:
        """The weights to start from, where the user wants those of the fit before and there was one."""
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        if self.coef_.size != width:
            raise ValueError(f"warm_start: the weights are of {self.coef_.size} features, X has {width}")
        return self.coef_.ravel()

    def _warn(self, why: str) -> None:
        warnings.warn(f"{type(self).__name__} stopped early: {why}", ConvergenceWarning, stacklevel=3)


class ScoresArePredictions(LinearEstimator):
    """A ranker: neither classifier nor regressor."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The scores of the rows of X (n, n_features_in_), as ``decision_function``: (n,) float64."""
        return self.decision_function(X)


#: How X is checked, in fit and after.
_FEATURES: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}


def check_features(estimator: LinearEstimator, X: Any, y: Any, **how: Any) -> tuple[Any, Any]:
    """X and y as arrays, checked, as those of a fit."""
    X, y = validate_data(estimator, X, y, **_FEATURES, **how)
    return X, y


def check_known_features(estimator: LinearEstimator, X: Any, y: Any, **how: Any) -> tuple[Any, Any]:
    """X and y as arrays, checked, of what is to be scored."""
    check_is_fitted(estimator)
    X, y = validate_data(estimator, X, y, reset=False, **_FEATURES, **how)
    return X, y


def check_number(estimator: LinearEstimator, name: str, **bounds: Any) -> float:
    """The estimator's parameter of this name; ValueError (TypeError) unless it is a finite number within the bounds of
    ``sklearn.utils.check_scalar``."""
    value = float(check_scalar(getattr(estimator, name), name, Real, **bounds))
    if not math.isfinite(value):
        raise ValueError(f"{name} == {value}, must be finite")
    return value


def check_choices(estimator: LinearEstimator, **known: Sequence[str]) -> None:
    """Raises UnknownNameError (a ValueError) for a parameter that is none of its ``known`` values."""
    for name, choices in known.items():
        value = getattr(estimator, name)
        if value not in choices:
            raise UnknownNameError(f"unknown {name} {value!r}: choose from {', '.join(choices)}")


@contextmanager
def training(verbose: int) -> Iterator[None]:
    """One BLAS thread: the solvers' products are small, and more would make the last bits depend on their number.
    ``verbose``: what the logger "apsvm" is told is shown on standard error, unless the program handles it itself."""
    handler = logging.StreamHandler(sys.stderr)
    before = logger.level
    shown = bool(verbose)
    handled = logger.hasHandlers()
    if shown:
        logger.setLevel(logging.INFO)
        if not handled:
            logger.addHandler(handler)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
