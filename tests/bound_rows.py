"""Made rows of which the tight bound ranks others better, and of which the hinge is as good."""

from __future__ import annotations

import numpy as np


def hopeless(rng, n=500):
    """A quarter of the positives stands far below all other rows."""
    relevant = rng.random(n) < 0.15
    lost = relevant & (rng.random(n) < 0.25)
    X = rng.normal(size=(n, 4)) + 1.5 * (relevant & ~lost)[:, None] * np.array([1, 0.5, 0, 0])
    X[lost, 0] -= 4.0
    return X, relevant


def clean(rng, n=300):
    """One feature tells the classes apart: every candidate ranks without a fault."""
    relevant = rng.random(n) < 0.2
    X = rng.normal(size=(n, 4))
    X[:, 0] = np.where(relevant, 1.0, -1.0) * (1.0 + rng.random(n))
    return X, relevant
