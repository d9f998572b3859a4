"""The structured SVM as a classifier and as a ranker: min ½‖w‖² + C·risk(w), certified (``trainers.structured_svm``).

A loss that a header names is never imported. If it is not one of this package, the parameter ``loss`` is None: the
estimator scores, but needs the loss itself to train again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from apsvm._support.naming import OBJECTIVES
from apsvm._support.types import Column, JsonDict
from apsvm.data.labels import Target
from apsvm.estimators.decisions import cheapest_threshold, with_decision
from apsvm.estimators.linear import LinearEstimator
from apsvm.estimators.targets import BinaryClassifier, GradeRanker
from apsvm.metrics.thresholds import ThresholdRule
from apsvm.models.header import Bounds, Header, Threshold
from apsvm.selection.calibration import METHODS
from apsvm.selection.completion import training_scores
from apsvm.selection.decision import DecisionRule
from apsvm.selection.thresholds import with_f1_threshold
from apsvm.trainers import unknown_loss
from apsvm.trainers.base import AnyTrainer, Outcome, TrainingSet
from apsvm.trainers.fitting import AUTO, Fit
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer
from apsvm.trainers.summary import chosen

#: Default constant feature of the binary SVM with which oracle "appx" starts.
APPX_CONSTANT = 1.0


@dataclass(eq=False, repr=False, kw_only=True)
class _Structured(LinearEstimator):
    """Common parameters of the structured SVM's estimators."""

    _trainer = StructuredSVMTrainer
    _renamed = {"max_iter": "max_iterations"}  # noqa: RUF012
    _remedy = "raise max_iter, time_limit or epsilon"

    loss: str | object = field(default="ap", kw_only=False)
    C: float | str = "auto"
    epsilon: float = 1e-3
    oracle: str = "auto"
    keep_easy: float = 50.0
    fit_intercept: bool = True
    intercept_scaling: float | str = AUTO
    solver: str = "line-search"
    qp: str = "auto"
    bound: str = "auto"
    components: int | None = None
    scale: str = AUTO
    pool: str | None = None
    latent: bool = False
    start: str = "anneal"
    max_iter: int = 10_000

    @classmethod
    def _parameters(cls, header: Header) -> JsonDict:
        is_known = ":" not in header.loss and cls._trainer.serves(header.loss)
        return {**super()._parameters(header), "loss": header.loss if is_known else None}

    def _plan(self) -> AnyTrainer:
        plan = self._trainer(self._known_loss(), self._settings())
        plan.named |= frozenset() if self.components is None else {"components"}
        return plan

    def _values(self) -> JsonDict:
        values = super()._values()
        return values if self.components is not None else {**values, "components": 1}

    def _known_loss(self) -> str | object:
        """The parameter ``loss``. Raises ValueError."""
        loss = self.loss
        if loss is None:
            way = f"{type(self).__name__}.from_model(model, loss=…)"
            raise ValueError(f"loss is None: to train again, pass the model's loss, {way}")
        if not isinstance(loss, str):
            return loss
        loss = loss if ":" in loss else loss.strip().lower()
        if loss in OBJECTIVES or not self._trainer.serves(loss):
            raise unknown_loss(loss, self._trainer.losses)
        return loss

    def _trained_constant(self, plan: AnyTrainer) -> float | Literal["auto"] | None:
        """A constant feature if the loss, or the first stage of oracle "appx", depends on the level of the scores."""
        assert isinstance(plan, StructuredSVMTrainer)
        value = self.intercept_scaling
        if isinstance(value, str):
            if value != AUTO:
                raise ValueError(f"intercept_scaling is a number > 0 or 'auto', found {value!r}")
            constant: float | Literal["auto"] = APPX_CONSTANT if plan.approximates else AUTO
            needed = plan.capabilities.constant
        else:
            if not 0.0 < value < math.inf:
                raise ValueError(f"intercept_scaling is a number > 0 or 'auto', found {value!r}")
            constant = float(value)
            needed = plan.loss.depends_on_level
        return constant if self.fit_intercept and (needed or plan.approximates) else None

    def _header_of(self, header: Header, groups: NDArray[np.int64] | None) -> Header:
        details = {**header.details, "fit_intercept": bool(self.fit_intercept)}
        return super()._header_of(replace(header, details=details), groups)

    def _restore(self, header: Header) -> None:
        super()._restore(header)
        self.C_ = math.nan if header.C is None else header.C
        bounds = next(iter(self.certificates_.values()), None)
        self.certificate_: Bounds = bounds  # type: ignore[assignment]  # None for few models only
        bound = "" if bounds is None else f"bound {bounds.bound}, "
        words = list(chosen(header, header.metric)) or [f"{bound}C = {self.C_:.6g}"]
        self.choice_ = "; ".join([f"features {header.features.map}", *words])


