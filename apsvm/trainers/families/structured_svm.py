"""The structured SVM and its two-stage approximation: ``--loss ap``, ``zero-one`` and their kin.

Algorithms: ``apsvm.trainers.structured_svm``, ``tight_bound``, ``approximate``, ``default_c``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from apsvm.losses import LOSSES
from apsvm.oracles import ORACLES
from apsvm.registry import spelled
from apsvm.solvers.qp import BACKENDS
from apsvm.trainers.base import Outcome, Trainer, TrainingError, TrainingSet, Watch
from apsvm.trainers.families.layer_wise import GRID_OF_C, check_layer_wise, hidden_layers, networks
from apsvm.trainers.settings import Multiple, Range, Settings, SettingsError, SettingValue, setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.labels import Takes
    from apsvm.losses.base import Loss
    from apsvm.trainers.stage import Trained

#: What ``--oracle`` offers: the oracles that serve a ranking loss, and the two-stage approximation.
ORACLE_CHOICES = ("auto", *(name for name in ORACLES if name not in ("zero-one", "brute-force")), "appx")
BOUNDS = ("auto", "hinge", "tight")
#: Where training on bags begins; ``random:N`` besides.
STARTS = ("anneal", "bag-means")
MOST_RANDOM_STARTS = 1000
MOST_COMPONENTS = 64
#: From this share of the bound at w = 0 on, a model is said to be hardly better than none.
NEARLY_NOTHING = 0.98
#: Of ``-C`` where nobody names any.
DEFAULT_C: tuple[float | Multiple, ...] = (Multiple(1.0),)
SOLVERS = ("line-search", "cutting-plane")


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredSettings(Settings):
    """What is asked of a structured SVM; each field says the rest."""

    oracle: str = setting(
        "auto",
        label="oracle",
        choices=ORACLE_CHOICES,
        help="How the most violated ranking is found. All but appx are exact and give the same model.",
    )
    C: tuple[float | Multiple, ...] = setting(
        DEFAULT_C,
        label="C",
        flags=("-C", "--C"),
        range=Range(0.0, open_low=True),
        multiples=True,
        path=True,
        metavar="NUMBER[,NUMBER…]",
        default_text="auto",
        grid=tuple(map(Multiple, (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0))),
        simpler="low",
        help="Weight of the risk against ½‖w‖². auto: derived from the scale of the features; 10x: ten times that. "
        "0.01:100:log10: decades from 0.01 to 100, log2: doublings.",
        several="Several values: a model each, MODEL with .C<value> in its name; each starts from those before.",
    )
    epsilon: float = setting(
        1e-3,
        label="ε, the gap asked for, / C",
        flags=("-e", "--epsilon"),
        range=Range(0.0, open_low=True),
        grid=(1e-3,),
        help="Stop when the duality gap is at most epsilon·C; in units of the loss.",
    )
    qp: str = setting(
        "auto",
        choices=tuple(BACKENDS),
        help="Solver of the working-set QP; auto: active-set, and cvxpy where its certificate falls short.",
    )
    solver: str = setting(
        "line-search",
        label="solver",
        choices=SOLVERS,
        help="Where planes are taken: after an exact line search on scores, or at the QP's own point as in the papers.",
    )
    bound: str = setting(
        "auto",
        label="bound",
        choices=BOUNDS,
        grid=("hinge", "tight"),
        help="What bounds the loss from above: the convex structured hinge of the papers, or the tighter ramp, from "
        "the hinge's minimiser (and --warm-start's model) to a stationary point: often better where some positives "
        "are hopeless. auto: whichever is better on rows held out, with the best of a few C each where -C is auto.",
    )
    latent: bool = setting(
        False,
        label="bags by their best row",
        help="Train on bags (bag: or --bags): each stands where its best row does. Concave-convex rounds to a "
        "stationary point; the model scores rows, and bags by their best.",
    )
    start: str = setting(
        "anneal",
        label="start",
        metavar="START",
        help="Where --latent begins: anneal, from the bags' means to their best rows, with the loss and with the 0-1 "
        "loss; bag-means, a training on the means; random:N, the best of N random choices of a row a bag; or "
        "--warm-start MODEL.",
    )
    layer_wise: str = setting(
        "",
        label="hidden layers",
        metavar="HIDDEN[,HIDDEN…]",
        grid=(),
        help="Train a network with hidden layers of so many rectified linear units, on standardised features: from one "
        "of the log loss, a layer at a time, each by the exact solver. Passes end when rows held out do no better. "
        "16x8 is 16,8 where commas part several (apsvm cv), none a linear ranker.",
    )
    components: int = setting(
        1,
        label="components",
        range=Range(1, MOST_COMPONENTS),
        grid=(),
        simpler="low",
        help="H linear scores with a constant each, of which a row has the highest: for positives of several kinds. To "
        "a stationary point, from clusters of the positives; --bound auto is tight.",
    )
    log_ranks: bool = setting(
        False,
        in_header=False,
        help="Write the most violated rankings (of one list, not of queries or grades) into the log: apsvm plot "
        "heatmap draws them.",
    )
    keep_easy: float = setting(
        50.0,
        label="easy rows kept easy, %",
        range=Range(0.0, 100.0),
        metavar="PERCENT",
        help="For --oracle appx: the share of the binary SVM's easy rows that stay easy.",
    )
    max_iterations: int = setting(10_000, range=Range(1), help="Per stage of the training.")


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
        from apsvm.header import LabelKind
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
        from apsvm.trainers.decided import decide
        from apsvm.trainers.structured_remarks import cautions_of, choice_fields, threshold_of

        if self._hidden:
            yield from networks(self, data, watch)
            return
        if self.settings.components > 1:
            from apsvm.trainers.components import with_components

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
        from apsvm.header import Bounds
        from apsvm.solvers.state import State
        from apsvm.trainers.structured_remarks import fallbacks_of, how_C_was_found

        w = trained.w
        several = data.components > 1
        if several:
            from apsvm.trainers.components import weights_and_constants

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


def random_starts(start: str) -> int | None:
    """N of ``random:N``; None for one of ``STARTS``. Raises SettingsError for another."""
    if start in STARTS:
        return None
    name, _, number = start.partition(":")
    if name == "random" and number.isascii() and number.isdecimal() and 0 < int(number) <= MOST_RANDOM_STARTS:
        return int(number)
    raise SettingsError(
        f"--start is one of {', '.join(STARTS)} or random:N with N from 1 to {MOST_RANDOM_STARTS}, found {start!r}"
    )


def shown_C(given: float | Multiple) -> str:
    """As in names of files and in tables."""
    return f"{given:g}" if isinstance(given, float) else str(given)
