"""Sorters of gated recurrent units, the forms that the paper's authors tried after it.

``gru-constrained`` and ``gru-sum`` add up a step's states, so that lists may have any length; ``gru-proj`` maps all
states to all ranks. Two of them squash what goes in, σ(s/2 + 1), and what comes out.
"""

from __future__ import annotations

from torch import Tensor, nn

from apsvm.torch.sorters.base import Sorter


class ConstrainedGRUSorter(Sorter):
    """Six bidirectional layers of 32 units, the sigmoid of their sum: any length."""

    architecture = "gru-constrained"
    fixed_length = False

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        self.recurrent = nn.GRU(1, 32, num_layers=6, batch_first=True, bidirectional=True)

    def ranks(self, scores: Tensor) -> Tensor:
        states, _ = self.recurrent((scores / 2 + 1).sigmoid().unsqueeze(-1))
        total: Tensor = states.sum(dim=-1)
        return total.sigmoid()


class ProjectedGRUSorter(Sorter):
    """Six bidirectional layers of 128 units, then a linear map from all states to all ranks."""

    architecture = "gru-proj"

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        assert self.length is not None
        self.recurrent = nn.GRU(1, 128, num_layers=6, batch_first=True, bidirectional=True)
        self.project = nn.Linear(self.length * 256, self.length)

    def ranks(self, scores: Tensor) -> Tensor:
        states, _ = self.recurrent((scores / 2 + 1).sigmoid().unsqueeze(-1))
        projected: Tensor = self.project(states.flatten(start_dim=1))
        return projected.sigmoid()


class SumGRUSorter(Sorter):
    """One bidirectional layer of 4 units, summed: 168 parameters, any length."""

    architecture = "gru-sum"
    fixed_length = False

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        self.recurrent = nn.GRU(1, 4, batch_first=True, bidirectional=True)

    def ranks(self, scores: Tensor) -> Tensor:
        states, _ = self.recurrent(scores.unsqueeze(-1))
        total: Tensor = states.sum(dim=-1)
        return total
