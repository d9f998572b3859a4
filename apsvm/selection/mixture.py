"""Two components in the place of one linear ranker, where ``train`` is free to take them.

Positives of several kinds lie in several regions, and the maximum of two linear scores has both. Whether a data set
wants it is tried in the folds of the race (``quick``): two components at one C, from one clustering of the positives,
beside the ranker that the race has chosen, trained on the same rows.

AP is the mean, over the positives, of the precision where each stands. The difference of two rankers is therefore a
number for each positive held out, and has a standard error, of a single split too. Two components are taken where they
are ahead by ``CHANCE`` of these errors; where they fall behind ``PROMISING`` the other folds are not tried.
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
#: Of the default C: .1 took less time and saw less on sick, 1 took more and ranked made tables worse by up to .02.
MULTIPLE = 0.3
#: Positives that there must be, and the largest share of the rows that they may be: made tables gained at 61 positives,
#: and at 15 %; of sets of 24 % and more none did.
FEWEST_POSITIVES, LARGEST_SHARE = 60, 0.2
#: Standard errors. By chance one data set of twenty is ahead by 1.64 of them.
PROMISING, CHANCE = 1.0, 1.64


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Two components beside one linear ranker.

    Attributes
    ----------
    of_two, of_one : AP on the rows held out
    errors : the difference in standard errors
    how : what was held out
    choice : of two components, where they are taken
    """

    of_two: float
    of_one: float
    errors: float
    how: str
    choice: Choice | None = None

    def figures(self) -> dict[str, Json]:
        """For a model's header."""
        return {"of_two": self.of_two, "of_one": self.of_one, "standard_errors": self.errors, "held_out": self.how}

    def __str__(self) -> str:
        taken = self.choice is not None
        return (
            f"--components auto: {COMPONENTS if taken else 1}: AP {self.of_two:.4g} with {COMPONENTS}, "
            f"{self.of_one:.4g} with 1 on rows held out ({self.how}), {'' if taken else 'no '}more than chance "
            f"({self.errors:.1f} standard errors)"
        )


def two_or_one(trainer: StructuredSVMTrainer, data: TrainingSet, choice: Choice, watch: Watch) -> Mixture | None:
    """Two components tried beside the ranker that the race has chosen; None where they are not worth a trial, or were
    not trained in time."""
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
    """True if positives are rare, of one list, and at least as many as features."""
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
    """(positives,) float64: by how much the precision where each positive of a fold stands is higher."""
    precisions = []
    for race, candidate in ((two, of_two), (one, of_one)):
        test, w = race.test(fold), candidate.folds[fold].w
        assert isinstance(w, np.ndarray)
        precisions.append(_precisions(test.scores(w), test.target.relevant))
    return precisions[0] - precisions[1]


def _precisions(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(positives,) float64, whose mean is AP: the precision where each stands, behind negatives of the same score."""
    positives, negatives = scores[relevant], np.sort(scores[~relevant])
    place = np.empty(positives.size)
    place[np.argsort(-positives, kind="stable")] = np.arange(1, positives.size + 1)
    precisions: NDArray[np.float64] = place / (place + negatives.size - np.searchsorted(negatives, positives))
    return precisions


def _in_standard_errors(values: NDArray[np.float64]) -> float:
    """The mean; 0 where all are 0."""
    error = float(values.std(ddof=1)) / np.sqrt(values.size)
    return float(values.mean()) / error if error > 0.0 else 0.0
