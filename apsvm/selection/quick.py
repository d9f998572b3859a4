"""Compares bounds and values of C for ``apsvm train``. Two components (``mixture``) and boosted rules (``maps``) are
then compared with the best of them.

The hinge is convex and hard to beat if nearly every positive can be found. If some are hopeless it gives up on the
rest, and the tight bound does not. A quick race shows which of the two suits a data set: plans are trained roughly on
folds and judged by Δ itself (``risk.by_order``) on the held-out rows, so lower is better.

The hinge comes first, at several multiples of its default C; the tight bound then starts from the best hinge weights
(``_paths``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.oracles import make_oracle
from apsvm.risk import NothingToRankError, Risk
from apsvm.risk.by_order import loss_by_order
from apsvm.selection.choose import chosen_by_others, standard_error
from apsvm.selection.folds import AffordableFolds, affordable_folds
from apsvm.selection.grids import AROUND, Variant
from apsvm.selection.race import Candidate, Measured, Measurements, OutOfFold, PathInFold, Race, Task
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.one_vs_rest import of_class
from apsvm.trainers.settings import Multiple, amount
from apsvm.trainers.structured_svm.default_c import default_C
from apsvm.trainers.structured_svm.objective import loss_of_order, risk_of
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import DEFAULT_C
from apsvm.trainers.structured_svm.training import train

if TYPE_CHECKING:
    from apsvm.selection.folds import Fold
    from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

LOSS = "loss"
#: Multiples of the default C for the hinge, if the user named no C. They go far down: with few rows a C that learns
#: little more than the direction between the class means is often best. The last one is skipped on a part of many rows,
#: where a higher C is hardly ever better and takes longest.
MULTIPLES = (0.001, 0.01, 0.1, 1.0, 10.0)
#: Multiples for the tight bound, from above: a large C escapes the stationary points near the hinge's minimiser that
#: would trap a small one, and each solution starts the next. On 80 sets and three splits test AP was .003 (± .002)
#: above that of a path from below, and .004 above that of one from 10x.
FROM_ABOVE = (100.0, 10.0, 1.0, 0.1)
#: With fewer feature values the interpreter takes as long as the kernels, so threads would only wait.
FEWEST_VALUES = 20_000
#: Smallest ε by bound: the ranking hardly changes below.
EPSILON = {"hinge": 0.01, "tight": 0.1}
#: Number of random orders that the chosen one is compared with; each is a sort of the held-out rows.
SHUFFLES = 5
#: Share of the time limit for a race. There may be three: of columns, of two components and of rules.
SHARE_OF_TIME = 1.0 / 4.0
#: Number of classes that are compared, evenly from the rarest to the most frequent. Five took .6 of the time, but on
#: 50,000 rows of ten classes they chose a C whose training took twice as long.
MOST_CLASSES = 10


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen bound and C; several classes share one choice.

    Attributes
    ----------
    bound : "hinge" or "tight"
    C : values to train with
    candidates : all finished candidates, the chosen one first, then by loss; empty if no rows were held out
    how : description of the held-out rows, or why there were none
    race : the race that measured the candidates; None if no rows were held out
    """

    bound: str
    C: tuple[float | Multiple, ...]
    candidates: Sequence[Candidate]
    how: str
    race: QuickRace | None = None

    @property
    def folds(self) -> AffordableFolds:
        """Folds of the comparison, for a single list; empty if there was no race."""
        return AffordableFolds([], self.how) if self.race is None else self.race.affordable[0]

    @property
    def loss(self) -> float:
        """Mean loss of the chosen candidate on held-out rows; nan without candidates."""
        return self.candidates[0].mean(LOSS) if self.candidates else np.nan

    @cached_property
    def by_chance(self) -> tuple[float, float]:
        """Mean and standard deviation of the held-out loss when the chosen candidate's scores are shuffled. nan without
        candidates or with queries."""
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

    def out_of_fold(self, label: float | None = None) -> tuple[list[OutOfFold], list[OutOfFold]]:
        """Held-out scores of the chosen candidate, of a class if there are several; and in each fold those of the
        candidate with the lowest loss in the others."""
        assert self.race is not None
        chosen, others = list[OutOfFold](), list[OutOfFold]()
        best = chosen_by_others(self.candidates, LOSS, -1.0)
        for fold in self.race.folds_of(label):
            chosen.append(self.race.scored(self.candidates[0].folds[fold], 0, fold))
            is_chosen = best[fold] is self.candidates[0]
            others.append(chosen[-1] if is_chosen else self.race.scored(best[fold].folds[fold], 0, fold))
        return chosen, others

    def start(self, label: float | None = None) -> NDArray[np.float64] | None:
        """(dimension,) float64 weights of the chosen candidate on the first fold (of the class ``label``), or None."""
        if self.race is None or not self.candidates or label not in self.race.labels or self.race.relearns:
            return None
        w = self.candidates[0].folds[self.race.first_fold_of(label)].w
        assert isinstance(w, np.ndarray)
        return w

    def best_C(self, bound: str) -> float | Multiple:
        """C with the lowest loss for this bound; the default if the bound was not tried."""
        return next((_C(one) for one in self.candidates if one.choice["bound"] == bound), Multiple(1.0))


