"""``apsvm cv`` with nothing named, as estimators: a portfolio of losses, bounds and feature maps is searched for a
metric, and the best of it trained on all rows (``selection.portfolio``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.utils import check_scalar, column_or_1d

from apsvm._support.caller import warn_caller
from apsvm._support.types import Column, JsonDict, Matrix
from apsvm.data.dataset import Dataset
from apsvm.data.labels import LabelOptions, Target, of_two, ordered
from apsvm.estimators.following import logger, training
from apsvm.estimators.kinds import RankerOfNumbers, TwoClasses, break_even_intercept
from apsvm.estimators.signatures import ByQuery
from apsvm.metrics.base import Metric
from apsvm.metrics.evaluate import evaluate, parse_metrics
from apsvm.models.averages import headers_of
from apsvm.models.base import Ranker
from apsvm.models.header import Bounds, Header
from apsvm.trainers.fitting import AUTO, FeatureOptions
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

if TYPE_CHECKING:
    from apsvm.selection.average import Average
    from apsvm.selection.choice import Candidate
    from apsvm.selection.portfolio import Entry, PortfolioSearch
    from apsvm.selection.search import SettingsSearch


class _Portfolio(ByQuery):
    """What both have."""

    _trainer = StructuredSVMTrainer
    _remedy = "scale='standard' may help"

    best_score_: float
    certificate_: dict[str, Bounds]
    cv_results_: list[dict[str, str | float]]

    def __init__(
        self,
        metric: str = "AP",
        *,
        cv: int = 5,
        scale: str = "auto",
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

    def _judged(self, target: Target, y: Column) -> Target:
        """What rows of labels y (n,), which mean ``target`` to trainers, are judged by."""
        return target

    def _folds(self, target: Target) -> int:
        """The parameter ``cv``, checked."""
        return int(check_scalar(self.cv, "cv", Integral, min_val=2))

    def _metrics(self) -> Mapping[str, Metric]:
        return parse_metrics([check_scalar(self.metric, "metric", str)])

    def _dataset(self, X: Matrix, relevance: Column, qid: Column) -> Dataset:
        counted = self._counted(X, qid, None, None)
        return Dataset(
            X=X,
            relevance=np.asarray(relevance, dtype=np.float64),
            groups=counted.groups,
            costs=None,
            zero_based=False,
            source="the rows",
            fingerprint="",
            unknown_features=0,
            table=self._table_rows(),
        )

    def _fit(self, X: Matrix, y: Column, qid: Column, sample_weight: Column = None, bags: Column = None) -> Self:
        from apsvm.selection.portfolio import PortfolioSearch

        metrics = self._metrics()
        X, target = self._read(X, y, StructuredSVMTrainer("ndcg"))
        self._require_memory(X)
        y = column_or_1d(y)
        judged = self._judged(target, y)
        self._require_both(judged)
        dataset = self._dataset(X, self._relevance(target, y), qid)
        jobs = self._threads()
        with training(self.verbose):
            self._announce(target)
            whole = PortfolioSearch(
                dataset,
                metrics,
                labels=self._labels(),
                features=FeatureOptions(scale=self.scale, bias=AUTO),
                folds=self._folds(target),
                seed=self._seed(),
                judged_by=judged,
            )
            whole.screen(jobs, ended=partial(_tell, whole.metric))
            search = whole.final()
            search.run(jobs)
            candidates = search.candidates()
            chosen = search.choose(candidates)
            average = search.average(candidates, chosen, jobs)
            refit = search.refit(average or chosen, candidates, jobs)
        assert refit is not None  # it is never stopped
        self.cv_results_ = [*_screened(whole), *_compared(search, candidates, average)]
        (model,) = refit.model.rankers()
        header = self._header_of(model.header, dataset.groups)
        model = model.at_level(self._constant(model, X, target)).with_header(header)
        self._keep(model)
        self._set_importances(model, X)
        self._warn(refit.outcome)
        return self

    @classmethod
    def _refusal(cls, header: Header) -> str | None:
        if header.selection is not None:
            return None
        return f"a model that no cross-validation has chosen is none of {cls.__name__}'s: {cls.__name__[:-2]} takes it"

    @classmethod
    def _parameters_trained(cls, header: Header) -> JsonDict:
        selection = header.selection or {}
        return {"metric": selection.get("metric", "AP"), "cv": selection.get("folds", 5)}

    def _recall(self, header: Header) -> None:
        super()._recall(header)
        estimate = (header.selection or {}).get("estimate")
        if isinstance(estimate, float):
            self.best_score_ = estimate
        each = headers_of(header) or [header]
        self.certificate_ = {one.features.map: one.certificate for one in each if one.certificate is not None}

    def _relevance(self, target: Target, y: Column) -> Column:
        """The labels as the trainers get them."""
        raise NotImplementedError

    def _constant(self, model: Ranker, X: Matrix, target: Target) -> float:
        return 0.0

    def _score(self, X: Matrix, y: Column, qid: Column, sample_weight: Column = None, bags: Column = None) -> float:
        X, target = self._read_again(X, y)
        if qid is None and self.n_queries_ + self.n_queries_skipped_ > 1:
            raise ValueError(
                f"{type(self).__name__} was fitted with qid and is to be scored without: pass qid here too"
            )
        metrics, judged = self._metrics(), self._judged(target, column_or_1d(y))
        result = evaluate(
            list(metrics.values()),
            self._scores(X),
            judged.judgements,
            self._counted(X, qid, None, None).groups,
            relevant_from=judged.lowest_relevant,
        )
        (value,) = result.values.values()
        return float(value)


def _tell(metric: str, entry: Entry, result: Candidate | str) -> None:
    """A line for the log as an entry is screened."""
    logger.info("%s: %s", entry, result if isinstance(result, str) else f"{metric} {result.mean(metric):.4f}")


def _screened(whole: PortfolioSearch) -> Iterator[dict[str, str | float]]:
    """A dictionary for each entry, at its best."""
    for entry, one in whole.screened.entries:
        yield {"entry": str(entry), "stage": "screening", "mean": one.mean(whole.metric)}


def _compared(
    search: SettingsSearch, candidates: Sequence[Candidate], average: Average | None
) -> Iterator[dict[str, str | float]]:
    """A dictionary for each setting of the final, and for the average."""
    entries = [f"{one.loss}, {search.fits[one.grid].features.features}" for one in candidates]
    listed = [*zip(entries, candidates, strict=True)]
    if average is not None:
        listed.append((f"average of {', '.join(average.maps)}", average))
    for entry, one in listed:
        yield {
            "entry": entry,
            "stage": "final",
            **{name: str(value) for name, value in one.choice.items()},
            "mean": one.mean(search.metric),
            "deviation": one.deviation(search.metric),
        }


class APSVMClassifierCV(_Portfolio, TwoClasses):
    """Two classes, told apart so that ``metric`` is best, by whatever of a portfolio ranks best in cross-validation.

    Losses (ap, the metric's own, auc, wmw, 0-1), both bounds, features as they are, as broken lines, as rules and,
    where the data is small, as products of pairs and an RBF kernel, each with some values of C: all are screened in
    three folds, the best three are compared in ``cv``, and the winner is trained on all rows: the best of them, or
    the average of the best on several feature maps, where these are near to it.

    Parameters
    ----------
    metric : str
        What is to be best, as ``apsvm eval`` names it: "AP", "P@100", "AUC", "nDCG", …
    cv : int
        Folds of the final comparison, at least 2; as many as the rarer class has rows, where these are fewer.
    pos_label : object
        The positive class; None: the second of the two in sorted order.
    scale : str
        What every entry does to its columns, see ``APSVMClassifier``.
    n_jobs : int, optional
        Trainings at a time, in threads, None: 1, -1: as many as there are cores; the result does not depend on
        it.
    random_state : int, optional
        An integer, the seed of the folds; None: 0.
    verbose : int
        1 shows each entry as it is screened on standard error (the logger "apsvm").

    Attributes
    ----------
    classes_
        (2,) the two values, ascending.
    pos_label_
        The positive one.
    best_score_
        What ``metric`` is on other rows, estimated: the winner's mean over the folds, without what the choice of the
        best of many adds to it.
    certificate_
        By feature map, the certificate of each ranker that is averaged, or of the winner: see ``APSVMClassifier``.
    cv_results_
        A dictionary for each entry screened and each setting compared, the winner's among them.
    coef_, intercept_, feature_map_
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

    def __init__(
        self,
        metric: str = "AP",
        *,
        cv: int = 5,
        pos_label: object = None,
        scale: str = "auto",
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(metric, cv=cv, scale=scale, n_jobs=n_jobs, random_state=random_state, verbose=verbose)
        self.pos_label = pos_label

    def _relevance(self, target: Target, y: Column) -> Column:
        return target.relevant

    def _folds(self, target: Target) -> int:
        folds, positives = super()._folds(target), int(target.relevant.sum())
        fewest = min(positives, target.relevant.size - positives)
        if not 2 <= fewest < folds:
            return folds
        warn_caller(
            f"{type(self).__name__}: the rarer class has {fewest} rows only: {fewest} folds in place of cv={folds}"
        )
        return fewest

    def _described(self, header: Header, changes: JsonDict) -> Header:
        """Trainers got 1 and 0."""
        labels = of_two(self._negative_first, self._negative_first).labels
        return super()._described(header, {**changes, "labels": labels})

    def _constant(self, model: Ranker, X: Matrix, target: Target) -> float:
        threshold = model.header.threshold
        if threshold is not None and threshold.rule == "loss":
            return model.level
        return break_even_intercept(model.score(X) - model.level, target.relevant)


class APSVMRankerCV(_Portfolio, RankerOfNumbers):
    """Rows ordered by their grades, query by query, so that ``metric`` is best, by whatever of a portfolio ranks best
    in cross-validation over whole queries.

    Parameters
    ----------
    metric : str
        What is to be best, as ``apsvm eval`` names it: "nDCG(exp)@10", "AP", "RR", …
    relevant_from : float, optional
        The lowest grade that is relevant to metrics and losses of two classes; None: those above 0 (a metric of
        grades, nDCG, has no such line: to losses of two classes those above the lowest are relevant).
    cv, scale, n_jobs, random_state, verbose : int
        See ``APSVMClassifierCV``.

    Attributes
    ----------
    best_score_, certificate_, cv_results_, coef_ …
        See ``APSVMClassifierCV``.
    """

    def __init__(
        self,
        metric: str = "nDCG(exp)@10",
        *,
        relevant_from: float | None = None,
        cv: int = 5,
        scale: str = "auto",
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

    def _judged(self, target: Target, y: Column) -> Target:
        grades, lowest = np.asarray(y, dtype=np.float64), self._lowest_relevant()
        if lowest is not None:
            return ordered(grades, relevant_from=lowest)
        return ordered(grades, relevant_above=None if self._reads_grades() else 0.0)

    def _reads_grades(self) -> bool:
        return all(metric.graded for metric in self._metrics().values())

    def _require_both(self, target: Target) -> None:
        if self._lowest_relevant() is None and self._reads_grades():
            if not target.relevant.any():
                raise ValueError("expected rows of different grades, found one grade only")
            return
        super()._require_both(replace(target, grades=None))
