"""RankNCG: ``--loss wmw``. Algorithm: ``apsvm.trainers.rank_ncg``, ``pair_loss``, ``preferences``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from apsvm.trainers.base import Outcome, Trainer, TrainingSet, Watch
from apsvm.trainers.settings import Range, Settings, SettingsError, setting
from apsvm.types import JsonDict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.labels import LabelOptions, Takes
    from apsvm.trainers.preferences import Classes, PreferenceGraph
    from apsvm.trainers.rank_ncg import TrainedPairs

OBJECTIVES = ("logistic", "erfc")
SUMMATIONS = ("auto", "direct", "fourier", "chebyshev")
NORMALIZATIONS = ("pairs", "none")
OPTIMIZERS = ("lbfgs", "prcg")
CUTS = ("frequency", "width")
#: What ``graph`` has names for; anything else is a file.
NAMED_GRAPHS = ("full", "adjacent", "bipartite")
#: Edges and classes listed in a model's header.
MOST_LISTED = 100
#: ``tolerance`` where none is given: of exact sums, and of a Fourier series.
TOLERANCE, TOLERANCE_OF_A_SERIES = 1e-5, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class RankNCGSettings(Settings):
    """What is asked of RankNCG; each field says the rest."""

    objective: str = setting(
        "logistic",
        label="objective",
        choices=OBJECTIVES,
        help="What a pair costs: log(1 + e^-u), or the paper's approximation of it by erfc.",
    )
    summation: str = setting(
        "auto",
        label="summation",
        choices=SUMMATIONS,
        help="How pairs are summed: one by one, by the paper's series (erfc only), or by cells, exact to rounding; "
        "auto: one by one or by cells, whichever is faster.",
    )
    accuracy: float = setting(
        1e-3,
        range=Range(1e-14, 0.5),
        metavar="EPS",
        help="For --summation fourier: the largest error of a sum, for each unit of weight.",
    )
    optimizer: str = setting(
        "lbfgs",
        label="optimizer",
        choices=OPTIMIZERS,
        help="L-BFGS, or the paper's nonlinear conjugate gradients, which look at gradients only.",
    )
    tolerance: float | None = setting(
        None,
        label="tolerance",
        range=Range(0.0),
        metavar="EPS",
        default_text="1e-5, with --summation fourier 1e-3",
        help="Stop when the gradient's largest entry is at most EPS of that at w = 0.",
    )
    regularisation: float = setting(
        1e-3,
        label="λ",
        flags=("-l", "--lambda"),
        range=Range(0.0),
        grid=(1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0),
        simpler="high",
        help="Weight of ½‖w‖² beside the loss.",
    )
    normalize: str = setting(
        "pairs",
        label="mean over",
        choices=NORMALIZATIONS,
        help="The loss is the mean over the pairs, or as in the paper their sum.",
    )
    graph: str = setting(
        "full",
        label="graph",
        metavar="full|adjacent|bipartite|FILE",
        help="Which class is preferred to which: every one to all lower ones, to the next lower one, or to the lowest; "
        "or a file of lines 'i j', class j preferred to class i.",
    )
    classes: int | None = setting(
        None,
        range=Range(2),
        default_text="each label is a class",
        help="Cut real targets into so many classes, 1 the lowest.",
    )
    cut: str = setting("frequency", choices=CUTS, help="For --classes: into classes of equal frequency or width.")
    max_iterations: int = setting(10_000, range=Range(1), help="Per stage of the training.")

    @property
    def tolerance_used(self) -> float:
        """``tolerance``, or its default."""
        if self.tolerance is not None:
            return self.tolerance
        return TOLERANCE_OF_A_SERIES if self.summation == "fourier" else TOLERANCE


class RankNCGTrainer(Trainer[RankNCGSettings]):
    """See the module.

    Parameters
    ----------
    edges : pairs (i, j) of labels, j preferred to i, in the place of ``settings.graph``
    """

    family: ClassVar[str] = "rank-ncg"
    title: ClassVar[str] = "RankNCG (--loss wmw)"
    Settings = RankNCGSettings
    losses: ClassVar[tuple[str, ...]] = ("wmw",)
    shares_passes = True

    def __init__(
        self,
        loss: str | object = "wmw",
        settings: RankNCGSettings | None = None,
        given: frozenset[str] = frozenset(),
        *,
        edges: tuple[tuple[float, float], ...] | None = None,
    ) -> None:
        super().__init__(loss, settings, given)
        self.edges = edges
        if self.settings.summation == "fourier" and self.settings.objective != "erfc":
            raise SettingsError("--summation fourier is a series of erfc: it needs --objective erfc")

    @property
    def takes(self) -> Takes:
        from apsvm.data.labels import Takes

        return Takes.ORDER

    @property
    def metric(self) -> str | None:
        return "WMW"

    @property
    def trains_classes(self) -> bool:
        return False

    def label_refusal(self, options: LabelOptions) -> str | None:
        for option, value in (("positive-label", options.positive_label), ("relevant-from", options.relevant_from)):
            if value is not None:
                return f"--{option} is not for --loss wmw: labels are classes, the higher the more relevant"
        return None

    def inputs(self) -> Mapping[str, str]:
        graph = self.settings.graph
        return {} if graph in NAMED_GRAPHS else {"graph": graph}

    def warnings(self) -> Iterator[str]:
        if self.settings.summation != "fourier" and "accuracy" in self.given:
            yield "--accuracy is for --summation fourier only; it is ignored here"
        if self.settings.classes is None and "cut" in self.given:
            yield "--cut is for --classes only; it is ignored here"

    def check(self, data: TrainingSet) -> Iterator[str]:
        from apsvm.trainers.pair_loss import require_pairs

        classes = self.classes(data)
        graph = self.graph(classes)
        require_pairs(classes, graph, data.queries)
        asked = self.settings.classes
        if asked is not None and classes.names.size < asked:
            yield f"its labels can be cut into {classes.names.size} classes only, not into {asked}"
        cycle = graph.cycle()
        if cycle is not None:
            around = " < ".join(f"{classes.names[number]:g}" for number in [*cycle, cycle[0]])
            yield f"{self.settings.graph}: the preferences {around} are a cycle: no ranking has them all"

    def classes(self, data: TrainingSet) -> Classes:
        """The classes of the rows, by their labels."""
        from apsvm.trainers.preferences import classes_by_label, cut_into_classes

        labels = data.target.grades
        assert labels is not None
        asked = self.settings
        return classes_by_label(labels) if asked.classes is None else cut_into_classes(labels, asked.classes, asked.cut)

    def graph(self, classes: Classes) -> PreferenceGraph:
        """Which of the classes is preferred to which.

        Raises
        ------
        OSError, GraphError : the file cannot be read, or does not fit
        """
        from apsvm.trainers.preferences import GRAPHS, edges_of_labels, read_graph

        name = self.settings.graph
        if self.edges is not None:
            return edges_of_labels(self.edges, classes.names)
        return GRAPHS[name](classes.names.size) if name in NAMED_GRAPHS else read_graph(name, classes.names)

    def train(
        self,
        data: TrainingSet,
        watch: Watch,
        *,
        start: NDArray[np.float64] | None = None,
        validation: TrainingSet | None = None,
    ) -> Iterator[Outcome]:
        from apsvm.trainers.rank_ncg import train_rank_ncg

        classes = self.classes(data)
        graph = self.graph(classes)
        watch.log.write("start", **self.described(graph), n_classes=int(classes.names.size))
        trained = train_rank_ncg(data.rows, classes, graph, data.queries, self.settings, watch, start)
        yield self.outcome(data, classes, graph, trained)

    def described(self, graph: PreferenceGraph) -> JsonDict:
        """The log's fields of what is asked for."""
        asked = self.settings
        return {
            "objective": asked.objective,
            "summation": asked.summation,
            "accuracy": asked.accuracy if asked.summation == "fourier" else None,
            "optimizer": asked.optimizer,
            "tolerance": asked.tolerance_used,
            "lambda": asked.regularisation,
            "normalize": asked.normalize,
            "graph": os.path.basename(graph.name),
        }

    def outcome(self, data: TrainingSet, classes: Classes, graph: PreferenceGraph, trained: TrainedPairs) -> Outcome:
        """What there is to say of what was trained."""
        import dataclasses

        import numpy as np

        from apsvm.data.labels import ordered
        from apsvm.header import Gradient
        from apsvm.metrics.wilcoxon import WilcoxonMannWhitney
        from apsvm.solvers.state import State

        solution, names = trained.solution, classes.names
        named = graph.name in NAMED_GRAPHS or graph.n_edges > MOST_LISTED
        edges = [] if named else [(float(names[i]), float(names[j])) for i, j in graph.edges()]
        known = graph.name if graph.name in NAMED_GRAPHS else "full"
        target = ordered(data.target.grades, cuts=classes.cuts)  # type: ignore[arg-type]
        settings = dataclasses.replace(
            self.settings, graph=os.path.basename(graph.name), tolerance=self.settings.tolerance_used
        )
        return Outcome(
            w=trained.w,
            state=str(trained.state),
            as_asked=trained.state is State.CONVERGED,
            interrupted=trained.state is State.INTERRUPTED,
            trouble=solution.trouble,
            settings=settings,
            iterations=solution.iterations,
            gradient=Gradient(
                value=solution.objective,
                gradient_norm=solution.gradient_norm,
                asked=solution.asked,
                evaluations=solution.evaluations,
            ),
            details={
                "edges": [list(edge) for edge in edges] or None,
                "n_classes": int(names.size),
                # Real targets may be as many classes as rows.
                "classes": names[:MOST_LISTED].tolist(),
                "rows_of_classes": np.bincount(classes.of_row)[:MOST_LISTED].tolist(),
            },
            metric=WilcoxonMannWhitney(tuple(edges) if edges else known).name,
            labels=target.labels,
            queries=trained.queries,
            queries_skipped=trained.queries_skipped,
            counts={"pairs": trained.pairs},
            notes=[f"{trained.pairs} pairs of {names.size} classes"],
            seconds={part: span.wall_ns / 1e9 for part, span in trained.spans.items()},
        )
