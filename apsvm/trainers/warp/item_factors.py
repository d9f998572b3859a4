"""WARP on implicit feedback: factors of items, learned from lists of liked items (Weston, Bengio, Usunier 2010).

    score of item y for a user who likes D:   s_y = b_y + V_y · h,     h = 1/|D∖y| Σ_{i ∈ D∖y} U_i

This is WSABIE, V_y · (U x), with the user's other liked items as the features x, scaled to sum 1. A user has no factors
of its own (as in Weston, Yee, Weiss 2013): so any list can be ranked for, of a user seen in training or not, and the
model is as large as the items are many. The mean, not the sum, so that the margin of 1 asks the same of short and long
lists; without y itself, which would learn to recommend what it is given; U ≠ V, since what is liked along with an
item need not be like it; and b_y, an item's popularity, which would otherwise cost a factor.

The objective is ``warp``'s, a positive being an item on a user's list and its negatives the items that are not.

Features of items give factors to those that no user has (Gantner et al. 2010, "Learning attribute-to-feature mappings
for cold-start recommendations"): E_j = (U_j, V_j, b_j) of the others is regressed on x_j, each like counting once,

    minimise over B and c   Σ_j n_j/n̄ ‖E_j − B x_j − c‖² + ‖B‖²/10,      n_j likes of item j, n̄ their mean,

with every feature divided by its largest magnitude. Items without likes are no negatives of the training, so that what
it learns does not depend on the features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from apsvm._native import _kernels
from apsvm._support import sparse as sp
from apsvm._support.types import Matrix
from apsvm.metrics.evaluate import evaluate
from apsvm.models.items import ItemFactors
from apsvm.risk import NothingToRankError
from apsvm.solvers.sgd import Ending, Epoch, Pass
from apsvm.trainers.base import Progress, Watch
from apsvm.trainers.stochastic import descend_as_asked
from apsvm.trainers.warp.descent import loss_of_rank, rule_memory, run_pass
from apsvm.trainers.warp.settings import WarpSettings

#: The weight of ‖B‖² where features give factors: a higher one trusts rare features less. As in ``scripts/study/warp.py
#: new``, .1, 1 and 10 have nDCG@10 .33, .21 and .14 on imports by the words of their names, .14, .14 and .12 with all
#: packages beside them, and .011, .011 and .008 on films.
RIDGE = 0.1
#: What implicit feedback asks of a model of items; ``evaluate_lists`` takes any other metrics too.
METRICS = ("P@10", "AUC")


@dataclass(frozen=True, slots=True)
class TrainedItems:
    """factors : U, V and b, after the best epoch; items_by_features : how many have theirs from their features;
    the rest says how the training went."""

    factors: ItemFactors
    epochs: list[Epoch]
    best_epoch: int
    ending: Ending
    users: int
    users_skipped: int
    trouble: str | None = None
    items_by_features: int = 0


def train_items(
    lists: sp.csr_array,
    factors: int,
    settings: WarpSettings,
    watch: Watch,
    *,
    show: Callable[[Epoch], Progress],
    validate: Callable[[ItemFactors], float] | None = None,
    features: Matrix | None = None,
) -> TrainedItems:
    """Item factors.

    Parameters
    ----------
    lists : (users, items) CSR as ``liked_items`` makes them
    factors : K ≥ 1, numbers an item in U and in V; they start normal with variance 1/K (WSABIE's), b at 0
    show : an epoch as the display has it
    validate : a metric of the factors, higher is better, asked after each epoch
    features : (items, d) numbers of the items, from which those without likes get factors; None: they are negatives

    Raises
    ------
    NothingToRankError : no user likes two items and leaves one out
    FloatingPointError : factors that are not finite
    """
    if features is not None:
        likes = np.bincount(lists[np.diff(lists.indptr) >= 2].indices, minlength=lists.shape[1])
        lists = lists[:, np.flatnonzero(likes)]
    sizes = np.diff(lists.indptr)
    users = np.flatnonzero((sizes >= 2) & (sizes < lists.shape[1])).astype(np.int64)
    if users.size == 0:
        raise NothingToRankError("no user likes at least two items and leaves one out")
    descent = _ItemSteps(lists, users, factors, settings)

    def of_all(liked: ItemFactors) -> ItemFactors:
        return liked if features is None else with_unliked(liked, likes, features)

    outcome = descend_as_asked(
        descent,
        settings,
        watch,
        show=show,
        validate=None if validate is None else lambda: validate(of_all(descent.snapshot())),
    )
    return TrainedItems(
        of_all(outcome.best),
        outcome.epochs,
        outcome.best_epoch,
        outcome.ending,
        users.size,
        sizes.size - users.size,
        outcome.trouble,
        0 if features is None else int(np.count_nonzero(likes == 0)),
    )


def with_unliked(liked: ItemFactors, likes: NDArray[np.int64], features: Matrix) -> ItemFactors:
    """The factors of all items, where those without likes get theirs from their features (see the module).

    Parameters
    ----------
    liked : of the items with likes, in their order
    likes : (items,) how many users each item is learned from
    features : (items, d) numbers
    """
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import MaxAbsScaler

    is_liked = likes > 0
    arrays = (liked.input, liked.output, liked.bias[:, None])
    E = np.concatenate(arrays, axis=1, dtype=np.float64)
    every = np.empty((likes.size, E.shape[1]), dtype=np.float32)
    every[is_liked] = E
    if not is_liked.all():
        x = MaxAbsScaler().fit_transform(sp.csr_array(features, dtype=np.float64))
        weights = likes[is_liked] / likes[is_liked].mean()
        ridge = Ridge(alpha=RIDGE, solver="sparse_cg", tol=1e-6).fit(x[is_liked], E, sample_weight=weights)
        every[~is_liked] = ridge.predict(x[~is_liked])
    U, V, b = np.split(every, np.cumsum([array.shape[1] for array in arrays[:-1]]), axis=1)
    return ItemFactors(np.ascontiguousarray(U), np.ascontiguousarray(V), b[:, 0].copy())


class _ItemSteps:
    """U, V and b on their way down: one array, one behind the other, as the native loop has them.

    Parameters
    ----------
    lists : (users, items) CSR of liked items
    users : (m,) int64, those to learn from, each with two items or more and not with all
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
        table = loss_of_rank(settings.tau, int(items - self._sizes.min()))
        self._loop = _kernels.WarpItems(
            self._parameters,
            squares,
            steps,
            items,
            factors,
            table,
            settings.rank_estimator,
            1.0 / table[-1],
            settings.max_trials or 0,
            settings.rule,
            settings.rate,
            settings.penalty,
            max(16, items),
            int(self._rng.integers(2**63)),
            settings.workers,
        )

    def snapshot(self) -> ItemFactors:
        """A copy of U, V and b as they are."""
        U, V = self._parameters[: 2 * self._split].reshape(2, *self._shape).copy()
        return ItemFactors(U, V, self._parameters[2 * self._split :].copy())

    def one_pass(self, stop: Callable[[], bool]) -> Pass:
        """Every liked item once, user after user in a new order."""
        order = self._rng.permutation(self._users.size)
        passed = run_pass(self._run, self._loop.settle, order, self._sizes, self._settings, self._parameters, stop)
        # Without every item scored, no update may be luck, or the cap on the trials.
        return replace(passed, moved=passed.moved or self._settings.rank_estimator != "exact")

    def _run(self, order: NDArray[np.int64]) -> tuple[int, int, float]:
        return self._loop.run(self._lists.indptr, self._lists.indices, self._users[order])


def popularity(lists: sp.csr_array) -> Callable[[sp.csr_array], NDArray[np.floating]]:
    """Scores of items by how many of ``lists`` (users, items) have them; −inf where a user has one, as
    ``ItemFactors.score``."""
    counts = np.bincount(lists.indices, minlength=lists.shape[1]).astype(np.float64)
    return lambda shown: np.where(shown.toarray() > 0, -np.inf, counts)


@dataclass(frozen=True, slots=True)
class ListEvaluation:
    """values : metric → mean over the users that count, those with a hidden item and one that they do not like.
    of_users : metric → (users,) its value of each of them."""

    values: dict[str, float]
    users: int
    users_skipped: int
    of_users: dict[str, NDArray[np.float64]]


def evaluate_lists(
    scores_of: Callable[[sp.csr_array], NDArray[np.floating]],
    shown: sp.csr_array,
    hidden: sp.csr_array,
    metrics: Sequence[str] = METRICS,
) -> ListEvaluation:
    """How high the hidden items stand among those that are not known, as means over the users.

    Parameters
    ----------
    scores_of : (m, items) CSR of known items → scores (m, items), −inf where known; ``ItemRanker.score`` for one
    known, hidden : (users, items) CSR as ``liked_items`` makes them; what is known already is not hidden

    Raises
    ------
    MetricError : a metric's name
    NothingToRankError : no user counts
    """
    of_users: dict[str, list[float]] = {}
    used = 0
    n, items = shown.shape
    block = max(1, 4_000_000 // max(1, items))
    for at in range(0, n, block):
        scores = scores_of(shown[at : at + block])
        wanted = hidden[at : at + block].toarray() > 0
        for mine, relevant in zip(scores, wanted, strict=True):
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
