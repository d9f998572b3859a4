"""A sorter by pairwise comparisons, each softened as far as the score's nearest neighbours allow.

rank_i = (1 + Σ_{j≠i} φ_i(z_j − z_i)) / L,    φ_i(d) = 1 − T_i(d) for d > 0, T_i(−d) below, ½ at 0,
T_i(d) = ½ Σ_k p_ik e^{−d / w_ik},             z = standardised scores

Only the widths w and weights p are learned. A net of two small layers computes them for each score from the distances
to its eight nearest neighbours: steps are wide between distant scores and narrow between close ones. Permuting a list
permutes its ranks, equal scores have equal ranks, and shifting or scaling a list changes nothing. Lists of two scores
would therefore have no gradient, and are refused. O(L²) for each list.

Trained on L1 alone, the steps would become too steep for a gradient. The training error (``error``) allows ``AIM`` of a
place, and also compares the derivative with the ranks after random moves of the scores.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from apsvm.torch.ranks import exact_ranks, standardized
from apsvm.torch.sorters.base import Sorter

#: Number of neighbours the net sees; the neighbour whose distance is the unit of width; units of the net; terms of a
#: step.
NEAREST, UNIT, WIDTH, PARTS = 8, 4, 32, 3
#: Approximate mean distance of neighbours times L in a list of normal scores, and the fraction of it below which
#: distances count as equal.
SPACING, BLUR = 3.5, 0.02
#: Maximum number of pairs × terms in memory.
CHUNK = 1 << 21
#: Allowed error, in places, for lists of 100, and for the longest; it falls as L^0.2 for shorter ones.
AIM, LARGEST_AIM = 0.15, 0.2
#: Weight of the error of the slopes' size, relative to that of their direction.
MISSED = 0.5
TINY = 1e-12


class NeighboursSorter(Sorter):
    """See the module."""

    architecture = "neighbours"
    fixed_length = False
    lengths = range(3, 1001)

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        last = nn.Linear(WIDTH, 2 * PARTS)
        with torch.no_grad():  # from a fifth of the unit to one and a half of it, about the same everywhere
            last.weight.mul_(0.1)
            last.bias[:PARTS] = torch.linspace(-1.5, 0.5, PARTS)
        self.net = nn.Sequential(
            nn.Linear(NEAREST + 1, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), last
        )  # fmt: skip

    def ranks(self, scores: Tensor) -> Tensor:
        length = scores.shape[1]
        if length == 1:  # only one order
            return scores * 0.0 + 1.0
        self.check_length(length)
        z = standardized(scores)
        order = z.argsort(dim=1, descending=True, stable=True)
        z = z.gather(1, order)
        blur = BLUR * SPACING / length
        near = nearest(z)
        unit = near[..., UNIT - 1 : UNIT] + blur
        seen = torch.cat([(near / unit + BLUR).log(), torch.full_like(unit, math.log(length) / 3 - 1)], dim=2)
        widths, weights = self.net(seen).split(PARTS, dim=2)
        widths, weights = unit * widths.exp(), weights.softmax(dim=2)
        lists = max(1, CHUNK // (PARTS * length**2))
        parts = zip(z.split(lists), widths.split(lists), weights.split(lists), strict=True)
        if len(z) <= lists:
            softened = _softened(z, widths, weights)
        else:  # terms are recomputed in the backward pass
            softened = torch.cat([checkpoint(_softened, *part, use_reentrant=False) for part in parts])
        places = torch.arange(1, length + 1, device=z.device) + softened
        return torch.zeros_like(z).scatter(1, order, places / length)

    def error(self, scores: Tensor, ranks: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        """Training error of values and slopes on the ranks here and nearby (see the module), and L1."""
        # The same number of lists of normal scores, as used for climb.
        lists, length = scores.shape
        normal = torch.randn(scores.shape, generator=generator).to(scores)
        scores, ranks = torch.cat([scores, normal]), torch.cat([ranks, exact_ranks(normal)])
        scores.requires_grad_()
        out = self(scores)
        # Error of the ranks, beyond ``aim`` places for the generated lists.
        aim = min(LARGEST_AIM, AIM * (length / 100) ** 0.2)
        l1 = (out - ranks)[:lists].abs().mean()
        error = 10 * (length * l1 - aim).relu()
        # Error of the slopes, by ranks after moves from half a place to a third of the list.
        share = torch.rand(2 * lists, 1, generator=generator).to(scores)
        moves = torch.randn(scores.shape, generator=generator).to(scores)
        moves *= 0.5 * (max(1.0, length / 3) / 0.5) ** share * SPACING / length * scores.detach().std(1, keepdim=True)
        change = exact_ranks(scores + moves) - ranks
        moved = change.square().sum(1)
        dual = torch.zeros_like(out, requires_grad=True)
        (slopes,) = torch.autograd.grad(out, scores, dual, create_graph=True)
        (foreseen,) = torch.autograd.grad(slopes, dual, moves, create_graph=True)
        missed = (foreseen - change).square().sum(1) / moved.clamp(min=TINY)
        (uphill,) = torch.autograd.grad(out, scores, change, create_graph=True)
        astray = 1 - (uphill * moves).sum(1) / (uphill.norm(dim=1) * moves.norm(dim=1) + TINY)
        of_slopes = torch.where(moved > 0, MISSED * (1 + missed).log() + astray, 0.0)
        return error + of_slopes.sum() / (moved > 0).sum().clamp(min=1), l1


def nearest(z: Tensor) -> Tensor:
    """(B, L, NEAREST) distances of descending scores to the nearest others, ascending; the last is repeated if there
    are fewer."""
    reach = min(NEAREST, z.shape[1] - 1)
    far = 1e4
    above = pad(z, (reach, 0), value=far).unfold(1, reach, 1)[:, :-1] - z.unsqueeze(2)
    below = z.unsqueeze(2) - pad(z, (0, reach), value=-far).unfold(1, reach, 1)[:, 1:]
    near = torch.cat([above, below], dim=2).topk(reach, dim=2, largest=False).values
    return torch.cat([near, near[..., -1:].expand(-1, -1, NEAREST - reach)], dim=2)


def _softened(z: Tensor, widths: Tensor, weights: Tensor) -> Tensor:
    """Σ_{j below} T_i − Σ_{j above} T_i of descending scores (B, L): the places by which soft steps move each."""
    length = z.shape[1]
    side = torch.ones(length, length, dtype=z.dtype, device=z.device).triu(1)
    side = 0.5 * (side - side.t())
    away = -(z.unsqueeze(2) - z.unsqueeze(1)).abs()
    moved = torch.zeros_like(z)
    for width, weight in zip(widths.split(1, dim=2), weights.split(1, dim=2), strict=True):
        moved = moved + weight.squeeze(2) * (torch.exp(away / width) * side).sum(dim=2)
    return moved
