"""The paper's recurrent sorter (Figure 3a): two bidirectional LSTM layers over the scores in their order, and a linear
map from all their states to all ranks. A list takes L sequential steps. ``lstm-large`` is that of the paper's Table 1.

The architecture is the paper's. The initial parameters are ours and already rank: a cell that forgets nothing counts,
and a gate compares. With thresholds t_k in the range of generated scores, and s the score of the current step:

layer 1, unit k
    adds a small tanh((s − t_k) / width) at each step: the number of scores so far above t_k minus that below.
layer 2, unit 0
    passes on the counts of the lowest threshold's unit in both directions.
layer 2, unit k
    passes on the number of scores between t_{k−1} and t_k, if s is above their middle: then its input gate is open.
map
    rank of s = (L + 1 + unit 0 − all other units) / 2L, from the states of its own step.

Thresholds cannot separate the scores of a narrow list. Its ranks are linear in (mean − s) / width:

layer 1
    passes on s, and keeps the sum of all scores, the highest and the lowest.
layer 2
    keeps the width of the list, known at the first step from the other direction. If the width is below a few gaps of
    thresholds, it shuts the units above and opens those of (mean − s) / 2^−j, one for each halving of the width.

Training fits the map only: any step would spoil the recurrent layers, which compare scores to a millionth.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from apsvm.torch.score_lists import draw_lists, seeded
from apsvm.torch.sorters.base import Sorter

#: Bias of a gate that is always open (1 in float32); with the other sign, always shut (0).
OPEN = 20.0
#: Increment of a cell for a score, times L; the least L in it; factor of the difference of two cells. All are small
#: enough for tanh to be linear.
COUNTED, SHORT, MULTIPLIED = 0.01, 30, 30.0
#: Rise of a comparison's argument across the gap of two thresholds, in layers 1 and 2.
COMPARED, GATED = 2.0, 4.0
#: Fraction of a neighbouring gap's count that is subtracted, since soft comparisons blur.
SHARPENED = 0.15
#: Divisor of the scores that are passed on.
RANGE = 8.0
#: Number of generated lists whose scores set the thresholds; additional normal scores for each of theirs, and their
#: deviation, since a climb moves beyond the range of the lists.
LISTS, OUTER, DEVIATION = 2000, 0.15, 1.5
#: Gaps below which a list is narrow, and number of halvings of its width that have units.
NARROW, HALVINGS = 4, 8
#: Factor of the kept highest score, a constant added to it, and the difference by which a higher score replaces it.
KEPT, ABOVE, HIGHER = 1e-4, 4.0, 1e-6
#: Factor of the kept width; steepness of the gates at the widest narrow list, and at each halving; slope of their
#: units, where tanh is linear.
WIDTHS, STEEP, SOFT, SLOPE = 2.0, 24.0, 5.0, 0.3


class LSTMSorter(Sorter):
    """128 units a direction: 3.1 · 10⁶ parameters at L = 100."""

    architecture = "lstm"
    pace = 1e-5
    units: ClassVar[int] = 128

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        assert self.length is not None
        self.recurrent = nn.LSTM(1, self.units, num_layers=2, batch_first=True, bidirectional=True)
        self.recurrent.requires_grad_(False)
        self.project = nn.Linear(self.length * 2 * self.units, self.length)
        if not self.project.weight.is_meta:
            with torch.no_grad():
                self._begin(self.length)
            self.is_untrained = False  # useful without training

    def _begin(self, length: int) -> None:
        """Sets the initial parameters; see the module."""
        for parameter in self.parameters():
            parameter.zero_()
        count = self.units - HALVINGS - 2  # of thresholds
        score, total, own, highest, lowest = range(count, count + 5)  # of layer 1
        clock, width = count, count + 1  # of layer 2, and then the units of the halvings
        t = thresholds(count)
        gaps = t.diff()
        small = COUNTED / max(SHORT, length)

        widths = torch.cat([gaps[:1], (gaps[1:] + gaps[:-1]) / 2, gaps[-1:]]) / COMPARED
        for suffix in ("", "_reverse"):
            weight, bias, before = self._gates("l0" + suffix)
            bias["i"].fill_(math.log(small / (1 - small)))
            bias["f"].fill_(OPEN)
            bias["o"].fill_(OPEN)
            weight["g"][:count, 0], bias["g"][:count] = 1 / widths, -t / widths
            weight["g"][[score, total, own], 0] = 1 / RANGE
            bias["f"][[score, own]], bias["i"][score] = -OPEN, OPEN
            for unit, sign in ((highest, 1), (lowest, -1)):
                weight["g"][unit, 0], bias["g"][unit] = sign * KEPT, ABOVE * KEPT
                for gate, way in (("i", 1 / HIGHER), ("f", -1 / HIGHER)):
                    weight[gate][unit, 0], bias[gate][unit] = way * sign, way * ABOVE
                    before[gate][unit, unit] = -way / KEPT

        between = torch.eye(count, dtype=t.dtype).diff(dim=0).neg()
        nearby = pad(between.t().unsqueeze(0), (1, 1), mode="replicate").squeeze(0).t()
        between -= SHARPENED * nearby.diff(dim=0).diff(dim=0)
        narrow = NARROW * float(gaps.median()) * 0.5 ** torch.arange(HALVINGS, dtype=t.dtype)
        steep = torch.tensor([STEEP] + [SOFT] * (HALVINGS - 1), dtype=t.dtype)
        shut = -steep / _twice(WIDTHS * narrow)  # in terms of the kept width
        started = float(_twice(torch.tensor(OPEN)))  # of the clock, 0 at the first step
        for direction, suffix in ((-1, ""), (1, "_reverse")):
            weight, bias, before = self._gates("l1" + suffix)
            of_score, of_all = weight["i"].unflatten(1, (2, -1)), weight["g"].unflatten(1, (2, -1))
            bias["i"].fill_(OPEN)
            bias["f"].fill_(-OPEN)
            bias["o"].fill_(OPEN)
            # A quarter of the gap below its middle in one direction, above it in the other: half of each rank.
            at = (t[:-1] + gaps * (0.5 + 0.25 * direction)) / RANGE
            slope = GATED * RANGE / gaps / (1 - at.tanh() ** 2) / (1 - _twice(at) ** 2)
            of_score[1:count, :, score], bias["i"][1:count] = slope.unsqueeze(1) / 2, -slope * _twice(at)
            of_all[0, :, 0] = 1
            of_all[1:count, :, :count] = MULTIPLIED * between.unsqueeze(1)
            bias["g"][clock] = OPEN
            other = 0 if direction > 0 else 1
            of_all[width, other, [highest, lowest]] = WIDTHS / KEPT
            bias["g"][width], bias["f"][width] = -2 * ABOVE * WIDTHS, OPEN
            before["i"][width, clock] = -2 * OPEN / started
            before["o"][:count, width], before["o"][:count, clock] = -shut[0], -(STEEP + OPEN) / started
            units = slice(width + 1, None)
            bias["o"][units], before["o"][units, width] = -OPEN, shut
            before["o"][units, clock] = (steep + OPEN) / started
            slope = SLOPE * RANGE / narrow / small
            of_all[units, :, own] = (slope * (1 + 1 / length) / 2).unsqueeze(1)
            of_all[units, :, total] = (-slope / length).unsqueeze(1)

        # Share of each halving in 1 / width, by least squares over narrow lists.
        sizes = narrow[0] * torch.logspace(0.3 - HALVINGS, -0.1, 200, base=2, dtype=t.dtype).unsqueeze(1)
        opened = (steep + shut * _twice(WIDTHS * sizes)).sigmoid()
        shares = torch.linalg.lstsq(sizes * opened, torch.ones_like(sizes)).solution.squeeze(1)
        of_rank = self.project.weight.unflatten(1, (length, 2, -1)).diagonal()
        of_rank[:, 0] = 1 / (4 * small * length)
        of_rank[:, 1:count] = -1 / (4 * small * length * MULTIPLIED)
        of_rank[:, width + 1 :] = (-(1 - 1 / length) * shares * narrow / (2 * SLOPE)).unsqueeze(1)
        self.project.bias.fill_((length + 1) / (2 * length))

    def _gates(self, layer: str) -> list[dict[str, Tensor]]:
        """Weights, biases and weights of the previous states, each by gate."""
        names = ("weight_ih", "bias_ih", "weight_hh")
        parameters = (getattr(self.recurrent, f"{name}_{layer}") for name in names)
        return [dict(zip("ifgo", parameter.chunk(4), strict=True)) for parameter in parameters]

    def ranks(self, scores: Tensor) -> Tensor:
        states, _ = self.recurrent(scores.unsqueeze(-1))
        projected: Tensor = self.project(states.flatten(start_dim=1))
        return projected


class LargeLSTMSorter(LSTMSorter):
    """512 units a direction: 18.6 · 10⁶ parameters at L = 100."""

    architecture = "lstm-large"
    units = 512


def thresholds(count: int) -> Tensor:
    """Thresholds at ascending quantiles of generated scores and some beyond their range, float64."""
    generator = seeded("thresholds")
    scores = draw_lists(generator, LISTS, 100).flatten()
    outer = DEVIATION * torch.randn(int(OUTER * len(scores)), generator=generator)
    return torch.cat([scores, outer]).double().quantile((torch.arange(count, dtype=torch.float64) + 0.5) / count)


def _twice(values: Tensor) -> Tensor:
    """Output of an LSTM cell that forgets everything, with open gates."""
    return values.tanh().tanh()
