"""Whether the certificate of a model holds for a data set, told without the code that trained it.

Of the convex hinge the certificate says that no w has an objective more than ``gap`` below the model's; of the tight
bound, of bags and of components, which are not convex, that no w lowers the convex function that lies above the
objective and touches it at the model's w by more than ``gap``. Both are proved anew here, from the rows: the objective
by the definition (``plain``), the lower bound by planes of this package's own (``bound``). Only the model's weights are
believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from apsvm.data.bags import HOW_SAID, Bags
from apsvm.data.dataset import Dataset
from apsvm.data.labels import LabelOptions, Target, recall, two_classes
from apsvm.models.base import Model, Ranker
from apsvm.models.header import Bounds, LabelKind
from apsvm.verification.bound import Convex, Limits, prove
from apsvm.verification.plain import (
    Array,
    Definition,
    RankingDefinition,
    definition_of,
)
from apsvm.verification.plain import UnknownLossError as UnknownLossError
from apsvm.verification.risk import PlainRisk, Plane, Task, Units, tasks_of
from apsvm.verification.rows import (
    PlainRows,
    constant_of_scaling,
    rows_as_trained,
    weights_as_trained,
    with_common_constant,
)

#: What rounding may do to an objective, as a share of its terms: other orders of summation, weights scaled back.
ROUNDING = 1e-9
#: What a proof may leave open beyond the gap of the certificate: a share of that gap, or of the objective's terms.
SHARE_OF_GAP, SHARE_OF_OBJECTIVE = 0.01, 1e-7


class NothingToVerifyError(ValueError):
    """A model without a certificate, or one that nothing here can prove; the message says why."""


class Outcome(StrEnum):
    """How a verification ends."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What was claimed, and what was found.

    Attributes
    ----------
    label : float, optional
        Of the class, where the model is of several.
    loss, C : str
        Whose problem it is.
    plainly_defined : bool
        Whether the loss is defined in ``apsvm.verification.plain``, and not elsewhere.
    stationary : bool
        Whether the claim is that of a stationary point, and not of an optimum.
    claimed : Bounds
        What the model says.
    objective : float
        Float, recomputed at the model's weights.
    proved : float
        Float, the best lower bound.
    lowest : float
        Float, the lowest value met of what the bound is of.
    iterations, planes : int
        Int, of the proof.
    outcome : Outcome
        See ``Outcome``.
    reasons : tuple[str, ...]
        Why it does not hold.
    """

    label: float | None
    loss: str
    C: float
    plainly_defined: bool
    stationary: bool
    claimed: Bounds
    objective: float
    proved: float
    lowest: float
    iterations: int
    planes: int
    outcome: Outcome
    reasons: tuple[str, ...]

    @property
    def gap(self) -> float:
        """What is proved to lie between the model's objective and the lower bound, ≥ 0."""
        return max(self.objective - self.proved, 0.0)


def verify(
    model: Model,
    dataset: Dataset,
    *,
    query_weights: Mapping[int, float] | None = None,
    limits: Limits = Limits(),  # noqa: B008  # frozen
    defined_elsewhere: Callable[[str], Definition | None] = lambda name: None,
) -> Iterator[Verdict]:
    """The verdict on a model's certificate; of a set of rankers one for each class.

    Parameters
    ----------
    dataset : Dataset
        The rows that it was trained on, read and pooled as the model says.
    query_weights : Mapping[int, float], optional
        The weights of the queries, where training had any.
    limits : Limits
        Of each proof.
    defined_elsewhere : Callable[[str], Definition, optional]
        The definition of a loss, by its name, that ``plain`` does not know; None: nor does anyone else.

    Raises
    ------
    NothingToVerifyError
        See there.
    DataError
        The labels do not fit the model.
    """
    if model.has_classes:
        rows = None
        for label, ranker in zip(model.classes.tolist(), model.rankers(), strict=True):
            target = two_classes(dataset, LabelOptions(positive_label=label))
            rows = rows or rows_as_trained(dataset.X, ranker)
            yield _verify_one(ranker, dataset, target, rows, query_weights, limits, label, defined_elsewhere)
        return
    rankers = [ranker for ranker in model.rankers() if ranker.linear_parts()]
    if not rankers:
        raise NothingToVerifyError(f"{model.what} has no certificate that can be verified")
    if model.header.certificate is None:
        raise NothingToVerifyError(_without_certificate(model.header.family))
    target = recall(dataset, model.header.labels)
    rows = rows_as_trained(dataset.X, rankers[0])
    yield _verify_one(rankers[0], dataset, target, rows, query_weights, limits, None, defined_elsewhere)


