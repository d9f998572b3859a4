"""What can be added to all scores of a ranker without a change of their order."""

from __future__ import annotations

from apsvm.models.kinds import WeightedRanker


def level_of(ranker: WeightedRanker) -> float:
    """What can be added to every score: a linear ranker's constant; components' are not one."""
    return float(ranker.constants[0]) if ranker.components == 1 else 0.0


def at_level(ranker: WeightedRanker, level: float) -> WeightedRanker:
    """The ranker with another ``level_of``."""
    return ranker.raised(level - level_of(ranker))
