"""``apsvm cv`` without options, as estimators: a search over losses, bounds and feature maps for a metric; the best
ranker is trained on all rows (``selection.portfolio``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from apsvm._support.types import Column, Matrix
from apsvm.data.labels import LabelOptions, Target, of_two, ordered
from apsvm.estimators.linear import QueriesOnly
from apsvm.estimators.messages import logger, training
from apsvm.estimators.rows import count_rows
from apsvm.estimators.targets import BinaryClassifier, GradeRanker
from apsvm.metrics import parse_metric
from apsvm.metrics.evaluate import parse_metrics
from apsvm.models.header import Header
from apsvm.report.words import members
from apsvm.selection.decision import DecisionRule, HeldOutError, decide
from apsvm.selection.thresholds import with_f1_threshold
from apsvm.trainers.fitting import AUTO, FeatureOptions
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

if TYPE_CHECKING:
    from apsvm.selection.average import Average
    from apsvm.selection.portfolio import PortfolioSearch
    from apsvm.selection.race import Candidate
    from apsvm.selection.search import Refit, SettingsSearch


@dataclass(eq=False, repr=False, kw_only=True)
class _Portfolio(QueriesOnly):
    """Base of the two estimators that search a portfolio."""

    _trainer = StructuredSVMTrainer
    _remedy = "scale='standard' may help"

    metric: str = field(default="AP", kw_only=False)
    cv: int = 5
    scale: str = AUTO

    def _labels(self, target: Target, y: Column) -> tuple[Column, LabelOptions, Target]:
        """Labels y (n,) for trainers, their meaning to trainers, and their meaning to ``metric``. ``target``: the
        meaning of y to this estimator. Raises ValueError for rows with nothing to rank."""
        raise NotImplementedError

    def _fit(self, X: Matrix, y: Column, qid: Column, sample_weight: Column, bags: Column) -> Self:
        from apsvm.selection.portfolio import PortfolioSearch

        metrics = parse_metrics([self.metric])
        if self.cv < 2:
            raise ValueError(f"cv is a number of folds ≥ 2, found {self.cv}")
        X, target = self._read(X, y, StructuredSVMTrainer("ndcg").capabilities.labels)
        groups = count_rows(X, qid, None, by_query=True).groups
        jobs = self._threads()
        with training(self.verbose):
            relevance, labels, meaning = self._labels(target, column_or_1d(y))
            whole = PortfolioSearch(
                self._dataset(X, relevance, groups, source="the rows"),
                metrics,
                labels=labels,
                features=FeatureOptions(scale=self.scale, bias=AUTO),
                folds=int(self.cv),
                seed=self._seed(),
                judged_by=meaning,
            )
            search = whole.screen(jobs)
            for one in whole.given_up:
                logger.info("given up: %s", one)
            search.run(jobs)
            candidates = search.candidates()
            average = search.average(candidates)
            refit = search.refit(average or search.choose(candidates), candidates, jobs)
        assert refit is not None  # it is never stopped
        self.cv_results_: list[dict[str, str | float]] = list(_results(whole, search, candidates, average))
        (model,) = refit.model.rankers()
        model = model.with_header(self._with_threshold(self._header_of(model.header, groups), refit, X, target))
        self._finish(model, X, refit.outcome)
        return self

    @classmethod
    def _refusal(cls, header: Header) -> str | None:
        if header.selection is not None:
            return None
        return f"{cls.__name__} takes models chosen by cross-validation; {cls.__name__[:-2]} takes this one"

    def _restore(self, header: Header) -> None:
        super()._restore(header)
        estimate = (header.selection or {}).get("estimate")
        if isinstance(estimate, float):
            self.best_score_ = estimate
        choice = f"features {header.features.map}; loss {header.loss}, C = {header.C}"
        self.choice_ = "; ".join(members(header)) or choice

    def _with_threshold(self, header: Header, refit: Refit, X: Matrix, target: Target) -> Header:
        """The header with a threshold."""
        return header


def _results(
    whole: PortfolioSearch,
    search: SettingsSearch,
    candidates: Sequence[Candidate],
    average: Average | None,
) -> Iterator[dict[str, str | float]]:
    """A dictionary for each entry that was given up, for each setting of the final comparison, and for the average."""
    metric = search.metric
    for entry, _, value in whole.given_up:
        if value is not None:
            yield {"entry": str(entry), "stage": "screening", "mean": value}
    final = [(f"{one.loss}, {search.fits[one.grid].features.features}", one) for one in candidates]
    for name, one in [*final, *([] if average is None else [(f"average of {', '.join(average.maps)}", average)])]:
        values = {"mean": one.mean(metric), "deviation": one.deviation(metric)}
        yield {"entry": name, "stage": "final", **{key: str(value) for key, value in one.choice.items()}, **values}


@dataclass(eq=False, repr=False, kw_only=True)
class APSVMClassifierCV(_Portfolio, BinaryClassifier):  # type: ignore[misc]  # no weights, no bags
    """Classifier of two classes that chooses loss, bound, features and C by cross-validation, for a metric.

    The candidates are losses (ap, the metric's own, and auc on rules), both bounds, and feature maps (linear, piecewise
    linear, rules), each with three values of C, two components where positives are rare, and an RBF kernel on arrays of
    up to 5,000 rows. All are tried in one fold, those that are not hopeless there in ``cv`` folds; of many rows a
    sample is taken for this. The winner is trained on all rows; if the best on several feature maps are close, their
    average is.

    Parameters
    ----------
    metric : str
        The metric to maximise, as ``apsvm eval`` names it: "AP", "P@100", "AUC", "nDCG", …
    cv : int
        Number of folds of the final comparison, at least 2; at most the number of rows of the rarer class are used.
    pos_label : object
        The positive class; None: the second in sorted order.
    scale : str
        Scaling of the columns; see ``APSVMClassifier``.
    n_jobs : int, optional
        Number of trainings at a time, in threads; None: 1; -1: one for each core. The result does not depend on it.
    random_state : int, RandomState or None
        Seed of the folds; None: 0.
    verbose : int
        1 logs each candidate to standard error (the logger "apsvm").

    Attributes
    ----------
    best_score_ : float
        Expected value of ``metric`` on new rows: the winner's mean over the folds, minus the optimism of the choice.
    choice_ : str
        The chosen features, loss and C in words.
    certificates_ : dict
        By feature map, the certificate of the winner, or of each ranker in the average (see ``APSVMClassifier``).
    cv_results_ : list of dict
        An entry for each candidate that was given up after the first fold or a sample (stage "screening"), and for each
        compared setting (stage "final").
    coef_, intercept_, feature_map_, classes_ …
        See ``APSVMClassifier``; ``to_model`` gives the model for ``apsvm predict``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from apsvm import APSVMClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = APSVMClassifierCV("AP").fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.95
    True
    """

    def _labels(self, target: Target, y: Column) -> tuple[Column, LabelOptions, Target]:
        self._check(target)
        return target.relevant, LabelOptions(), target

    def _header_of(self, header: Header, groups: NDArray[np.int64] | None) -> Header:
        """Records the labels of y; trainers got 1 and 0."""
        labels = of_two(self._negative_first, self._negative_first).labels
        return super()._header_of(replace(header, labels=labels), groups)

    def _with_threshold(self, header: Header, refit: Refit, X: Matrix, target: Target) -> Header:
        fit = refit.fit
        if header.threshold is None and (header.data.queries or 1) == 1:
            with suppress(HeldOutError):
                folds, rule = refit.out_of_fold(), DecisionRule()
                decision = decide(fit, refit.outcome, rule, folds=folds, how=refit.how, prepared=fit)
                header = header if decision is None else decision.header(header)
        return with_f1_threshold(header, refit.model.score(X), target.relevant)


@dataclass(eq=False, repr=False, kw_only=True)
class APSVMRankerCV(_Portfolio, GradeRanker):
    """Ranker by grades, query by query, that chooses loss, bound, features and C by cross-validation over whole
    queries, for a metric.

    Parameters
    ----------
    metric : str
        The metric to maximise, as ``apsvm eval`` names it: "nDCG(exp)@10", "AP", "RR", …
    relevant_from : float, optional
        The lowest relevant grade for metrics and losses of two classes; None: grades above 0 are relevant, or with a
        metric of grades (nDCG) those above the lowest.
    cv, scale, n_jobs, random_state, verbose
        See ``APSVMClassifierCV``.

    Attributes
    ----------
    best_score_, certificates_, cv_results_, coef_ …
        See ``APSVMClassifierCV``.
    """

    metric: str = field(default="nDCG(exp)@10", kw_only=False)
    relevant_from: float | None = None

    def _labels(self, target: Target, y: Column) -> tuple[Column, LabelOptions, Target]:
        grades, lowest = np.asarray(y, dtype=np.float64), self._lowest_relevant()
        of_grades = parse_metric(self.metric).graded
        meaning = ordered(grades, relevant_from=lowest, relevant_above=None if of_grades else 0.0)
        if lowest is not None or not of_grades:
            self._check(replace(meaning, grades=None))
        elif not meaning.relevant.any():
            raise ValueError("expected rows of different grades, found one grade only")
        return grades, LabelOptions(relevant_from=lowest), meaning