@dataclass(eq=False, repr=False, kw_only=True)
class APSVMClassifier(BinaryClassifier, _Structured):
    """Classifier of two classes by a structured SVM: it minimises a ranking loss of the scores.

    y holds two values of any type. The second in sorted order is positive, as usual in scikit-learn, unless
    ``pos_label`` names the other. If the values are words and the positive one is more frequent, a warning says so. For
    one value against all others pass ``y == value``, or use ``sklearn.multiclass.OneVsRestClassifier``.

    Rows with the same ``qid`` are one ranking, and the risk is the mean over the rankings; without ``qid`` all rows are
    one ranking. With ``qid``, ``sample_weight`` is the weight of the row's query in this mean. Without, a row of weight
    k counts as k rows, and weights are whole numbers. Only loss "zero-one" accepts fractions: the exact algorithms rely
    on the order of the positives by score, which weights of single positives would break.

    Parameters
    ----------
    loss : str or object
        The loss to minimise: a name of ``apsvm train --loss`` ("ap", "auc", "ndcg", "ndcg@10", "mrr", "p@10",
        "rbp(0.8)", "f1", "zero-one" …), "package.module:Name", or an object or class with ``weights(n_pos)`` and a
        convex ``discount(n)``.
    metric : str
        The metric that ``score`` returns and searches compare, whatever the loss: "AP", "AUC", "P@100", "nDCG(exp)@10",
        "F1", "accuracy" … (``apsvm eval -m``).
    pos_label : object
        The positive value of y; None: the second in sorted order.
    class_weight : "balanced" or dict, optional
        Weights of the values of y. They change no ranking: the threshold moves to where the training rows on the wrong
        side weigh least. With loss "zero-one" they multiply ``sample_weight``.
    C : float or str
        Weight of the risk against ½‖w‖². "auto" is derived from the scale of the features
        (``trainers.structured_svm.default_c``); "10x" is ten times that.
    epsilon : float
        The requested duality gap is epsilon·C.
    oracle : str
        Algorithm that finds the most violated ranking. All except "appx" give the same model.
    keep_easy : float
        For oracle "appx": the percentage of the binary SVM's easy rows that stay easy.
    fit_intercept : bool
        True to fit a constant. Losses over rankings do not depend on it; for them it is the negative threshold. Losses
        that read the sign of a score ("zero-one", "f1" …) train it as the weight of a constant feature.
    intercept_scaling : float or "auto"
        Value of that feature. "auto": ten times the geometric mean of the columns' deviations, 1 for oracle "appx".
    threshold : str, optional
        Rule that sets the threshold of ``predict`` on held-out rows: "f1", "fpr=0.01", "precision=0.9", "recall=0.9" or
        "top=100" (``apsvm.metrics.thresholds``). None: "f1", on the training rows if none were held out.
    calibrate : str, optional
        "isotonic", "platt" or "auto": ``predict_proba`` returns probabilities fitted to held-out rows, and without
        ``threshold``, ``predict`` returns the likelier class.
    solver : str
        Points at which planes are taken: "line-search" or, as in the papers, "cutting-plane".
    qp : str
        Solver of the working-set QP: "auto", "active-set" or "cvxpy".
    bound : str
        Upper bound of the loss: the convex "hinge" of the papers or, for losses over rankings, the "tight" ramp, which
        is minimised from the hinge's minimiser to a stationary point. "auto": the better one on held-out rows, each
        with a few values of C if C is "auto" (``selection.quick``).
    components : int, optional
        The score is the highest of this many linear scores, for positives of several kinds. By default one, or two if
        loss is "ap", ``bound`` and ``C`` are "auto", positives are rare and two rank held-out rows better.
    features : str
        Map of the features: "linear" (none), "logarithms" (added to long-tailed features), "piecewise:4" (a broken line
        with 4 knots for each feature), "rules:400:depth=5" (leaves of boosted trees), "products" (of all pairs),
        "nystroem:300" (an RBF kernel by landmarks). "auto": rules if they rank held-out rows better, else linear, with
        logarithms if columns of a data frame have long tails.
    scale : str
        Scaling of the columns: "standard", "maxabs", "l2" (each row to length 1) or "none". "auto": standard for dense
        X, none for sparse X and for rules. coef_ always refers to unscaled columns.
    pool : str, optional
        "mean", or several of min, mean and max ("min,mean,max"): each bag of ``fit(X, y, bags=bags)`` becomes one row.
        ``score`` and ``bag_scores`` rank bags; ``decision_function`` and ``predict`` take each row as a bag of its own.
    latent : bool
        Train on the bags of ``fit(X, y, bags=bags)``, each represented by its highest-scoring row. ``score`` and
        ``bag_scores`` rank bags.
    start : str
        Start of latent training: "anneal", "bag-means" or "random:N".
    max_iter : int
        Maximum number of iterations of each stage of the training.
    time_limit : float, optional
        Maximum duration of the training in seconds.
    n_jobs : int, optional
        Number of threads; None: 1; -1: one for each core. The result does not depend on it.
    random_state : int, RandomState or None
        Seed of the start of several components; nothing else is drawn. An integer is recorded in the model's file.
    verbose : int
        1 logs each iteration to standard error (the logger "apsvm").

    Attributes
    ----------
    classes_ : ndarray
        (2,) the two values of y, ascending.
    pos_label_ : object
        The positive one.
    coef_ : ndarray
        (1, n_features_in_) float64, or a weight for each column of feature_map_, for the second of classes_. With
        several components (components, …), for the positive class.
    intercept_ : ndarray
        (1,) or (components,) float64.
    feature_map_ : FeatureMap or None
        The learned map; None for "linear".
    choice_ : str
        The chosen features, bound and C in words, and how they ranked held-out rows.
    n_iter_ : int
        Number of iterations of all stages.
    C_ : float
        The C that was used.
    certificate_ : Bounds
        ``primal`` ≥ the optimum ≥ ``dual``, their ``gap``, the ``tolerance``, and ``reached``; ``exact`` is False with
        oracle "appx". With bound "tight" they are of the convex majorant at the stationary point; for an average of
        columns and rules, of the ranker on columns. None for a model without certificate.
    certificates_ : dict
        Certificates by feature map, two for an average.
    n_queries_, n_queries_skipped_ : int
        Number of queries that were trained on, and of those without anything to rank.
    feature_importances_ : ndarray
        (n_features_in_,) float64, summing to 1: the standard deviation of each column's contribution to the scores of
        the training rows. Missing with "nystroem", with pooled bags, and for models from files (see ``explain``).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from apsvm import APSVMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), APSVMClassifier(loss="ap", C=10))
    >>> print(f"AP {cross_val_score(model, X, y).mean():.3f}")
    AP 0.993
    >>> model.fit(X, y)[-1].certificate_.reached
    True
    """

    class_weight: str | Mapping[object, float] | None = None
    threshold: str | None = None
    calibrate: str | None = None

    def _check(self, target: Target) -> None:
        self._rule()
        super()._check(target)

    def _rule(self) -> DecisionRule:
        """The rule of ``threshold`` and ``calibrate``. Raises ValueError."""
        if self.calibrate not in (None, *METHODS):
            raise ValueError(f"calibrate is one of {', '.join(METHODS)}, or None, found {self.calibrate!r}")
        rule = DecisionRule(None if self.threshold is None else ThresholdRule.parse(self.threshold), self.calibrate)
        if rule.asks and not self.fit_intercept:
            raise ValueError("threshold and calibrate choose the constant: fit_intercept=False leaves none")
        return rule

    def _with_decision(self, fit: Fit, data: TrainingSet, outcome: Outcome, header: Header) -> Header:
        relevant, rule = data.target.relevant, self._rule()
        if rule.asks and outcome.ranks:
            return with_decision(fit, outcome, header, rule)
        if not self.fit_intercept:
            is_loss = header.threshold is not None and header.threshold.rule == "loss"
            return header if is_loss else replace(header, threshold=None)
        scores = training_scores(outcome, data)
        if not self._moves_threshold():
            return with_f1_threshold(header, scores, relevant)
        line = cheapest_threshold(scores, relevant, self._class_weights(relevant))
        return replace(header, threshold=Threshold(value=line, rule="class weights"))

    def _moves_threshold(self) -> bool:
        """True if ``class_weight`` moves the threshold; otherwise it multiplies the weights of rows."""
        return self.class_weight is not None and self._plan().capabilities.queries

    def _class_weights(self, relevant: NDArray[np.bool_]) -> tuple[float, float]:
        """Weights of a negative and of a positive row, by ``class_weight``. Raises ValueError if it is invalid."""
        classes = self._negative_first
        of_class = compute_class_weight(self.class_weight, classes=classes, y=classes[relevant.astype(np.intp)])
        negative, positive = of_class.tolist()
        if min(negative, positive) < 0.0:
            raise ValueError(f"expected weights ≥ 0 in class_weight, found {self.class_weight!r}")
        return negative, positive

    def _weighted(self, plan: AnyTrainer, target: Target, sample_weight: Column) -> Column:
        if self.class_weight is None:
            return sample_weight
        negative, positive = self._class_weights(target.relevant)
        if self._moves_threshold():
            if self._rule().asks or not self.fit_intercept:
                raise ValueError(
                    f"class_weight moves the threshold of loss={plan.loss_name!r}: it needs fit_intercept=True, and "
                    "excludes threshold= and calibrate="
                )
            return sample_weight
        of_rows = np.where(target.relevant, positive, negative)
        return of_rows if sample_weight is None else of_rows * np.asarray(sample_weight)


