"""The risk of rankings: rows × loss × oracle → a function of the scores, and of w, with a cutting plane.

    risk(w) = mean over the queries of max_R [Δ(R*, R) + w·Ψ(R) − w·Ψ(R*)] ≥ a·w' + b for every w', equal at w' = w,

with a = Xᵀc and b = Δ of the most violated rankings. The mean may be weighted. ``oracles.layout`` selects the rows that
count and orders them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._native._kernels import RankingByScore
from apsvm._support.clock import Span, Spans
from apsvm.data.row_operator import ScoredRows
from apsvm.losses.base import Loss, RankingLoss
from apsvm.oracles import ranking
from apsvm.oracles.base import AnyOracle, QueriesOracle
from apsvm.oracles.by_score import ranking_by_score
from apsvm.oracles.layout import Layout, Queries
from apsvm.risk.of_rows import FunctionOfRows
from apsvm.solvers.score_space import Tangent


class OracleCall(NamedTuple):
    """Counts and time of one oracle call, over all queries.

    Attributes
    ----------
    oracle : its name
    n_pos, n_neg, queries : int, numbers of positives, negatives and queries
    ranks_evaluated : int, searches for the best rank of a negative
    violating : int, negatives with r ≤ P; for a loss over rows: rows that violate
    risk, loss : float, the risk and the mean loss of the most violated rankings
    span : time of the call
    ranks : number of negatives at each interleaving rank (``ranking.rank_counts``), if requested
    """

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
class CuttingPlane:
    """A plane below the risk that touches it at one point.

    Attributes
    ----------
    value : float, the risk at that point
    plane : (dimension,) float64
    offset : float, plane·w' + offset ≤ risk(w') for every w'
    """

    value: float
    plane: NDArray[np.float64]
    offset: float


@dataclass(slots=True)
class Account:
    """Work of a risk since the last account: its oracle calls, and the time of scores and gradients."""

    calls: list[OracleCall] = field(default_factory=list)
    spans: Spans = field(default_factory=Spans)

    def taken(self) -> Account:
        """Returns the account so far, and starts a new one."""
        account = Account(self.calls, self.spans)
        self.calls, self.spans = [], Spans()
        return account

    def parts(self) -> dict[str, Span]:
        """Time of each part, including the oracle."""
        spans = [call.span for call in self.calls]
        parts = {"scores": Span(), "oracle": Span(), "gradient": Span(), **self.spans}
        parts["oracle"] += Span(sum(span.wall_ns for span in spans), sum(span.cpu_ns for span in spans))
        return parts


class NoLoss(RankingLoss):
    """Δ = 0 for every ranking."""

    name = "none"
    unimodal = True

    def weights(self, n_pos: int) -> NDArray[np.float64]:
        return np.zeros(n_pos)

    def discount(self, n: int) -> NDArray[np.float64]:
        return np.zeros(n)


@dataclass(slots=True)
class Risk(FunctionOfRows):
    """See the module; ``scores``, ``tangent`` and ``combine`` are its three stages. Score vectors are arrays (m,) in
    the risk's own order of rows: query by query, positives first.

    Attributes
    ----------
    rows : the m rows that count, in that order
    n_pos, n_neg, queries : int, positives, negatives and queries among them
    queries_skipped : int, queries left out because they have no positive or no negative
    layout : the layout of the rows
    """

    rows: ScoredRows
    loss: Loss
    oracle: AnyOracle
    n_pos: int
    n_neg: int
    queries: int
    queries_skipped: int
    layout: Queries = field(repr=False)
    _most_violated: QueriesOracle = field(repr=False)
    _counts_ranks: bool = False
    _account: Account = field(default_factory=Account, repr=False)

    @property
    def _spans(self) -> Spans:
        return self._account.spans

    def tangent(self, scores: NDArray[np.float64], slopes: NDArray[np.float64]) -> Tangent:
        """The risk at ``scores`` and its offset Δ; overwrites ``slopes`` with the row weights c."""
        ranking.check_scores(scores)
        span = Span()
        with span:
            value, loss, evaluated, violating = self._most_violated(scores, slopes)
        ranks = self._rank_counts(slopes) if self._counts_ranks else None
        name, n_pos, n_neg = self.oracle.name, self.n_pos, self.n_neg
        call = OracleCall(name, n_pos, n_neg, self.queries, evaluated, violating, value, loss, span, ranks)
        self._account.calls.append(call)
        return Tangent(value, loss)

    def _rank_counts(self, c: NDArray[np.float64]) -> list[tuple[int, int]]:
        return ranking.rank_counts(ranking.ranks(c[self.n_pos :], self.n_pos))

    def __call__(self, w: NDArray[np.float64]) -> CuttingPlane:
        """The risk and its plane at w (dimension,) float64."""
        slopes = np.empty(self.n_scores)
        value, loss = self.tangent(self.scores(w), slopes)
        assert loss is not None
        return CuttingPlane(value, self.combine(slopes), loss)

    @property
    def convex(self) -> Risk:
        return self

    def by_score(self) -> Risk:
        """The same queries ranked by score instead of the most violated ranking: the hinge of Δ = 0.

        Its value is max_R w·Ψ(R) − w·Ψ(R*) ≥ 0, by which the structured hinge exceeds the tighter bound."""
        order = ranking_by_score(self.layout, threads=self.rows.threads)
        return replace(self, loss=NoLoss(), _most_violated=order, _counts_ranks=False, _account=Account())

    def less(self, by_score: Risk, scores: NDArray[np.float64], slopes: NDArray[np.float64]) -> float:
        """Excess of this risk over ``by_score`` at ``scores``; overwrites ``slopes`` with the difference of row
        weights."""
        order = by_score._most_violated
        assert isinstance(order, RankingByScore)
        value = Risk.tangent(self, scores, slopes).value
        with by_score._account.spans["oracle"]:
            return value - order.subtract(scores, slopes)[0]

    def account(self) -> Account:
        """Work since the last call."""
        return self._account.taken()


def bind_risk(
    rows: ScoredRows,
    layout: Layout,
    loss: Loss,
    oracle: AnyOracle,
    *,
    counted: Queries | None = None,
    count_ranks: bool = False,
) -> Risk:
    """Risk of ``rows``, which are ordered as in ``layout.queries``; their number of threads is the oracle's too.

    Parameters
    ----------
    counted : the queries that the risk reports; None: those of the layout
    count_ranks : oracle calls record the number of negatives at each interleaving rank; only for one ranking of two
        classes, and a loss over rankings
    """
    queries = layout.queries
    counted = queries if counted is None else counted
    return Risk(
        rows=rows,
        loss=loss,
        oracle=oracle,
        n_pos=int(counted.n_pos.sum()),
        n_neg=int(counted.n_neg.sum()),
        queries=counted.n_pos.size,
        queries_skipped=layout.queries_skipped,
        layout=queries,
        _most_violated=oracle.bind_queries(loss, queries, threads=rows.threads),
        _counts_ranks=count_ranks,
    )
