"""What risks over shards share: scores and gradients, a round each, and an account of what was done."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.dask.messages import require_one_size
from apsvm.dask.vectors import Handle, HandleVectors
from apsvm.risk.rankings import Account
from apsvm.solvers.score_space import ScoreFunction

NOT_FINITE = "scores are not finite: the feature values (or bias) are too large, scale them down"


class ShardedRisk(ScoreFunction[Handle]):
    """What risks over shards share; score vectors are handles.

    Attributes
    ----------
    n_scores : over all shards
    n_pos, n_neg, queries, queries_skipped : see ``apsvm.risk.Risk``
    """

    def __init__(self, vectors: HandleVectors, n_scores: int) -> None:
        self._vectors = vectors
        self._n_scores = n_scores
        self._account = Account()

    @property
    def n_scores(self) -> int:
        return self._n_scores

    @property
    def vectors(self) -> HandleVectors:
        return self._vectors

    @property
    def lower_bound(self) -> float:
        """0, the value of R = R*."""
        return 0.0

    def scores(self, w: NDArray[np.float64], out: Handle | None = None) -> Handle:
        """One pass over the rows of each shard, when the next round reaches it."""
        out = self._vectors.empty() if out is None else out
        self._vectors.later(out, "scores", w.copy(), out.number)
        return out

    def combine(self, slopes: Handle) -> NDArray[np.float64]:
        with self._account.spans["gradient"]:
            return in_order(self._vectors.ask("combine", slopes.number))

    def account(self) -> Account:
        """What was done since the last call."""
        account, self._account = self._account, Account()
        return account


def in_order(sums: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Σ, from the first shard to the last."""
    require_one_size("sums", [of_shard.size for of_shard in sums])
    total = sums[0].copy()
    for of_shard in sums[1:]:
        total += of_shard
    return total
