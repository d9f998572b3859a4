"""The paper's recurrent sorter (Figure 3a): two bidirectional LSTM layers over the scores in their order, and a linear
map from all their states to all ranks. Sequential: a list costs L steps. ``lstm-large`` is the paper's Table 1."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from apsvm.torch.sorters.base import Sorter


class LSTMSorter(Sorter):
    """128 units a direction: 3.1 · 10⁶ parameters at L = 100."""

    architecture = "lstm"
    units: ClassVar[int] = 128

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        assert self.length is not None
        self.recurrent = nn.LSTM(1, self.units, num_layers=2, batch_first=True, bidirectional=True)
        self.project = nn.Linear(self.length * 2 * self.units, self.length)

    def ranks(self, scores: Tensor) -> Tensor:
        states, _ = self.recurrent(scores.unsqueeze(-1))
        projected: Tensor = self.project(states.flatten(start_dim=1))
        return projected


class LargeLSTMSorter(LSTMSorter):
    """512 units a direction: 18.6 · 10⁶ parameters at L = 100."""

    architecture = "lstm-large"
    units = 512
