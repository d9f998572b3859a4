"""Bags for estimators: the column ``bags`` says which rows of X belong together, as ``qid`` does for queries.

With ``pool``, ``fit(X, y, bags=…)`` first makes one row of each bag. ``bag_scores`` returns a score for each bag, in
the order in which bags first appear; ``decision_function(X)`` scores each row as a bag of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Column, Matrix
from apsvm.data.bags import Bags
from apsvm.estimators.rows import numbered, require_shared


class StackedBags(NamedTuple):
    """Rows of several bags."""

    X: Matrix  #: (n, d) ndarray, the rows of all bags; a csr_array if a bag is sparse
    bags: NDArray[np.int64]  #: (n,) the number of each row's bag, from 0


def stack_bags(bags: Sequence[Matrix]) -> StackedBags:
    """Stack the rows of bags. Labels of bags become labels of rows by ``y_of_bags[bags]``.

    Parameters
    ----------
    bags : sequence of ndarray or sparse matrix
        (n_i, d) each, at least one row.

    Returns
    -------
    StackedBags
        The rows in their order, and the bag of each.

    Raises
    ------
    ValueError
        No bags, an empty bag, an array that is no matrix, or bags with different numbers of features.

    Examples
    --------
    >>> import numpy as np
    >>> from apsvm.estimators import stack_bags
    >>> X, bags = stack_bags([np.zeros((2, 3)), np.ones((1, 3))])
    >>> X.shape, bags
    ((3, 3), array([0, 0, 1]))
    """
    parts = [bag if sp.issparse(bag) else np.asarray(bag) for bag in bags]
    if not parts:
        raise ValueError("expected at least one bag, found none")
    for at, part in enumerate(parts):
        if part.ndim != 2 or part.shape[0] == 0:
            raise ValueError(f"expected rows of features in bag {at}, of shape (n, d), found the shape {part.shape}")
    of_row = np.repeat(np.arange(len(parts)), [part.shape[0] for part in parts])
    sparse = any(sp.issparse(part) for part in parts)
    return StackedBags(sp.csr_array(sp.vstack(parts, format="csr")) if sparse else np.concatenate(parts), of_row)


def bags_in(column: ArrayLike, n_rows: int, **shared: Column) -> Bags:
    """Bags of ``n_rows`` rows by a column of ids, which may be of any type that can be sorted. Raises ValueError if
    rows of one bag differ in one of the columns ``shared``."""
    bags = Bags.of_rows(numbered("bags", column, n_rows), np.zeros(n_rows))
    first = bags.first[bags.bag_of_row]
    for name, values in shared.items():
        if values is None:
            continue
        array = np.asarray(values)
        if array.ndim == 0 or array.shape[0] != n_rows:
            raise ValueError(f"expected {name} of {n_rows} rows, found the shape {array.shape}")
        require_shared(name, array, first, "bag")
    return bags


def first_of_bags(bags: Bags, *columns: Column) -> Iterator[Column]:
    """Values of each column at the first row of each bag; the bag's other rows have the same."""
    for values in columns:
        yield None if values is None else np.asarray(values)[bags.first]


def pooled_alone(X: Matrix, pool: Sequence[str]) -> Matrix:
    """Pools each row (n, d) as a bag of its own: (n, k·d)."""
    return sp.csr_array(sp.hstack([X] * len(pool), format="csr")) if sp.issparse(X) else np.tile(X, (1, len(pool)))
