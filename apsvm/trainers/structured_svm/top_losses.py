"""Losses of the top (``p@k``, ``ndcg@k``, ``mrr``, ``rbp``), from the minimiser of a loss that sees the whole list.

On a long list the hinge of such a loss is least at or near w = 0, and the ramp has a stationary point there: a few
places at the top are bought with pairs all over the list. From where a well-behaved loss of the same family ends (ap,
or ndcg for grades, by the better of its bounds) the tight bound goes down to something useful.

The default C is found at that start w₀, since the scale of the features says nothing of it: the ramp r falls from r(0)
to Δ(w₀) as w₀ is lengthened, and C is the one for which the length t with

    r(t·w₀) = r(0) − φ·{r(0) − Δ(w₀)},   φ = 1/10,          is the best:   t·‖w₀‖² + C·d r(t·w₀)/dt = 0.

Where C is left to the default, what is returned is never worse, in its own Δ on the training rows, than the start: φ
grows until it is not (of many lists from 9/10 on), or else the start is returned with the certificate of its own
problem. A C that was named is what is trained with, whatever comes of it: on short lists a small one ranks new rows
better and the training rows worse.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm.losses import make_loss
from apsvm.losses.base import Loss
from apsvm.oracles import make_oracle
from apsvm.risk import Ramp, loss_by_order
from apsvm.solvers.state import State
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.settings import Multiple, resolved, times
from apsvm.trainers.structured_svm.bound_choice import Choice, choose
from apsvm.trainers.structured_svm.default_c import THE_RULE, default_C
from apsvm.trainers.structured_svm.objective import risk_of
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.stage import Trained
from apsvm.trainers.structured_svm.training import train

#: φ, and what it grows to. On long lists .05 and .3 are alike, and beyond, the training rows' noise is fitted.
DESCENTS = (0.1, 0.5, 0.9, 0.97)
#: Of many short lists a small φ ranks the training rows worse than the start: it is not tried unless it is asked for.
DESCENTS_OF_QUERIES = (0.9, 0.97)
#: Lengths of the start that are tried, each so many times the one before, and how often.
LENGTHEN, LENGTHENINGS = 4.0, 24


@dataclass(frozen=True, slots=True)
class Start:
    """Where the descent begins.

    Attributes
    ----------
    loss : that was minimised, or None where somebody gave the point
    w : (dimension,) float64
    trained : what became of it; None where somebody gave the point
    C : that it was trained with
    choice : of its bound
    """

    loss: Loss | None
    w: NDArray[np.float64]
    trained: Trained | None = None
    C: float = 0.0
    choice: Choice | None = None

    @property
    def name(self) -> str:
        """Of the loss that was minimised; empty where somebody gave the point."""
        return "" if self.loss is None else self.loss.name

    @property
    def origin_of_C(self) -> str:
        """What the C is that it was trained with, in words."""
        return THE_RULE if self.choice is None else f"{times(self.choice.C[0])}{THE_RULE}"


class FoundC(NamedTuple):
    """A default C, and what it is, in words."""

    value: float
    origin: str


def train_values(
    data: TrainingSet,
    loss: Loss,
    settings: StructuredSettings,
    values_of_C: Sequence[float],
    watch: Watch,
    start: NDArray[np.float64] | None = None,
    besides: NDArray[np.float64] | None = None,
) -> Iterator[Trained]:
    """What a plan of these values comes to."""
    plan = Plan(loss=loss, settings=replace(settings, C=tuple(values_of_C)), start=start, besides=besides)
    return (replace(trained, origin_of_C="") for trained in train(plan, data, watch))


def find_start(data: TrainingSet, loss: Loss, settings: StructuredSettings, watch: Watch) -> Start:
    """The minimiser of the loss that ``loss.starts_from``, by the bound that is better on rows held out."""
    assert loss.starts_from is not None
    began = time.perf_counter()
    base = make_loss(loss.starts_from)
    plan = replace(settings, oracle="auto", C=(Multiple(1.0),), log_ranks=False)
    silent = Watch(progress=watch.progress, should_stop=watch.should_stop, strand=watch.strand)
    if data.components > 1:
        C = default_C(data, base, "tight")
        (trained,) = train_values(data, base, replace(plan, bound="tight"), [C], silent)
        return Start(base, trained.w, trained, C)
    choice = choose(data, base, plan, watch)
    limit = settings.time_limit
    left = None if limit is None else max(0.0, 2.0 / 3.0 * limit - (time.perf_counter() - began))
    plan = replace(plan, bound=choice.bound, time_limit=left)
    (chosen,) = choice.C
    C = resolved(chosen, default_C(data, base, choice.bound))
    (trained,) = train_values(data, base, plan, [C], silent, besides=choice.w)
    return Start(base, trained.w, trained, C, choice)


def default_C_at(
    data: TrainingSet,
    loss: Loss,
    settings: StructuredSettings,
    start: Start,
    descent: float = DESCENTS[0],
) -> FoundC:
    """See the module, ``descent`` is φ; the rule of the features' scale where the start is no better than w = 0."""
    C = _C_of_descent(data, loss, settings, start.w, descent)
    if C is None:
        return FoundC(default_C(data, loss, "tight"), THE_RULE)
    model = f"the {start.name} model" if start.name else "the given model"
    share = f"{100.0 * descent:g} %"
    return FoundC(C, f"that for which {model} is at its best length where the ramp has gone {share} of its way down")


