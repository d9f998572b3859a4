"""What a separation oracle is: scores of the positives and the negatives in, the most violated ranking out.

    h(s) = max_R [Δ(R*, R) + w·Ψ(R) − w·Ψ(R*)] = Δ(R̂) + c·s

with signed row weights c, a subgradient of h with respect to the scores (``apsvm.ranking``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm.losses.base import Loss, RankingLoss


class Violation(NamedTuple):
    """What an oracle says of the most violated ranking, or for a loss over rows of the most violated labelling.

    value : h, the structured hinge; h = Δ + c·s with the row weights c
    loss : Δ of that ranking
    ranks_evaluated : argmaxes over ranks that were computed (bisections look at some negatives twice)
    violating : negatives above at least one positive (for a loss over rows: rows that violate)
    """

    value: float
    loss: float
    ranks_evaluated: int
    violating: int


class BoundOracle(Protocol):
    """An oracle made ready for one query, with what it keeps from call to call."""

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
        *,
        costs: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        threads: int = 1,
    ) -> BoundOracle:
        """The oracle for one query of these sizes, its tables made once. ``costs``: of the positives' and the
        negatives' rows, for losses over rows; a ranking loss has no use for them. The result does not depend on
        ``threads``."""


class RankingOracle(Oracle):
    """An oracle for the family of two-array losses."""

    def refusal(self, loss: Loss) -> str | None:
        return None if isinstance(loss, RankingLoss) else "it ranks, and this loss is a sum over rows"

    @abstractmethod
    def bind_ranking(self, loss: RankingLoss, n_pos: int, n_neg: int, threads: int) -> BoundOracle:
        """``bind`` for a ranking loss. Of equal maxima the largest rank is to be taken, and
        negatives of equal score stand in the order given."""

    def bind(
        self,
        loss: Loss,
        n_pos: int,
        n_neg: int,
        *,
        costs: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
        threads: int = 1,
    ) -> BoundOracle:
        assert isinstance(loss, RankingLoss)
        return self.bind_ranking(loss, n_pos, n_neg, threads)


class NativeOracle(RankingOracle):
    """A ranking oracle whose algorithm is a kernel of the same name."""

    def bind_ranking(self, loss: RankingLoss, n_pos: int, n_neg: int, threads: int) -> BoundOracle:
        kernel = _kernels.RankingOracle(self.name, n_neg, *loss.tables(n_pos, n_neg), loss.unimodal, threads)
        return lambda *arrays: Violation(*kernel(*arrays))
