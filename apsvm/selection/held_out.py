"""Scores of rows that their ranker has not seen, in the scale of a model that has seen them all.

A threshold, or a probability, that is chosen on training scores promises too much: a ranker knows its training rows. So
the rows are dealt out in folds (``selection.folds``), each is scored by a ranker trained on the others with the model's
own settings, and the threshold is chosen on all of these scores together, as scikit-learn's
``CalibratedClassifierCV(ensemble=False)`` does. Queries and bags stay whole. It costs a training a fold, on the other
folds' rows; nothing begins at the model's weights, which have seen the rows held out.

The rankers of two folds need not have one scale: a ranking loss looks at no scores, only at their order, and some
trainings end where they happen to. What a fold's ranker and the model have in common are the rows that both were
trained on: a fold's scores are moved and stretched so that those rows have the same mean and deviation by both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.data.bags import rows_of_bags
from apsvm.machine import thread_count
from apsvm.models.kinds import ItemFactors
from apsvm.selection.bags import bags_as_rows, of_bags
from apsvm.selection.folds import FoldError, make_folds
from apsvm.trainers.base import Outcome, TrainingSet, Watch
from apsvm.trainers.ranking_check import scores_of
from apsvm.trainers.score_scale import carried

if TYPE_CHECKING:
    from apsvm.trainers.fitting import Fit

#: Folds, where there are as many positives and negatives.
FOLDS = 5


class HeldOutError(ValueError):
    """Rows cannot be held out, or nothing can be trained on the others; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Rows (or bags) scored by rankers that have not seen them.

    Attributes
    ----------
    scores : (m,) float64, in the model's scale; relevant : (m,) bool
    how : in words, "5 folds of rows"
    """

    scores: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    how: str


def check_can_be_held_out(fit: Fit) -> None:
    """Raises HeldOutError where the rows of the training cannot be dealt out."""
    _folds(fit)


def held_out_scores(
    fit: Fit, model_scores: NDArray[np.float64], outcome: Outcome, should_stop: Callable[[], bool]
) -> HeldOut | None:
    """The training rows, scored by rankers that have not seen them; None if it was stopped.

    Parameters
    ----------
    fit : the model's training, of two classes, its features still to be learned
    model_scores : (n,) float64, of the model's training rows or bags, as ``fit.training_set()`` has them
    outcome : of the model

    Raises
    ------
    HeldOutError : there are too few rows to hold any out; a fold cannot be trained
    """
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_limits

    folds, how = _folds(fit)
    threads = thread_count(fit.threads)
    trainer = fit.trainer.settled(outcome).with_settings(threads=1)
    fit = replace(fit, trainer=trainer, shared=None)
    watch = Watch(should_stop=should_stop)

    def scored(fold: _Fold) -> tuple[NDArray[np.float64], NDArray[np.bool_]] | None:
        training = replace(fit, selection=fold.training).prepared()
        data = training.training_set()
        try:
            trained = _last(training.outcomes(watch, data=data))
        except (ValueError, FloatingPointError) as error:
            raise HeldOutError(f"fold {fold.number}: {error}") from None
        if trained is None or trained.interrupted or should_stop():
            return None
        test = replace(training, selection=fold.test).training_set()
        own, theirs = training_scores(trained, data), model_scores[fold.trained_on]
        return carried(training_scores(trained, test), own, theirs), test.target.relevant

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(scored, folds))
    whole = [part for part in parts if part is not None]
    if len(whole) < len(parts):
        return None
    scores, relevant = (np.concatenate(column) for column in zip(*whole, strict=True))
    if not np.isfinite(scores).all():
        raise HeldOutError("a fold's scores are beyond float64")
    return HeldOut(scores, relevant, how)


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """``training``, ``test`` : rows of the data set, as ``Fit.selection``; ``trained_on`` : (n,) bool, which rows
    or bags of the model's training set those to train on are."""

    number: int
    training: NDArray[np.int64]
    test: NDArray[np.int64]
    trained_on: NDArray[np.bool_]


def _folds(fit: Fit) -> tuple[list[_Fold], str]:
    """The folds, and what they are in words. Copies of a row, which weights of rows make, stay together."""
    dataset = fit.dataset
    units = bags_as_rows(dataset) if fit.trainer.capabilities.bags else dataset
    target = of_bags(fit) if fit.trainer.capabilities.bags else fit.target
    selected = np.arange(target.relevant.size) if fit.selection is None else fit.selection
    distinct = np.unique(selected)
    target = target.of(distinct)
    groups = None if units.groups is None else units.groups[distinct]
    bags = None if units.bags is None or fit.trainer.capabilities.bags else units.bags[distinct]
    what = "bags" if fit.trainer.capabilities.bags else "rows"
    fewest = min(int(target.relevant.sum()), int((~target.relevant).sum()))
    by_query = groups is not None and np.unique(groups).size > 1
    count = FOLDS if by_query else max(2, min(FOLDS, fewest))
    try:
        dealt = make_folds(target, groups if by_query else None, count, fit.trainer.settings.seed, bags=bags)
    except FoldError as error:
        raise HeldOutError(str(error)) from None
    folds = []
    for number, fold in enumerate(dealt, start=1):
        in_test = np.isin(selected, distinct[fold.test])
        parts = (selected[~in_test], selected[in_test])
        if fit.trainer.capabilities.bags:
            parts = (rows_of_bags(dataset, parts[0]), rows_of_bags(dataset, parts[1]))
        folds.append(_Fold(number, *parts, ~in_test))
    return folds, f"{count} folds of {'queries' if by_query else what}"


def _last(outcomes: Iterator[Outcome]) -> Outcome | None:
    return next(iter([*outcomes][-1:]), None)


def training_scores(outcome: Outcome, data: TrainingSet) -> NDArray[np.float64]:
    """(n,) float64: what the outcome gives to the rows of ``data``, or to each bag's best."""
    assert outcome.w is not None
    assert not isinstance(outcome.w, ItemFactors)
    scores = scores_of(outcome.w, data.rows)
    return scores if data.bags is None else np.maximum.reduceat(scores, data.bags[:-1])
