"""The blackbox loss: exact values, and the interpolation's gradient."""

from __future__ import annotations

import pytest
import torch
from sklearn.metrics import average_precision_score

from apsvm.torch import BlackboxAPLoss
from apsvm.torch.ranks import exact_ranks


def one_list(seed, n):
    generator = torch.Generator().manual_seed(seed)
    target = torch.rand(n, generator=generator) < 0.3
    target[0], target[1] = True, False
    return torch.randn(n, generator=generator, dtype=torch.float64), target


def test_without_a_margin_it_is_average_precision():
    for seed in range(10):
        scores, target = one_list(seed, 50)
        expected = 1 - average_precision_score(target.numpy(), scores.numpy())
        for normalize in (True, False):
            value = BlackboxAPLoss(margin=0.0, normalize=normalize)(scores, target)
            assert value.item() == pytest.approx(expected, abs=1e-12)


def test_a_margin_is_kept():
    scores, target = torch.tensor([0.6, 0.5, 0.0]), torch.tensor([True, False, False])
    assert BlackboxAPLoss(margin=0.09, normalize=False)(scores, target).item() == pytest.approx(0.0, abs=1e-12)
    assert BlackboxAPLoss(margin=0.11, normalize=False)(scores, target).item() == 0.5


@pytest.mark.parametrize("factor", [1.0, 65536.0])
def test_the_gradient_is_that_of_the_interpolation(factor):
    scores, target = one_list(2, 40)
    scores.requires_grad_()
    loss = BlackboxAPLoss(lam=3.0, margin=0.0, normalize=False)
    (gradient,) = torch.autograd.grad(factor * loss(scores, target), scores)
    ranks = torch.empty(40, dtype=torch.float64)
    ranks[scores.argsort(descending=True)] = torch.arange(1.0, 41.0, dtype=torch.float64)
    among = (ranks[target, None] >= ranks[target]).sum(1)
    r = (ranks / 40).requires_grad_()
    value = 1 - (among / 40 / r[target]).mean()
    (slope,) = torch.autograd.grad(value, r)
    moved = torch.empty(40, dtype=torch.float64)
    moved[(scores + 3.0 * slope).argsort(descending=True)] = torch.arange(1.0, 41.0, dtype=torch.float64)
    torch.testing.assert_close(gradient, factor * (moved - ranks) / (40 * 3.0))
    assert gradient.any()


def test_ranks_of_the_rows_that_count():
    scores = torch.tensor([[2.0, 5.0, 2.0, 1.0, 2.0], [-torch.inf, 0.0, 9.0, 9.0, 1.0]])
    counted = torch.tensor([[True] * 5, [True, True, True, False, True]])
    assert exact_ranks(scores, counted)[0].tolist() == pytest.approx([0.6, 0.2, 0.6, 1.0, 0.6])
    assert exact_ranks(scores, counted)[1].tolist() == [1.0, 0.75, 0.25, 0.0, 0.5]


@pytest.mark.parametrize(("options", "says"), [({"lam": 0.0}, "lam must be"), ({"margin": -0.1}, "margin must be")])
def test_what_cannot_be(options, says):
    with pytest.raises(ValueError, match=says):
        BlackboxAPLoss(**options)
