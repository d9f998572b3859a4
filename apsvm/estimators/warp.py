"""WARP as a ranker: the top of the list by stochastic sampling (``trainers.warp``)."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state, check_scalar

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
from apsvm.solvers.sgd import Epoch
from apsvm.trainers.stochastic import Trained, Watch
from apsvm.trainers.warp import ESTIMATORS, LEARNING_RATES, Settings, train_warp


class WARPRanker(ScoresArePredictions):
    """Rows ordered by their grades, query by query, with the stress on the top: WARP (Weston, Bengio, Usunier 2010),
    which draws a positive, then negatives until one is within a margin of 1 of it.

    y holds numbers: a row is a positive against every row of its query of a lower one, or with ``relevant_from`` the
    rows of this grade and above against the others.

    Parameters
    ----------
    relevant_from : the lowest grade that is relevant, None: every grade counts
    tau : what a rank costs: "auc", as many as stand above; "p@K", as many up to K; "harmonic", 1 + 1/2 + … of them
    rank_estimator : how a rank is told from the trials: "plugin", "log-unbiased" (tau "harmonic"), or by scoring all
        negatives, "exact"
    max_trials : for a positive, before it is left in peace; None: its negatives, at most 1000
    rule : how long a step is, "adagrad", "adadelta" or "sgd"
    learning_rate : None: 0.05; for "adadelta" a factor of 1
    l2 : weight of ½‖w‖² against the loss
    epochs : passes over the positives
    time_limit : seconds, or None
    n_jobs : threads, None: 1, -1: as many as there are cores; more than one share the weights without locks, and no two
        fits are the same
    warm_start : whether a fit starts from the weights of the one before
    random_state : seed of the draws, or a ``numpy.random.RandomState``
    verbose : 1 shows each epoch on standard error (the logger "apsvm")

    Attributes
    ----------
    coef_ : (n_features_in_,) float64; intercept_ : 0.0, on which no ranking depends
    n_iter_ : epochs; estimated_loss_ : what the draws of the last one showed
    n_queries_, n_queries_skipped_ : queries that were trained on, and those with one grade only
    lowest_grade_ : of the training
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from apsvm import WARPRanker
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X / 16, y == 8, random_state=0)
    >>> ranker = WARPRanker(tau="p@10", random_state=0).fit(X_train, y_train)
    >>> ranker.score(X_test, y_test)  # the precision of the first ten
    1.0
    """

    estimated_loss_: float
    n_queries_: int
    n_queries_skipped_: int
    lowest_grade_: float

    def __init__(
        self,
        *,
        relevant_from: float | None = None,
        tau: str = "harmonic",
        rank_estimator: str = "plugin",
        max_trials: int | None = None,
        rule: str = "adagrad",
        learning_rate: float | None = None,
        l2: float = 0.0,
        epochs: int = 30,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.relevant_from = relevant_from
        self.tau = tau
        self.rank_estimator = rank_estimator
        self.max_trials = max_trials
        self.rule = rule
        self.learning_rate = learning_rate
        self.l2 = l2
        self.epochs = epochs
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.n_jobs not in (None, 1)
        return tags

    def fit(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Train.

        Parameters
        ----------
        X : (n, d) numbers: an array, a scipy.sparse matrix (CSR is used in place), a data frame
        y : (n,) numbers
        qid : (n,) the query of each row, of any type that can be sorted, in any order; None: one query

        Raises
        ------
        ValueError : input that does not fit, parameters that do not go together, nothing to rank
        FloatingPointError : weights that are not finite: features or the learning rate are too large
        """
        settings = self._settings()
        settings.check()
        X, labels = check_features(self, X, y, y_numeric=True, ensure_min_samples=2)
        groups = None if qid is None else number_queries(qid, labels.size)
        grades = labels.astype(np.float64) if self.relevant_from is None else labels >= self.relevant_from
        start = self._warm_coef(X.shape[1])
        with training(self.verbose):
            watch = Watch(progress=_tell)
            trained = train_warp(self._rows(X), grades, settings, watch, groups=groups, start=start)
        self._take(trained)
        self.lowest_grade_ = float(labels.min())
        if not trained.ending.as_asked:
            self._warn(f"{trained.ending}; raise it or ask for fewer epochs")
        return self

    def score(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """What tau stresses: WMW (the ROC area, of two grades) for "auc", P@K for "p@K", AP for "harmonic", the last
        two with the rows from ``relevant_from`` on as relevant, or those above the training's lowest grade; the mean
        over the queries that have something to rank."""
        X, labels = check_known_features(self, X, y, y_numeric=True)
        grades = labels.astype(np.float64)
        groups = None if qid is None else number_queries(qid, grades.size)
        lowest = np.nextafter(self.lowest_grade_, np.inf) if self.relevant_from is None else self.relevant_from
        if self.relevant_from is not None:
            grades, lowest = (grades >= lowest) * 1.0, 1.0
        name = {"auc": "WMW", "harmonic": "AP"}.get(self.tau, self.tau)
        (value,) = evaluate(
            [name], self._scores(self._rows(X)), grades, groups, relevant_from=float(lowest)
        ).values.values()
        return value

    if TYPE_CHECKING:  # scikit-learn makes these two from the signatures

        def set_fit_request(self, *, qid: bool | str | None = "$UNCHANGED$") -> Self: ...

        def set_score_request(self, *, qid: bool | str | None = "$UNCHANGED$") -> Self: ...

    def _settings(self) -> Settings:
        check_choices(self, rule=tuple(LEARNING_RATES), rank_estimator=ESTIMATORS)
        check_scalar(self.epochs, "epochs", Integral, min_val=1)
        if self.max_trials is not None:
            check_scalar(self.max_trials, "max_trials", Integral, min_val=1)
        if self.relevant_from is not None:
            check_number(self, "relevant_from")
        rate = self.learning_rate
        return Settings(
            tau=self.tau,
            estimator=self.rank_estimator,
            max_trials=None if self.max_trials is None else int(self.max_trials),
            rule=self.rule,
            learning_rate=(
                None if rate is None else check_number(self, "learning_rate", min_val=0, include_boundaries="neither")
            ),
            l2=check_number(self, "l2", min_val=0),
            epochs=int(self.epochs),
            time_limit=None if self.time_limit is None else check_number(self, "time_limit", min_val=0),
            threads=effective_n_jobs(self.n_jobs),
            seed=self._seed(),
        )

    def _seed(self) -> int:
        """An integer is the seed itself, as ``--seed`` is."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _take(self, trained: Trained) -> None:
        self._set_weights(trained.w, 0.0)
        self.n_iter_ = len(trained.epochs)
        self.estimated_loss_ = trained.epochs[-1].passed.loss
        self.n_queries_, self.n_queries_skipped_ = trained.queries, trained.queries_skipped
        self._state = str(trained.ending)

    def _header(self) -> dict[str, Any]:
        return {
            "loss": "warp",
            "tau": self.tau,
            "rank_estimator": self.rank_estimator,
            "max_trials": self.max_trials,
            "rule": self.rule,
            "learning_rate": LEARNING_RATES[self.rule] if self.learning_rate is None else float(self.learning_rate),
            "l2": float(self.l2),
            "preference": self.relevant_from is None,
            "relevant_from": None if self.relevant_from is None else float(self.relevant_from),
            "lowest_grade": self.lowest_grade_,
            "seed": int(self.random_state) if isinstance(self.random_state, Integral) else None,
            "state": self._state,
            "epochs": self.n_iter_,
            "estimated_loss": self.estimated_loss_,
            "data": {"queries": self.n_queries_, "queries_skipped": self.n_queries_skipped_},
        }

    @classmethod
    def _parameters(cls, header: Mapping[str, Any]) -> dict[str, Any]:
        if header["loss"] != "warp":
            raise ValueError(f"a model of loss {header['loss']!r} is none of WARPRanker's, whose loss is 'warp'")
        names = ("tau", "rank_estimator", "max_trials", "rule", "learning_rate", "l2", "relevant_from")
        found = {name: header[name] for name in names if header.get(name) is not None}
        if header.get("seed") is not None:
            found["random_state"] = header["seed"]
        return found

    def _recall(self, header: Mapping[str, Any]) -> None:
        self._state = header.get("state", "unknown")
        self.n_iter_ = header.get("epochs", 0)
        self.estimated_loss_ = header.get("estimated_loss", np.nan)
        data = header.get("data", {})
        self.n_queries_, self.n_queries_skipped_ = data.get("queries", 1), data.get("queries_skipped", 0)
        # Grades of the command's models: +1 against -1 or 0.
        self.lowest_grade_ = header.get("lowest_grade", 0.0)


def _tell(epoch: Epoch) -> None:
    logger.info(
        "epoch %d: estimated loss %.6g, %d updates in %d trials, %.2f s",
        epoch.number,
        epoch.passed.loss,
        epoch.passed.updates,
        epoch.passed.trials,
        epoch.seconds,
    )
