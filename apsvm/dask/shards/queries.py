"""The shard's side of what is a sum over shards: queries, each whole in one, rows of a loss over rows (``summed``), and
pairs of classes (``pairs``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.dask.node_sums import Moments as NodeMoments
from apsvm.dask.node_sums import moments_of, pair_sums
from apsvm.dask.shards.rows import ShardRows, product
from apsvm.models.decision import line_of
from apsvm.oracles.base import QueriesOracle

if TYPE_CHECKING:
    from apsvm.losses.base import Loss
    from apsvm.metrics.base import Metric
    from apsvm.models.base import Ranker
    from apsvm.trainers.rank_ncg.pair_loss import PairLoss
    from apsvm.trainers.rank_ncg.preferences import PreferenceGraph


class QueriesShard(ShardRows):
    """Rows in the order that the oracle of one machine, or its sums of pairs, wants them in."""

    _most_violated: QueriesOracle
    _bind: Callable[[float], None]
    _pairs: PairLoss | None

    def take_queries(self, loss: Loss, oracle: str, query_weights: dict[int, float] | None) -> tuple[float, int, int]:
        """Each query, or for a loss over rows each row, for itself. Returns what this shard weighs, and its numbers of
        queries and of queries left out; ``weigh`` has to follow."""
        from apsvm.oracles import make_oracle
        from apsvm.oracles.layout import NothingToRankError, lay_out

        if not loss.by_query:
            return self._take_rows(loss, oracle)
        groups, weights = self._groups, query_weights or {}
        assert groups is not None or len(self._all_rows) == 0
        self._bind = self._bind_nothing
        if groups is None:
            return 0.0, 0, 0
        try:
            layout = lay_out(
                loss, self._target.relevant, groups=groups, query_weights=query_weights, grades=self._target.grades
            )
        except NothingToRankError:
            return 0.0, 0, np.unique(groups).size
        queries = layout.queries
        of_query = np.array([weights.get(query, 1.0) for query in groups[layout.members[queries.first]].tolist()])

        def bind(total: float) -> None:
            weighed = replace(queries, shares=of_query / total)
            self._order(layout.members)
            self._most_violated = make_oracle(oracle, loss).bind_queries(loss, weighed, threads=self._threads)

        self._bind = bind
        return float(of_query.sum()), queries.n_pos.size, layout.queries_skipped

    def _take_rows(self, loss: Loss, oracle: str) -> tuple[float, int, int]:
        """A loss over rows: both classes need not be here."""
        from apsvm.oracles import make_oracle
        from apsvm.oracles.layout import Queries

        relevant = self._target.relevant
        n, n_pos = relevant.size, int(relevant.sum())

        def bind(total: float) -> None:
            order = np.argsort(~relevant, kind="stable")
            self._order(order)
            costs = None if self._costs is None else self._costs[order]
            queries = Queries(np.array([n_pos]), np.array([n - n_pos]), np.array([n / total]), costs)
            self._most_violated = make_oracle(oracle, loss).bind_queries(loss, queries, threads=self._threads)

        self._bind = bind if n else self._bind_nothing
        return float(n), int(n > 0), 0

    def _bind_nothing(self, total: float) -> None:
        """A shard without anything to rank."""
        self._order(np.empty(0, dtype=np.int64))
        self._most_violated = _nothing

    def weigh(self, total: float) -> None:
        """What all shards weigh together."""
        self._bind(total)

    def tangent(self, scores: int, slopes: int, foreseen: int | None) -> tuple[bool, tuple[float, ...] | None, float]:
        """Of queries or rows: whether the scores are finite, the oracle's sums, and slopes·foreseen."""
        values, to = self._vector(scores), self._vector(slopes)
        if not np.isfinite(values).all():
            return False, None, 0.0
        violation = self._most_violated(values, to)
        return True, violation, 0.0 if foreseen is None else product(to, self._vector(foreseen))

    def evaluate(
        self, model: Ranker, metrics: dict[str, Metric], lowest_relevant: float | None
    ) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64] | None], tuple[int, int, int]]:
        """Each query's figures: ids, ascending; by metric (q,), NaN where it is left out, or None where it is
        undefined; and how many queries are skipped, how many tied blocks there are, and rows in them."""
        from apsvm.metrics.errors import MetricError
        from apsvm.metrics.evaluate import Judgements, number_groups

        nothing = np.empty(0)
        if self._groups is None:
            return np.empty(0, dtype=np.int64), dict.fromkeys(metrics, nothing), (0, 0, 0)
        scores = model.score(self._X, threads=self._threads)
        ids, codes = number_groups(self._groups, scores.size)
        threshold = line_of(model.header.threshold)
        rows = Judgements(self._target.judgements, lowest_relevant, codes, ids, threshold=threshold)
        table = rows.table(scores, "block")
        figures: dict[str, NDArray[np.float64] | None] = {}
        for name, metric in metrics.items():
            try:
                values = metric.each(table)
            except MetricError:
                figures[name] = None
                continue
            figures[name] = np.where(metric.telling(table), values, np.nan)
        both = (table.n_positives > 0) & (table.n_negatives > 0)
        counted = int((~both).sum()), int(table.tied_blocks.sum()), int(table.tied_rows.sum())
        return ids, figures, counted

    # Pairs of classes (``pairs``).

    def take_classes(self, names: NDArray[np.float64], objective: str) -> None:
        """All rows of all shards are one list of the classes ``names`` (k,), ascending."""
        of_row = np.searchsorted(names, self._labels)
        self._order(np.argsort(of_row, kind="stable"))
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=names.size))])
        self._objective = objective

    def pair_moments(self, scores: int) -> NodeMoments | None:
        """Weights at nodes of the rows, class by class; None where a score is not finite."""
        return moments_of(self._vector(scores), self._starts)

    def pair_slopes(
        self,
        scores: int,
        slopes: int,
        cells: NDArray[np.int64],
        below: NDArray[np.float64],
        above: NDArray[np.float64],
        scale: float,
    ) -> float:
        """Σ of ℓ over the pairs whose preferred row is here, not scaled; writes the slopes, scaled."""
        to = self._vector(slopes)
        total = pair_sums(self._objective, self._vector(scores), self._starts, cells, below, above, to, self._threads)
        to *= scale
        return total

    def take_pairs_of_queries(
        self, names: NDArray[np.float64], graph: PreferenceGraph, objective: str, summation: str, accuracy: float
    ) -> tuple[int, int, int]:
        """Each query for itself; its numbers of pairs, of queries with some and without. ``weigh_pairs`` has to
        follow."""
        from apsvm.trainers.rank_ncg.pair_loss import NoPairsError, arrange, make_pair_loss
        from apsvm.trainers.rank_ncg.preferences import Classes

        self._pairs = None
        if self._groups is None:
            self._order(np.empty(0, dtype=np.int64))
            return 0, 0, 0
        classes = Classes(np.searchsorted(names, self._labels), names)
        try:
            self._pairs = make_pair_loss(
                self._all_rows,
                classes,
                graph,
                self._groups,
                objective=objective,
                summation=summation,
                accuracy=accuracy,
            )
        except NoPairsError:
            self._order(np.empty(0, dtype=np.int64))
            return 0, 0, np.unique(self._groups).size
        self._order(arrange(classes, self._groups).order)
        return self._pairs.pairs, self._pairs.queries, self._pairs.queries_skipped

    def weigh_pairs(self, scale: float) -> None:
        """What the sum over all pairs is multiplied by."""
        if self._pairs is not None:
            self._pairs.scale = scale

    def pairs_tangent(self, scores: int, slopes: int) -> tuple[bool, float]:
        """Of queries: whether the scores are finite, and the loss; writes the slopes."""
        values, to = self._vector(scores), self._vector(slopes)
        if self._pairs is None:
            return True, 0.0
        if not np.isfinite(values).all():
            return False, 0.0
        return True, self._pairs.tangent(values, to).value


def _nothing(scores: NDArray[np.float64], slopes: NDArray[np.float64], /) -> tuple[float, float, int, int]:
    """The risk of a shard without anything to rank."""
    slopes[:] = 0.0
    return 0.0, 0.0, 0, 0
