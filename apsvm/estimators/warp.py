"""WARP as a ranker: the top of the list by stochastic sampling (``trainers.warp.descent``)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sklearn.utils import Tags

from apsvm._support.types import JsonDict
from apsvm.estimators.linear import LinearEstimator, QueriesOnly
from apsvm.estimators.targets import GradeRanker
from apsvm.models.header import Header
from apsvm.trainers.warp.trainer import WarpTrainer


@dataclass(eq=False, repr=False, kw_only=True)
class WARPRanker(QueriesOnly, GradeRanker, LinearEstimator):
    """Ranker by grades, query by query, that weighs errors at the top of the list most: WARP (Weston, Bengio, Usunier
    2010). It draws a positive, then negatives until one scores within a margin of 1 of it.

    y holds numbers: a row is positive against every row of its query with a lower grade. With ``relevant_from``, the
    rows of this grade and above are positive against the others.

    Parameters
    ----------
    metric : str
        The metric that ``score`` returns and searches compare, whatever tau; see ``APSVMRanker``.
    relevant_from : float, optional
        The lowest relevant grade; None: every grade counts.
    tau : str
        Loss of a positive with r negatives above it: "auc", r; "p@K", min(r, K); "harmonic", 1 + 1/2 + … + 1/r.
    rank_estimator : str
        Estimate of r from the number of trials: "plugin", "log-unbiased" (tau "harmonic"), or "exact", by scoring all
        negatives.
    max_trials : int, optional
        Maximum number of negatives drawn for a positive; None: the number of its negatives, at most 1000.
    rule : str
        Step sizes: "adagrad", "adadelta" or "sgd".
    learning_rate : float, optional
        Factor of the step sizes; None: 0.05, for "adadelta" 1.
    l2 : float
        Weight of ½‖w‖² against the loss.
    epochs : int
        Number of passes over the positives.
    n_jobs : int, optional
        Number of threads; None: 1; -1: one for each core. Several threads share the weights without locks: results vary
        from fit to fit.
    random_state : int, RandomState or None
        Seed of the draws.
    features, time_limit, verbose
        See ``APSVMClassifier``.

    Attributes
    ----------
    n_iter_ : int
        Number of epochs.
    estimated_loss_ : float
        Loss of the last epoch, estimated from its draws.
    coef_, intercept_, n_queries_ …
        See ``APSVMRanker``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from apsvm import WARPRanker
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X / 16, y == 8, random_state=0)
    >>> ranker = WARPRanker(tau="p@10", metric="P@10", random_state=0).fit(X_train, y_train)
    >>> ranker.score(X_test, y_test)  # the precision of the first ten
    1.0
    """

    _trainer = WarpTrainer
    _draws = True
    _remedy = "raise it or ask for fewer epochs"

    metric: str = "nDCG(exp)"
    relevant_from: float | None = None
    tau: str = "harmonic"
    rank_estimator: str = "plugin"
    max_trials: int | None = None
    rule: str = "adagrad"
    learning_rate: float | None = None
    l2: float = 0.0
    epochs: int = 30

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.n_jobs not in (None, 1)
        return tags

    def _values(self) -> JsonDict:
        return {**super()._values(), "preference": self.relevant_from is None}

    def _restore(self, header: Header) -> None:
        super()._restore(header)
        self.estimated_loss_ = math.nan if header.epochs is None else header.epochs.estimated_loss