def choose(
    trainer: StructuredSVMTrainer,
    data: TrainingSet,
    watch: Watch,
    labels: Sequence[float | None] = (None,),
    within: AffordableFolds | None = None,
) -> Choice:
    """Chooses the bound for ``data``, and C if the settings leave it open.

    Parameters
    ----------
    trainer : a plan with a loss over rankings and an exact oracle; its bound is ignored
    data : the rows; if there are several ``labels``, each of these classes is trained against the others, and the loss
        is the mean over the classes
    within : the folds; by default those that are affordable
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
    """Trains plans of a structured SVM roughly on folds of rows in memory and judges them by their own loss.

    Parameters
    ----------
    sets : the rows, once for each compared class
    folds : the folds of each set
    labels : the class of each set; None without classes

    Attributes
    ----------
    relearns : True if each fold has its own columns, so that weights of one fold do not fit other rows
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
        sets = [replace(one, rows=rows) for one in sets]
        self.affordable = folds
        self._first: list[int] = []
        parts: list[_FoldRows] = []
        for data, of_set in zip(sets, folds, strict=True):
            self._first.append(len(parts))
            parts += [_FoldRows(trainer, data, fold) for fold in of_set.folds]
        self._parts = parts
        self.folds = [part.fold for part in parts]
        self.data = sets[0]
        self.is_of_parts = folds[0].alike is not None

    def test(self, fold: int) -> TrainingSet:
        """Held-out rows of a fold."""
        return self._parts[fold].test

    def first_fold_of(self, label: float | None) -> int:
        """Number of the first fold of a class."""
        return self._first[self.labels.index(label)]

    def is_late(self) -> bool:
        """True if the race has used its share of the time limit."""
        return self._deadline is not None and time.perf_counter() >= self._deadline

    def variant(self, bound: str, values: Sequence[float | Multiple]) -> Variant:
        """A path of C for one bound."""
        settings = self.trainer.settings
        trainer = self.trainer.with_settings(
            bound=bound,
            C=tuple(values),
            epsilon=max(settings.epsilon, EPSILON[bound]),
            qp="active-set",  # where it fails, a QP by cvxpy would take seconds
            log_ranks=False,
            threads=1,
        )
        return Variant(trainer, {"bound": bound}, "C")

    def trained(self, task: Task, watch: Watch) -> PathInFold:
        path, part, trainer = PathInFold(task), self._parts[task.fold], task.variant.trainer
        left = None if self._deadline is None else self._deadline - time.perf_counter()
        if left is not None and left <= 0.0:
            return path
        settings = trainer.settings if left is None else replace(trainer.settings, time_limit=left)
        plan = Plan(loss=self.trainer.loss, settings=settings, start=task.start, is_rough=True)
        risk = part.risk if part.training.bags is None and part.training.components == 1 else None
        began = time.perf_counter()
        # A value that is not finite ends the candidate; each thread has its own errstate.
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
        """Numbers of the folds of a class."""
        first = self.first_fold_of(label)
        return range(first, first + len(self.affordable[self.labels.index(label)].folds))


