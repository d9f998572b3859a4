"""The lists that sorters learn from."""

from __future__ import annotations

import pytest
import torch

from apsvm.torch.score_lists import KINDS, draw_lists, seeded

N, L = 4000, 50


@pytest.fixture(scope="module")
def by_kind():
    """Lists of each kind, (n, L)."""
    scores, kinds = draw_lists(seeded("t", 0), N, L)
    return {name: scores[kinds == at] for at, name in enumerate(KINDS)}


def test_shares(by_kind):
    assert sum(kind.share for kind in KINDS.values()) == 10
    for name, kind in KINDS.items():
        assert len(by_kind[name]) == pytest.approx(N * kind.share / 10, rel=0.2)


def test_a_seed_means_the_same_lists():
    first, again = (draw_lists(seeded("t", 3, 7), 20, 5)[0] for _ in range(2))
    assert torch.equal(first, again)
    others = [
        draw_lists(seeded(*purpose), 20, 5)[0]
        for purpose in (("t", 3, 8), ("t", 4, 7), ("t", 7, 3), ("t", 3), ("t", 3, 7, 0), ("u", 3, 7), ("t", 37))
    ]
    assert not any(torch.equal(first, other) for other in others)


def test_uniform_and_normal(by_kind):
    uniform, normal = by_kind["uniform"], by_kind["normal"]
    assert -1 <= float(uniform.min()) < -0.99
    assert 0.99 < float(uniform.max()) <= 1
    assert float(uniform.var()) == pytest.approx(1 / 3, rel=0.03)
    assert float(normal.mean()) == pytest.approx(0, abs=0.03)
    assert float(normal.std()) == pytest.approx(1, rel=0.03)


def test_spaced(by_kind):
    spaced = by_kind["spaced"].double()
    steps = spaced.diff(dim=1)
    torch.testing.assert_close(steps, steps[:, :1].expand_as(steps), atol=1e-6, rtol=0)
    assert 0.3 < float((steps[:, 0] > 0).double().mean()) < 0.7  # rising or falling
    assert (spaced >= 0).all()
    assert (spaced <= 1).all()
    # The far end b is left out: (b − a)/L a step.
    assert float((steps[:, 0].abs() * L).max()) > 0.8
    shuffled = by_kind["shuffled"].double()
    steps = shuffled.sort(dim=1).values.diff(dim=1)
    torch.testing.assert_close(steps, steps[:, :1].expand_as(steps), atol=1e-6, rtol=0)
    assert (shuffled.diff(dim=1).sign().abs().sum(1) > 0).all()
    assert not (shuffled.diff(dim=1) > 0).all(dim=1).any()


def test_mixtures(by_kind):
    right_most = by_kind["uniform|normal"][:, -1]
    assert (by_kind["uniform|normal"][:, 0].abs() <= 1).all()  # one place at least is the left part's
    assert (right_most.abs() > 1).any()
    mixed = by_kind["shuffled|uniform"]
    assert (mixed[:, 0] >= 0).all()
    assert (mixed[:, -1] < 0).any()
    # The left part alone is evenly spaced, shuffled: lists whose left part is whole.
    steps = mixed.sort(dim=1).values.double().diff(dim=1)
    whole = (steps - steps[:, :1]).abs().amax(dim=1) < 1e-6
    assert 1 <= int(whole.sum()) < 0.1 * len(mixed)


def test_range(by_kind):
    expected = torch.tensor([-1 + 2 * i / L for i in range(L)])
    torch.testing.assert_close(by_kind["range"], expected.expand(len(by_kind["range"]), L))


@pytest.mark.parametrize(("lists", "length"), [(0, 5), (5, 1), (1, 1)])
def test_small(lists, length):
    scores, kinds = draw_lists(seeded("t", 1), lists, length)
    assert scores.shape == (lists, length)
    assert kinds.shape == (lists,)
    assert torch.isfinite(scores).all()
