"""Risks that are sums over shards: of queries, each whole on one worker, and of losses over rows.

    risk(s) = Σ over the shards of the sum over their queries, by their shares

A round a call: each shard runs the oracle of one machine on its own queries.
"""

from __future__ import annotations

from apsvm._support.clock import Span
from apsvm.dask.shards.risk import NOT_FINITE, ShardedRisk
from apsvm.dask.vectors import Handle, HandleVectors
from apsvm.risk.rankings import OracleCall
from apsvm.solvers.score_space import Tangent


class SummedRisk(ShardedRisk):
    """See the module. The shards have to have been told of the loss (``Shard.take_queries``).

    Parameters
    ----------
    oracle : its name
    """

    def __init__(
        self, vectors: HandleVectors, n_scores: int, oracle: str, n_pos: int, n_neg: int, queries: int, skipped: int
    ) -> None:
        super().__init__(vectors, n_scores)
        self.n_pos, self.n_neg, self.queries, self.queries_skipped = n_pos, n_neg, queries, skipped
        self._oracle = oracle

    def tangent(self, scores: Handle, slopes: Handle) -> Tangent:
        vectors, span = self._vectors, Span()
        foreseen = vectors.foreseen
        with span:
            vectors.overwritten(slopes)
            answers = vectors.ask(
                "tangent", scores.number, slopes.number, None if foreseen is None else foreseen.number
            )
        if not all(finite for finite, _, _ in answers):
            raise FloatingPointError(NOT_FINITE)
        if foreseen is not None:
            vectors.keep_product(slopes, foreseen, sum(product for _, _, product in answers))
        value, loss, evaluated, violating = (
            sum(column) for column in zip(*(sums for _, sums, _ in answers), strict=True)
        )
        self._account.calls.append(
            OracleCall(
                self._oracle,
                self.n_pos,
                self.n_neg,
                self.queries,
                int(evaluated),
                int(violating),
                value,
                loss,
                span,
            )
        )
        return Tangent(value, loss)
