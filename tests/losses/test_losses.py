"""The contract of a loss: sizes, signs, convexity, hand values, and Δ = 1 − metric."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from instances import LOSS_NAMES, RANKING_LOSSES, TWO_ARRAY_LOSSES
from judge import definition, loss_of_order
from over import over

from apsvm import most_violated_ranking
from apsvm._support.registry import UnknownNameError
from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import LossError, RankingLoss
from apsvm.losses.zero_one import ZeroOneLoss


@over("name", TWO_ARRAY_LOSSES)
@over(("n_pos", "n_neg"), [(1, 1), (3, 5), (50, 2000), (5000, 3)])
def test_tables_fulfil_the_contract(name, n_pos, n_neg):
    tables = make_loss(name).tables(n_pos, n_neg)
    assert tables.weights.shape == (n_pos,)
    assert tables.discount.shape == (n_pos + n_neg,)
    assert tables.drops.shape == (n_pos + n_neg - 1,)
    assert tables.loss(np.zeros(n_pos, dtype=np.int64)) == 0.0
    worst = tables.loss(np.full(n_pos, n_neg))
    assert 0.0 < worst <= 1.0 + 1e-12


@over("name", RANKING_LOSSES)
def test_loss_is_the_best_value_minus_that_of_the_order(name, rng):
    """By the metric's definition; ``tests/metrics/test_against_losses.py`` has the metrics of the package."""
    loss = make_loss(name)
    for _ in range(100):
        n_pos, n_neg = rng.integers(1, 12, size=2)
        in_order = rng.permutation(np.arange(n_pos + n_neg) < n_pos)
        above = np.flatnonzero(in_order) - np.arange(n_pos)
        assert loss.of_ranking(above, n_neg) == pytest.approx(loss_of_order(definition(name), in_order), abs=1e-12)


def gains_never_fall(loss, n_pos, n_neg):
    """True if the first term of g_j(k) is non-decreasing in k on 1..min(P, j); the second always is."""
    tables = loss.tables(n_pos, n_neg)
    return all(
        (np.diff(tables.weights[:k] * tables.drops[j - 1 : j - 1 + k]) >= -1e-16).all()
        for j in range(1, n_neg + 1)
        for k in (min(n_pos, j),)
    )


@over("name", TWO_ARRAY_LOSSES)
def test_unimodality_is_declared_only_where_it_holds(name):
    loss = make_loss(name)
    if loss.unimodal:
        assert gains_never_fall(loss, 40, 90)
        assert gains_never_fall(loss, 300, 2000)
    loss.check()


def test_hand_values():
    """math.md's order x1 x3 x8 x4 x5 x2 x6 x7, the first four positive: x8 above the third, x8 and x5 above the
    fourth."""
    above = np.array([0, 0, 1, 2])
    assert LOSSES["ap"]().tables(4, 4).loss(above) == pytest.approx(0.1458333, abs=1e-7)
    assert LOSSES["ndcg"]().tables(4, 4).loss(above) == pytest.approx(0.0561, abs=5e-5)
    assert LOSSES["mrr"]().tables(4, 4).loss(above) == 0.0
    assert LOSSES["mrr"]().tables(4, 4).loss(np.array([3, 3, 4, 4])) == 0.75
    assert LOSSES["auc"]().tables(4, 4).loss(above) == pytest.approx(3 / 16)
    # Positions 1, 2, 4, 6 instead of 1, 2, 3, 4.
    assert make_loss("rbp(0.5)").tables(4, 4).loss(above) == pytest.approx(0.5 * (1 / 4 + 1 / 8 - 1 / 8 - 1 / 32))


def test_names():
    assert make_loss("NDCG").name == "ndcg"
    assert make_loss(" RBP(0.95) ").name == "rbp(0.95)"
    assert make_loss("rbp(0.95)").rho == 0.95
    assert isinstance(make_loss("zero-one"), ZeroOneLoss)
    for name in LOSS_NAMES:
        made = make_loss(name)
        again = make_loss(made.name)
        assert type(again) is type(made)
        assert again.name == made.name
        assert make_loss(made) is made


@over(
    ("name", "error", "message"),
    [
        ("rbp(x)", LossError, r"'rbp\(x\)': rbp\(rho\) takes a number, as in rbp\(0.8\), found 'x'"),
        ("rbp(rho)", LossError, "takes a number"),
        ("rbp()", LossError, "takes a number"),
        ("rbp(1)", LossError, r"0 < rho < 1, found 1"),
        ("rbp(nan)", LossError, r"0 < rho < 1"),
        ("ndcg(cubic)", LossError, r"ndcg\(gain\) needs one of exponential, linear, found 'cubic'"),
        ("rbp", UnknownNameError, r"did you mean 'rbp\(rho\)'"),
        ("ncdg", UnknownNameError, "did you mean 'ndcg'"),
        ("ap)", UnknownNameError, "unknown loss"),
        ("ap(3)", UnknownNameError, "unknown loss"),
        ("", UnknownNameError, "unknown loss"),
    ],
)
def test_bad_names_are_refused(name, error, message):
    with pytest.raises(error, match=message):
        make_loss(name)


