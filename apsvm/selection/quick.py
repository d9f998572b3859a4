"""The first comparison of ``apsvm train``: the hinge and the tight bound, and with -C auto their C. Two components
(``mixture``) and boosted rules (``maps``) are then compared with the best of these.

The hinge is convex and hard to beat where nearly every positive can be found; where some are hopeless it gives up, and
the tight bound does not. Which of the two a data set wants shows in a second: plans are trained on folds, roughly, and
judged by Δ itself (``risk.by_order``) on the rest. The metric of this race is the loss: the lower, the better.

First the hinge at some multiples of its default C, then, from the best one's weights, the tight bound (``_paths``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.oracles import make_oracle
from apsvm.risk import NothingToRankError, Risk
from apsvm.risk.by_order import loss_by_order
from apsvm.selection.choose import standard_error
from apsvm.selection.folds import AffordableFolds, affordable_folds
from apsvm.selection.grids import Variant
from apsvm.selection.race import Candidate, Measured, Measurements, OutOfFold, PathInFold, Race, Task
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.one_vs_rest import of_class
from apsvm.trainers.settings import Multiple, amount
from apsvm.trainers.structured_svm.default_c import default_C
from apsvm.trainers.structured_svm.objective import loss_of_order, risk_of
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import DEFAULT_C, shown_C
from apsvm.trainers.structured_svm.training import train

if TYPE_CHECKING:
    from apsvm.data.lockstep import Lockstep
    from apsvm.selection.folds import Fold
    from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

LOSS = "loss"
#: Multiples of the default C at which the hinge is tried where no C is named. They go down far: where rows are few, a C
#: at which hardly anything but the direction of the classes' means is learned is often the best. The last is only for
#: data of which there are several folds: of many rows a higher C is hardly ever better, and takes longest.
MULTIPLES = (0.001, 0.01, 0.1, 1.0, 10.0)
#: Of bags, where a small C cannot tell the right instances from the others; and of columns that were learned from the
#: labels: no single C does as well there (on 48 sets of KEEL the choice has .727, C = 1x .719, .1x and 10x .718).
FEW_MULTIPLES = (0.1, 1.0, 10.0)
#: For the tight bound, from above: a large C escapes from the stationary points near the hinge's minimiser in which a
#: small one would be caught, and each solution is a start for the next. On 80 sets, three splits, test AP was .003
#: (± .002) above what a path from below had, and .004 above one from 10x.
FROM_ABOVE = (100.0, 10.0, 1.0, 0.1)
#: Candidates that are behind the best of their bound by no more than half a standard error are as good; the smallest C
#: of them is taken. With a whole one, of few rows a C was taken at which hardly more than the direction of the classes'
#: means is learned: on 80 sets, two splits, test AP was .0015 lower.
ERRORS = 0.5
#: Of fewer values, what is computed takes no longer than what the interpreter does between: threads would only wait.
FEWEST_VALUES = 20_000
#: The gap asked for, by the bound, at the least: a ranking hardly changes below.
EPSILON = {"hinge": 0.01, "tight": 0.1}
#: Random orders that the chosen one is compared with; of few, as each is a sort of the rows held out.
SHUFFLES = 5
#: Of the time limit, what the race may take.
SHARE_OF_TIME = 1.0 / 3.0
#: Of several classes, this many are compared, evenly from the rarest to the most frequent. Five were compared in .6 of
#: the time, but of 50,000 rows of ten classes by chance a C was taken whose training takes twice as long.
MOST_CLASSES = 10


@dataclass(frozen=True, eq=False)
class Choice:
    """The bound, and the C where none was named; of several classes they share one.

    Attributes
    ----------
    bound : "hinge" or "tight"
    C : the values to train with
    candidates : all that were finished, the chosen one first and then by their loss; empty where nothing was held out
    how : what was held out, or why nothing was
    race : where the candidates were measured; None where nothing was held out
    """

    bound: str
    C: tuple[float | Multiple, ...]
    candidates: Sequence[Candidate]
    how: str
    race: QuickRace | None = None

    @property
    def folds(self) -> AffordableFolds:
        """Where the candidates were compared, of one list; without folds where there was no race."""
        return AffordableFolds([], self.how) if self.race is None else self.race.affordable[0]

    @property
    def loss(self) -> float:
        """Mean loss of the chosen candidate on held-out rows; nan without candidates."""
        return self.candidates[0].mean(LOSS) if self.candidates else np.nan

    @cached_property
    def by_chance(self) -> tuple[float, float]:
        """Mean and deviation of the loss of the rows held out where the chosen candidate's scores are shuffled; nan
        where there is no candidate, or rows are in queries: that is a question of more than one order."""
        if self.race is None or not self.candidates or self.race.data.queries is not None:
            return np.nan, np.nan
        rng = np.random.default_rng(self.race.trainer.settings.seed)
        losses = np.zeros(SHUFFLES)
        for fold, measured in enumerate(self.candidates[0].folds):
            assert isinstance(measured.w, np.ndarray)
            test = self.race.test(fold)
            scores = test.scores(measured.w)
            losses += [loss_by_order(self.race.trainer.loss, rng.permutation(scores), test.target) for _ in losses]
        losses /= len(self.candidates[0].folds)
        return float(losses.mean()), float(losses.std(ddof=1))

    def start(self, label: float | None = None) -> NDArray[np.float64] | None:
        """(dimension,) float64, the chosen candidate's weights on the first fold, of a class where there are several;
        None where there are none."""
        if self.race is None or not self.candidates or label not in self.race.labels or self.race.relearns:
            return None
        w = self.candidates[0].folds[self.race.first_fold_of(label)].w
        assert isinstance(w, np.ndarray)
        return w

    def best_C(self, bound: str) -> float | Multiple:
        """At which this bound did best; the default where it was not tried."""
        return next((_C(one) for one in self.candidates if one.choice["bound"] == bound), Multiple(1.0))

    def in_words(self, start: str = "") -> str:
        """A line; ``start``: the loss that the choice is of, where another loss starts from its model."""
        begins, loss = (f"--bound auto of the start, {start}", f"{start} loss") if start else ("--bound auto", "loss")
        if not self.candidates:
            return f"{begins}: {self.bound} ({self.how})"
        other = next((one for one in self.candidates if one.choice["bound"] != self.bound), None)
        against = ""
        if other is not None:
            against = f"; {other.choice['bound']} at its best: {other.mean(LOSS):.4g} (C = {shown_C(_C(other))})"
        C = shown_C(self.C[0] if len(self.C) == 1 else _C(self.candidates[0]))
        return f"{begins}: {self.bound}, C = {C}: {loss} {self.loss:.4g} on rows held out ({self.how}){against}"


def choose(
    trainer: StructuredSVMTrainer,
    data: TrainingSet,
    watch: Watch,
    labels: Sequence[float | None] = (None,),
    within: AffordableFolds | None = None,
) -> Choice:
    """The bound for ``data``, and the C if the settings leave it to the default.

    Parameters
    ----------
    trainer : of a loss over rankings, by an exact oracle; its bound does not count
    data : rows with classes, where ``labels`` are several: then each of these classes against the others is trained
        with what is chosen, and the loss is the mean over them
    within : the folds; None: those that are affordable
    """
    settings, free = trainer.settings, trainer.settings.C == DEFAULT_C
    sets = [data if label is None else of_class(data, label) for label in labels]
    folds = [within] if within else [affordable_folds(one, settings.seed, len(sets)) for one in sets]
    able = [at for at, one in enumerate(folds) if one.folds]
    nothing_known = "hinge" if data.components == 1 else "tight"
    if not able:
        return Choice(nothing_known, settings.C, (), folds[0].how)
    race = QuickRace(trainer, [sets[at] for at in able], [folds[at] for at in able], [labels[at] for at in able])
    candidates = _candidates(race, None if free else settings.C, watch)
    how = folds[able[0]].how if len(labels) == 1 else f"{folds[able[0]].how}, of {len(able)} classes"
    if not candidates:
        stopped = watch.should_stop() or race.is_late()
        why = "there was no time to compare" if stopped else "what was not held out could not be trained on"
        return Choice(nothing_known, settings.C, (), why)
    top = candidates[0]
    return Choice(top.choice["bound"], (_carried(top, race),) if free else settings.C, candidates, how, race)


class QuickRace(Race):
    """Plans of a structured SVM on folds of rows in memory: trained roughly, judged by their own loss.

    Parameters
    ----------
    sets : the rows, once for each class that is compared; folds : of each; labels : of each, None without classes

    ``relearns``: each fold's columns are its own, so that weights of one fold are none for other rows.
    """

    def __init__(
        self,
        trainer: StructuredSVMTrainer,
        sets: Sequence[TrainingSet],
        folds: Sequence[AffordableFolds],
        labels: Sequence[float | None],
    ) -> None:
        self.trainer, self.labels = trainer, list(labels)
        limit = trainer.settings.time_limit
        self._deadline = None if limit is None else time.perf_counter() + SHARE_OF_TIME * limit
        self.relearns = sets[0].relearned is not None
        rows = sets[0].rows if self.relearns else sets[0].rows.for_many_passes()
        self.threads = rows.threads if rows.n_values >= FEWEST_VALUES else 1
        rows = rows.with_threads(1)
        self._sets = [replace(one, rows=rows) for one in sets]
        self.affordable = folds
        self._first: list[int] = []
        parts: list[_FoldRows] = []
        for data, of_set in zip(self._sets, folds, strict=True):
            self._first.append(len(parts))
            parts += [_FoldRows(trainer, data, fold) for fold in of_set.folds]
        self._parts = parts
        self.folds = [part.fold for part in parts]
        self.data = self._sets[0]
        self.is_of_parts = folds[0].alike is not None

    def of(self, trainer: StructuredSVMTrainer) -> QuickRace:
        """The same folds for another plan, of the same loss, of one list: for more components than one, too."""
        other = copy(self)
        other.trainer, other.data = trainer, trainer.rows_of(self.data)
        other._sets = [other.data]
        other._parts = [part.of(trainer, other.data) for part in self._parts]
        return other

    def test(self, fold: int) -> TrainingSet:
        """The rows that a fold is judged by."""
        return self._parts[fold].test

    def first_fold_of(self, label: float | None) -> int:
        """The number of the first fold of a class."""
        return self._first[self.labels.index(label)]

    def is_late(self) -> bool:
        """True if the race's share of the time limit is over."""
        return self._deadline is not None and time.perf_counter() >= self._deadline

    def variant(self, bound: str, values: Sequence[float | Multiple]) -> Variant:
        """A path of C by one bound."""
        settings = self.trainer.settings
        trainer = self.trainer.with_settings(
            bound=bound,
            C=tuple(values),
            epsilon=max(settings.epsilon, EPSILON[bound]),
            qp="active-set",  # where it is not enough, cvxpy's seconds a QP are not worth it either
            log_ranks=False,
            threads=1,
        )
        return Variant(trainer, {"bound": bound}, "C")

    def trained(self, task: Task, watch: Watch, lockstep: Lockstep | None = None) -> PathInFold:
        path, part, trainer = PathInFold(task), self._parts[task.fold], task.variant.trainer
        left = None if self._deadline is None else self._deadline - time.perf_counter()
        if left is not None and left <= 0.0:
            return path
        settings = trainer.settings if left is None else replace(trainer.settings, time_limit=left)
        plan = Plan(loss=self.trainer.loss, settings=settings, start=task.start, is_rough=True)
        risk = part.risk if part.training.bags is None and part.training.components == 1 else None
        began = time.perf_counter()
        # What is not finite ends a candidate; each thread has an errstate of its own.
        with np.errstate(over="ignore", invalid="ignore"), suppress(FloatingPointError, NothingToRankError):
            for C, trained in zip(settings.C, train(plan, part.training, watch, risk), strict=False):
                loss = loss_of_order(part.test, self.trainer.loss, trained.w)
                now = time.perf_counter()
                choice = {**task.variant.choice, "C": C}
                path.settings.append(Measured(choice, {LOSS: loss}, now - began, "", True, trained.C, trained.w))
                began = now
        return path

    def scored(self, measured: Measured, grid: int, fold: int) -> OutOfFold:
        part, w = self._parts[fold], measured.w
        assert isinstance(w, np.ndarray)
        at = max(number for number, first in enumerate(self._first) if first <= fold)
        alike = self.affordable[at].alike
        test = part.fold.test if alike is None else alike[fold - self._first[at]]
        return OutOfFold(test, part.data.select(test).scores(w), part.fold.training, part.training.scores(w))

    def folds_of(self, label: float | None) -> range:
        """The numbers of the folds of a class."""
        first = self.first_fold_of(label)
        return range(first, first + len(self.affordable[self.labels.index(label)].folds))


