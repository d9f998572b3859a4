"""Functions of the scores of rows: their passes over the rows, timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apsvm.solvers.score_space import ScoreFunction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm._support.clock import Spans
    from apsvm.data.row_operator import ScoredRows


class FunctionOfRows(ScoreFunction):
    """A function ≥ 0 of the scores of ``rows``, one for each row."""

    __slots__ = ()
    rows: ScoredRows

    @property
    def n_scores(self) -> int:
        return len(self.rows)

    @property
    def lower_bound(self) -> float:
        return 0.0

    @property
    def _spans(self) -> Spans:
        """Time of each part."""
        raise NotImplementedError

    def scores(self, w: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        with self._spans["scores"]:
            return self.rows.scores(w, out)

    def combine(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        with self._spans["gradient"]:
            return self.rows.combine(slopes)
