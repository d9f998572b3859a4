"""Bags in cross-validation: dealt out and judged whole, whether a trainer sees one row of each or all of its rows.

Everything here numbers bags in the order of their first rows, so that what pools them and what does not agree.
"""

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
    """One row a bag, without features, to deal out and to judge; the data set itself without bags."""
    return dataset if bags_of(dataset) is None else pooled(dataset, ())


def of_bags(dataset: Dataset, target: Target) -> Target:
    """The target of what is dealt out and judged, by that of the rows."""
    bags = bags_of(dataset)
    return target if bags is None else target.of(bags.first)


def scores_of_bags(dataset: Dataset, rows: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores (m,) of the rows ``rows`` (m,) of whole bags, or of each bag that of its best row."""
    if dataset.bags is None or dataset.ignores_bags:
        return scores
    return Bags.of_rows(dataset.bags[rows], scores).best(scores)
