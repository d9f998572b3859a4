"""What a worker does with its share of a list, kernel by kernel: cells numbered, cut, collected and weighed."""

from __future__ import annotations

import numpy as np
import pytest
from over import over

from apsvm._native import _kernels
from apsvm.losses import make_loss


def scores_of(kind, n, rng):
    return {
        "normal": rng.normal(size=n),
        "cauchy": rng.standard_cauchy(size=n),
        "few": rng.choice([-1.5, 0.0, 2.0], n),
        "far from zero": 1e8 + 1e-3 * rng.normal(size=n),
        "huge": 1e300 * rng.uniform(-1.0, 1.0, n),
        "tiny": 1e-300 * rng.uniform(-1.0, 1.0, n),
        "lumps": rng.normal(np.repeat([-1.0, 0.0, 4.0], n // 3), 0.3),
        "around zero": rng.normal(size=n) * 10.0 ** rng.integers(-320, -290, size=n),
    }[kind]


@over("kind", ["normal", "cauchy", "few", "far from zero", "huge", "tiny", "lumps", "around zero"])
@over("most", [65_536, 200_000])
def test_scores_lie_between_the_edges_of_their_cells(kind, most, rng):
    scores = scores_of(kind, 3000, rng)
    bins = _kernels.ScoreBins(scores[::3].copy(), 3_000_000, 50_000, most)
    cells = np.empty(scores.size, dtype=np.int32)
    counts, lowest, highest = bins.number(scores, cells)
    assert (lowest, highest) == (scores.min(), scores.max())
    lower, upper = bins.edges()
    assert bins.size <= most
    np.testing.assert_array_equal(counts, np.bincount(cells, minlength=bins.size))
    at_edges = upper[:-1] / 2.0 + lower[1:] / 2.0  # what rounding may put on either side
    for some in (scores, at_edges[np.isfinite(at_edges)]):
        cells = np.empty(some.size, dtype=np.int32)
        bins.number(some, cells)
        assert (lower[cells] <= some).all()
        assert (some <= upper[cells]).all()


def test_many_bins_are_narrower_where_scores_are_dense(rng):
    """At least a fifth of them is for all parts of the range alike, the rest goes by the sample."""
    scores = rng.normal(size=200_000)
    bins = _kernels.ScoreBins(scores[::40].copy(), 4_000_000, 50_000, 200_000)
    counts, _, _ = bins.number(scores, np.empty(scores.size, dtype=np.int32))
    lower, upper = bins.edges()
    width = (upper - lower)[np.searchsorted(lower, [0.0, 3.0])]
    assert 199_000 < bins.size <= 200_000
    assert width[1] > 3.0 * width[0]
    assert counts @ counts / scores.size - 1.0 < 1.3  # others in a score's bin: 2.4 where all bins are of one width


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("most", [65_536, 200_000])
@over("place", [3, 4321])
def test_scores_that_are_not_finite_are_told(place, bad, most, rng):
    """Thousands of scores before the last ones, and among these."""
    scores = rng.normal(size=5000)
    bins = _kernels.ScoreBins(scores[:999].copy(), 3_000_000, 50_000, most)
    cells = np.empty(scores.size, dtype=np.int32)
    scores[place] = bad
    counts, lowest, highest = bins.number(scores, cells)
    assert np.isnan([lowest, highest]).all()
    assert counts.sum() == scores.size
    assert cells.min() >= 0
    assert cells.max() < bins.size


@pytest.mark.parametrize("kind", ["normal", "cauchy", "few", "around zero"])
def test_values_below_scores_are_counted(kind, rng):
    values = scores_of(kind, 300, rng)
    scores = np.r_[values, scores_of(kind, 900, rng)]
    expected = np.searchsorted(np.sort(values), scores, side="left")
    for order in (values, np.sort(values), np.sort(values)[::-1].copy()):
        np.testing.assert_array_equal(_kernels.count_below(order, scores), expected)
    with pytest.raises(ValueError, match="1 to 2\\^30 values"):
        _kernels.count_below(values[:0], scores)
    with pytest.raises(ValueError, match="finite values"):
        _kernels.count_below(np.array([np.nan]), scores)


@over("by_key", [False, True])
@over("edges", [(0.0, 1.0), (-1.0, 5e-324), (-1e308, 1.7e308), (1.0, np.nextafter(1.0, 2.0))])
def test_pieces_ascend_within_their_cell(by_key, edges):
    lower, upper = (np.array([edge]) for edge in edges)
    for asked in (2, 3, 16):
        pieces, lowest = _kernels.cut_evenly(lower, upper, np.array([asked]), by_key)
        assert 2 <= pieces[0] <= asked
        assert lowest.size == pieces[0] - 1
        assert (np.diff(lowest) > 0).all()
        assert edges[0] < lowest[0]
        assert lowest[-1] <= edges[1]


def test_every_score_is_alone_in_the_end():
    """Halving by keys takes 64 steps at most."""
    lower, upper, target = np.array([-1e300]), np.array([1e300]), 3e-200
    steps = 0
    while lower[0] < upper[0]:
        _, lowest = _kernels.cut_evenly(lower, upper, np.array([2]), True)
        if target >= lowest[0]:
            lower = lowest
        else:
            upper = np.nextafter(lowest, -np.inf)
        steps += 1
    assert steps <= 64
    assert lower[0] == target


def test_cells_are_cut_collected_and_weighed(rng):
    n, n_cells = 2500, 40
    cells = rng.integers(0, n_cells, n).astype(np.int32)
    scores = rng.normal(size=n)
    times = rng.choice([1, 1, 2, 5, 20], n_cells)  # few thresholds and many
    starts = np.concatenate([[0], np.cumsum(times - 1)]).astype(np.int32)
    thresholds = np.concatenate([np.sort(rng.choice(scores, k - 1)) for k in times])
    expected = [
        old + starts[old] + np.searchsorted(thresholds[starts[old] : starts[old + 1]], score, side="right")
        for old, score in zip(cells, scores, strict=True)
    ]
    counts = _kernels.split_cells(scores, cells, starts, thresholds)
    np.testing.assert_array_equal(cells, expected)
    np.testing.assert_array_equal(counts, np.bincount(cells, minlength=times.sum()))

    wanted = rng.integers(0, 2, counts.size).astype(np.uint8)
    order = np.argsort(cells, kind="stable")
    of_wanted = order[wanted[cells[order]] > 0]
    np.testing.assert_array_equal(_kernels.collect_scores(scores, cells, counts, wanted), scores[of_wanted])

    lowest, highest = _kernels.cell_extremes(scores, cells, counts.size)
    filled = np.flatnonzero(counts)
    np.testing.assert_array_equal(lowest[filled], [scores[cells == cell].min() for cell in filled])
    np.testing.assert_array_equal(highest[filled], [scores[cells == cell].max() for cell in filled])

    n_pos, scale, top = 9, 0.25, 1.5
    ranks = np.where(wanted > 0, 0, rng.integers(1, n_pos + 2, counts.size)).astype(np.int32)
    of_open = rng.integers(1, n_pos + 2, of_wanted.size).astype(np.int32)
    other, weights = rng.normal(size=n), np.empty(n)
    sums = _kernels.weigh_cells(scores, cells, counts, ranks, of_open, n_pos, scale, top, other, weights)
    of_rows = ranks[cells]
    of_rows[of_wanted] = of_open
    np.testing.assert_array_equal(weights, scale * (n_pos + 1 - of_rows))
    assert sums == pytest.approx((weights @ (scores - top), weights @ other))
    alone = _kernels.weigh_cells(scores, cells, counts, ranks, of_open, n_pos, scale, top, None, weights)
    assert alone == (sums[0], 0.0)


def test_bins_are_bounded_as_cells_are(rng):
    """Ranks of settled bins are those of their negatives, and the open ones' lie within the bounds."""
    n_pos, n_neg = 30, 4000
    positives, negatives = np.sort(rng.normal(0.4, 1.0, n_pos))[::-1].copy(), rng.normal(size=n_neg)
    loss = make_loss("ap")
    search = _kernels.RankSearch(positives, *loss.tables(n_pos, n_neg), unimodal=loss.unimodal)
    bins = _kernels.ScoreBins(negatives[:500].copy(), n_neg, n_pos)
    cells = np.empty(n_neg, dtype=np.int32)
    counts, _, _ = bins.number(negatives, cells)
    results = [search.bound_bins(bins, counts, threads=threads) for threads in (1, 2)]
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
    of_bin, names, first, of_open, low, high = results[0]
    order = np.argsort(-negatives, kind="stable")
    whole = np.array([1]), np.array([n_neg])
    bounds = np.array([1], dtype=np.int32), np.array([n_pos + 1], dtype=np.int32)
    ranks = np.empty(n_neg, dtype=np.int32)
    (ranks[order],), of_ranks = search.rank(whole[0], whole[1][:, None].astype(np.int32), [negatives[order]], *bounds)
    np.testing.assert_array_equal(of_ranks, np.bincount(ranks, minlength=n_pos + 2))
    settled = of_bin[cells] > 0
    assert 0 < settled.sum() < n_neg
    np.testing.assert_array_equal(of_bin[cells][settled], ranks[settled])
    for name, position, count, least, most in zip(names, first, of_open, low, high, strict=True):
        inside = cells == name
        assert count == inside.sum()
        assert position == 1 + (cells > name).sum()
        assert least <= ranks[inside].min()
        assert ranks[inside].max() <= most


@over(
    ("call", "message"),
    [
        (lambda f, i, n: _kernels.split_cells(f, i - 5, n, f[:0]), "cells that there are"),
        (lambda f, i, n: _kernels.split_cells(f, i, np.array([1, 2], dtype=np.int32), f), "ascend from 0"),
        (lambda f, i, n: _kernels.split_cells(f, i, np.array([0, 3], dtype=np.int32), f[:2]), "3 thresholds"),
        (lambda f, i, n: _kernels.split_cells(f, i, np.empty(0, dtype=np.int32), f), "ascend from 0"),
        (lambda f, i, n: _kernels.collect_scores(f, i, np.array([-1]), np.ones(1, np.uint8)), "counts of the rows"),
        (lambda f, i, n: _kernels.collect_scores(f, i, np.array([2**62, 2**62]), np.ones(2, np.uint8)), "counts of"),
        (lambda f, i, n: _kernels.collect_scores(f, i, np.array([1]), np.ones(1, np.uint8)), "counts of these cells"),
        (lambda f, i, n: _kernels.collect_scores(f, i, np.array([4]), np.ones(2, np.uint8)), "1 marks"),
        (lambda f, i, n: _kernels.cell_extremes(f, i, 0), "cells that there are"),
        (lambda f, i, n: _kernels.weigh_cells(f, i, np.array([4]), i[:1], i[:3] + 1, 1, 1.0, 0.0, None, f), "all open"),
        (lambda f, i, n: _kernels.weigh_cells(f, i, np.array([4]), i[:1] + 3, i, 1, 1.0, 0.0, None, f), "up to P"),
        (lambda f, i, n: _kernels.weigh_cells(f, i, np.array([4]), i[:1] - 1, i, 1, 1.0, 0.0, None, f), "up to P"),
        (lambda f, i, n: _kernels.weigh_cells(f, i, np.array([4]), i[:1], i, 1, 1.0, 0.0, None, f), "up to P"),
        (lambda f, i, n: _kernels.weigh_cells(f, i, np.array([4]), i[:1], i, 1, 1.0, 0.0, f[:2], f), "4 other"),
        (lambda f, i, n: _kernels.weigh_cells(f, i, np.array([4]), i[:1], i, -1, 1.0, 0.0, None, f), "positives"),
        (lambda f, i, n: _kernels.cut_evenly(f, f, np.full(4, 2), False), "lower one below"),
        (lambda f, i, n: _kernels.cut_evenly(f, f + np.inf, np.full(4, 2), False), "finite edges"),
        (lambda f, i, n: _kernels.cut_evenly(f, f + 1, np.full(4, 1), False), "at least two"),
        (lambda f, i, n: _kernels.cut_evenly(f, f + 1, np.full(4, 2**30), True), "fewer than 2"),
        (lambda f, i, n: _kernels.ScoreBins(f, 10, 1, 0), "at most 2"),
        (lambda f, i, n: _kernels.ScoreBins(f, 10, 1).number(f, i[:2]), "4 cells"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.zeros(4), np.zeros(4, dtype=np.int32), np.array([0, 0], dtype=np.int32))


@over("digits", [1, 2, 12])
@over("loss_name", ["ap", "ndcg", "auc"])
def test_cells_of_two_ranks_are_ranked_as_others(loss_name, digits, rng):
    """Scores of a cell whose bounds are next to each other need not be sorted, unless equal ones have both ranks."""
    n_pos, n_neg, loss = 40, 3000, make_loss(loss_name)
    spread = 10.0 ** rng.uniform(-3.0, 0.5)  # small: where ranks change is a matter of the position more than the score
    positives = np.sort(np.round(rng.normal(0.5, 1.0, n_pos) * spread, 2 + digits))[::-1].copy()
    negatives = np.round(rng.normal(size=n_neg) * spread, digits)
    search = _kernels.RankSearch(positives, *loss.tables(n_pos, n_neg), unimodal=loss.unimodal)
    order = np.argsort(-negatives, kind="stable")
    whole = np.array([1]), np.array([[n_neg]], dtype=np.int32)
    ends = np.array([1], dtype=np.int32), np.array([n_pos + 1], dtype=np.int32)
    ranks = np.empty(n_neg, dtype=np.int32)
    (ranks[order],), _ = search.rank(*whole, [negatives[order]], *ends)
    of_order = ranks[order]

    # Cells around the changes of rank, each of two ranks, or of one; dealt out to two parts.
    changes = np.flatnonzero(np.diff(of_order)) + 1
    cuts = np.unique(np.r_[0, (changes[1:] + changes[:-1]) // 2, n_neg])
    low, high = of_order[cuts[:-1]], of_order[cuts[1:] - 1]
    of_first = rng.random(n_neg) < 0.4
    cell = np.repeat(np.arange(low.size), np.diff(cuts))
    parts = [np.flatnonzero(of_first == first) for first in (True, False)]
    counts = np.array([np.bincount(cell[part], minlength=low.size) for part in parts], dtype=np.int32)
    # Within a cell in the order of the negatives, which ties go by: those of the first part are the earlier ones.
    rows = [part[np.lexsort((order[part], -cell[part]))] for part in parts]
    found, of_ranks = search.rank(
        cuts[:-1] + 1, counts, [negatives[order[part]] for part in rows], low, high, threads=2
    )
    if digits == 12:
        for part, ranked in zip(rows, found, strict=True):
            np.testing.assert_array_equal(ranked, of_order[part])
    np.testing.assert_array_equal(of_ranks, np.bincount(of_order, minlength=n_pos + 2))
    joined = np.argsort(np.concatenate([-cell[part] for part in rows]), kind="stable")
    by_cell = np.concatenate(found)[joined]
    scores = np.concatenate([negatives[order[part]] for part in rows])[joined]
    of_cells = np.concatenate([-cell[part] for part in rows])[joined]
    expected = np.lexsort((np.arange(scores.size), -scores, -of_cells))
    np.testing.assert_array_equal(by_cell[expected], of_order)
