"""Base class of separation oracles, which map scores of positives and negatives to the most violated ranking.

    h(s) = max_R [Δ(R*, R) + w·Ψ(R) − w·Ψ(R*)] = Δ(R̂) + c·s

with signed row weights c, a subgradient of h with respect to the scores (``apsvm.oracles.ranking``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.losses.base import Loss, RankingLoss
from apsvm.oracles.layout import Queries, Tasks

LossT = TypeVar("LossT", bound=Loss)


class Violation(NamedTuple):
    """Most violated ranking, or for a loss over rows the most violated labelling.

    Attributes
    ----------
    value : float
        h, the structured hinge; h = Δ + c·s with the row weights c.
    loss : float
        Δ of that ranking.
    ranks_evaluated : int
        Searches for the best rank of a negative; bisections may search twice for one.
    violating : int
        Negatives above at least one positive (for a loss over rows: rows that violate).
    """

    value: float
    loss: float
    ranks_evaluated: int
    violating: int


class BoundOracle(Protocol):
    """An oracle prepared for one query; it keeps tables and memory between calls."""

    def __call__(
        self,
        scores_pos: NDArray[np.float64],
        scores_neg: NDArray[np.float64],
        weights_pos: NDArray[np.float64],
        weights_neg: NDArray[np.float64],
        /,
    ) -> Violation:
        """Finds the most violated ranking for ``scores_pos`` (n_pos,) and ``scores_neg`` (n_neg,), and writes its row
        weights c into ``weights_pos`` and ``weights_neg``; all float64, C-contiguous, in the order of the rows."""


class NativeQuery:
    """A bound oracle implemented by a kernel."""

    def __init__(self, kernel: _kernels.RankingOracle | _kernels.MeasureOracle) -> None:
        self._kernel = kernel

    def __call__(
        self,
        scores_pos: NDArray[np.float64],
        scores_neg: NDArray[np.float64],
        weights_pos: NDArray[np.float64],
        weights_neg: NDArray[np.float64],
        /,
    ) -> Violation:
        return Violation(*self._kernel.one(scores_pos, scores_neg, weights_pos, weights_neg))

    def mixed(
        self,
        scores: NDArray[np.float64],
        relevant: NDArray[np.bool_],
        weights: NDArray[np.float64],
        ranks: NDArray[np.int32],
    ) -> Violation:
        """Does the same for ``scores`` (n,) with positives marked by ``relevant`` (n,). Writes the row ``weights`` (n,)
        and, for a loss over rankings, the interleaving ``ranks`` of the negatives (n_neg,)."""
        return Violation(*self._kernel.mixed(scores, relevant, weights, ranks))


class QueriesOracle(Protocol):
    """An oracle prepared for many queries; it keeps tables and memory between calls."""

    def __call__(self, scores: NDArray[np.float64], weights: NDArray[np.float64], /) -> tuple[float, float, int, int]:
        """Sums the fields of a ``Violation`` over the queries, weighted by their shares, for ``scores`` (n,), and
        writes all row weights into ``weights`` (n,). Both are float64, C-contiguous, in the layout of ``Queries``."""


class Oracle(ABC, Generic[LossT]):
    """An algorithm that finds the most violated ranking or labelling.

    Attributes
    ----------
    name : ClassVar[str]
        The option's value.
    exact : ClassVar[bool]
        True if the value is the true maximum: only an exact oracle can certify convergence.
    serves : ClassVar[tuple[type[Loss], ...]]
        Types of losses that it can serve.
    why_not : ClassVar[str]
        Reason, in words, why it cannot serve others.
    """

    name: ClassVar[str]
    exact: ClassVar[bool] = True
    serves: ClassVar[tuple[type[Loss], ...]]
    why_not: ClassVar[str]

    @classmethod
    def refusal(cls, loss: Loss) -> str | None:
        """Reason why this oracle cannot serve ``loss``; None if it can."""
        return None if isinstance(loss, cls.serves) else cls.why_not

    @abstractmethod
    def bind(self, loss: LossT, n_pos: int, n_neg: int, *, threads: int = 1) -> BoundOracle:
        """Prepares the oracle and its tables for one query of these sizes. The result does not depend on
        ``threads``."""

    def bind_queries(self, loss: LossT, queries: Queries, *, threads: int = 1) -> QueriesOracle:
        """Prepares the oracle for many queries. By default it solves one task after another."""
        tasks = queries.tasks
        sizes = zip(tasks.n_pos.tolist(), tasks.n_neg.tolist(), strict=True)
        return one_after_another(tasks, [self.bind(loss, n_pos, n_neg, threads=threads) for n_pos, n_neg in sizes])


#: An oracle for any type of loss; ``refusal`` tells if it serves a loss.
AnyOracle: TypeAlias = Oracle[Any]


def one_after_another(tasks: Tasks, oracles: Sequence[BoundOracle]) -> QueriesOracle:
    """Solves each task by its bound oracle, and sums the results."""
    bound = [
        (slice(first, first + n_pos), slice(first + n_pos, first + n_pos + n_neg), weight, oracle)
        for first, n_pos, n_neg, weight, oracle in zip(*(array.tolist() for array in tasks), oracles, strict=True)
    ]

    def most_violated(scores: NDArray[np.float64], weights: NDArray[np.float64], /) -> tuple[float, float, int, int]:
        value = lost = 0.0
        evaluated = violating = 0
        weights[:] = 0.0
        for pos, neg, weight, oracle in bound:
            row_weights = np.empty(neg.stop - pos.start)
            n_pos = pos.stop - pos.start
            violation = oracle(scores[pos], scores[neg], row_weights[:n_pos], row_weights[n_pos:])
            weights[pos.start : neg.stop] += row_weights if weight == 1.0 else weight * row_weights
            value += weight * violation.value
            lost += weight * violation.loss
            evaluated += violation.ranks_evaluated
            violating += violation.violating
        return value, lost, evaluated, violating

    return most_violated


class RankingOracle(Oracle[RankingLoss]):
    """An oracle for the family of two-array losses. It must return the largest rank of equal maxima, and keep negatives
    of equal score in the order given."""

    serves = (RankingLoss,)
    why_not = "it needs a loss given by two arrays, weights and a convex discount"


class NativeOracle(RankingOracle):
    """A ranking oracle whose algorithm is a kernel of the same name."""

    def bind(self, loss: RankingLoss, n_pos: int, n_neg: int, *, threads: int = 1) -> BoundOracle:
        kernel = _kernels.RankingOracle(self.name, loss.unimodal, threads)
        kernel.add_tables(n_neg, *loss.tables(n_pos, n_neg))
        return NativeQuery(kernel)

    def bind_queries(self, loss: RankingLoss, queries: Queries, *, threads: int = 1) -> QueriesOracle:
        kernel = _kernels.RankingOracle(self.name, loss.unimodal, threads)
        first, n_pos, n_neg, shares = queries.tasks
        sizes: dict[tuple[int, int], int] = {}
        which = [sizes.setdefault(pair, len(sizes)) for pair in zip(n_pos.tolist(), n_neg.tolist(), strict=True)]
        for n_positives, n_negatives in sizes:
            kernel.add_tables(n_negatives, *loss.tables(n_positives, n_negatives))
        kernel.add_tasks(first, np.array(which), shares)
        return kernel
