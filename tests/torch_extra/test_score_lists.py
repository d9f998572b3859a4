"""The lists that sorters learn from."""

from __future__ import annotations

import pytest
import torch

from apsvm.torch.score_lists import TYPES, draw_lists, seeded

N, L = 4000, 50


@pytest.fixture(scope="module")
def drawn():
    """Lists of each distribution, (n, L)."""
    return {draw.__name__: draw(seeded("t", 0), N * TYPES.count(draw) // 10, L) for draw in TYPES}


def test_lists_of_all_types_are_mixed():
    scores = draw_lists(seeded("t", 0), N, L)
    whole = (scores == TYPES[-1](seeded("t"), 1, L)).all(1)
    assert int(whole.sum()) == pytest.approx(N / 10, rel=0.2)
    assert float(scores.abs().max()) > 2  # of normal scores
    assert whole.double().diff().abs().sum() > 100


def test_a_seed_means_the_same_lists():
    first, again = (draw_lists(seeded("t", 3, 7), 20, 5) for _ in range(2))
    assert torch.equal(first, again)
    others = [
        draw_lists(seeded(*purpose), 20, 5)
        for purpose in (("t", 3, 8), ("t", 4, 7), ("t", 7, 3), ("t", 3), ("t", 3, 7, 0), ("u", 3, 7), ("t", 37))
    ]
    assert not any(torch.equal(first, other) for other in others)


def test_uniform_and_normal(drawn):
    uniform, normal = drawn["_uniform"], drawn["_normal"]
    assert -1 <= float(uniform.min()) < -0.99
    assert 0.99 < float(uniform.max()) <= 1
    assert float(uniform.var()) == pytest.approx(1 / 3, rel=0.03)
    assert float(normal.mean()) == pytest.approx(0, abs=0.03)
    assert float(normal.std()) == pytest.approx(1, rel=0.03)


def test_spaced(drawn):
    spaced = drawn["_spaced_in_order"].double()
    steps = spaced.diff(dim=1)
    torch.testing.assert_close(steps, steps[:, :1].expand_as(steps), atol=1e-6, rtol=0)
    assert 0.3 < float((steps[:, 0] > 0).double().mean()) < 0.7  # rising or falling
    assert (spaced >= 0).all()
    assert (spaced <= 1).all()
    # The far end b is left out: (b − a)/L a step.
    assert float((steps[:, 0].abs() * L).max()) > 0.8
    shuffled = drawn["_spaced_shuffled"].double()
    steps = shuffled.sort(dim=1).values.diff(dim=1)
    torch.testing.assert_close(steps, steps[:, :1].expand_as(steps), atol=1e-6, rtol=0)
    assert (shuffled.diff(dim=1).sign().abs().sum(1) > 0).all()
    assert not (shuffled.diff(dim=1) > 0).all(dim=1).any()


def test_mixtures(drawn):
    right_most = drawn["_uniform_then_normal"][:, -1]
    assert (drawn["_uniform_then_normal"][:, 0].abs() <= 1).all()  # one place at least is the left part's
    assert (right_most.abs() > 1).any()
    mixed = drawn["_spaced_then_uniform"]
    assert (mixed[:, 0] >= 0).all()
    assert (mixed[:, -1] < 0).any()
    # The left part alone is evenly spaced, shuffled: lists whose left part is whole.
    steps = mixed.sort(dim=1).values.double().diff(dim=1)
    whole = (steps - steps[:, :1]).abs().amax(dim=1) < 1e-6
    assert 1 <= int(whole.sum()) < 0.1 * len(mixed)


def test_range(drawn):
    expected = torch.tensor([-1 + 2 * i / L for i in range(L)])
    torch.testing.assert_close(drawn["_whole_range"], expected.expand(len(drawn["_whole_range"]), L))


@pytest.mark.parametrize(("lists", "length"), [(0, 5), (5, 1), (1, 1)])
def test_small(lists, length):
    scores = draw_lists(seeded("t", 1), lists, length)
    assert scores.shape == (lists, length)
    assert torch.isfinite(scores).all()
