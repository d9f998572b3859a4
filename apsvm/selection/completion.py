"""Completes a plan and trains it: what the user left open is chosen first, then the complete plan is trained.

    Fit  →  is anything open?  →  ``quick.choose``  →  a complete plan  →  ``Trainer.train``  →  outcomes

Every training comes through here: in the folds of ``cv`` and on all rows, by commands and estimators. Where the feature
map is open, too, ``maps`` chooses it before. A structured SVM may leave open its bound and C (``quick``). A loss of the
top (``p@k``, ``ndcg@k``, ``mrr``, ``rbp``) also leaves its starting point open, and a loss over labellings (``f1``)
whether its hinge is useful.

Losses of the top: on a long list the hinge is lowest at or near w = 0, and the ramp has a stationary point there. So
two trainings follow each other: first a well-behaved loss of the same family (ap, or ndcg for grades) by its better
bound, then the tight bound of the loss itself, starting from there. With the default C, the result never has a higher Δ
on the training rows than the start: the ramp descends further (``DESCENTS``) until that holds, or the start is returned
with the certificate of its own problem. A C that the user named is always used: on short lists a small one ranks new
rows better and training rows worse.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import several_queries
from apsvm.losses import make_loss
from apsvm.losses.base import Loss
from apsvm.models.items import ItemFactors
from apsvm.risk import loss_by_order
from apsvm.selection.choose import pooled_ap
from apsvm.selection.mixture import COMPONENTS, Mixture, two_or_one
from apsvm.selection.quick import LOSS, Choice, choose, classes_compared
from apsvm.selection.thresholds import held_out_scores, threshold_by
from apsvm.solvers.state import State
from apsvm.trainers.base import AnyTrainer, Outcome, TrainingSet, Watch
from apsvm.trainers.feature_scales import scales_checked
from apsvm.trainers.fitting import Fit, about_data
from apsvm.trainers.one_vs_rest import OneVsRestTrainer
from apsvm.trainers.ranking_check import ranking_checked, scores_of, tells_apart
from apsvm.trainers.structured_svm.remarks import caution_of
from apsvm.trainers.structured_svm.settings import DEFAULT_C
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

if TYPE_CHECKING:
    from apsvm.models.header import Json
    from apsvm.selection.race import OutOfFold

#: Descents of the ramp of a loss of the top, tried in turn until the training rows are ranked no worse than at its
#: start: on long lists the first, as larger ones fit the noise of the rows; on many short lists often the last.
DESCENTS = (0.1, 0.9, 0.97)
#: Share of the time limit for the loss that comes first.
SHARE_OF_START = 2.0 / 3.0
#: Rows per weight from which a threshold chosen on the training rows holds on new rows.
ENOUGH_ROWS_A_FEATURE = 10


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """A training whose open settings have been chosen.

    Attributes
    ----------
    raw : the training before its features are learned
    fit : the same, prepared
    data : its rows
    completion : the plan and what was chosen for it
    details : further details of its outcomes
    """

    raw: Fit
    fit: Fit
    data: TrainingSet
    completion: Completion
    details: Mapping[str, Json] = field(default_factory=dict)

    def outcomes(self, watch: Watch) -> Iterator[Outcome]:
        """Yields outcomes, and raises, as ``Trainer.train``; outcomes that rank nothing are marked."""
        fit, data = self.fit, self.data
        watch = about_data(watch, fit, data.rows.__len__)
        for outcome in _train(fit.trainer, self.completion, data, watch, fit.held_out()):
            outcome = replace(outcome, details={**outcome.details, **self.details})
            checked = ranking_checked(outcome, data, fit.trainer)
            yield scales_checked(checked, fit.dataset) if fit.features.scale == "none" else checked


def train_fit(fit: Fit, watch: Watch, data: TrainingSet | None = None) -> Iterator[Outcome]:
    """Outcomes of a prepared fit (``Training.outcomes``); ``data``: its training set, if there is one already."""
    data = data or fit.training_set()
    yield from Training(fit, fit, data, complete(fit.trainer, data, watch)).outcomes(watch)


def train_plan(trainer: AnyTrainer, data: TrainingSet, watch: Watch) -> Iterator[Outcome]:
    """Outcomes of ``trainer`` on ``data`` after its open settings are chosen. Raises as ``Trainer.train``."""
    yield from _train(trainer, complete(trainer, data, watch), data, watch, None)


def continue_plan(
    plan: AnyTrainer, data: TrainingSet, watch: Watch, start: NDArray[np.float64] | None
) -> Iterator[Outcome]:
    """Outcomes of a plan that leaves nothing open, from the weights (dimension,) of a training on some of the rows."""
    if not isinstance(plan, StructuredSVMTrainer):
        yield from plan.train(data, watch, start=start)
        return
    settled = plan.with_settings(bound="tight") if _descends_from_another(plan, data) else plan
    for outcome in settled.train(data, watch, start=start):
        yield replace(outcome, cautions=caution_of(outcome, plan))


def complete(trainer: AnyTrainer, data: TrainingSet, watch: Watch) -> Completion:
    """Chooses what a plan leaves open."""
    if isinstance(trainer, OneVsRestTrainer):
        return Completion.of_classes(trainer, data, watch)
    return Completion.of(trainer, data, watch)


def _train(
    trainer: AnyTrainer,
    completion: Completion,
    data: TrainingSet,
    watch: Watch,
    validation: TrainingSet | None,
) -> Iterator[Outcome]:
    if not isinstance(trainer, OneVsRestTrainer):
        yield from completion.train(data, watch, validation)
        return
    limit = trainer.settings.time_limit
    if limit is not None:
        trainer = trainer.with_settings(time_limit=max(0.0, limit - completion.seconds))
    results = trainer.train(data, watch, validation=validation, train_class=completion.train_class)
    for outcome in results:
        if completion.choice is not None:
            outcome = replace(outcome, seconds={"choosing": completion.seconds, **outcome.seconds})
        yield outcome


def leaves_open(trainer: AnyTrainer, data: TrainingSet) -> bool:
    """True if settings must be compared, or another loss trained, before training."""
    plan = trainer.trainer if isinstance(trainer, OneVsRestTrainer) else trainer
    if not isinstance(plan, StructuredSVMTrainer) or plan.is_network:
        return False
    return plan.bound is None or _starts_from_another(plan, data)


def _starts_from_another(trainer: StructuredSVMTrainer, data: TrainingSet) -> bool:
    """True if another loss is trained first and its model may be returned."""
    return _descends_from_another(trainer, data) or trainer.may_rank_worse


def _descends_from_another(trainer: StructuredSVMTrainer, data: TrainingSet) -> bool:
    """True for a loss of the top, whose tight bound starts at another loss' solution."""
    of_the_top = trainer.loss.over_rankings and trainer.loss.starts_from is not None and not trainer.approximates
    return of_the_top and trainer.bound != "hinge" and data.bags is None


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """A plan and the choices that complete it.

    Attributes
    ----------
    trainer : the plan as requested
    choice : the bound and C, or those of the loss that is trained first; None if nothing was open
    seconds : time of the choice
    label : the class that is trained, if there are several
    mixture : the comparison of two components with one, if there was one; if two are taken, trainer and choice have
        them
    before : the training of the loss that comes first
    """

    trainer: AnyTrainer
    choice: Choice | None = None
    seconds: float = 0.0
    label: float | None = None
    mixture: Mixture | None = None
    before: Completion | None = None

    @classmethod
    def of(
        cls,
        trainer: AnyTrainer,
        data: TrainingSet,
        watch: Watch,
        labels: Sequence[float | None] = (None,),
    ) -> Completion:
        """Chooses what a plan leaves open; one choice for several classes."""
        if not leaves_open(trainer, data):
            return cls(trainer)
        assert isinstance(trainer, StructuredSVMTrainer)
        if _starts_from_another(trainer, data):
            before = cls.of(_start_of(trainer), data, watch, labels)
            return cls(trainer, before.choice, before.seconds, before=before)
        began = time.perf_counter()
        choice = choose(trainer, trainer.rows_of(data), watch, labels)
        mixture = two_or_one(trainer, data, choice, watch) if labels == (None,) else None
        if mixture is not None and mixture.choice is not None:
            trainer, choice = trainer.with_settings(components=COMPONENTS), mixture.choice
        return cls(trainer, choice, time.perf_counter() - began, mixture=mixture)

    @classmethod
    def of_classes(cls, plan: OneVsRestTrainer, data: TrainingSet, watch: Watch) -> Completion:
        """Chooses once for all classes of a one-vs-rest plan, by comparing settings on some of them."""
        labels = classes_compared(data) if leaves_open(plan, data) else []
        return cls.of(plan.trainer, data, watch, labels)

    def train_class(
        self,
        trainer: AnyTrainer,
        label: float,
        data: TrainingSet,
        watch: Watch,
        validation: TrainingSet | None = None,
    ) -> Iterator[Outcome]:
        """Trains one class with the settings chosen for all (a ``one_vs_rest.TrainClass``)."""
        before = self.before
        if before is not None:
            assert isinstance(trainer, StructuredSVMTrainer)
            before = replace(before, trainer=_start_of(trainer), label=label)
        of_class = replace(self, trainer=trainer, label=label, seconds=0.0, before=before)
        yield from of_class.train(data, watch, validation)

    def held_out(self) -> tuple[list[OutOfFold], list[OutOfFold]]:
        """Held-out scores of the choice (``Choice.out_of_fold``)."""
        assert self.choice is not None
        return self.choice.out_of_fold(self.label)

    def train(self, data: TrainingSet, watch: Watch, validation: TrainingSet | None) -> Iterator[Outcome]:
        """Trains the completed plan."""
        trainer = self.trainer
        if not isinstance(trainer, StructuredSVMTrainer):
            yield from trainer.train(data, watch, validation=validation)
            return
        if trainer.is_network:
            yield from _network(trainer, data, watch)
            return
        limit = trainer.settings.time_limit
        if limit is not None:
            trainer = trainer.with_settings(time_limit=max(0.0, limit - self.seconds))
        if self.before is not None:
            results = self._of_another(self.before, trainer, data, watch)
        else:
            results = self._of_the_choice(trainer, data, watch)
        for outcome in results:
            yield self._annotated(outcome, data)

    def _of_the_choice(self, trainer: StructuredSVMTrainer, data: TrainingSet, watch: Watch) -> Iterator[Outcome]:
        """Trains with the chosen or named bound and C."""
        choice = self.choice
        if choice is None:
            yield from trainer.train(data, watch)
            return
        best_start = choice.start(self.label)
        plan = trainer.with_settings(bound=choice.bound, C=choice.C)
        is_mixture = self.mixture is not None and choice is self.mixture.choice
        if not is_mixture:  # whose start was reached from clusters of the positives
            plan = plan.beginning_at(best_start)
        for outcome in plan.train(data, watch, start=best_start if is_mixture else None):
            yield self._unless_it_is_nothing(trainer, data, watch, outcome, best_start)

    def _unless_it_is_nothing(
        self,
        trainer: StructuredSVMTrainer,
        data: TrainingSet,
        watch: Watch,
        outcome: Outcome,
        best_start: NDArray[np.float64] | None,
    ) -> Outcome:
        """Replaces a hinge solution that ranks nothing by that of the tight bound, started from the chosen candidate,
        unless that ranks nothing either."""
        choice, w = self.choice, outcome.w
        assert choice is not None
        assert w is None or isinstance(w, np.ndarray)
        is_hinge = choice.bound == "hinge" and len(choice.C) == 1 and outcome.as_asked
        if not is_hinge or best_start is None or w is None or tells_apart(w, data.rows):
            return outcome
        limit = trainer.settings.time_limit
        left = None if limit is None else max(0.0, limit - math.fsum(outcome.seconds.values()))
        plan = trainer.with_settings(bound="tight", C=(choice.best_C("tight"),), time_limit=left)
        (tight,) = plan.beginning_at(best_start).train(data, watch)
        assert isinstance(tight.w, np.ndarray)
        if not tells_apart(tight.w, data.rows):
            return outcome
        why = "the hinge is least where all rows have the same score: this is the tight bound, from the best candidate"
        return _followed(outcome, replace(tight, notes=[*tight.notes, why], held_out=None))

    def _of_another(
        self, before: Completion, trainer: StructuredSVMTrainer, data: TrainingSet, watch: Watch
    ) -> Iterator[Outcome]:
        """Trains the loss that comes first, whose iterations are shown but not logged, and then the plan's own."""
        began, first, limit = time.perf_counter(), before.trainer, trainer.settings.time_limit
        assert isinstance(first, StructuredSVMTrainer)
        silent, name = Watch(progress=watch.progress, should_stop=watch.should_stop), first.loss.name
        first = first.with_settings(time_limit=None if limit is None else SHARE_OF_START * limit)
        (start,) = before._of_the_choice(first, data, silent)

        def in_the_time_left() -> StructuredSVMTrainer:
            left = None if limit is None else max(0.0, limit - (time.perf_counter() - began))
            return trainer.with_settings(time_limit=left)

        follow = _of_the_top if trainer.loss.ranks_like is None else _of_labellings
        yield from follow(in_the_time_left, start, name, data, watch)

    def _annotated(self, outcome: Outcome, data: TrainingSet) -> Outcome:
        """Adds the choice, its cautions and the requested settings to an outcome."""
        trainer, choice = self.trainer, self.choice
        assert isinstance(trainer, StructuredSVMTrainer)
        settings, of_bags = trainer.settings, data.bags is not None
        if len(settings.C) > 1:
            settings = replace(settings, C=outcome.settings.C)  # type: ignore[attr-defined]
        if choice is None:
            return replace(outcome, settings=settings, cautions=caution_of(outcome, trainer, of_bags=of_bags))
        start = trainer.loss.starts_from if _starts_from_another(trainer, data) else None
        about: dict[str, Json] = {
            "bound": choice.bound,
            **({"C": _shown(choice.C[0])} if len(choice.C) == 1 else {}),
            "held_out": choice.how,
            "candidates": [_figures(one.choice, one.mean(LOSS)) for one in choice.candidates],
            "folds": [*(choice.candidates[0].values(LOSS) if choice.candidates else ())],
            **({} if start is None else {"start": start, "start_metric": make_loss(start).metric}),
            **({} if self.mixture is None else {"components": self.mixture.figures()}),
        }
        outcome = replace(
            outcome,
            settings=settings,
            cautions=caution_of(
                outcome,
                trainer,
                of_bags=of_bags,
                held_out=choice.loss,
                by_chance=choice.by_chance,
                start=start,
                chosen=choice.bound,
            ),
            details={**outcome.details, "choice": about},
        )
        if self.label is None:
            notes = [*([] if self.mixture is None else [str(self.mixture)]), *outcome.notes]
            outcome = replace(outcome, notes=notes, seconds={"choosing": self.seconds, **outcome.seconds})
        return self._with_threshold(outcome, data)

    def _with_threshold(self, outcome: Outcome, data: TrainingSet) -> Outcome:
        """Adds AP on held-out rows without the optimism of the choice, their scores and the threshold chosen on them.

        Skipped where the held-out scores are not those of this ranker, or its scores are not compared with a constant:
        for grades, queries, losses of the top, several or other values of C, and a training that was cut short. With
        many rows and a single fold there is no threshold: a model of all rows hardly knows its training rows better
        than others.
        """
        trainer, choice = self.trainer, self.choice
        assert isinstance(trainer, StructuredSVMTrainer)
        assert choice is not None
        if choice.race is None or State(outcome.state).is_cut_short or trainer.loss.starts_from is not None:
            return outcome
        certificate = outcome.certificate
        is_another = certificate is None or certificate.bound != choice.bound or len(choice.C) > 1
        is_list = not several_queries(data.queries) and not data.target.is_graded
        if is_another or not is_list or self.label not in choice.race.labels:
            return outcome
        if trainer.settings.C != DEFAULT_C and choice.candidates[0].choice["C"] != choice.C[0]:
            return outcome
        relevant = data.target.relevant
        folds, others = self.held_out()
        worth = pooled_ap(folds, relevant, others)._asdict()
        about: dict[str, Json] = {"AP": worth, "of": choice.how, "chance": float(relevant.mean())}
        outcome = replace(outcome, details={**outcome.details, "held_out": about})
        is_large = len(data.rows) >= ENOUGH_ROWS_A_FEATURE * data.rows.dimension
        if len(folds) == 1 and is_large:
            return outcome
        scores = training_scores(outcome, data)
        if not np.isfinite(scores).all():
            return outcome
        held_out = held_out_scores(folds, scores, relevant, choice.how)
        kept = None if choice.race.is_of_parts else held_out
        return replace(outcome, threshold=threshold_by(held_out), held_out=kept)


