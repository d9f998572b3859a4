"""Candidates of ``--bound auto`` (``bound_choice``), trained on parts of the rows and judged by the rest.

First the hinge at some multiples of its default C, and at higher ones where the highest is the best. From the best
one's weights the tight bound goes down, at a small multiple of its own default C, which is soon done: where it comes
nowhere near, that is all. Else its C is raised for as long as that helps.

In three trainings on each of 47 real and made sets, test AP was by no more than .004 below what it is with nine
candidates, each from a solution of its own, the same in the median and .0003 above in the trimmed mean, in .6 of the
time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import Loss
from apsvm.metrics.thresholds import ChosenThreshold, ThresholdRule, choose_threshold
from apsvm.oracles import make_oracle
from apsvm.risk import NothingToRankError, Risk, loss_by_order
from apsvm.threads import results
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.score_scale import STANDARD, Scale
from apsvm.trainers.settings import Multiple, amount, resolved
from apsvm.trainers.structured_svm.candidate_splits import Split
from apsvm.trainers.structured_svm.default_c import default_C
from apsvm.trainers.structured_svm.objective import risk_of
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import StructuredSettings, shown_C
from apsvm.trainers.structured_svm.training import train
from apsvm.work import UNSTORED, Piece

#: Multiples of the default C at which the hinge is tried where no C is named. They go down far: where rows are few, a C
#: at which hardly anything but the direction of the classes' means is learned is often the best. The last is only for
#: data of which there are several splits: of many rows a higher C is hardly ever better, and takes longest.
MULTIPLES = (0.001, 0.01, 0.1, 1.0, 10.0)
#: Of bags; a small C cannot tell the right instances from the others.
MULTIPLES_OF_BAGS = (0.1, 1.0, 10.0)
#: For the tight bound, from above: a large C escapes from the stationary points near the hinge's minimiser in which a
#: small one would be caught, and each solution is a start for the next. Of several components it is tried alone: where
#: the hinge is good at all, it was no better by more than .006.
FROM_ABOVE = (100.0, 10.0, 1.0, 0.1)
#: A grid whose highest C is the best goes on to ten times that, up to this multiple.
HIGHEST = {"hinge": 1e3, "tight": 1e4}
#: Where the tight bound begins, and how far behind the hinge it may be there, of a loss from 0 to 1.
FIRST_OF_TIGHT, MOST_BEHIND = 0.1, 0.006
#: A hinge whose loss is this has found nothing: the tight bound is tried from above.
HOPELESS = 0.9
#: How much worse than before it may be at a higher C, for one higher yet to be tried.
HARDLY_WORSE = 0.003
#: Of a bound, that of smallest C is taken which is behind the best by no more than ε, and by this share of its loss.
NEGLIGIBLE = 0.02
#: Of fewer values, what is computed takes no longer than what the interpreter does between: threads would only wait.
FEWEST_VALUES = 20_000
#: Rows for each weight from which a threshold chosen on the training rows holds on others (``study_thresholds``).
ENOUGH_ROWS_A_FEATURE = 10
#: The gap asked for, at the least: a ranking hardly changes below.
EPSILON = 1e-2


@dataclass(frozen=True, slots=True)
class BoundCandidate:
    """A bound and a C, and Δ on the rows held out: the mean over the splits."""

    bound: str
    C: float | Multiple
    loss: float


class _Task(NamedTuple):
    """A path of C with one bound on one split, begun at ``start``; ``is_hopeless``: which is of a hinge that has found
    nothing."""

    split: int
    bound: str
    C: tuple[float | Multiple, ...]
    start: NDArray[np.float64] | None = None
    is_hopeless: bool = False

    @property
    def name(self) -> str:
        """No other task's."""
        return f"split {self.split}, {self.bound}, C from {shown_C(self.C[0])}"


class _Measured(NamedTuple):
    """One C of a task: Δ on the rows held out, and the weights."""

    task: _Task
    C: float | Multiple
    loss: float
    w: NDArray[np.float64]


def rough_path(
    risk: Risk,
    data: TrainingSet,
    settings: StructuredSettings,
    values: Sequence[float],
    watch: Watch,
    start: NDArray[np.float64] | None = None,
) -> Iterator[NDArray[np.float64]]:
    """The weights alone, for one C after another."""
    plan = Plan(loss=risk.loss, settings=replace(settings, C=tuple(values)), start=start, is_rough=True)
    return (trained.w for trained in train(plan, data, replace(watch, strand=UNSTORED), risk))


