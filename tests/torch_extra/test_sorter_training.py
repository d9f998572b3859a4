"""Training sorters: it lowers L1, goes on from its file to the bit, and says why it stopped; what quality means."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from over import over

from apsvm.torch.checkpoint import CheckpointError, sealed, unsealed
from apsvm.torch.ranks import exact_ranks
from apsvm.torch.score_lists import KINDS, draw_lists, seeded
from apsvm.torch.sorters import SorterError, make_sorter
from apsvm.torch.sorters.quality import climb, judge_sorter, spearman
from apsvm.torch.sorters.training import STEPS_A_LINE, SorterSettings, SorterTraining

SMALL = {
    "gru-sum": SorterSettings(architecture="gru-sum", length=6, batch=8, halve_every=60),
    "cnn(3)": SorterSettings(architecture="cnn(3)", length=12, batch=8, seed=4),
    "neighbours": SorterSettings(architecture="neighbours", length=4, longest=12, batch=8, learning_rate=3e-3),
    "lstm": SorterSettings(architecture="lstm", length=5, batch=8),
}


def state_of(training):
    return {name: tensor.clone() for name, tensor in training.sorter.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


class Records:
    def __init__(self):
        self.all = []

    def write(self, event, **fields):
        self.all.append((event, fields))


@pytest.mark.parametrize("name", SMALL)
def test_resumed_is_the_same_to_the_bit(name, tmp_path):
    whole = SorterTraining(SMALL[name])
    first_weights = state_of(whole)
    assert whole.run(samples=160) == "all lists seen"
    halves = SorterTraining(SMALL[name])
    assert same(state_of(halves), first_weights)
    for samples in (8, 80):  # the first after one step
        halves.run(samples=samples)
        halves.save(tmp_path / "training")
        halves = SorterTraining.resumed(tmp_path / "training")
    halves.run(samples=160)
    assert halves.seen == whole.seen == 160
    assert same(state_of(halves), state_of(whole))
    assert not same(state_of(whole), first_weights)
    halves.save(tmp_path / "a")
    whole.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_training_of_no_step_resumes(tmp_path):
    training = SorterTraining(SMALL["gru-sum"])
    training.save(tmp_path / "training")
    assert same(state_of(SorterTraining.resumed(tmp_path / "training")), state_of(training))


def test_seeds_differ_and_touch_nobodys_generator():
    before = torch.random.get_rng_state()
    one, same_seed = (SorterTraining(SMALL["gru-sum"]) for _ in range(2))
    other = SorterTraining(SorterSettings(architecture="gru-sum", length=6, batch=8, seed=1))
    for training in (one, same_seed, other):
        training.run(samples=16)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert same(state_of(one), state_of(same_seed))
    assert not same(state_of(one), state_of(other))


def test_halving():
    training = SorterTraining(SMALL["gru-sum"])
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
    assert SMALL["gru-sum"].length_of(seeded("lengths")) == 6


@pytest.mark.slow
def test_l1_falls():
    training = SorterTraining(SorterSettings(architecture="neighbours", length=10, batch=32, learning_rate=3e-3))
    before = judge_sorter(training.sorter, 10, lists=200).l1
    lines, log = [], Records()
    assert training.run(samples=3200, progress=lines.append, log=log) == "all lists seen"
    assert judge_sorter(training.sorter, 10, lists=200).l1 < 0.6 * before
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1].steps == 100
    assert lines[-1].seen == 3200
    assert lines[-1].l1 < lines[0].l1
    assert all(line.steps - earlier.steps <= STEPS_A_LINE for earlier, line in pairwise(lines))
    assert [event for event, _ in log.all] == ["start", *["batches"] * len(lines), "end"]
    assert log.all[0][1]["architecture"] == "neighbours"
    assert log.all[-1][1] == {"state": "all lists seen", "steps": 100, "seen": 3200}


def test_why_it_stops():
    training = SorterTraining(SMALL["gru-sum"])
    assert training.run(time_limit=0) == "time limit"
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


def test_files_that_are_no_training(tmp_path):
    path = tmp_path / "t"
    training = SorterTraining(SMALL["gru-sum"])
    training.run(samples=8)
    training.save(path)
    header, tensors = unsealed(path.read_bytes())
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    for content, message in (
        (bytes(damaged), "checksum"),
        (b"", "damaged"),
        (sealed({**header, "kind": "sorter"}, tensors), "no training but"),
        (sealed({**header, "settings": {"layers": 3}}, tensors), "no sorter's"),
        (sealed({**header, "settings": {**header["settings"], "length": 0}}, tensors), "length of 1"),
        (sealed({**header, "settings": {**header["settings"], "batch": "8"}}, tensors), "no sorter's"),
        (sealed({**header, "settings": {**header["settings"], "architecture": "nope"}}, tensors), "unknown sorter"),
        (sealed({**header, "settings": {**header["settings"], "architecture": 3}}, tensors), "no sorter's"),
        (sealed({**header, "settings": {**header["settings"], "length": 2.5}}, tensors), "no sorter's"),
        (
            sealed({**header, "settings": {**header["settings"], "architecture": "lstm", "length": 10**9}}, tensors),
            "t: ",
        ),
        (sealed({**header, "steps": None}, tensors), "'steps' is None"),
        (sealed({**header, "steps": -1}, tensors), "'steps' is -1"),
        (sealed(header, {name: t for name, t in tensors.items() if "exp_avg_sq" not in name}), "lacks"),
        (sealed(header, {name: t for name, t in tensors.items() if "sorter" not in name}), "not as its header says"),
    ):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=message):
            SorterTraining.resumed(path)


def test_quality_of_exact_ranks_and_of_a_constant():
    perfect = judge_sorter(exact_ranks_with_a_gradient, 20, lists=300)
    assert perfect.l1 < 1e-7
    assert all(l1 < 1e-7 for l1 in perfect.l1_by_kind.values())
    assert perfect.climb == pytest.approx(climb(lambda scores: scores * 0.0, 20))  # a gradient of zero leads nowhere
    assert abs(perfect.climb) < 0.2
    middle = judge_sorter(lambda scores: scores * 0.0 + 0.5, 20, lists=300)
    assert middle.l1 == pytest.approx(0.25, abs=0.01)
    assert set(middle.l1_by_kind) == set(KINDS)


def exact_ranks_with_a_gradient(scores):
    return exact_ranks(scores) + 0.0 * scores


def test_l1_by_kind_adds_up():
    sorter = make_sorter("handcrafted")
    quality = judge_sorter(sorter, 30, lists=500)
    scores, kinds = draw_lists(seeded("judging", 0, 0), 500, 30)
    errors = (sorter(scores) - exact_ranks(scores)).abs().mean(1)
    assert quality.l1 == pytest.approx(float(errors.mean()), rel=1e-5)
    for at, name in enumerate(KINDS):
        assert quality.l1_by_kind[name] == pytest.approx(float(errors[kinds == at].mean()), rel=1e-5)


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
    assert math.isnan(climb(make_sorter("laplace"), 1))


def test_spearman():
    from scipy.stats import spearmanr

    one, other = torch.randn(2, 15, generator=seeded("spearman"), dtype=torch.float64)
    found = float(spearman(exact_ranks(one), exact_ranks(other)))
    assert found == pytest.approx(spearmanr(one, other).statistic, abs=1e-12)


def test_judging_leaves_no_gradient():
    sorter = make_sorter("gru-sum")
    judge_sorter(sorter, 5, lists=10)
    assert all(parameter.grad is None for parameter in sorter.parameters())
    assert all(parameter.requires_grad for parameter in sorter.parameters())


def test_a_sorter_of_the_user(tmp_path):
    """Whoever has a module of his own judges it as any other."""
    quality = judge_sorter(torch.nn.Linear(8, 8), 8, lists=20)
    assert 0 < quality.l1 < 5
    with pytest.raises(SorterError):
        make_sorter("handcrafted(x)")