def _of_labellings(
    in_the_time_left: Callable[[], StructuredSVMTrainer], start: Outcome, name: str, data: TrainingSet, watch: Watch
) -> Iterator[Outcome]:
    """Trains a loss over labellings; returns ``start``, by the loss ``name``, if that ranks training rows better."""
    plan = in_the_time_left()
    assert plan.loss.ranks_like is not None
    judge = make_loss(plan.loss.ranks_like)
    (outcome,) = plan.train(data, watch)
    is_worse = _loss_of(outcome, judge, data) > _loss_of(start, judge, data)
    why = f"the hinge ranks the training rows worse than {name}: this is the model of {name}"
    yield _in_its_place(start, name, why) if is_worse and outcome.state == State.CONVERGED else outcome


def _of_the_top(
    in_the_time_left: Callable[[], StructuredSVMTrainer], start: Outcome, name: str, data: TrainingSet, watch: Watch
) -> Iterator[Outcome]:
    """Trains a loss of the top from ``start``, by the loss ``name``, until the training rows are ranked no worse than
    there, or returns ``start``; by a named C once for each value."""

    def descended(descent: float) -> Iterator[Outcome]:
        assert isinstance(start.w, np.ndarray)
        plan = in_the_time_left().with_settings(bound="tight").beginning_at(start.w, name, descent)
        return (_followed(start, outcome) for outcome in plan.train(data, watch))

    plan = in_the_time_left()
    if plan.settings.C != DEFAULT_C:
        yield from descended(DESCENTS[0])
        return
    at_start = _loss_of(start, plan.loss, data)
    for descent in DESCENTS:
        (outcome,) = descended(descent)
        if _loss_of(outcome, plan.loss, data) <= at_start:
            yield outcome
            return
        if outcome.state != State.CONVERGED:
            yield replace(outcome, w=start.w)
            return
    why = "the descent ended at a higher loss on the training rows than it began with"
    yield _in_its_place(start, name, f"{why}: this is the model of {name}")


