"""WARP on implicit feedback: factors of items, learned from lists of liked items (Weston, Bengio, Usunier 2010).

    score of item y for a user who likes D:   s_y = b_y + V_y · h,     h = 1/|D∖y| Σ_{i ∈ D∖y} U_i

This is WSABIE, V_y · (U x), with the user's other liked items as the features x, scaled to sum 1. Users have no factors
(as in Weston, Yee, Weiss 2013), so that new users can be served, and the size of the model depends only on the items.
With a mean instead of a sum, the margin of 1 is equally hard for short and long lists. y itself is excluded, or the
model would recommend its inputs. U ≠ V, since items liked together need not be alike. b_y is the item's popularity,
which would otherwise need a factor.

The objective is that of ``warp``: positives are the items on a user's list, negatives the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm._support import sparse as sp
from apsvm.metrics.evaluate import evaluate
from apsvm.models.items import ItemFactors
from apsvm.risk import NothingToRankError
from apsvm.solvers.sgd import DescentOutcome, Epoch, Pass
from apsvm.trainers.base import Progress, Watch
from apsvm.trainers.warp.descent import pace_of, rule_memory, run_pass
from apsvm.trainers.warp.epochs import run_epochs
from apsvm.trainers.warp.settings import WarpSettings

#: Default metrics of implicit feedback; ``evaluate_lists`` takes any others too.
METRICS = ("P@10", "AUC")


def train_items(
    lists: sp.csr_array,
    factors: int,
    settings: WarpSettings,
    watch: Watch,
    *,
    show: Callable[[Epoch], Progress],
    validate: Callable[[ItemFactors], float] | None = None,
) -> tuple[DescentOutcome[ItemFactors], int]:
    """Train U, V and b; also returns the number of users.

    Parameters
    ----------
    lists : (users, items) CSR as ``liked_items`` makes them
    factors : K ≥ 1, the length of an item's vectors in U and in V; these start normal with variance 1/K (as in WSABIE),
    b at 0
    show : displays an epoch
    validate : metric of the factors, higher is better, called after each epoch

    Raises
    ------
    NothingToRankError : no user likes at least two items and not all
    FloatingPointError : factors that are not finite
    """
    sizes = np.diff(lists.indptr)
    users = np.flatnonzero((sizes >= 2) & (sizes < lists.shape[1])).astype(np.int64)
    if users.size == 0:
        raise NothingToRankError("no user likes at least two items and not all")
    descent = _ItemSteps(lists, users, factors, settings)
    return run_epochs(descent, settings, watch, show=show, validate=validate), users.size


class _ItemSteps:
    """U, V and b during the descent, stored one after the other in an array for the native loop.

    Parameters
    ----------
    lists : (users, items) CSR of liked items
    users : (m,) int64, training users, each with at least two items and not all
    """

    def __init__(self, lists: sp.csr_array, users: NDArray[np.int64], factors: int, settings: WarpSettings) -> None:
        self._lists, self._users, self._settings = lists, users, settings
        self._sizes = np.diff(lists.indptr)[users]
        self._shape = items, factors = lists.shape[1], factors
        self._rng = np.random.default_rng(settings.seed)
        self._split = items * factors
        self._parameters = np.zeros(2 * self._split + items, dtype=np.float32)
        U_and_V = self._parameters[: 2 * self._split]
        self._rng.standard_normal(out=U_and_V, dtype=np.float32)
        U_and_V /= np.float32(np.sqrt(factors))
        squares, steps = rule_memory(settings.rule, self._parameters)
        self._loop = _kernels.WarpItems(
            self._parameters,
            squares,
            steps,
            items,
            factors,
            *pace_of(settings, int(items - self._sizes.min()), max(16, items), self._rng),
        )

    def snapshot(self) -> ItemFactors:
        """A copy of the current U, V and b."""
        U, V = self._parameters[: 2 * self._split].reshape(2, *self._shape).copy()
        return ItemFactors(U, V, self._parameters[2 * self._split :].copy())

    def one_pass(self, stop: Callable[[], bool]) -> Pass:
        """Visits every liked item once, user by user in a new order."""
        order = self._rng.permutation(self._users.size)
        passed = run_pass(self._run, self._loop.settle, order, self._sizes, self._settings, self._parameters, stop)
        # Unless every item is scored, a pass without updates may be chance, or due to the limit on trials.
        return replace(passed, moved=passed.moved or self._settings.rank_estimator != "exact")

    def _run(self, order: NDArray[np.int64]) -> tuple[int, int, float]:
        return self._loop.run(self._lists.indptr, self._lists.indices, self._users[order])


def popularity(lists: sp.csr_array) -> Callable[[sp.csr_array], NDArray[np.floating]]:
    """Scores items by their number of ``lists`` (users, items); −inf for items that a user has, as
    ``ItemFactors.score``."""
    counts = np.bincount(lists.indices, minlength=lists.shape[1]).astype(np.float64)
    return lambda known: np.where(known.toarray() != 0, -np.inf, counts)


@dataclass(frozen=True, slots=True)
class ListEvaluation:
    """values : metric → mean over users with a hidden item and an item that they do not like. of_users : metric →
    (users,), its values for these users."""

    values: dict[str, float]
    users: int
    users_skipped: int
    of_users: dict[str, NDArray[np.float64]]


def evaluate_lists(
    scores_of: Callable[[sp.csr_array], NDArray[np.floating]],
    known: sp.csr_array,
    hidden: sp.csr_array,
    metrics: Sequence[str] = METRICS,
) -> ListEvaluation:
    """Evaluate the ranks of hidden items among the unknown items, as means over users.

    Parameters
    ----------
    scores_of : (m, items) CSR of known items → scores (m, items), −inf where known; ``ItemRanker.score`` for one
    known, hidden : (users, items) CSR as ``rated_items`` makes them; known items do not count as hidden

    Raises
    ------
    MetricError : unknown metric
    NothingToRankError : no user counts
    """
    of_users: dict[str, list[float]] = {}
    used = 0
    n, items = known.shape
    block = max(1, 4_000_000 // max(1, items))
    for at in range(0, n, block):
        scores = scores_of(known[at : at + block])
        is_hidden = hidden[at : at + block].toarray() > 0
        for mine, relevant in zip(scores, is_hidden, strict=True):
            open_to_rank = mine > -np.inf
            hits = relevant[open_to_rank]
            if hits.any() and not hits.all():
                used += 1
                for name, value in evaluate(list(metrics), mine[open_to_rank], hits).values.items():
                    of_users.setdefault(name, []).append(value)
    if used == 0:
        raise NothingToRankError("no user has a hidden item to find among others")
    means = {name: sum(values) / used for name, values in of_users.items()}
    return ListEvaluation(means, used, n - used, {name: np.array(values) for name, values in of_users.items()})
