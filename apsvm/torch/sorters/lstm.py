"""The paper's recurrent sorter (Figure 3a): two bidirectional LSTM layers over the scores in their order, and a linear
map from all their states to all ranks. Sequential: a list costs L steps. ``lstm-large`` is the paper's Table 1.

The architecture is the paper's, the first parameters are ours and already rank, since a cell that forgets nothing
counts, and a gate compares. With thresholds t_k where made scores lie, and s the score of the present step:

layer 1, unit k
    adds a small tanh((s − t_k) / width) at each step: the scores so far above t_k less those below. The last unit
    forgets all, and passes s on.
layer 2, unit 0
    passes on what the unit of the lowest threshold has counted in both directions.
layer 2, unit k
    where s is above the middle of t_{k−1} and t_k, as far as its input gate is open: the scores between the two.
map
    rank of s = (L + 1 + unit 0 − all other units) / 2L, of the states of its own step.

What the thresholds cannot tell apart is left to training, in steps short enough to keep the rest (``pace``).
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from apsvm.torch.score_lists import draw_lists, seeded
from apsvm.torch.sorters.base import Sorter

#: Of gates that are always open, or with the other sign shut.
OPEN = 12.0
#: What a cell adds for a score, times L (of short lists: times this), and by what the difference of two cells is
#: multiplied: tanh stays linear.
COUNTED, SHORT, MULTIPLIED = 0.01, 30, 30.0
#: Widths of the gap between two thresholds that a comparison rises over: as its argument across one gap.
COMPARED, GATED = 2.0, 4.0
#: The part of each neighbouring gap's scores that a gap gives up, since soft comparisons blur.
SHARPENED = 0.15
#: What scores are divided by to be passed on.
RANGE = 8.0
#: Made lists whose scores say where thresholds lie, and normal scores for each of theirs, of this deviation: a climb
#: leads further out than any list.
LISTS, OUTER, DEVIATION = 2000, 0.15, 1.5


class LSTMSorter(Sorter):
    """128 units a direction: 3.1 · 10⁶ parameters at L = 100."""

    architecture = "lstm"
    pace = 1e-5
    units: ClassVar[int] = 128

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        assert self.length is not None
        self.recurrent = nn.LSTM(1, self.units, num_layers=2, batch_first=True, bidirectional=True)
        self.project = nn.Linear(self.length * 2 * self.units, self.length)
        if not self.project.weight.is_meta:
            with torch.no_grad():
                self._count()

    def _count(self) -> None:
        """The first parameters; see the module."""
        assert self.length is not None
        for parameter in self.parameters():
            parameter.zero_()
        last = self.units - 1
        t = thresholds(last)
        gaps = t.diff()
        widths = torch.cat([gaps[:1], (gaps[1:] + gaps[:-1]) / 2, gaps[-1:]]) / COMPARED
        small = COUNTED / max(SHORT, self.length)
        between = torch.eye(last, dtype=t.dtype).diff(dim=0).neg()
        nearby = pad(between.t().unsqueeze(0), (1, 1), mode="replicate").squeeze(0).t()
        between -= SHARPENED * nearby.diff(dim=0).diff(dim=0)
        for direction, suffix in ((-1, ""), (1, "_reverse")):
            weight, bias = self._gates(f"weight_ih_l0{suffix}"), self._gates(f"bias_ih_l0{suffix}")
            bias["i"][:last], bias["i"][last] = math.log(small / (1 - small)), OPEN
            bias["f"][:last], bias["f"][last] = OPEN, -OPEN
            bias["o"][:] = OPEN
            weight["g"][:last, 0], bias["g"][:last] = 1 / widths, -t / widths
            weight["g"][last, 0] = 1 / RANGE

            weight, bias = self._gates(f"weight_ih_l1{suffix}"), self._gates(f"bias_ih_l1{suffix}")
            bias["f"][:], bias["i"][:], bias["o"][:] = -OPEN, OPEN, OPEN
            # A quarter of the gap below its middle in one direction, above it in the other: half of each rank.
            at = (t[:-1] + gaps * (0.5 + 0.25 * direction)) / RANGE
            slope = GATED * RANGE / gaps / (1 - at.tanh() ** 2) / (1 - at.tanh().tanh() ** 2)
            weight["i"][1:last].unflatten(1, (2, -1))[..., last] = slope.unsqueeze(1) / 2
            bias["i"][1:last] = -slope * at.tanh().tanh()
            weight["g"][0].unflatten(0, (2, -1))[:, 0] = 1
            weight["g"][1:last].unflatten(1, (2, -1))[..., :last] = MULTIPLIED * between.unsqueeze(1)
        own = self.project.weight.unflatten(1, (self.length, 2, -1)).diagonal()
        own[:, 0] = 1 / (4 * small * self.length)
        own[:, 1:last] = -1 / (4 * small * self.length * MULTIPLIED)
        self.project.bias.fill_((self.length + 1) / (2 * self.length))

    def _gates(self, name: str) -> dict[str, Tensor]:
        """The parts of a parameter of the recurrent layers, in PyTorch's order."""
        return dict(zip("ifgo", getattr(self.recurrent, name).chunk(4), strict=True))

    def ranks(self, scores: Tensor) -> Tensor:
        states, _ = self.recurrent(scores.unsqueeze(-1))
        projected: Tensor = self.project(states.flatten(start_dim=1))
        return projected


class LargeLSTMSorter(LSTMSorter):
    """512 units a direction: 18.6 · 10⁶ parameters at L = 100."""

    architecture = "lstm-large"
    units = 512


def thresholds(count: int) -> Tensor:
    """Where made scores lie, and some beyond: ascending quantiles, float64."""
    generator = seeded("thresholds")
    scores = draw_lists(generator, LISTS, 100)[0].flatten()
    outer = DEVIATION * torch.randn(int(OUTER * len(scores)), generator=generator)
    return torch.cat([scores, outer]).double().quantile((torch.arange(count, dtype=torch.float64) + 0.5) / count)
