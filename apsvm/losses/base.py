"""Base classes of losses.

A ranking loss is two arrays: the weight u_k ≥ 0 of the k-th positive and a discount D over the positions 1..P+N,

    Δ(R*, R) = Σ_k u_k [D(k) − D(k + n_k)],      n_k = negatives ranked above the k-th positive.

With D convex and non-increasing every negative's best interleaving rank can be found on its own and the ranks are
monotone (Mohapatra, Rolínek et al. 2018, Observation 2: the loss is "QS-suitable"), so one kernel serves every loss.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels


class LossError(ValueError):
    """A loss that does not fulfil its contract, or that the chosen oracle cannot serve."""


class Loss(ABC):
    """Anything that can be trained on; ``name`` is the option's value."""

    name: str
    #: Name of the metric with Δ = best − metric.
    metric: str | None = None
    #: Type of the parameter in the name, which the constructor takes (``rbp(0.8)``); None without one.
    parameter: ClassVar[type[int] | type[float] | type[str] | None] = None
    #: Other values of that parameter for the tests, with the ends of its range.
    examples: ClassVar[tuple[str, ...]] = ()
    #: True if each query has its own loss, and the risk is their mean; False if all rows are one query.
    by_query: ClassVar[bool] = True
    #: Δ depends on the order of the rows, on the counts of a labelling, or on the two arrays alone (``RankingLoss``).
    over_rankings: ClassVar[bool] = False
    over_labellings: ClassVar[bool] = False
    of_two_arrays: ClassVar[bool] = False
    #: The loss uses grades (``apsvm.losses.graded``).
    takes_grades: ClassVar[bool] = False
    #: A constant added to all scores changes its hinge.
    depends_on_level: ClassVar[bool] = True
    #: For a loss over labellings with ``starts_from``: the loss that compares the order of the training rows.
    ranks_like: str | None = None

    @property
    def starts_from(self) -> str | None:
        """Name of the loss whose minimiser the tight bound starts from; None: from w = 0. It is for losses that count
        only the top of a list, whose hinge is least near w = 0 on long lists. A loss over labellings returns that
        minimiser if it orders the training rows better. A class may set it as an attribute."""
        return None

    @property
    def draws_line(self) -> bool:
        """True if the loss depends on which scores are above 0: its rankers call those rows positive and need a
        constant."""
        return self.depends_on_level and self.starts_from is None


class LossOverRankings(Loss):
    """Δ(R*, R) depends on where the positives stand."""

    over_rankings: ClassVar[bool] = True
    depends_on_level: ClassVar[bool] = False
    draws_line = False

    @property
    def of_whole_list(self) -> str:
        """Similar loss that counts the whole list, for losses of the top to start from."""
        return "ap"

    @abstractmethod
    def of_ranking(self, negatives_above: NDArray[np.int64], n_neg: int) -> float:
        """Δ of the ranking with n_k = ``negatives_above[k − 1]``, (n_pos,) non-decreasing, 0..n_neg."""


class LossOverLabellings(Loss):
    """Δ(y*, y) depends on the counts of a labelling y of the rows.

    The joint feature vector is Joachims's (2005), Ψ(X, y) = (1/2n) Σ_i y_i x_i, y_i = ±1, n = P + N, so that

        h(s) = max_y Δ(y*, y) + (1/2n) Σ_i (y_i − y*_i) s_i

    and a row labelled wrongly adds −y*_i s_i / n. With this factor the share of wrong labels would have the binary
    SVM's hinge, (1/n) Σ_i max(0, 1 − y*_i s_i): C is on the same scale as for ``zero-one``. Row weights:
    c_i = (y_i − y*_i)/(2n), which is −1/n, 0 or +1/n. Scores count as they are, against the threshold 0.
    """

    over_labellings: ClassVar[bool] = True
    #: Name of the loss in the kernel of ``apsvm.oracles.labelling``, and its parameter.
    kernel: ClassVar[str]
    kernel_parameter: float = 0.0

    @abstractmethod
    def of_labelling(self, true_positives: int, false_positives: int, n_pos: int, n_neg: int) -> float:
        """Δ of an admitted labelling with these counts."""


