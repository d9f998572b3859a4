"""Checks that the certificate of a model holds for a data set, independently of the training code.

For the convex hinge the certificate says that no w has an objective more than ``gap`` below the model's. The tight
bound, bags and components are not convex. There a convex function lies above the objective and touches it at the
model's w; the certificate says that no w lowers this function by more than ``gap``. Both are verified from the rows:
``plain`` defines the objective, and ``bound`` proves the lower bound. Only the model's weights are trusted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from apsvm.data.bags import HOW_SAID, Bags
from apsvm.data.dataset import Dataset
from apsvm.data.labels import Target, recall
from apsvm.models.averages import has_constant_of_members, members_of
from apsvm.models.base import Model, Ranker
from apsvm.models.header import Bounds, LabelKind
from apsvm.models.json import is_finite_number
from apsvm.models.linear import LinearRanker
from apsvm.verification.bound import Claim, Convex, Limits, exact_scores, prove
from apsvm.verification.exact import float64_error
from apsvm.verification.plain import (
    Array,
    Definition,
    Integers,
    PartialAreaDefinition,
    RankingDefinition,
    UnknownLossError,
    definition_of,
)
from apsvm.verification.risk import PlainRisk, Plane, Task, Units, tasks_of
from apsvm.verification.rows import (
    PlainRows,
    rows_as_trained,
    weights_as_trained,
    with_common_constant,
)

#: Distance below the certificate's bound at which a proof may end: fractions of its gap, of the objective, and of the
#: objective at w = 0, since the optimum of separable rows may be mere rounding error.
SHARE_OF_GAP, SHARE_OF_OBJECTIVE, SHARE_AT_NOTHING = 0.01, 1e-6, 1e-11
#: Largest gap that is still informative, as a fraction of the objective at w = 0.
TELLING = 0.01


class NothingToVerifyError(ValueError):
    """A model without a certificate, or with one that cannot be verified; the message gives the reason."""


class Outcome(StrEnum):
    """Outcome of a verification."""

    HOLDS = "holds"
    SAYS_NOTHING = "holds, but says nothing"
    FAILS = "does not hold"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Claim of a model, and result of its verification.

    Attributes
    ----------
    loss, C : loss and C of the training problem
    plainly_defined : True if ``apsvm.verification.plain`` defines the loss
    stationary : True if the certificate is of a stationary point, False if of an optimum
    claimed : the bounds that the model states
    objective : recomputed at the model's weights
    proved : the best lower bound
    rounding : the rounding error of the model's figures
    at_nothing : objective at w = 0
    iterations, planes : the size of the proof
    outcome : result of the verification
    reasons : why the certificate does not hold
    features : the feature map of the ranker
    label : the class's label, if the model has several classes
    member : number of the averaged ranker, from 1, if the model is an average
    """

    loss: str
    C: float
    plainly_defined: bool
    stationary: bool
    claimed: Bounds
    objective: float
    proved: float
    rounding: float
    at_nothing: float
    iterations: int
    planes: int
    outcome: Outcome
    reasons: tuple[str, ...]
    features: str
    label: float | None = None
    member: int | None = None

    @property
    def gap(self) -> float:
        """Proved gap between the model's objective and the lower bound, ≥ 0."""
        return max(self.objective - self.proved, 0.0)

    @property
    def share(self) -> float:
        """The gap as a fraction of the objective at w = 0."""
        return self.gap / self.at_nothing if self.at_nothing > 0.0 else np.inf


