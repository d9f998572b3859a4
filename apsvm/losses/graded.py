"""NDCG of graded relevance as a weighted sum of binary losses.

With the gain G(g) of the grade g, the discount D and the rows' positions p_i, at the levels l_1 < l_2 < … of the grades
above 0 and G(l_0) = 0,

    1 − (1/Z) Σ_i G(g_i) D(p_i) = Σ_l v_l Δ(grade ≥ l),
    v_l = (G(l) − G(l−1)) Z_l / Z,      Z = Σ_l (G(l) − G(l−1)) Z_l

where Δ(grade ≥ l) is the same loss with the rows of grade l and more as the positives, and Z_l its best DCG. Each term
has an exact oracle, so their weighted hinges bound the graded loss. A level that all rows reach contributes Δ = 0.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apsvm.losses.base import Loss, LossError, LossOverRankings

Gain = Callable[[NDArray[np.float64]], NDArray[np.float64]]

GAINS: dict[str, Gain] = {
    "exponential": lambda grades: np.exp2(grades) - 1.0,  # Burges et al. 2005
    "linear": lambda grades: grades,  # Järvelin and Kekäläinen 2002
}


class Level(NamedTuple):
    """The binary task of a grade: rows of grade ≥ ``threshold`` are positive, and its loss counts ``weight``, v_l."""

    threshold: float
    weight: float


class GradedLoss(LossOverRankings):
    """A loss with D and Z that also takes grades. As a binary loss, it treats all rows above 0 alike."""

    takes_grades: ClassVar[bool] = True
    gain: str = "exponential"

    @abstractmethod
    def ideal(self, n_pos: int) -> float:
        """Z, the DCG of ``n_pos`` positives at the top."""

    @property
    def of_whole_list(self) -> str:
        """NDCG, of the same gain."""
        return "ndcg" if self.gain == "exponential" else f"ndcg({self.gain})"

    def levels(self, grades: ArrayLike) -> list[Level]:
        """The binary tasks of one query's ``grades`` (n,), by ascending threshold, weights > 0 that sum to at most 1;
        empty if all grades are equal or none is above 0. Grades below 0 count as 0.

        Raises LossError if a grade is not finite or its gain too large.
        """
        result, counts = np.unique(np.maximum(np.asarray(grades, dtype=np.float64), 0.0), return_counts=True)
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.diff(GAINS[self.gain](result), prepend=0.0)
        if not np.isfinite(steps).all():
            raise LossError(
                f"loss {self.name!r}: grade {result[-1]:g} has no finite {self.gain} gain"
                + ("; in 'ndcg(linear)' a grade is its own gain" if self.gain == "exponential" else "")
            )
        n_pos = np.cumsum(counts[::-1])[::-1]
        shares = np.array([step * self.ideal(int(n)) for step, n in zip(steps, n_pos, strict=True)])
        total = shares.sum()
        return [
            Level(float(grade), float(share / total))
            for grade, share, n in zip(result, shares, n_pos, strict=True)
            if share > 0.0 and n < counts.sum()
        ]


def takes_grades(loss: Loss) -> TypeGuard[GradedLoss]:
    """True if the loss uses grades."""
    return loss.takes_grades
