"""The handcrafted sorter of standardised scores, with Laplace's distribution function in place of the logistic one:
exact in O(L log L), whatever the scores' scale.

rank_i = (1 + Σ_{j≠i} K(λ (z_j − z_i))) / L,    K(d) = ½ e^d for d ≤ 0, 1 − ½ e^{−d} above,    z = standardised scores

It is the losses' default: other sorters need training, lists of certain lengths, or scores of a certain scale.
"""

from __future__ import annotations

from torch import Tensor

from apsvm.torch.ranks import standardized
from apsvm.torch.soft_rank import soft_ranks
from apsvm.torch.sorters.handcrafted import HandcraftedSorter


class LaplaceSorter(HandcraftedSorter):
    """The sorter with λ in standard deviations of the list's scores."""

    architecture = "laplace"

    def ranks(self, scores: Tensor) -> Tensor:
        return soft_ranks(standardized(scores), 1 / self.lam, "laplace") / scores.shape[-1]
