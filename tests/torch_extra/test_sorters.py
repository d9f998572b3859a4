"""Sorters: what they are, what they give, and what they refuse; exact ranks against scipy's."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from over import over
from scipy.stats import rankdata

from apsvm._support.registry import UnknownNameError
from apsvm.torch.ranks import exact_ranks, standardized
from apsvm.torch.score_lists import draw_lists, seeded
from apsvm.torch.sorters import SORTERS, Sorter, SorterError, make_sorter

NAMES = [form for form in SORTERS if "(" not in form] + ["cnn(4)", "handcrafted(3.5)", "laplace(50)"]
LENGTH = 40
#: Of lists of 100.
PARAMETERS = {
    "lstm": 3_089_508, "lstm-large": 18_649_188, "cnn": 2_081_592, "neighbours": 1_574, "handcrafted": 0, "laplace": 0,
}  # fmt: skip


def scores_of(lists: int = 3, length: int = LENGTH, seed: int = 1, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(lists, length, generator=seeded("scores", seed), dtype=dtype)


@pytest.fixture(scope="module")
def made():
    """made(name) → one sorter for all tests, frozen."""
    sorters: dict[str, Sorter] = {}

    def get(name: str) -> Sorter:
        if name not in sorters:
            with torch.random.fork_rng():
                torch.manual_seed(0)
                sorters[name] = make_sorter(name, LENGTH).freeze()
        return sorters[name]

    return get


@pytest.mark.parametrize("scores", [[3.0, 1.0, 2.0, 2.0], [0.0], [5.0, 5.0, 5.0], [-math.inf, math.inf, 0.0]])
def test_exact_ranks_are_scipys(scores):
    expected = rankdata(-np.asarray(scores)) / len(scores)
    np.testing.assert_allclose(exact_ranks(torch.tensor(scores, dtype=torch.float64)).numpy(), expected, atol=1e-15)


def test_exact_ranks_of_random_lists_with_ties():
    scores = torch.randint(-5, 5, (50, 17), generator=seeded("ties"))
    assert len(scores.unique()) == 10
    expected = np.stack([rankdata(-row) for row in scores.numpy()]) / 17
    np.testing.assert_allclose(exact_ranks(scores).numpy(), expected, rtol=1e-6)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        ranks = exact_ranks(scores.to(dtype))
        assert ranks.dtype == dtype
        np.testing.assert_allclose(ranks.double().numpy(), expected, rtol=1e-2 if dtype.itemsize == 2 else 1e-6)


def test_exact_ranks_of_nan_and_of_nothing():
    ranks = exact_ranks(torch.tensor([[1.0, torch.nan], [1.0, 2.0]]))
    assert ranks[0].isnan().all()
    assert ranks[1].tolist() == [1.0, 0.5]
    assert exact_ranks(torch.empty(2, 0)).shape == (2, 0)
    assert exact_ranks(torch.empty(0, 4)).shape == (0, 4)


@pytest.mark.parametrize("factor", [1e-30, 1.0, 1e30])
def test_standardized_at_every_scale(factor):
    scores = scores_of(dtype=torch.float64)
    z = standardized((factor * scores).float())
    expected = (scores - scores.mean(1, keepdim=True)) / scores.std(1, correction=0, keepdim=True)
    torch.testing.assert_close(z.double(), expected, atol=1e-5, rtol=1e-5)


@over(("name", "count"), PARAMETERS.items())
def test_parameters(name, count):
    with torch.device("meta"):
        assert sum(parameter.numel() for parameter in make_sorter(name, 100).parameters()) == count


@over("name", NAMES)
def test_shape_gradient_and_name(name, made):
    sorter = made(name)
    scores = scores_of().requires_grad_()
    ranks = sorter(scores)
    assert ranks.shape == scores.shape
    ranks.square().sum().backward()
    assert torch.isfinite(scores.grad).all()
    assert scores.grad.abs().sum() > 0
    again = make_sorter(sorter.name, LENGTH)
    assert type(again) is type(sorter)
    assert again.arguments() == sorter.arguments()


@over("name", NAMES)
def test_a_list_does_not_depend_on_its_neighbours(name, made):
    scores = scores_of()
    ranks = made(name)(scores)
    torch.testing.assert_close(made(name)(scores[1:2]), ranks[1:2], atol=1e-5, rtol=1e-5)
    scores[0, 3] = torch.nan
    with_nan = made(name)(scores)
    assert with_nan[0].isnan().any()
    torch.testing.assert_close(with_nan[1:], ranks[1:], atol=1e-5, rtol=1e-5)


@over("name", NAMES)
def test_lengths(name, made):
    sorter = made(name)
    if sorter.length is None:
        assert sorter(scores_of(2, 7)).shape == (2, 7)
        assert sorter(scores_of(2, 1)).shape == (2, 1)
    else:
        with pytest.raises(SorterError, match="lists of 40, found 7"):
            sorter(scores_of(2, 7))
        with pytest.raises(SorterError, match="pass length"):
            make_sorter(name)
    assert sorter(torch.empty(0, LENGTH)).shape == (0, LENGTH)
    with pytest.raises(SorterError, match="takes floating scores"):
        sorter(scores_of()[0])
    with pytest.raises(SorterError, match="takes floating scores"):
        sorter(torch.zeros(2, LENGTH, dtype=torch.int64))


def test_a_frozen_sorter_is_not_trained(made):
    cnn = copy.deepcopy(made("cnn"))
    before = copy.deepcopy(cnn.state_dict())
    cnn.train()
    cnn(scores_of())
    assert not any(parameter.requires_grad for parameter in cnn.parameters())
    assert all(torch.equal(before[name], tensor) for name, tensor in cnn.state_dict().items())
    lstm = made("lstm").eval()
    assert lstm.recurrent.training  # where cuDNN would have no gradient
    assert not lstm.project.training


@over(("name", "length", "error"), [("lstm", LENGTH, 0.0043), ("lstm", 7, 0.013), ("lstm-large", 7, 0.011)])
def test_the_first_parameters_of_an_lstm_rank(name, length, error):
    scores = draw_lists(seeded("lists of all kinds"), 50, length)
    with torch.no_grad():
        assert (make_sorter(name, length)(scores) - exact_ranks(scores)).abs().mean() < error


@pytest.mark.parametrize("name", ["neighbours", "handcrafted", "laplace"])
def test_permuting_a_list_permutes_its_ranks(name, made):
    scores = scores_of(2, 30)
    order = torch.randperm(30, generator=seeded("order"))
    assert not torch.equal(order, torch.arange(30))
    torch.testing.assert_close(made(name)(scores[:, order]), made(name)(scores)[:, order], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["neighbours", "laplace"])
def test_scale_and_offset_do_not_matter(name, made):
    scores = scores_of(2, 30, dtype=torch.float64).float()
    torch.testing.assert_close(made(name)(1e-3 * scores), made(name)(scores), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(made(name)(scores + 10), made(name)(scores), atol=1e-3, rtol=1e-3)


def test_neighbours_of_equal_scores_and_of_two(made):
    sorter = made("neighbours")
    scores = scores_of(2, 30).relu().requires_grad_()
    assert (scores == 0).sum(1).min() > 8  # more than the net sees
    ranks = sorter(scores)
    torch.testing.assert_close(sorter(scores.flip(1)).flip(1), ranks)
    for row, equal in zip(ranks, scores == 0, strict=True):
        assert torch.allclose(row[equal], row[equal].mean())
    ranks.square().sum().backward()
    assert torch.isfinite(scores.grad).all()
    for length in (2, 1001):
        with pytest.raises(SorterError, match=f"3 to 1,000 scores, found {length:,}; 'handcrafted"):
            sorter(scores_of(1, length))


def test_handcrafted_is_its_formula():
    y = scores_of(1, 9, dtype=torch.float64)[0]
    expected = [
        (1 + sum(1 / (1 + math.exp(-4.0 * float(y[j] - y[i]))) for j in range(9) if j != i)) / 9 for i in range(9)
    ]
    np.testing.assert_allclose(make_sorter("handcrafted(4)")(y[None])[0].numpy(), expected, rtol=1e-12)


def test_laplace_is_its_formula():
    y = scores_of(1, 9, dtype=torch.float64)
    z = 7 * standardized(y)[0]

    def above(d: float) -> float:
        return 0.5 * math.exp(d) if d <= 0 else 1 - 0.5 * math.exp(-d)

    expected = [(1 + sum(above(float(z[j] - z[i])) for j in range(9) if j != i)) / 9 for i in range(9)]
    np.testing.assert_allclose(make_sorter("laplace(7)")(y)[0].numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["handcrafted(1e6)", "laplace(1e6)"])
def test_sharp_sorters_are_exact(name):
    scores = scores_of(4, 25, dtype=torch.float64)
    torch.testing.assert_close(make_sorter(name)(scores), exact_ranks(scores), atol=1e-6, rtol=0)


@pytest.mark.parametrize(("name", "l1"), [("handcrafted", 0.0350), ("laplace", 0.0062)])
def test_l1_of_those_that_need_no_training(name, l1):
    """.0350 is the paper's Table 1."""
    scores = draw_lists(seeded("l1"), 2000, 100)
    error = (make_sorter(name)(scores) - exact_ranks(scores)).abs().mean()
    assert float(error) == pytest.approx(l1, rel=0.1)


