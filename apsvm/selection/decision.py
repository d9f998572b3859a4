"""A model's threshold and its probabilities, chosen on rows that the rankers they are chosen by have not seen
(``selection.held_out``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import distinct
from apsvm.data.labels import LabelOptions, two_classes
from apsvm.data.takes import Takes
from apsvm.metrics.thresholds import ChosenThreshold, ThresholdRule, choose_threshold
from apsvm.models.header import Calibration, Header, LabelKind, Threshold
from apsvm.models.kinds import AnyRankerSet, ComponentRankerSet, Model, RankerSet
from apsvm.selection.calibration import ENOUGH_FOR_ISOTONIC, calibrated
from apsvm.selection.held_out import HeldOut, HeldOutError, check_can_be_held_out, held_out_scores, training_scores
from apsvm.trainers.base import Outcome
from apsvm.trainers.fitting import Fit
from apsvm.trainers.one_vs_rest import OneVsRestTrainer
from apsvm.trainers.score_scale import STANDARD, placed

if TYPE_CHECKING:
    from apsvm.data.labels import Target


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """What is asked for.

    Attributes
    ----------
    threshold : None: of the highest F1, where anything is held out at all
    calibrate : one of ``apsvm.selection.calibration.METHODS``; None: no probabilities
    """

    threshold: ThresholdRule | None = None
    calibrate: str | None = None

    @property
    def asks(self) -> bool:
        """Whether rows must be held out for it."""
        return self.threshold is not None or self.calibrate is not None


@dataclass(frozen=True, slots=True)
class Decision:
    """What was chosen, and sentences on what it is not good for."""

    threshold: Threshold
    calibration: Calibration | None
    cautions: tuple[str, ...] = ()

    def header(self, header: Header) -> Header:
        """The header with what was chosen."""
        cautions = (*header.cautions, *self.cautions)
        return replace(header, threshold=self.threshold, calibration=self.calibration, cautions=cautions)


def check_decision(fit: Fit) -> None:
    """Raises HeldOutError where a training has no two classes, or too few rows to hold any out."""
    if fit.trainer.capabilities.labels is Takes.CLASSES:
        return  # a class that has too few is left without
    _require_two_classes(fit.target)
    check_can_be_held_out(fit)


def decide(
    fit: Fit, outcome: Outcome, rule: DecisionRule, should_stop: Callable[[], bool] = lambda: False
) -> Decision | None:
    """The decision of one ranker of two classes; None if it was stopped.

    Parameters
    ----------
    fit : the training, its features still to be learned; outcome : what became of it

    Raises
    ------
    HeldOutError : see ``check_decision``; the model ranks nothing; a fold cannot be trained
    """
    _require_two_classes(fit.target)
    if not outcome.ranks:
        raise HeldOutError("the model ranks nothing")
    data = fit.prepared().training_set()
    held_out = held_out_scores(fit, training_scores(outcome, data), outcome, should_stop)
    return None if held_out is None else decision_of(held_out, rule)


def decision_of(held_out: HeldOut, rule: DecisionRule) -> Decision:
    """The decision by the scores of rows held out."""
    by = rule.threshold or ThresholdRule("f1")
    chosen = choose_threshold(held_out.scores, held_out.relevant, by)
    threshold = placed(chosen, STANDARD, rule=str(by), held_out=held_out.how)
    calibration = None
    if rule.calibrate is not None:
        calibration = calibrated(held_out.scores, held_out.relevant, rule.calibrate, held_out=held_out.how)
    return Decision(threshold, calibration, tuple(_cautions(chosen, by, rule, calibration, held_out.relevant)))


def _cautions(
    chosen: ChosenThreshold,
    by: ThresholdRule,
    rule: DecisionRule,
    calibration: Calibration | None,
    relevant: NDArray[np.bool_],
) -> list[str]:
    cautions = []
    if not chosen.meets_rule:
        cautions.append(
            f"no threshold has {by} on the rows held out: the highest precision there is {chosen.precision:.3g}, at a "
            f"recall of {chosen.recall:.3g}, and the threshold is that one"
        )
    fewer = min(int(relevant.sum()), int((~relevant).sum()))
    if rule.calibrate == "isotonic" and fewer < ENOUGH_FOR_ISOTONIC:
        cautions.append(
            f"isotonic probabilities of {fewer} rows of one class are steps of single rows: --calibrate platt needs "
            "fewer of them"
        )
    if calibration is not None and calibration.slope is not None and calibration.slope <= 0.0:
        cautions.append("on the rows held out positives score no higher than negatives: the probabilities say so")
    return cautions


def _require_two_classes(target: Target) -> None:
    if target.labels.kind is LabelKind.NONE:
        raise HeldOutError("a threshold and probabilities are of two classes, and labels are not looked at here")
    if target.grades is not None and distinct(target.grades).size > 2:
        raise HeldOutError(
            "a threshold and probabilities are of two classes, and these labels are grades: --relevant-from says which "
            "of them are positive"
        )


def with_decision(
    fit: Fit, outcome: Outcome, model: Model, rule: DecisionRule, should_stop: Callable[[], bool]
) -> tuple[Model, tuple[str, ...]] | None:
    """The model with the decision in its header, of several classes one for each, and cautions to be said besides;
    None if it was stopped. Parameters and errors as of ``decide``."""
    if not isinstance(model, AnyRankerSet):
        decision = decide(fit, outcome, rule, should_stop)
        if decision is None:
            return None
        return replace(model, header=decision.header(model.header)), decision.cautions
    assert isinstance(fit.trainer, OneVsRestTrainer)
    headers, without = [], []
    for (label, part), header in zip(outcome.classes, model.headers, strict=True):
        of_class = replace(
            fit,
            trainer=fit.trainer.trainer,
            target=two_classes(fit.dataset, LabelOptions(positive_label=label)),
        )
        try:
            decision = decide(of_class, part, rule, should_stop)
        except HeldOutError as error:
            without.append(f"class {model.header.shown_label(label)} has no threshold: {error}")
            headers.append(header)
            continue
        if decision is None:
            return None
        headers.append(decision.header(header))
    whole: RankerSet | ComponentRankerSet = replace(model, headers=headers)
    return whole, tuple(without)