def _figures(choice: Mapping[str, object], loss: float) -> dict[str, Json]:
    return {"bound": str(choice["bound"]), "C": _shown(choice["C"]), "loss": loss}


def _shown(C: object) -> Json:
    return C if isinstance(C, float) else str(C)


def _start_of(trainer: StructuredSVMTrainer) -> StructuredSVMTrainer:
    """Plan of the loss that comes first: the same settings, with an open bound."""
    assert trainer.loss.starts_from is not None
    settings = replace(trainer.settings, bound="auto", oracle="auto", C=DEFAULT_C, log_ranks=False)
    if trainer.settings.components > 1:
        settings = replace(settings, bound="tight")
    return StructuredSVMTrainer(make_loss(trainer.loss.starts_from), settings, frozenset({"components"}))


def _followed(first: Outcome, then: Outcome) -> Outcome:
    """Combines an outcome with the training before it."""
    details = {**then.details, "oracle": f"{first.details['oracle']} then {then.details['oracle']}"}
    short = None if first.as_asked else first
    return replace(
        then,
        state=then.state if short is None else short.state,
        as_asked=first.as_asked and then.as_asked,
        interrupted=first.interrupted or then.interrupted,
        trouble=first.trouble or then.trouble,
        iterations=(first.iterations or 0) + (then.iterations or 0),
        details=details,
        seconds=_seconds(first, then),
    )


