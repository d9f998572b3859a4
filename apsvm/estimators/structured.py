"""The structured SVM as a classifier and as a ranker: min ½‖w‖² + C·risk(w), certified (``trainers.structured_svm``).

Why two: scikit-learn takes its classifiers' ``decision_function`` as scores of the second of two classes, and so does
all it has for imbalanced data (``scoring="average_precision"``, precision–recall displays, calibration). Grades are no
classes; for them there is the ranker, which is neither classifier nor regressor and whose ``predict`` are the scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_scalar
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight

from apsvm.estimators.base import (
    LinearEstimator,
    ScoresArePredictions,
    check_choices,
    check_features,
    check_known_features,
    check_number,
    logger,
    training,
)
from apsvm.estimators.measure import trained_measure
from apsvm.estimators.rows import Counted, Target, count_rows
from apsvm.losses import make_loss
from apsvm.losses.base import Loss, LossOverRankings
from apsvm.losses.break_even import BreakEven
from apsvm.losses.graded import GradedLoss
from apsvm.solvers.certificate import Certificate
from apsvm.solvers.qp import BACKENDS
from apsvm.solvers.state import State
from apsvm.trainers.approximate import train_approximate
from apsvm.trainers.default_c import default_C
from apsvm.trainers.stage import CUTTERS, Progress, Settings, Trained, TrainingSet, Watch
from apsvm.trainers.structured_svm import train_structured_svm

BOUNDS = ("hinge", "tight")
#: What a model's header tells of the certificate.
_BOUNDS = ("primal", "dual", "gap", "tolerance")


class _Structured(LinearEstimator):
    """What both have."""

    C_: float
    certificate_: Certificate
    exact_: bool
    hinge_objective_: float | None
    n_queries_: int
    n_queries_skipped_: int

    def __init__(
        self,
        loss: Any = "ap",
        *,
        C: float | Literal["auto"] = "auto",
        epsilon: float = 1e-3,
        oracle: str = "auto",
        keep_easy: float = 50.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        solver: str = "line-search",
        qp: str = "auto",
        bound: str = "hinge",
        max_iter: int = 10_000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.C = C
        self.epsilon = epsilon
        self.oracle = oracle
        self.keep_easy = keep_easy
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.qp = qp
        self.bound = bound
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train.

        Parameters
        ----------
        X : (n, d) numbers: an array, a scipy.sparse matrix (CSR is used in place), a data frame
        y : (n,) see the class
        qid : (n,) the query of each row, of any type that can be sorted, in any order; None: one query
        sample_weight : (n,) see the class

        Raises
        ------
        ValueError : input that does not fit, parameters that do not go together, nothing to rank
        FloatingPointError : feature values too large for the objective to be finite
        """
        loss = make_loss(self.loss)
        settings = self._settings(loss)
        X, target = self._checked_fit(X, y, loss)
        counted = self._counted(loss, len(target.relevant), qid, sample_weight, X)
        if self.oracle == "appx":
            self._refuse_for_appx(counted)
        target_counted = target.of(counted.members)
        self._require_both(target_counted)
        bias = float(self.intercept_scaling) if self._trains_level(loss) else None
        data = TrainingSet(
            self._rows(X, bias=bias).select(counted.members),
            target_counted.relevant,
            counted.groups,
            counted.costs,
            counted.query_weights,
            target_counted.grades,
        )
        settings = replace(settings, C=default_C(data, loss, self.bound) if self.C == "auto" else float(self.C))
        with training(self.verbose):
            watch = Watch(progress=_tell)
            if self.oracle == "appx":
                trained = train_approximate(data, settings, float(self.keep_easy), watch)
            else:
                trained = train_structured_svm(data, settings, watch, self._start(X.shape[1], bias))
        self.C_ = settings.C
        self._take(trained, X.shape[1], bias)
        if self.fit_intercept and not self._trains_level(loss):
            scores = data.rows.scores(trained.w)
            self._set_weights(trained.w, self._free_intercept(scores, target_counted.relevant))
        if trained.state is not State.CONVERGED:
            bounds = self.certificate_
            self._warn(
                f"{trained.state}, gap {bounds.gap:.3g} > {bounds.tolerance:.3g} asked for; raise max_iter, time_limit "
                "or epsilon"
            )
        return self

    def score(
        self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """The metric trained for: AP for loss "ap", NDCG for "ndcg" (of the same gains), accuracy for "zero-one" …; a
        loss without a metric: 1 − Δ. The mean over the queries that have something to rank, arguments as in ``fit``."""
        loss = make_loss(self.loss)
        X, target = self._checked_score(X, y, loss)
        counted = self._counted(loss, len(target.relevant), qid, sample_weight, X)
        return trained_measure(loss, self._scores(self._rows(X)), target, counted)

    if TYPE_CHECKING:  # scikit-learn makes these two from the signatures

        def set_fit_request(
            self, *, qid: bool | str | None = "$UNCHANGED$", sample_weight: bool | str | None = "$UNCHANGED$"
        ) -> Self: ...

        def set_score_request(
            self, *, qid: bool | str | None = "$UNCHANGED$", sample_weight: bool | str | None = "$UNCHANGED$"
        ) -> Self: ...

    # What the two differ in.

    def _checked_fit(self, X: Any, y: Any, loss: Loss) -> tuple[Any, Target]:
        raise NotImplementedError

    def _checked_score(self, X: Any, y: Any, loss: Loss) -> tuple[Any, Target]:
        raise NotImplementedError

    def _require_both(self, target: Target) -> None:
        """Raises ValueError if the rows that count are all alike."""
        raise NotImplementedError

    def _free_intercept(self, scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> float:
        """The constant where the loss does not depend on it."""
        return 0.0

    # What they share.

    def _settings(self, loss: Loss) -> Settings:
        if not isinstance(self.C, str):
            check_number(self, "C", min_val=0, include_boundaries="neither")
        elif self.C != "auto":
            raise ValueError(f"C is a number > 0 or 'auto', found {self.C!r}")
        for name in ("epsilon", "intercept_scaling"):
            check_number(self, name, min_val=0, include_boundaries="neither")
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_number(self, "keep_easy", min_val=0, max_val=100)
        if self.time_limit is not None:
            check_number(self, "time_limit", min_val=0)
        check_choices(self, solver=tuple(CUTTERS), qp=tuple(BACKENDS), bound=BOUNDS)
        return Settings(
            loss=loss,
            oracle="auto" if self.oracle == "appx" else self.oracle,
            epsilon=float(self.epsilon),
            max_iterations=int(self.max_iter),
            time_limit=None if self.time_limit is None else float(self.time_limit),
            qp=self.qp,
            solver=self.solver,
            bound=self.bound,
        )

    def _refuse_for_appx(self, counted: Counted) -> None:
        if counted.query_weights is not None:
            raise ValueError("oracle 'appx' knows no weights of queries: leave out sample_weight or choose 'auto'")
        if self.warm_start:
            raise ValueError("oracle 'appx' starts from its own binary SVM: warm_start does not apply")

    def _counted(self, loss: Loss, n_rows: int, qid: Any, sample_weight: Any, X: Any) -> Counted:
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            if not sample_weight.any():
                raise ValueError("all sample weights are zero")
        return count_rows(n_rows, qid, sample_weight, by_query=loss.by_query)

    def _trains_level(self, loss: Loss) -> bool:
        """Whether the scores' level means something to the loss (or, with "appx", to its first stage)."""
        free = isinstance(loss, LossOverRankings | BreakEven) and self.oracle != "appx"
        return bool(self.fit_intercept) and not free

    def _start(self, width: int, bias: float | None) -> NDArray[np.float64] | None:
        coef = self._warm_coef(width)
        if coef is None or bias is None:
            return coef
        return np.append(coef, np.ravel(self.intercept_)[0] / bias)

    def _take(self, trained: Trained, width: int, bias: float | None) -> None:
        self._set_weights(trained.w[:width].copy(), 0.0 if bias is None else bias * float(trained.w[width]))
        self.certificate_ = trained.solution.certificate
        self.exact_ = trained.exact
        self.n_iter_ = sum(stage.solution.iterations for stage in trained.stages)
        self.hinge_objective_ = trained.hinge_objective
        self.n_queries_, self.n_queries_skipped_ = trained.queries, trained.queries_skipped
        self._state = str(trained.state)
        self._oracles = " then ".join(stage.oracle for stage in trained.stages)

    def _header(self) -> dict[str, Any]:
        bounds = self.certificate_
        appx = self.oracle == "appx"
        return {
            "loss": make_loss(self.loss).name,
            "oracle": self._oracles,
            "C": None if np.isnan(self.C_) else self.C_,
            "C_of_default": 1.0 if self.C == "auto" else None,
            "epsilon": float(self.epsilon),
            "keep_easy": float(self.keep_easy) if appx else None,
            "solver": self.solver,
            "bias": float(self.intercept_scaling) if self.fit_intercept else -1.0,
            "seed": int(self.random_state) if isinstance(self.random_state, Integral) else 0,
            "state": self._state,
            "iterations": self.n_iter_,
            "bound": self.bound,
            "exact": self.exact_,
            "hinge_objective": self.hinge_objective_,
            "certificate": None if np.isnan(bounds.primal) else {name: getattr(bounds, name) for name in _BOUNDS},
            "data": {"queries": self.n_queries_, "queries_skipped": self.n_queries_skipped_},
        }

    @classmethod
    def _parameters(cls, header: Mapping[str, Any]) -> dict[str, Any]:
        make_loss(header["loss"])
        found = {
            name: header[name] for name in ("loss", "C", "epsilon", "solver", "bound") if header.get(name) is not None
        }
        oracle = header.get("oracle", "auto")
        found["oracle"] = "appx" if " then " in oracle else oracle
        if header.get("keep_easy") is not None:
            found["keep_easy"] = header["keep_easy"]
        if header.get("seed"):
            found["random_state"] = header["seed"]
        bias = header.get("bias", -1.0)
        found["fit_intercept"] = bias > 0 or header.get("intercept", 0.0) != 0.0
        if bias > 0:
            found["intercept_scaling"] = bias
        return found

    def _recall(self, header: Mapping[str, Any]) -> None:
        self.C_ = float(header.get("C", np.nan))
        self._state = header.get("state", "unknown")
        self._oracles = header.get("oracle", "unknown")
        self.exact_ = bool(header.get("exact", False))
        self.hinge_objective_ = header.get("hinge_objective")
        data = header.get("data", {})
        self.n_queries_, self.n_queries_skipped_ = data.get("queries", 1), data.get("queries_skipped", 0)
        self.n_iter_ = header.get("iterations", 0)
        bounds = header.get("certificate") or {}
        self.certificate_ = Certificate(*(bounds.get(name, np.nan) for name in ("primal", "dual", "tolerance")))


class APSVMClassifier(ClassifierMixin, _Structured):  # type: ignore[misc]
    """Two classes, told apart so that a ranking metric of the scores is best: the structured SVM.

    y holds two values of any type; the second in sorted order is positive, as everywhere in scikit-learn. For rows of
    one value against all others give ``y == value``; ``sklearn.multiclass.OneVsRestClassifier`` does it for each value.

    Parameters
    ----------
    loss : what is optimised: a name of ``apsvm train --loss`` ("ap", "auc", "ndcg", "ndcg@10", "mrr", "p@10",
        "rbp(0.8)", "f1", "zero-one" …), "package.module:Name", or an object or class with ``weights(n_pos)`` and a
        convex ``discount(n)``
    C : weight of the risk, a number between 0 and about 1, against ½‖w‖². What fits depends on the features' scale:
        "auto" is told from it (``trainers.default_c``)
    epsilon : the gap asked for is epsilon·C; in units of the loss
    oracle : how the most violated ranking is found; all but "appx" give the same model
    keep_easy : for oracle "appx": the percentage of the binary SVM's easy rows that stay easy
    fit_intercept, intercept_scaling : whether there is a constant. No ranking depends on it, so that a loss over
        rankings leaves its choice free, and the classifier chooses it: as many training rows score above 0 as are
        positive. Other losses ("zero-one", "f1" …) train it, as the weight of a feature of value intercept_scaling.
    solver : where planes are taken, "line-search" or, as in the papers, "cutting-plane"
    qp : solver of the working-set QP: "auto", "active-set" or "cvxpy"
    bound : what bounds the loss from above: the convex "hinge", or the "tight" ramp, from the hinge's minimiser to a
        stationary point, for losses over rankings
    max_iter : iterations for each stage of the training
    time_limit : seconds of training, or None
    n_jobs : threads, None: 1, -1: as many as there are cores; the result does not depend on it
    warm_start : whether a fit starts from the weights of the one before
    random_state : the exact trainers draw nothing; an integer is written into the model's file
    verbose : 1 shows each iteration on standard error (the logger "apsvm")

    Attributes
    ----------
    classes_ : (2,) the two values
    coef_ : (1, n_features_in_) float64; intercept_ : (1,) float64
    n_iter_ : iterations
    C_ : the C trained with
    certificate_ : ``primal`` ≥ the optimum ≥ ``dual``, their ``gap``, the ``tolerance`` asked for, ``reached``;
        for bound "tight" of the convex majorant at the stationary point
    exact_ : False where the problem solved only approximates the loss's (oracle "appx")
    hinge_objective_ : for bound "tight", the hinge's optimum to 30·epsilon·C; else None
    n_queries_, n_queries_skipped_ : queries that were trained on, and those without anything to rank
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Rows and weights: rows of one ``qid`` are one ranking, and the risk is the mean over the rankings; without it all
    rows are one. ``sample_weight`` with qid is the query's weight in the mean, the same for all its rows. Without, a
    row of weight k counts as the row k times, and weights are whole numbers; loss "zero-one" takes any for its rows.

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
    AP 0.992
    >>> model.fit(X, y)[-1].certificate_.reached
    True
    """

    classes_: NDArray[Any]

    score = _Structured.score  # ClassifierMixin's is the accuracy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row of X (n, d): (n,); the second of ``classes_`` where the score is above 0."""
        positive = self.decision_function(X) > 0.0
        return self.classes_[positive.astype(np.intp)]

    def _checked_fit(self, X: Any, y: Any, loss: Loss) -> tuple[Any, Target]:
        X, y = check_features(self, X, y)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}. For one class against "
                "the others give y == label; for grades there is APSVMRanker"
            )
        self.classes_ = np.unique(y)
        return X, self._target(y)

    def _checked_score(self, X: Any, y: Any, loss: Loss) -> tuple[Any, Target]:
        X, y = check_known_features(self, X, y)
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise ValueError(f"expected labels of {self.classes_.tolist()}, found {y[unknown].tolist()[0]!r}")
        return X, self._target(y)

    def _target(self, y: NDArray[Any]) -> Target:
        return Target(y == self.classes_[-1])

    def _require_both(self, target: Target) -> None:
        if target.relevant.all() or not target.relevant.any():
            raise ValueError("expected rows of both classes, found one class only")

    def _free_intercept(self, scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> float:
        return break_even_intercept(scores, relevant)

    def _set_weights(self, coef: NDArray[np.float64], intercept: float) -> None:
        self.coef_, self.intercept_ = coef.reshape(1, -1), np.array([intercept])

    def _header(self) -> dict[str, Any]:
        labels = self.classes_.tolist()
        numbers = self.classes_.dtype.kind in "biuf"
        plain = numbers and labels in ([-1, 1], [0, 1])
        return {
            **super()._header(),
            "classes": [str(label) if not numbers else label for label in labels],
            "positive_label": float(labels[1]) if numbers and not plain else None,
        }

    def _recall(self, header: Mapping[str, Any]) -> None:
        super()._recall(header)
        labels = header.get("labels", {})
        pair = [*labels.get("negative", []), labels.get("positive", 1.0)]
        if "classes" in header:
            self.classes_ = np.array(header["classes"])
        elif len(pair) == 2 and pair[0] < pair[1]:
            self.classes_ = np.array(pair)
        else:
            self.classes_ = np.array([0, 1])


class APSVMRanker(_Structured, ScoresArePredictions):
    """Rows ordered by their grades, query by query, so that a ranking metric is best: the structured SVM.

    y holds numbers. A loss that takes grades ("ndcg", "ndcg@10" …) uses them, those below 0 as 0; to any other the
    rows above 0 are relevant and the rest is not, or with ``relevant_from`` those of this grade and above.

    Parameters
    ----------
    relevant_from : the lowest grade that is relevant; the loss then knows only relevant rows and others
    loss, C … : as of ``APSVMClassifier``, but that the constant of a loss over rankings is 0

    Attributes
    ----------
    coef_ : (n_features_in_,) float64; intercept_ : float
    certificate_ … : as of ``APSVMClassifier``

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
    ...     search = GridSearchCV(APSVMRanker("ndcg"), {"C": [1, 10, 100]}, cv=GroupKFold(3))
    ...     _ = search.fit(X, y, qid=qid, groups=qid)
    >>> search.best_params_
    {'C': 10}
    >>> print(f"NDCG {search.best_score_:.2f}")
    NDCG 0.83
    """

    def __init__(
        self,
        loss: Any = "ndcg",
        *,
        relevant_from: float | None = None,
        C: float | Literal["auto"] = "auto",
        epsilon: float = 1e-3,
        oracle: str = "auto",
        keep_easy: float = 50.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        solver: str = "line-search",
        qp: str = "auto",
        bound: str = "hinge",
        max_iter: int = 10_000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            loss,
            C=C,
            epsilon=epsilon,
            oracle=oracle,
            keep_easy=keep_easy,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            solver=solver,
            qp=qp,
            bound=bound,
            max_iter=max_iter,
            time_limit=time_limit,
            n_jobs=n_jobs,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
        self.relevant_from = relevant_from

    def _checked_fit(self, X: Any, y: Any, loss: Loss) -> tuple[Any, Target]:
        X, y = check_features(self, X, y, y_numeric=True, ensure_min_samples=2)
        return X, self._target(y, loss)

    def _checked_score(self, X: Any, y: Any, loss: Loss) -> tuple[Any, Target]:
        X, y = check_known_features(self, X, y, y_numeric=True)
        return X, self._target(y, loss)

    def _target(self, y: NDArray[Any], loss: Loss) -> Target:
        grades = y.astype(np.float64)
        if self.relevant_from is not None:
            return Target(grades >= check_number(self, "relevant_from"))
        graded = isinstance(loss, GradedLoss) and self.oracle != "appx"
        return Target(grades > 0.0, grades if graded else None)

    def _require_both(self, target: Target) -> None:
        if target.grades is None and (target.relevant.all() or not target.relevant.any()):
            what = "above 0" if self.relevant_from is None else f"of {self.relevant_from:g} and above"
            raise ValueError(
                f"expected relevant rows, of grades {what}, and others; found {int(target.relevant.sum())} of "
                f"{target.relevant.size} relevant. relevant_from says where the line is"
            )

    def _header(self) -> dict[str, Any]:
        return {**super()._header(), "relevant_from": None if self.relevant_from is None else float(self.relevant_from)}

    @classmethod
    def _parameters(cls, header: Mapping[str, Any]) -> dict[str, Any]:
        return {**super()._parameters(header), "relevant_from": header.get("relevant_from")}


def break_even_intercept(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> float:
    """The constant that puts as many of the ``scores`` (n,) above 0 as are ``relevant`` (n,), both classes being there:
    precision equals recall. Halfway between two scores; if they are equal, both are then at 0.

    >>> break_even_intercept(np.array([1.0, 5.0, 3.0]), np.array([False, True, True]))
    -2.0
    """
    last_above = scores.size - int(relevant.sum())
    lower, upper = np.partition(scores, [last_above - 1, last_above])[last_above - 1 : last_above + 1]
    return -float(lower + (upper - lower) / 2.0)


def _tell(progress: Progress) -> None:
    logger.info(
        "%s C=%g iteration %d: primal %.7g, dual %.7g, gap %.3g, %d planes, %.2f s",
        progress.stage,
        progress.C,
        progress.iteration,
        progress.primal,
        progress.dual,
        progress.gap,
        progress.planes,
        progress.seconds,
    )
