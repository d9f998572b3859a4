"""The risk: dataset × loss × oracle → a function of w with a cutting plane.

    risk(w) = mean over the queries of max_R [Δ(R*, R) + w·Ψ(R) − w·Ψ(R*)] ≥ a·w' + b for every w', equal at w' = w,

with a = Xᵀc and b = Δ of the most violated rankings. The mean may be weighted. A query without a positive or without a
negative contributes nothing and is counted. A loss over rows (0-1) takes all rows as one query. A graded loss is a
weighted sum over its grades' binary losses, and so is its hinge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apsvm import ranking
from apsvm.clock import Span, Spans
from apsvm.data.rows import Rows
from apsvm.losses.base import Loss, LossOverRankings, RankingLoss
from apsvm.losses.graded import GradedLoss
from apsvm.oracles import ORACLES
from apsvm.oracles.base import Levels, Oracle, Queries, QueriesOracle


class NothingToRankError(ValueError):
    """No query has both a positive and a negative row."""


@dataclass(frozen=True, slots=True)
class OracleCall:
    """What one call of the oracle counted, over all queries: rows, negatives whose rank was evaluated, negatives with
    r ≤ P (for a loss over rows: rows that violate), the risk and the loss found, and the time it took; ``ranks``: how
    many negatives have each interleaving rank (``ranking.rank_counts``), where that was asked for."""

    oracle: str
    n_pos: int
    n_neg: int
    queries: int
    ranks_evaluated: int
    violating: int
    risk: float
    loss: float
    span: Span
    ranks: list[tuple[int, int]] | None = None


@dataclass(frozen=True, slots=True)
class ScoreHinge:
    """The risk as a function of the scores, at one point: ``value``, row ``weights`` (n,) in the risk's own order of
    rows, and ``loss``: value = loss + weights·scores."""

    value: float
    weights: NDArray[np.float64]
    loss: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The plane ``plane``·w' + ``offset`` ≤ risk(w') that touches the risk, ``value``, at the point of the cut."""

    value: float
    plane: NDArray[np.float64]
    offset: float


@dataclass(slots=True)
class Account:
    """What a risk has done since it was last asked: its oracle calls, and the time of scores and gradients."""

    calls: list[OracleCall] = field(default_factory=list)
    spans: Spans = field(default_factory=Spans)


class NoLoss(RankingLoss):
    """Δ = 0 for every ranking."""

    name = "none"
    unimodal = True

    def weights(self, n_pos: int) -> NDArray[np.float64]:
        return np.zeros(n_pos)

    def discount(self, n: int) -> NDArray[np.float64]:
        return np.zeros(n)


