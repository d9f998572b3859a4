"""RankNCG on shards: the pair loss of one list by sums over nodes, of queries by sums over shards.

    L(s) = scale · Σ over edges i → j  Σ_{k ∈ A^i, l ∈ A^j} ℓ(s_l − s_k)

ℓ is analytic, so that on a cell of scores of width 1 it is, to rounding, the polynomial through its values at ``NODES``
Chebyshev nodes; the rows of a class in a cell then count as weights at these nodes. Weights add up over the shards:

    moments   each shard's weights at the nodes of its occupied cells, class by class
    slopes    the sums of the classes below and above each class go back, and each shard adds up kernels over them

A call is two rounds, and moves O(classes · cells · NODES) numbers. Of queries, each whole in its shard, a call is one
round, and each shard sums its own pairs as one machine does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm._support.clock import Spans
from apsvm.dask.data import ShardedData
from apsvm.dask.node_sums import NODES, Moments
from apsvm.dask.recovery import repeated
from apsvm.dask.shards.risk import NOT_FINITE, ShardedRisk
from apsvm.dask.training import ON_A_CLUSTER, LogOfTraffic, of_labels, tells_apart
from apsvm.dask.vectors import Handle, HandleVectors
from apsvm.data.labels import Target
from apsvm.solvers.score_space import Tangent
from apsvm.trainers.base import Outcome, Watch
from apsvm.trainers.rank_ncg.descent import TrainedPairs, minimise_pairs
from apsvm.trainers.rank_ncg.pair_loss import NoPairsError
from apsvm.trainers.rank_ncg.preferences import Classes, PreferenceGraph, Ranges, classes_by_label
from apsvm.trainers.rank_ncg.trainer import RankNCGTrainer
from apsvm.trainers.ranking_check import ranks_nothing
from apsvm.trainers.settings import SettingsError

#: Classes of one list, at most: each has moments of its own.
MOST_CLASSES = 1000


def refusal(trainer: RankNCGTrainer) -> str | None:
    """Why this plan cannot be carried out on a cluster, in the words of the command line, or None if it can."""
    if trainer.settings.classes is not None:
        return f"--classes cuts real targets by all of them: not {ON_A_CLUSTER}"
    return None


class _PairsOnShards(ShardedRisk):
    """What pair losses over shards share.

    Attributes
    ----------
    pairs, queries, queries_skipped : int
    """

    def __init__(self, vectors: HandleVectors, n_scores: int, pairs: int, queries: int, skipped: int) -> None:
        super().__init__(vectors, n_scores)
        self.pairs, self.queries, self.queries_skipped = pairs, queries, skipped
        self.last: NDArray[np.float64] | None = None

    def scores(self, w: NDArray[np.float64], out: Handle | None = None) -> Handle:
        self.last = w
        return super().scores(w, out)

    def spans(self) -> Spans:
        """What was taken since the last call."""
        return self.account().spans


class SummedPairs(_PairsOnShards):
    """Of queries."""

    def tangent(self, scores: Handle, slopes: Handle) -> Tangent:
        with self._account.spans["sums"]:
            self._vectors.overwritten(slopes)
            answers = self._vectors.ask("pairs_tangent", scores.number, slopes.number)
        if not all(finite for finite, _ in answers):
            raise FloatingPointError(NOT_FINITE)
        return Tangent(sum(value for _, value in answers))


class ListPairs(_PairsOnShards):
    """Of one list; ``scale``: of the sum."""

    def __init__(self, vectors: HandleVectors, n_scores: int, pairs: int, graph: PreferenceGraph, scale: float) -> None:
        super().__init__(vectors, n_scores, pairs, 1, 0)
        self._graph, self._scale = graph, scale

    def tangent(self, scores: Handle, slopes: Handle) -> Tangent:
        with self._account.spans["sums"]:
            self._vectors.overwritten(slopes)
            moments: list[Moments | None] = self._vectors.ask("pair_moments", scores.number)
            present = [one for one in moments if one is not None]
            if len(present) < len(moments):
                raise FloatingPointError(NOT_FINITE)
            cells, sums = _added(present, self._graph.n_classes)
            below, above = _of_neighbours(sums, self._graph.below), _of_neighbours(sums, self._graph.above)
            answers = self._vectors.ask("pair_slopes", scores.number, slopes.number, cells, below, above, self._scale)
        return Tangent(self._scale * float(sum(answers)))


def _added(moments: list[Moments], n_classes: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All cells that hold something (c,), and the sums there: (classes, c, NODES)."""
    cells = np.unique(np.concatenate([one.cells for one in moments]))
    sums = np.zeros((n_classes, cells.size, NODES))
    for one in moments:
        np.add.at(sums, (one.classes, np.searchsorted(cells, one.cells)), one.weights)
    return cells, sums


