"""Where the descents of the tight bound on rows begin: at the hinge's minimiser, at the solution for the C before, at a
point that was given, and where the hinge has found nothing at the difference of the classes' means.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from apsvm.data.row_operator import ScoredRows
from apsvm.risk import Risk
from apsvm.trainers.structured_svm.descent import Weights, curvature_of
from apsvm.trainers.structured_svm.objective import risk_at_zero
from apsvm.trainers.structured_svm.stage import StageReport

#: How many times ε is enough for the hinge's minimiser, where descents begin.
HINGE_SLACKNESS = 30.0
#: From this share of the risk at w = 0 on, the hinge's minimiser is no start to rely on.
HOPELESS = 0.9


class StartsOfRows:
    """See the module.

    Parameters
    ----------
    risk : the hinge
    curved : the rows whose variances say how much it curves
    given : (dimension,) float64, a point; None: there is none
    is_alone : whether to begin at ``given`` alone, unless the hinge found nothing: such data have low points that are
        far apart
    is_rough : the first C begins at ``given``, which is the hinge's minimiser, later ones at the C before alone
    """

    def __init__(
        self, risk: Risk, curved: ScoredRows, start: Weights | None, *, is_alone: bool, is_rough: bool
    ) -> None:
        self._risk, self._curved, self._start = risk, curved, start
        self._is_alone = is_alone and start is not None and bool(start.any())
        self._is_rough = is_rough

    def __call__(self, C: float, before: Weights | None, hinge: StageReport | None) -> dict[str, Weights]:
        """Points by what logs call them, for C; ``before``: the solution for the C before; ``hinge``: its minimiser."""
        if self._is_rough:
            if before is not None:
                return {"from the C before": before}
            assert self._start is not None
            starts: dict[str, Weights | None] = {"from the hinge": self._start}
            value = self._risk.tangent(self._risk.scores(self._start), self._risk.vectors.empty()).value
            is_hopeless = value >= HOPELESS * self._at_zero
        elif hinge is None:  # the hinge itself begins wherever the stage is
            return {}
        else:
            starts = {
                "from the hinge": hinge.solution.w,
                "from the C before": before,
                "from the given start": self._start,
            }
            is_hopeless = hinge.solution.certificate.primal >= HOPELESS * C * self._at_zero
            if self._is_alone and not is_hopeless:
                starts = {"from the given start": self._start}
        if is_hopeless:
            starts["from the means"] = self._difference_of_means()
        first = next(iter(starts))
        return {name: w for name, w in starts.items() if w is not None and (name == first or w.any())}

    @cached_property
    def _at_zero(self) -> float:
        return risk_at_zero(self._risk)

    def _difference_of_means(self) -> Weights:
        """The mean of the positives less that of the negatives, in each feature over its variance: the mean over the
        queries."""
        layout = self._risk.layout
        counts = np.column_stack([layout.n_pos, layout.n_neg]).ravel()
        shares = np.column_stack([layout.shares, -layout.shares]).ravel()
        difference = self._risk.combine(np.repeat(shares / np.maximum(counts, 1), counts))
        weights: Weights = difference / curvature_of(self._curved)
        return weights
