"""The risk of bags: against all choices of instances, the convex majorant with the positives held, moved planes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from instances import loss_names
from over import over
from trainings import make_risk

from apsvm._native import _kernels
from apsvm.data.bags import rows_of_runs
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.oracles import make_oracle
from apsvm.oracles.layout import lay_out
from apsvm.risk import Ramp, loss_by_order, make_bag_risk
from apsvm.trainers.base import TrainingSet

RANKINGS = [name for name in loss_names() if make_loss(name).over_rankings]


def bags_of_sizes(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def tiny(rng, ties, sizes=(2, 3, 1, 3, 2), positives=2):
    """Bags of at most three instances, the first ones positive."""
    offsets = bags_of_sizes(sizes)
    X = rng.normal(size=(offsets[-1], 3))
    relevant = np.arange(len(sizes)) < positives
    return (np.round(X) if ties else X), offsets, relevant


def risk_of_bags(X, offsets, relevant, name, **more):
    loss = make_loss(name)
    return make_bag_risk(Rows(X), offsets, lay_out(loss, relevant, **more), loss, make_oracle("auto", loss))


def plain_risk(X, relevant, name, **more):
    loss = make_loss(name)
    return make_risk(Rows(X), relevant, loss, make_oracle("auto", loss), **more)


def choices(offsets):
    """All ways to choose a row of each bag."""
    return itertools.product(*(range(a, b) for a, b in itertools.pairwise(offsets.tolist())))


@over("name", [*RANKINGS, "zero-one"])
def test_the_least_over_positives_of_the_most_over_negatives(name, rng):
    for ties in (False, True):
        X, offsets, relevant = tiny(rng, ties)
        risk = risk_of_bags(X, offsets, relevant, name)
        w = rng.normal(size=3) if not ties else np.round(rng.normal(size=3))
        worst: dict[tuple[int, ...], float] = {}
        for rows in choices(offsets):
            chosen = np.array(rows)
            value = plain_risk(X[chosen], relevant, name)(w).value
            held = rows[:2]
            worst[held] = max(worst.get(held, -np.inf), value)
        assert risk(w).value == pytest.approx(min(worst.values()), abs=1e-12)


@over("name", [*RANKINGS, "zero-one", "f1"])
def test_bags_of_one_are_rows(name, rng):
    X, relevant, groups = rng.normal(size=(40, 3)), rng.random(40) < 0.3, rng.integers(0, 4, size=40)
    groups = groups if make_loss(name).by_query else None
    w = rng.normal(size=3)
    ours = risk_of_bags(X, bags_of_sizes(np.ones(40)), relevant, name, groups=groups)(w)
    rows = plain_risk(X, relevant, name, groups=groups)(w)
    assert (ours.value, ours.offset) == (rows.value, rows.offset)
    assert ours.plane == pytest.approx(rows.plane, rel=1e-12, abs=1e-13)


def some_bags(rng, n_bags=30, graded=False):
    """Bags in any order of relevance, of 1 to 5 instances, in three queries."""
    offsets = bags_of_sizes(rng.integers(1, 6, size=n_bags))
    X = rng.normal(size=(offsets[-1], 4))
    grades = rng.integers(0, 4, size=n_bags).astype(float) if graded else None
    relevant = grades > 0 if graded else rng.random(n_bags) < 0.4
    return X, offsets, relevant, {"grades": grades, "groups": rng.integers(0, 3, size=n_bags)}


@over(("name", "graded"), [("ap", False), ("ndcg", True), ("ndcg@3", True), ("mrr", False)])
@over("tight", [False, True])
def test_held_positives_make_a_convex_majorant_that_touches(name, graded, tight, rng):
    X, offsets, relevant, more = some_bags(rng, graded=graded)
    risk = risk_of_bags(X, offsets, relevant, name, **more)
    function = Ramp(risk) if tight else risk

    def value(of, scores):
        return of.tangent(scores, np.empty(risk.n_scores)).value

    for _ in range(20):
        touching = function.majoriser(risk.scores(here := rng.normal(size=4)))
        function.hold(touching.held)
        slopes = np.zeros(risk.n_scores) if touching.slopes is None else touching.slopes

        def majorant(w, slopes=slopes):
            scores = risk.scores(w)
            return value(function.convex, scores) - float(slopes @ scores)

        assert touching.value == pytest.approx(value(function, risk.scores(here)), abs=1e-12)
        assert touching.convex_value == pytest.approx(value(function.convex, risk.scores(here)), abs=1e-12)
        assert majorant(here) == pytest.approx(touching.value, abs=1e-12)
        for _ in range(5):
            w, v = rng.normal(size=4), rng.normal(size=4)
            assert majorant(0.3 * w + 0.7 * v) <= 0.3 * majorant(w) + 0.7 * majorant(v) + 1e-12
            assert majorant(w) >= value(function, risk.scores(w)) - 1e-12


def test_the_ramp_lies_between_the_loss_of_the_order_and_the_hinge(rng):
    X, offsets, relevant, more = some_bags(rng)
    risk = risk_of_bags(X, offsets, relevant, "ap", **more)
    ramp, loss = Ramp(risk), make_loss("ap")
    from apsvm.data.labels import Target
    from apsvm.models.header import Labels

    data = TrainingSet(Rows(X), Target(Labels(), relevant), more["groups"], bags=offsets)
    for _ in range(20):
        w = rng.normal(size=4)
        slopes = np.empty(risk.n_scores)
        hinge, tight = (one.tangent(risk.scores(w), slopes).value for one in (risk, ramp))
        delta = loss_by_order(loss, data.scores(w), data.target, data.queries)
        assert delta - 1e-12 <= tight <= hinge + 1e-12


@pytest.mark.parametrize("graded", [False, True])
def test_planes_support_the_majorant_and_moved_ones_lie_below_the_next(graded, rng):
    X, offsets, relevant, more = some_bags(rng, graded=graded)
    risk = risk_of_bags(X, offsets, relevant, "ndcg" if graded else "ap", **more)
    convex, moved = risk.convex, 0
    for _ in range(20):
        risk.hold(risk.maxima.best_of_positives(risk.scores(rng.normal(size=4))))
        point = rng.normal(size=4)
        slopes = np.empty(risk.n_scores)
        value, offset = convex.tangent(risk.scores(point), slopes)
        plane, memo = convex.combine(slopes), convex.memo(slopes)
        assert float(plane @ point) + offset == pytest.approx(value, abs=1e-12)
        assert (memo is None) == graded
        change = risk.hold(risk.maxima.best_of_positives(risk.scores(rng.normal(size=4))))
        if memo is None or change is None:  # the same instances
            continue
        moved += 1
        plane = plane + change(memo)
        for _ in range(10):
            w = rng.normal(size=4)
            assert float(plane @ w) + offset <= convex(w).value + 1e-12
    assert graded or moved > 10


def test_a_dominated_instance_changes_nothing(rng):
    X, offsets, relevant, more = some_bags(rng)
    parts = [X[a:b] for a, b in itertools.pairwise(offsets.tolist())]
    fuller = [np.vstack([part, 0.4 * part[0] + 0.6 * part[-1], part[-1]]) for part in parts]
    other = [rng.permutation(part) for part in parts]
    risk = risk_of_bags(X, offsets, relevant, "ap", **more)
    for changed in (fuller, other):
        twin = risk_of_bags(np.vstack(changed), bags_of_sizes([len(part) for part in changed]), relevant, "ap", **more)
        for _ in range(20):
            w = rng.normal(size=4)
            assert twin(w).value == pytest.approx(risk(w).value, abs=1e-12)


def test_bags_of_queries_without_a_pair_do_not_count(rng):
    X, offsets, relevant, more = some_bags(rng)
    relevant[more["groups"] == 1] = True
    risk = risk_of_bags(X, offsets, relevant, "ap", **more)
    kept = np.flatnonzero(more["groups"] != 1)
    rows, bounds = rows_of_runs(offsets, kept)
    alone = risk_of_bags(X[rows], bounds, relevant[kept], "ap", groups=more["groups"][kept])
    assert (risk.queries, risk.queries_skipped) == (2, 1)
    w = rng.normal(size=4)
    assert risk(w).value == alone(w).value


@pytest.mark.parametrize("threads", [1, 3])
def test_the_best_rows_of_bags(threads, rng):
    sizes = np.concatenate([rng.integers(1, 9, size=50_000), [70_000], rng.integers(1, 4, size=1000)])
    offsets = bags_of_sizes(sizes)
    scores = np.round(rng.normal(size=offsets[-1]), 1)
    best = np.empty(sizes.size, dtype=np.int64)
    _kernels.best_of_bags(scores, offsets, best, threads)
    counts = np.minimum(sizes, rng.integers(1, 5, size=sizes.size))
    top = np.empty(counts.sum(), dtype=np.int64)
    _kernels.top_of_bags(scores, offsets, counts, top, threads)
    bag = np.repeat(np.arange(sizes.size), sizes)
    order = np.lexsort((np.arange(bag.size), -scores, bag))
    assert best.tolist() == order[offsets[:-1]].tolist()
    place = np.arange(bag.size) - np.repeat(offsets[:-1], sizes)
    expected = order[place < np.repeat(counts, sizes)]
    assert top.tolist() == np.sort(expected).tolist()


@pytest.mark.parametrize(
    ("offsets", "counts"),
    [([0, 2], [1]), ([1, 3], [1]), ([0, 2, 2, 3], [1, 1, 1]), ([0, 3], [4]), ([0, 3], [0]), ([0, 3], [1, 1]), ([], [])],
)
def test_bags_that_are_none_are_refused(offsets, counts):
    scores, bounds = np.zeros(3), np.array(offsets, dtype=np.int64)
    with pytest.raises(ValueError, match="expected"):
        _kernels.top_of_bags(scores, bounds, np.array(counts, dtype=np.int64), np.empty(1, dtype=np.int64), 1)
    if offsets != [0, 3]:
        with pytest.raises(ValueError, match="expected"):
            _kernels.best_of_bags(scores, bounds, np.empty(max(0, bounds.size - 1), dtype=np.int64), 1)