def _without_certificate(family: str) -> str:
    of_family = f" of {family}" if family else ""
    return f"the model{of_family} has no certificate: only a structured SVM ends with bounds of the optimum"


def _verify_one(
    ranker: Ranker,
    dataset: Dataset,
    target: Target,
    rows: PlainRows,
    query_weights: Mapping[int, float] | None,
    limits: Limits,
    label: float | None,
    defined_elsewhere: Callable[[str], Definition | None],
) -> Verdict:
    header = ranker.header
    claimed, C = header.certificate, header.C
    if claimed is None or C is None or not (np.isfinite(C) and C > 0.0):
        raise NothingToVerifyError(_without_certificate(header.family))
    if not claimed.exact:
        raise NothingToVerifyError("the bounds are those of an approximation (--oracle appx), which certifies nothing")
    name = claimed.loss or header.loss
    definition, plainly_defined = _definition(name, defined_elsewhere)
    if claimed.bound != "hinge" and not (claimed.bound == "tight" and isinstance(definition, RankingDefinition)):
        raise NothingToVerifyError(f"there is no bound {claimed.bound!r} of the loss {name!r}")
    units = _units(dataset, latent=header.latent, components=rows.components)
    tasks = _tasks(definition, dataset, target, latent=header.latent, query_weights=query_weights)
    if not tasks:
        raise NothingToVerifyError("no query of the data has both a positive and a negative row")
    reasons = [*_inconsistent(ranker), *_constant(definition, rows, ranker)]
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found
        risk, tight = PlainRisk(definition, tasks, units), claimed.bound == "tight"
        w = weights_as_trained(rows, ranker)
        touching = _touching(risk, rows, w, C, tight=tight)
        if definition.level_free and rows.bias and not touching.agrees_with(claimed):
            # The constant is a classifier's threshold, which moves no ranking. Training had another one: without any
            # the objective is lowest, and what the model says is higher by half the square of it.
            lowest = _touching(risk, rows, with_common_constant(rows, w, 0.0), C, tight=tight)
            length = np.sqrt(2.0 * max(claimed.primal - lowest.value, 0.0) / rows.components)
            other = _touching(risk, rows, with_common_constant(rows, w, length), C, tight=tight)
            touching = other if other.agrees_with(claimed) else touching
        return _judged(touching, claimed, limits, reasons, label=label, loss=name, plainly_defined=plainly_defined)


def _definition(name: str, defined_elsewhere: Callable[[str], Definition | None]) -> tuple[Definition, bool]:
    """The loss of this name, and whether it is a plain one."""
    try:
        return definition_of(name), True
    except UnknownLossError as error:
        definition = defined_elsewhere(name)
        if definition is None:
            raise NothingToVerifyError(str(error)) from None
        return definition, False


def _units(dataset: Dataset, *, latent: bool, components: int) -> Units:
    n = len(dataset)
    if components > 1:
        return Units(n * components, np.arange(n * components), np.arange(0, n * components, components))
    if not latent:
        return Units(n)
    bags = _bags(dataset)
    return Units(n, np.arange(n) if bags.order is None else bags.order, bags.offsets[:-1])


def _bags(dataset: Dataset) -> Bags:
    if dataset.bags is None:
        raise NothingToVerifyError(f"the model was trained on bags, and these rows are in none: {HOW_SAID}")
    return Bags.of_rows(dataset.bags, dataset.relevance, dataset.groups)


def _tasks(
    definition: Definition,
    dataset: Dataset,
    target: Target,
    *,
    latent: bool,
    query_weights: Mapping[int, float] | None,
) -> list[Task]:
    """Of rows, or of bags, of each of which the first row says all that its rows share."""
    at = slice(None)
    first = _bags(dataset).first if latent else at
    graded = target.labels.kind is LabelKind.GRADES and target.grades is not None
    return tasks_of(
        definition,
        target.relevant[first],
        grades=target.grades[first] if graded and target.grades is not None else None,
        queries=None if dataset.groups is None else dataset.groups[first],
        costs=None if dataset.costs is None else dataset.costs[first],
        query_weights=query_weights,
    )


