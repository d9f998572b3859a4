"""``apsvm cv`` with nothing named, as estimators: a portfolio of losses, bounds and feature maps is searched for a
metric, and the best of it trained on all rows (``selection.portfolio``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

import numpy as np
from joblib import effective_n_jobs

from apsvm.data.dataset import Dataset
from apsvm.data.labels import LabelOptions, Target, judge
from apsvm.estimators.base import training
from apsvm.estimators.kinds import RankerOfNumbers, TwoClasses, break_even_intercept
from apsvm.estimators.signatures import ByQuery
from apsvm.metrics.base import Metric
from apsvm.metrics.evaluate import evaluate, parse_metrics
from apsvm.model import LinearRanker
from apsvm.trainers.families.structured_svm import StructuredSVMTrainer
from apsvm.trainers.fitting import FeatureOptions
from apsvm.types import Column, Matrix


class _Portfolio(ByQuery):
    """What both have."""

    _trainer = StructuredSVMTrainer

    best_score_: float
    cv_results_: list[dict[str, str | float]]

    def __init__(
        self,
        metric: str = "AP",
        *,
        cv: int = 5,
        scale: str = "none",
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.cv = cv
        self.scale = scale
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _labels(self) -> LabelOptions:
        return LabelOptions()

    def _metrics(self) -> Mapping[str, Metric]:
        return parse_metrics([self.metric])

    def _dataset(self, X: Matrix, relevance: Column, qid: Column) -> Dataset:
        counted = self._counted(X, qid, None, by_query=True)
        return Dataset(
            X=X,
            relevance=np.asarray(relevance, dtype=np.float64),
            groups=counted.groups,
            costs=None,
            zero_based=False,
            source="the rows",
            fingerprint="",
            unknown_features=0,
        )

    def _fit(self, X: Matrix, y: Column, qid: Column, sample_weight: Column = None) -> Self:
        from apsvm.selection.portfolio import PortfolioSearch

        X, target = self._read(X, y, StructuredSVMTrainer("ndcg"))
        self._require_both(target)
        dataset = self._dataset(X, self._relevance(target, y), qid)
        jobs = effective_n_jobs(self.n_jobs)
        with training(self.verbose):
            self._announce(target)
            whole = PortfolioSearch(
                dataset,
                self._metrics(),
                labels=self._labels(),
                features=FeatureOptions(scale=self.scale),
                common={"seed": self._seed()},
                folds=self.cv,
                seed=self._seed(),
            )
            whole.screen(jobs)
            search = whole.final()
            search.run(jobs)
            candidates = search.candidates()
            chosen = search.choose(candidates)
            refit = search.refit(chosen, len(candidates), jobs)
        assert refit is not None
        assert isinstance(refit.model, LinearRanker)
        self.best_score_ = chosen.mean(whole.metric)
        screened: list[dict[str, str | float]] = [
            {"entry": str(entry), "stage": "screening", "mean": one.mean(whole.metric)}
            for entry, one in whole.screened.entries
        ]
        compared: list[dict[str, str | float]] = [
            {
                "entry": f"{one.loss}, {search.fits[one.grid].features.features}",
                "stage": "final",
                **{name: str(value) for name, value in one.choice.items()},
                "mean": one.mean(whole.metric),
                "deviation": one.deviation(whole.metric),
            }
            for one in candidates
        ]
        self.cv_results_ = [*screened, *compared]
        model = refit.model
        header = self._header_of(model.header, self._counted(X, qid, None, by_query=True))
        self._keep(replace(model, intercept=self._constant(model, X, target), header=header))
        return self

    def _relevance(self, target: Target, y: Column) -> Column:
        """The labels as the trainers get them."""
        raise NotImplementedError

    def _constant(self, model: LinearRanker, X: Matrix, target: Target) -> float:
        return 0.0

    def _score(self, X: Matrix, y: Column, qid: Column, sample_weight: Column = None) -> float:
        X, target = self._read_again(X, y)
        if qid is None and self.n_queries_ + self.n_queries_skipped_ > 1:
            raise ValueError(
                f"{type(self).__name__} was fitted with qid and is to be scored without: pass qid here too"
            )
        dataset = self._dataset(X, self._relevance(target, y), qid)
        metrics = self._metrics()
        judged = judge(dataset, self._labels(), None, graded_metrics=_graded(metrics, dataset))
        result = evaluate(
            list(metrics.values()),
            self._scores(X),
            judged.judgements,
            dataset.groups,
            relevant_from=judged.lowest_relevant,
        )
        (value,) = result.values.values()
        return float(value)


def _graded(metrics: Mapping[str, Metric], dataset: Dataset) -> bool:
    """As ``PortfolioSearch`` judges."""
    return all(metric.graded for metric in metrics.values()) or dataset.groups is not None


class APSVMClassifierCV(_Portfolio, TwoClasses):
    """Two classes, told apart so that ``metric`` is best, by whatever of a portfolio ranks best in cross-validation.

    Losses (ap, the metric's own, auc, wmw, 0-1), both bounds, features as they are, as broken lines and, where the data
    is small, as smooth curves, products of pairs and an RBF kernel, each with some values of C: all are screened in
    three folds, the best three are compared in ``cv``, and the winner is trained on all rows.

    Parameters
    ----------
    metric : what is to be best, as ``apsvm eval`` names it: "AP", "P@100", "AUC", "nDCG", …
    cv : folds of the final comparison
    pos_label : the positive class; None: the second of the two in sorted order
    scale : what every entry does to its columns: "standard", "maxabs", "l2"; "none": some entries standardise
    n_jobs : trainings at a time, in threads, None: 1, -1: as many as there are cores; the result does not depend on it
    random_state : an integer, the seed of the folds; None: 0
    verbose : 1 shows what is said of a training on standard error (the logger "apsvm")

    Attributes
    ----------
    classes_ : (2,) the two values, ascending; pos_label_ : the positive one
    best_score_ : the winner's mean over the folds: it was chosen for it, and is a little too high
    cv_results_ : a dictionary for each entry screened and each setting compared, the winner's among them
    coef_, intercept_, feature_map_ : as of ``APSVMClassifier``; ``to_model`` gives the model for ``apsvm predict``

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from apsvm import APSVMClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = APSVMClassifierCV("AP").fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.95
    True
    """

    def __init__(
        self,
        metric: str = "AP",
        *,
        cv: int = 5,
        pos_label: object = None,
        scale: str = "none",
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(metric, cv=cv, scale=scale, n_jobs=n_jobs, random_state=random_state, verbose=verbose)
        self.pos_label = pos_label

    def _relevance(self, target: Target, y: Column) -> Column:
        return target.relevant

    def _constant(self, model: LinearRanker, X: Matrix, target: Target) -> float:
        return break_even_intercept(model.score(X) - model.intercept, target.relevant)


class APSVMRankerCV(_Portfolio, RankerOfNumbers):
    """Rows ordered by their grades, query by query, so that ``metric`` is best, by whatever of a portfolio ranks best
    in cross-validation over whole queries.

    Parameters
    ----------
    metric : what is to be best, as ``apsvm eval`` names it: "nDCG(exp)@10", "AP", "RR", …
    relevant_from : the lowest grade that is relevant to metrics and losses of two classes; None: those above 0
    cv, scale, n_jobs, random_state, verbose : as of ``APSVMClassifierCV``

    Attributes
    ----------
    best_score_, cv_results_, coef_ … : as of ``APSVMClassifierCV``
    """

    def __init__(
        self,
        metric: str = "nDCG",
        *,
        relevant_from: float | None = None,
        cv: int = 5,
        scale: str = "none",
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(metric, cv=cv, scale=scale, n_jobs=n_jobs, random_state=random_state, verbose=verbose)
        self.relevant_from = relevant_from

    def _labels(self) -> LabelOptions:
        return LabelOptions(relevant_from=self._lowest_relevant())

    def _relevance(self, target: Target, y: Column) -> Column:
        return np.asarray(y, dtype=np.float64)
