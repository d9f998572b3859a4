"""Training sorters: it lowers L1, and says why it stopped; what quality means."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from over import over

from apsvm.torch.ranks import exact_ranks
from apsvm.torch.score_lists import draw_lists, seeded
from apsvm.torch.sorters import make_sorter
from apsvm.torch.sorters.quality import judge_sorter
from apsvm.torch.sorters.training import STEPS_A_LINE, SorterSettings, SorterTraining

SMALL = {
    "cnn(2)": SorterSettings(architecture="cnn(2)", length=6, batch=8, halve_every=60),
    "neighbours": SorterSettings(architecture="neighbours", length=4, longest=12, batch=8, learning_rate=3e-3),
    "lstm": SorterSettings(architecture="lstm", length=5, batch=8),
}


def state_of(training):
    return {name: tensor.clone() for name, tensor in training.sorter.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_seeds_differ_and_touch_nobodys_generator():
    before = torch.random.get_rng_state()
    one, same_seed = (SorterTraining(SMALL["cnn(2)"]) for _ in range(2))
    other = SorterTraining(SorterSettings(architecture="cnn(2)", length=6, batch=8, seed=1))
    for training in (one, same_seed, other):
        training.run(samples=16)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert same(state_of(one), state_of(same_seed))
    assert not same(state_of(one), state_of(other))


def test_halving():
    training = SorterTraining(SMALL["cnn(2)"])
    rates = []
    for _ in range(20):
        rates.append(training.learning_rate)
        training.step()
    assert rates == [1e-3 * 0.5 ** (8 * step // 60) for step in range(20)]
    assert len(set(rates)) == 3


def test_lengths_of_batches():
    settings = SMALL["neighbours"]
    lengths = [settings.length_of(seeded("lengths", step)) for step in range(300)]
    assert set(lengths) == set(range(4, 13))
    assert lengths.count(4) > lengths.count(12)
    assert SMALL["cnn(2)"].length_of(seeded("lengths")) == 6


@pytest.mark.slow
def test_l1_falls():
    training = SorterTraining(SorterSettings(architecture="neighbours", length=10, batch=32, learning_rate=3e-3))
    before = judge_sorter(training.sorter, 10, lists=200).l1
    lines = []
    assert training.run(samples=3200, progress=lines.append) == "all lists seen"
    assert judge_sorter(training.sorter, 10, lists=200).l1 < 0.6 * before
    assert lines[-1].steps == 100
    assert lines[-1].seen == 3200
    assert lines[-1].l1 < lines[0].l1
    assert all(line.steps - earlier.steps <= STEPS_A_LINE for earlier, line in pairwise(lines))


def test_why_it_stops():
    training = SorterTraining(SMALL["cnn(2)"])
    assert training.run(samples=80, should_stop=lambda: True) == "interrupted"
    assert training.steps == 0
    stops = iter([False, False, True])
    assert training.run(should_stop=lambda: next(stops)) == "interrupted"
    assert training.steps == 2
    assert training.run(samples=16) == "all lists seen"
    assert training.steps == 2


def test_divergence_is_said():
    training = SorterTraining(SorterSettings(architecture="neighbours", length=4, batch=2, learning_rate=1e30))
    with pytest.raises(FloatingPointError, match="smaller learning rate"):
        training.run(samples=2000)


@over(
    ("change", "message"),
    [
        ({"architecture": "laplace(10)"}, "needs no training"),
        ({"architecture": "handcrafted"}, "needs no training"),
        ({"architecture": "lstn"}, "did you mean 'lstm'"),
        ({"length": 0}, "length of 1 or more"),
        ({"batch": 0}, "batch of 1 or more"),
        ({"halve_every": -1}, "halve_every of 1 or more"),
        ({"learning_rate": math.nan}, "finite learning_rate"),
        ({"learning_rate": 0.0}, "finite learning_rate"),
        ({"seed": -1}, "seed from 0"),
        ({"seed": 2**64}, "seed from 0"),
        ({"longest": 200}, "lists of one length"),
        ({"architecture": "neighbours", "longest": 3}, "longest to be at least"),
    ],
)
def test_settings_that_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        SorterTraining(SorterSettings(**{"architecture": "lstm", "length": 5, **change}))


def test_quality_of_exact_ranks_and_of_a_constant():
    perfect = judge_sorter(exact_ranks_with_a_gradient, 20, lists=300)
    assert perfect.l1 < 1e-7
    assert perfect.climb == pytest.approx(judge_sorter(lambda scores: scores * 0.0, 20, lists=5).climb)  # no gradient
    assert abs(perfect.climb) < 0.2
    middle = judge_sorter(lambda scores: scores * 0.0 + 0.5, 20, lists=300)
    assert middle.l1 == pytest.approx(0.25, abs=0.01)


def exact_ranks_with_a_gradient(scores):
    return exact_ranks(scores) + 0.0 * scores


def test_l1_is_the_mean_error():
    sorter = make_sorter("handcrafted")
    quality = judge_sorter(sorter, 30, lists=500)
    scores = draw_lists(seeded("judging", 0, 0), 500, 30)
    errors = (sorter(scores) - exact_ranks(scores)).abs().mean(1)
    assert quality.l1 == pytest.approx(float(errors.mean()), rel=1e-5)


def test_many_lists_are_drawn_in_parts(monkeypatch):
    seen = []

    def ranks(scores):
        seen.append(len(scores))
        return exact_ranks_with_a_gradient(scores)

    monkeypatch.setattr("apsvm.torch.sorters.quality.SCORES_AT_ONCE", 100)
    monkeypatch.setattr("apsvm.torch.sorters.quality.STEPS", 1)
    assert judge_sorter(ranks, 30, lists=10).l1 < 1e-7
    assert seen == [3, 3, 3, 1, 32]  # the last is the climb


@pytest.mark.slow
def test_climb_tells_blunt_from_sharp():
    """The paper's trade-off: a sharper λ has the smaller L1 and the worse gradient."""
    blunt, sharp = (judge_sorter(make_sorter(name), 50, lists=300) for name in ("laplace(5)", "laplace(100)"))
    assert sharp.l1 < 0.5 * blunt.l1
    assert sharp.climb < blunt.climb - 0.1
    assert blunt.climb > 0.97


def test_climb_of_one_score_is_nothing():
    assert math.isnan(judge_sorter(make_sorter("laplace"), 1, lists=5).climb)