def early_share(loss: LossOverRankings) -> float:
    """Δ with a tenth of the negatives above all positives, as a share of Δ with all of them there; 0 where that is 0.

    Near 1, the other nine tenths of the pairs do not count, but the hinge charges for each one in the wrong order.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # a loss that overflows is reported in training
        everything = loss.of_ranking(np.full(_LIST, _LIST), _LIST)
        return loss.of_ranking(np.full(_LIST, _LIST // 10), _LIST) / everything if everything > 0.0 else 0.0


#: Positions of a discount processed while in the cache.
_BLOCK = 1 << 15

#: Positives, and negatives, of the list that ``early_share`` uses; share from which a loss counts only the top. AP,
#: NDCG and the ROC area have .35, .39 and .10 there, reciprocal rank .99, RBP(0.99) .63.
_LIST, ONLY_THE_TOP = 1000, 0.5
#: Sizes (n_pos, n_neg) at which a new loss is checked.
PROBES = ((1, 1), (3, 5), (2, 5000), (300, 20), (_LIST, _LIST), (30, 100))


class LossTables(NamedTuple):
    """A ranking loss written out for given sizes.

    ``weights`` (n_pos,): u_k. ``discount`` (n_pos + n_neg,): D(p). Both float64; position p is at index p − 1.
    """

    weights: NDArray[np.float64]
    discount: NDArray[np.float64]

    @property
    def drops(self) -> NDArray[np.float64]:
        """D(p) − D(p+1), (n_pos + n_neg − 1,) float64. Code for many rows computes them in blocks: this array is as
        large as the scores."""
        return self.discount[:-1] - self.discount[1:]

    def loss(self, negatives_above: NDArray[np.int64]) -> float:
        """Δ of the ranking with n_k = ``negatives_above[k − 1]``."""
        places = np.arange(self.weights.size)
        return float(self.weights @ (self.discount[places] - self.discount[places + negatives_above]))


class RankingLoss(LossOverRankings):
    """A loss of the family above. A subclass defines ``weights`` and ``discount``, and ``RankingOracle``s serve it."""

    of_two_arrays: ClassVar[bool] = True
    #: g_j(k) = u_k [D(k+j−1) − D(k+j)] − const·(s⁺_k − s⁻_j) is non-decreasing in k on 1..min(P, j) for every j,
    #: whatever the scores. Then a binary search finds a negative's rank (AP-SVM-SEARCH).
    unimodal: bool = False

    @cached_property
    def starts_from(self) -> str | None:
        """Loss to start from, derived from the two arrays unless the class names one."""
        return self.of_whole_list if early_share(self) >= ONLY_THE_TOP else None

    @abstractmethod
    def weights(self, n_pos: int) -> NDArray[np.float64]:
        """u: (n_pos,) float64, non-negative."""

    @abstractmethod
    def discount(self, n: int) -> NDArray[np.float64]:
        """D at the positions 1..n: (n,) float64, convex and non-increasing."""

    def of_ranking(self, negatives_above: NDArray[np.int64], n_neg: int) -> float:
        return self.tables(negatives_above.size, n_neg).loss(negatives_above)

    def tables(self, n_pos: int, n_neg: int) -> LossTables:
        """The two arrays for these sizes, checked.

        Raises
        ------
        LossError
            A shape, sign or convexity that breaks the contract; names the first offending position.
        """
        return LossTables(self.weights_of(n_pos, n_neg), self.discount_of(n_pos + n_neg))

    def weights_of(self, n_pos: int, n_neg: int) -> NDArray[np.float64]:
        """u for a query of these sizes: (n_pos,) float64; raises LossError as ``tables`` does."""
        weights = self._array("weights", n_pos)
        if (weights < 0).any():
            k = int(np.argmax(weights < 0)) + 1
            raise LossError(f"loss {self.name!r}: the weight of the {k}-th positive is negative ({weights[k - 1]})")
        return weights

    def discount_of(self, n: int) -> NDArray[np.float64]:
        """D (n,) float64; raises LossError as ``tables`` does."""
        discount = self._array("discount", n)
        # Differences of rounded numbers: allow for rounding.
        largest = max(float(discount.max(initial=0.0)), -float(discount.min(initial=0.0)))
        slack = 4 * np.finfo(np.float64).eps * largest
        for differences, fault in ((1, "increasing"), (2, "not convex")):
            p = _first_rise(discount, differences, slack)
            if p is not None:
                raise LossError(
                    f"loss {self.name!r}: the discount is {fault} at position {p}; the exact oracles need it convex "
                    "and non-increasing"
                )
        return discount

    def check(self) -> None:
        """Checks the contract at a few sizes, before data are read; ``tables`` checks the sizes of the data. Raises
        LossError with the first offending position."""
        for n_pos, n_neg in PROBES:
            tables = self.tables(n_pos, n_neg)
        if not self.unimodal:
            return
        for j in range(1, n_neg + 1):
            k = min(n_pos, j)
            gains = tables.weights[:k] * tables.drops[j - 1 : j - 1 + k]
            falls = np.diff(gains) < -1e-12 * gains.max()
            if falls.any():
                raise LossError(
                    f"loss {self.name!r} declares itself unimodal, but the gain u_k [D(k+j−1) − D(k+j)] of negative "
                    f"j = {j} falls after positive k = {int(np.argmax(falls)) + 1}"
                )

    def _array(self, which: str, n: int) -> NDArray[np.float64]:
        try:
            array = np.ascontiguousarray(getattr(self, which)(n), dtype=np.float64)
        except (TypeError, ValueError, ArithmeticError, IndexError) as error:
            raise LossError(f"loss {self.name!r}: {which}({n}) failed: {error}") from error
        if array.shape != (n,):
            raise LossError(f"loss {self.name!r}: expected {n} numbers of {which}({n}), found shape {array.shape}")
        if not _kernels.all_within(array, sys.float_info.max):
            raise LossError(f"loss {self.name!r}: {which}({n}) must be finite")
        return array


def _first_rise(discount: NDArray[np.float64], differences: int, slack: float) -> int | None:
    """First position at which the discount (``differences`` 1) or its decrease (2) rises by more than ``slack``; None
    without one."""
    for start in range(0, discount.size - differences, _BLOCK):
        block = discount[start : start + _BLOCK + differences]
        rise = block[1:] - block[:-1]
        if differences == 2:
            rise = rise[:-1] - rise[1:]
        rises = rise > slack
        if rises.any():
            return start + int(np.argmax(rises)) + 1
    return None


def is_over_rankings(loss: Loss) -> TypeGuard[LossOverRankings]:
    """True if Δ depends on the order of the rows."""
    return loss.over_rankings


def is_of_two_arrays(loss: Loss) -> TypeGuard[RankingLoss]:
    """True if the loss belongs to the family of two arrays."""
    return loss.of_two_arrays


def is_over_labellings(loss: Loss) -> TypeGuard[LossOverLabellings]:
    """True if Δ depends on the counts of a labelling."""
    return loss.over_labellings
