"""Bags in cross-validation: they are dealt out and judged whole, whether a trainer uses one row of each or all of them.
Bags are numbered by their first row everywhere here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.data.bags import Bags, bags_of
from apsvm.data.pooling import pooled

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.data.labels import Target


def bags_as_rows(dataset: Dataset) -> Dataset:
    """One row per bag, without features; the data set itself without bags."""
    return dataset if bags_of(dataset) is None else pooled(dataset, ())


def of_bags(dataset: Dataset, target: Target) -> Target:
    """Target of the bags, or the rows' target without bags."""
    bags = bags_of(dataset)
    return target if bags is None else target.of(bags.first)


def scores_of_bags(dataset: Dataset, rows: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m,) scores of the rows ``rows``, or the best score of each bag."""
    if dataset.bags is None or dataset.ignores_bags:
        return scores
    return Bags.of_rows(dataset.bags[rows], scores).best(scores)