class _Part:
    """The rows of a split, laid out once for all that is tried on it: one thing after another."""

    def __init__(self, data: TrainingSet, split: Split, loss: Loss, oracle: str) -> None:
        self._data, self._split, self._loss, self._oracle = data, split, loss, oracle

    @cached_property
    def training(self) -> TrainingSet:
        """What candidates are trained on."""
        return self._data.select(self._split.training)

    @cached_property
    def test(self) -> TrainingSet:
        """What they are judged by."""
        return self._data.select(self._split.test)

    @cached_property
    def _risk(self) -> Risk:
        return risk_of(self.training, self._loss, make_oracle(self._oracle, self._loss))

    def path(self, task: _Task, settings: StructuredSettings, watch: Watch) -> Iterator[NDArray[np.float64]]:
        """The weights for one C after another; errors as of ``train_path``."""
        data, loss = self.training, self._loss
        scale = default_C(data, loss, task.bound)
        values = tuple(resolved(C, scale) for C in task.C)
        return rough_path(self._risk, data, settings, values, watch, task.start)

    def loss_of(self, w: NDArray[np.float64]) -> float:
        """Δ on the rows held out."""
        test = self.test
        return loss_by_order(self._loss, test.scores(w), test.target, test.queries, test.query_weights)


class Comparison:
    """Candidates on the splits, as many splits at a time as there are threads."""

    def __init__(
        self,
        data: TrainingSet,
        loss: Loss,
        settings: StructuredSettings,
        watch: Watch,
        splits: Sequence[Split],
        began: float,
        piece: Piece | None,
    ) -> None:
        self._piece = piece
        several = data.rows.n_values >= FEWEST_VALUES
        self._threads = data.rows.threads if several else 1
        self._settings = settings
        self._stopped = False
        self._quiet = Watch(should_stop=lambda: self._stopped or watch.should_stop())
        self._deadline = None if settings.time_limit is None else began + settings.time_limit / 3.0
        self._data = replace(data, rows=data.rows.for_many_passes().with_threads(1))
        self._splits = splits
        self._parts = [_Part(self._data, split, loss, settings.oracle) for split in splits]
        self._measured: list[_Measured] = []

    def try_all(self, named: tuple[float | Multiple, ...] | None) -> None:
        """Everything that is worth it; of ``named`` values of C, if there are any, both bounds at each."""
        data = self._data
        if data.components > 1:
            self._try("tight", named or tuple(map(Multiple, FROM_ABOVE)))
            if named is None:
                self._raise_C("tight", max(FROM_ABOVE))
            return
        multiples = (
            MULTIPLES_OF_BAGS if data.bags is not None else MULTIPLES if len(self._splits) > 1 else MULTIPLES[:-1]
        )
        self._try("hinge", named or tuple(map(Multiple, multiples)))
        if named is None:
            self._raise_C("hinge", max(multiples))
        hinge = self._best("hinge")
        # Of bags the tight bound gains nothing; where it is equal to within ε, the hinge is taken.
        if hinge is None or data.bags is not None or hinge.loss <= self._settings.epsilon:
            return
        if named is None:
            self._try_tight(hinge)
        else:
            self._try("tight", named, after=hinge)

    def _raise_C(self, bound: str, highest: float) -> None:
        """While the ``highest`` C is the best."""
        best = self._best(bound)
        while best is not None and amount(best.C) == highest < HIGHEST[bound]:
            highest *= 10.0
            self._try(bound, (Multiple(highest),), after=best)
            best = self._best(bound)

    def _try_tight(self, hinge: BoundCandidate) -> None:
        """At higher and higher C while it gets better; where it is ahead of the hinge, once more if it hardly does, and
        where it is far ahead, at every C of those from above."""
        if hinge.loss >= HOPELESS:  # there is nothing to start from
            steepest = max((one for one in self.candidates() if one.bound == "hinge"), key=lambda one: amount(one.C))
            self._try("tight", tuple(map(Multiple, FROM_ABOVE)), after=steepest)
            self._raise_C("tight", max(FROM_ABOVE))
            return
        epsilon = self._settings.epsilon
        factor, lowest, idle = FIRST_OF_TIGHT, hinge.loss + MOST_BEHIND, 0
        while factor <= HIGHEST["tight"]:
            C = Multiple(factor)
            self._try("tight", (C,), after=hinge)
            loss = next((one.loss for one in self.candidates() if (one.bound, one.C) == ("tight", C)), math.inf)
            idle = 0 if loss < lowest - epsilon else idle + 1
            lead = hinge.loss - min(loss, lowest)
            is_certain = lead > MOST_BEHIND and factor < max(FROM_ABOVE)
            if loss == math.inf or not (is_certain or (loss <= lowest + HARDLY_WORSE and idle <= (lead > epsilon))):
                return
            factor, lowest = 10.0 * factor, min(loss, lowest)

    def _try(self, bound: str, values: tuple[float | Multiple, ...], after: BoundCandidate | None = None) -> None:
        """A path on each split, from where ``after`` ended there; what could not be trained, or not in time, is left
        out."""
        starts = [None if after is None else self.end(at, after.bound, after.C) for at in range(len(self._splits))]
        is_hopeless = bound == "tight" and after is not None and after.bound == "hinge" and after.loss >= HOPELESS
        tasks = [_Task(at, bound, values, start, is_hopeless) for at, start in enumerate(starts)]
        for path in results(self._do, tasks, min(self._threads, len(tasks)), stop=self._stop):
            self._measured += path

    def _stop(self) -> None:
        """What is under way ends soon."""
        self._stopped = True

    def _do(self, task: _Task) -> list[_Measured]:
        limit = None if self._deadline is None else self._deadline - time.perf_counter()
        if self._quiet.should_stop() or (limit is not None and limit <= 0.0):
            return []
        if self._piece is None:
            return self._measure(task, limit)
        with self._piece.strand(task.name) as strand:
            piece = strand.piece(task.name)
            if piece.result is None:
                path = self._measure(task, limit)
                if self._quiet.should_stop():
                    piece.broken_off()
                piece.done({"loss": [one.loss for one in path], "w": [one.w for one in path]})
                return path
        stored = zip(task.C, piece.result["loss"], piece.result["w"], strict=False)
        return [_Measured(task, C, delta, w) for C, delta, w in stored]

    def _measure(self, task: _Task, limit: float | None) -> list[_Measured]:
        """``limit``: seconds."""
        part = self._parts[task.split]
        path: list[_Measured] = []
        try:
            weights = part.path(task, self._settings_of(task, limit), self._quiet)
            for C, w in zip(task.C, weights, strict=False):
                path.append(_Measured(task, C, part.loss_of(w), w))
        except (FloatingPointError, NothingToRankError):
            pass  # a candidate that cannot be trained on a part of the rows is none
        return path

    def _settings_of(self, task: _Task, time_limit: float | None) -> StructuredSettings:
        settings = self._settings
        return replace(
            settings,
            bound=task.bound,
            C=task.C,
            epsilon=max(settings.epsilon, EPSILON),
            qp="active-set",  # where it is not enough, cvxpy's seconds a QP are not worth it either
            log_ranks=False,
            threads=1,
            time_limit=time_limit,
        )

    @property
    def why_nothing(self) -> str:
        """Why there are no candidates."""
        stopped = self._quiet.should_stop() or (self._deadline is not None and time.perf_counter() >= self._deadline)
        return "there was no time to compare" if stopped else "what was not held out could not be trained on"

    def candidates(self) -> list[BoundCandidate]:
        """Those that were measured on every split, the best first, but for a hinge that is no more than ε behind, since
        its certificate is of the global optimum, and a tight bound that is hardly behind a hinge that has found
        nothing; and but for a smaller C that is as good."""
        losses: dict[tuple[str, float | Multiple], list[float]] = {}
        for one in self._measured:
            losses.setdefault((one.task.bound, one.C), []).append(one.loss)
        whole = [
            BoundCandidate(bound, C, math.fsum(values) / len(values))
            for (bound, C), values in losses.items()
            if len(values) == len(self._splits)
        ]
        whole.sort(key=lambda one: (one.loss, one.bound, amount(one.C)))
        if not whole:
            return []
        epsilon = self._settings.epsilon
        preferred, behind = ("tight", HARDLY_WORSE) if whole[0].loss >= HOPELESS else ("hinge", epsilon)
        alike = (one for one in whole if one.bound == preferred and one.loss <= whole[0].loss + behind)
        best = next(alike, whole[0])
        near = best.loss + min(epsilon, NEGLIGIBLE * best.loss)
        first = min(
            (one for one in whole if one.bound == best.bound and one.loss <= near), key=lambda one: amount(one.C)
        )
        return [first, *(one for one in whole if one is not first)]

    def _best(self, bound: str) -> BoundCandidate | None:
        """Of a bound, the one of the lowest loss."""
        of_bound = (one for one in self.candidates() if one.bound == bound)
        return min(of_bound, key=lambda one: (one.loss, amount(one.C)), default=None)

    def end(self, split: int, bound: str, C: float | Multiple) -> NDArray[np.float64]:
        """The weights of a candidate on a split."""
        return next(one.w for one in self._measured if (one.task.split, one.task.bound, one.C) == (split, bound, C))

    def threshold(self, candidate: BoundCandidate) -> tuple[ChosenThreshold, float | None] | None:
        """``threshold`` and ``called`` of a ``Choice``. Of many rows there is none: a model of all of them knows these
        hardly better than others, and a part's ranker may be of another kind."""
        data = self._data
        if data.target.grades is not None or (data.queries is not None and np.unique(data.queries).size > 1):
            return None
        if len(self._splits) == 1 and len(data.rows) >= ENOUGH_ROWS_A_FEATURE * data.rows.dimension:
            return None
        scores, relevant, seen = [], [], []
        for at, split in enumerate(self._splits):
            w = self.end(at, candidate.bound, candidate.C)
            training, test = map(data.select, (split.training, split.alike))
            known = training.scores(w)
            scale = Scale.of(known)
            scores.append(scale.brought_to(STANDARD, test.scores(w)))
            relevant.append(test.target.relevant)
            seen.append((scale.brought_to(STANDARD, known), training.target.relevant))
        chosen = choose_threshold(np.concatenate(scores), np.concatenate(relevant), ThresholdRule("f1"))
        above = [(known[is_positive] > chosen.value, known[~is_positive] > chosen.value) for known, is_positive in seen]
        of_positives, of_negatives = (
            float(np.mean([part.mean() for part in parts])) for parts in zip(*above, strict=True)
        )
        share = float(data.target.relevant.mean())
        called = share * of_positives + (1.0 - share) * of_negatives
        return chosen, called if of_negatives > 0.0 else None
