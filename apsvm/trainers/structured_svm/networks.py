"""``--layer-wise`` of the structured SVM: trains a network instead of a linear ranker, layer by layer.

Algorithm: ``apsvm.trainers.structured_svm.layer_wise``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from apsvm._support.naming import option
from apsvm.solvers.state import State
from apsvm.trainers.settings import Multiple, SettingsError, resolved

if TYPE_CHECKING:
    from apsvm.models.header import Json
    from apsvm.trainers.base import Outcome, TrainingSet, Watch
    from apsvm.trainers.structured_svm.layer_wise import TrainedLayers
    from apsvm.trainers.structured_svm.settings import StructuredSettings
    from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

MOST_UNITS, MOST_LAYERS = 4096, 8
#: Default C. Features are standardised, so it needs no rule for their scale.
DEFAULT_C = 1e4
#: ``-C auto`` with ``--bound auto`` takes the best of these on held-out rows; without such rows, the first.
MULTIPLES_TRIED = tuple(map(Multiple, (1.0, 0.1, 0.01)))
#: Values that ``apsvm cv`` tries.
GRID_OF_C = MULTIPLES_TRIED[::-1]
_HELD_OUT = "loss on rows held out"


def hidden_layers(text: str) -> tuple[int, ...]:
    """Units of the hidden layers: (16, 8) for ``"16,8"`` or ``"16x8"``; empty, for a linear ranker, for ``""`` or
    ``"none"``.

    Raises
    ------
    SettingsError : not such numbers, or too many
    """
    if text.strip().lower() in ("", "none"):
        return ()
    words = text.lower().replace("x", ",").split(",")
    digits = [word.strip() for word in words]
    sizes = tuple(int(word) for word in digits if word.isascii() and word.isdecimal() and len(word) <= 6)
    if len(sizes) < len(words) or not all(1 <= size <= MOST_UNITS for size in sizes) or len(sizes) > MOST_LAYERS:
        raise SettingsError(
            f"{option('layer_wise')} names the units of 1 to {MOST_LAYERS} hidden layers, from 1 to {MOST_UNITS} each, "
            f"such as 16 or 16,8 (or 16x8); found {text!r}"
        )
    return sizes


def check_layer_wise(trainer: StructuredSVMTrainer) -> None:
    """Raises SettingsError for options that exclude a network."""
    settings = trainer.settings
    refused = {
        option("latent", True): settings.latent,
        option("oracle", "appx"): settings.oracle == "appx",
        option("bound", "tight"): settings.bound == "tight",
        option("log_ranks", True): settings.log_ranks,
        option("components"): settings.components > 1,
    }
    for name, value in refused.items():
        if value:
            raise SettingsError(f"{option('layer_wise')} does not go with {name}: leave one of them out")


def networks(trainer: StructuredSVMTrainer, data: TrainingSet, watch: Watch) -> Iterator[Outcome]:
    """Yields the trained networks, one for each C."""
    from apsvm.trainers.structured_svm.layer_wise import train_layer_wise

    settings = trainer.settings
    values = [resolved(C, DEFAULT_C) for C in settings.C]
    watch.log.write(
        "start",
        oracle=settings.oracle,
        C=values[0] if len(values) == 1 else values,
        epsilon=settings.epsilon,
        layer_wise=settings.layer_wise,
        seed=settings.seed,
    )
    results = train_layer_wise(data, trainer.loss, settings, hidden_layers(settings.layer_wise), values, watch)
    for value, trained in zip(settings.C, results, strict=False):
        yield _outcome(data, trained, replace(settings, C=(value,)))


def held_out_loss(outcome: Outcome) -> float:
    """Loss of a network on the held-out rows of its training; infinite without such rows."""
    loss = outcome.details[_HELD_OUT]
    assert loss is None or isinstance(loss, float)
    return math.inf if loss is None else loss


def _outcome(data: TrainingSet, trained: TrainedLayers, settings: StructuredSettings) -> Outcome:
    from apsvm.models.header import Bounds, Data
    from apsvm.trainers.base import Outcome

    bounds = trained.certificate
    details: dict[str, Json] = {
        "oracle": trained.oracle,
        "passes": trained.passes,
        "risk": trained.risk,
        "risk of the log loss's network": trained.started_from,
        _HELD_OUT: trained.held_out,
    }
    fallbacks = [f"{trained.qp_fallbacks} working-set QPs needed cvxpy"] if trained.qp_fallbacks else []
    return Outcome(
        w=trained.net,
        state=trained.state,
        as_asked=trained.as_asked,
        interrupted=trained.state == State.INTERRUPTED,
        trouble=trained.trouble,
        settings=settings,
        iterations=trained.iterations,
        C=trained.C,
        certificate=None
        if bounds is None
        else Bounds(
            primal=bounds.primal,
            dual=bounds.dual,
            gap=bounds.gap,
            tolerance=bounds.tolerance,
            exact=trained.exact,
            layer=trained.layer,
        ),
        details=details,
        data=Data(
            positives=int(data.target.relevant.sum()),
            queries=trained.queries,
            queries_skipped=trained.queries_skipped,
        ),
        notes=[*_course(trained), *fallbacks],
        seconds={part: span.wall_ns / 1e9 for part, span in trained.spans.items()},
    )


def _course(trained: TrainedLayers) -> Sequence[str]:
    """Summary of the passes, in words."""
    held_out = "no rows were held out" if trained.held_out is None else f"{trained.held_out:.4g} on rows held out"
    if trained.passes == 0:
        return [f"no pass was better on rows held out than the network of the log loss: that one is kept ({held_out})"]
    passes = "1 pass" if trained.passes == 1 else f"{trained.passes} passes"
    return [
        f"kept the network after {passes} through its layers: risk {trained.risk:.4g}, of the log loss's network "
        f"{trained.started_from:.4g}; {'' if trained.held_out is None else 'loss '}{held_out}"
    ]
