"""Layout of queries, classes and grades in one array; declarations of the oracles."""

from __future__ import annotations

import numpy as np
import pytest
from over import over

from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import LossError
from apsvm.oracles import AUTO, ORACLES, make_oracle, serving
from apsvm.oracles.layout import NothingToRankError, Queries, lay_out, require_pairs


@pytest.fixture
def scattered(rng):
    """Rows of 30 queries in any order, some without both classes: relevance (n,) bool, grades 0..3 and groups."""
    groups = rng.permutation(np.repeat(np.arange(30) * 7 - 50, rng.integers(1, 12, size=30)))
    grades = rng.integers(0, 4, size=groups.size).astype(float)
    grades[np.isin(groups, [-50, -43])] = 0.0
    grades[groups == -36] = 2.0
    return grades > 0, grades, groups


def used_queries(values, groups, used):
    """In the order of their first rows."""
    return [q for q in dict.fromkeys(groups.tolist()) if used(values[groups == q])]


def test_queries_stand_by_first_row_and_positives_first(scattered):
    relevant, _, groups = scattered
    layout = lay_out(make_loss("ap"), relevant, groups=groups)
    used = used_queries(relevant, groups, lambda own: own.any() and not own.all())
    assert 10 < len(used) < 30
    assert layout.queries_skipped == np.unique(groups).size - len(used)
    queries = layout.queries
    assert queries.levels is None
    for query, first, n_pos, n_neg in zip(used, queries.first, queries.n_pos, queries.n_neg, strict=True):
        rows = layout.members[first : first + n_pos + n_neg]
        assert (groups[rows] == query).all()
        assert relevant[rows].tolist() == [True] * n_pos + [False] * n_neg
        for part in (rows[:n_pos], rows[n_pos:]):  # stably
            assert (np.diff(part) > 0).all()
    assert layout.members.size == (queries.n_pos + queries.n_neg).sum()
    np.testing.assert_allclose(queries.shares, 1 / len(used))


def test_grades_stand_in_descending_order_with_their_levels(scattered):
    _, grades, groups = scattered
    loss = make_loss("ndcg")
    layout = lay_out(loss, grades > 0, groups=groups, grades=grades)
    used = used_queries(grades, groups, lambda own: np.unique(own).size > 1)
    assert layout.queries_skipped == np.unique(groups).size - len(used)
    whole = lay_out(loss, grades > 0, grades=grades)
    np.testing.assert_array_equal(whole.members, np.argsort(-grades, kind="stable"))
    assert (whole.queries.n_pos.tolist(), whole.queries.n_neg.tolist()) == ([(grades > 0).sum()], [(grades == 0).sum()])
    tasks, at = layout.queries.tasks, 0
    for number, query in enumerate(used):
        first = layout.queries.first[number]
        of_query = grades[groups == query]
        rows = layout.members[first : first + of_query.size]
        assert sorted(rows.tolist()) == np.flatnonzero(groups == query).tolist()
        assert (np.diff(grades[rows]) <= 0).all()
        for threshold, weight in loss.levels(of_query):
            assert tasks.first[at] == first
            assert tasks.n_pos[at] == (of_query >= threshold).sum()
            assert tasks.n_neg[at] == (of_query < threshold).sum()
            assert tasks.weights[at] == pytest.approx(weight / len(used))
            at += 1
    assert at == tasks.first.size > len(used)
    apart = layout.levels_apart()
    assert apart.queries_skipped == layout.queries_skipped > 0
    np.testing.assert_array_equal(apart.queries.shares, tasks.weights)
    for first, n_pos, n_neg, at in zip(*tasks[:3], apart.queries.first, strict=True):
        rows = slice(first, first + n_pos + n_neg)
        np.testing.assert_array_equal(apart.members[at : at + n_pos + n_neg], layout.members[rows])
    assert (apart.queries.n_pos.tolist(), apart.queries.n_neg.tolist()) == (tasks.n_pos.tolist(), tasks.n_neg.tolist())


def test_one_query_weights_and_costs(scattered, rng):
    relevant, _, groups = scattered
    costs = rng.random(relevant.size)
    # A loss over rows takes all as one query, and knows what each costs.
    rows = lay_out(make_loss("zero-one"), relevant, groups=groups, costs=costs)
    assert (rows.queries.n_pos.tolist(), rows.queries.n_neg.tolist()) == ([relevant.sum()], [(~relevant).sum()])
    np.testing.assert_array_equal(rows.queries.costs, costs[rows.members])
    np.testing.assert_array_equal(rows.members, np.argsort(~relevant, kind="stable"))
    # A loss by query does not.
    assert lay_out(make_loss("ap"), relevant, groups=groups, costs=costs).queries.costs is None
    plain = lay_out(make_loss("ap"), relevant, groups=groups)
    used = groups[plain.members[plain.queries.first]].tolist()
    weighted = lay_out(make_loss("ap"), relevant, groups=groups, query_weights={used[0]: 3.0, used[1]: 0.0})
    kept = groups[weighted.members[weighted.queries.first]].tolist()
    assert kept == [used[0], *used[2:]]
    np.testing.assert_allclose(weighted.queries.shares, np.array([3.0] + [1.0] * (len(kept) - 1)) / (len(kept) + 2))
    assert weighted.queries_skipped == plain.queries_skipped


