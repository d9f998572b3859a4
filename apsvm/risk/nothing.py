"""The risk of rows without a pair to rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.risk.rankings import Account
from apsvm.solvers.score_space import ArrayVectors, ScoreFunction, Tangent


class NoRisk(ScoreFunction[NDArray[np.float64]]):
    """Zero everywhere, with no scores; ``dimension`` is the length of w."""

    queries = 0
    queries_skipped = 0
    n_scores = 0
    lower_bound = 0.0

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension

    @property
    def vectors(self) -> ArrayVectors:
        return ArrayVectors(0)

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        return np.empty(0)

    def tangent(self, scores: NDArray[np.float64], slopes: NDArray[np.float64]) -> Tangent:
        return Tangent(0.0, 0.0)

    def combine(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros(self._dimension)

    def account(self) -> Account:
        return Account()
