"""The handcrafted sorter with Laplace's distribution function in place of the logistic one: exact in O(L log L).

rank_i = (1 + Σ_{j≠i} K(λ (z_j − z_i))) / L,    K(d) = ½ e^d for d ≤ 0, 1 − ½ e^{−d} above,    z = standardised scores
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from apsvm.torch.ranks import standardized
from apsvm.torch.soft_rank import soft_ranks
from apsvm.torch.sorters.base import Sorter
from apsvm.torch.sorters.handcrafted import checked_sharpness


class LaplaceSorter(Sorter):
    """λ per standard deviation of the list."""

    architecture = "laplace"
    parameter = float
    fixed_length = False
    trained = False

    def __init__(self, length: int | None = None, lam: float = 10.0) -> None:
        super().__init__(length)
        self.lam = checked_sharpness(self.architecture, lam)

    def arguments(self) -> Mapping[str, int | float]:
        return {"lam": self.lam}

    def ranks(self, scores: Tensor) -> Tensor:
        return soft_ranks(standardized(scores), 1 / self.lam, "laplace") / scores.shape[-1]
