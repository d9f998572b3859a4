"""Compares whole trainings on folds, with feature maps learned in each fold, judged by metrics.

A fold selects rows and scales them by a map in front of w, so X is not copied unless a feature map makes other columns;
these are kept as far as memory allows. Grids with the same feature options share the rows of a fold.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from apsvm._support.blas import one_blas_thread
from apsvm._support.machine import memory
from apsvm.data.bags import rows_of_bags
from apsvm.data.features import parsed
from apsvm.data.features.base import SHARE_OF_MEMORY
from apsvm.data.labels import Target
from apsvm.data.rows import Rows
from apsvm.models.header import Labels
from apsvm.models.net import Net
from apsvm.selection.bags import scores_of_bags
from apsvm.selection.completion import train_fit
from apsvm.selection.folds import Fold
from apsvm.selection.race import Measured, OutOfFold, PathInFold, Race, Task
from apsvm.selection.thresholds import line_by
from apsvm.trainers.base import Outcome, Watch
from apsvm.trainers.fitting import FeatureOptions, Fit
from apsvm.trainers.ranking_check import scores_of

if TYPE_CHECKING:
    from apsvm.metrics import Metric


#: Feature options, the seed of their random draws, and the meaning of the labels for maps that look at targets.
_Map: TypeAlias = tuple[FeatureOptions, int, Labels | None]


class _Part(NamedTuple):
    """A fold for grids with the same feature options.

    Attributes
    ----------
    fit : the training on its training rows with learned features; ``shared`` holds these rows, so that column
        statistics are computed once
    rows : all rows, prepared
    """

    fit: Fit
    rows: Rows


class SelectionError(ValueError):
    """A setting cannot be judged in a fold; the message names the fold and the reason."""


class CrossValidation(Race):
    """Trains and judges whole trainings on folds.

    Attributes
    ----------
    fits : the training of each grid on all rows
    target, groups : meaning of the labels to the metrics, and the queries, of rows or bags
    metrics : metrics by name; empty if nothing is judged
    folds : folds of the rows or bags
    tolerated : errors that end a path but not the race; the path has their text
    """

    def __init__(
        self,
        fits: Sequence[Fit],
        target: Target,
        groups: NDArray[np.int64] | None,
        metrics: Mapping[str, Metric],
        folds: Sequence[Fold],
        tolerated: tuple[type[Exception], ...] = (),
    ) -> None:
        self.fits, self.target, self.groups, self.metrics, self.folds = fits, target, groups, metrics, folds
        self.tolerated = tolerated
        self._parts: dict[tuple[int, _Map], _Part] = {}
        self._locks: dict[tuple[int, _Map], Lock] = {}

    def run(self, tasks: Sequence[Task], threads: int, should_stop: Callable[[], bool]) -> Iterator[PathInFold]:
        with one_blas_thread():  # more would change the last bits
            yield from super().run(tasks, threads, should_stop)

    def _maps(self) -> set[_Map]:
        return {self._key(grid, 0)[1] for grid in range(len(self.fits))}

    def _key(self, grid: int, fold: int) -> tuple[int, _Map]:
        """Fold, feature options and seed, on which the rows of a fold depend; for maps that look at targets also their
        meaning."""
        fit = self.fits[grid]
        labels = fit.target.labels if parsed(fit.features.features).kind.looks_at_targets else None
        return fold, (fit.features, fit.trainer.settings.seed, labels)

    def part(self, grid: int, fold: int) -> _Part:
        """Rows of the fold, with features learned from its training rows."""
        key = self._key(grid, fold)
        with self._locks.setdefault(key, Lock()):
            if key not in self._parts:
                self._parts[key] = self._learned(grid, fold)
            return self._parts[key]

    def _learned(self, grid: int, fold: int) -> _Part:
        # A quarter of the memory for the mapped rows of all folds and maps, whatever the number of threads.
        share = SHARE_OF_MEMORY * memory() / (len(self.folds) * len(self._maps()))
        fit = self.fits[grid]
        training = rows_of_bags(fit.dataset, self.folds[fold].training)
        fit = replace(fit, selection=training, shared=None).prepared()
        # Columns of one scale are compared equally well in float32, in two thirds of the time.
        single = fit.feature_map is not None and fit.feature_map.of_one_scale
        rows = fit.rows().with_threads(1).with_memory(share, single=single).for_many_passes()
        return _Part(replace(fit, shared=rows.select(training)), rows)

    def trained(self, task: Task, watch: Watch) -> PathInFold:
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # training reports what is not finite
                return self._trained(task, watch)
        except self.tolerated as error:
            return PathInFold(task, failure=str(error))

    def _trained(self, task: Task, watch: Watch) -> PathInFold:
        part = self.part(task.grid, task.fold)
        path, fold, rows = PathInFold(task), self.folds[task.fold], part.rows
        # The part belongs to the first grid with these features; labels may have another meaning to this grid.
        fit = replace(
            self.fits[task.grid],
            trainer=task.variant.trainer.compared().with_settings(threads=1),
            selection=part.fit.selection,
            features=part.fit.features,
            feature_map=part.fit.feature_map,
            scaling=part.fit.scaling,
            shared=part.fit.shared,
        )
        test = rows_of_bags(fit.dataset, fold.test)
        held_out = rows.select(test)
        began = time.perf_counter()
        for outcome in train_fit(fit, watch):
            if outcome.interrupted or watch.should_stop():
                break
            assert isinstance(outcome.w, np.ndarray | Net)
            seconds = time.perf_counter() - began
            values: Mapping[str, float] = {}
            if self.metrics:
                scores = scores_of_bags(fit.dataset, test, scores_of(outcome.w, held_out))
                if not np.isfinite(scores).all():
                    raise FloatingPointError(f"fold {task.fold + 1}: scores are beyond float64")
                values = self.judged(scores, task.fold, self._line(fit, outcome, task.fold))
            choice = task.variant.choice_of(outcome)
            measured = Measured(choice, values, seconds, outcome.state, outcome.as_asked, outcome.C, outcome.w)
            path.settings.append(measured)
            began = time.perf_counter()
        return path

    def scored(self, measured: Measured, grid: int, fold: int) -> OutOfFold:
        part, (training, test) = self.part(grid, fold), self.folds[fold]
        assert measured.w is not None
        both = []
        for units in (test, training):
            which = rows_of_bags(part.fit.dataset, units)
            both.append(scores_of_bags(part.fit.dataset, which, scores_of(measured.w, part.rows.select(which))))
        return OutOfFold(test, both[0], training, both[1])

    def _line(self, fit: Fit, outcome: Outcome, fold: int) -> float:
        """Threshold of the trained model, or ``line``."""
        if outcome.threshold is not None and not outcome.classes:
            return outcome.threshold.value
        if not self._cuts:
            return 0.0
        assert fit.shared is not None
        assert isinstance(outcome.w, np.ndarray | Net)
        training = rows_of_bags(fit.dataset, self.folds[fold].training)
        return self.line(scores_of_bags(fit.dataset, training, scores_of(outcome.w, fit.shared)), fold)

    @property
    def _cuts(self) -> bool:
        """True if a metric has a threshold and the rows are one list."""
        return self.groups is None and any(metric.thresholded for metric in self.metrics.values())

    def line(self, own: NDArray[np.float64], fold: int) -> float:
        """Best threshold by the scores ``own`` (k,) of the training rows of a fold; 0 if none is needed."""
        return line_by(own, self.target.of(self.folds[fold].training)) if self._cuts else 0.0

    def judged(self, scores: NDArray[np.float64], fold: int, line: float = 0.0) -> Mapping[str, float]:
        """Metrics of the ``scores`` (m,) of the test rows of a fold; rows above ``line`` are called positive. Raises
        SelectionError."""
        from apsvm.metrics import MetricError
        from apsvm.metrics.evaluate import evaluate

        test = self.folds[fold].test
        target, groups = self.target.of(test), None if self.groups is None else self.groups[test]
        metrics, lowest = list(self.metrics.values()), target.lowest_relevant
        try:
            return evaluate(metrics, scores, target.judgements, groups, relevant_from=lowest, threshold=line).values
        except MetricError as error:
            raise SelectionError(f"fold {fold + 1}: {error}") from None
