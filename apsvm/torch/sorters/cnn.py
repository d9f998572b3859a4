"""The paper's convolutional sorter (Figure 3b): convolutions along the list, the last of which covers what is left of
it and has a channel for each rank, squashed into (0, 1). Every second convolution is followed by batch normalisation,
all but the last by a PReLU. ``cnn(8)`` is of depth 8, as in Figure 4; the default is 10."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from apsvm.torch.sorters.base import Sorter, SorterError

#: Channels and width of the convolutions before the last.
LAYERS = ((8, 2), (16, 3), (32, 5), (64, 7), (96, 10), (128, 7), (256, 5), (256, 3), (128, 3))


class CNNSorter(Sorter):
    """``depth`` convolutions, 2 to 10. Raises SorterError where the list is too short for them: 37 for all ten."""

    architecture = "cnn"
    parameter = int

    def __init__(self, length: int | None = None, depth: int = len(LAYERS) + 1) -> None:
        super().__init__(length)
        assert self.length is not None
        if not 2 <= depth <= len(LAYERS) + 1:
            raise SorterError(f"sorter 'cnn' has a depth of 2 to {len(LAYERS) + 1}, found {depth}")
        before_last = LAYERS[: depth - 1]
        left = self.length - sum(width - 1 for _, width in before_last)
        if left < 1:
            raise SorterError(
                f"sorter 'cnn({depth})' takes lists of {self.length - left + 1} or more, found {self.length}"
            )
        self.depth = depth
        layers: list[nn.Module] = []
        channels = 1
        for at, (wider, width) in enumerate(before_last):
            layers.append(nn.Conv1d(channels, wider, width))
            if at % 2 == 1:
                layers.append(nn.BatchNorm1d(wider))
            layers.append(nn.PReLU())
            channels = wider
        self.layers = nn.Sequential(*layers, nn.Conv1d(channels, self.length, left))

    def arguments(self) -> Mapping[str, int | float]:
        return {"depth": self.depth}

    def ranks(self, scores: Tensor) -> Tensor:
        out: Tensor = self.layers(scores.unsqueeze(1))
        return out.squeeze(-1).sigmoid()
