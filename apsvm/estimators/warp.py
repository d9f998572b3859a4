"""WARP as a ranker: the top of the list by stochastic sampling (``trainers.warp.descent``)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sklearn.utils import Tags

from apsvm._support.types import JsonDict
from apsvm.estimators.base import LinearEstimator, OfQueries
from apsvm.estimators.kinds import RankerOfNumbers
from apsvm.models.header import Header
from apsvm.trainers.fitting import Fit
from apsvm.trainers.warp.trainer import WarpTrainer


@dataclass(eq=False, repr=False, kw_only=True)
class WARPRanker(OfQueries, RankerOfNumbers, LinearEstimator):
    """Ranker by grades, query by query, that weights errors at the top of the list most: WARP (Weston, Bengio, Usunier
    2010). It draws a positive, then negatives until one is within a margin of 1 of it.

    y holds numbers: a row is a positive against every row of its query with a lower grade; with ``relevant_from``, the
    rows of this grade and above against the others.

    Parameters
    ----------
    metric
        The metric that ``score`` returns and searches compare, whatever tau: see ``APSVMRanker``.
    relevant_from
        The lowest relevant grade; None: every grade counts.
    tau
        Loss of a rank: "auc", the number of rows above; "p@K", that number up to K; "harmonic", 1 + 1/2 + … of it.
    rank_estimator
        Estimate of a rank from the trials: "plugin", "log-unbiased" (tau "harmonic"), or "exact", by scoring all
        negatives.
    max_trials
        Trials for a positive; None: as many as it has negatives, at most 1000.
    rule, learning_rate
        Step size: "adagrad", "adadelta" or "sgd", times the rate (None: 0.05; for "adadelta" 1).
    l2
        Weight of ½‖w‖² against the loss.
    epochs
        Passes over the positives.
    n_jobs
        Threads, None: 1, -1: one for each core. More than one share the weights without locks: no two fits are the
        same.
    random_state
        Seed of the draws.
    features, time_limit, warm_start, verbose
        See ``APSVMClassifier``.

    Attributes
    ----------
    n_iter_, estimated_loss_
        Epochs, and the loss that the draws of the last one showed.
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

    def _check(self, fit: Fit) -> None:
        self._require_relevant(fit.target.of(fit.selection))

    def _recall(self, header: Header) -> None:
        super()._recall(header)
        self.estimated_loss_ = math.nan if header.epochs is None else header.epochs.estimated_loss
