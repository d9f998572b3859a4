"""Nets and tasks of scripts/reproduce/sodeep.py, with a comparison of losses for each task.

A task's function trains the same net by each loss from the same first weights, which a seed decides, and returns what
the paper reports of it by the loss's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from sklearn.metrics import average_precision_score
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, normalize

from apsvm.torch import (
    APHingeLoss,
    DirectLoss,
    RankingRampLoss,
    RankTripletLoss,
    SmoothAPLoss,
    SoDeepMAPLoss,
    SpearmanLoss,
)
from apsvm.torch.ranks import exact_ranks

#: Loss of (scores, target).
Loss = Callable[[Tensor, Tensor], Tensor]
#: What a step goes down: of the net, its rows and their targets, and the step.
Objective = Callable[[nn.Module, Tensor, Tensor, int], Tensor]
Results = Mapping[str, float]


@dataclass(frozen=True)
class Split:
    """Rows to train on and to test on: X (n, d) float32, Y (n, …)."""

    X: Tensor
    Y: Tensor
    X_test: Tensor
    Y_test: Tensor


def halved(X: np.ndarray, Y: np.ndarray, seed: int) -> Split:
    """Two random halves, standardised by the first."""
    order = np.random.default_rng(seed).permutation(len(X))
    first, second = np.array_split(order, 2)
    mean, deviation = X[first].mean(0), X[first].std(0)
    Z = torch.tensor((X - mean) / np.where(deviation > 0, deviation, 1), dtype=torch.float32)
    target = torch.tensor(Y)
    return Split(Z[first], target[first], Z[second], target[second])


def net(inputs: int, outputs: int, hidden: Sequence[int], seed: int) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        widths = [inputs, *hidden]
        layers = [part for d in pairwise(widths) for part in (nn.Linear(*d), nn.ReLU())]
        return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))


def fit(model: nn.Module, data: Split, objective: Objective, *, batch: int, steps: int, seed: int) -> None:
    """``steps`` steps of Adam on batches of the rows to train on."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        rows = torch.randperm(len(data.X), generator=generator)[:batch]
        optimizer.zero_grad()
        objective(model, data.X[rows], data.Y[rows], step).backward()
        optimizer.step()
        schedule.step()


