"""Chooses a model's threshold and probabilities on rows that the rankers which scored them have not seen
(``selection.thresholds``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm._support.machine import thread_count
from apsvm._support.naming import option
from apsvm.data.dataset import several_queries
from apsvm.data.labels import LabelOptions, two_classes
from apsvm.data.rows import Rows
from apsvm.data.takes import Takes
from apsvm.metrics.thresholds import ChosenThreshold, ThresholdRule, choose_threshold
from apsvm.models.base import Model
from apsvm.models.header import Calibration, Header, LabelKind, Threshold
from apsvm.models.sets import RankerSet
from apsvm.selection.bags import bags_as_rows, of_bags
from apsvm.selection.calibration import ENOUGH_FOR_ISOTONIC, calibrated
from apsvm.selection.completion import training_scores
from apsvm.selection.cross_validation import CrossValidation
from apsvm.selection.folds import FOLDS, Fold, FoldError, copies_of, make_folds
from apsvm.selection.grids import Variant
from apsvm.selection.race import Measured, OutOfFold, Task
from apsvm.selection.thresholds import held_out_scores, placed
from apsvm.trainers.base import HeldOut, Outcome
from apsvm.trainers.fitting import Fit
from apsvm.trainers.one_vs_rest import OneVsRestTrainer

if TYPE_CHECKING:
    from apsvm.data.labels import Target


class HeldOutError(ValueError):
    """No rows can be held out, or the others cannot be trained on; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """The requested threshold and probabilities.

    Attributes
    ----------
    threshold : rule of the threshold; None for the highest F1, if rows are held out at all
    calibrate : one of ``apsvm.selection.calibration.METHODS``; None for no probabilities
    """

    threshold: ThresholdRule | None = None
    calibrate: str | None = None

    @property
    def asks(self) -> bool:
        """True if rows must be held out."""
        return self.threshold is not None or self.calibrate is not None


@dataclass(frozen=True, slots=True)
class Decision:
    """The chosen threshold and probabilities, with cautions."""

    threshold: Threshold
    calibration: Calibration | None
    cautions: tuple[str, ...] = ()

    def header(self, header: Header) -> Header:
        """The header with the decision."""
        cautions = (*header.cautions, *self.cautions)
        return replace(header, threshold=self.threshold, calibration=self.calibration, cautions=cautions)


def check_decision(fit: Fit) -> None:
    """Raises HeldOutError if a training has no two classes, or too few rows to hold any out."""
    if fit.trainer.capabilities.labels is Takes.CLASSES:
        return  # a class with too few rows has no threshold
    _require_two_classes(fit.target)
    _folds(fit)


def decide(
    fit: Fit,
    outcome: Outcome,
    rule: DecisionRule,
    should_stop: Callable[[], bool] = lambda: False,
    folds: Sequence[OutOfFold] | None = None,
    how: str = "",
    prepared: Fit | None = None,
) -> Decision | None:
    """Chooses the threshold and probabilities of a ranker of two classes. None if it was stopped.

    The scores are those of held-out rows: by the race that chose the ranker's settings if it had folds, otherwise by a
    race of this ranker alone.

    Parameters
    ----------
    fit : the training
    outcome : its outcome
    prepared : the training with the features of the outcome, if they are learned already
    folds : held-out scores that exist already, by rows of the data set
    how : description of these folds

    Raises
    ------
    HeldOutError : see ``check_decision``; the model ranks nothing; a fold cannot be trained
    """
    _require_two_classes(fit.target)
    if not outcome.ranks:
        raise HeldOutError("the model ranks nothing")
    if outcome.held_out is not None and not _belong_together(fit):
        return decision_of(outcome.held_out, rule)
    if folds is None:
        raced = race_alone(fit, outcome, should_stop)
        if raced is None:
            return None
        folds, how = raced
    units = fit.target if not fit.trainer.capabilities.bags else of_bags(fit.dataset, fit.target)
    scores = np.full(units.relevant.size, np.nan)
    own = outcome.scores
    if own is None:
        own = training_scores(outcome, (prepared or fit.prepared()).training_set())
    scores[slice(None) if fit.selection is None else fit.selection] = own
    held_out = held_out_scores(folds, scores, units.relevant, how)
    if not np.isfinite(held_out.scores).all():
        raise HeldOutError("a fold's scores are beyond float64")
    return decision_of(held_out, rule)


def race_alone(fit: Fit, outcome: Outcome, should_stop: Callable[[], bool]) -> tuple[Sequence[OutOfFold], str] | None:
    """Scores all rows by rankers of folds, each trained as the model was. None if it was stopped."""
    folds, how = _folds(fit)
    trainer = fit.trainer.settled(outcome).with_settings(threads=1)
    alone = replace(fit, trainer=trainer, shared=None)
    race = CrossValidation([alone], fit.target, None, {}, folds)
    variant = Variant(trainer, {})
    tasks = [Task(0, variant, fold) for fold in range(len(folds))]
    measured: dict[int, Measured] = {}
    try:
        for path in race.run(tasks, thread_count(fit.threads), should_stop):
            if not path.settings:
                return None
            measured[path.task.fold] = path.settings[-1]
    except (ValueError, FloatingPointError) as error:
        raise HeldOutError(f"of {how}, {error}") from None
    return [race.scored(measured[fold], 0, fold) for fold in range(len(folds))], how


