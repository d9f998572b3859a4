"""Classifiers of two classes and rankers by grades: valid y, its meaning, and the result of ``predict``.

They are separate since scikit-learn reads a classifier's ``decision_function`` as scores of the second of two classes;
so do its tools for imbalanced data (``scoring="average_precision"``, precision–recall displays, calibration). Grades
are not classes: a ranker is neither classifier nor regressor, and its ``predict`` returns scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from apsvm._support.caller import warn_caller
from apsvm._support.types import Column, JsonDict, Matrix
from apsvm.data.labels import Target, of_numbers, of_two, ordered, threshold
from apsvm.data.takes import Takes
from apsvm.estimators.base import Estimator
from apsvm.estimators.frames import validated
from apsvm.estimators.messages import logger
from apsvm.estimators.parameters import distinct_values
from apsvm.metrics import parse_metric
from apsvm.models.base import Ranker
from apsvm.models.decision import line_of
from apsvm.models.header import Header, Json

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


ONE_CLASS = "y has one class only: a ranking needs positive and negative rows"


@dataclass(eq=False, repr=False, kw_only=True)
class BinaryClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """A classifier of two classes. ``pos_label`` is the positive one; None: the second in sorted order.

    ``decision_function`` and ``coef_`` refer to the second of ``classes_``, whichever is positive: scikit-learn expects
    this, and flips the sign if a metric names the first. The model (``to_model``) scores the positive class.
    """

    pos_label: object = None

    #: Overrides the accuracy of ``ClassifierMixin``.
    score = Estimator.score

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @property
    def _threshold(self) -> float:  # type: ignore[override]
        return line_of(self._model.header.threshold)

    def predict(self, X: Matrix) -> AnyArray:
        """Class of each row of X (n, n_features_in_): (n,), the second of ``classes_`` if ``decision_function`` is
        above 0, else the first."""
        is_second = self.decision_function(X) > 0.0
        return self.classes_[is_second.astype(np.intp)]

    @property
    def predict_proba(self) -> Callable[[Matrix], NDArray[np.float64]]:
        """Probabilities of the two ``classes_``, (n, 2) float64, for rows X (n, n_features_in_). Available after a fit
        with ``calibrate``, or from a model with a calibration."""
        model: Ranker | None = getattr(self, "_model", None)
        if (getattr(self, "calibrate", None) if model is None else model.header.calibration) is None:
            way = "fit it with calibrate='auto'" if hasattr(self, "calibrate") else "wrap it in CalibratedClassifierCV"
            raise AttributeError(f"this {type(self).__name__} has no predict_proba: {way}")

        def predict_proba(X: Matrix) -> NDArray[np.float64]:
            scores, calibration = self._scores(X), self._model.header.calibration
            assert calibration is not None
            positive = calibration.probability(scores)
            columns = (1.0 - positive, positive) if self._sign > 0.0 else (positive, 1.0 - positive)
            return np.stack(columns, axis=1)

        return predict_proba

    def _read(self, X: Matrix, y: Column, takes: Takes) -> tuple[Matrix, Target]:
        X, y = validated(self, X, y)
        self.classes_: AnyArray = self._classes_in(y)
        classes = self.classes_.tolist()
        if self.pos_label is not None and self.pos_label not in classes:
            raise ValueError(f"pos_label={self.pos_label!r} is not one of the classes {classes!r}")
        self.pos_label_ = classes[1 if self.pos_label is None else classes.index(self.pos_label)]
        target = of_two(y, self._negative_first)
        self._warn_of_a_guess(target)
        return X, target

    def _read_for_metric(self, X: Matrix, y: Column) -> tuple[Matrix, Target]:
        X, y = validated(self, X, y, reset=False)
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise ValueError(f"expected labels of {self.classes_.tolist()}, found {y[unknown].tolist()[0]!r}")
        return X, of_two(y, self._negative_first)

    def _classes_in(self, y: AnyArray) -> AnyArray:
        """(2,) the values of y, ascending. Raises ValueError unless there are two, and they are labels."""
        classes, _ = distinct_values("y", y)
        if y.dtype.kind in "biuf" and classes.size == 2 and not (classes % 1).any():
            return classes  # as type_of_target finds, in as much time as a training takes
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            check_classification_targets(y)
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}. For one class against "
                "the others pass y == label, for every class use sklearn.multiclass.OneVsRestClassifier, for grades "
                "APSVMRanker"
            )
        if classes.size < 2:
            raise ValueError(ONE_CLASS)
        return classes

    @property
    def _sign(self) -> float:  # type: ignore[override]
        """1 if the second class is positive, −1 if the first is."""
        return 1.0 if self.pos_label_ == self.classes_.tolist()[1] else -1.0

    @property
    def _negative_first(self) -> AnyArray:
        """(2,) the negative and the positive class."""
        return self.classes_ if self._sign > 0.0 else self.classes_[::-1]

    def _warn_of_a_guess(self, target: Target) -> None:
        """Warns if the positive class was guessed from names and is the more frequent one, which is probably wrong. Of
        two numbers the larger is positive by custom; the alphabetical order of names is arbitrary."""
        if self.pos_label is not None or self.classes_.dtype.kind in "biuf":
            return
        n_rows, n_positives = target.relevant.size, int(target.relevant.sum())
        if 2 * n_positives > n_rows:
            negative, positive = self._negative_first.tolist()
            warn_caller(
                f"{type(self).__name__}: {positive!r} is taken as positive, the second in sorted order, but it is the "
                f"more frequent one, {n_positives} of {n_rows} rows. pos_label={negative!r} makes the other one "
                f"positive, pos_label={positive!r} confirms the choice"
            )

    def _check(self, target: Target) -> None:
        """Raises ValueError unless there are rows of both classes; logs which one is positive."""
        relevant = target.relevant
        if relevant.all() or not relevant.any():
            raise ValueError(ONE_CLASS)
        negative, positive = self._negative_first.tolist()
        logger.info(
            "%s: %r is positive, %d of %d rows, and %r negative",
            type(self).__name__, positive, int(relevant.sum()), relevant.size, negative,
        )  # fmt: skip

    def _set_weights(self, coef: NDArray[np.float64], intercept: float) -> None:
        self.coef_ = self._sign * coef.reshape(1, -1)
        self.intercept_ = np.array([self._sign * (intercept - self._threshold)])

    def _header_of(self, header: Header, groups: NDArray[np.int64] | None) -> Header:
        """Records the negative and the positive class with their types: ``True`` is not 1.0."""
        classes: list[Json] = [
            name if isinstance(name, bool | int | float) else str(name) for name in self._negative_first.tolist()
        ]
        details = {**header.details, "classes": classes}
        return super()._header_of(replace(header, details=details), groups)

    def _restore(self, header: Header) -> None:
        super()._restore(header)
        pair = _classes_of(header)
        self.classes_, self.pos_label_ = np.sort(pair), pair.tolist()[1]

    @classmethod
    def _parameters(cls, header: Header) -> JsonDict:
        negative, positive = _classes_of(header).tolist()
        named: JsonDict = {"pos_label": positive} if positive < negative else {}
        return {**super()._parameters(header), **named}


def _classes_of(header: Header) -> AnyArray:
    """(2,) the negative and the positive class, as far as a header records them; 0 and 1 otherwise."""
    recorded = header.details.get("classes")
    if isinstance(recorded, list) and len(recorded) == 2:
        return np.array(recorded)
    labels = header.labels
    if labels.names is not None:
        return np.array(labels.names)
    pair = [*labels.negative, 1.0 if labels.positive is None else labels.positive]
    return np.array(pair) if len(pair) == 2 and pair[0] != pair[1] else np.array([0, 1])


class GradeRanker(Estimator):
    """A ranker: neither classifier nor regressor."""

    def predict(self, X: Matrix) -> NDArray[np.float64]:
        """Scores of the rows of X (n, n_features_in_), as ``decision_function``: (n,) float64."""
        return self.decision_function(X)

    def _lowest_relevant(self) -> float | None:
        """The parameter ``relevant_from``; None without it."""
        relevant_from: float | None = getattr(self, "relevant_from", None)
        return None if relevant_from is None else float(relevant_from)

    def _read(self, X: Matrix, y: Column, takes: Takes) -> tuple[Matrix, Target]:
        relevant_from = self._lowest_relevant()
        X, y = validated(self, X, y, y_numeric=True, ensure_min_samples=2)
        return X, of_numbers(y.astype(np.float64), takes, relevant_from=relevant_from)

    def _read_for_metric(self, X: Matrix, y: Column) -> tuple[Matrix, Target]:
        """Grades count whatever the training loss if the metric reads them; else rows above 0, or from
        ``relevant_from`` on, are relevant."""
        X, y = validated(self, X, y, reset=False, y_numeric=True)
        meaning = ordered if parse_metric(self.metric).graded else threshold
        return X, meaning(y.astype(np.float64), relevant_from=self._lowest_relevant())

    def _check(self, target: Target) -> None:
        """Raises ValueError unless there are relevant rows and others, or grades."""
        if target.grades is None and (target.relevant.all() or not target.relevant.any()):
            lowest = self._lowest_relevant()
            relevant = "above 0" if lowest is None else f"of {lowest:g} and above"
            raise ValueError(
                f"expected relevant rows, of grades {relevant}, and others; found {int(target.relevant.sum())} of "
                f"{target.relevant.size} relevant. relevant_from sets the lowest relevant grade"
            )
