"""The two arrays of a loss, cached between batches, since the lists of a training have few different sizes."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support.registry import spelled
from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import LossError, RankingLoss, is_of_two_arrays
from apsvm.losses.graded import GAINS, GradedLoss, takes_grades

#: Maximum number of cached numbers.
KEPT = 1 << 21
#: Lengths at which D(p) is compared, to find if it is the same for every length.
LENGTHS = (1, 2, 3, 7, 50, 1000, 4096)
#: Start of the numbers of a single list.
_FIRST = np.zeros(1, dtype=np.int64)


class ListTables(NamedTuple):
    """Arrays of the loss for b lists.

    Attributes
    ----------
    weights_begin, discount_begin : (b,) int64, start of each list's numbers
    weights : float64, u_k at ``weights_begin + k − 1``
    discount : float64, D(p) at ``discount_begin + p − 1``
    """

    weights_begin: NDArray[np.int64]
    weights: NDArray[np.float64]
    discount_begin: NDArray[np.int64]
    discount: NDArray[np.float64]


class Tables:
    """Tables of a loss, by list size. Calls from several threads may overlap."""

    def __init__(self, loss: RankingLoss) -> None:
        self.loss = loss
        self._of_size: dict[tuple[int, int], ListTables] = {}
        self._kept = 0
        self._discount = np.empty(0)
        longest = loss.discount_of(LENGTHS[-1])
        self._one_discount = all(np.array_equal(loss.discount_of(n), longest[:n]) for n in LENGTHS)

    def of_lists(self, sizes: list[tuple[int, int]]) -> ListTables:
        """Tables of lists with these numbers of positives and negatives; arbitrary for lists without both.

        Raises
        ------
        LossError : the loss breaks its contract at these sizes
        """
        if len(sizes) == 1:
            return self._of_one(sizes[0])
        if not sizes:
            return ListTables(*(np.empty(0, dtype=kind) for kind in ("i8", "f8", "i8", "f8")))
        number_of = {size: number for number, size in enumerate(dict.fromkeys(sizes))}
        which = np.array([number_of[size] for size in sizes])
        tables = [self._of_one(size) for size in number_of]
        weights_begin, weights = _joined([part.weights for part in tables])
        if self._one_discount:
            longest = max((part.discount for part in tables), key=len)
            return ListTables(weights_begin[which], weights, np.zeros(which.size, dtype=np.int64), longest)
        discount_begin, discount = _joined([part.discount for part in tables])
        return ListTables(weights_begin[which], weights, discount_begin[which], discount)

    def ideals(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Best DCG for ``counts`` positives, in the same shape; 0 for none. For graded losses only."""
        loss = self.loss
        assert takes_grades(loss)
        distinct, which = np.unique(counts, return_inverse=True)
        ideals = [loss.ideal(count) if count > 0 else 0.0 for count in distinct.tolist()]
        return np.array(ideals)[which].reshape(counts.shape)

    def _of_one(self, size: tuple[int, int]) -> ListTables:
        """Tables of a single list with these numbers of positives and negatives."""
        tables = self._of_size.get(size)
        if tables is None:
            n_pos, n_neg = (max(1, number) for number in size)
            weights, discount = self.loss.weights_of(n_pos, n_neg), self._discount_of(n_pos + n_neg)
            numbers = weights.size + (0 if self._one_discount else discount.size)
            self._kept += numbers
            if self._kept > KEPT:
                self._of_size.clear()
                self._kept = numbers
            tables = self._of_size[size] = ListTables(_FIRST, weights, _FIRST, discount)
        return tables

    def _discount_of(self, length: int) -> NDArray[np.float64]:
        """D for a list of this length; perhaps a longer array, if D does not depend on the length."""
        if not self._one_discount:
            return self.loss.discount_of(length)
        discount = self._discount  # another thread may replace it
        if discount.size < length:
            # Twice as long as needed, so that growing lists do not recompute it each time.
            discount = self._discount = self.loss.discount_of(1 << length.bit_length())
        return discount


def _joined(arrays: list[NDArray[np.float64]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Start of each array, and their concatenation; a single array is not copied."""
    begins = np.cumsum([0, *(array.size for array in arrays[:-1])], dtype=np.int64)
    return begins, arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def tables_of(loss: str | object) -> Tables:
    """Tables of a loss given by name, or of a user's own (``apsvm.losses.make_loss``). Tables of one name are shared.

    Raises
    ------
    UnknownNameError : (a ValueError) unknown loss; lists those of two arrays, and the nearest
    LossError : (a ValueError) the loss is not of two arrays or breaks its contract
    """
    return _tables_named(loss) if isinstance(loss, str) and ":" not in loss else Tables(_two_arrays(loss))


@lru_cache(maxsize=16)
def _tables_named(name: str) -> Tables:
    return Tables(_two_arrays(name))


def _two_arrays(loss: str | object) -> RankingLoss:
    if isinstance(loss, str) and ":" not in loss and spelled(loss, LOSSES) is None:
        raise LOSSES.unknown(loss, _forms_of_two_arrays())
    loss = make_loss(loss)
    if is_of_two_arrays(loss):
        return loss
    raise LossError(
        f"loss {loss.name!r} is not of two arrays, weights and a convex discount: choose from "
        f"{', '.join(_forms_of_two_arrays())}, or give an object with weights(n_pos) and discount(n)"
    )


def _forms_of_two_arrays() -> list[str]:
    """Forms of the names of losses of two arrays; imports all losses."""
    return [form for form in LOSSES if LOSSES[form].of_two_arrays]


def gain_of(loss: GradedLoss, grades: list[float]) -> NDArray[np.float64]:
    """Gains of ``grades``; raises LossError if one is not finite."""
    with np.errstate(over="ignore"):
        gains = GAINS[loss.gain](np.array(grades))
    if not np.isfinite(gains).all():
        raise LossError(f"loss {loss.name!r}: grade {max(grades):g} has no finite {loss.gain} gain")
    return gains