def _belong_together(fit: Fit) -> bool:
    """True if rows are copies or share a bag, so that a race of single rows has separated them."""
    copies = fit.selection is not None and np.unique(fit.selection).size < fit.selection.size
    return copies or (fit.dataset.bags is not None and not fit.trainer.capabilities.bags)


def _folds(fit: Fit) -> tuple[list[Fold], str]:
    """The folds and their description. Copies of a row, from weights or in the data, stay together."""
    dataset, of_bag = fit.dataset, fit.trainer.capabilities.bags
    units = bags_as_rows(dataset) if of_bag else dataset
    target = of_bags(dataset, fit.target) if of_bag else fit.target
    selected = np.arange(target.relevant.size) if fit.selection is None else fit.selection
    alone = np.unique(selected)
    target = target.of(alone)
    groups = None if units.groups is None else units.groups[alone]
    bags = None if units.bags is None or of_bag else units.bags[alone]
    by_query = several_queries(groups)
    if bags is None and not by_query and not of_bag:
        bags = copies_of(Rows(dataset.X).select(alone), target)
    try:
        dealt = make_folds(target, groups if by_query else None, FOLDS, fit.trainer.settings.seed, bags=bags)
    except FoldError as error:
        raise HeldOutError(str(error)) from None
    folds = []
    for fold in dealt:
        in_test = np.isin(selected, alone[fold.test])
        folds.append(Fold(selected[~in_test], selected[in_test]))
    return folds, f"{len(folds)} folds of {'queries' if by_query else 'bags' if of_bag else 'rows'}"


def decision_of(held_out: HeldOut, rule: DecisionRule) -> Decision:
    """Chooses threshold and probabilities by held-out scores."""
    by = rule.threshold or ThresholdRule("f1")
    chosen = choose_threshold(held_out.scores, held_out.relevant, by)
    threshold = placed(chosen, rule=str(by), held_out=held_out.how)
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
    if by.name == "top" and not chosen.meets_rule:
        cautions.append(f"there are fewer rows than {by}: all {chosen.rows:,} held out are called positive")
    elif not chosen.meets_rule:
        cautions.append(
            f"no threshold has {by} on the rows held out: the highest precision there is {chosen.precision:.3g}, at a "
            f"recall of {chosen.recall:.3g}, and the threshold is that one"
        )
    fewer = min(int(relevant.sum()), int((~relevant).sum()))
    if rule.calibrate == "isotonic" and fewer < ENOUGH_FOR_ISOTONIC:
        cautions.append(
            f"isotonic probabilities of {fewer} rows of one class are steps of single rows: "
            f"{option('calibrate', 'platt')} needs fewer of them"
        )
    if calibration is not None and calibration.slope is not None and calibration.slope <= 0.0:
        cautions.append("on the rows held out positives score no higher than negatives: the probabilities say so")
    return cautions


def _require_two_classes(target: Target) -> None:
    if target.labels.kind is LabelKind.NONE:
        raise HeldOutError("a threshold and probabilities are of two classes, and labels are not looked at here")
    if target.is_graded:
        raise HeldOutError(
            "a threshold and probabilities are of two classes, and these labels are grades: "
            f"{option('relevant_from')} says which of them are positive"
        )


def with_decision(
    fit: Fit,
    outcome: Outcome,
    model: Model,
    rule: DecisionRule,
    should_stop: Callable[[], bool],
    folds: Sequence[OutOfFold] | None = None,
    how: str = "",
) -> tuple[Model, tuple[str, ...]] | None:
    """The model with the decision in its header, one per class if there are several, and cautions. None if it was
    stopped. Parameters and errors as in ``decide``; with ``folds``, the features of ``fit`` are learned already."""
    if not isinstance(model, RankerSet):
        decision = decide(fit, outcome, rule, should_stop, folds, how, prepared=fit if folds else None)
        if decision is None:
            return None
        return model.with_header(decision.header(model.header)), decision.cautions
    assert isinstance(fit.trainer, OneVsRestTrainer)
    headers, without = [], []
    prepared = fit.prepared()  # a map that looks at targets has seen all classes
    for (label, part), header in zip(outcome.classes, model.headers, strict=True):
        of_class = replace(
            fit,
            trainer=fit.trainer.trainer,
            target=two_classes(fit.dataset, LabelOptions(positive_label=label)),
        )
        try:
            decision = decide(of_class, part, rule, should_stop, prepared=prepared)
        except HeldOutError as error:
            without.append(f"class {model.header.shown_label(label)} has no threshold: {error}")
            headers.append(header)
            continue
        if decision is None:
            return None
        headers.append(decision.header(header))
    return model.with_headers(headers), tuple(without)
