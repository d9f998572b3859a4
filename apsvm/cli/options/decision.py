"""``--threshold`` and ``--calibrate`` of ``train`` and ``cv``: decision thresholds and probabilities."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from apsvm._support.types import JsonObject
from apsvm.cli.shared import bad_data

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.models.base import Model
    from apsvm.selection.race import OutOfFold
    from apsvm.trainers.base import Outcome
    from apsvm.trainers.fitting import Fit


def check_decision_options(fit: Fit, options: JsonObject) -> None:
    """Ends the command before training if no threshold can be chosen on the rows."""
    if not _asks(options):
        return
    from apsvm.selection.decision import check_decision

    with bad_data(f"{fit.dataset.source}: {'--calibrate' if options['threshold'] is None else '--threshold'}"):
        check_decision(fit)


def decided(
    fit: Fit,
    outcome: Outcome,
    model: Model,
    options: JsonObject,
    should_stop: Callable[[], bool],
    folds: Callable[[], Sequence[OutOfFold]] | None = None,
    how: str = "",
    own: NDArray[np.float64] | None = None,
) -> tuple[Outcome, Model]:
    """The model with the threshold and probabilities that the options ask for; without a request by the ``folds`` of a
    search (see ``selection.decision.decide``), if there are any, else on the training rows. If a requested rule cannot
    be chosen, the model has no threshold, and the outcome is not as requested."""
    import numpy as np

    from apsvm.metrics.thresholds import ThresholdRule
    from apsvm.selection.decision import DecisionRule, HeldOutError, with_decision
    from apsvm.selection.thresholds import with_training_threshold

    asks, groups = _asks(options), fit.dataset.groups
    by_query = groups is not None and np.unique(groups).size > 1
    by_folds = folds is not None and model.header.threshold is None and not by_query
    if outcome.interrupted or not (asks or by_folds):
        return outcome, with_training_threshold(model, fit.dataset)
    text, began = options["threshold"], time.perf_counter()
    rule = DecisionRule(None if text is None else ThresholdRule.parse(text), options["calibrate"])
    try:
        made = with_decision(fit, outcome, model, rule, should_stop, folds and folds(), how, own)
    except HeldOutError as error:
        if not asks:
            return outcome, with_training_threshold(model, fit.dataset)
        cautions = (*outcome.cautions, f"there is no threshold: {error}")
        return replace(outcome, as_asked=False, cautions=cautions), model
    outcome = replace(outcome, seconds={**outcome.seconds, "held out": time.perf_counter() - began})
    if made is None:
        return replace(outcome, interrupted=True, as_asked=False), model
    model, cautions = made
    return replace(outcome, cautions=(*outcome.cautions, *cautions)), model


def _asks(options: JsonObject) -> bool:
    return options["threshold"] is not None or options["calibrate"] is not None
