"""The hinge, the ramp and direct loss minimisation: against all rankings, against each other, and as gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from instances import TWO_ARRAY_LOSSES
from judge import definition, hinge_by_permutations, loss_of_order
from over import over

from apsvm._support.registry import UnknownNameError
from apsvm.losses import make_loss
from apsvm.losses.base import LossError
from apsvm.losses.graded import takes_grades
from apsvm.oracles.inference import most_violated_ranking
from apsvm.torch import APHingeLoss, DirectLoss, NDCGHingeLoss, RankingHingeLoss, RankingRampLoss
from apsvm.torch.tables import Tables, tables_of


class Own:
    """A loss of one's own, of which the discount depends on the length of the list."""

    name = "own"

    def weights(self, n_pos):
        return np.linspace(1.0, 2.0, n_pos) / n_pos

    def discount(self, n):
        return (1.0 - np.arange(n) / n) ** 2


LOSSES = [*TWO_ARRAY_LOSSES, Own()]


def name_of(loss):
    return loss if isinstance(loss, str) else loss.name


def metric_of(loss):
    if isinstance(loss, str):
        return definition(loss)

    def minus_loss(relevant_in_order):
        places = np.flatnonzero(relevant_in_order)
        weights, discount = loss.weights(places.size), loss.discount(relevant_in_order.size)
        return -float(sum(w * (discount[k] - discount[places[k]]) for k, w in enumerate(weights)))

    return minus_loss


