"""Compares two components with one linear ranker, if ``train`` is free to choose.

Positives of several kinds lie in several regions; the maximum of two linear scores covers two. Two components at one C,
started from one clustering of the positives, are trained in the folds of the race (``quick``) and compared with the
ranker that the race chose.

On made payments with two kinds of frauds (``scripts/study/first_hundred.py``) 33 instead of 28 of the first hundred
rows are frauds. On 121 tables of KEEL and R, where boosted rules are compared as well, nothing changes.

AP is the mean, over the positives, of the precision at each one's rank. The difference of two rankers is thus one
number per held-out positive, and has a standard error even on a single split. Two components are taken if they are
ahead by ``CHANCE`` of these errors. The remaining folds are skipped once they are ahead by less than ``PROMISING``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.average_precision import AveragePrecisionLoss
from apsvm.models.header import Json
from apsvm.selection.quick import LOSS, Choice, QuickRace
from apsvm.selection.race import Candidate, Measurements, Task
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.settings import Multiple
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

COMPONENTS = 2
#: Multiple of the default C. With .1 the set sick gained less; 1 took longer and ranked made tables worse by up to .02.
MULTIPLE = 0.3
#: Smallest number of positives and their largest share of the rows. Made tables gained with 61 positives and at 15 %;
#: no set with 24 % or more gained.
FEWEST_POSITIVES, LARGEST_SHARE = 60, 0.2
#: In standard errors; by chance one data set of twenty is ahead by 1.64.
PROMISING, CHANCE = 1.0, 1.64


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Comparison of two components with one.

    Attributes
    ----------
    of_two, of_one : AP on held-out rows
    errors : the difference in standard errors
    how : description of the held-out rows
    choice : the choice of two components, if they are taken
    """

    of_two: float
    of_one: float
    errors: float
    how: str
    choice: Choice | None = None

    def figures(self) -> dict[str, Json]:
        """The comparison, for the header of the model."""
        return {"of_two": self.of_two, "of_one": self.of_one, "standard_errors": self.errors, "held_out": self.how}

    def __str__(self) -> str:
        taken = self.choice is not None
        return (
            f"--components auto: {COMPONENTS if taken else 1}: AP {self.of_two:.4g} with {COMPONENTS}, "
            f"{self.of_one:.4g} with 1 on rows held out ({self.how}), {'' if taken else 'no '}more than chance "
            f"({self.errors:.1f} standard errors)"
        )


def two_or_one(trainer: StructuredSVMTrainer, data: TrainingSet, choice: Choice, watch: Watch) -> Mixture | None:
    """Compares two components with the ranker of the race. None if they are not worth a trial or time ran out."""
    if choice.race is None or choice.race.relearns or not _worth_a_trial(trainer, data):
        return None
    race = choice.race.of(trainer.with_settings(components=COMPONENTS))
    variant, measured = race.variant("tight", (Multiple(MULTIPLE),)), Measurements([trainer.loss_name], len(race.folds))
    one, ahead, errors = choice.candidates[0], list[NDArray[np.float64]](), math.inf
    two: Candidate | None = None
    while errors >= PROMISING and len(ahead) < len(race.folds):
        fold = len(ahead)
        (path,) = race.run([Task(0, variant, fold)], 1, watch.should_stop)
        measured.add(path)
        two = next(iter(measured.candidates(fold + 1)), None)
        if two is None:
            return None
        ahead.append(_ahead(race, two, choice.race, one, fold))
        errors = _in_standard_errors(np.concatenate(ahead))
    assert two is not None
    how = choice.how if len(ahead) == len(race.folds) else f"{len(ahead)} of {choice.how}"
    of_one = 1.0 - float(np.mean(one.values(LOSS)[: len(ahead)]))
    taken = Choice("tight", (two.choice["C"],), [two], choice.how, race) if errors >= CHANCE else None
    return Mixture(1.0 - two.mean(LOSS), of_one, errors, how, taken)


def _worth_a_trial(trainer: StructuredSVMTrainer, data: TrainingSet) -> bool:
    """True for a single list with rare positives, at least as many as features."""
    relevant = data.target.relevant
    positives = int(relevant.sum())
    return (
        trainer.leaves_components_open
        and isinstance(trainer.loss, AveragePrecisionLoss)
        and data.bags is None
        and data.queries is None
        and max(FEWEST_POSITIVES, data.rows.features) <= positives <= LARGEST_SHARE * relevant.size
    )


def _ahead(two: QuickRace, of_two: Candidate, one: QuickRace, of_one: Candidate, fold: int) -> NDArray[np.float64]:
    """(positives,) float64: precision at the rank of each positive of a fold, by two components minus by one."""
    precisions = []
    for race, candidate in ((two, of_two), (one, of_one)):
        test, w = race.test(fold), candidate.folds[fold].w
        assert isinstance(w, np.ndarray)
        precisions.append(_precisions(test.scores(w), test.target.relevant))
    return precisions[0] - precisions[1]


def _precisions(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(positives,) float64 with mean AP: precision at the rank of each positive, negatives of equal score before it."""
    positives, negatives = scores[relevant], np.sort(scores[~relevant])
    place = np.empty(positives.size)
    place[np.argsort(-positives, kind="stable")] = np.arange(1, positives.size + 1)
    precisions: NDArray[np.float64] = place / (place + negatives.size - np.searchsorted(negatives, positives))
    return precisions


def _in_standard_errors(values: NDArray[np.float64]) -> float:
    """The mean in standard errors; 0 if all values are 0."""
    error = float(values.std(ddof=1)) / np.sqrt(values.size)
    return float(values.mean()) / error if error > 0.0 else 0.0