def verify(
    model: Model,
    dataset: Dataset,
    *,
    query_weights: Mapping[int, float] | None = None,
    telling: float = TELLING,
    limits: Limits = Limits(),  # noqa: B008  # frozen
    defined_elsewhere: Callable[[str], Definition | None] = lambda name: None,
) -> Iterator[Verdict]:
    """Verifies the model's certificate: one verdict for each class, or for each member of an average.

    Parameters
    ----------
    dataset : Dataset
        The training rows, read and pooled as the model says.
    query_weights : Mapping[int, float], optional
        Weights of the queries in training, if any.
    telling : float
        Largest gap that is still informative, as a fraction of the objective at w = 0.
    limits : Limits
        Limits of each proof.
    defined_elsewhere : Callable[[str], Definition | None], optional
        Maps the name of a loss that ``plain`` lacks to its definition, or None.

    Raises
    ------
    NothingToVerifyError
        The model has no certificate, or one that cannot be verified.
    DataError
        The labels do not fit the model.
    """
    judge = _Judge(dataset, query_weights, telling, limits, defined_elsewhere)
    is_average, rows, moved = bool(model.header.members), None, False
    rankers: Sequence[Ranker] = [ranker for ranker in model.rankers() if ranker.linear_parts()]
    if isinstance(model, LinearRanker) and is_average:
        rankers, moved = members_of(model), not has_constant_of_members(model)
    if not rankers:
        raise NothingToVerifyError(f"{model.description} has no certificate that can be verified")
    for number, ranker in enumerate(rankers, start=1):
        header = ranker.header
        if header.certificate is None:
            raise NothingToVerifyError(_without_certificate(header.family))
        if rows is None or not model.has_classes:
            rows = rows_as_trained(dataset.X, ranker)
        verdict = judge.verdict(ranker, recall(dataset, header.labels), rows)
        if moved and not judge.definition(verdict.loss)[0].level_free:
            reasons = (*verdict.reasons, "the average's constant is not that of its members")
            verdict = replace(verdict, outcome=Outcome.FAILS, reasons=reasons)
        label = header.labels.positive if model.has_classes else None
        yield replace(verdict, label=label, member=number if is_average else None)


def _without_certificate(family: str) -> str:
    of_family = f" of {family}" if family else ""
    return f"the model{of_family} has no certificate: only a structured SVM ends with bounds of the optimum"


