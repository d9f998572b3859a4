"""The structured SVM and its two-stage approximation: ``--loss ap``, ``zero-one`` and their kin.

Algorithms: ``apsvm.trainers.structured_svm.training``, ``descent``, ``approximate``, ``default_c``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from apsvm._support.naming import option
from apsvm._support.registry import spelled
from apsvm.data.takes import Takes
from apsvm.losses import LOSSES
from apsvm.trainers.base import Outcome, Trainer, TrainingError, TrainingSet, Watch
from apsvm.trainers.capabilities import Capabilities
from apsvm.trainers.settings import SettingsError, SettingValue
from apsvm.trainers.structured_svm.networks import GRID_OF_C, check_layer_wise, hidden_layers
from apsvm.trainers.structured_svm.settings import (
    DEFAULT_C,
    ORACLE_CHOICES,
    StructuredSettings,
    random_starts,
    shown_C,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.losses.base import Loss
    from apsvm.trainers.structured_svm.stage import Trained

#: Default ε on folds, by bound: a larger ε saves time and adds less error than the folds have. On seven sets, the
#: hinge's value changes test AP of cv by .0003 and its time by .85 to .98; with 1e-2, the hinge on rules ranks worse by
#: .015. With the tight bound, 140,000 rows with 257 positives give the same model in .7 of the time.
OF_COMPARISON = {"hinge": 3e-3, "tight": 1e-2}


class StructuredSVMTrainer(Trainer[StructuredSettings]):
    """See the module. ``loss`` may be an object (``apsvm.losses.make_loss``)."""

    family: ClassVar[str] = "structured-svm"
    title: ClassVar[str] = "Structured SVM (--loss ap, ndcg, mrr, auc, f1, …)"
    Settings = StructuredSettings
    losses: ClassVar[Sequence[str]] = tuple(LOSSES)
    capabilities = Capabilities(query_weights=True)

    def __init__(
        self,
        loss: str | object,
        settings: StructuredSettings | None = None,
        named: frozenset[str] = frozenset(),
    ) -> None:
        from apsvm.losses import make_loss
        from apsvm.oracles import serving

        super().__init__(loss, settings, named)
        self.loss: Loss = make_loss(loss)
        self.loss_name = loss if isinstance(loss, str) else self.loss.name
        settings = self.settings
        #: True for the two-stage approximation, which begins with a binary SVM.
        self.approximates = settings.oracle == "appx"
        if settings.oracle != "auto":
            fitting = [name for name in serving(self.loss) if name in ORACLE_CHOICES]
            fitting += ["appx"] if self.loss.of_two_arrays else []
            if settings.oracle not in fitting:
                raise SettingsError(
                    f"{option('oracle', settings.oracle)} cannot serve {option('loss', self.loss_name)}: choose "
                    f"{', '.join(['auto', *fitting])}"
                )
        if settings.bound == "tight" and not self.loss.over_rankings:
            raise SettingsError(f"{self.loss_name} has no tight bound: remove {option('bound', 'tight')}")
        if settings.log_ranks and not self.loss.over_rankings:
            raise SettingsError(f"{option('log_ranks')} needs a loss over rankings, found {self.loss_name}")
        if settings.latent and self.approximates:
            latent = option("latent", True)
            raise SettingsError(
                f"{option('oracle', 'appx')} cannot serve {latent}: choose an exact one, or leave it out"
            )
        if settings.components > 1 and (settings.latent or self.approximates):
            other = option("latent", True) if settings.latent else option("oracle", "appx")
            components = option("components", settings.components)
            raise SettingsError(f"{components} does not go with {other}: remove one of them")
        if "start" in named and not settings.latent:
            raise SettingsError(f"{option('start')} is for {option('latent', True)}")
        random_starts(settings.start)
        self._hidden = hidden_layers(settings.layer_wise) if settings.layer_wise else ()
        self._second_start: NDArray[np.float64] | None = None
        self._started_by, self._descent = "", 0.1
        if self._hidden:
            check_layer_wise(self)
        self.capabilities = self._capabilities()
        if len(set(settings.C)) < len(settings.C):
            raise SettingsError(f"-C has a value twice: {', '.join(map(shown_C, settings.C))}")

    @classmethod
    def serves(cls, loss: str) -> bool:
        return ":" in loss or spelled(loss, LOSSES) is not None

    def settled(self, outcome: Outcome) -> Self:
        """The plan with bound and C of ``outcome``, unless the loss chooses them differently."""
        plan = super().settled(outcome)
        own_way = self._hidden or self.loss.starts_from is not None or self.loss.ranks_like is not None
        if own_way or outcome.C is None or outcome.certificate is None:
            return plan
        return plan.with_settings(C=(outcome.C,), bound=outcome.certificate.bound)

    def compared(self) -> Self:
        """Replaces the default ε by ``OF_COMPARISON``."""
        bound, is_default = self.bound, self.settings.epsilon == type(self.settings)().epsilon
        return self if bound is None or not is_default else self.with_settings(epsilon=OF_COMPARISON[bound])

    def _capabilities(self) -> Capabilities:
        """Capabilities with this loss and these settings; the layers of a network have their own constants."""
        graded = self.loss.takes_grades and not self.approximates
        capabilities = replace(
            self.capabilities,
            labels=Takes.GRADES if graded else Takes.TWO_CLASSES,
            bags=self.settings.latent,
            queries=self.loss.by_query,
            costs=not self.loss.by_query,
            constant=self.loss.draws_line and not self._hidden,
        )
        if not self.loss.by_query:
            capabilities = capabilities.refusing(query_weights=f"{self.loss_name} takes all rows as one query")
        if self._hidden:
            return capabilities.refusing(
                one_vs_rest="one network is trained",
                scale="a network standardises the features itself",
            )
        return capabilities

    @property
    def gain(self) -> str | None:
        return getattr(self.loss, "gain", None)

    @property
    def metric(self) -> str | None:
        return self.loss.metric

    @property
    def grid(self) -> Mapping[str, Sequence[SettingValue]]:
        """Both bounds, if there are two; networks only if their sizes are named."""
        tried = {name: values for name, values in super().grid.items() if name != "layer_wise"}
        both = self.loss.over_rankings and not self.approximates
        if "layer_wise" in self.named:
            return {**tried, "bound": ("hinge",), "C": GRID_OF_C}
        bounds = ("hinge", "tight") if self.loss.starts_from is None else ("tight",)
        return {**tried, "bound": bounds if both else ("hinge",)}

    def warnings(self) -> Iterator[str]:
        if not self.approximates and "keep_easy" in self.named:
            yield f"{option('keep_easy')} is for {option('oracle', 'appx')} only; it is ignored here"

    def remedies(self, outcome: Outcome, *, of_bags: bool = False, lacks_constant: bool = False) -> list[str]:
        settings = outcome.settings
        assert isinstance(settings, StructuredSettings)
        if of_bags:
            start = "anneal" if settings.start.startswith("random") else "random:20"
            pooled = f"{option('pool', 'min,mean,max')} instead of {option('latent', True)}"
            return [f"another {option('start')} ({start})", "a larger C", pooled]
        if self.capabilities.constant:
            constant = ["a constant feature (this loss needs one)"] if lacks_constant else []
            return [*constant, "a larger C", f"{option('loss', 'ap')}, whose model has a threshold too"]
        other = {"hinge": ["auto", "tight"], "tight": ["auto"]}.get(settings.bound, [])
        bounds = " or ".join(option("bound", bound) for bound in other)
        return [*([bounds] if bounds else []), *super().remedies(outcome)]

    def check(self, data: TrainingSet) -> Iterator[str]:
        from apsvm.models.header import LabelKind
        from apsvm.risk import require_pairs

        target = data.target
        if self._hidden and data.rows.dimension > data.rows.features:
            yield "a constant feature is of no use to a network, whose layers have constants"
        if self.settings.log_ranks:
            self._check_one_ranking(data)
        if self.loss.by_query and target.grades is None:
            require_pairs(target.relevant, data.queries)
        labels = target.labels
        if labels.kind is LabelKind.ONE_LABEL and not labels.several and labels.positive is not None:
            above = max(labels.negative, default=-math.inf)
            if above > labels.positive:
                yield f"rows with labels above the positive one, up to {above:g}, are negatives"

    def _check_one_ranking(self, data: TrainingSet) -> None:
        import numpy as np

        relevant, queries = data.target.relevant, data.queries
        graded = data.target.grades is not None
        count = 1 if queries is None else np.intersect1d(queries[relevant], queries[~relevant]).size
        if graded or count > 1:
            rows = f"grades ({option('relevant_from')} makes two classes of them)" if graded else f"{count} queries"
            raise TrainingError(f"{option('log_ranks')} needs one ranking of two classes, found {rows}")

    @property
    def is_network(self) -> bool:
        """True if a network is trained, layer by layer."""
        return bool(self._hidden)

    @property
    def leaves_C_of_network_open(self) -> bool:
        """True if C of a network must be chosen from a few values."""
        return self.is_network and self.settings.bound == "auto" and self.settings.C == DEFAULT_C

    @property
    def bound(self) -> str | None:
        """The named or only bound; None if it must be chosen (``apsvm.selection``)."""
        settings = self.settings
        if settings.bound != "auto":
            return settings.bound
        if not self.loss.over_rankings or self.approximates or self._hidden:
            return "hinge"
        return "tight" if settings.components > 1 and settings.C != DEFAULT_C else None

    @property
    def leaves_components_open(self) -> bool:
        """True if two components may be trained instead of one linear ranker (``apsvm.selection.mixture``)."""
        settings = self.settings
        is_free = "components" not in self.named and settings.components == 1 and settings.C == DEFAULT_C
        return is_free and self.bound is None and not settings.latent

    @property
    def may_rank_worse(self) -> bool:
        """True if the model of another loss may replace this loss's hinge, since it may rank the rows better."""
        is_free = self.settings.bound == "auto" and self.settings.C == DEFAULT_C and self.settings.components == 1
        return is_free and self.loss.ranks_like is not None and not self.approximates

    def beginning_at(
        self, second_start: NDArray[np.float64] | None, started_by: str = "", descent: float = 0.1
    ) -> StructuredSVMTrainer:
        """The same plan with another starting point; arguments as in ``plan.Plan``."""
        other = copy(self)
        other._second_start, other._started_by, other._descent = second_start, started_by, descent
        return other

    def rows_of(self, data: TrainingSet) -> TrainingSet:
        """Rows prepared for this plan: several components get a constant feature."""
        if self.settings.components == 1 or data.components > 1:
            return data
        from apsvm.trainers.structured_svm.components import with_components

        return with_components(data, self.settings.components)

    def train(
        self,
        data: TrainingSet,
        watch: Watch,
        *,
        start: NDArray[np.float64] | None = None,
        validation: TrainingSet | None = None,
    ) -> Iterator[Outcome]:
        """See ``Trainer.train``. Raises SettingsError if the bound is open; ``apsvm.selection`` chooses it."""
        from apsvm.trainers.structured_svm.plan import Plan
        from apsvm.trainers.structured_svm.training import train

        if self._hidden:
            from apsvm.trainers.structured_svm.layer_wise import train_layer_wise

            yield from train_layer_wise(data, self.loss, self.settings, self._hidden, watch)
            return
        if self.bound is None:
            raise SettingsError("the bound is open: choose hinge or tight")
        data = self.rows_of(data)
        settings = self.settings if self.settings.bound == self.bound else replace(self.settings, bound=self.bound)
        plan = Plan(
            loss=self.loss,
            settings=settings,
            start=self._point(data, start),
            second_start=self._point(data, self._second_start),
            started_by=self._started_by,
            descent=self._descent,
        )
        for C, trained in zip(settings.C, train(plan, data, watch), strict=False):
            yield self.outcome(data, settings if len(settings.C) == 1 else replace(settings, C=(C,)), trained)

    def _point(self, data: TrainingSet, w: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Starting point from a ranker's weights; with several components (H·dimension,)."""
        if w is None or data.components == 1 or w.shape == (data.components * data.rows.dimension,):
            return w
        from apsvm.trainers.structured_svm.components import start_from

        return start_from(data, w, self.settings.seed)

    def outcome(self, data: TrainingSet, settings: StructuredSettings, trained: Trained) -> Outcome:
        """Outcome of a training at one C, that of ``settings``, with its remarks."""
        from apsvm.models.decision import Threshold
        from apsvm.models.header import Bounds, Data
        from apsvm.solvers.certificate import tolerance_of
        from apsvm.solvers.state import State
        from apsvm.trainers.structured_svm.remarks import fallbacks_of, origin_of_C

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
            iterations=sum(stage.solution.iterations for stage in trained.stages),
            C=trained.C,
            certificate=Bounds(
                primal=bounds.primal,
                dual=bounds.dual,
                gap=bounds.gap,
                tolerance=tolerance_of(settings.epsilon, trained.C),  # an earlier stage may have had another
                bound="tight" if tight else "hinge",
                exact=trained.exact,
                hinge_objective=trained.hinge_objective,
                stationary=tight or several or data.bags is not None,
            ),
            details={"oracle": " then ".join(stage.oracle for stage in trained.stages)},
            data=Data(
                positives=int(data.target.relevant.sum()),
                queries=trained.queries,
                queries_skipped=trained.queries_skipped,
            ),
            threshold=Threshold(value=0.0, rule="loss") if self.loss.draws_line else None,
            relative_bound=trained.relative_bound,
            notes=[*origin_of_C(trained, settings.C[0]), *trained.notes, *fallbacks_of(trained)],
            seconds=seconds,
        )