def of_scores(loss: Loss, model: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """The loss of a net with one output."""
    return loss(model(x).squeeze(1), y)


def cross_entropy(scores: Tensor, target: Tensor) -> Tensor:
    return binary_cross_entropy_with_logits(scores, target.to(scores.dtype))


# ---- Figure 6: average precision on made rows --------------------------------------------------------------------


def song(seed: int, rows: int = 4000) -> Split:
    """Rows after Song, Schwing, Zemel, Urtasun (2016): x ~ N(0, I) in ten dimensions, scored by a random net of four
    layers, the best fifth positive; in the training half a fifth of the positives are swapped with negatives."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 10))
    hidden = X
    for _ in range(3):
        hidden = np.maximum(hidden @ rng.normal(size=(10, 10)) * np.sqrt(2 / 10), 0)
    scores = hidden @ rng.normal(size=10)
    Y = scores > np.quantile(scores, 0.8)
    split = halved(X, Y, seed)
    noisy = split.Y.clone()
    positive, negative = np.flatnonzero(noisy.numpy()), np.flatnonzero(~noisy.numpy())
    swapped = len(positive) // 5
    noisy[rng.choice(positive, swapped, replace=False)] = False
    noisy[rng.choice(negative, swapped, replace=False)] = True
    return Split(split.X, noisy, split.X_test, split.Y_test)


def figure_6(sorters: Mapping[str, Callable[[Tensor], Tensor]], seed: int, steps: int, length: int) -> Results:
    """Test AP; batches are lists of ``length`` rows, which trained sorters of one length need."""
    losses: dict[str, Loss] = {
        "AP hinge": APHingeLoss(),
        "binary cross-entropy": cross_entropy,
        "AP ramp": RankingRampLoss(),
        "direct, ε = .3": DirectLoss(),
        "Smooth-AP": SmoothAPLoss(),
    }
    for name, sorter in sorters.items():
        losses[f"SoDeep {name}, AP"] = SoDeepMAPLoss(sorter)
        losses[f"SoDeep {name}, eq. 7"] = SoDeepMAPLoss(sorter, form="seed")
    data, results = song(seed), {}
    for name, loss in losses.items():
        model = net(10, 1, (10, 10, 10), seed)
        fit(model, data, partial(of_scores, loss), batch=length, steps=steps, seed=seed)
        with torch.no_grad():
            results[name] = 100 * average_precision_score(data.Y_test, model(data.X_test).squeeze(1))
    return results


# ---- Table 2: Spearman correlation -------------------------------------------------------------------------------


def regression(loss: Loss, early: int, model: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """The loss; beside a Spearman loss L1 in the first steps, as in the paper."""
    scores = model(x).squeeze(1)
    value = loss(scores, y)
    return value + nn.functional.l1_loss(scores, y) if step < early and isinstance(loss, SpearmanLoss) else value


def table_2(X: np.ndarray, y: np.ndarray, sorters: Mapping[str, str], seed: int, steps: int) -> Results:
    """Test Spearman of a net (64, 32) on standardised targets, in hundredths."""
    y = (y - y.mean()) / y.std()
    losses: dict[str, Loss] = {"squares": nn.MSELoss(), "L1": nn.L1Loss()}
    losses |= {f"SoDeep {name}": SpearmanLoss(sorter) for name, sorter in sorters.items()}
    data, results = halved(X, y.astype(np.float32), seed), {}
    for name, loss in losses.items():
        model = net(X.shape[1], 1, (64, 32), seed)
        fit(model, data, partial(regression, loss, steps // 10), batch=100, steps=steps, seed=seed)
        with torch.no_grad():
            ranks = exact_ranks(torch.stack([model(data.X_test).squeeze(1).double(), data.Y_test.double()]))
        results[name] = 100 * float(torch.corrcoef(ranks)[0, 1])
    return results


# ---- Table 4: mean average precision over labels -----------------------------------------------------------------


def soft_margin(loss: SoDeepMAPLoss | None, first: int, model: nn.Module, x: Tensor, y: Tensor, step: int) -> Tensor:
    """Cross-entropy, and from the step ``first`` on the loss over the rows of each label beside it."""
    scores = model(x)
    value = cross_entropy(scores, y)
    if loss is None or step < first:
        return value
    beside = loss(scores, y, dim=0)
    # Equation 7 is a sum over the positives, which is as large as there are many.
    return value + (beside if loss.form == "ap" else beside / y.sum(0).clamp(min=1).double().mean())


def table_4(data: Split, sorters: Mapping[str, str], seed: int, steps: int) -> Results:
    """Test mAP of a net (64) with an output a label, trained by cross-entropy alone and with each loss beside it, from
    the first step on or in the second half."""
    losses: dict[str, tuple[SoDeepMAPLoss | None, int]] = {"soft margin": (None, 0)}
    for name, sorter in sorters.items():
        ap, seed_form = SoDeepMAPLoss(sorter), SoDeepMAPLoss(sorter, form="seed")
        losses[f"soft margin + SoDeep {name}, AP"] = ap, 0
        losses[f"soft margin, then + SoDeep {name}, AP"] = ap, steps // 2
        losses[f"soft margin + SoDeep {name}, eq. 7"] = seed_form, 0
        losses[f"soft margin, then + SoDeep {name}, eq. 7"] = seed_form, steps // 2
    results = {}
    for name, (loss, first) in losses.items():
        model = net(data.X.shape[1], data.Y.shape[1], (64,), seed)
        fit(model, data, partial(soft_margin, loss, first), batch=100, steps=steps, seed=seed)
        with torch.no_grad():
            results[name] = 100 * average_precision_score(data.Y_test, model(data.X_test))
    return results


# ---- Table 3: recall at 1 between two views ----------------------------------------------------------------------


def hardest_triplet(S: Tensor, margin: float = 0.2) -> Tensor:
    """The triplet loss on similarities with the hardest negative, both ways: what the paper's rivals train with."""
    correct = S.diagonal()
    wrong = S - 2.0 * torch.eye(len(S))
    ways = [(margin + wrong.amax(dim) - correct).relu().mean() for dim in (0, 1)]
    return ways[0] + ways[1]


class TwoViews(nn.Module):
    """A net for each view, into 32 dimensions; the cosines of what they make of the rows."""

    def __init__(self, data: Split, seed: int) -> None:
        super().__init__()
        self.first, self.second = (
            net(part.shape[1], 32, (64,), 2 * seed + at) for at, part in enumerate((data.X, data.Y))
        )

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return normalize(self.first(x), dim=1) @ normalize(self.second(y), dim=1).t()


def of_similarities(loss: Callable[[Tensor], Tensor], model: TwoViews, x: Tensor, y: Tensor, step: int) -> Tensor:
    return loss(model(x, y))


def table_3(data: Split, sorters: Mapping[str, str], seed: int, steps: int) -> dict[str, list[float]]:
    """R@1, R@5, R@10 of finding the second view by the first, then of the first by the second, in test subsets of 100;
    ``X`` are first views and ``Y`` second ones, row by row."""
    losses: dict[str, Callable[[Tensor], Tensor]] = {"triplets on similarities": hardest_triplet}
    losses |= {f"SoDeep {name}, triplets on ranks": RankTripletLoss(sorter) for name, sorter in sorters.items()}
    results = {}
    for name, loss in losses.items():
        model = TwoViews(data, seed)
        fit(model, data, partial(of_similarities, loss), batch=100, steps=steps, seed=seed)
        with torch.no_grad():
            ranks = [
                100 * exact_ranks(S).diagonal()
                for x, y in zip(data.X_test.split(100), data.Y_test.split(100), strict=True)
                if len(x) == 100
                for S in (model(x, y), model(x, y).t())
            ]
        ways = torch.cat(ranks[0::2]), torch.cat(ranks[1::2])
        results[name] = [100 * float((way < k + 0.5).double().mean()) for way in ways for k in (1, 5, 10)]
    return results
