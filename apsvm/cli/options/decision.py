"""``--threshold`` and ``--calibrate`` of ``train`` and ``cv``: decision thresholds and probabilities."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from apsvm._support.types import JsonObject
from apsvm.cli.shared import BAD_DATA, Failure, say

if TYPE_CHECKING:
    from apsvm.models.base import Model
    from apsvm.selection.decision import DecisionRule
    from apsvm.selection.search import Refit
    from apsvm.trainers.base import Outcome
    from apsvm.trainers.fitting import Fit


def decision_rule(options: JsonObject) -> DecisionRule:
    """The rule that the options name."""
    from apsvm.metrics.thresholds import ThresholdRule
    from apsvm.selection.decision import DecisionRule

    text = options["threshold"]
    rule = None if text is None else ThresholdRule.parse(text)
    return DecisionRule(rule, options["calibrate"])


def check_decision_options(fit: Fit, options: JsonObject) -> None:
    """Ends the command before training if no threshold can be chosen on the rows."""
    if not _asks(options):
        return
    from apsvm.selection.decision import HeldOutError, check_decision

    try:
        check_decision(fit)
    except HeldOutError as error:
        what = "--threshold" if options["threshold"] is not None else "--calibrate"
        raise Failure(BAD_DATA, f"{fit.dataset.source}: {what}: {error}") from None


@dataclass(frozen=True)
class Decisions:
    """Chooses the threshold of each trained model as the options request; polls ``should_stop`` meanwhile."""

    options: JsonObject
    should_stop: Callable[[], bool]

    def made(self, fit: Fit, outcome: Outcome, model: Model) -> tuple[Outcome, Model]:
        """The model with its decision; ``fit`` is its training, before features are learned. If a requested rule cannot
        be chosen, the model has no threshold, and the outcome is not as requested."""
        from apsvm.selection.decision import HeldOutError, with_decision
        from apsvm.selection.thresholds import with_training_threshold

        if not _asks(self.options) or outcome.interrupted:
            return outcome, with_training_threshold(model, fit.dataset)

        began = time.perf_counter()
        try:
            made = with_decision(fit, outcome, model, decision_rule(self.options), self.should_stop)
        except HeldOutError as error:
            caution = f"there is no threshold: {error}"
            return replace(outcome, as_asked=False, cautions=(*outcome.cautions, caution)), model
        seconds = {**outcome.seconds, "held out": time.perf_counter() - began}
        if made is None:
            return replace(outcome, interrupted=True, as_asked=False, seconds=seconds), model
        model, cautions = made
        return replace(outcome, cautions=(*outcome.cautions, *cautions), seconds=seconds), model


def decided_refit(refit: Refit, options: JsonObject, jobs: int, should_stop: Callable[[], bool]) -> Refit:
    """The final model of ``apsvm cv`` with a threshold chosen on the out-of-fold scores of the search. Without a
    requested rule it maximises F1, except for losses that set a threshold, grades and several queries."""
    import numpy as np

    from apsvm.selection.decision import HeldOutError, with_decision
    from apsvm.selection.thresholds import with_training_threshold

    model, asks = refit.model, _asks(options)
    groups = refit.fit.dataset.groups
    by_query = groups is not None and np.unique(groups).size > 1
    if refit.outcome.interrupted or (not asks and (model.header.threshold or by_query)):
        return refit
    fit = replace(refit.fit, trainer=refit.fit.trainer.with_settings(threads=jobs))
    try:
        made = with_decision(
            fit, refit.outcome, model, decision_rule(options), should_stop, refit.out_of_fold(), refit.how, refit.own
        )
    except HeldOutError as error:
        if not asks:
            return replace(refit, model=with_training_threshold(model, refit.fit.dataset))
        say(f"warning: there is no threshold: {error}")
        return replace(refit, outcome=replace(refit.outcome, as_asked=False))
    if made is None:
        return replace(refit, outcome=replace(refit.outcome, interrupted=True, as_asked=False))
    model, cautions = made
    return replace(refit, model=model, outcome=replace(refit.outcome, cautions=(*refit.outcome.cautions, *cautions)))


def _asks(options: JsonObject) -> bool:
    return options["threshold"] is not None or options["calibrate"] is not None


def say_decision(model: Model, *, verbose: bool = False) -> None:
    """Prints the threshold and the probabilities of a model of one ranking."""
    from apsvm.report.decisions import probabilities_in_words, threshold_in_counts, threshold_in_words

    header = model.header
    if header.threshold is not None:
        ranks_bags = header.latent or header.features.pool is not None
        in_words = verbose or ranks_bags
        threshold = header.threshold
        say(f"positive is {threshold_in_words(threshold) if in_words else threshold_in_counts(threshold, header.data)}")
    if header.calibration is not None:
        say(f"probabilities: {probabilities_in_words(header.calibration)}")
