"""The structured SVM as a classifier and as a ranker: ½‖w‖² + C·risk(w), certified (``trainers.structured_svm``).

A header's words are never imported: where it names a loss that is not this package's, the parameter ``loss`` is None,
and the estimator scores, but trains again only with the loss itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from apsvm._support.naming import OBJECTIVES
from apsvm._support.types import Column
from apsvm.data.labels import Target
from apsvm.estimators.base import LinearEstimator
from apsvm.estimators.decisions import decided, decision_rule, least_errors_line
from apsvm.estimators.fitted import loaded
from apsvm.estimators.kinds import RankerOfNumbers, TwoClasses
from apsvm.estimators.parameters import check_number
from apsvm.models.averages import headers_of
from apsvm.models.base import Ranker
from apsvm.models.header import Bounds, Header, Threshold
from apsvm.selection.completion import training_scores
from apsvm.selection.decision import DecisionRule
from apsvm.selection.thresholds import with_f1_threshold
from apsvm.trainers import unknown_loss
from apsvm.trainers.base import AnyTrainer, Outcome, TrainingSet
from apsvm.trainers.fitting import AUTO, Fit
from apsvm.trainers.settings import Range
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer
from apsvm.trainers.summary import chosen

#: Of the binary SVM that the two-stage approximation begins with by default.
APPX_CONSTANT = 1.0
#: Where a model tells nothing of its certificate.
_UNKNOWN = Bounds(primal=math.nan, dual=math.nan, gap=math.nan, tolerance=math.nan, exact=False)


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
    components: int = 1
    scale: str = AUTO
    pool: str | None = None
    latent: bool = False
    start: str = "anneal"
    max_iter: int = 10_000

    @classmethod
    def from_model(cls, model: Ranker | str | os.PathLike[str], loss: str | object = None) -> Self:
        """An estimator that scores as ``model`` (``apsvm.load_model``, or its file) does, with its parameters as far as
        its header tells them.

        Parameters
        ----------
        loss : str or object
            What it was trained on, where that is a loss of your own: a header names it, and nothing that a
            file names is imported. Without it such an estimator scores, but is not trained again.

        Raises
        ------
        ValueError
            This class does not train such models.
        """
        model = loaded(model)
        name = model.header.loss
        is_known = ":" not in name and cls._trainer.serves(name)
        return cls._of_model(model, {"loss": loss or (name if is_known else None)})

    def _plan(self) -> AnyTrainer:
        return self._trainer(self._known_loss(), self._settings())

    def _known_loss(self) -> str | object:
        """The parameter ``loss``, checked."""
        loss = self.loss
        if loss is None:
            way = f"{type(self).__name__}.from_model(model, loss=…)"
            raise ValueError(f"loss is None: to train again, pass that of the model, as {way}")
        if not isinstance(loss, str):
            return loss
        loss = loss if ":" in loss else loss.strip().lower()
        if loss in OBJECTIVES or not self._trainer.serves(loss):
            raise unknown_loss(loss, self._trainer.losses)
        return loss

    def _trained_constant(self, plan: AnyTrainer) -> float | Literal["auto"] | None:
        """Constant feature if the loss depends on the level of the scores (with "appx", its first stage), else None."""
        assert isinstance(plan, StructuredSVMTrainer)
        value = self.intercept_scaling
        if isinstance(value, str):
            if value != AUTO:
                raise ValueError(f"intercept_scaling is a number > 0 or 'auto', found {value!r}")
            constant: float | Literal["auto"] = APPX_CONSTANT if plan.approximates else AUTO
            wanted = plan.capabilities.constant
        else:
            constant = check_number("intercept_scaling", value, Range(0.0, open_low=True))
            wanted = plan.loss.depends_on_level
        return constant if self.fit_intercept and (wanted or plan.approximates) else None

    def _header_of(self, header: Header, groups: NDArray[np.int64] | None) -> Header:
        details = {**header.details, "fit_intercept": bool(self.fit_intercept)}
        return super()._header_of(replace(header, details=details), groups)

    def _recall(self, header: Header) -> None:
        super()._recall(header)
        self.C_ = math.nan if header.C is None else header.C
        each = headers_of(header) or [header]
        self.certificates_ = {one.features.map: one.certificate or _UNKNOWN for one in each}
        self.certificate_ = next(iter(self.certificates_.values()))
        self.exact_ = all(one.exact for one in self.certificates_.values())
        self.hinge_objective_ = self.certificate_.hinge_objective
        found = list(chosen(header, header.metric)) or [f"bound {self.certificate_.bound}, C = {self.C_:.6g}"]
        self.choice_ = "; ".join([f"features {header.features.map}", *found])


@dataclass(eq=False, repr=False, kw_only=True)
class APSVMClassifier(TwoClasses, _Structured):
    """Classifier of two classes by a structured SVM: it minimises a ranking loss of the scores.

    y holds two values of any type. The second in sorted order is positive, as everywhere in scikit-learn, unless
    ``pos_label`` names the other: a ranking loss is about the positive class. Where the second of two names is the more
    frequent one, a warning says so. For one value against all others pass ``y == value``, or use
    ``sklearn.multiclass.OneVsRestClassifier``.

    Rows of one ``qid`` are one ranking, and the risk is the mean over the rankings; without ``qid`` all rows are one.
    With ``qid``, ``sample_weight`` is the weight of the row's query in the mean. Without, a row of weight k counts as k
    rows, and weights are whole numbers. Only loss "zero-one" takes fractions: with weights of single positives, the
    most violated ranking need not have them in the order of their scores, on which every exact algorithm rests.

    Parameters
    ----------
    loss
        The loss to minimise: a name of ``apsvm train --loss`` ("ap", "auc", "ndcg", "ndcg@10", "mrr", "p@10",
        "rbp(0.8)", "f1", "zero-one" …), "package.module:Name", or an object or class with ``weights(n_pos)`` and a
        convex ``discount(n)``.
    metric
        The metric that ``score`` returns and searches compare, whatever the loss: "AP", "AUC", "P@100", "nDCG(exp)@10",
        "F1", "accuracy" … (``apsvm eval -m``).
    pos_label
        The positive value of y; None: the second in sorted order.
    class_weight
        "balanced", or a weight for each value of y. No ranking depends on it: it moves the constant to where the
        training rows on the wrong side weigh least. With loss "zero-one" it multiplies ``sample_weight``.
    C
        Weight of the risk against ½‖w‖². "auto" is derived from the scale of the features
        (``trainers.structured_svm.default_c``); "10x" is ten times that.
    epsilon
        The requested gap is epsilon·C; in units of the loss.
    oracle
        Algorithm that finds the most violated ranking; all but "appx" give the same model.
    keep_easy
        For oracle "appx": the percentage of the binary SVM's easy rows that stay easy.
    fit_intercept, intercept_scaling
        True to fit a constant. A loss over rankings does not depend on it: it is the negative ``threshold``. Losses
        that read the sign of a score ("zero-one", "f1" …) train it as the weight of a feature of value
        intercept_scaling ("auto": ten times the geometric mean of the deviations, 1 for oracle "appx"). Without one,
        intercept_ is what the scaling subtracts.
    threshold
        Rule that sets the threshold of ``predict`` on held-out rows: "f1", "fpr=0.01", "precision=0.9", "recall=0.9" or
        "top=100" (``apsvm.metrics.thresholds``); None: "f1", on the training rows where none were held out.
    calibrate
        "isotonic", "platt" or "auto": ``predict_proba`` gives probabilities that are fitted to held-out rows; without
        ``threshold``, ``predict`` is then the likelier class.
    solver
        Where planes are taken, "line-search" or, as in the papers, "cutting-plane".
    qp
        Solver of the working-set QP: "auto", "active-set" or "cvxpy".
    bound
        Upper bound of the loss: the convex "hinge" of the papers, or the "tight" ramp, from the hinge's minimiser to a
        stationary point, for losses over rankings; "auto": the better one on held-out rows, with a few values of C
        each where C is "auto" (``selection.quick``).
    components
        The score is the highest of this many linear ones, for positives of several kinds.
    features
        Map of the features before they are weighed: "linear" (none), "logarithms" of long-tailed features beside them,
        "piecewise:4" (a broken line of 4 knots each), "rules:400:depth=5" (leaves of boosted trees), "products" of all
        pairs, "nystroem:300" (an RBF kernel by landmarks); "auto": rules where they rank held-out rows better,
        otherwise linear, with logarithms where columns of a data frame have long tails.
    scale
        Scaling of the columns: "standard", "maxabs", "l2" (each row to length 1) or "none"; "auto": standard for dense
        X, none for sparse X and for rules. coef_ is of columns as they are.
    pool
        "mean", or several of min, mean and max ("min,mean,max"): each bag of ``fit(X, y, bags=bags)`` becomes one row.
        ``score`` and ``bag_scores`` are of bags; to ``decision_function`` and ``predict`` each row is a bag of its own.
    latent
        Train on the bags of ``fit(X, y, bags=bags)`` by their best rows: a bag stands where its row of the highest
        score does. ``score`` and ``bag_scores`` are of bags.
    start
        Start of latent training: "anneal", "bag-means" or "random:N".
    max_iter
        Iterations of each stage of the training.
    time_limit
        Seconds of training, or None.
    n_jobs
        Threads, None: 1, -1: one for each core; the result does not depend on it.
    warm_start
        True to start a fit from the weights of the previous one.
    random_state
        Seed of the start of several components; nothing else is drawn. An integer is written into the model's file.
    verbose
        1 logs each iteration to standard error (the logger "apsvm").

    Attributes
    ----------
    classes_, pos_label_
        (2,) the two values, ascending, and the positive one.
    coef_, intercept_
        (1, n_features_in_) float64, or a weight for each column of feature_map_, and (1,) float64, of the second of
        classes_. Of several components (components, …) and (components,), of the positive class.
    feature_map_
        The map that was learned; None for "linear".
    choice_
        Features, bound and C in words, and what held-out rows said of them.
    n_iter_, C_
        Iterations, and the C trained with.
    certificate_
        ``primal`` ≥ the optimum ≥ ``dual``, their ``gap``, the ``tolerance``, ``reached``; with bound "tight" of the
        convex majorant at the stationary point. Of the average of columns and rules that of the ranker of columns.
    certificates_
        Certificates by feature map, two for an average.
    exact_, hinge_objective_
        False with oracle "appx"; with bound "tight" the hinge's optimum to 30·epsilon·C, else None.
    n_queries_, n_queries_skipped_
        Queries that were trained on, and those without anything to rank.
    feature_importances_
        (n_features_in_,) float64, adding up to 1: the deviation, over the training rows, of what each column of X adds
        to the scores. Not with "nystroem", pooled bags, or a model read from a file (see ``explain``).
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

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

    def _check(self, fit: Fit) -> None:
        self._rule()
        self._require_both(fit.target.of(fit.selection).relevant)

    def _rule(self) -> DecisionRule:
        return decision_rule(self.threshold, self.calibrate, fit_intercept=self.fit_intercept)

    def _decided(self, fit: Fit, data: TrainingSet, outcome: Outcome, header: Header) -> Header:
        relevant, rule = data.target.relevant, self._rule()
        if rule.asks and outcome.ranks:
            return decided(fit, outcome, header, rule)
        if not self.fit_intercept:
            is_loss = header.threshold is not None and header.threshold.rule == "loss"
            return header if is_loss else replace(header, threshold=None)
        scores = training_scores(outcome, data)
        if not self._moves_line():
            return with_f1_threshold(header, scores, relevant)
        line = least_errors_line(scores, relevant, self._class_weights(relevant))
        return replace(header, threshold=Threshold(value=line, rule="class weights"))

    def _moves_line(self) -> bool:
        """True if ``class_weight`` moves the constant; otherwise it multiplies row weights."""
        return self.class_weight is not None and self._plan().capabilities.queries

    def _class_weights(self, relevant: NDArray[np.bool_]) -> tuple[float, float]:
        """The weights of a negative and of a positive row (n,). Raises ValueError for an invalid parameter."""
        of_class, n, n_positive = self.class_weight, relevant.size, int(relevant.sum())
        if isinstance(of_class, Mapping):
            negative, positive = self._negative_first.tolist()
            if not set(of_class) <= {negative, positive} or not all(weight >= 0.0 for weight in of_class.values()):
                raise ValueError(f"class_weight has weights of {negative!r} and {positive!r}, found {dict(of_class)!r}")
            return float(of_class.get(negative, 1.0)), float(of_class.get(positive, 1.0))
        if of_class != "balanced":
            raise ValueError(f"class_weight is 'balanced', a weight for each value of y, or None, found {of_class!r}")
        return n / (2.0 * max(1, n - n_positive)), n / (2.0 * max(1, n_positive))

    def _weighted(self, plan: AnyTrainer, target: Target, sample_weight: Column) -> Column:
        if self.class_weight is None:
            return sample_weight
        negative, positive = self._class_weights(target.relevant)
        if self._moves_line():
            if self._rule().asks or not self.fit_intercept:
                raise ValueError(
                    f"class_weight moves the constant of loss={plan.loss_name!r}, as no order depends on it: it goes "
                    "with fit_intercept=True, and without threshold= and calibrate="
                )
            return sample_weight
        of_rows = np.where(target.relevant, positive, negative)
        return of_rows if sample_weight is None else of_rows * np.asarray(sample_weight)


@dataclass(eq=False, repr=False, kw_only=True)
class APSVMRanker(RankerOfNumbers, _Structured):
    """Ranker by grades, query by query, by a structured SVM: it minimises a ranking loss of the scores.

    y holds numbers. A loss that takes grades ("ndcg", "ndcg@10" …) uses them, those below 0 as 0. To any other loss the
    rows above 0 are relevant, or those from ``relevant_from`` on.

    Parameters
    ----------
    relevant_from
        The lowest relevant grade; the loss then knows only relevant rows and others.
    metric
        The metric that ``score`` returns and searches compare, whatever the loss. To a metric of two classes ("AP",
        "P@10") the rows above 0 are relevant, or those from ``relevant_from`` on.
    loss, C …
        See ``APSVMClassifier``; with a loss over rankings the constant is 0.

    Attributes
    ----------
    coef_, intercept_
        (n_features_in_,) float64, or a weight for each column of feature_map_, and a float; of several components
        (components, …) and (components,).
    certificate_ …
        See ``APSVMClassifier``.

    Examples
    --------
    Query ids go along with the rows of each fold where scikit-learn's metadata routing is on:

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

    def _check(self, fit: Fit) -> None:
        self._require_relevant(fit.target.of(fit.selection))
