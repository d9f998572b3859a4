"""The scale of scores: a ranking loss looks at their order alone, so that two rankers of the same rows may differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.metrics.thresholds import ChosenThreshold
    from apsvm.models.header import Threshold


@dataclass(frozen=True, slots=True)
class Scale:
    """Mean and deviation of scores."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, scores: NDArray[np.float64]) -> Scale:
        """Of some scores (n,)."""
        return cls(float(scores.mean()), float(scores.std()))

    def brought_to(self, other: Scale, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of this scale in the other one."""
        stretch = other.deviation / self.deviation if self.deviation > 0.0 else 1.0
        return other.mean + (scores - self.mean) * stretch


def carried(scores: NDArray[np.float64], own: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where another ranker would have the ``scores`` (m,) of one, by its ``own`` scores and ``theirs`` (n,) of the same
    rows: between the two that lie as far from the top there; beyond all of them as far as the deviations say."""
    import numpy as np

    places, counts = np.unique(own, return_counts=True)
    images = np.add.reduceat(np.sort(theirs), np.cumsum(counts) - counts) / counts
    spread = float(own.std())
    stretch = float(theirs.std()) / spread if spread > 0.0 else 1.0
    outside = np.minimum(scores - places[0], 0.0) + np.maximum(scores - places[-1], 0.0)
    result: NDArray[np.float64] = np.interp(scores, places, images) + stretch * outside
    return result


def above_which(scores: NDArray[np.float64], share: float) -> float:
    """Between which two of the ``scores`` (n,) a threshold lies that this share of them, 0..1, is above: the middle."""
    import numpy as np

    n = scores.size
    count = min(max(round(share * n), 1), n - 1)
    next_one, lowest = np.partition(scores, (n - count - 1, n - count))[n - count - 1 : n - count + 1].tolist()
    return float(0.5 * next_one + 0.5 * lowest)


#: Mean 0, deviation 1.
STANDARD = Scale(0.0, 1.0)


def placed(chosen: ChosenThreshold, scale: Scale, *, rule: str, held_out: str | None) -> Threshold:
    """A threshold that was chosen on standardised scores, for a model whose scores are of ``scale``."""
    from apsvm.models.header import Threshold

    return Threshold(
        value=scale.mean + scale.deviation * chosen.value,
        rule=rule,
        held_out=held_out,
        precision=chosen.precision,
        recall=chosen.recall,
        false_positive_rate=chosen.false_positive_rate,
        called=chosen.called / chosen.rows,
    )
