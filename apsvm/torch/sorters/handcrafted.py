"""The paper's handcrafted sorter (equations 11 and 12): soft comparisons of all pairs, O(L²).

rank_i = (1 + Σ_{j≠i} σ(λ (s_j − s_i))) / L

It needs no training and accepts lists of any length. A larger λ (10 in the paper) makes ranks more accurate, but only
closer scores get gradients; both depend on the scores' scale.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from apsvm.torch.soft_rank import soft_ranks
from apsvm.torch.sorters.base import Sorter, SorterError


class HandcraftedSorter(Sorter):
    """The sorter with λ in units of the scores. Raises SorterError unless λ > 0 is finite."""

    architecture = "handcrafted"
    parameter = float
    fixed_length = False
    trained = False

    def __init__(self, length: int | None = None, lam: float = 10.0) -> None:
        super().__init__(length)
        if not 0 < lam < float("inf"):
            raise SorterError(f"sorter '{self.architecture}(λ)' takes a finite λ above 0, found {lam!r}")
        self.lam = float(lam)

    def arguments(self) -> Mapping[str, int | float]:
        return {"lam": self.lam}

    def ranks(self, scores: Tensor) -> Tensor:
        return soft_ranks(scores, 1 / self.lam, "logistic") / scores.shape[-1]