def _of_neighbours(sums: NDArray[np.float64], neighbours: Ranges) -> NDArray[np.float64]:
    """For each class the sums of its neighbours: (classes, c, NODES)."""
    up_to = np.concatenate([np.zeros_like(sums[:1]), np.cumsum(sums, axis=0)])
    result = np.zeros_like(sums)
    owner = np.repeat(np.arange(len(sums)), np.diff(neighbours.starts))
    np.add.at(result, owner, up_to[neighbours.last] - up_to[neighbours.first])
    return result


def train_pairs_on_shards(
    trainer: RankNCGTrainer,
    data: ShardedData,
    target: Target,
    watch: Watch,
    *,
    start: NDArray[np.float64] | None = None,
    dimension: int,
) -> Iterator[Outcome]:
    """The trained ranker of a plan without a ``refusal``, as ``RankNCGTrainer.train`` gives it.

    Parameters
    ----------
    target : of the labels, one row each; for the rest see ``train_on_shards``

    Raises
    ------
    SettingsError : what is requested is not trained on a cluster
    NoPairsError, GraphError, FloatingPointError, OSError : see ``RankNCGTrainer.train``
    """
    classes = classes_by_label(data.labels)
    graph = trainer.graph(classes)
    loss = _loss_on(trainer, data, classes, graph)
    data.crew.take_traffic()
    watch = replace(watch, log=LogOfTraffic(watch.log, data.crew))
    watch.log.write("start", **trainer.described(graph), n_classes=int(classes.names.size), workers=data.crew.names())

    def attempt() -> TrainedPairs:
        return minimise_pairs(loss, dimension, trainer.settings, watch, start if loss.last is None else loss.last)

    trained = repeated(data.vectors, attempt)
    outcome = trainer.outcome(of_labels(data, target), classes, graph, trained)
    ranks = tells_apart(data, trained.w)
    yield replace(
        outcome,
        ranks=ranks,
        cautions=() if ranks else [ranks_nothing(outcome, trainer)],
        details={**outcome.details, "rows_of_classes": data.counts.tolist(), "shards": len(data.crew)},
    )


def _loss_on(
    trainer: RankNCGTrainer, data: ShardedData, classes: Classes, graph: PreferenceGraph
) -> SummedPairs | ListPairs:
    settings = trainer.settings
    mean = settings.normalize == "pairs"
    if any(data.crew.ask_surely("total_cost")):
        raise SettingsError(f"cost: of rows is not {ON_A_CLUSTER} by --loss wmw: leave it out (--drop)")
    if data.has_qid:
        sizes = data.crew.set_up(
            "take_pairs_of_queries", classes.names, graph, settings.objective, settings.summation, settings.accuracy
        )
        pairs, queries, skipped = (sum(column) for column in zip(*sizes, strict=True))
        _require_pairs(pairs, graph)
        data.crew.set_up("weigh_pairs", 1.0 / pairs if mean else 1.0)
        return SummedPairs(data.vectors, data.rows, pairs, queries, skipped)
    if settings.summation not in ("auto", "chebyshev"):
        raise SettingsError(
            f"--summation {settings.summation} of one list is not {ON_A_CLUSTER}: leave it out, sums are exact to "
            "rounding"
        )
    if classes.names.size > MOST_CLASSES:
        raise SettingsError(
            f"one list {ON_A_CLUSTER} takes {MOST_CLASSES} classes at most, found {classes.names.size} labels"
        )
    pairs = sum(int(data.counts[low]) * int(data.counts[high]) for low, high in graph.edges())
    _require_pairs(pairs, graph)
    data.crew.set_up("take_classes", classes.names, settings.objective)
    return ListPairs(data.vectors, data.rows, pairs, graph, 1.0 / pairs if mean else 1.0)


def _require_pairs(pairs: int, graph: PreferenceGraph) -> None:
    if not pairs:
        raise NoPairsError(f"no query has rows of two classes of which the graph ({graph.name}) prefers one")
