"""What can be added to all scores of a ranker without a change of their order."""

from __future__ import annotations

from dataclasses import replace

from apsvm.models.base import WeightedRanker
from apsvm.models.linear import LinearRanker


def level_of(ranker: WeightedRanker) -> float:
    """What can be added to every score: a linear ranker's constant; components' are not one."""
    return ranker.intercept if isinstance(ranker, LinearRanker) else 0.0


def at_level(ranker: WeightedRanker, level: float) -> WeightedRanker:
    """The ranker with another ``level_of``."""
    if isinstance(ranker, LinearRanker):
        return replace(ranker, intercept=level)
    return replace(ranker, intercepts=ranker.intercepts + level)