class _FoldRows:
    """The rows of a fold, laid out once for all that is tried on it: one path after another.

    data : all rows, as they are mapped without the labels of those left out
    training, test : what plans are trained on, and judged by
    """

    def __init__(self, trainer: StructuredSVMTrainer, data: TrainingSet, fold: Fold) -> None:
        self._trainer, self.fold = trainer, fold
        self.data = data.without_labels_of_others(fold.training)
        if self.data is not data:
            self.data = replace(self.data, rows=self.data.rows.for_many_passes().with_threads(1))
        self.training, self.test = (self._copied(which) for which in (fold.training, fold.test))
        self._risk: Risk | None = None

    def of(self, trainer: StructuredSVMTrainer, like: TrainingSet) -> _FoldRows:
        """The same rows for another plan, with the constant feature that the rows ``like`` have."""
        other = copy(self)
        other._trainer, other._risk = trainer, None
        other.data, other.training, other.test = (
            trainer.rows_of(rows, like) for rows in (self.data, self.training, self.test)
        )
        return other

    def _copied(self, which: NDArray[np.int64]) -> TrainingSet:
        part = self.data.select(which)
        return replace(part, rows=part.rows.copied())

    @property
    def risk(self) -> Risk:
        """Risk of the training rows."""
        if self._risk is None:
            loss = self._trainer.loss
            self._risk = risk_of(self.training, loss, make_oracle(self._trainer.settings.oracle, loss))
        return self._risk


