"""Smooth-AP and recall against their definitions, all pairs at once, and their limits."""

from __future__ import annotations

import math

import pytest
import torch
from over import over

from apsvm.torch import RecallAtKLoss, SmoothAPLoss
from apsvm.torch.soft_rank import KERNELS


def share_above(differences, kernel):
    if kernel == "logistic":
        return torch.sigmoid(differences)
    half = 0.5 * torch.exp(-differences.abs())
    return torch.where(differences >= 0, 1 - half, half)


def ranks_of_positives(scores, target, tau, kernel):
    """(among all, among the positives), of one list, by the definition."""
    shares = share_above((scores - scores[:, None]) / tau, kernel)
    everywhere = 1 + shares.sum(1) - shares.diagonal()
    among = 1 + shares[:, target].sum(1) - shares.diagonal()
    return everywhere[target], among[target]


def smooth_ap(scores, target, tau, kernel):
    everywhere, among = ranks_of_positives(scores, target, tau, kernel)
    return 1 - (among / everywhere).mean()


def one_list(seed, n, offset=0.0):
    generator = torch.Generator().manual_seed(seed)
    target = torch.rand(n, generator=generator) < 0.2
    target[0], target[1] = True, False
    return torch.randn(n, generator=generator, dtype=torch.float64) + target + offset, target


@pytest.mark.slow
@over("kernel", KERNELS)
@over("tau", [1e-3, 0.1, 1.0, 10.0])
@over(("n", "offset"), [(2, 0.0), (40, 0.0), (2000, 0.0)])
def test_smooth_ap_is_its_definition(kernel, tau, n, offset):
    scores, target = one_list(n, n, offset)
    scores.requires_grad_()
    value, expected = SmoothAPLoss(tau, kernel)(scores, target), smooth_ap(scores, target, tau, kernel)
    assert value.item() == pytest.approx(expected.item(), abs=1e-12)
    (gradient,) = torch.autograd.grad(value, scores)
    (wanted,) = torch.autograd.grad(expected, scores)
    torch.testing.assert_close(gradient, wanted, rtol=1e-9, atol=1e-10 / tau)


@over("kernel", KERNELS)
@over("shape", [(40,), (3, 40)])
def test_the_default_width_is_a_tenth_of_the_deviation(kernel, shape):
    scores, target = one_list(7, 120)
    scores, target = (5 * scores[: math.prod(shape)]).reshape(shape).requires_grad_(), target[: math.prod(shape)]
    mask = torch.arange(40).expand(shape) < 35
    value = SmoothAPLoss(kernel=kernel)(scores, target.reshape(shape), mask)
    (gradient,) = torch.autograd.grad(value, scores)
    expected = [
        smooth_ap(row, is_positive, 0.1 * row.std(correction=0), kernel)
        for row, is_positive in zip(scores.reshape(-1, 40)[:, :35], target.reshape(-1, 40)[:, :35], strict=True)
    ]
    mean = torch.stack(expected).mean()
    assert value.item() == pytest.approx(mean.item(), abs=1e-12)
    torch.testing.assert_close(gradient, torch.autograd.grad(mean, scores)[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_far_from_zero(kernel):
    scores, target = one_list(3, 200)
    scores = (scores * 2**30).round() / 2**30
    loss = SmoothAPLoss(1.0, kernel)
    assert loss(scores + 2.0**20, target).item() == pytest.approx(loss(scores, target).item(), abs=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_average_precision_in_the_limit(kernel):
    from sklearn.metrics import average_precision_score

    scores, target = one_list(5, 300)
    expected = 1 - average_precision_score(target.numpy(), scores.numpy())
    assert SmoothAPLoss(1e-8, kernel)(scores, target).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_perfect_ranking_costs_nothing(kernel):
    """Whatever the numbers of rows of the classes."""
    for n_pos in (1, 2, 7):
        scores, target = -torch.arange(20.0), torch.arange(20) < n_pos
        assert SmoothAPLoss(0.01, kernel)(scores, target).item() == pytest.approx(0.0, abs=1e-6)


def test_rows_of_a_batch_against_each_other():
    generator = torch.Generator().manual_seed(1)
    embeddings = torch.nn.functional.normalize(torch.randn(12, 4, generator=generator, dtype=torch.float64), dim=1)
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 4])
    similarities = embeddings @ embeddings.T
    same, others = labels[:, None] == labels, ~torch.eye(12, dtype=torch.bool)
    value = SmoothAPLoss(0.01)(similarities, same, others)
    expected = [
        smooth_ap(similarities[i][others[i]], same[i][others[i]], 0.01, "laplace")
        for i in range(12)
        if same[i][others[i]].any()
    ]
    assert len(expected) == 11
    assert value.item() == pytest.approx(torch.stack(expected).mean().item(), abs=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_recall_is_its_definition(kernel):
    scores, target = one_list(9, 60)
    everywhere, _ = ranks_of_positives(scores, target, 0.3, kernel)
    expected = [1 - torch.sigmoid((k + 0.5 - everywhere) / 0.7).sum() / min(k, int(target.sum())) for k in (1, 5, 40)]
    value = RecallAtKLoss((1, 5, 40), 0.3, 0.7, kernel)(scores, target)
    assert value.item() == pytest.approx(torch.stack(expected).mean().item(), abs=1e-12)


def test_recall_in_the_limit():
    scores, target = one_list(11, 100)
    in_order = target[scores.argsort(descending=True)]
    for k in (1, 3, 10, 100):
        expected = 1 - int(in_order[:k].sum()) / min(k, int(target.sum()))
        assert RecallAtKLoss([k], 1e-9, 1e-6)(scores, target).item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"ks": ()}, "ks must be one or more numbers from 1 on"),
        ({"ks": (3, 0)}, "ks must be one or more numbers from 1 on"),
        ({"tau": -1.0}, "tau must be a positive number"),
        ({"tau_rank": 0.0}, "tau_rank must be a positive number"),
        ({"kernel": "box"}, "kernel must be one of"),
    ],
)
def test_what_cannot_be(options, says):
    with pytest.raises(ValueError, match=says):
        RecallAtKLoss(**options)


def test_half_a_place():
    with pytest.raises(TypeError):
        RecallAtKLoss((1.5,))
