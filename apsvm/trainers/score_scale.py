"""The scale of scores: a ranking loss looks at their order alone, so that two rankers of the same rows may differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.header import Threshold
    from apsvm.metrics.thresholds import ChosenThreshold


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


#: Mean 0, deviation 1.
STANDARD = Scale(0.0, 1.0)


def placed(chosen: ChosenThreshold, scale: Scale, *, rule: str, held_out: str | None) -> Threshold:
    """A threshold that was chosen on standardised scores, for a model whose scores are of ``scale``."""
    from apsvm.header import Threshold

    return Threshold(
        value=scale.mean + scale.deviation * chosen.value,
        rule=rule,
        held_out=held_out,
        precision=chosen.precision,
        recall=chosen.recall,
        false_positive_rate=chosen.false_positive_rate,
        called=chosen.called / chosen.rows,
    )
