"""The paper's convolutional sorter (§3.1.1, Figure 3b): blocks of a convolution along the list, batch normalisation and
ReLU. The last convolution covers the rest of the list and has a channel for each rank; an affine layer follows.

The paper uses 8 blocks: in its Figure 4, with ``cnn(2)`` to ``cnn(10)``, more gain nothing. Widths and channels are
those of its authors' program.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from apsvm.torch.sorters.base import Sorter, SorterError

#: Channels and width of the convolutions before the last.
BEFORE_LAST = ((8, 2), (16, 3), (32, 5), (64, 7), (96, 10), (128, 7), (256, 5), (256, 3), (128, 3))
MOST_BLOCKS = len(BEFORE_LAST) + 1


class CNNSorter(Sorter):
    """A sorter of ``depth`` blocks, 2 to 10. Raises SorterError if lists are too short for them (below 33 for 8
    blocks)."""

    architecture = "cnn"
    parameter = int

    def __init__(self, length: int | None = None, depth: int = 8) -> None:
        super().__init__(length)
        assert self.length is not None
        if not 2 <= depth <= MOST_BLOCKS:
            raise SorterError(f"sorter 'cnn' has a depth of 2 to {MOST_BLOCKS}, found {depth}")
        before_last = BEFORE_LAST[: depth - 1]
        left = self.length - sum(width - 1 for _, width in before_last)
        if left < 1:
            raise SorterError(
                f"sorter 'cnn({depth})' takes lists of {self.length - left + 1} or more, found {self.length}"
            )
        self.depth = depth
        layers: list[nn.Module] = []
        channels = 1
        for wider, width in (*before_last, (self.length, left)):
            layers += [nn.Conv1d(channels, wider, width), nn.BatchNorm1d(wider), nn.ReLU()]
            channels = wider
        self.layers = nn.Sequential(*layers)
        self.project = nn.Linear(self.length, self.length)

    def arguments(self) -> Mapping[str, int | float]:
        return {"depth": self.depth}

    def ranks(self, scores: Tensor) -> Tensor:
        projected: Tensor = self.project(self.layers(scores.unsqueeze(1)).squeeze(-1))
        return projected
