"""RankNCG: ``--loss wmw``. Algorithm: ``apsvm.trainers.rank_ncg.descent``, ``pair_loss``, ``preferences``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from apsvm._support.naming import option
from apsvm._support.types import JsonDict
from apsvm.data.takes import Takes
from apsvm.trainers.base import Outcome, Trainer, TrainingSet, Watch
from apsvm.trainers.capabilities import Capabilities
from apsvm.trainers.rank_ncg.settings import NAMED_GRAPHS, RankNCGSettings
from apsvm.trainers.settings import SettingsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.trainers.rank_ncg.descent import TrainedPairs
    from apsvm.trainers.rank_ncg.preferences import Classes, PreferenceGraph

#: Edges and classes listed in a model's header.
MOST_LISTED = 100


class RankNCGTrainer(Trainer[RankNCGSettings]):
    """See the module.

    Parameters
    ----------
    edges : pairs (i, j) of labels, j preferred to i, instead of ``settings.graph``
    """

    family: ClassVar[str] = "rank-ncg"
    title: ClassVar[str] = "RankNCG (--loss wmw)"
    Settings = RankNCGSettings
    losses: ClassVar[tuple[str, ...]] = ("wmw",)
    capabilities = Capabilities(
        labels=Takes.ORDER,
        costs=True,
        refused=dict.fromkeys(
            ("positive_label", "relevant_from"), "RankNCG's labels are classes, the higher the more relevant"
        ),
    )

    def __init__(
        self,
        loss: str | object = "wmw",
        settings: RankNCGSettings | None = None,
        named: frozenset[str] = frozenset(),
        *,
        edges: tuple[tuple[float, float], ...] | None = None,
    ) -> None:
        super().__init__(loss, settings, named)
        self.edges = edges
        if self.settings.summation == "fourier" and self.settings.objective != "erfc":
            raise SettingsError(
                f"{option('summation', 'fourier')} is a series of erfc: it needs {option('objective', 'erfc')}"
            )

    @property
    def metric(self) -> str | None:
        return "WMW"

    def inputs(self) -> Mapping[str, str]:
        graph = self.settings.graph
        return {} if graph in NAMED_GRAPHS else {"graph": graph}

    def warnings(self) -> Iterator[str]:
        if self.settings.summation != "fourier" and "accuracy" in self.named:
            yield f"{option('accuracy')} is for {option('summation', 'fourier')} only; it is ignored here"
        if self.settings.classes is None and "cut" in self.named:
            yield f"{option('cut')} is for {option('classes')} only; it is ignored here"

    def check(self, data: TrainingSet) -> Iterator[str]:
        from apsvm.trainers.rank_ncg.pair_loss import require_pairs

        classes = self.classes(data)
        graph = self.graph(classes)
        require_pairs(classes, graph, data.queries)
        requested = self.settings.classes
        if requested is not None and classes.names.size < requested:
            yield f"its labels can be cut into {classes.names.size} classes only, not into {requested}"
        cycle = graph.cycle()
        if cycle is not None:
            around = " < ".join(f"{classes.names[number]:g}" for number in [*cycle, cycle[0]])
            yield f"{self.settings.graph}: the preferences {around} are a cycle: no ranking has them all"

    def classes(self, data: TrainingSet) -> Classes:
        """Classes of the rows, from their labels."""
        from apsvm.trainers.rank_ncg.preferences import classes_by_label, cut_into_classes

        labels = data.target.grades
        assert labels is not None
        settings = self.settings
        return (
            classes_by_label(labels)
            if settings.classes is None
            else cut_into_classes(labels, settings.classes, settings.cut)
        )

    def graph(self, classes: Classes) -> PreferenceGraph:
        """Preference graph of the classes.

        Raises
        ------
        OSError, GraphError : the file cannot be read, or does not fit
        """
        from apsvm.trainers.rank_ncg.preferences import GRAPHS, edges_of_labels, read_graph

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
        from apsvm.trainers.rank_ncg.descent import train_rank_ncg

        classes = self.classes(data)
        graph = self.graph(classes)
        watch.log.write("start", **self.described(graph), n_classes=int(classes.names.size))
        trained = train_rank_ncg(data.rows, classes, graph, data.queries, self.settings, watch, start, data.costs)
        yield self.outcome(data, classes, graph, trained)

    def described(self, graph: PreferenceGraph) -> JsonDict:
        """Log fields that describe the settings."""
        settings = self.settings
        return {
            "objective": settings.objective,
            "summation": settings.summation,
            "accuracy": settings.accuracy if settings.summation == "fourier" else None,
            "optimizer": settings.optimizer,
            "tolerance": settings.tolerance_used,
            "lambda": settings.regularisation,
            "normalize": settings.normalize,
            "graph": os.path.basename(graph.name),
        }

    def outcome(self, data: TrainingSet, classes: Classes, graph: PreferenceGraph, trained: TrainedPairs) -> Outcome:
        """Builds the outcome, with remarks on the training."""
        import dataclasses

        import numpy as np

        from apsvm.data.labels import ordered
        from apsvm.metrics.wilcoxon import WilcoxonMannWhitney
        from apsvm.models.header import Data, Gradient
        from apsvm.solvers.state import State

        solution, names = trained.solution, classes.names
        named = graph.name in NAMED_GRAPHS or graph.n_edges > MOST_LISTED
        edges = [] if named else [(float(names[i]), float(names[j])) for i, j in graph.edges()]
        named_graph = graph.name if graph.name in NAMED_GRAPHS else "full"
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
                target=solution.target,
                evaluations=solution.evaluations,
            ),
            details={
                "edges": [list(edge) for edge in edges] or None,
                "n_classes": int(names.size),
                # Real targets may form as many classes as rows.
                "classes": names[:MOST_LISTED].tolist(),
                "rows_of_classes": np.bincount(classes.of_row)[:MOST_LISTED].tolist(),
            },
            metric=WilcoxonMannWhitney(tuple(edges) if edges else named_graph).name,
            labels=target.labels,
            data=Data(
                queries=trained.queries, queries_skipped=trained.queries_skipped, counts={"pairs": trained.pairs}
            ),
            notes=[f"{trained.pairs} pairs of {names.size} classes"],
            seconds={part: span.wall_ns / 1e9 for part, span in trained.spans.items()},
        )
