"""The two arrays of a loss, kept from batch to batch: the lists of a training come in few sizes, again and again."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support.registry import spelled
from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import LossError, RankingLoss, is_of_two_arrays
from apsvm.losses.graded import GAINS, GradedLoss, takes_grades

#: Weights are kept until they are this many numbers, those asked for last.
KEPT = 1 << 21
#: Lengths at which it is checked whether D(p) is the same for lists of every length.
LENGTHS = (1, 2, 3, 7, 50, 1000, 4096)
#: Where the numbers of a list begin that is the only one.
_FIRST = np.zeros(1, dtype=np.int64)


class ListTables(NamedTuple):
    """The loss of b lists, written out.

    Attributes
    ----------
    weights_begin, discount_begin : (b,) int64, where the numbers of each list begin
    weights : float64, u_k at ``weights_begin + k − 1``
    discount, drops : float64, of one length: D(p) and D(p) − D(p+1) at ``discount_begin + p − 1``
    """

    weights_begin: NDArray[np.int64]
    weights: NDArray[np.float64]
    discount_begin: NDArray[np.int64]
    discount: NDArray[np.float64]
    drops: NDArray[np.float64]


class Tables:
    """What is known of a loss. Calls of several threads may overlap."""

    def __init__(self, loss: RankingLoss) -> None:
        self.loss = loss
        self._lock = Lock()
        self._weights: OrderedDict[tuple[int, int], NDArray[np.float64]] = OrderedDict()
        self._kept = 0
        self._discount = np.empty(0), np.empty(0)
        self._ideals: dict[int, float] = {}
        longest = loss.discount_of(LENGTHS[-1])
        self._one_discount = all(np.array_equal(loss.discount_of(n), longest[:n]) for n in LENGTHS)

    def __reduce__(self) -> tuple[type[Tables], tuple[RankingLoss]]:
        return Tables, (self.loss,)

    def of_lists(self, sizes: list[tuple[int, int]]) -> ListTables:
        """The tables of lists with these numbers of positives and negatives; of a list without both, anything.

        Raises
        ------
        LossError : the loss breaks its contract at these sizes
        """
        if not sizes:
            return ListTables(*(np.empty(0, dtype=kind) for kind in ("i8", "f8", "i8", "f8", "f8")))
        with self._lock:
            if len(sizes) == 1 and self._one_discount:
                n_pos, n_neg = sizes[0]
                return ListTables(_FIRST, self._weights_of(n_pos, n_neg), _FIRST, *self._one_of(n_pos + n_neg))
            number_of = {size: number for number, size in enumerate(dict.fromkeys(sizes))}
            which = np.array([number_of[size] for size in sizes])
            weights = [self._weights_of(*size) for size in number_of]
            starts = np.cumsum([0, *(part.size for part in weights)])
            joined = weights[0] if len(weights) == 1 else np.concatenate(weights)
            places, discount, drops = self._discounts_of([max(1, n_pos) + max(1, n_neg) for n_pos, n_neg in number_of])
            return ListTables(starts[:-1][which], joined, places[which], discount, drops)

    def ideals(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The best DCG with this many positives, of the shape of ``counts``; 0 with none. A graded loss only."""
        loss = self.loss
        assert takes_grades(loss)
        for count in np.unique(counts).tolist():
            if count not in self._ideals:
                if len(self._ideals) >= KEPT:
                    self._ideals.clear()
                self._ideals[count] = loss.ideal(count) if count > 0 else 0.0
        distinct, which = np.unique(counts, return_inverse=True)
        return np.array([self._ideals[count] for count in distinct.tolist()])[which].reshape(counts.shape)

    def _weights_of(self, n_pos: int, n_neg: int) -> NDArray[np.float64]:
        key = n_pos, n_neg
        if key in self._weights:
            self._weights.move_to_end(key)
            return self._weights[key]
        weights = self._weights[key] = self.loss.weights_of(max(1, n_pos), max(1, n_neg))
        self._kept += weights.size
        while self._kept > KEPT and len(self._weights) > 1:
            self._kept -= self._weights.popitem(last=False)[1].size
        return weights

    def _discounts_of(self, lengths: list[int]) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """(where that of each length begins, D, drops)."""
        if self._one_discount:
            return np.zeros(len(lengths), dtype=np.int64), *self._one_of(max(lengths))
        parts = [self._padded(length) for length in lengths]
        begins = np.cumsum([0, *lengths], dtype=np.int64)[:-1]
        discount, drops = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return begins, discount, drops

    def _one_of(self, length: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(D, drops) of all lists up to this long."""
        if self._discount[0].size < length:
            # Twice as long as needed: lists that grow by and by do not have it made each time.
            self._discount = self._padded(1 << length.bit_length())
        return self._discount

    def _padded(self, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        discount = self.loss.discount_of(n)
        return discount, np.append(discount[:-1] - discount[1:], 0.0)


def tables_of(loss: str | object) -> Tables:
    """The tables of the loss called so, or of a user's own (``apsvm.losses.make_loss``). Those of a name are shared.

    Raises
    ------
    UnknownNameError : (a ValueError) no such loss; lists those of two arrays, and the nearest
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
    """The forms of the names of such losses; all losses are imported for it."""
    return [form for form in LOSSES if LOSSES[form].of_two_arrays]


def gain_of(loss: GradedLoss, grades: list[float]) -> NDArray[np.float64]:
    """The gains of ``grades``; raises LossError if one is not finite."""
    with np.errstate(over="ignore"):
        gains = GAINS[loss.gain](np.array(grades))
    if not np.isfinite(gains).all():
        raise LossError(f"loss {loss.name!r}: grade {max(grades):g} has no finite {loss.gain} gain")
    return gains