def _seconds(*outcomes: Outcome) -> dict[str, float]:
    """Sums the seconds of outcomes by part of the training."""
    parts = dict.fromkeys(part for outcome in outcomes for part in outcome.seconds)
    return {part: math.fsum(outcome.seconds.get(part, 0.0) for outcome in outcomes) for part in parts}


def _in_its_place(start: Outcome, name: str, why: str) -> Outcome:
    """Returns the start as the result, with its own certificate and the reason."""
    assert start.certificate is not None
    return replace(start, certificate=replace(start.certificate, loss=name), notes=[*start.notes, why])


def training_scores(outcome: Outcome, data: TrainingSet) -> NDArray[np.float64]:
    """(n,) float64 scores of the rows of ``data``, or of each bag's best row."""
    if outcome.scores is not None:
        return outcome.scores
    assert outcome.w is not None
    assert not isinstance(outcome.w, ItemFactors)
    scores = scores_of(outcome.w, data.rows)
    return scores if data.bags is None else np.maximum.reduceat(scores, data.bags[:-1])


def _loss_of(outcome: Outcome, loss: Loss, data: TrainingSet) -> float:
    """Δ of the training rows ranked by an outcome."""
    return loss_by_order(loss, training_scores(outcome, data), data.target, data.queries, data.query_weights)


