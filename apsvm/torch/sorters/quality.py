"""Quality of a sorter, by two figures, since one alone misleads.

L1 : mean of |f(y)_i − rk(y)_i| over generated lists, as in the paper's Table 1. climb : mean Spearman correlation with
random targets after 100 steps of Adam on the scores, along the gradient of f's squared error. A sorter with steep steps
has a small L1 and a low climb.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from apsvm.torch.ranks import exact_ranks
from apsvm.torch.score_lists import draw_lists, seeded

#: A function of (B, L) scores to (B, L) ranks, with a gradient: a ``Sorter`` or any other.
AnySorter = Callable[[Tensor], Tensor]

#: Number of lists of the climb, number of steps, and step length: a twentieth of the initial scores' deviation.
CLIMBS, STEPS, STEP_LENGTH = 32, 100, 0.05
#: Climb that chance alone may reach: over 32 lists of 10 scores its standard deviation is .06.
CLIMB_OF_CHANCE = 0.1
#: Maximum number of scores passed to the sorter at a time.
SCORES_AT_ONCE = 50_000


@dataclass(frozen=True)
class SorterQuality:
    """Quality of a sorter on lists of one length.

    length : L
    lists : number of generated lists for L1
    l1 : mean absolute error of a normalised rank
    climb : Spearman correlation after the climb, −1 to 1
    milliseconds : wall-clock time of forward and backward pass for each list, in batches of 32
    """

    length: int
    lists: int
    l1: float
    climb: float
    milliseconds: float


def judge_sorter(
    sorter: AnySorter,
    length: int,
    *,
    lists: int = 10_000,
    seed: int = 0,
    device: str | torch.device = "cpu",
    climb_steps: int | None = None,
) -> SorterQuality:
    """L1 on ``lists`` generated lists, and the climb. Training never draws the same lists.

    ``climb_steps`` other than 100 are for quick checks; such figures are not comparable.
    """
    steps = STEPS if climb_steps is None else climb_steps
    total = 0.0
    rows = max(1, SCORES_AT_ONCE // length)
    for first in range(0, lists, rows):
        scores = draw_lists(seeded("judging", seed, first), min(rows, lists - first), length)
        with torch.no_grad():
            error = (sorter(scores.to(device)).double().cpu() - exact_ranks(scores.double())).abs()
        total += float(error.mean(dim=1).sum())
    climb, seconds = _climb(sorter, length, seed, device, steps)
    return SorterQuality(length, lists, total / lists, climb, 1e3 * seconds / (CLIMBS * steps))


def climb_caution(climb: float) -> str | None:
    """Caution for a sorter of this climb; None if its gradient is useful, or was not measured (NaN)."""
    if not climb <= CLIMB_OF_CHANCE:
        return None
    return (
        f"its climb is {climb:.3f}: its gradient is useless, and a loss through it trains no network. Train it "
        "longer, or use 'laplace(10)', which needs no training"
    )


def spearman(ranks: Tensor, other: Tensor) -> Tensor:
    """Spearman's correlation of normalised ranks (…, L) without ties, L ≥ 2: 1 − 6 L² MSE / (L² − 1)."""
    length = ranks.shape[-1]
    return 1 - 6 * length**2 / (length**2 - 1) * (ranks - other).square().mean(dim=-1)


def _climb(sorter: AnySorter, length: int, seed: int, device: str | torch.device, steps: int) -> tuple[float, float]:
    """Correlation reached, and seconds taken."""
    if length < 2:
        return torch.nan, 0.0
    start, targets = torch.randn(2, CLIMBS, length, generator=seeded("climb", seed)).to(device)
    target = exact_ranks(targets)
    scores = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([scores], lr=STEP_LENGTH)
    began = time.perf_counter()
    for _ in range(steps):
        # Not backward(), which would give the sorter's parameters a gradient.
        error = (sorter(scores) - target).square().mean(dim=1).sum()
        (scores.grad,) = torch.autograd.grad(error, [scores])
        optimizer.step()
    correlation = spearman(exact_ranks(scores.double()), exact_ranks(targets.double())).mean()
    return float(correlation), time.perf_counter() - began
