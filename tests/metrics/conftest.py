"""Fixtures of the tests of metrics."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

Case = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="session")
def random_cases() -> Callable[..., Iterator[Case]]:
    """(count, max_rows, tied) → cases with both classes; `tied` draws integer scores from a few values, around 0."""

    def draw(count: int, max_rows: int, tied: bool, seed: int = 0) -> Iterator[Case]:
        rng = np.random.default_rng(seed)
        for _ in range(count):
            n = int(rng.integers(2, max_rows + 1))
            levels = int(rng.integers(1, 2 + n))
            scores = rng.integers(-(levels // 2), levels // 2 + 1, n).astype(float) if tied else rng.normal(size=n)
            relevant = rng.random(n) < rng.random()
            relevant[rng.permutation(n)[:2]] = True, False
            yield scores, relevant

    return draw
