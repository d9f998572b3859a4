"""The ranking that maximises F(R) − Δ(R*, R), F(R) = w·Ψ(R): the negative update of direct loss minimisation.

    M_k(n) = max_{m ≤ n} M_{k−1}(m) + a_k(n),     a_k(n) = −u_k [D(k) − D(k+n)] − (2/(PN)) Σ_{j ≤ n} (s⁺_k − s⁻_j)

over the numbers n_1 ≤ … ≤ n_P of negatives above each positive: Song et al. (2016) have this dynamic programme for AP.
The negatives' best ranks on their own, by which the separation oracles work, need not ascend here. Each n_k is at most
that of the ranking by score (Topkis), so the work is O(swapped pairs + n log n), PN at worst
(``apsvm/_native/core/oracles/against_loss.cpp``).

No separation oracle, and none of ``--oracle``'s: its value is −Δ + c·s, and of equal maxima it takes the lowest ranks.
"""

from __future__ import annotations

from typing import ClassVar

from apsvm.oracles.base import NativeOracle


class AgainstLoss(NativeOracle):
    """max_R [F(R) − F(R*) − Δ(R*, R)], exactly."""

    name: ClassVar[str] = "against-loss"