@dataclass(frozen=True)
class _Judge:
    """Arguments of ``verify`` shared by all rankers."""

    dataset: Dataset
    query_weights: Mapping[int, float] | None
    telling: float
    limits: Limits
    defined_elsewhere: Callable[[str], Definition | None]

    def verdict(self, ranker: Ranker, target: Target, rows: PlainRows) -> Verdict:
        """Verdict on the ranker's certificate; ``rows`` are as in its training."""
        header = ranker.header
        claimed, C = header.certificate, header.C
        if claimed is None or C is None or not (np.isfinite(C) and C > 0.0):
            raise NothingToVerifyError(_without_certificate(header.family))
        if not claimed.exact:
            raise NothingToVerifyError(
                "the bounds are those of an approximation (--oracle appx), which certifies nothing"
            )
        name = claimed.loss or header.loss
        definition, plainly_defined = self.definition(name)
        if claimed.bound != "hinge" and not (
            claimed.bound == "tight" and isinstance(definition, RankingDefinition | PartialAreaDefinition)
        ):
            raise NothingToVerifyError(f"the loss {name!r} has no bound {claimed.bound!r}")
        units = self.units(latent=header.latent, components=rows.components)
        tasks = self.tasks(definition, target, latent=header.latent)
        if not tasks:
            raise NothingToVerifyError("no query of the data has both a positive and a negative row")
        with np.errstate(over="ignore", invalid="ignore"):  # non-finite values are found below
            risk, tight = PlainRisk(definition, tasks, units), claimed.bound == "tight"
            w = weights_as_trained(rows, ranker)
            reasons = [*_inconsistent(ranker), *_constant(definition, rows, ranker)]
            if definition.level_free:
                rows = rows.around_their_mean()
            problem = _Problem(risk, rows, C, tight=tight, level_free=definition.level_free)
            touching = problem.touching(w)
            if definition.level_free and rows.bias and not touching.agrees_with(claimed):
                # The constant is a classifier's threshold, which moves no ranking, and was set after training. The
                # objective is lowest without a constant; the model's is higher by half the constant's square.
                lowest = problem.touching(with_common_constant(rows, w, 0.0))
                length = np.sqrt(2.0 * max(claimed.primal - lowest.value, 0.0) / rows.components)
                shifted = problem.touching(with_common_constant(rows, w, length))
                touching = shifted if shifted.agrees_with(claimed) else touching
            if not np.isfinite(touching.value + touching.rounding):
                reasons.append("the objective is not finite")
            elif not touching.agrees_with(claimed):
                reasons.append("the objective is not what the model says")
            elif claimed.dual > claimed.primal + touching.rounding:
                reasons.append("its lower bound is above its objective")
            # A false claim needs no further proof: one bound from the first planes.
            at_nothing = C * risk.hinge(np.zeros(rows.count)).value
            highest = touching.value + touching.own_rounding
            enough = min(self.telling * at_nothing, (1.0 + SHARE_OF_GAP) * C * (_epsilon(ranker) or 0.0))
            stationary = tight or not risk.of_rows
            # w = 0 may be stationary itself: the gap of a stationary point that is no lower is not informative.
            telling_point = not stationary or highest < at_nothing
            least = highest - enough if telling_point and claimed.gap <= enough else -np.inf
            shares = SHARE_OF_GAP * claimed.gap, SHARE_OF_OBJECTIVE * abs(touching.value), SHARE_AT_NOTHING * at_nothing
            claim = Claim(claimed.dual, max(shares), least)
            limits = replace(self.limits, iterations=0) if reasons else self.limits
            proof = prove(touching.convex, touching.w, highest, claim, touching.rounding, limits)
        if proof.lowest < claimed.dual - proof.slack:
            reasons.append("a point was found below the lower bound")
        if reasons:
            outcome = Outcome.FAILS
        elif claim.proved_by(proof.lower, proof.slack):
            outcome = Outcome.HOLDS if least > -np.inf else Outcome.SAYS_NOTHING
        else:
            outcome = Outcome.SAYS_NOTHING if proof.lowest < least else Outcome.UNDECIDED
        return Verdict(
            loss=name,
            C=C,
            plainly_defined=plainly_defined,
            stationary=stationary,
            claimed=claimed,
            objective=touching.value,
            proved=proof.lower,
            rounding=proof.slack,
            at_nothing=at_nothing,
            iterations=proof.iterations,
            planes=proof.planes,
            outcome=outcome,
            reasons=tuple(reasons),
            features=header.features.map,
        )

    def definition(self, name: str) -> tuple[Definition, bool]:
        """The loss ``name``, and True if ``plain`` defines it."""
        try:
            return definition_of(name), True
        except UnknownLossError as error:
            definition = self.defined_elsewhere(name)
            if definition is None:
                raise NothingToVerifyError(str(error)) from None
            return definition, False

    def units(self, *, latent: bool, components: int) -> Units:
        """Units that are ranked: rows, rows of components, or bags."""
        n = len(self.dataset)
        if components > 1:
            return Units(n * components, np.arange(n * components), np.arange(0, n * components, components))
        if not latent:
            return Units(n)
        bags = self.bags()
        return Units(n, np.arange(n) if bags.order is None else bags.order, bags.offsets[:-1])

    def bags(self) -> Bags:
        """Bags of the rows. Raises NothingToVerifyError without bags."""
        dataset = self.dataset
        if dataset.bags is None:
            raise NothingToVerifyError(f"the model was trained on bags, and these rows have no bag ids: {HOW_SAID}")
        return Bags.of_rows(dataset.bags, dataset.relevance, dataset.groups)

    def tasks(self, definition: Definition, target: Target, *, latent: bool) -> list[Task]:
        """Tasks of rows, or of bags; a bag's first row carries the values that its rows share."""
        dataset, first = self.dataset, self.bags().first if latent else slice(None)
        grades = target.grades if target.labels.kind is LabelKind.GRADES else None
        return tasks_of(
            definition,
            target.relevant[first],
            grades=None if grades is None else grades[first],
            queries=None if dataset.groups is None else dataset.groups[first],
            costs=None if dataset.costs is None else dataset.costs[first],
            query_weights=self.query_weights,
        )


@dataclass(frozen=True)
class _Touching:
    """Convex function above the objective. It touches the objective at ``w``, where both are ``value``.

    own_rounding : the rounding error of ``value``
    rounding : that plus the rounding error of the model's figure for it
    """

    convex: Convex
    w: Array
    value: float
    own_rounding: float
    rounding: float

    def agrees_with(self, claimed: Bounds) -> bool:
        """True if the model's stated objective agrees with ``value``."""
        return abs(self.value - claimed.primal) <= self.rounding