def _paths(race: QuickRace) -> list[tuple[str, Sequence[float]]]:
    """The table of what is compared: a bound and its values of C, each going on from the best of those before it."""
    if race.data.components > 1:
        return [("tight", FROM_ABOVE)]
    # With bags, and with columns learned from the labels, the tight bound gains nothing.
    if race.relearns or race.data.bags is not None:
        return [("hinge", FEW_MULTIPLES)]
    return [("hinge", MULTIPLES[: 4 if race.is_of_parts else 5]), ("tight", FROM_ABOVE)]


def _candidates(race: QuickRace, named: tuple[float | Multiple, ...] | None, watch: Watch) -> list[Candidate]:
    """All candidates that were trained in time, the chosen one first and then by their loss; where values of C are
    ``named``, at these."""
    measured, best = Measurements([race.trainer.loss_name], len(race.folds)), None
    for bound, multiples in _paths(race):
        variant = race.variant(bound, named or tuple(map(Multiple, multiples)))
        starts = [None if best is None else best.folds[fold].w for fold in range(len(race.folds))]
        tasks = [Task(0, variant, fold, w if isinstance(w, np.ndarray) else None) for fold, w in enumerate(starts)]
        for path in race.run(tasks, min(race.threads, len(tasks)), watch.should_stop):
            measured.add(path)
        best = min(measured.candidates(), key=_by_loss, default=None)
        if best is None or best.mean(LOSS) <= race.trainer.settings.epsilon:
            break
    return _chosen_first(sorted(measured.candidates(), key=_by_loss), race)


