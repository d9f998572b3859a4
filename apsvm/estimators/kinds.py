"""Classifiers of two classes and rankers of numbers: what y may be, what it means, and what ``predict`` returns.

Why two: scikit-learn takes its classifiers' ``decision_function`` as scores of the second of two classes, and so does
all it has for imbalanced data (``scoring="average_precision"``, precision–recall displays, calibration). Grades are no
classes; for them there is the ranker, which is neither classifier nor regressor and whose ``predict`` are the scores.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from apsvm.data.labels import Target, again, of_numbers, of_two
from apsvm.estimators.base import FEATURES, LinearEstimator
from apsvm.estimators.parameters import check_number
from apsvm.header import Header, Json
from apsvm.trainers.base import AnyTrainer, TrainingSet
from apsvm.trainers.settings import Range
from apsvm.types import Column, Matrix

if TYPE_CHECKING:
    from apsvm.types import AnyArray


class TwoClasses(ClassifierMixin, LinearEstimator):  # type: ignore[misc]
    """A classifier of two classes: the second in sorted order is positive."""

    classes_: AnyArray

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def predict(self, X: Matrix) -> AnyArray:
        """The class of each row of X (n, d): (n,); the second of ``classes_`` where the score is above 0."""
        positive = self.decision_function(X) > 0.0
        return self.classes_[positive.astype(np.intp)]

    def _read(self, X: Matrix, y: Column, plan: AnyTrainer) -> tuple[Matrix, Target]:
        X, y = validate_data(self, X, y, **FEATURES)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}. For one class against "
                "the others give y == label; for grades there is APSVMRanker"
            )
        classes = np.unique(y)
        if classes.size < 2:
            raise ValueError("expected rows of both classes, found one class only")
        self.classes_ = classes
        return X, of_two(y, classes)

    def _read_again(self, X: Matrix, y: Column) -> tuple[Matrix, Target]:
        check_is_fitted(self)
        X, y = validate_data(self, X, y, reset=False, **FEATURES)
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise ValueError(f"expected labels of {self.classes_.tolist()}, found {y[unknown].tolist()[0]!r}")
        return X, of_two(y, self.classes_)

    def _require_both(self, target: Target) -> None:
        if target.relevant.all() or not target.relevant.any():
            raise ValueError("expected rows of both classes, found one class only")

    def _free_constant(self, data: TrainingSet, w: NDArray[np.float64]) -> float:
        return break_even_intercept(data.rows.scores(w), data.target.relevant) if self.fit_intercept else 0.0

    def _set_weights(self, coef: NDArray[np.float64], intercept: float) -> None:
        self.coef_, self.intercept_ = coef.reshape(1, -1), np.array([intercept])

    def _described(self, header: Header) -> Header:
        """The classes as they were, ``True`` being no 1.0."""
        classes: list[Json] = [
            name if isinstance(name, bool | int | float) else str(name) for name in self.classes_.tolist()
        ]
        return super()._described(replace(header, details={**header.details, "classes": classes}))

    def _recall(self, header: Header) -> None:
        super()._recall(header)
        self.classes_ = _classes_of(header)


def _classes_of(header: Header) -> AnyArray:
    """(2,) the two classes, the positive one last, as far as a header tells."""
    named = header.details.get("classes")
    if isinstance(named, list) and len(named) == 2 and all(isinstance(one, bool | int | float | str) for one in named):
        return np.array(named)
    labels = header.labels
    if labels.names is not None:
        return np.array(labels.names)
    pair = [*labels.negative, 1.0 if labels.positive is None else labels.positive]
    return np.array(pair) if len(pair) == 2 and pair[0] < pair[1] else np.array([0, 1])


class RankerOfNumbers(LinearEstimator):
    """A ranker: neither classifier nor regressor."""

    def predict(self, X: Matrix) -> NDArray[np.float64]:
        """The scores of the rows of X (n, n_features_in_), as ``decision_function``: (n,) float64."""
        return self.decision_function(X)

    def _lowest_relevant(self) -> float | None:
        """The parameter ``relevant_from``, checked, where there is one."""
        given = getattr(self, "relevant_from", None)
        return None if given is None else check_number("relevant_from", given, Range())

    def _read(self, X: Matrix, y: Column, plan: AnyTrainer) -> tuple[Matrix, Target]:
        relevant_from = self._lowest_relevant()
        X, y = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, **FEATURES)
        return X, of_numbers(y.astype(np.float64), plan.takes, relevant_from=relevant_from)

    def _read_again(self, X: Matrix, y: Column) -> tuple[Matrix, Target]:
        check_is_fitted(self)
        X, y = validate_data(self, X, y, reset=False, y_numeric=True, **FEATURES)
        return X, again(y.astype(np.float64), self._header.labels)

    def _require_both(self, target: Target) -> None:
        if target.grades is None and (target.relevant.all() or not target.relevant.any()):
            lowest = self._lowest_relevant()
            what = "above 0" if lowest is None else f"of {lowest:g} and above"
            raise ValueError(
                f"expected relevant rows, of grades {what}, and others; found {int(target.relevant.sum())} of "
                f"{target.relevant.size} relevant. relevant_from says where the line is"
            )


def break_even_intercept(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> float:
    """The constant that puts as many of the ``scores`` (n,) above 0 as are ``relevant`` (n,), both classes being there:
    precision equals recall. Halfway between two scores; if they are equal, both are then at 0.

    >>> break_even_intercept(np.array([1.0, 5.0, 3.0]), np.array([False, True, True]))
    -2.0
    """
    last_above = scores.size - int(relevant.sum())
    lower, upper = np.partition(scores, [last_above - 1, last_above])[last_above - 1 : last_above + 1]
    return -float(lower + (upper - lower) / 2.0)