@dataclass(frozen=True)
class _Touching:
    """The convex function whose minimum is bounded; it touches the objective at ``w``, where it is ``value``.

    size : float, of the terms of the objective there, by which rounding is measured
    is_objective : whether it is the objective itself, and its minimum the optimum
    """

    convex: Convex
    w: Array
    value: float
    size: float
    is_objective: bool

    @property
    def slack(self) -> float:
        """What rounding may do."""
        return ROUNDING * self.size

    def agrees_with(self, claimed: Bounds) -> bool:
        """Whether the model says this of its objective."""
        return bool(np.isfinite(self.size)) and abs(self.value - claimed.primal) <= self.slack


def _touching(risk: PlainRisk, rows: PlainRows, w: Array, C: float, *, tight: bool) -> _Touching:
    """The hinge h, whose plane of the true ranking is 0. With the tight bound h − g stands in its place, and g gives
    way to its plane c·s at w. Units of several rows are held, as positives, at those where they stand."""
    scores = rows.scores(w)
    held = None if risk.of_rows else risk.best(scores)
    hinge = risk.hinge(scores, held)
    by_score = risk.by_score(scores, held) if tight else Plane(0.0, 0.0, np.zeros_like(scores))

    def convex(at: Array) -> Plane:
        value, offset, slopes = risk.hinge(at, held)
        return Plane(value - float(by_score.slopes @ at), offset, slopes - by_score.slopes)

    length = 0.5 * float(w @ w)
    return _Touching(
        Convex(rows, convex, Plane(0.0, 0.0, -by_score.slopes), C),
        w,
        length + C * (hinge.value - by_score.value),
        length + C * (hinge.value + by_score.value),
        risk.of_rows and not tight,
    )


def _judged(
    touching: _Touching,
    claimed: Bounds,
    limits: Limits,
    reasons: list[str],
    *,
    label: float | None,
    loss: str,
    plainly_defined: bool,
) -> Verdict:
    """Proves the bound, and compares."""
    if not np.isfinite(touching.size):
        reasons.append("the objective is not finite")
    elif not touching.agrees_with(claimed):
        reasons.append("the objective is not what the model says")
    gap = max(claimed.gap, 0.0)
    wanted = touching.value - gap - max(SHARE_OF_GAP * gap, SHARE_OF_OBJECTIVE * touching.size)
    refuting = claimed.dual - touching.slack
    if reasons:
        # What is false already needs no proof of the rest: one bound from one plane.
        limits = Limits(seconds=limits.seconds, iterations=0)
    found = prove(touching.convex, touching.w, wanted, refuting, limits)
    if found.lowest < refuting:
        reasons.append("a point was found below the lower bound")
    outcome = Outcome.FAILS if reasons else Outcome.HOLDS if found.lower >= wanted else Outcome.UNDECIDED
    return Verdict(
        label=label,
        loss=loss,
        C=touching.convex.C,
        plainly_defined=plainly_defined,
        stationary=not touching.is_objective,
        claimed=claimed,
        objective=touching.value,
        proved=found.lower,
        lowest=found.lowest,
        iterations=found.iterations,
        planes=found.planes,
        outcome=outcome,
        reasons=tuple(reasons),
    )


def _inconsistent(ranker: Ranker) -> Iterator[str]:
    """What the header's own numbers contradict."""
    header, claimed = ranker.header, ranker.header.certificate
    assert claimed is not None
    assert header.C is not None
    figures = (claimed.primal, claimed.dual, claimed.gap, claimed.tolerance)
    if not np.isfinite(figures).all():
        yield "its bounds are not finite"
        return
    if not np.isclose(
        claimed.gap, max(claimed.primal - claimed.dual, 0.0), rtol=1e-9, atol=1e-12 * abs(claimed.primal)
    ):
        yield "its gap is not the difference of its bounds"
    epsilon = header.settings.get("epsilon")
    if isinstance(epsilon, float) and not np.isclose(claimed.tolerance, epsilon * header.C, rtol=1e-9):
        yield "the gap asked for is not epsilon·C"


def _constant(definition: Definition, rows: PlainRows, ranker: Ranker) -> Iterator[str]:
    """A constant that is no weight of the training moves the scores that the loss was of."""
    if rows.bias is not None or definition.level_free:
        return
    (linear,) = ranker.linear_parts()
    expected = constant_of_scaling(rows, linear)
    if abs(linear.intercept - expected) > ROUNDING * (1.0 + abs(expected)):
        yield "its constant is none that the training gives"
