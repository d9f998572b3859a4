"""Soft ranks against their definition, all pairs at once."""

from __future__ import annotations

import copy

import pytest
import torch
from over import over

from apsvm.torch import soft_rank
from apsvm.torch.soft_rank import SoftRank, decaying_sums, soft_counts, soft_ranks


def laplace(d):
    return torch.where(d >= 0, 1 - 0.5 * torch.exp(-d.abs()), 0.5 * torch.exp(-d.abs()))


def dense_ranks(scores, tau, kernel):
    """1 + Σ_{j≠i} K((s_j − s_i)/τ), (b, n)."""
    differences = (scores.unsqueeze(1) - scores.unsqueeze(2)) / tau
    shares = laplace(differences) if kernel == "laplace" else torch.sigmoid(differences)
    return 0.5 + shares.sum(2)


def lists(seed, b, n, *, tied=False):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(b, n, generator=generator, dtype=torch.float64)
    return (scores * 2).round() / 2 if tied else scores


@pytest.mark.slow
@over("kernel", ["laplace", "logistic"])
@over("tau", [1e-3, 0.1, 1.0, 10.0])
@over(("b", "n", "tied"), [(1, 1, False), (5, 2, True), (4, 33, True), (2, 700, False), (1, 2000, False)])
def test_values_and_gradients(kernel, tau, b, n, tied):
    scores = lists(n, b, n, tied=tied).requires_grad_()
    slopes = torch.randn(b, n, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    ranks, expected = soft_ranks(scores, tau, kernel), dense_ranks(scores, tau, kernel)
    torch.testing.assert_close(ranks, expected, rtol=1e-12, atol=1e-12)
    (gradient,) = torch.autograd.grad(ranks, scores, slopes)
    # Of the definition away from ties: |d| has no derivative at 0.
    (wanted,) = torch.autograd.grad(expected, scores, slopes)
    if not tied or kernel == "logistic":
        torch.testing.assert_close(gradient, wanted, rtol=1e-9, atol=1e-9 / tau)


@pytest.mark.parametrize("kernel", ["laplace", "logistic"])
def test_derivatives_of_any_order(kernel):
    scores = lists(3, 2, 5).requires_grad_()
    function = lambda s: soft_ranks(s, 0.7, kernel)  # noqa: E731
    assert torch.autograd.gradcheck(function, scores)
    assert torch.autograd.gradgradcheck(function, scores)


@pytest.mark.parametrize("kernel", ["laplace", "logistic"])
def test_rows_that_do_not_count(kernel):
    scores = lists(4, 3, 40)
    mask = torch.rand(3, 40, generator=torch.Generator().manual_seed(4)) < 0.6
    spoilt = torch.where(mask, scores, torch.nan).requires_grad_()
    ranks = soft_ranks(spoilt, 0.3, kernel, mask)
    assert (ranks[~mask] == 0).all()
    for row in range(3):
        expected = soft_ranks(scores[row][mask[row]], 0.3, kernel)
        torch.testing.assert_close(ranks[row][mask[row]], expected, rtol=1e-14, atol=1e-14)
    (gradient,) = torch.autograd.grad(ranks.square().sum(), spoilt)
    assert (gradient[~mask] == 0).all()
    assert gradient[mask].isfinite().all()


def test_sets_of_rows():
    scores = lists(5, 2, 50)
    among = torch.rand(3, 2, 50, generator=torch.Generator().manual_seed(5)) < 0.5
    for kernel in soft_rank.KERNELS:
        counts = soft_counts(scores, among, 0.4, kernel)
        differences = (scores.unsqueeze(1) - scores.unsqueeze(2)) / 0.4
        shares = laplace(differences) if kernel == "laplace" else torch.sigmoid(differences)
        expected = torch.einsum("bmn,cbn->cbm", shares, among.double())
        torch.testing.assert_close(counts, expected, rtol=1e-13, atol=1e-13)


def test_hard_ranks_in_the_limit():
    scores = lists(6, 1, 500)[0]
    expected = torch.empty(500, dtype=torch.float64)
    expected[scores.argsort(descending=True)] = torch.arange(1.0, 501.0, dtype=torch.float64)
    for kernel in soft_rank.KERNELS:
        torch.testing.assert_close(soft_ranks(scores, 1e-9, kernel), expected)


def test_scores_that_are_far_apart():
    scores = torch.tensor([1e300, -1e300, 0.0, 5.0], dtype=torch.float64, requires_grad=True)
    ranks = soft_ranks(scores)
    torch.testing.assert_close(ranks, torch.tensor([1.0, 4.0, 3.0, 2.0], dtype=torch.float64), atol=0.01, rtol=0)
    ranks.square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


@over("n", [0, 1, 2, 31, 32, 33, 64, 1000, 1025, 3000])
@over("reverse", [False, True])
def test_the_recurrence(n, reverse):
    generator = torch.Generator().manual_seed(n)
    decay = torch.rand(2, max(n - 1, 0), generator=generator, dtype=torch.float64) ** 0.1
    values = torch.randn(3, 2, n, generator=generator, dtype=torch.float64)
    expected = torch.zeros_like(values)
    before = torch.zeros(3, 2, dtype=torch.float64)
    for i in range(n - 1, -1, -1) if reverse else range(n):
        at = i if reverse else i - 1
        factor = decay[:, at] if 0 <= at < n - 1 else torch.zeros(2, dtype=torch.float64)
        before = values[..., i] + factor * before
        expected[..., i] = before
    torch.testing.assert_close(decaying_sums(decay, values, reverse=reverse), expected, rtol=1e-12, atol=1e-12)


def test_the_module():
    module = copy.deepcopy(SoftRank(0.5, "logistic"))
    scores = lists(8, 2, 9)
    assert torch.equal(module(scores), soft_ranks(scores, 0.5, "logistic"))
    assert not module.state_dict()
    assert repr(module) == "SoftRank(tau=0.5, kernel='logistic')"


@pytest.mark.parametrize("tau", [0.0, -1.0, float("nan"), float("inf")])
def test_a_width_must_be_positive(tau):
    with pytest.raises(ValueError, match="tau must be a positive number"):
        SoftRank(tau)


def test_no_such_kernel():
    with pytest.raises(ValueError, match="one of laplace, logistic, found 'gauss'"):
        SoftRank(1.0, "gauss")


@pytest.mark.parametrize(
    ("scores", "options", "error", "says"),
    [
        (torch.tensor([1, 2]), {}, TypeError, r"floating point, found torch.int64 \(2,\)"),
        (torch.tensor(1.0), {}, TypeError, r"found torch.float32 \(\)"),
        (torch.zeros(4), {"mask": torch.ones(3, dtype=torch.bool)}, ValueError, r"mask must be bool \(4,\)"),
        (torch.zeros(4), {"mask": torch.ones(4)}, ValueError, "found torch.float32"),
        (torch.zeros(4), {"kernel": "box"}, ValueError, "kernel must be one of"),
        (torch.zeros(4), {"tau": 0.0}, ValueError, "tau must be"),
    ],
)
def test_what_does_not_fit(scores, options, error, says):
    with pytest.raises(error, match=says):
        soft_ranks(scores, **options)
