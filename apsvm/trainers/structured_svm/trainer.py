"""The structured SVM and its two-stage approximation: ``--loss ap``, ``zero-one`` and their kin.

Algorithms: ``apsvm.trainers.structured_svm.training``, ``descent``, ``approximate``, ``default_c``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from apsvm.losses import LOSSES
from apsvm.registry import spelled
from apsvm.trainers.base import Outcome, Trainer, TrainingError, TrainingSet, Watch
from apsvm.trainers.settings import SettingsError, SettingValue
from apsvm.trainers.structured_svm.networks import GRID_OF_C, check_layer_wise, hidden_layers, networks
from apsvm.trainers.structured_svm.settings import ORACLE_CHOICES, StructuredSettings, random_starts, shown_C

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.labels import Takes
    from apsvm.losses.base import Loss
    from apsvm.trainers.structured_svm.stage import Trained


class StructuredSVMTrainer(Trainer[StructuredSettings]):
    """See the module. ``loss`` may be an object (``apsvm.losses.make_loss``)."""

    family: ClassVar[str] = "structured-svm"
    title: ClassVar[str] = "Structured SVM (--loss ap, ndcg, mrr, auc, f1, …)"
    Settings = StructuredSettings
    losses: ClassVar[Sequence[str]] = tuple(LOSSES)
    takes_query_weights = True
    shares_passes = True

    def __init__(
        self,
        loss: str | object,
        settings: StructuredSettings | None = None,
        given: frozenset[str] = frozenset(),
    ) -> None:
        from apsvm.losses import make_loss
        from apsvm.oracles import serving

        super().__init__(loss, settings, given)
        self.loss: Loss = make_loss(loss)
        self.loss_name = loss if isinstance(loss, str) else self.loss.name
        asked = self.settings
        self._approximates = asked.oracle == "appx"
        if asked.oracle != "auto":
            fitting = [name for name in serving(self.loss) if name in ORACLE_CHOICES]
            fitting += ["appx"] if self.loss.of_two_arrays else []
            if asked.oracle not in fitting:
                raise SettingsError(
                    f"--oracle {asked.oracle} cannot serve --loss {self.loss_name}: choose "
                    f"{', '.join(['auto', *fitting])}"
                )
        if asked.bound == "tight" and not self.loss.over_rankings:
            raise SettingsError(
                f"--bound tight is for losses over rankings, and {self.loss_name} is none: leave it out"
            )
        if asked.log_ranks and not self.loss.over_rankings:
            raise SettingsError(f"--log-ranks is for losses over rankings, and {self.loss_name} is none")
        if asked.latent and self._approximates:
            raise SettingsError("--oracle appx cannot serve --latent: choose an exact one, or leave it out")
        if asked.components > 1 and (asked.latent or self._approximates):
            other = "--latent" if asked.latent else "--oracle appx"
            raise SettingsError(f"--components {asked.components} does not go with {other}: leave one of them out")
        if "start" in given and not asked.latent:
            raise SettingsError("--start is for --latent")
        random_starts(asked.start)
        self._hidden = hidden_layers(asked.layer_wise) if asked.layer_wise else ()
        self.wants_constant = self.loss.draws_line and not self._hidden  # layers have constants of their own
        if self._hidden:
            check_layer_wise(self)
        names = self.names
        if len(set(names)) < len(names):
            raise SettingsError(f"values of C that give the same file name: {', '.join(names)}")

    @classmethod
    def serves(cls, loss: str) -> bool:
        return (":" in loss and not loss.endswith(")")) or spelled(loss, LOSSES) is not None

    def settled(self, outcome: Outcome) -> Self:
        """Of the bound and the C that it came to, unless the loss has a way of its own to them."""
        plan = super().settled(outcome)
        own_way = self._hidden or self.loss.starts_from is not None or self.loss.ranks_like is not None
        if own_way or outcome.C is None or outcome.certificate is None:
            return plan
        return plan.with_settings(C=(outcome.C,), bound=outcome.certificate.bound)

    @property
    def takes(self) -> Takes:
        """Grades for a graded loss; the two-stage approximation looks at none."""
        from apsvm.data.labels import Takes

        graded = self.loss.takes_grades and not self._approximates
        return Takes.GRADES if graded else Takes.TWO_CLASSES

    @property
    def gain(self) -> str | None:
        return getattr(self.loss, "gain", None)

    @property
    def metric(self) -> str | None:
        return self.loss.metric

    @property
    def uses_costs(self) -> bool:
        return not self.loss.by_query

    @property
    def uses_queries(self) -> bool:
        return self.loss.by_query

    @property
    def grid(self) -> Mapping[str, Sequence[SettingValue]]:
        """Both bounds where there are two; networks only where somebody names their sizes."""
        tried = {name: values for name, values in super().grid.items() if name != "layer_wise"}
        both = self.loss.over_rankings and not self._approximates
        if "layer_wise" in self.given:
            return {**tried, "bound": ("hinge",), "C": GRID_OF_C}
        bounds = ("hinge", "tight") if self.loss.starts_from is None else ("tight",)
        return {**tried, "bound": bounds if both else ("hinge",)}

    @property
    def takes_bags(self) -> bool:
        return self.settings.latent

    @property
    def classes_refusal(self) -> str | None:
        return "--layer-wise trains one network" if self._hidden else None

    @property
    def scaling_refusal(self) -> str | None:
        return "--scale is not for --layer-wise, which standardises the features" if self._hidden else None

    @property
    def warm_start_refusal(self) -> str | None:
        if self._hidden:
            return "--layer-wise starts from a network of its own"
        return "--oracle appx starts from its own binary SVM" if self._approximates else None

    @property
    def names(self) -> Sequence[str]:
        values = self.settings.C
        return [""] if len(values) == 1 else [f".C{shown_C(C)}" for C in values]

    def warnings(self) -> Iterator[str]:
        if not self._approximates and "keep_easy" in self.given:
            yield "--keep-easy is for --oracle appx only; it is ignored here"

    def check(self, data: TrainingSet) -> Iterator[str]:
        from apsvm.models.header import LabelKind
        from apsvm.risk import require_pairs

        target = data.target
        if self._hidden and data.rows.dimension > data.rows.features:
            yield "--bias is of no use to --layer-wise, whose layers have constants"
        if self.settings.log_ranks:
            self._check_one_ranking(data)
        if self.loss.by_query and target.grades is None:
            require_pairs(target.relevant, data.queries)
        labels = target.labels
        if labels.kind is LabelKind.ONE_LABEL and not labels.several and labels.positive is not None:
            above = max(labels.negative, default=-math.inf)
            if above > labels.positive:
                yield f"rows of labels up to {above:g}, above the positive one, are negatives"

    def _check_one_ranking(self, data: TrainingSet) -> None:
        import numpy as np

        relevant, queries = data.target.relevant, data.queries
        graded = data.target.grades is not None
        count = 1 if queries is None else np.intersect1d(queries[relevant], queries[~relevant]).size
        if graded or count > 1:
            what = "grades (--relevant-from makes two classes of them)" if graded else f"{count} queries"
            raise TrainingError(f"--log-ranks needs one ranking of two classes, found {what}")

    def train(
        self,
        data: TrainingSet,
        watch: Watch,
        *,
        start: NDArray[np.float64] | None = None,
        validation: TrainingSet | None = None,
    ) -> Iterator[Outcome]:
        from apsvm.trainers.structured_svm.decided import decide
        from apsvm.trainers.structured_svm.remarks import cautions_of, choice_fields, threshold_of

        if self._hidden:
            yield from networks(self, data, watch)
            return
        if self.settings.components > 1:
            from apsvm.trainers.structured_svm.components import with_components

            data = with_components(data, self.settings.components)
        decided = decide(data, self.loss, self.settings, watch, start)
        settings, values = decided.settings, decided.values_of_C
        watch.log.write(
            "start", oracle=settings.oracle, C=values[0] if len(values) == 1 else values, epsilon=settings.epsilon
        )
        results = decided.train(data, self.loss, watch)
        for asked, given, name, (C, trained) in zip(self.settings.C, settings.C, self.names, results, strict=False):
            plan = replace(settings, C=(given,))
            outcome = self.outcome(data, plan, C, name, trained)
            yield replace(
                outcome,
                settings=replace(self.settings, C=(asked,)),
                cautions=cautions_of(trained, self.loss, self.settings.bound, decided, of_bags=data.bags is not None),
                threshold=threshold_of(data, self.loss, decided.choice, trained),
                **choice_fields(decided, outcome),
            )

    def outcome(
        self, data: TrainingSet, settings: StructuredSettings, C: float, name: str, trained: Trained
    ) -> Outcome:
        """What there is to say of what was trained with ``settings`` and this C."""
        from apsvm.models.header import Bounds
        from apsvm.solvers.state import State
        from apsvm.trainers.structured_svm.remarks import fallbacks_of, how_C_was_found

        w = trained.w
        several = data.components > 1
        if several:
            from apsvm.trainers.structured_svm.components import weights_and_constants

            w = weights_and_constants(data, w)
        tight = trained.hinge_objective is not None or (several and settings.bound == "tight")
        bounds = trained.solution.certificate
        seconds: dict[str, float] = {}
        for stage in trained.stages:
            for part, span in stage.spans.items():
                seconds[part] = seconds.get(part, 0.0) + span.wall_ns / 1e9
        return Outcome(
            w=w,
            state=str(trained.state),
            as_asked=trained.state is State.CONVERGED,
            interrupted=trained.state is State.INTERRUPTED,
            trouble=next((stage.solution.trouble for stage in trained.stages if stage.solution.trouble), None),
            settings=settings,
            name=name,
            iterations=sum(stage.solution.iterations for stage in trained.stages),
            C=C,
            certificate=Bounds(
                primal=bounds.primal,
                dual=bounds.dual,
                gap=bounds.gap,
                tolerance=bounds.tolerance,
                bound="tight" if tight else "hinge",
                exact=trained.exact,
                hinge_objective=trained.hinge_objective,
                stationary=tight or several or data.bags is not None,
                loss=trained.certified_loss,
            ),
            details={"oracle": " then ".join(stage.oracle for stage in trained.stages)},
            positives=int(data.target.relevant.sum()),
            queries=trained.queries,
            queries_skipped=trained.queries_skipped,
            notes=[*how_C_was_found(C, settings.C[0], trained.origin_of_C), *trained.notes, *fallbacks_of(trained)],
            seconds=seconds,
        )
