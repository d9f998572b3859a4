"""RankNCG as a ranker: min λ/2 ‖w‖² + mean over the pairs of log(1 + e^{−(w·x_l − w·x_k)}) (``trainers.rank_ncg``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from apsvm.estimators.base import (
    ScoresArePredictions,
    check_choices,
    check_features,
    check_known_features,
    check_number,
    logger,
    training,
)
from apsvm.estimators.rows import number_queries
from apsvm.metrics.evaluate import evaluate
from apsvm.metrics.wilcoxon import WilcoxonMannWhitney
from apsvm.solvers.smooth import SEARCHES, SmoothIteration
from apsvm.solvers.state import State
from apsvm.trainers.pair_loss import NORMALIZATIONS, OBJECTIVES, SUMMATIONS
from apsvm.trainers.preferences import (
    GRAPHS,
    Classes,
    GraphError,
    PreferenceGraph,
    classes_by_label,
    cut_into_classes,
    from_edges,
)
from apsvm.trainers.rank_ncg import Settings, Trained, TrainingSet, Watch, train_rank_ncg

CUTS = ("frequency", "width")
#: Classes listed in a model's header: real targets may be as many as rows.
MOST_LISTED = 100


class RankNCG(ScoresArePredictions):
    """Rows ordered by their classes, query by query, so that few pairs are swapped: RankNCG (Raykar, Duraiswami,
    Krishnapuram 2008), in time linear in the rows.

    y holds numbers; rows of one number are a class, and the higher class is the more relevant.

    Parameters
    ----------
    alpha : λ, weight of ½‖w‖² beside the loss
    graph : which class is preferred to which: "full", every one to all lower ones; "adjacent", to the next lower one;
        "bipartite", to the lowest; or edges (i, j), values of y, j preferred to i
    n_classes, cut : cut a real y into so many classes of equal "frequency" or "width", 1 the lowest; None: as they are
    objective : what a pair costs: "logistic", or the paper's "erfc"
    summation : how pairs are summed: "direct", "chebyshev", "fourier" (erfc only), or "auto", the faster exact one
    accuracy : for summation "fourier": the largest error of a sum, for each unit of weight
    optimizer : "lbfgs", or the paper's nonlinear conjugate gradients "prcg"
    normalize : the loss is the mean over the "pairs", or as in the paper their sum, "none"
    tol : stop when the gradient's largest entry is at most tol of that at w = 0; None: 1e-5, for "fourier" 1e-3
    max_iter, time_limit : iterations; seconds or None
    n_jobs : threads, None: 1, -1: as many as there are cores; the result does not depend on it
    warm_start : whether a fit starts from the weights of the one before
    random_state : nothing is drawn
    verbose : 1 shows each iteration on standard error (the logger "apsvm")

    Attributes
    ----------
    coef_ : (n_features_in_,) float64; intercept_ : 0.0, on which no ranking depends
    objective_, gradient_norm_ : at coef_; n_iter_ : iterations
    n_pairs_, n_queries_ : that were trained on; n_queries_skipped_ : queries without a pair
    classes_ : the classes' values of y, or 1 … where it was cut; cuts_ : where, or None
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from apsvm import RankNCG
    >>> X, y = load_diabetes(return_X_y=True)
    >>> print(f"WMW {cross_val_score(RankNCG(n_classes=5), X, y).mean():.2f}")
    WMW 0.78
    """

    classes_: NDArray[np.float64]
    cuts_: NDArray[np.float64] | None
    objective_: float
    gradient_norm_: float
    n_pairs_: int
    n_queries_: int
    n_queries_skipped_: int

    def __init__(
        self,
        *,
        alpha: float = 1e-3,
        graph: str | Iterable[tuple[float, float]] = "full",
        n_classes: int | None = None,
        cut: str = "frequency",
        objective: str = "logistic",
        summation: str = "auto",
        accuracy: float = 1e-3,
        optimizer: str = "lbfgs",
        normalize: str = "pairs",
        tol: float | None = None,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.graph = graph
        self.n_classes = n_classes
        self.cut = cut
        self.objective = objective
        self.summation = summation
        self.accuracy = accuracy
        self.optimizer = optimizer
        self.normalize = normalize
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Train.

        Parameters
        ----------
        X : (n, d) numbers: an array, a scipy.sparse matrix (CSR is used in place), a data frame
        y : (n,) numbers
        qid : (n,) the query of each row, of any type that can be sorted, in any order: only rows of one query are
            compared; None: one query

        Raises
        ------
        ValueError : input that does not fit, parameters that do not go together, no pair
        FloatingPointError : feature values too large for the objective to be finite
        """
        settings = self._settings()
        X, labels = check_features(self, X, y, y_numeric=True, ensure_min_samples=2)
        groups = None if qid is None else number_queries(qid, labels.size)
        classes = self._classes(labels.astype(np.float64))
        graph = self._graph(classes.names)
        start = self._warm_coef(X.shape[1])
        with training(self.verbose):
            watch = Watch(progress=_tell)
            trained = train_rank_ncg(TrainingSet(self._rows(X), classes, graph, groups), settings, watch, start)
        self._take(trained, classes)
        if trained.state is not State.CONVERGED:
            self._warn(
                f"{trained.state}, gradient {self.gradient_norm_:.3g} > {trained.solution.asked:.3g} asked for; raise "
                "max_iter, time_limit or tol"
            )
        return self

    def score(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """The Wilcoxon-Mann-Whitney statistic: of the pairs that the graph orders, the share in that order, ties half;
        the mean over the queries that have any. Classes beyond those of the training count where the graph says."""
        X, labels = check_known_features(self, X, y, y_numeric=True)
        labels = labels.astype(np.float64)
        if self.cuts_ is not None:
            labels = np.searchsorted(self.cuts_, labels, side="right") + 1.0
        metric = WilcoxonMannWhitney(self.graph if isinstance(self.graph, str) else tuple(self._edges()))
        groups = None if qid is None else number_queries(qid, labels.size)
        above_lowest = np.nextafter(self.classes_[0], np.inf)
        found = evaluate([metric], self._scores(self._rows(X)), labels, groups, relevant_from=above_lowest)
        return found.values[metric.name]

    if TYPE_CHECKING:  # scikit-learn makes these two from the signatures

        def set_fit_request(self, *, qid: bool | str | None = "$UNCHANGED$") -> Self: ...

        def set_score_request(self, *, qid: bool | str | None = "$UNCHANGED$") -> Self: ...

    def _settings(self) -> Settings:
        check_choices(
            self,
            objective=OBJECTIVES,
            summation=SUMMATIONS,
            normalize=NORMALIZATIONS,
            optimizer=tuple(SEARCHES),
            cut=CUTS,
        )
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        if self.n_classes is not None:
            check_scalar(self.n_classes, "n_classes", Integral, min_val=2)
        return Settings(
            objective=self.objective,
            summation=self.summation,
            optimizer=self.optimizer,
            normalize=self.normalize,
            regularisation=check_number(self, "alpha", min_val=0),
            tolerance=None if self.tol is None else check_number(self, "tol", min_val=0),
            accuracy=check_number(self, "accuracy", min_val=1e-14, max_val=0.5),
            max_iterations=int(self.max_iter),
            time_limit=None if self.time_limit is None else check_number(self, "time_limit", min_val=0),
        )

    def _classes(self, y: NDArray[np.float64]) -> Classes:
        return classes_by_label(y) if self.n_classes is None else cut_into_classes(y, int(self.n_classes), self.cut)

    def _edges(self) -> list[tuple[float, float]]:
        assert not isinstance(self.graph, str)
        return [(float(low), float(high)) for low, high in self.graph]

    def _graph(self, names: NDArray[np.float64]) -> PreferenceGraph:
        if isinstance(self.graph, str):
            check_choices(self, graph=tuple(GRAPHS))
            return GRAPHS[self.graph](names.size)
        number_of = {float(name): number for number, name in enumerate(names)}
        edges = self._edges()
        for edge in edges:
            if edge[0] == edge[1]:
                raise GraphError(f"graph: a class cannot be preferred to itself: {edge}")
        # A fold may lack a class.
        there = {(number_of[low], number_of[high]) for low, high in edges if low in number_of and high in number_of}
        return from_edges(names.size, there)

    def _take(self, trained: Trained, classes: Classes) -> None:
        self._set_weights(trained.w, 0.0)
        self.classes_, self.cuts_ = classes.names, classes.cuts
        self.objective_ = trained.solution.objective
        self.gradient_norm_ = trained.solution.gradient_norm
        self.n_iter_ = trained.solution.iterations
        self.n_pairs_ = trained.pairs
        self.n_queries_, self.n_queries_skipped_ = trained.queries, trained.queries_skipped
        self._state = str(trained.state)

    def _header(self) -> dict[str, Any]:
        settings = self._settings()
        named = isinstance(self.graph, str)
        return {
            "loss": "wmw",
            "objective": self.objective,
            "summation": self.summation,
            "accuracy": settings.accuracy if self.summation == "fourier" else None,
            "optimizer": self.optimizer,
            "tolerance": settings.tolerance_used,
            "lambda": settings.regularisation,
            "normalize": self.normalize,
            "graph": {"name": self.graph if named else "edges", "edges": None if named else self._edges()},
            "classes": {
                "count": int(self.classes_.size),
                "labels": self.classes_[:MOST_LISTED].tolist(),
                "cuts": None if self.cuts_ is None else self.cuts_.tolist(),
            },
            "state": self._state,
            "iterations": self.n_iter_,
            "result": {"value": self.objective_, "gradient_norm": self.gradient_norm_},
            "data": {"pairs": self.n_pairs_, "queries": self.n_queries_, "queries_skipped": self.n_queries_skipped_},
        }

    @classmethod
    def _parameters(cls, header: Mapping[str, Any]) -> dict[str, Any]:
        if header["loss"] != "wmw":
            raise ValueError(f"a model of loss {header['loss']!r} is none of RankNCG's, whose loss is 'wmw'")
        found = {name: header[name] for name in ("objective", "summation", "optimizer", "normalize") if name in header}
        for name, key in (("alpha", "lambda"), ("tol", "tolerance"), ("accuracy", "accuracy")):
            if header.get(key) is not None:
                found[name] = header[key]
        graph = header.get("graph", {})
        if graph.get("edges") is not None:
            found["graph"] = [tuple(edge) for edge in graph["edges"]]
        elif graph.get("name") in GRAPHS:
            found["graph"] = graph["name"]
        classes = header.get("classes", {})
        if classes.get("cuts") is not None:
            found["n_classes"] = classes["count"]
        return found

    def _recall(self, header: Mapping[str, Any]) -> None:
        self._state = header.get("state", "unknown")
        classes, result, data = (header.get(name, {}) for name in ("classes", "result", "data"))
        self.classes_ = np.array(classes.get("labels", [0.0, 1.0]), dtype=np.float64)
        cuts = classes.get("cuts")
        self.cuts_ = None if cuts is None else np.array(cuts, dtype=np.float64)
        self.objective_ = result.get("value", np.nan)
        self.gradient_norm_ = result.get("gradient_norm", np.nan)
        self.n_pairs_ = data.get("pairs", 0)
        self.n_queries_, self.n_queries_skipped_ = data.get("queries", 1), data.get("queries_skipped", 0)


def _tell(iteration: SmoothIteration) -> None:
    logger.info(
        "iteration %d: objective %s, gradient %.4g, %d evaluations, %.2f s",
        iteration.index,
        "not computed" if iteration.objective is None else f"{iteration.objective:.7g}",
        iteration.gradient_norm,
        iteration.evaluations,
        iteration.seconds,
    )
