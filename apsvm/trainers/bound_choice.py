"""``--bound auto``: the hinge or the tight bound, and with ``-C auto`` the C too, by the loss on rows held out.

The hinge is convex and hard to beat where nearly every positive can be found; where some are hopeless it gives up, and
the tight bound does not. Which of the two a data set wants shows in a second: candidates are trained on a part of the
rows, loosely, and judged by Δ itself (``risk.by_order``) on the rest: each bound at some multiples of its default C,
and further ones where the best stands at the upper edge.

Which rows those are is decided by what a pass over them costs (``candidate_splits``); all candidates together take
about 140 oracle calls on each training part. The choice does not depend on the number of threads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import Loss
from apsvm.metrics.thresholds import ChosenThreshold, ThresholdRule, choose_threshold
from apsvm.risk import NothingToRankError, loss_by_order
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.candidate_splits import Split, candidate_splits
from apsvm.trainers.default_c import default_C
from apsvm.trainers.families.structured_svm import DEFAULT_C, StructuredSettings, shown_C
from apsvm.trainers.score_scale import STANDARD, Scale
from apsvm.trainers.settings import Multiple, amount, resolved, saved_value, value_of_saved
from apsvm.trainers.structured_svm import PathOfWeights, rough_path
from apsvm.work import Piece, Saved

#: Multiples of the default C that are tried, by bound, where none is named. The hinge's go down far: where rows are
#: few, a C at which hardly anything but the direction of the classes' means is learned is often the best.
#: The tight bound's from above: a large C escapes from the stationary points near the hinge's minimiser in which a
#: small one would be caught, and each solution is a start for the next.
MULTIPLES = {"hinge": (0.001, 0.01, 0.1, 1.0, 10.0), "tight": (100.0, 10.0, 1.0, 0.1)}
#: Of bags, where the tight bound gains nothing and a small C cannot tell the right instances from the others.
MULTIPLES_OF_BAGS = {"hinge": (0.1, 1.0, 10.0)}
#: Of several components, by the tight bound alone: where the hinge is good at all, it was no better by more than .006.
MULTIPLES_OF_COMPONENTS = {"tight": MULTIPLES["tight"]}
#: How often a grid whose highest C is the best goes on to ten times that.
WIDENINGS = 2
#: The gap asked for, at the least: a ranking hardly changes below.
EPSILON = 1e-2


@dataclass(frozen=True, slots=True)
class BoundCandidate:
    """A bound and a C, and Δ on the rows held out: the mean over the splits."""

    bound: str
    C: float | Multiple
    loss: float


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen.

    Attributes
    ----------
    bound : "hinge" or "tight"
    C : the values to train with
    candidates : all that was tried, the chosen one first and then by its loss; empty where nothing could be held out
    how : what was held out, or why nothing was
    seconds : that it took
    w : (dimension,) float64, the best candidate's weights on the first split: a start for the tight bound
    threshold : of the highest F1 of the best candidate on the rows held out, on scores whose training rows' have mean 0
        and deviation 1; None of grades, several queries or several C
    """

    bound: str
    C: tuple[float | Multiple, ...]
    candidates: Sequence[BoundCandidate]
    how: str
    seconds: float
    w: NDArray[np.float64] | None = None
    threshold: ChosenThreshold | None = None

    def to_saved(self) -> Saved:
        """For ``of_saved``."""
        return {
            "bound": self.bound,
            "C": [saved_value(C) for C in self.C],
            "candidates": [[one.bound, saved_value(one.C), one.loss] for one in self.candidates],
            "how": self.how,
            "seconds": self.seconds,
            "w": self.w,
            "threshold": None if self.threshold is None else asdict(self.threshold),
        }

    @classmethod
    def of_saved(cls, saved: Saved) -> Choice:
        """The choice that was saved."""
        candidates = [BoundCandidate(bound, value_of_saved(C), loss) for bound, C, loss in saved["candidates"]]
        C = tuple(map(value_of_saved, saved["C"]))
        known = saved.get("threshold")  # a checkpoint of an earlier version has none
        threshold = None if known is None else ChosenThreshold(**known)
        return cls(saved["bound"], C, candidates, saved["how"], saved["seconds"], saved["w"], threshold)

    def __str__(self) -> str:
        if not self.candidates:
            return f"--bound auto: {self.bound} ({self.how})"
        best = self.candidates[0]
        other = next((one for one in self.candidates if one.bound != best.bound), None)
        against = "" if other is None else f"; {other.bound} at its best: {other.loss:.4g} (C = {shown_C(other.C)})"
        return (
            f"--bound auto: {best.bound}, C = {shown_C(best.C)}: loss {best.loss:.4g} on rows held out ({self.how})"
            f"{against}"
        )


class _Task(NamedTuple):
    """A path of C with one bound on one split, begun at ``start``."""

    split: int
    bound: str
    C: tuple[float | Multiple, ...]
    start: NDArray[np.float64] | None = None

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


def choose(data: TrainingSet, loss: Loss, settings: StructuredSettings, watch: Watch) -> Choice:
    """The bound for ``data``, and the C if ``settings`` leave it to the default.

    Parameters
    ----------
    loss : over rankings
    settings : all but ``bound`` count; a third of the time limit at most is spent
    """
    if not watch.strand.is_stored:
        return _compared(data, loss, settings, watch)
    piece = watch.strand.piece("the choice of the bound")
    if piece.result is not None:
        return Choice.of_saved(piece.result)
    choice = _compared(data, loss, settings, watch, piece)
    if watch.should_stop():
        piece.broken_off()
    piece.done(choice.to_saved())
    return choice


