"""Compares two components with one linear ranker, if ``train`` is free to choose.

Positives of several kinds lie in several regions; the maximum of two linear scores covers two. Two components at one C,
started from one clustering of the positives, are trained in the folds of the race (``quick``) and compared with the
ranker that the race chose.

On made payments with two kinds of frauds (``scripts/study/first_hundred.py``) 33 instead of 28 of the first hundred
rows are frauds. On 121 tables of KEEL and R, where boosted rules are compared as well, nothing changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.data.labels import Target
from apsvm.losses.average_precision import AveragePrecisionLoss
from apsvm.models.header import Json
from apsvm.selection.comparison import Comparison, compared
from apsvm.selection.quick import Choice, QuickRace
from apsvm.selection.race import Measurements, Task
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.settings import Multiple
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

COMPONENTS = 2
#: Multiple of the default C. With .1 the set sick gained less; 1 took longer and ranked made tables worse by up to .02.
MULTIPLE = 0.3
#: Smallest number of positives and their largest share of the rows. Made tables gained with 61 positives and at 15 %;
#: no set with 24 % or more gained.
FEWEST_POSITIVES, LARGEST_SHARE = 60, 0.2


class Mixture(NamedTuple):
    """Comparison of two components with one, and the choice of two, if they are taken."""

    comparison: Comparison
    choice: Choice | None = None

    def figures(self) -> dict[str, Json]:
        """The comparison, for the header of the model."""
        return self.comparison.figures("two", "one")

    def __str__(self) -> str:
        of_two, of_one, errors, how = self.comparison
        taken = self.choice is not None
        return (
            f"--components auto: {COMPONENTS if taken else 1}: AP {of_two:.4g} with {COMPONENTS}, {of_one:.4g} with 1 "
            f"on rows held out ({how}), {'' if taken else 'no '}more than chance ({errors:.1f} standard errors)"
        )


def two_or_one(trainer: StructuredSVMTrainer, data: TrainingSet, choice: Choice, watch: Watch) -> Mixture | None:
    """Compares two components with the ranker of the race. None if they are not worth a trial or time ran out."""
    if choice.race is None or choice.race.relearns or not _worth_a_trial(trainer, data):
        return None
    two = trainer.with_settings(components=COMPONENTS)
    race = QuickRace(two, [two.rows_of(data)], [choice.folds], [None])
    variant, measured = race.variant("tight", (Multiple(MULTIPLE),)), Measurements([trainer.loss_name], len(race.folds))

    def scores(fold: int) -> NDArray[np.float64] | None:
        (path,) = race.run([Task(0, variant, fold)], 1, watch.should_stop)
        measured.add(path)
        w = path.settings[0].w if path.settings else None
        return race.test(fold).scores(w) if isinstance(w, np.ndarray) else None

    comparison = compared(choice, scores, lambda errors: errors <= 0.0)
    if comparison is None:
        return None
    if not comparison.is_clear or comparison.difference < 0.0:
        return Mixture(comparison)
    (best,) = measured.candidates()
    return Mixture(comparison, Choice("tight", (best.choice["C"],), [best], choice.how, race))


def has_enough_positives(target: Target, features: int) -> bool:
    """True if two components may be worth a trial: positives are rare, but at least as many as features."""
    positives = int(target.relevant.sum())
    return max(FEWEST_POSITIVES, features) <= positives <= LARGEST_SHARE * target.relevant.size


def _worth_a_trial(trainer: StructuredSVMTrainer, data: TrainingSet) -> bool:
    return (
        trainer.leaves_components_open
        and isinstance(trainer.loss, AveragePrecisionLoss)
        and data.bags is None
        and data.queries is None
        and has_enough_positives(data.target, data.rows.features)
    )
