"""Bags for estimators: rows (instances) of X that belong together, by a column ``bags`` beside X as ``qid`` is one.

``fit(X, y, bags=…)`` with ``pool="mean"`` or several of min, mean, max makes a row of each bag first. ``bag_scores``
gives a score a bag, in the order in which bags first appear; ``decision_function(X)`` is of instances, each of them as
a bag of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Column, Matrix
from apsvm.data.bags import Bags
from apsvm.estimators.rows import numbered


class StackedBags(NamedTuple):
    """X : (n, d), the rows of all bags, dense, or CSR where any bag is sparse; bags : (n,) int64, the number of each
    row's bag, from 0."""

    X: Matrix
    bags: NDArray[np.int64]


def stack_bags(bags: Sequence[Matrix]) -> StackedBags:
    """The rows of a list of bags, (n_i, d) each, one behind the other. Labels of bags become those of rows by
    ``y_of_bags[bags]``.

    Raises
    ------
    ValueError
        There are none; a bag is empty, no matrix, or of another number of features.

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
        if part.shape[1] != parts[0].shape[1]:
            raise ValueError(f"bag {at} has {part.shape[1]} features, those before have {parts[0].shape[1]}")
    of_row = np.repeat(np.arange(len(parts)), [part.shape[0] for part in parts])
    sparse = any(sp.issparse(part) for part in parts)
    return StackedBags(sp.csr_array(sp.vstack(parts, format="csr")) if sparse else np.concatenate(parts), of_row)


def bags_in(column: ArrayLike, n_rows: int, **shared: Column) -> Bags:
    """The bags of ``n_rows`` rows, of any type that can be sorted. Raises ValueError unless the rows of a bag share
    each of these columns."""
    bags = Bags.of_rows(numbered("bags", column, n_rows), np.zeros(n_rows))
    first = bags.first[bags.bag_of_row]
    for name, values in shared.items():
        if values is None:
            continue
        array = np.asarray(values)
        if array.ndim == 0 or array.shape[0] != n_rows:
            raise ValueError(f"expected {name} of {n_rows} rows, found the shape {array.shape}")
        differs = array != array[first]
        if differs.any():
            row = int(np.argmax(differs))
            other = int(first[row])
            here, there = array[[row, other]].tolist()
            raise ValueError(
                f"rows of a bag share {name}: found {here!r} in row {row} and {there!r} in row {other} of the same bag"
            )
    return bags


def first_of_bags(bags: Bags, *columns: Column) -> Iterator[Column]:
    """The value of each column at the first row of each bag, which represents the others."""
    for values in columns:
        yield None if values is None else np.asarray(values)[bags.first]


def each_alone(X: Matrix, pool: Sequence[str]) -> Matrix:
    """Pools rows (n, d) that are each a bag of their own: (n, k·d)."""
    return sp.csr_array(sp.hstack([X] * len(pool), format="csr")) if sp.issparse(X) else np.tile(X, (1, len(pool)))