def _C_of_descent(
    data: TrainingSet, loss: Loss, settings: StructuredSettings, start: NDArray[np.float64], descent: float
) -> float | None:
    ramp = Ramp(risk_of(data, loss, make_oracle(settings.oracle, loss)))
    scores, slopes = ramp.scores(start), ramp.vectors.empty()
    none = ramp.tangent(np.zeros(scores.size), slopes).value
    reached = _own_loss(data, loss, start)
    wanted = none - descent * (none - reached)

    def at(length: float) -> float:
        return ramp.tangent(length * scores, slopes).value

    square = float(start @ start)
    if not (square > 0.0 and reached < none):
        return None
    low, high = _bracket(at, wanted)
    for _ in range(4):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if at(middle) > wanted else (low, middle)
    at(high)
    slope = float(slopes @ scores)
    C = -high * square / slope if slope < 0.0 else 0.0
    return C if 0.0 < C < np.inf else None


def _bracket(at: Callable[[float], float], wanted: float) -> tuple[float, float]:
    """Lengths between which the ramp passes ``wanted``."""
    length = 1.0
    if at(length) > wanted:
        for _ in range(LENGTHENINGS):
            length *= LENGTHEN
            if at(length) <= wanted:
                break
        return length / LENGTHEN, length
    for _ in range(LENGTHENINGS):
        length /= LENGTHEN
        if at(length) > wanted:
            break
    return length, length * LENGTHEN


def train_from_start(
    data: TrainingSet,
    loss: Loss,
    settings: StructuredSettings,
    values_of_C: Sequence[float],
    watch: Watch,
    start: Start,
) -> Iterator[tuple[float, Trained]]:
    """For each C the tight bound's stationary point below ``start``, and that C."""
    settings = replace(settings, bound="tight")
    where = {"start": start.w} if data.components > 1 else {"besides": start.w}
    path = train_values(data, loss, settings, values_of_C, watch, **where)
    for C, trained in zip(values_of_C, path, strict=False):
        yield C, _after(start, trained)


def train_no_worse(
    data: TrainingSet, loss: Loss, settings: StructuredSettings, C: FoundC, watch: Watch, start: Start
) -> tuple[float, Trained]:
    """The tight bound's stationary point for ``C``, or for larger ones until the training rows are ranked no worse than
    by the start, or the start itself; with the C that it is of."""
    at_start = _own_loss(data, loss, start.w)
    began = time.perf_counter()
    several = data.queries is not None and bool((data.queries != data.queries[0]).any())
    for descent in DESCENTS_OF_QUERIES if several else DESCENTS:
        if descent > DESCENTS[0]:
            C = default_C_at(data, loss, settings, start, descent)
        limit = settings.time_limit
        left = None if limit is None else max(0.0, limit - (time.perf_counter() - began))
        ((_, trained),) = train_from_start(data, loss, replace(settings, time_limit=left), [C.value], watch, start)
        trained = replace(trained, origin_of_C=C.origin)
        if _own_loss(data, loss, trained.w) <= at_start:
            return C.value, trained
        if trained.state is not State.CONVERGED:
            return C.value, replace(trained, w=start.w)
    why = "the descent ended at a higher loss on the training rows than it began with"
    return _the_start(start, f"{why}: this is the model of {start.name}")


def train_or_start(
    data: TrainingSet, loss: Loss, settings: StructuredSettings, C: float, watch: Watch
) -> tuple[float, Trained]:
    """For a loss over labellings the hinge's minimiser or that of the loss that it ``starts_from``, whichever ranks the
    training rows better; with the C that it is of."""
    assert loss.ranks_like is not None
    (trained,) = train_values(data, loss, replace(settings, bound="hinge"), [C], watch)
    if trained.state is not State.CONVERGED:
        return C, trained
    start = find_start(data, loss, settings, watch)
    like = make_loss(loss.ranks_like)
    if _own_loss(data, like, trained.w) <= _own_loss(data, like, start.w):
        return C, trained
    return _the_start(start, f"the hinge ranks the training rows worse than {start.name}: this is the latter's model")


def _the_start(start: Start, note: str) -> tuple[float, Trained]:
    """The start as the result, with the C and the certificate of its own problem, and why."""
    assert start.trained is not None
    notes = [*start.trained.notes, note]
    return start.C, replace(start.trained, certified_loss=start.name, notes=notes, origin_of_C=start.origin_of_C)


def _after(start: Start, trained: Trained) -> Trained:
    """With the stages that led to the start before its own."""
    return trained if start.trained is None else replace(trained, stages=[*start.trained.stages, *trained.stages])


def _own_loss(data: TrainingSet, loss: Loss, w: NDArray[np.float64]) -> float:
    return loss_by_order(loss, data.scores(w), data.target, data.queries, data.query_weights)
