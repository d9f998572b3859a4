"""What a separation oracle is: scores of the positives and the negatives in, the most violated ranking out.

    h(s) = max_R [Δ(R*, R) + w·Ψ(R) − w·Ψ(R*)] = Δ(R̂) + c·s

with signed row weights c, a subgradient of h with respect to the scores (``apsvm.ranking``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from apsvm import ranking
from apsvm._native import _kernels
from apsvm.losses.base import Loss, LossTables, RankingLoss


@dataclass(frozen=True, slots=True)
class Violation:
    """The most violated ranking, or for a loss over rows the most violated labelling.

    value : h, the structured hinge
    loss : Δ of that ranking
    weights_pos, weights_neg : (n_pos,), (n_neg,) float64, c in the order of the rows as given; h = Δ + c·s
    ranks : (n_neg,) int32, 1..n_pos+1, in the order of the negatives as given; None for a loss over rows
    ranks_evaluated : negatives whose rank was found by an argmax of their own
    violating : negatives above at least one positive (for a loss over rows: rows that violate)
    """

    value: float
    loss: float
    weights_pos: NDArray[np.float64]
    weights_neg: NDArray[np.float64]
    ranks: NDArray[np.int32] | None
    ranks_evaluated: int
    violating: int


#: An oracle made ready for one query: (scores_pos (n_pos,), scores_neg (n_neg,)) float64, C-contiguous → Violation.
BoundOracle = Callable[[NDArray[np.float64], NDArray[np.float64]], Violation]


class Oracle(ABC):
    """``exact`` says whether the value is the true maximum: only an exact oracle can certify convergence."""

    name: ClassVar[str]
    exact: ClassVar[bool] = True

    @abstractmethod
    def refusal(self, loss: Loss) -> str | None:
        """Why this oracle cannot serve ``loss``, or None if it can."""

    @abstractmethod
    def bind(
        self,
        loss: Loss,
        n_pos: int,
        n_neg: int,
        costs: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> BoundOracle:
        """The oracle for one query of these sizes, its tables made once. ``costs``: of the positives' and the
        negatives' rows, for losses over rows; a ranking loss has no use for them."""


class RankingOracle(Oracle):
    """An oracle for the family of two-array losses: a subclass finds interleaving ranks, the rest is common."""

    def refusal(self, loss: Loss) -> str | None:
        return None if isinstance(loss, RankingLoss) else "it ranks, and this loss is a sum over rows"

    @abstractmethod
    def interleaving_ranks(
        self, tables: LossTables, positives: NDArray[np.float64], negatives: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], int]:
        """Ranks (n_neg,) in the order of ``negatives`` as given, and how many were evaluated; ``positives`` are
        in descending order. Of equal maxima the largest rank; equal negatives in the order given."""

    def bind(
        self,
        loss: Loss,
        n_pos: int,
        n_neg: int,
        costs: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> BoundOracle:
        assert isinstance(loss, RankingLoss)
        tables = loss.tables(n_pos, n_neg)

        def most_violated(scores_pos: NDArray[np.float64], scores_neg: NDArray[np.float64]) -> Violation:
            order = ranking.descending_order(scores_pos)
            ranks, evaluated = self.interleaving_ranks(tables, scores_pos[order], scores_neg)
            c = ranking.row_weights(ranks, order)
            lost = tables.loss(c.negatives_above)
            # Σc = 0: measuring the scores from the top positive keeps a common offset from eating the digits.
            top = scores_pos[order[0]]
            value = lost + float(c.positives @ (scores_pos - top)) + float(c.negatives @ (scores_neg - top))
            return Violation(
                value=value,
                loss=lost,
                weights_pos=c.positives,
                weights_neg=c.negatives,
                ranks=ranks,
                ranks_evaluated=evaluated,
                violating=int(c.negatives_above[-1]),
            )

        return most_violated


class NativeOracle(RankingOracle):
    """A ranking oracle whose algorithm is a kernel of the same name."""

    def interleaving_ranks(
        self, tables: LossTables, positives: NDArray[np.float64], negatives: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], int]:
        return _kernels.interleaving_ranks(self.name, positives, negatives, tables.weights, tables.drops)
