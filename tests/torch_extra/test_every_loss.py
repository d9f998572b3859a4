"""Every loss on empty lists, NaN, types, graphs and compilers."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest
import torch
from over import over

from apsvm.torch import (
    APHingeLoss,
    BlackboxAPLoss,
    DirectLoss,
    NDCGHingeLoss,
    RankingHingeLoss,
    RankingRampLoss,
    RankRecallLoss,
    RankTripletLoss,
    RecallAtKLoss,
    SmoothAPLoss,
    SoDeepMAPLoss,
    SpearmanLoss,
)

MAKERS = {
    "hinge": APHingeLoss,
    "ndcg": NDCGHingeLoss,
    "rbp": lambda **options: RankingHingeLoss("rbp(0.9)", **options),
    "ramp": RankingRampLoss,
    "direct": DirectLoss,
    "smooth, laplace": SmoothAPLoss,
    "smooth, logistic": lambda **options: SmoothAPLoss(kernel="logistic", **options),
    "recall": RecallAtKLoss,
    "recall, logistic": lambda **options: RecallAtKLoss(kernel="logistic", **options),
    "blackbox": BlackboxAPLoss,
    "sodeep": SoDeepMAPLoss,
    "sodeep, handcrafted": lambda **options: SoDeepMAPLoss("handcrafted(10)", **options),
    "sodeep, eq. 7": lambda **options: SoDeepMAPLoss(form="seed", **options),
    "rank triplets": lambda **options: RankTripletLoss(both=False, **options),
    "rank recall": lambda **options: RankRecallLoss(both=False, **options),
    "rank recall at 10": lambda **options: RankRecallLoss(k=10, tau=2.0, both=False, **options),
}


each_loss = over("make", MAKERS.values(), ids=MAKERS)


def batch(b=4, n=30, *, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    target = torch.rand(b, n, generator=generator) < 0.3
    target[:, 0], target[:, 1] = True, False
    return (torch.randn(b, n, generator=generator, dtype=torch.float64) + target).to(dtype), target


def gradient_of(loss, scores, *arguments, **rows):
    scores = scores.detach().clone().requires_grad_()
    loss(scores, *arguments, **rows).backward()
    assert scores.grad is not None
    return scores.grad


@each_loss
def test_lists_without_both_classes_count_for_nothing(make):
    scores, target = batch()
    target[1], target[2] = True, False
    scores = scores.requires_grad_()
    values = make(reduction="none")(scores, target)
    assert values[[1, 2]].tolist() == [0.0, 0.0]
    assert (values[[0, 3]] != 0.0).all()
    assert make()(scores, target).item() == pytest.approx(values[[0, 3]].mean().item(), abs=1e-7)
    assert make(reduction="sum")(scores, target).item() == pytest.approx(values.sum().item(), abs=1e-6)
    gradient = gradient_of(make(), scores, target)
    assert (gradient[[1, 2]] == 0.0).all()
    assert gradient[[0, 3]].any(1).all()


@each_loss
@over("shape", [(0,), (1,), (5,), (0, 4), (3, 0), (1, 1), (2, 4)])
@over("positive", [True, False])
def test_nothing_that_counts(make, shape, positive):
    scores = torch.zeros(shape, requires_grad=True)
    value = make()(scores, torch.full(shape, positive))
    assert value.item() == 0.0
    value.backward()
    assert scores.grad is not None
    assert not scores.grad.any()
    assert make(reduction="none")(scores, torch.full(shape, positive)).shape == shape[:-1]


@each_loss
def test_a_training_without_lists_that_count_is_warned_once(make):
    scores, target = batch()
    nothing = torch.zeros_like(target)
    loss = make()
    for _ in range(50):
        loss(scores, nothing)  # an evaluation, no training
    scores.requires_grad_()
    for labels in [nothing] * 19 + [target]:
        loss(scores, labels)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(50):
            loss(scores, nothing)
    (warning,) = caught
    assert "20 calls in a row had no list that counts" in str(warning.message)
    assert "rows of both classes, which torch.utils.data.WeightedRandomSampler" in str(warning.message)
    assert warning.filename == __file__


@each_loss
def test_transforms_of_functions_have_the_same_gradient(make):
    scores, target = batch()
    loss = make()
    found = torch.func.grad(lambda scores: loss(scores, target))(scores)
    torch.testing.assert_close(found, gradient_of(loss, scores, target), rtol=1e-4, atol=1e-6)


def test_a_training_that_stands_still_is_warned_once():
    _, target = batch()
    loss, scores = RankingRampLoss(), torch.where(target, -1e4, 1e4).requires_grad_()
    for _ in range(19):
        loss(scores, target).backward()
    near = torch.zeros_like(scores, requires_grad=True)
    loss(near, target).backward()
    assert near.grad.any()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(90):
            loss(scores, target).backward()
    (warning,) = caught
    assert "the gradient of 20 calls in a row was 0 and the loss above 0" in str(warning.message)


def test_spearman_is_warned_of_targets_that_are_all_alike():
    scores, loss = torch.randn(4, requires_grad=True), SpearmanLoss()
    for _ in range(19):
        loss(scores, torch.ones(4))
    with pytest.warns(UserWarning, match="a list needs two rows of different targets"):
        loss(scores, torch.ones(4))


@each_loss
def test_all_scores_equal(make):
    scores, target = torch.full((1, 8), 0.25, dtype=torch.float64), torch.arange(8).unsqueeze(0) < 2
    gradient = gradient_of(make(), scores, target)
    assert make()(scores, target).isfinite()
    for of_class in (gradient[0, :2], gradient[0, 2:]):
        assert (of_class - of_class[0]).abs().max().item() <= 1e-15
    assert gradient.sum().item() == pytest.approx(0.0, abs=1e-14)


@each_loss
@over("bad", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_stays_nan(make, bad):
    scores, target = batch()
    mask = torch.ones_like(target)
    scores[1, 5], scores[2, 3], mask[2, 3] = bad, bad, False
    values = make(reduction="none")(scores, target, mask)
    assert values.isnan().tolist() == [False, True, False, False]
    assert make()(scores, target, mask).isnan()
    gradient = gradient_of(make(), scores, target, mask)
    assert gradient[1].isnan().all()
    assert gradient[[0, 2, 3]].isfinite().all()
    assert gradient[2, 3] == 0.0
    # Also in a list that does not count.
    target[3], scores[3, 0] = True, bad
    assert make(reduction="none")(scores, target, mask).isnan().tolist() == [False, True, False, True]


@each_loss
@over("kind", [torch.bool, torch.int8, torch.uint8, torch.int64, torch.float16, torch.float64])
def test_types_of_target(make, kind):
    scores, target = batch()
    assert torch.equal(make()(scores, target.to(kind)), make()(scores, target))


@each_loss
def test_minus_one_is_negative_unless_it_is_ignored_and_columns_are_lists(make):
    scores, target = batch()
    signs = target.long() * 2 - 1
    assert torch.equal(make()(scores, signs), make()(scores, target))
    torch.testing.assert_close(make()(scores.t(), target.t(), dim=0), make()(scores, target))
    padded = torch.where(torch.arange(30) < 20, target.long(), -1)
    expected = make()(scores[:, :20], target[:, :20])
    torch.testing.assert_close(make(ignore_index=-1)(scores, padded), expected, rtol=1e-6, atol=1e-7)


@each_loss
def test_queries_are_lists(make):
    scores, target = batch(dtype=torch.float64)
    order = torch.randperm(120, generator=torch.Generator().manual_seed(3))
    qid = torch.tensor([5, -1, 7, 2]).repeat_interleave(30)
    rows = scores.flatten()[order], target.flatten()[order]
    values = make(reduction="none")(*rows, qid=qid[order])
    torch.testing.assert_close(values, make(reduction="none")(scores, target)[[1, 3, 0, 2]], rtol=1e-12, atol=1e-12)
    gradient = gradient_of(make(), *rows, qid=qid[order])
    expected = gradient_of(make(), scores, target).flatten()[order]
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-12)


@each_loss
def test_without_gradients(make):
    scores, target = batch()
    assert not make()(scores, target).requires_grad
    with torch.no_grad():
        assert not make()(scores.requires_grad_(), target).requires_grad


@each_loss
def test_backward_twice(make):
    scores, target = batch()
    scores.requires_grad_()
    value = make()(scores, target)
    (first,) = torch.autograd.grad(value, scores, retain_graph=True)
    (second,) = torch.autograd.grad(value, scores)
    assert torch.equal(first, second)


@over("name", MAKERS)
def test_derivatives_of_the_gradient(name):
    """Hinges have a constant one, but for normalised scores; smooth losses have more."""
    scores, target = batch(2, 8, dtype=torch.float64)
    scores.requires_grad_()
    loss = MAKERS[name]()
    (gradient,) = torch.autograd.grad(loss(scores, target), scores, create_graph=True)
    if name.startswith(("smooth", "recall", "sodeep", "rank")):
        assert torch.autograd.gradgradcheck(lambda s: loss(s, target), scores)
    elif name not in ("direct", "blackbox"):
        (second,) = torch.autograd.grad(gradient.square().sum() + 0 * scores.sum(), scores)
        assert not second.any()


@each_loss
@over("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(make, dtype):
    scores, target = batch(dtype=dtype)
    value = make()(scores, target)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, make()(scores.float(), target))
    gradient = gradient_of(make(), scores, target)
    assert gradient.dtype == dtype
    torch.testing.assert_close(gradient, gradient_of(make(), scores.float(), target).to(dtype))


DEVICES = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}


@over("name", MAKERS)
@pytest.mark.parametrize("device", DEVICES)
def test_on_a_device(name, device):
    if not DEVICES[device]():
        pytest.skip(f"no {device} device here")
    scores, target = batch()
    loss = MAKERS[name]()
    value = loss(scores.to(device), target.to(device))
    assert value.device.type == device
    torch.testing.assert_close(value.cpu(), loss(scores, target), rtol=1e-5, atol=1e-6)
    gradient = gradient_of(loss, scores.to(device), target.to(device)).cpu()
    torch.testing.assert_close(gradient, gradient_of(loss, scores, target), rtol=1e-4, atol=1e-6)


@each_loss
def test_under_autocast(make):
    layer = torch.nn.Linear(5, 1)
    x, target = torch.randn(40, 5), torch.arange(40) % 4 == 0
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = layer(x).squeeze(1)
        value = make()(scores, target)
    assert scores.dtype == torch.bfloat16
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, make()(scores.detach(), target))
    value.backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.any()


@each_loss
def test_deterministic_algorithms_will_do(make):
    scores, target = batch()
    torch.use_deterministic_algorithms(True)
    try:
        gradient_of(make(), scores, target, qid=None)
        gradient_of(make(), scores.flatten(), target.flatten(), qid=torch.arange(120) % 7)
    finally:
        torch.use_deterministic_algorithms(False)


@each_loss
def test_copies_and_pickles(make):
    loss = make(reduction="sum", ignore_index=7)
    scores, target = batch()
    expected = loss(scores, target)
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert torch.equal(other(scores, target), expected)
        assert repr(other) == repr(loss)
    assert "reduction='sum'" in repr(loss)
    assert not loss.state_dict()
    assert not [*loss.parameters()]


@each_loss
def test_no_such_reduction(make):
    with pytest.raises(ValueError, match="reduction must be one of mean, sum, none, found 'max'"):
        make(reduction="max")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hinge", "ramp", "smooth, laplace", "blackbox"])
def test_inside_a_compiled_step(name):
    from torch._dynamo.utils import counters

    loss, layer = MAKERS[name](), torch.nn.Linear(3, 1)

    def step(x, target):
        return 2 * loss(layer(x).squeeze(1) + 1, target)

    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(step, backend="eager")
    graphs = []
    with warnings.catch_warnings():
        # Of the compiler's own, which looks at the gradients of what it is handed.
        warnings.filterwarnings("ignore", message="The .grad attribute of a Tensor", category=UserWarning)
        for n, n_pos in ((20, 3), (31, 4), (31, 9), (47, 2), (60, 30)):
            x, target = torch.randn(n, 3), torch.arange(n) < n_pos
            expected = step(x, target)
            result = compiled(x, target)
            assert torch.equal(result, expected)
            (gradient,) = torch.autograd.grad(result, layer.weight)
            torch.testing.assert_close(gradient, torch.autograd.grad(expected, layer.weight)[0])
            graphs.append(counters["stats"]["unique_graphs"])
    assert graphs[1] == graphs[-1]  # neither the number of rows nor that of the positives compiles anything anew
    torch._dynamo.reset()


@pytest.mark.slow
@over("name", MAKERS)
def test_training_a_linear_layer(name):
    from sklearn.datasets import load_breast_cancer
    from sklearn.metrics import average_precision_score

    rows, classes = load_breast_cancer(return_X_y=True)
    x = torch.from_numpy((rows - rows.mean(0)) / rows.std(0)).float()
    target = torch.from_numpy(classes == 0)
    torch.manual_seed(0)
    layer, loss = torch.nn.Linear(x.shape[1], 1), MAKERS[name]()
    if isinstance(loss, RecallAtKLoss):  # of 212 positives
        loss.ks, loss.tau_rank = (50, 100, 200), 20.0
    if name == "rank recall at 10":
        loss.k = 212
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        loss(layer(x).squeeze(1), target).backward()
        optimizer.step()
    assert average_precision_score(target.numpy(), layer(x).squeeze(1).detach().numpy()) >= 0.98


@each_loss
def test_labels_other_than_0_and_1_are_refused(make):
    """All above 0, they would all be positives."""
    scores, target = batch(b=5, n=5)
    loss, smoothed = make(), torch.where(target, 0.95, 0.05)
    if loss.takes_fractions:
        assert loss(scores, smoothed).isfinite()
        return
    for odd in (smoothed, 3 * target.long()):
        with pytest.raises(ValueError, match=r"0 and 1 \(or -1 and 1\), found (0\.\d+|3): for smoothed labels"):
            loss(scores, odd)
    assert loss(scores, torch.where(target, 0.5, 0.0), target.new_tensor(False).expand(5, 5)) == 0.0
    torch.testing.assert_close(loss(scores, 2.0 * target - 1.0), loss(scores, target))