@over(
    ("name", "length", "message"),
    [
        ("cnn(11)", 100, "depth of 2 to 10"),
        ("cnn(1)", 100, "depth of 2 to 10"),
        ("cnn", 32, "lists of 33 or more, found 32"),
        ("cnn(x)", 100, "takes a whole number, found 'x'"),
        ("handcrafted(-1)", None, "finite λ above 0"),
        ("handcrafted(nan)", None, "finite λ above 0"),
        ("laplace(inf)", None, "finite λ above 0"),
        ("laplace(ten)", None, "takes a number"),
        ("lstm", 0, "length of 1 or more"),
        ("lstm", True, "length of 1 or more"),
        ("lstm", 2.5, "length of 1 or more"),
    ],
)
def test_refusals(name, length, message):
    with pytest.raises(SorterError, match=message):
        make_sorter(name, length)


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="did you mean 'neighbours'"):
        make_sorter("neighbors")
    with pytest.raises(UnknownNameError, match="unknown sorter"):
        make_sorter("neighbours(3)")


def test_the_cnn_is_the_papers():
    """8 blocks of convolution, batch normalisation and ReLU, as many channels as the list is long, an affine layer."""
    sorter = make_sorter("cnn", 33)
    assert [type(layer).__name__ for layer in sorter.layers] == ["Conv1d", "BatchNorm1d", "ReLU"] * 8
    assert sorter.eval().layers(scores_of(2, 33).unsqueeze(1)).shape == (2, 33, 1)
    assert sorter(scores_of(2, 33)).shape == (2, 33)
