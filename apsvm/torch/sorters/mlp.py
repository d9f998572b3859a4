"""Three linear maps with ReLUs between them, 2,048 units wide: no structure at all."""

from __future__ import annotations

from torch import Tensor, nn

from apsvm.torch.sorters.base import Sorter


class MLPSorter(Sorter):
    """L → 2,048 → 2,048 → L."""

    architecture = "mlp"

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        assert self.length is not None
        self.layers = nn.Sequential(
            nn.Linear(self.length, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, self.length)
        )

    def ranks(self, scores: Tensor) -> Tensor:
        out: Tensor = self.layers(scores)
        return out
