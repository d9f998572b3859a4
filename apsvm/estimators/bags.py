"""Bags for estimators: rows (instances) of X that belong together, by a column ``bags`` beside X as ``qid`` is one.

``fit(X, y, bags=…)`` with ``pool="mean"`` or several of min, mean, max makes a row of each bag first. ``bag_scores``
gives a score a bag, in the order in which bags first appear; ``decision_function(X)`` is of instances, each of them as
a bag of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apsvm._support import sparse as sp
from apsvm._support.types import Column, Matrix
from apsvm.data.bags import Bags
from apsvm.data.labels import Target
from apsvm.data.pooling import pooled_rows
from apsvm.estimators.rows import numbered
from apsvm.models.header import parse_pool

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray


_PASS_BAGS = (
    "pass bags, one a row. In searches and cross-validation sklearn.set_config(enable_metadata_routing=True) takes "
    "them to each fold"
)


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


def bags_in(column: ArrayLike, n_rows: int) -> Bags:
    """The bags of ``n_rows`` rows, of any type that can be sorted. Raises ValueError."""
    return Bags.of_rows(numbered("bags", column, n_rows), np.zeros(n_rows))


def of_bags(name: str, values: Column, bags: Bags) -> AnyArray:
    """The value of each bag : (n_bags,). Raises ValueError unless the rows of a bag share theirs."""
    array = np.asarray(values)
    if array.ndim == 0 or array.shape[0] != bags.offsets[-1]:
        raise ValueError(f"expected {name} of {bags.offsets[-1]} rows, found the shape {array.shape}")
    first = bags.first[bags.bag_of_row]
    differs = array != array[first]
    if differs.any():
        row = int(np.argmax(differs))
        here, there = array[[row, first[row]]].tolist()
        raise ValueError(
            f"rows of a bag share {name}: found {here!r} in row {row} and {there!r} in row {first[row]} of the same bag"
        )
    result: AnyArray = array[bags.first]
    return result


def each_alone(X: Matrix, pool: Sequence[str]) -> Matrix:
    """What pooling makes of rows (n, d) that are each a bag of their own: (n, k·d)."""
    return sp.csr_array(sp.hstack([X] * len(pool), format="csr")) if sp.issparse(X) else np.tile(X, (1, len(pool)))


class Columns(NamedTuple):
    """X and what stands beside it, (n,) each or None, as ``estimator``, a class's name, was given them."""

    estimator: str
    X: Matrix
    y: Column
    qid: Column
    sample_weight: Column
    bags: Column

    def pooled(self, pool: tuple[str, ...] | None, target: Target) -> tuple[Matrix, Target, Column, Column]:
        """X, the target, qid and sample_weight, a row a bag where bags are pooled. Raises ValueError."""
        if self.bags is None:
            if pool is not None:
                raise ValueError(f"{self.estimator} pools the rows of a bag: {_PASS_BAGS}")
            return self.X, target, self.qid, self.sample_weight
        if pool is None:
            raise ValueError(
                "bags: say what becomes of the rows of a bag: latent=True, pool='mean', pool='min,mean,max'"
            )
        by_bag = bags_in(self.bags, self.X.shape[0])
        of_bags("y", self.y, by_bag)
        return pooled_rows(self.X, by_bag, pool), target.of(by_bag.first), *self._of_bags(by_bag)

    def best(self, scores: NDArray[np.float64], target: Target) -> tuple[NDArray[np.float64], Target, Column, Column]:
        """The score of each bag by its best row, the target, qid and sample_weight of bags. Raises ValueError."""
        if self.bags is None:
            raise ValueError(f"{self.estimator}(latent=True) is of bags: {_PASS_BAGS}")
        by_bag = bags_in(self.bags, self.X.shape[0])
        of_bags("y", self.y, by_bag)
        return by_bag.best(scores), target.of(by_bag.first), *self._of_bags(by_bag)

    def _of_bags(self, by_bag: Bags) -> tuple[Column, Column]:
        """qid and sample_weight. Raises ValueError."""
        return (
            None if self.qid is None else of_bags("qid", self.qid, by_bag),
            None if self.sample_weight is None else of_bags("sample_weight", self.sample_weight, by_bag),
        )

    def kept(self, loss: str, pool: tuple[str, ...] | None) -> Bags:
        """The bags, for a training on them by their rows. Raises ValueError."""
        if pool is not None:
            raise ValueError("pool makes a row of each bag, and latent=True trains on the rows of bags: give one")
        if self.bags is None:
            raise ValueError(f"{self.estimator}(latent=True) trains on bags: {_PASS_BAGS}")
        if self.sample_weight is not None and loss != "zero-one":
            raise ValueError("sample_weight is of rows, and latent=True trains on bags: only loss 'zero-one' takes it")
        by_bag = bags_in(self.bags, self.X.shape[0])
        of_bags("y", self.y, by_bag)
        self._of_bags(by_bag)
        return by_bag


def checked_pool(pool: object) -> tuple[str, ...] | None:
    """The parameter ``pool`` as the pools it names.

    Raises
    ------
    TypeError, ValueError
        It is no text; it names what is none.
    """
    if pool is None:
        return None
    if not isinstance(pool, str):
        raise TypeError(f"pool is some of min, mean, max, with commas between them, or None, found {pool!r}")
    return parse_pool(pool)