def _chosen_first(ranked: list[Candidate], race: QuickRace) -> list[Candidate]:
    """A hinge that is behind by at most ε is chosen, since its certificate is of the global optimum; and of one bound
    the smallest C within ``ERRORS`` standard errors (Breiman et al. 1984 use one)."""
    if not ranked or race.relearns:
        return ranked
    highest = ranked[0].mean(LOSS) + race.trainer.settings.epsilon
    hinges = (one for one in ranked if one.choice["bound"] == "hinge" and one.mean(LOSS) <= highest)
    best = next(hinges, ranked[0])
    of_bound = [one for one in ranked if one.choice["bound"] == best.choice["bound"]]
    chosen = min((one for one in of_bound if _is_as_good(one, best)), key=lambda one: amount(_C(one)))
    return [chosen, *(one for one in ranked if one is not chosen)]


def _is_as_good(one: Candidate, best: Candidate) -> bool:
    behind = np.subtract(one.values(LOSS), best.values(LOSS))
    return bool(behind.mean() <= ERRORS * standard_error(behind))


def _by_loss(one: Candidate) -> tuple[float, str, float]:
    """Sorts candidates; of equal ones the hinge is first, and the smaller C."""
    return one.mean(LOSS), one.choice["bound"], amount(_C(one))


def _C(candidate: Candidate) -> float | Multiple:
    value: float | Multiple = candidate.choice["C"]
    return value


def _carried(candidate: Candidate, race: QuickRace) -> Multiple:
    """The C of a candidate for all rows: the same multiple of the default, but no more than √n times what was best on a
    part of n times fewer rows. Where columns are many the default grows faster: of 600,000 rows of text the model of
    the multiple had an AP of .065 in 22 s, this one .073 in 3 s."""
    C = _C(candidate)
    assert isinstance(C, Multiple)
    at = candidate.folds[0].C
    if not race.is_of_parts or at is None:
        return C
    growth = math.sqrt(race.data.n / race.folds[0].training.size)
    most = at * growth / default_C(race.data, race.trainer.loss, candidate.choice["bound"])
    return C if most > 0.9 * C.factor else Multiple(float(f"{most:.2g}"))


def classes_compared(data: TrainingSet) -> list[float | None]:
    """The labels of the classes that speak for all: at most ``MOST_CLASSES``."""
    assert data.target.classes is not None
    labels = data.target.classes.labels
    counts = [int(data.target.classes.target(label).relevant.sum()) for label in labels]
    order = sorted(range(len(labels)), key=lambda at: counts[at])
    if len(order) > MOST_CLASSES:
        order = [order[at] for at in np.linspace(0, len(order) - 1, MOST_CLASSES).round().astype(int)]
    return [labels[at] for at in sorted(order)]