def _compared(
    data: TrainingSet, loss: Loss, settings: StructuredSettings, watch: Watch, piece: Piece | None = None
) -> Choice:
    began = time.perf_counter()
    splits, how = candidate_splits(data, settings.seed)
    if not splits:
        return Choice("hinge" if data.components == 1 else "tight", settings.C, (), how, time.perf_counter() - began)
    comparison = _Comparison(data, loss, settings, watch, splits, began, piece)
    free = settings.C == DEFAULT_C
    multiples = _multiples(data)
    grids = {bound: tuple(map(Multiple, multiples[bound])) if free else settings.C for bound in multiples}
    comparison.run(_Task(at, bound, grid) for at in range(len(splits)) for bound, grid in grids.items())
    for _ in range(WIDENINGS if free else 0):
        best = comparison.candidates()[:1]
        if not best or amount(best[0].C) < max(map(amount, grids[best[0].bound])):
            break
        (top,) = best
        higher = Multiple(10.0 * amount(top.C))
        grids[top.bound] = (*grids[top.bound], higher)
        comparison.run(
            _Task(at, top.bound, (higher,), comparison.end(at, top.bound, top.C)) for at in range(len(splits))
        )
    candidates = comparison.candidates()
    if not candidates:
        seconds = time.perf_counter() - began
        return Choice("hinge" if data.components == 1 else "tight", settings.C, (), comparison.why_nothing, seconds)
    top = candidates[0]
    C = (top.C,) if free else settings.C
    threshold = comparison.threshold(top) if C == (top.C,) else None
    seconds = time.perf_counter() - began
    return Choice(top.bound, C, candidates, how, seconds, comparison.end(0, top.bound, top.C), threshold)


class _Comparison:
    """Candidates on the splits, as many at a time as there are threads."""

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
        self._loss = loss
        self._threads = data.rows.threads
        self._settings = settings
        self._quiet = Watch(should_stop=watch.should_stop)
        self._deadline = None if settings.time_limit is None else began + settings.time_limit / 3.0
        self._data = replace(data, rows=data.rows.for_many_passes().with_threads(1))
        self._splits = splits
        self._measured: list[_Measured] = []

    def run(self, tasks: Iterator[_Task]) -> None:
        """What could not be trained, or not in time, is left out."""
        # The largest first: the last of them should not run alone.
        listed = sorted(tasks, key=lambda task: task.bound == "hinge")
        if self._threads == 1:
            done = map(self._do, listed)
            self._measured += [one for path in done for one in path]
            return
        from concurrent.futures import ThreadPoolExecutor  # one thread does without

        with ThreadPoolExecutor(self._threads) as pool:
            self._measured += [one for path in pool.map(self._do, listed) for one in path]

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
        split = self._splits[task.split]
        training, test = self._data.select(split.training), None
        settings = self._settings_of(task, limit)
        scale = default_C(training, self._loss, task.bound)
        values = [resolved(C, scale) for C in task.C]
        path: list[_Measured] = []
        try:
            weights = _path_of(training)(training, self._loss, settings, values, self._quiet, task.start)
            for C, w in zip(task.C, weights, strict=False):
                test = self._data.select(split.test) if test is None else test
                delta = loss_by_order(self._loss, test.scores(w), test.target, test.queries, test.query_weights)
                path.append(_Measured(task, C, delta, w))
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
        """Those that were measured on every split, the best first, but for a hinge that is no more than ε behind: its
        certificate is of the global optimum. Of equals the smaller C."""
        losses: dict[tuple[str, float | Multiple], list[float]] = {}
        for one in self._measured:
            losses.setdefault((one.task.bound, one.C), []).append(one.loss)
        whole = [
            BoundCandidate(bound, C, math.fsum(values) / len(values))
            for (bound, C), values in losses.items()
            if len(values) == len(self._splits)
        ]
        whole.sort(key=lambda one: (one.loss, one.bound, amount(one.C)))
        near = whole[0].loss + self._settings.epsilon if whole else 0.0
        hinge = next((one for one in whole if one.bound == "hinge" and one.loss <= near), None)
        return whole if hinge is None else [hinge, *(one for one in whole if one is not hinge)]

    def end(self, split: int, bound: str, C: float | Multiple) -> NDArray[np.float64]:
        """The weights of a candidate on a split."""
        return next(one.w for one in self._measured if (one.task.split, one.task.bound, one.C) == (split, bound, C))

    def threshold(self, candidate: BoundCandidate) -> ChosenThreshold | None:
        """See ``Choice``."""
        data = self._data
        if data.target.grades is not None or (data.queries is not None and np.unique(data.queries).size > 1):
            return None
        scores, relevant = [], []
        for at, split in enumerate(self._splits):
            w = self.end(at, candidate.bound, candidate.C)
            training, test = map(data.select, (split.training, split.alike))
            scores.append(Scale.of(training.scores(w)).brought_to(STANDARD, test.scores(w)))
            relevant.append(test.target.relevant)
        return choose_threshold(np.concatenate(scores), np.concatenate(relevant), ThresholdRule("f1"))


def _multiples(data: TrainingSet) -> Mapping[str, tuple[float, ...]]:
    if data.components > 1:
        return MULTIPLES_OF_COMPONENTS
    return MULTIPLES if data.bags is None else MULTIPLES_OF_BAGS


def _path_of(data: TrainingSet) -> PathOfWeights:
    if data.components > 1:
        from apsvm.trainers.components import rough_path_of_components

        return rough_path_of_components
    if data.bags is None:
        return rough_path
    from apsvm.trainers.latent import rough_path_of_bags

    return rough_path_of_bags
