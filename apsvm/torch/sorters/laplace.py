"""The handcrafted sorter with Laplace's distribution function in place of the logistic one: exact in O(L log L).

rank_i = (1 + Σ_{j≠i} K(λ (z_j − z_i))) / L,    K(d) = ½ e^d for d ≤ 0, 1 − ½ e^{−d} above,    z = standardised scores
"""

from __future__ import annotations

from apsvm.torch.sorters.handcrafted import HandcraftedSorter


class LaplaceSorter(HandcraftedSorter):
    """λ per standard deviation of the list."""

    architecture = "laplace"
    kernel = "laplace"
