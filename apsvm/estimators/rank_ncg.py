"""RankNCG as a ranker: min λ/2 ‖w‖² + mean over the pairs of log(1 + e^{−(w·x_l − w·x_k)}) (``trainers.rank_ncg``)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from apsvm._support.registry import UnknownNameError
from apsvm._support.types import Column, JsonDict, Matrix
from apsvm.data.labels import Target
from apsvm.data.takes import Takes
from apsvm.estimators.linear import LinearEstimator
from apsvm.estimators.targets import GradeRanker
from apsvm.metrics.wilcoxon import WilcoxonMannWhitney
from apsvm.models.header import Header, Json
from apsvm.trainers.fitting import AUTO
from apsvm.trainers.rank_ncg.settings import NAMED_GRAPHS
from apsvm.trainers.rank_ncg.trainer import RankNCGTrainer as Trainer

#: Value of the setting ``graph`` if the parameter is a list of edges.
EDGES = "edges"


@dataclass(eq=False, repr=False, kw_only=True)
class RankNCG(GradeRanker, LinearEstimator):
    """Ranker that minimises the number of swapped pairs, query by query, in time linear in the rows: RankNCG (Raykar,
    Duraiswami, Krishnapuram 2008).

    y holds numbers. Rows with the same number are a class, and a higher class is more relevant. ``sample_weight``
    weighs rows, also with qid: a pair counts as the product of its two weights, which need not be whole numbers.

    Parameters
    ----------
    metric : str
        The metric that ``score`` returns: "WMW", the Wilcoxon-Mann-Whitney statistic (the share of the pairs of
        different y that the scores order alike, ties half), "WMW(adjacent)" …, "AP", "nDCG(exp)@10" …
        (``apsvm eval -m``).
    alpha : float
        Weight λ of ½‖w‖² against the loss.
    graph : str or iterable of pairs
        Preferred classes: "full", each to all lower ones; "adjacent", to the next lower one; "bipartite", to the
        lowest; or edges (i, j) of values of y, j preferred to i.
    n_classes : int, optional
        Cut a real y into this many classes, 1 the lowest; None: y as it is.
    cut : str
        Classes of equal "frequency" or equal "width".
    objective : str
        Loss of a pair: "logistic", or the paper's "erfc".
    summation : str
        Algorithm that sums over the pairs: "direct", "chebyshev", "fourier" (erfc only), or "auto", the faster exact
        one.
    accuracy : float
        For summation "fourier": the largest error of a sum, for each unit of weight.
    optimizer : str
        "lbfgs", or the paper's nonlinear conjugate gradients, "prcg".
    normalize : str
        "pairs": the loss is the mean over the pairs; "none": their sum, as in the paper.
    tol : float, optional
        Stop when the gradient's largest entry is at most tol times that at w = 0; None: 1e-5, for "fourier" 1e-3.
    features, scale, max_iter, time_limit, n_jobs, random_state, verbose
        See ``APSVMClassifier``; nothing is drawn.

    Attributes
    ----------
    objective_ : float
        Objective at coef_.
    classes_ : ndarray
        (k,) float64, the values of y; 1, 2 … if it was cut.
    cuts_ : ndarray or None
        (k − 1,) float64, where y was cut.
    coef_, intercept_, n_iter_ …
        See ``APSVMRanker``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_val_score
    >>> from apsvm import RankNCG
    >>> X, y = load_diabetes(return_X_y=True)
    >>> print(f"WMW {cross_val_score(RankNCG(n_classes=5), X, y).mean():.2f}")
    WMW 0.74
    """

    _trainer = Trainer
    _renamed = {"alpha": "regularisation", "n_classes": "classes", "tol": "tolerance", "max_iter": "max_iterations"}  # noqa: RUF012
    _remedy = "raise max_iter, time_limit or tol"

    metric: str = "WMW"
    alpha: float = 1e-3
    graph: str | Iterable[tuple[float, float]] = "full"
    n_classes: int | None = None
    cut: str = "frequency"
    objective: str = "logistic"
    summation: str = "auto"
    accuracy: float = 1e-3
    optimizer: str = "lbfgs"
    normalize: str = "pairs"
    scale: str = AUTO
    tol: float | None = None
    max_iter: int = 10_000

    def _values(self) -> JsonDict:
        if not isinstance(self.graph, str):
            return {**super()._values(), "graph": EDGES}
        if self.graph not in NAMED_GRAPHS:
            raise UnknownNameError(f"unknown graph {self.graph!r}: choose from {', '.join(NAMED_GRAPHS)}")
        return super()._values()

    def _plan(self) -> Trainer:
        return Trainer("wmw", self._settings(), edges=self._edges())

    def _edges(self) -> tuple[tuple[float, float], ...] | None:
        return None if isinstance(self.graph, str) else tuple((float(low), float(high)) for low, high in self.graph)

    def _read(self, X: Matrix, y: Column, takes: Takes) -> tuple[Matrix, Target]:
        X, target = super()._read(X, y, takes)
        self.classes_: NDArray[np.float64] = np.unique(target.judgements).astype(np.float64)
        return X, target

    def _header_of(self, header: Header, groups: NDArray[np.int64] | None) -> Header:
        """Records all edges, also those of classes without training rows."""
        edges = self._edges()
        if edges is None:
            return super()._header_of(header, groups)
        listed: list[Json] = [[low, high] for low, high in edges]
        details = {**header.details, "edges": listed}
        return super()._header_of(replace(header, metric=WilcoxonMannWhitney(edges).name, details=details), groups)

    def _restore(self, header: Header) -> None:
        super()._restore(header)
        listed, gradient, cuts = header.details.get("classes"), header.gradient, header.labels.cuts
        self.cuts_ = None if cuts is None else np.array(cuts)
        if cuts is not None:
            self.classes_ = np.arange(1.0, len(cuts) + 2.0)
        elif not hasattr(self, "classes_"):  # a header lists the first hundred only
            self.classes_ = np.array(listed if isinstance(listed, list) else [0.0, 1.0], dtype=np.float64)
        self.objective_ = math.nan if gradient is None else gradient.value
