"""What a structured SVM leaves to be found out, found out: the bound, the numbers that values of C stand for, and where
to begin. Then the training itself."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import Loss
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.ranking_check import tells_apart
from apsvm.trainers.settings import Multiple, SettingsError, resolved, times
from apsvm.trainers.structured_svm.bound_choice import Choice, choose
from apsvm.trainers.structured_svm.comparison import HOPELESS
from apsvm.trainers.structured_svm.default_c import THE_RULE, default_C
from apsvm.trainers.structured_svm.settings import DEFAULT_C, StructuredSettings
from apsvm.trainers.structured_svm.stage import Trained
from apsvm.trainers.structured_svm.top_losses import (
    FoundC,
    Start,
    default_C_at,
    find_start,
    train_from_start,
    train_no_worse,
    train_or_start,
    train_values,
)


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """A structured SVM of which nothing is left to be found out.

    Attributes
    ----------
    settings : ``bound`` is hinge or tight, ``time_limit`` what is left of it
    values_of_C : what ``settings.C`` means for these rows
    origin_of_C : what the default C is, in words
    start : where to begin, if somewhere
    choice : how the bound was chosen, if it was
    seconds : that all this took
    may_fall_back : whether another loss's model may be better than the hinge of this one, which is over labellings
    """

    settings: StructuredSettings
    values_of_C: list[float]
    origin_of_C: str
    start: Start | None
    choice: Choice | None
    seconds: float
    may_fall_back: bool = False

    def train(self, data: TrainingSet, loss: Loss, watch: Watch) -> Iterator[tuple[float, Trained]]:
        """For each C what was trained, and the C it was trained with."""
        for given, (C, trained) in zip(self.settings.C, self._trained(data, loss, watch), strict=False):
            origin = trained.origin_of_C or f"{times(given)}{self.origin_of_C}"
            yield C, replace(trained, origin_of_C=origin)

    def _trained(self, data: TrainingSet, loss: Loss, watch: Watch) -> Iterator[tuple[float, Trained]]:
        settings, values, start = self.settings, self.values_of_C, self.start
        default_C = settings.C == DEFAULT_C
        if data.bags is not None:
            point = None if start is None else start.w
            yield from zip(values, train_values(data, loss, settings, values, watch, point), strict=False)
        elif data.components > 1 and (start is None or start.loss is None):
            point = None if start is None else start.w
            besides = None if self.choice is None else self.choice.w
            yield from zip(values, train_values(data, loss, settings, values, watch, point, besides), strict=False)
        elif self.may_fall_back and default_C and settings.oracle != "appx":
            yield train_or_start(data, loss, settings, values[0], watch)
        elif settings.oracle == "appx":
            yield from zip(values, train_values(data, loss, settings, values, watch), strict=False)
        elif start is not None and start.loss is not None:
            if default_C:
                yield train_no_worse(data, loss, settings, FoundC(values[0], self.origin_of_C), watch, start)
            else:
                yield from train_from_start(data, loss, settings, values, watch, start)
        else:
            point = None if start is None else start.w
            besides = None if self.choice is None or start is not None else self.choice.w
            path = train_values(data, loss, settings, values, watch, point, besides)
            for C, trained in zip(values, path, strict=False):
                if self._ended_in_nothing(data, trained):
                    yield self._from_the_candidate(data, loss, watch, C, trained)
                else:
                    yield C, trained

    def _ended_in_nothing(self, data: TrainingSet, trained: Trained) -> bool:
        """Whether this is a hinge, chosen because it ranked rows held out, that ranks nothing once it is minimised."""
        choice = self.choice
        if self.settings.bound != "hinge" or choice is None or choice.w is None or len(self.values_of_C) > 1:
            return False
        chosen_well = choice.candidates[0].loss < HOPELESS
        return chosen_well and not trained.state.is_cut_short and not tells_apart(trained.w, data.rows)

    def _from_the_candidate(
        self, data: TrainingSet, loss: Loss, watch: Watch, C: float, trained: Trained
    ) -> tuple[float, Trained]:
        """What the tight bound comes to from the candidate that was chosen, and the C of it; what was ``trained`` if
        that ranks nothing either."""
        assert self.choice is not None
        best = next((one.C for one in self.choice.candidates if one.bound == "tight"), Multiple(1.0))
        tight_C = resolved(best, default_C(data, loss, "tight"))
        limit = self.settings.time_limit
        left = None if limit is None else max(0.0, limit - trained.solution.seconds)
        plan = replace(self.settings, bound="tight", time_limit=left)
        (tight,) = train_values(data, loss, plan, [tight_C], watch, besides=self.choice.w)
        if not tells_apart(tight.w, data.rows):
            return C, trained
        why = "the hinge is least where all rows have the same score: this is the tight bound, from the best candidate"
        stages, notes = [*trained.stages, *tight.stages], [*tight.notes, why]
        return tight_C, replace(tight, stages=stages, notes=notes, origin_of_C=f"{times(best)}{THE_RULE}")


def decide(
    data: TrainingSet,
    loss: Loss,
    settings: StructuredSettings,
    watch: Watch,
    given_start: NDArray[np.float64] | None = None,
) -> Decided:
    """Everything that ``settings`` leave open for these rows.

    Raises
    ------
    SettingsError : a multiple of the default C beyond float64
    ValueError, FloatingPointError : as ``train_path``
    """
    began = time.perf_counter()
    several = data.components > 1
    if several and given_start is not None:
        from apsvm.trainers.structured_svm.components import start_from

        given_start = start_from(data, given_start, settings.seed)
    start = None if given_start is None else Start(None, given_start)
    choice = None
    may_fall_back = settings.bound == "auto" and loss.ranks_like is not None and start is None and not several
    descends = loss.over_rankings and settings.oracle != "appx" and settings.bound != "hinge"
    of_bags = data.bags is not None
    if descends and loss.starts_from is not None and not of_bags:
        start = start or find_start(data, loss, settings, watch)
        choice = start.choice
        bound = "tight"
    elif descends and settings.bound == "auto" and several and settings.C != DEFAULT_C:
        bound = "tight"
    elif descends and settings.bound == "auto":
        choice = choose(data, loss, settings, watch)
        settings = replace(settings, C=choice.C)
        bound = choice.bound
    else:
        bound = "hinge" if settings.bound == "auto" else settings.bound
    settings = replace(settings, bound=bound)
    from_start = start if descends and loss.starts_from is not None and not of_bags else None
    values, origin = _values_of_C(data, loss, settings, from_start)
    seconds = time.perf_counter() - began
    if settings.time_limit is not None:
        settings = replace(settings, time_limit=max(0.0, settings.time_limit - seconds))
    return Decided(settings, values, origin, start, choice, seconds, may_fall_back)


def _values_of_C(
    data: TrainingSet, loss: Loss, settings: StructuredSettings, start: Start | None
) -> tuple[list[float], str]:
    default, origin = 1.0, THE_RULE
    if any(isinstance(C, Multiple) for C in settings.C):
        if start is not None and start.w.any():
            default, origin = default_C_at(data, loss, settings, start)
        else:
            default = default_C(data, loss, settings.bound)
    values = [resolved(C, default) for C in settings.C]
    for C, value in zip(settings.C, values, strict=True):
        if not 0.0 < value < math.inf:
            raise SettingsError(f"-C {C}: {C} of C = {default:g}, the default for these rows, is beyond float64")
    return values, origin