class _FoldRows:
    """The rows of a fold, laid out once for all paths.

    Attributes
    ----------
    data : all rows, mapped without the labels of the held-out ones
    training : the rows to train on
    test : the held-out rows
    """

    def __init__(self, trainer: StructuredSVMTrainer, data: TrainingSet, fold: Fold) -> None:
        self._trainer, self.fold = trainer, fold
        self.data = data.without_labels_of_others(fold.training)
        if self.data is not data:
            self.data = replace(self.data, rows=self.data.rows.for_many_passes().with_threads(1))
        self.training, self.test = (self._copied(which) for which in (fold.training, fold.test))
        self._risk: Risk | None = None

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
    """Bounds and their multiples of C, in order of comparison; each path starts from the best candidate before it."""
    if race.data.components > 1:
        return [("tight", FROM_ABOVE)]
    # With bags and with columns learned from labels the tight bound gains nothing.
    if race.relearns or race.data.bags is not None:
        return [("hinge", AROUND)]
    return [("hinge", MULTIPLES[:-1] if race.is_of_parts else MULTIPLES), ("tight", FROM_ABOVE)]


def _candidates(race: QuickRace, named: tuple[float | Multiple, ...] | None, watch: Watch) -> list[Candidate]:
    """All candidates that finished in time, the chosen one first, then by loss. ``named`` values of C replace the
    multiples."""
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
    """Puts the choice first: a hinge that is behind by at most ε wins, since its certificate is of the global optimum;
    within a bound the smallest C within a standard error wins (Breiman et al. 1984). Of columns learned from labels the
    lowest loss wins."""
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
    return bool(behind.mean() <= standard_error(behind))


def _by_loss(one: Candidate) -> tuple[float, bool, float]:
    """Sort key: the loss, then the hinge first, then the smaller C."""
    return one.mean(LOSS), one.choice["bound"] != "hinge", amount(_C(one))


def _C(candidate: Candidate) -> float | Multiple:
    value: float | Multiple = candidate.choice["C"]
    return value


def _carried(candidate: Candidate, race: QuickRace) -> Multiple:
    """C of a candidate for all rows: the same multiple of the default, but at most √n times the best C on a part with n
    times fewer rows. With many columns the default grows faster: on 600,000 rows of text the model of the multiple
    had AP .065 after 22 s, this one .073 after 3 s."""
    C = _C(candidate)
    assert isinstance(C, Multiple)
    at = candidate.folds[0].C
    if not race.is_of_parts or at is None:
        return C
    growth = math.sqrt(race.data.n / race.folds[0].training.size)
    most = at * growth / default_C(race.data, race.trainer.loss, candidate.choice["bound"])
    return C if most > 0.9 * C.factor else Multiple(float(f"{most:.2g}"))


def classes_compared(data: TrainingSet) -> list[float | None]:
    """Labels of the classes that represent all: at most ``MOST_CLASSES``."""
    assert data.target.classes is not None
    labels = data.target.classes.labels
    counts = [int(data.target.classes.target(label).relevant.sum()) for label in labels]
    order = sorted(range(len(labels)), key=lambda at: counts[at])
    if len(order) > MOST_CLASSES:
        order = [order[at] for at in np.linspace(0, len(order) - 1, MOST_CLASSES).round().astype(int)]
    return [labels[at] for at in sorted(order)]
