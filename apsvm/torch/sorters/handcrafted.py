"""The handcrafted sorter (equations 11 and 12 of the paper): comparisons of all pairs, softened, in O(L²).

rank_i = (1 + Σ_{j≠i} σ(λ (s_j − s_i))) / L

Nothing is trained and lists may have any length. λ trades the ranks' accuracy for the reach of their gradient. The
paper compares the scores as they are (``handcrafted-raw``, λ = 10); standardised first, λ counts in the list's
standard deviations and the ranks do not depend on the scores' scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from apsvm.torch.ranks import standardized
from apsvm.torch.soft_rank import Kernel, soft_ranks
from apsvm.torch.sorters.base import Sorter, SorterError


class HandcraftedSorter(Sorter):
    """λ per standard deviation of the list. Raises SorterError unless λ is above 0 and finite."""

    architecture = "handcrafted"
    kernel: ClassVar[Kernel] = "logistic"
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

    def prepared(self, scores: Tensor) -> Tensor:
        return standardized(scores)

    def ranks(self, scores: Tensor) -> Tensor:
        return soft_ranks(self.prepared(scores), 1 / self.lam, self.kernel) / scores.shape[-1]


class RawHandcraftedSorter(HandcraftedSorter):
    """The paper's: λ per unit of the scores."""

    architecture = "handcrafted-raw"

    def prepared(self, scores: Tensor) -> Tensor:
        return scores
