"""Numbers between bounds, and numbers in text."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """Allowed numbers of a setting: from ``low`` (above it, if ``open_low``) to ``high``."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False

    def admits(self, value: float) -> bool:
        """True if ``value`` is a finite number in the range."""
        above = value > self.low if self.open_low else value >= self.low
        return math.isfinite(value) and above and value <= self.high

    def __str__(self) -> str:
        bounds = []
        if self.low > -math.inf:
            bounds.append(f"{'above' if self.open_low else 'of at least'} {self.low:g}")
        if self.high < math.inf:
            bounds.append(f"of at most {self.high:g}")
        return " and ".join(bounds)


def plain_float(text: str) -> float:
    """Like float(), but refuses "1_000" and digits that are not ASCII. Raises ValueError."""
    if "_" in text or not text.isascii():
        raise ValueError(f"not a number: {text!r}")
    return float(text)