def _network(trainer: StructuredSVMTrainer, data: TrainingSet, watch: Watch) -> Iterator[Outcome]:
    """Trains a layer-wise network. If C is open, returns the network with the lowest loss on the rows that it held out
    itself."""
    from apsvm.trainers.structured_svm.networks import MULTIPLES_TRIED, held_out_loss

    if not trainer.leaves_C_of_network_open:
        yield from trainer.train(data, watch)
        return
    tried = list(trainer.with_settings(bound="hinge", C=MULTIPLES_TRIED).train(data, watch))
    last = tried[-1]
    losses = [held_out_loss(outcome) for outcome in tried]
    best = tried[min(range(len(tried)), key=losses.__getitem__)]
    finite = [(outcome.C, loss) for outcome, loss in zip(tried, losses, strict=True) if loss < math.inf]
    figures = ", ".join(f"{C:g}: {loss:.4g}" for C, loss in finite)
    how = f"C = {best.C:g}" + (f", by the loss on rows held out ({figures})" if figures else "")
    yield replace(
        best,
        settings=trainer.settings,
        state=best.state if last.as_asked else last.state,
        as_asked=last.as_asked,
        trouble=last.trouble,
        interrupted=last.interrupted,
        notes=[how, *best.notes],
        seconds=_seconds(*tried),
    )