def test_nothing_to_rank():
    with pytest.raises(NothingToRankError):
        lay_out(make_loss("ap"), np.ones(4, dtype=bool))
    relevant, groups = np.array([True, True, False, False]), np.array([0, 0, 1, 1])
    with pytest.raises(NothingToRankError):
        lay_out(make_loss("ap"), relevant, groups=groups)
    with pytest.raises(NothingToRankError):
        require_pairs(relevant, groups)
    require_pairs(relevant, None)


def test_costs_are_known_to_the_one_oracle_that_wants_them(rng):
    """(1/n) Σ cost·max(0, 1 − y s), from its definition; other oracles are bound without a word of costs."""
    relevant, costs, scores = rng.random(50) < 0.4, rng.random(50), rng.normal(size=50)
    loss = make_loss("zero-one")
    for given in (costs, None):
        layout = lay_out(loss, relevant, costs=given)
        weights = np.empty(50)
        most_violated = make_oracle("auto", loss).bind_queries(loss, layout.queries)
        value, _, *counts = most_violated(scores[layout.members], weights)
        weight = np.ones(50) if given is None else given
        y = np.where(relevant, 1.0, -1.0)
        lacking = np.maximum(0.0, 1.0 - y * scores)
        assert value == pytest.approx((weight * lacking).mean())
        assert counts == [0, np.count_nonzero(lacking)]
        np.testing.assert_allclose(weights, (-weight * y * (lacking > 0) / 50)[layout.members])


def test_which_rows_are_positives():
    queries = Queries(np.array([1, 2, 3]), np.array([4, 5, 6]), np.array([0.2, 0.3, 0.5]))
    assert queries.positive.tolist() == [True] + 4 * [False] + 2 * [True] + 5 * [False] + 3 * [True] + 6 * [False]
    assert queries.first.tolist() == [0, 5, 12]


@over("form", LOSSES)
def test_who_serves_a_loss_is_declared_by_classes(form, monkeypatch):
    """Nothing is made to find it out, and the oracle that is wanted is looked up once."""
    loss = LOSSES[form]()
    names = serving(loss)
    assert names
    assert names == [name for name in ORACLES if ORACLES[name].refusal(loss) is None]
    asked = []
    look_up = type(ORACLES).__getitem__
    monkeypatch.setattr(type(ORACLES), "__getitem__", lambda self, name: asked.append(name) or look_up(self, name))
    made = []
    for name in names:
        kind = look_up(ORACLES, name)
        monkeypatch.setattr(kind, "__init__", lambda self, kind=kind: made.append(kind))
    assert serving(loss) == names
    assert (len(asked), made) == (len(ORACLES), [])
    asked.clear()
    first = make_oracle("auto", loss)
    assert first.name == next(name for name in AUTO if name in names)
    assert asked == list(AUTO[: AUTO.index(first.name) + 1])
    asked.clear()
    assert make_oracle(names[0], loss).name == names[0]
    assert (asked, len(made)) == ([names[0]], 2)


def test_a_refusal_names_those_that_serve():
    with pytest.raises(
        LossError, match=r"cannot serve loss 'f1': it needs a loss given by two arrays.*; choose auto or lab"
    ):
        make_oracle("qs", make_loss("f1"))


@pytest.mark.parametrize("together", [True, False])
def test_queries_in_one_run_each_and_scattered(together, rng):
    """Queries whose rows stand together take a shorter way to the same layout."""
    for _ in range(20):
        sizes = rng.integers(1, 7, size=12)
        groups = np.repeat(rng.permutation(100)[:12], sizes).astype(np.int64)
        if not together:
            groups = rng.permutation(groups)
        relevant = rng.random(groups.size) < 0.4
        relevant[:2], groups[:2] = (True, False), groups[0]
        if together and np.unique(groups).size < 12 - 1:
            continue
        layout = lay_out(make_loss("ap"), relevant, groups=groups)
        names = list(dict.fromkeys(groups.tolist()))
        members, n_pos = [], []
        for name in names:
            positives = np.flatnonzero((groups == name) & relevant)
            negatives = np.flatnonzero((groups == name) & ~relevant)
            if positives.size and negatives.size:
                members += [*positives, *negatives]
                n_pos.append(positives.size)
        np.testing.assert_array_equal(layout.members, members)
        np.testing.assert_array_equal(layout.queries.n_pos, n_pos)
        assert layout.queries.n_pos.sum() + layout.queries.n_neg.sum() == len(members)
        assert layout.members.dtype == np.int32
