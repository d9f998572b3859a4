"""What a solver is saved as between two iterations: arrays and numbers by name, which any format holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: What is saved, by name.
Saved: TypeAlias = Mapping[str, "NDArray[np.generic] | float | int"]


def prefixed(name: str, saved: Saved) -> Saved:
    """The same, each key behind ``name`` and a full stop."""
    return {f"{name}.{key}": value for key, value in saved.items()}


def part(saved: Saved, name: str) -> Saved:
    """What ``prefixed`` made of one part, without the prefix."""
    start = f"{name}."
    return {key.removeprefix(start): value for key, value in saved.items() if key.startswith(start)}


def array(value: NDArray[np.generic] | float | int) -> NDArray[np.float64]:
    """A copy, as numbers."""
    return np.array(value, dtype=np.float64)
