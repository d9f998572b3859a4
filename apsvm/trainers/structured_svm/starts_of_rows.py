"""Starting points of the tight bound on rows: the hinge's minimiser, the solution for the previous C, a given point,
and the difference of the class means, which helps if the hinge finds nothing."""

from __future__ import annotations

import numpy as np

from apsvm.data.row_operator import ScoredRows
from apsvm.risk import Risk
from apsvm.trainers.structured_svm.descent import Weights, curvature_of
from apsvm.trainers.structured_svm.stage import StageReport

#: Multiple of ε that suffices for the hinge's minimiser, from which descents begin.
HINGE_SLACKNESS = 30.0


class StartsOfRows:
    """Starting points of the tight bound; see the module.

    Parameters
    ----------
    risk : the hinge
    curved : rows whose variances estimate its curvature
    start : (dimension,) float64, a starting point, or None
    is_rough : the first C begins at ``start``, the hinge's minimiser, later ones only at the previous solution
    """

    def __init__(self, risk: Risk, curved: ScoredRows, start: Weights | None, *, is_rough: bool) -> None:
        self._risk, self._curved, self._start, self._is_rough = risk, curved, start, is_rough

    def __call__(self, C: float, before: Weights | None, hinge: StageReport | None) -> dict[str, Weights]:
        """Starting points for C by log name; ``before``: the solution for the previous C; ``hinge``: its minimiser."""
        if self._is_rough:
            starts = {"from the C before": before} if before is not None else {"from the hinge": self._start}
        elif hinge is None:  # the hinge begins at the stage's current point
            return {}
        else:
            starts = {
                "from the hinge": hinge.solution.w,
                "from the C before": before,
                "from the given start": self._start,
            }
        if before is None:
            starts["from the means"] = self._difference_of_means()
        first = next(iter(starts))
        return {name: w for name, w in starts.items() if w is not None and (name == first or w.any())}

    def _difference_of_means(self) -> Weights:
        """Difference of the class means, divided by each feature's variance, averaged over the queries."""
        layout = self._risk.layout
        counts = np.column_stack([layout.n_pos, layout.n_neg]).ravel()
        shares = np.column_stack([layout.shares, -layout.shares]).ravel()
        difference = self._risk.combine(np.repeat(shares / np.maximum(counts, 1), counts))
        weights: Weights = difference / curvature_of(self._curved)
        return weights