class _Problem:
    """½‖w‖² + C·r of the scores. r is the hinge h; the true ranking gives its plane 0. With the tight bound r is h − g,
    and g is replaced by its plane at w. Units of several rows keep, as positives, their best rows at w."""

    def __init__(self, risk: PlainRisk, rows: PlainRows, C: float, *, tight: bool, level_free: bool) -> None:
        self._risk, self._rows, self._C, self._tight, self._level_free = risk, rows, C, tight, level_free

    def touching(self, w: Array) -> _Touching:
        """Convex function that touches the objective at ``w``."""
        risk, rows, C = self._risk, self._rows, self._C
        scores = exact_scores(rows, w, level_free=self._level_free)
        held = None if risk.of_rows else risk.best(scores)
        by_score = risk.by_score(scores, held) if self._tight else Plane(0.0, 0.0, np.zeros_like(scores))

        def convex(at: Array) -> Plane:
            value, offset, slopes = risk.hinge(at, held)
            return Plane(value - float(by_score.slopes @ at), offset, slopes - by_score.slopes)

        problem = Convex(
            rows,
            convex,
            risk.rounding,
            risk.largest_loss,
            Plane(0.0, 0.0, -by_score.slopes),
            C,
            self._level_free,
            rows.sizes(w),
            0.5 * float(w @ w) + self._terms(w, scores, held, by_score),
        )
        value, own_rounding = problem.at(w, scores)
        return _Touching(problem, w, value, own_rounding, own_rounding + self._rounding(w, scores, held, problem.sizes))

    def _terms(self, w: Array, scores: Array, held: Integers | None, by_score: Plane) -> float:
        """Summed magnitudes of the terms of w in training: C·a and planes; a is the slope of the nonconvex part."""
        slopes = by_score.slopes if held is None else self._risk.hinge(scores, held, np.ptp(scores) + 1.0).slopes
        away = self._C * self._rows.combined_sizes(np.abs(slopes))
        return float(np.abs(w) @ away) + float64_error(scores.size) * float(away @ away)

    def _rounding(self, w: Array, scores: Array, held: Integers | None, sizes: Array) -> float:
        """Bound on the rounding error of the objective, from the scores and from the sum."""
        risk, d = self._risk, self._rows.columns
        away = float64_error(d) * (sizes if risk.of_rows else np.full_like(sizes, sizes.max()))
        higher, lower = risk.hinge(scores, held, away), risk.hinge(scores, held, -away)
        width, terms = higher.value - lower.value, np.abs(higher.slopes) @ sizes
        if self._tight:
            higher_by, lower_by = risk.by_score(scores, held, away), risk.by_score(scores, held, -away)
            width, terms = width + higher_by.value - lower_by.value, terms + np.abs(higher_by.slopes) @ sizes
        loss = risk.largest_loss if higher.slopes.any() else 0.0
        of_risk = self._C * float(width + float64_error(scores.size) * (terms + loss))
        return of_risk + (float64_error(d) + self._rows.rounding_of_divisors) * float(w @ w)


def _inconsistent(ranker: Ranker) -> Iterator[str]:
    """Contradictions among the header's own numbers."""
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
    epsilon = _epsilon(ranker)
    if epsilon is None:
        yield "its settings have no epsilon"
    elif not np.isclose(claimed.tolerance, min(epsilon * header.C, sys.float_info.max), rtol=1e-9):
        yield "the requested gap is not epsilon·C"


def _epsilon(ranker: Ranker) -> float | None:
    """Requested gap of the training, as a fraction of C; None if the model does not record it."""
    epsilon = ranker.header.settings.get("epsilon")
    return float(epsilon) if is_finite_number(epsilon) and epsilon >= 0.0 else None


def _constant(definition: Definition, rows: PlainRows, ranker: Ranker) -> Iterator[str]:
    """Yields a reason if the loss depends on the constant, but the constant is neither trained nor due to centring."""
    if rows.bias is not None or definition.level_free:
        return
    (linear,) = ranker.linear_parts()
    expected, size = rows.constant(linear.coef)
    if not abs(linear.intercept - expected) <= float64_error(rows.columns) * size:
        yield "its constant does not follow from the training"
