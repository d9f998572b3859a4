"""A sorter by attention: what each score is among the others, whatever their order and number.

A standardised score z is seen as sines and cosines of 16 frequencies; two blocks of attention over all scores of the
list, 32 wide, turn them into o; the rank is σ(o − 1.7 z) + 1/(2L), where σ(−1.7 z) would be the share of normal scores
above z, and 1/(2L) is what the score itself adds to it. There are no positions: permuting a list permutes its ranks.
O(L²) a list, any length; 18,273 parameters.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from apsvm.torch.ranks import standardized
from apsvm.torch.sorters.base import Sorter

WIDTH, HEADS, BLOCKS = 32, 4, 2
#: Periods of the features, in standard deviations.
FREQUENCIES = 16
LONGEST, SHORTEST = 16.0, 0.125
#: σ(−1.7 z) is the normal distribution's function at −z to within .01.
LOGISTIC_SLOPE = 1.7


class _Block(nn.Module):
    """Attention and a small net, each on normalised inputs and added to them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.net = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        parts = self.query_key_value(self.norm_1(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # each (B, heads, L, width / heads)
        x = x + self.out(scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(start_dim=2))
        added: Tensor = x + self.net(self.norm_2(x))
        return added


class AttentionSorter(Sorter):
    """See the module."""

    architecture = "attention"
    fixed_length = False

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        self.embed = nn.Linear(1 + 2 * FREQUENCIES, WIDTH)
        self.blocks = nn.Sequential(*(_Block() for _ in range(BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.score = nn.Linear(WIDTH, 1)

    def ranks(self, scores: Tensor) -> Tensor:
        z = standardized(scores).unsqueeze(-1)
        steps = torch.arange(FREQUENCIES, device=z.device, dtype=torch.float64) / (FREQUENCIES - 1)
        periods = LONGEST * (SHORTEST / LONGEST) ** steps
        angles = z * (2 * torch.pi / periods).to(z.dtype)
        features = torch.cat([z, angles.sin(), angles.cos()], dim=-1)
        out: Tensor = self.score(self.norm(self.blocks(self.embed(features))))
        return (out - LOGISTIC_SLOPE * z).squeeze(-1).sigmoid() + 0.5 / scores.shape[-1]
