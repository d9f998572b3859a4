"""What there is to say of a structured SVM's training beside its figures: how its bound and its C were found, what it
is not good for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from apsvm.trainers.settings import Multiple, times
from apsvm.trainers.structured_svm.default_c import THE_RULE
from apsvm.trainers.structured_svm.settings import NEARLY_NOTHING

if TYPE_CHECKING:
    from apsvm.losses.base import Loss
    from apsvm.models.decision import Threshold
    from apsvm.models.header import Json
    from apsvm.trainers.base import Outcome, TrainingSet
    from apsvm.trainers.structured_svm.bound_choice import Choice
    from apsvm.trainers.structured_svm.decided import Decided
    from apsvm.trainers.structured_svm.stage import Trained
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
    start = "" if decided.start is None else decided.start.name
    if start:
        about["start"] = start
    return {
        "details": {**outcome.details, "choice": about},
        "notes": [choice.in_words(start), *outcome.notes],
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
    from apsvm.models.decision import Threshold

    if loss.draws_line:
        return Threshold(value=0.0, rule="loss")
    if choice is None or choice.threshold is None or loss.starts_from is not None:
        return None
    took_its_place = choice.bound == "hinge" and trained.hinge_objective is not None
    if took_its_place or trained.state.is_cut_short:
        return None  # it is of another ranker than this one
    from apsvm.trainers.score_scale import Scale, above_which, placed

    scores = data.scores(trained.w)
    threshold = placed(choice.threshold, Scale.of(scores), rule="f1", held_out=choice.how)
    # Rankers of a part and of all rows may differ, and with them the shape of their scores: where they overlap, the
    # share of rows that is called positive is the better guide (scripts/study_thresholds.py).
    return threshold if choice.called is None else replace(threshold, value=above_which(scores, choice.called))


def cautions_of(
    trained: Trained, loss: Loss, asked: str, decided: Decided | None = None, *, of_bags: bool = False
) -> list[str]:
    """What there is to say of a model that is hardly better than none: by rows held out, or else by the bound.
    ``asked``: the bound that was asked for; ``decided``: what it came to, where that was to be found out."""
    choice = None if decided is None else decided.choice
    if choice is not None and choice.candidates:
        assert decided is not None
        start = "" if decided.start is None else f"{decided.start.name} "
        share, what = choice.candidates[0].loss, f"the {start}loss on rows held out"
    elif trained.share_of_nothing is not None:
        share, what = trained.share_of_nothing, "the bound on the loss, as a share of what it is for no ranking at all,"
    else:
        return []
    if share < NEARLY_NOTHING:
        return []
    remedies = ["--bound tight or --bound auto"] if asked == "hinge" and loss.over_rankings else []
    if choice is not None and not choice.candidates and choice.bound == "hinge":
        remedies.append("--bound tight")
    remedies.append("a larger C")
    if of_bags:
        remedies = ["another --start (random:20)", "a larger C", "--pool min,mean,max in the place of --latent"]
    remedies.append("other features (--features piecewise)")
    return [f"{what} is {share:.1%}: this model may rank badly; what may help: {', '.join(remedies)}"]


def how_C_was_found(C: float, given: float | Multiple, origin: str | None) -> list[str]:
    """A sentence, where C was left to be found, or is ``given`` as a multiple of what is: what it is, ``origin`` where
    that is known."""
    if not isinstance(given, Multiple):
        return []
    return [f"C = {C:.6g}, {origin or times(given) + THE_RULE} (-C auto)"]


def fallbacks_of(trained: Trained) -> list[str]:
    """A sentence, where a QP needed cvxpy."""
    count = sum(stage.qp_fallbacks for stage in trained.stages)
    return [f"{count} working-set QPs fell back to cvxpy"] if count else []
