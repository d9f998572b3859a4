"""Every exact oracle of a two-array loss, at its default parameter: against greedy on large queries, by value."""

from __future__ import annotations

import re

import numpy as np
import pytest
from over import over

from apsvm import most_violated_ranking
from apsvm._support.registry import UnknownNameError
from apsvm.losses import LOSSES
from apsvm.losses.base import LossError, RankingLoss
from apsvm.oracles import ORACLES, make_oracle

#: One name a class.
RANKING_LOSSES = list({LOSSES[n]: n for n in reversed(list(LOSSES)) if issubclass(LOSSES[n], RankingLoss)}.values())
PAIRS = [
    (loss, oracle)
    for loss in RANKING_LOSSES
    for oracle in ORACLES
    if oracle != "brute-force" and ORACLES[oracle]().exact and ORACLES[oracle]().refusal(LOSSES[loss]()) is None
]


def shapes(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Scores of many kinds."""
    return {
        "normal": rng.normal(size=n),
        "few values": rng.integers(0, 4, size=n) / 4.0,
        "constant": np.full(n, 0.7),
        "two values": rng.integers(0, 2, size=n) * 1.0,
        "Cauchy": rng.standard_cauchy(size=n),
        "log-normal": rng.lognormal(sigma=3.0, size=n),
        "ascending": np.linspace(-1.0, 1.0, n),
        "descending": np.linspace(1.0, -1.0, n),
        "tiny": rng.normal(size=n) * 1e-9,
        "huge": rng.normal(size=n) * 1e9,
    }


@over(("loss", "oracle"), PAIRS)
def test_a_negative_passes_as_many_positives_as_pays(loss, oracle, rng):
    """Against a table of f_1: at scores just below and above the one from which on any rank pays, and higher ones."""
    n_pos, n_neg, passed = 160, 400, set()
    tables, scale = LOSSES[loss]().tables(n_pos, n_neg), 2.0 / (n_pos * n_neg)
    number, relevant = np.arange(n_pos + 1), np.repeat([True, False], [n_pos, n_neg])
    for spread in (0.01, 0.01, 1.0, 1.0, 10.0):
        s_pos = np.sort(spread * (rng.normal(size=n_pos) + 5.0 * rng.integers(0, 2, n_pos)))[::-1]
        gains = tables.weights * (tables.discount[:n_pos] - tables.discount[1 : n_pos + 1]) - scale * s_pos
        totals = np.r_[0.0, np.cumsum(gains[::-1])]  # where the last 0, 1, … positives are passed, at score 0
        least = (-totals[1:] / (scale * number[1:])).min()
        for above in (-1e-9, 1e-9, *(spread * rng.random(6))):
            s_neg = np.full(n_neg, least - 1e3)
            s_neg[0] = least + above
            best = int((totals + scale * number * s_neg[0]).argmax())
            found = most_violated_ranking(np.r_[s_pos, s_neg], relevant, loss=LOSSES[loss](), oracle=oracle)
            assert found.ranks.tolist() == [n_pos + 1 - best] + [n_pos + 1] * (n_neg - 1)
            passed.add(best)
    assert passed > {0}


@over("oracle", [oracle for loss, oracle in PAIRS if loss == "ap"])
def test_what_pays_again_but_not_for_what_lies_between(oracle):
    """A negative passes the last 32 of 320 positives alone: of the others only the first would pay, by less than those
    between them cost."""
    n_pos, n_neg = 320, 400
    scores = np.r_[np.repeat([6.0, -30.0], [n_pos - 32, 32]), 0.0, np.full(n_neg - 1, -1e3)]
    found = most_violated_ranking(scores, np.arange(n_pos + n_neg) < n_pos, loss=LOSSES["ap"](), oracle=oracle)
    assert found.ranks.tolist() == [n_pos - 31] + [n_pos + 1] * (n_neg - 1)


@over(("loss", "oracle"), [pair for pair in PAIRS if pair[1] != "greedy"])
@over(("n_pos", "n_neg"), [(1, 3000), (40, 2500), (300, 300), (700, 40), (500, 1)])
def test_equals_greedy_on_large_queries(loss, oracle, n_pos, n_neg, rng):
    relevant = rng.permutation(np.repeat([True, False], [n_pos, n_neg]))
    for kind, scores in shapes(rng, n_pos + n_neg).items():
        for lift in (0.0, 0.5):
            lifted = scores + lift * relevant
            judge = most_violated_ranking(lifted, relevant, loss=LOSSES[loss](), oracle="greedy")
            found = most_violated_ranking(lifted, relevant, loss=LOSSES[loss](), oracle=oracle)
            assert found.value == pytest.approx(judge.value, rel=1e-10, abs=1e-10), kind


@pytest.mark.parametrize("oracle", ["auto", "greedy", "qs"])
def test_scores_too_far_apart(oracle):
    with pytest.raises(ValueError, match=r"scores from -1e\+308 to 1e\+308 are too far apart"):
        most_violated_ranking([1e308, -1e308, 1e308], [1, 0, 0], oracle=oracle)


@over(("loss", "oracle"), [pair for pair in PAIRS if pair[0] in ("ap", "auc")])
def test_the_tie_rule_is_the_same_for_all(loss, oracle, rng):
    """Exact ties (dyadic scores and sizes, so that nothing is rounded): the largest rank, equal scores by position."""
    different = 0
    for _ in range(300):
        relevant = rng.permutation(np.repeat([True, False], [2, 4]))
        scores = rng.integers(-4, 5, size=6) / 8.0
        judge = most_violated_ranking(scores, relevant, loss=loss, oracle="greedy")
        found = most_violated_ranking(scores, relevant, loss=loss, oracle=oracle)
        np.testing.assert_array_equal(found.ranks, judge.ranks)
        different += np.unique(found.ranks).size > 1
    assert different > 50


def test_an_offset_of_all_scores_changes_nothing(rng):
    scores, relevant = rng.normal(size=500), rng.random(500) < 0.1
    here = most_violated_ranking(scores, relevant)
    there = most_violated_ranking(scores + 1e6, relevant)
    assert there.value == pytest.approx(here.value, abs=1e-9)


def test_hand_values():
    """math.md's order x1 x3 x8 x4 x5 x2 x6 x7 with the first four positive has Δ_AP = 0.1458333: with scores in that
    order and so far apart that no other ranking pays, it is the most violated one but for its own margins."""
    tables = LOSSES["ap"]().tables(4, 4)
    # x8 stands above the third positive (x4), x8 and x5 above the fourth (x2).
    assert tables.loss(np.array([0, 0, 1, 2])) == pytest.approx(0.1458333, abs=1e-7)
    # One positive, one negative, scores s and 0: max(0, Δ − 2s) with Δ = 1/2.
    for s in (-1.0, 0.0, 0.1, 0.25, 1.0):
        assert most_violated_ranking([s, 0.0], [1, 0]).value == pytest.approx(max(0.0, 0.5 - 2 * s))
    # At w = 0 every negative goes to the top: Δ = 1 − (1/P) Σ k/(k+N).
    found = most_violated_ranking(np.zeros(5), np.array([1, 1, 0, 0, 0], dtype=object))
    assert found.value == pytest.approx(1 - (1 / 4 + 2 / 5) / 2)
    np.testing.assert_array_equal(found.ranks, [1, 1, 1])


def test_perfect_separation_has_no_violation():
    found = most_violated_ranking([9.0, 8.0, -9.0, -8.0], [1, 1, 0, 0])
    assert found.value == 0.0
    assert found.loss == 0.0
    np.testing.assert_array_equal(found.ranks, [3, 3])
    np.testing.assert_array_equal(found.row_weights, np.zeros(4))


@over(
    ("scores", "relevance", "message"),
    [
        ([1.0, 2.0], [1], "one length"),
        ([[1.0, 2.0]], [[1, 0]], "one length"),
        ([np.nan, 1.0], [1, 0], "finite"),
        ([np.inf, 1.0], [1, 0], "finite"),
        ([1.0, 2.0], [1, np.nan], "finite"),
        ([1e308, -1e308], [1, 0], "from -1e+308 to 1e+308 are too far apart for float64"),
        ([1.0, 2.0], [1, 1], "found 2 and 0"),
        ([1.0, 2.0], [0, -1], "found 0 and 2"),
        ([], [], "found 0 and 0"),
    ],
)
def test_bad_input_is_refused(scores, relevance, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        most_violated_ranking(scores, relevance)


def test_large_scores_that_are_near_one_another_are_ranked():
    result = most_violated_ranking([1e200, 1e200, 1.1e200, 0.9e200], [1, 0, 0, 0])
    assert result.ranks.tolist() == [1, 1, 2]
    assert np.isfinite(result.value)


@over("share", [0.0, 0.01, 0.4, 0.99])
@over("n", [2, 7, 128, 1000, 30_000])
def test_mixed_rows_are_put_where_they_belong(n, share, rng):
    """Against the same rows in another order: the first one positive, the last one negative, and the reverse."""
    relevant = rng.random(n) < share
    relevant[0], relevant[-1] = True, False
    scores = rng.normal(size=n)
    result = most_violated_ranking(scores, relevant)
    back = most_violated_ranking(scores[::-1], relevant[::-1])
    np.testing.assert_array_equal(result.ranks, back.ranks[::-1])
    np.testing.assert_array_equal(result.row_weights, back.row_weights[::-1])
    n_pos, n_neg = int(relevant.sum()), int((~relevant).sum())
    expected = 2.0 / (n_pos * n_neg) * (n_pos + 1 - result.ranks)
    np.testing.assert_allclose(result.row_weights[~relevant], expected, rtol=1e-15)


def test_unknown_and_unfit_names_are_refused():
    with pytest.raises(UnknownNameError, match=r"unknown oracle 'greddy'.*did you mean 'greedy'"):
        most_violated_ranking([1.0, 0.0], [1, 0], oracle="greddy")
    with pytest.raises(UnknownNameError, match="unknown loss 'map'"):
        most_violated_ranking([1.0, 0.0], [1, 0], loss="map")
    with pytest.raises(LossError, match="expected a loss over rankings"):
        most_violated_ranking([1.0, 0.0], [1, 0], loss="zero-one")
    with pytest.raises(LossError, match=r"'qs' cannot serve loss 'zero-one'.*choose auto or zero-one"):
        make_oracle("qs", LOSSES["zero-one"]())
    with pytest.raises(ValueError, match="tiny queries"):
        most_violated_ranking(np.zeros(60), np.arange(60) < 30, oracle="brute-force")


def test_search_refuses_a_loss_that_is_not_unimodal():
    class NotUnimodal(LOSSES["ap"]):
        name = "not-unimodal"
        unimodal = False

    for oracle in ("search", "search-select"):
        with pytest.raises(LossError, match=r"unimodal; choose auto or greedy, select, qs"):
            make_oracle(oracle, NotUnimodal())
    assert make_oracle("auto", NotUnimodal()).name == "bucket"


@pytest.mark.parametrize("oracle", [oracle for loss, oracle in PAIRS if loss == "ap"])
def test_lazy_oracles_evaluate_fewer_ranks(oracle, rng):
    scores = np.concatenate([rng.normal(size=20) + 3.0, rng.normal(size=5000)])
    bound = make_oracle(oracle, LOSSES["ap"]()).bind(LOSSES["ap"](), 20, 5000)
    weights = np.empty(5000)
    violation = bound(scores[:20], scores[20:], np.empty(20), weights)
    assert 0 < violation.violating < 1000
    assert violation.violating == (weights > 0).sum()
    if oracle in ("greedy", "search"):
        assert violation.ranks_evaluated == 5000
    elif oracle in ("select", "search-select", "qs", "bucket"):  # what a newcomer counts is its own affair
        assert violation.ranks_evaluated < violation.violating + 100