@dataclass(eq=False, repr=False, kw_only=True)
class APSVMRanker(GradeRanker, _Structured):
    """Ranker by grades, query by query, by a structured SVM: it minimises a ranking loss of the scores.

    y holds numbers. Losses that take grades ("ndcg", "ndcg@10" …) use them, and read those below 0 as 0. For other
    losses the rows above 0 are relevant, or those from ``relevant_from`` on.

    Parameters
    ----------
    relevant_from : float, optional
        The lowest relevant grade; the loss then distinguishes only relevant rows and others.
    metric : str
        The metric that ``score`` returns and searches compare, whatever the loss. For metrics of two classes ("AP",
        "P@10") the rows above 0 are relevant, or those from ``relevant_from`` on.
    loss, C …
        See ``APSVMClassifier``; with a loss over rankings the constant is 0.

    Attributes
    ----------
    coef_ : ndarray
        (n_features_in_,) float64, or a weight for each column of feature_map_; with several components (components, …).
    intercept_ : float or ndarray
        With several components (components,) float64.
    certificate_ …
        See ``APSVMClassifier``.

    Examples
    --------
    With scikit-learn's metadata routing, query ids are passed with the rows of each fold:

    >>> import numpy as np
    >>> import sklearn
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> from apsvm import APSVMRanker
    >>> rng = np.random.default_rng(0)
    >>> qid = np.repeat(np.arange(30), 20)
    >>> X = rng.normal(size=(600, 5))
    >>> y = np.clip(np.round(X[:, 0] + X[:, 1] + rng.normal(size=600)), 0, 4)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(APSVMRanker("ndcg", bound="hinge"), {"C": [1, 10, 100]}, cv=GroupKFold(3))
    ...     _ = search.fit(X, y, qid=qid, groups=qid)
    >>> search.best_params_
    {'C': 10}
    >>> print(f"NDCG {search.best_score_:.2f}")
    NDCG 0.83
    """

    loss: str | object = field(default="ndcg", kw_only=False)
    metric: str = "nDCG(exp)"
    relevant_from: float | None = None