def one_list(seed, n, *, n_pos=None, tied=False, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    n_pos = max(1, n // 5) if n_pos is None else n_pos
    target = torch.zeros(n, dtype=torch.bool)
    target[torch.randperm(n, generator=generator)[:n_pos]] = True
    scores = torch.randn(n, generator=generator, dtype=torch.float64) + 0.5 * target
    return ((scores * 4).round() / 4 if tied else scores).to(dtype), target


def value_and_gradient(module, scores, target, **rows):
    scores = scores.clone().requires_grad_()
    value = module(scores, target, **rows)
    (gradient,) = torch.autograd.grad(value, scores)
    return value.item(), gradient


@pytest.mark.slow
@over("loss", LOSSES, ids=name_of)
def test_every_ranking_of_short_lists(loss):
    module, metric = RankingHingeLoss(loss), metric_of(loss)
    tied = 0
    for seed in range(50):
        n = 2 + seed % 5
        scores, target = one_list(seed, n, n_pos=1 + seed % (n - 1), tied=seed % 3 == 0)
        tied += scores.unique().numel() < n
        expected = hinge_by_permutations(scores.numpy(), target.numpy(), metric)
        value, gradient = value_and_gradient(module, scores, target)
        assert value == pytest.approx(expected, abs=1e-12)
        assert gradient.sum().item() == pytest.approx(0.0, abs=1e-15)
    assert tied > 5


@over("loss", LOSSES, ids=name_of)
@over("n", [50, 1000, 6000, 20_000])
def test_it_agrees_with_the_oracles(loss, n):
    scores, target = one_list(n, n)
    expected = most_violated_ranking(scores.numpy(), target.numpy(), loss)
    value, gradient = value_and_gradient(RankingHingeLoss(loss), scores, target)
    assert value == pytest.approx(expected.value, abs=1e-12)
    assert (gradient * scores).sum().item() + expected.loss == pytest.approx(expected.value, abs=1e-9)
    if name_of(loss) not in ("auc", "rbp(0.99)"):  # whose gains are equal up to rounding
        np.testing.assert_allclose(gradient.numpy(), expected.row_weights, atol=1e-15)


@pytest.mark.slow
@over("module", [APHingeLoss(), NDCGHingeLoss(), RankingRampLoss(eps=0.7), DirectLoss()])
def test_gradients_are_those_of_the_value(module):
    checked = 0
    for seed in range(20):
        scores, target = one_list(seed, 30)
        _, gradient = value_and_gradient(module, scores, target)
        direction = torch.randn(30, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        step = 1e-7 * direction
        up, down = module(scores + step, target).item(), module(scores - step, target).item()
        middle = module(scores, target).item()
        if abs(up + down - 2 * middle) > 1e-12:  # a kink in between
            continue
        checked += 1
        assert (up - down) / 2e-7 == pytest.approx((gradient @ direction).item(), abs=1e-6)
    assert checked > 10


@over("loss", LOSSES, ids=name_of)
def test_subgradients(loss):
    module = RankingHingeLoss(loss, reduction="none")
    generator = torch.Generator().manual_seed(5)
    scores, target = one_list(5, 40, tied=True)
    value, gradient = value_and_gradient(module, scores, target)
    others = scores + torch.randn(1000, 40, generator=generator, dtype=torch.float64) * 0.5
    values = module(others, target.expand(1000, 40))
    assert (values - value - (others - scores) @ gradient).min().item() >= -1e-12
    assert gradient.abs().sum().item() <= 4.0 + 1e-12


@over("loss", LOSSES, ids=name_of)
def test_loss_ramp_hinge(loss):
    hinge, ramp = RankingHingeLoss(loss), RankingRampLoss(loss)
    metric = metric_of(loss)
    worst = make_loss(loss).of_ranking(np.full(6, 24), 24)
    for seed in range(30):
        scores, target = one_list(seed, 30, n_pos=6)
        scores = scores * 10.0 ** (seed % 5 - 2)
        lost = loss_of_order(metric, target[scores.argsort(descending=True)].numpy())
        value, gradient = value_and_gradient(ramp, scores, target)
        assert lost - 1e-12 <= value <= min(worst, hinge(scores, target).item()) + 1e-12
        assert gradient.sum().item() == pytest.approx(0.0, abs=1e-14)


@over("loss", LOSSES, ids=name_of)
@over("form", [RankingHingeLoss, RankingRampLoss])
def test_equal_rows_have_equal_gradients(form, loss):
    module = form(loss)
    for seed, n in enumerate((20, 300)):
        scores, target = one_list(seed, n, tied=True)
        value, gradient = value_and_gradient(module, scores, target)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
        permuted, of_permuted = value_and_gradient(module, scores[order], target[order])
        assert permuted == pytest.approx(value, abs=1e-13)
        for positive in (True, False):
            for score in scores[target == positive].unique():
                assert gradient[(target == positive) & (scores == score)].unique().numel() == 1
        if name_of(loss) not in ("auc", "rbp(0.99)"):
            torch.testing.assert_close(of_permuted, gradient[order], rtol=0, atol=1e-15)


@over("module", [APHingeLoss(), RankingHingeLoss(Own()), RankingRampLoss("ndcg", eps=0.3)])
def test_a_batch_is_its_lists(module):
    module.reduction = "none"
    generator = torch.Generator().manual_seed(2)
    scores = torch.randn(7, 60, generator=generator, dtype=torch.float64) * 10.0 ** torch.arange(-3.0, 4.0)[:, None]
    target = torch.rand(7, 60, generator=generator) < 0.3
    mask = torch.rand(7, 60, generator=generator) < torch.tensor([1, 0.9, 0.5, 0.3, 0.2, 0.7, 1.0])[:, None]
    mask[1] = False
    padded = torch.where(mask, scores, torch.nan).requires_grad_()
    values = module(padded, target, mask)
    (gradients,) = torch.autograd.grad(values.sum(), padded)
    assert (gradients[~mask] == 0).all()
    for row in range(7):
        alone = scores[row][mask[row]].requires_grad_()
        value = module(alone, target[row][mask[row]])
        (gradient,) = torch.autograd.grad(value, alone)
        torch.testing.assert_close(values[row], value, rtol=0, atol=0)
        torch.testing.assert_close(gradients[row][mask[row]], gradient, rtol=0, atol=0)


def test_threads_change_nothing():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(200, 300, generator=generator)
    target = torch.rand(200, 300, generator=generator) < 0.1
    long, of_long = one_list(0, 400_000, n_pos=2000, dtype=torch.float32)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.append([*value_and_gradient(APHingeLoss(), scores, target)])
        results[-1] += value_and_gradient(RankingRampLoss(), long, of_long)
    for result in results[1:]:
        assert [result[0], result[2]] == [results[0][0], results[0][2]]
        assert torch.equal(result[1], results[0][1])
        assert torch.equal(result[3], results[0][3])


@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_graded_ndcg_is_the_sum_of_its_levels(gain):
    generator = torch.Generator().manual_seed(6)
    scores = torch.randn(9, 25, generator=generator, dtype=torch.float64).requires_grad_()
    grades = torch.randint(-1, 5, (9, 25), generator=generator)
    grades[1], grades[2], grades[3] = 3, 0, grades[3].clamp(min=1)
    grades[4] = torch.where(grades[4] == 2, 0, grades[4])  # a grade that the others have
    mask = torch.rand(9, 25, generator=generator) < 0.8
    module = NDCGHingeLoss(gain, reduction="none")
    loss = make_loss(f"ndcg({gain})")
    assert takes_grades(loss)
    values = module(scores, grades, mask)
    for row in range(9):
        of_row, its_scores = grades[row][mask[row]].numpy(), scores[row][mask[row]].detach().numpy()
        expected = sum(
            level.weight * most_violated_ranking(its_scores, of_row >= level.threshold, loss).value
            for level in loss.levels(of_row)
        )
        assert values[row].item() == pytest.approx(expected, abs=1e-12)
    assert values[3].item() > 0.0  # all rows are above 0, but not all are alike
    (gradient,) = torch.autograd.grad(values.sum(), scores)
    torch.testing.assert_close(gradient.sum(1), torch.zeros(9, dtype=torch.float64), rtol=0, atol=1e-14)
    step = 1e-7 * torch.randn(9, 25, generator=generator, dtype=torch.float64)
    difference = module(scores + step, grades, mask).sum() - module(scores - step, grades, mask).sum()
    assert difference.item() == pytest.approx(2 * (gradient * step).sum().item(), abs=1e-12)
    counted = [bool(loss.levels(grades[row][mask[row]].numpy())) for row in range(9)]
    module.reduction = "mean"
    assert module(scores, grades, mask).item() == pytest.approx(values.sum().item() / sum(counted))


def test_grades_of_one_level_are_binary():
    scores, target = one_list(7, 40)
    expected = NDCGHingeLoss()(scores, target)
    for grades in (target.long(), target * 3.0, target.long() * 2 - 1):
        assert NDCGHingeLoss()(scores, grades).item() == pytest.approx(expected.item(), abs=1e-15)


def test_a_grade_without_a_finite_gain():
    with pytest.raises(LossError, match="grade 2000 has no finite exponential gain"):
        NDCGHingeLoss()(torch.zeros(3), torch.tensor([2000, 1, 0]))


@pytest.mark.parametrize("loss", ["ndcg@10", "p@5", "f1", "zero-one", "prbep", "ndcg-chakrabarti"])
def test_losses_that_are_not_of_two_arrays(loss):
    with pytest.raises(
        LossError, match="not of two arrays, weights and a convex discount: choose from ap, "
    ) as refused:
        RankingHingeLoss(loss)
    assert_offers_what_it_takes(str(refused.value).partition(" choose ")[2])


def assert_offers_what_it_takes(offer):
    assert all(form in offer for form in ("ap", "ndcg", "ndcg(gain)", "mrr", "auc", "rbp(rho)"))
    assert not any(form in offer for form in ("@k", "f1", "prbep", "zero-one", "chakrabarti"))


def test_what_is_not_a_loss():
    with pytest.raises(ValueError, match="unknown loss 'aq': choose from"):
        RankingHingeLoss("aq")
    with pytest.raises(UnknownNameError) as refused:
        RankingHingeLoss("ndgc")
    assert str(refused.value).endswith("did you mean 'ndcg'?")
    assert_offers_what_it_takes(str(refused.value))
    with pytest.raises(LossError, match="expected an object with weights"):
        RankingHingeLoss(object())
    with pytest.raises(ValueError, match="eps must be a positive number"):
        RankingRampLoss(eps=0.0)


class TestTables:
    def test_they_are_those_of_the_loss(self):
        for loss in LOSSES:
            tables = Tables(make_loss(loss))
            sizes = [(3, 5), (1, 900), (3, 5), (200, 4)]
            for _ in range(2):
                written = tables.of_lists(sizes)
                for at, (n_pos, n_neg) in enumerate(sizes):
                    expected = make_loss(loss).tables(n_pos, n_neg)
                    n, begin = n_pos + n_neg, written.discount_begin[at]
                    weights = written.weights[written.weights_begin[at] :][:n_pos]
                    np.testing.assert_array_equal(weights, expected.weights)
                    np.testing.assert_array_equal(written.discount[begin:][:n], expected.discount)

    def test_a_name_is_written_out_once(self):
        assert tables_of("ap") is tables_of("ap")
        assert tables_of("ap") is not tables_of("mrr")

    def test_what_is_kept_is_bounded(self, monkeypatch):
        monkeypatch.setattr("apsvm.torch.tables.KEPT", 1000)
        tables = Tables(make_loss("ap"))
        for n_pos in range(1, 200):
            written = tables.of_lists([(n_pos, 7), (300, 7)])
            assert written.weights.size == n_pos + 300
        assert sum(part.weights.size for part in tables._of_size.values()) <= 1000

    def test_a_loss_that_fails_at_a_size(self):
        class Breaks(Own):
            def weights(self, n_pos):
                return np.ones(n_pos) * (-1 if n_pos == 77 else 1)

        module = RankingHingeLoss(Breaks())
        with pytest.raises(LossError, match="weight of the 1-th positive is negative"):
            module(*one_list(0, 100, n_pos=77))
