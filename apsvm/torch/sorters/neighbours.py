"""A sorter that knows what a rank is: exact comparisons, softened as far as a score's nearest neighbours allow.

rank_i = (1 + Σ_{j≠i} φ_i(z_j − z_i)) / L,    φ_i(d) = 1 − T_i(d) for d > 0, T_i(−d) below, ½ at 0,
T_i(d) = ½ Σ_k p_ik e^{−d / w_ik},             z = standardised scores

Only the widths w and weights p are learned: a net of two small layers gives them for each score from the distances to
its eight nearest neighbours, so that a step is as soft as its surroundings allow, whatever the list's length and
distribution: wide where scores lie apart, narrow where they crowd. Permuting a list permutes its ranks, equal scores
have equal ranks, and shifting or scaling a list changes nothing: so two scores, of which only the order is left, would
have no gradient, and are refused. O(L²) a list.

L1 alone would teach it steps without a slope. It learns to be right where it is, to within ``AIM`` of a place, and by
its derivative about the ranks that the list has after random moves (``error``).
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from apsvm.torch.ranks import exact_ranks, standardized
from apsvm.torch.sorters.base import Sorter

#: Neighbours that the net sees, the one whose distance is the unit of width, the net's width, and parts of a step.
NEAREST, UNIT, WIDTH, PARTS = 8, 4, 32, 3
#: Mean distance of neighbours times L in a list of normal scores, about; and the part of it below which distances blur.
SPACING, BLUR = 3.5, 0.02
#: Entries of pairs × parts that are in memory at once.
CHUNK = 1 << 21
#: The error, in places, that it may have at lists of 100, and at the longest; it falls with L^0.2 towards short ones.
AIM, LARGEST_AIM = 0.15, 0.2
#: Weight of what its slopes miss in size, beside how far they point astray.
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
        if length == 1:  # of which there is one order
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
        else:  # what a part needs is computed again on the way back
            softened = torch.cat([checkpoint(_softened, *part, use_reentrant=False) for part in parts])
        places = torch.arange(1, length + 1, device=z.device) + softened
        return torch.zeros_like(z).scatter(1, order, places / length)

    def error(self, scores: Tensor, ranks: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        """Training error of values and slopes on the ranks here and nearby (see the module), and L1."""
        # As many lists again of normal scores, on which climb is judged.
        lists, length = scores.shape
        normal = torch.randn(scores.shape, generator=generator).to(scores)
        scores, ranks = torch.cat([scores, normal]), torch.cat([ranks, exact_ranks(normal)])
        scores.requires_grad_()
        out = self(scores)
        # Right where a list is, to within ``aim`` places on made ones.
        aim = min(LARGEST_AIM, AIM * (length / 100) ** 0.2)
        l1 = (out - ranks)[:lists].abs().mean()
        error = 10 * (length * l1 - aim).relu()
        # About right by its slopes where a list would be, moved by half a place to a third of all.
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
    """(B, L, NEAREST) distances of descending scores to the nearest others, ascending; the last one again where there
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
