"""What there is to say of a structured SVM's training beside its figures: how its bound and its C were found, what it
is not good for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from apsvm.trainers.families.structured_svm import NEARLY_NOTHING
from apsvm.trainers.settings import Multiple

if TYPE_CHECKING:
    from apsvm.header import Json
    from apsvm.header_decision import Threshold
    from apsvm.losses.base import Loss
    from apsvm.trainers.base import Outcome, TrainingSet
    from apsvm.trainers.bound_choice import Choice
    from apsvm.trainers.decided import Decided
    from apsvm.trainers.stage import Trained
    from apsvm.types import JsonDict


def choice_fields(decided: Decided, outcome: Outcome) -> JsonDict:
    """The fields of an outcome that tell how its bound was chosen."""
    choice = decided.choice
    if choice is None:
        return {}
    figures: list[Json] = [
        {"bound": one.bound, "C": one.C if isinstance(one.C, float) else str(one.C), "loss": one.loss}
        for one in choice.candidates
    ]
    about: dict[str, Json] = {"bound": choice.bound, "held_out": choice.how, "candidates": figures}
    return {
        "details": {**outcome.details, "choice": about},
        "notes": [str(choice), *outcome.notes],
        "seconds": {"choosing": _apart_from_parts(decided), **outcome.seconds},
    }


def _apart_from_parts(decided: Decided) -> float:
    """The seconds of finding out that are not among the parts of the training's stages already."""
    start = decided.start
    stages = [] if start is None or start.trained is None else start.trained.stages
    parts = sum(span.wall_ns for stage in stages for span in stage.spans.values())
    return max(0.0, decided.seconds - parts / 1e9)


def threshold_of(data: TrainingSet, loss: Loss, choice: Choice | None, trained: Trained) -> Threshold | None:
    """Where the loss itself puts the line between the classes; else that of the highest F1 on the rows which were held
    out to choose the bound, where they were. None of grades or several queries."""
    from apsvm.header_decision import Threshold

    if loss.draws_line:
        return Threshold(value=0.0, rule="loss")
    if choice is None or choice.threshold is None or loss.starts_from is not None:
        return None
    from apsvm.trainers.score_scale import Scale, above_which, placed

    scores = data.scores(trained.w)
    threshold = placed(choice.threshold, Scale.of(scores), rule="f1", held_out=choice.how)
    # Rankers of a part and of all rows may differ, and with them the shape of their scores: where they overlap, the
    # share of rows that is called positive is the better guide (scripts/study_thresholds.py).
    return threshold if choice.called is None else replace(threshold, value=above_which(scores, choice.called))


def cautions_of(trained: Trained, choice: Choice | None, remedies: Sequence[str]) -> list[str]:
    """What there is to say of a model that is hardly better than none: by rows held out, or else by the bound;
    ``remedies``: what may help."""
    if choice is not None and choice.candidates:
        share, what = choice.candidates[0].loss, "the loss on rows held out"
    elif trained.share_of_nothing is not None:
        share, what = trained.share_of_nothing, "the bound on the loss, as a share of what it is for no ranking at all,"
    else:
        return []
    if share < NEARLY_NOTHING:
        return []
    tries = ", ".join((*remedies, "other features (--features piecewise)"))
    return [f"{what} is {share:.1%}: this model may rank badly; what may help: {tries}"]


def how_C_was_found(C: float, given: float | Multiple) -> list[str]:
    """A sentence, where C is a multiple of what fits the features."""
    if not isinstance(given, Multiple):
        return []
    times = "" if given.factor == 1.0 else f"{given.factor:g} times "
    return [f"C = {C:.6g}, {times}what fits the scale of the features (-C auto)"]


def fallbacks_of(trained: Trained) -> list[str]:
    """A sentence, where a QP needed cvxpy."""
    count = sum(stage.qp_fallbacks for stage in trained.stages)
    return [f"{count} working-set QPs fell back to cvxpy"] if count else []