def made(weights, discount):
    class Made(RankingLoss):
        name = "made"

        def weights(self, n_pos):
            return weights(n_pos)

        def discount(self, n):
            return discount(n)

    return Made()


def positions(n):
    return np.arange(1.0, n + 1)


@pytest.mark.parametrize(
    ("weights", "discount", "message"),
    [
        (np.ones, lambda n: positions(n), "increasing at position 1"),
        (np.ones, lambda n: -(positions(n) ** 2), "not convex at position 1"),
        (np.ones, lambda n: np.where(positions(n) <= 2, 1.0, 1 / np.log2(np.maximum(positions(n), 2))), "position 1"),
        (lambda n: -np.ones(n), lambda n: 1 / positions(n), "weight of the 1-th positive is negative"),
        (np.ones, lambda n: positions(n + 1), "numbers of discount"),
        (np.ones, lambda n: np.full(n, np.nan), "finite"),
    ],
)
def test_a_loss_that_breaks_the_contract_is_refused(weights, discount, message):
    with pytest.raises(LossError, match=message):
        made(weights, discount).tables(3, 5)


class Convex:
    """A user's own: no base class, lists of plain numbers, no name."""

    def weights(self, n_pos):
        return [1 / n_pos] * n_pos

    def discount(self, n):
        return [1 / p**2 for p in range(1, n + 1)]


class NotConvexFarDown(Convex):
    def discount(self, n):
        return [1 / min(p, 40) if p < 45 else 0.0 for p in range(1, n + 1)]


class FalselyUnimodal(Convex):
    unimodal = True


class NoArrays:
    weights = 3


class Breaks(Convex):
    def weights(self, n_pos):
        raise ValueError("out of luck")


def test_an_object_with_two_arrays_is_a_loss():
    loss = make_loss(Convex())
    assert loss.name == "Convex"
    assert not loss.unimodal
    assert make_loss(Convex).name == "Convex"
    named = Convex()
    named.name = "mine"
    assert make_loss(named).name == "mine"
    scores, relevance = [0.1, 0.3, -0.2, 0.0], [1, 0, 0, 1]
    found = most_violated_ranking(scores, relevance, loss=Convex())
    judge = most_violated_ranking(scores, relevance, loss=Convex(), oracle="brute-force")
    assert found.value == pytest.approx(judge.value)
    assert found.value > 0


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (NotConvexFarDown(), r"'NotConvexFarDown': the discount is not convex at position 43"),
        (FalselyUnimodal(), r"unimodal, but the gain .* of negative j = 2 falls after positive k = 1"),
        (NoArrays(), r"expected an object with weights\(n_pos\) and discount\(n\), found NoArrays"),
        (Breaks, r"weights\(1\) failed: out of luck"),
        (3.5, "found float"),
        (None, "found NoneType"),
    ],
)
def test_a_bad_object_is_refused_when_it_is_made(thing, message):
    with pytest.raises(LossError, match=message):
        make_loss(thing)


FILE = """
from apsvm.losses.base import RankingLoss

class Mine(RankingLoss):
    name = "mine"
    def weights(self, n_pos):
        return [1.0] * n_pos
    def discount(self, n):
        return [-float(p) for p in range(n)]

instance = Mine()

class Concave(Mine):
    def discount(self, n):
        return [-float(p * p) for p in range(n)]

class NeedsArguments(Mine):
    def __init__(self, x):
        self.x = x
"""


def test_a_loss_of_a_file_in_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "own_loss_file.py").write_text(FILE)
    (tmp_path / "own_loss_broken.py").write_text("1 / 0")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", ".")])
    monkeypatch.chdir(tmp_path)
    for name in ("own_loss_file:Mine", "own_loss_file:instance"):
        assert make_loss(name).name == name
        assert most_violated_ranking([0.0, 1.0], [1, 0], loss=name).value == pytest.approx(1.0 + 2.0)
    for name, message in [
        ("own_loss_file:Concave", "'own_loss_file:Concave': the discount is not convex at position 1"),
        ("own_loss_file:NeedsArguments", r"failed: .*missing 1 required positional argument: 'x'"),
        ("own_loss_file:Mime", r"own_loss_file.py has no 'Mime'; did you mean own_loss_file:Mine\?"),
        ("own_loss_broken:Mine", "cannot import 'own_loss_broken': division by zero"),
        ("no_such_loss_file:Mine", "cannot import 'no_such_loss_file': No module named"),
        ("own_loss_file:", "expected package.module:Name"),
        (":Mine", "expected package.module:Name"),
    ]:
        with pytest.raises(LossError, match=message):
            make_loss(name)


def test_losses_are_listed_without_numpy():
    code = "import sys; from apsvm.losses import LOSSES, make_loss; list(LOSSES); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