@dataclass(slots=True)
class Risk:
    """See the module; ``scores``, ``hinge`` and ``cut`` are its three stages."""

    rows: Rows
    loss: Loss
    oracle: Oracle
    n_pos: int
    n_neg: int
    queries: int
    queries_skipped: int
    layout: Queries = field(repr=False)
    _most_violated: QueriesOracle = field(repr=False)
    _counts_ranks: bool = False
    _account: Account = field(default_factory=Account, repr=False)

    @property
    def n_scores(self) -> int:
        """Rows that count: those of the queries with both classes."""
        return len(self.rows)

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """X·w (m,) float64, in the risk's own order of rows: query by query, positives first; into ``out`` if given."""
        with self._account.spans.time("scores"):
            return self.rows.scores(w, out)

    def hinge(self, scores: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> ScoreHinge:
        """The risk at ``scores``, its weights in ``out`` if given; FloatingPointError if a score is not finite."""
        # NaN has no place in an order: the sorting kernels rely on this. (A finite sum has only finite terms; a sum
        # that is not may still have.)
        if not (np.isfinite(scores.sum()) or np.isfinite(scores).all()):
            raise FloatingPointError(
                "scores are not finite: the feature values (or bias) are too large, scale them down"
            )
        spans = Spans()
        c = np.empty(scores.size) if out is None else out
        with spans.time("oracle"):
            value, loss, ranks_evaluated, violating = self._most_violated(scores, c)
        call = OracleCall(
            oracle=self.oracle.name,
            n_pos=self.n_pos,
            n_neg=self.n_neg,
            queries=self.queries,
            ranks_evaluated=ranks_evaluated,
            violating=violating,
            risk=value,
            loss=loss,
            span=spans.parts["oracle"],
            ranks=self._rank_counts(c) if self._counts_ranks else None,
        )
        self._account.calls.append(call)
        return ScoreHinge(value, c, loss)

    def _rank_counts(self, c: NDArray[np.float64]) -> list[tuple[int, int]]:
        return ranking.rank_counts(ranking.ranks(c[self.n_pos :], self.n_pos))

    def cut(self, hinge: ScoreHinge) -> Evaluation:
        """The cutting plane of a hinge: one pass over the rows with a weight."""
        return Evaluation(hinge.value, self.combine(hinge.weights), hinge.loss)

    def combine(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Xᵀ·weights (dimension,) of row weights (m,) in the risk's own order."""
        with self._account.spans.time("gradient"):
            return self.rows.combine(weights)

    def __call__(self, w: NDArray[np.float64]) -> Evaluation:
        """The risk and its plane at w (dimension,) float64."""
        return self.cut(self.hinge(self.scores(w)))

    def by_score(self) -> Risk:
        """The same queries, with the ranking by score in the place of the most violated one: the hinge of Δ = 0.

        Its value is max_R w·Ψ(R) − w·Ψ(R*) ≥ 0, by which the structured hinge exceeds the tighter bound."""
        oracle = ORACLES["bucket"]()
        order = oracle.bind_queries(NoLoss(), self.layout, threads=self.rows.threads)
        return replace(
            self, loss=NoLoss(), oracle=oracle, _most_violated=order, _counts_ranks=False, _account=Account()
        )

    def account(self) -> Account:
        """What was done since the last time this was asked."""
        account, self._account = self._account, Account()
        return account


def require_pairs(relevant: NDArray[np.bool_], groups: NDArray[np.int64] | None) -> None:
    """Raises NothingToRankError if no query has both a positive and a negative row."""
    if groups is None:
        fine = relevant.any() and not relevant.all()
    else:
        fine = np.intersect1d(groups[relevant], groups[~relevant]).size > 0
    if not fine:
        raise NothingToRankError("no query has both a positive and a negative row")


def make_risk(
    rows: Rows,
    relevant: NDArray[np.bool_],
    loss: Loss,
    oracle: Oracle,
    *,
    groups: NDArray[np.int64] | None = None,
    costs: NDArray[np.float64] | None = None,
    query_weights: Mapping[int, float] | None = None,
    grades: NDArray[np.float64] | None = None,
    count_ranks: bool = False,
) -> Risk:
    """Bind data, loss and oracle together.

    Parameters
    ----------
    rows : n rows; their number of threads is the oracles' too
    relevant : (n,) bool
    groups : (n,) int64, rows of one query share a value, in any order; None: one query
    costs : (n,) float64 ≥ 0, for losses over rows; None: all one
    query_weights : weight ≥ 0 of each group in the mean, 1 where not named; None: all one
    grades : (n,) float64, for a graded loss, whose positives are then the rows above 0; None: a binary loss
    count_ranks : its oracle calls say how many negatives have each interleaving rank, of one ranking of two classes;
        a loss over rows or labellings has none

    Raises
    ------
    NothingToRankError : no query with a weight has both a positive and a negative row
    LossError : a grade without a finite gain
    ValueError : ``count_ranks`` of several queries or of grades
    """
    by_query = groups if loss.by_query else None
    graded_loss = loss if isinstance(loss, GradedLoss) else None
    relevance = relevant if grades is None or graded_loss is None else np.maximum(grades, 0.0)
    order, n_pos, n_neg = _queries_first(relevance, by_query)
    first = np.cumsum(n_pos + n_neg) - n_pos - n_neg
    weights = np.ones(n_pos.size)
    if query_weights is not None and by_query is not None:
        weights = np.array([query_weights.get(group, 1.0) for group in by_query[order[first]].tolist()])
    to_rank = (n_pos > 0) & (n_neg > 0)
    levels = None
    if grades is not None and graded_loss is not None:
        levels = _levels(graded_loss, relevance[order], first)
        to_rank = np.isin(np.arange(n_pos.size), levels.query)
    used = to_rank & (weights > 0)
    if not used.any():
        raise NothingToRankError("no query has both a positive and a negative row")
    members = order if used.all() else order[np.repeat(used, n_pos + n_neg)]
    if levels is not None:
        kept = used[levels.query]
        levels = Levels((np.cumsum(used) - 1)[levels.query[kept]], levels.n_pos[kept], levels.weights[kept])
    shares = weights[used] / weights[used].sum()
    count_ranks = count_ranks and isinstance(loss, LossOverRankings)
    if count_ranks and (shares.size > 1 or levels is not None):
        raise ValueError(f"ranks are counted of one ranking of two classes, found {_what(shares.size, levels)}")
    queries = Queries(
        n_pos[used], n_neg[used], shares, None if costs is None or loss.by_query else costs[members], levels
    )
    return Risk(
        rows=rows.select(members),
        loss=loss,
        oracle=oracle,
        n_pos=int(queries.n_pos.sum()),
        n_neg=int(queries.n_neg.sum()),
        queries=shares.size,
        queries_skipped=int((~to_rank).sum()),
        layout=queries,
        _most_violated=oracle.bind_queries(loss, queries, threads=rows.threads),
        _counts_ranks=count_ranks,
    )


def _what(queries: int, levels: Levels | None) -> str:
    return f"{queries} queries" if levels is None else "grades"


def _queries_first(
    relevance: NDArray[np.bool_] | NDArray[np.float64], groups: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows ordered query by query (in the order of their first rows), by descending relevance, stably; and the numbers
    of rows above 0 and of the others of each query, (q,) int64."""
    positive = relevance > 0
    if groups is None:
        order = np.argsort(-relevance.astype(np.float64), kind="stable")
        n_pos = np.array([positive.sum()])
        return order, n_pos, relevance.size - n_pos
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    rank_of_group = np.argsort(np.argsort(first))
    query = rank_of_group[inverse]
    order = np.lexsort((-relevance.astype(np.float64), query))
    positives = np.bincount(query, weights=positive).astype(np.int64)
    return order, positives, np.bincount(query) - positives


def _levels(loss: GradedLoss, grades: NDArray[Any], first: NDArray[np.int64]) -> Levels:
    """The levels of queries beginning at ``first``, whose ``grades`` stand in descending order."""
    found = [
        (query, np.count_nonzero(own >= threshold), weight)
        for query, own in enumerate(np.split(grades, first[1:]))
        for threshold, weight in loss.levels(own)
    ]
    at, n_pos, weights = zip(*found, strict=True) if found else ((), (), ())
    return Levels(np.array(at, dtype=np.int64), np.array(n_pos, dtype=np.int64), np.array(weights, dtype=np.float64))
