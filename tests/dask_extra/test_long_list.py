"""The oracle over shards is that of one machine: value and slopes, whatever the scores and however rows are cut."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from shards import list_risk, sharded, slopes_of_rows

from apsvm.dask.messages import Few, Runs, added, is_of, narrow, packed, runs_where, size_of
from apsvm.dask.training import risk_on
from apsvm.data.labels import threshold
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.oracles import make_oracle
from apsvm.risk import make_risk
from apsvm.trainers.structured_svm.settings import StructuredSettings

LOSSES = ("ap", "ndcg", "mrr", "auc", "rbp(0.8)")
#: Losses whose gains are above 0 at equal scores: with scores of the patterns below no two rankings are as violated.
STRICT = ("ap", "ndcg", "auc")
#: A step between scores that no gain makes up for exactly.
ODD = 0.7310585786300049


def scores_like(pattern, n, rng):
    """Scores of a kind, (n,) float64."""
    match pattern:
        case "normal":
            return rng.normal(size=n)
        case "cauchy":
            return rng.standard_cauchy(size=n)
        case "rounded":
            return ODD * np.round(rng.normal(size=n), 1)
        case "one":
            return np.full(n, 0.25)
        case "two":
            return ODD * rng.choice([-1.0, 1.0], size=n)
        case "sorted":
            return np.sort(rng.normal(size=n))
        case "tiny":
            return rng.normal(size=n) * 10.0 ** rng.integers(-300, -3, size=n)
        case "neighbours":
            return 1.0 + np.spacing(1.0) * rng.integers(0, 9, size=n)
    raise AssertionError(pattern)


PATTERNS = ("normal", "cauchy", "rounded", "one", "two", "sorted", "tiny", "neighbours")


def compare(loss_name, scores, y, cuts, **options):
    """One call on shards against one on all rows."""
    loss = make_loss(loss_name)
    plain = make_risk(Rows(scores[:, None]), y > 0, loss, make_oracle("auto", loss))
    data = sharded(scores[:, None], y, cuts)
    risk = list_risk(data, loss, **options)
    w = np.ones(1)
    for _ in range(2):  # the second call begins with the bins of the first
        slopes = data.vectors.empty()
        at = risk.scores(w)
        found = risk.tangent(at, slopes)
        expected_slopes = np.empty(y.size)
        own = plain.scores(w)
        expected = plain.tangent(own, expected_slopes)
        size = max(1.0, abs(expected.value))
        assert found.value == pytest.approx(expected.value, rel=1e-11, abs=1e-13 * size)
        of_rows = slopes_of_rows(data, slopes, cuts, y)
        # Σc = 0, and h = Δ + c·s.
        assert of_rows.sum() == pytest.approx(0.0, abs=1e-11)
        assert found.offset + of_rows @ scores == pytest.approx(
            found.value, rel=1e-9, abs=1e-11 * max(1.0, float(np.abs(of_rows * scores).sum()))
        )
        if loss_name in STRICT:
            assert found.offset == pytest.approx(expected.offset, abs=1e-12)
            order = np.argsort(~(y > 0), kind="stable")
            np.testing.assert_allclose(of_rows[order], expected_slopes, rtol=1e-12, atol=1e-15)
        gradient = risk.combine(slopes)
        assert gradient == pytest.approx(of_rows @ scores, rel=1e-9, abs=1e-11 * max(1.0, float(np.abs(scores).max())))
    return risk


@pytest.mark.slow
@settings(max_examples=60)
@given(
    loss=st.sampled_from(LOSSES),
    pattern=st.sampled_from(PATTERNS),
    n=st.integers(2, 200),
    share=st.floats(0.0, 1.0),
    cuts=st.lists(st.floats(0.0, 1.0), max_size=5),
    most=st.sampled_from([3, 30, 65_536]),
    sample=st.sampled_from([3, 100, 4096]),
    seed=st.integers(0, 2**32 - 1),
)
def test_value_and_slopes_are_those_of_one_machine(loss, pattern, n, share, cuts, most, sample, seed):
    """Shards without rows, without positives, without negatives and of one row among them."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(float)
    y[:2] = rng.permutation([0.0, 1.0])
    compare(loss, scores_like(pattern, n, rng), y, [round(cut * n) for cut in cuts], most_gathered=most, sample=sample)


def test_the_generator_of_scores_varies():
    rng = np.random.default_rng(0)
    distinct = {pattern: np.unique(scores_like(pattern, 200, rng)).size for pattern in PATTERNS}
    assert distinct["one"] == 1
    assert distinct["two"] == 2
    assert distinct["normal"] == distinct["cauchy"] == distinct["sorted"] == 200
    assert 3 <= distinct["neighbours"] <= 9
    assert 20 < distinct["rounded"] < 100


def test_bins_that_fit_other_scores_are_made_anew(rng, monkeypatch):
    """Where rows are too wide for the driver, bins are those of the call before, as long as these do."""
    monkeypatch.setattr("apsvm.dask.long_list.MOST_DIMENSIONS", 0)
    n = 20_000
    y = (rng.random(n) < 0.02).astype(float)
    X = rng.normal(size=(n, 2)) * [1.0, 1e-3] + 0.5 * y[:, None] * [1.0, 1e-3]
    data = sharded(X, y, [7000])
    risk = list_risk(data, make_loss("ap"), most_gathered=1000)
    slopes, rounds = data.vectors.empty(), []
    for w in ([1.0, 0.0], [1.01, 0.0], [0.0, 1.0]):
        risk.tangent(risk.scores(np.array(w)), slopes)
        rounds.append(data.crew.take_traffic().rounds - risk.effort.levels[-1])
    assert rounds[1] < rounds[2]
    assert max(risk.effort.open_scores) < n / 4


def test_rows_may_be_cut_anywhere_to_the_same_sums(rng):
    n = 4000
    y = (rng.random(n) < 0.1).astype(float)
    X = rng.normal(size=(n, 3)) + 0.4 * y[:, None]
    loss = make_loss("ap")
    values = []
    for cuts in ([], [1], [0, 0, 4000], list(range(0, 4000, 500)), [1999, 2000, 2001]):
        data = sharded(X, y, cuts)
        risk = list_risk(data, loss)
        slopes = data.vectors.empty()
        values.append((risk.tangent(risk.scores(np.ones(3)), slopes).value, risk.combine(slopes)))
    for value, gradient in values[1:]:
        assert value == pytest.approx(values[0][0], rel=1e-13)
        np.testing.assert_allclose(gradient, values[0][1], rtol=1e-11, atol=1e-14)


def test_scores_that_are_not_finite_are_refused():
    data = sharded(np.array([[1.0], [1e300], [2.0]]), np.array([1.0, 0.0, 0.0]), [1])
    risk = list_risk(data, make_loss("ap"))
    for w in (1.0, 1e300):
        scores = risk.scores(np.array([w]))
        data.vectors.scale(1e10, scores, data.vectors.empty())  # beyond float64 and ∞ − ∞, which are no warnings
        data.vectors.subtract(scores, scores, data.vectors.empty())
        if w == 1.0:
            risk.tangent(scores, data.vectors.empty())
    with pytest.raises(FloatingPointError, match="scores are not finite"):
        risk.tangent(scores, data.vectors.empty())


def test_messages_do_not_grow_with_the_rows(rng):
    """Of ten times the negatives, the same bytes and rounds, but for counts that need one more byte."""
    received = []
    for n in (30_000, 300_000):
        y = np.zeros(n)
        y[:200] = 1.0
        data = sharded((rng.normal(size=n) + y)[:, None], y, [n // 2])
        risk = list_risk(data, make_loss("ap"))
        risk.tangent(risk.scores(np.ones(1)), data.vectors.empty())  # makes the bins
        data.crew.take_traffic()
        slopes = data.vectors.empty()
        risk.tangent(risk.scores(np.ones(1)), slopes)
        risk.combine(slopes)
        traffic = data.crew.take_traffic()
        assert traffic.rounds <= 5
        received.append(traffic.received + traffic.sent)
    assert received[1] < 4 * received[0]


def test_vector_operations_wait_for_the_next_round(rng):
    data = sharded(rng.normal(size=(50, 2)), np.arange(50) % 2.0, [10, 20])
    risk = list_risk(data, make_loss("ap"))
    vectors = data.vectors
    data.crew.take_traffic()
    x, y = risk.scores(np.array([1.0, 0.0])), risk.scores(np.array([0.0, 1.0]))
    out = vectors.empty()
    vectors.add(x, 2.0, y, out)
    vectors.subtract(out, x, out)
    vectors.scale(0.5, out, out)
    vectors.absolute(x, z := vectors.empty())
    assert data.crew.traffic.rounds == 0
    assert vectors.dot(out, out) == pytest.approx(vectors.dot(y, y))
    assert vectors.dot(out, out) == pytest.approx(vectors.dot(y, y))  # known by now
    assert data.crew.traffic.rounds == 2
    assert abs(vectors.dot(x, z)) < vectors.dot(z, z) == pytest.approx(vectors.dot(x, x))


@pytest.mark.parametrize(("loss", "by_query"), [("ap", False), ("ap", True), ("zero-one", False)])
def test_a_product_that_was_foreseen_costs_no_round(loss, by_query, rng):
    qid = np.arange(60) // 10 if by_query else None
    data = sharded(rng.normal(size=(60, 2)), np.arange(60) % 2.0, [15, 20], qid=qid)
    risk = risk_on(data, make_loss(loss), StructuredSettings(), threshold(data.labels), None)
    vectors, slopes = data.vectors, data.vectors.empty()
    x, y = risk.scores(np.array([1.0, 0.0])), risk.scores(np.array([0.0, 1.0]))
    risk.tangent(x, slopes)
    first = vectors.dot(slopes, y)
    found = risk.tangent(y, slopes)
    assert found.offset == pytest.approx(found.value - sum(vectors.ask("dot", slopes.number, y.number)))
    data.crew.take_traffic()
    second = vectors.dot(slopes, y)
    assert data.crew.traffic.rounds == 0
    assert second == pytest.approx(sum(vectors.ask("dot", slopes.number, y.number)))
    assert second != pytest.approx(first)
    vectors.dot(slopes, x)  # is foreseen from now on, and that with y forgotten
    risk.tangent(x, slopes)
    assert vectors.dot(slopes, y) == pytest.approx(first)


def test_forgotten_vectors_are_dropped(rng):
    data = sharded(rng.normal(size=(50, 2)), np.arange(50) % 2.0, [10, 20])
    risk = list_risk(data, make_loss("ap"))
    x = risk.scores(np.ones(2))
    data.vectors.dot(x, x)
    shard = data.crew._shards[0]
    assert len(shard._vectors) == 1
    del x
    for _ in range(2):
        y = risk.scores(np.ones(2))
        data.vectors.dot(y, y)
        assert len(shard._vectors) == 1
        slopes = data.vectors.empty()
        risk.tangent(y, slopes)
        del slopes, y
    assert len(data.vectors.sampled._entries) == 1


def test_runs_and_counts_read_back(rng):
    for array in (np.empty(0, dtype=np.int32), np.zeros(5, dtype=np.int32), rng.integers(0, 3, 100)):
        runs = Runs.of(array)
        np.testing.assert_array_equal(runs.expanded(), array)
        assert (runs.lengths > 0).all()
        counts = rng.integers(0, 2, array.size) > 0
        some = runs_where(counts, array)
        if counts.any():
            np.testing.assert_array_equal(some.expanded()[counts], array[counts])
            assert some.expanded().size == array.size
            assert some.values.size == Runs.of(array[counts]).values.size
    sizes = Counter(narrow(np.array([top])).dtype.itemsize for top in (0, 255, 256, 65_536, 2**33))
    assert sizes == {1: 2, 2: 1, 4: 1, 8: 1}
    assert size_of((np.zeros(100), [1, "four"])) == size_of((np.zeros(0), [1, "four"])) + 800


def test_counts_that_are_mostly_zero_are_sent_with_their_places(rng):
    kinds = set()
    for share in (0.0, 0.01, 0.2, 0.24, 0.3, 1.0):
        for size in (0, 1, 70_000):
            counts = [rng.integers(1, 300, size) * (rng.random(size) < share) for _ in range(3)]
            messages = [packed(of_shard) for of_shard in counts]
            kinds |= {type(message) for message in messages}
            np.testing.assert_array_equal(added(messages), np.sum(counts, axis=0))
            assert all(size_of(message) <= size_of(narrow(of)) for message, of in zip(messages, counts, strict=True))
    assert kinds == {Few, np.ndarray}


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (int, (1, np.int64(1)), (1.0, "1", None)),
        (float, (1.0, 1, np.float32(1.0)), ("1", None)),
        (None, (None,), (0,)),
        (str | None, ("a", None), (1,)),
        (tuple[int, str], ((1, "a"),), (("a", 1), (1,), (1, "a", 2), [1, "a"])),
        (tuple[str, ...], ((), ("a", "b")), (("a", 1),)),
        (list[int], ([], [1, 2]), ([1, "a"], (1, 2))),
        (dict[int, float], ({}, {1: 0.5}), ({"a": 0.5}, {1: "a"}, [(1, 0.5)])),
        (NDArray[np.float64], (np.zeros(1),), (np.zeros(1, dtype=int), [0.0])),
        (Runs, (Runs(np.zeros(1), np.ones(1)),), (Runs(np.zeros(1), 1), (np.zeros(1), np.ones(1)))),
    ],
)
def test_replies_are_of_the_types_that_annotations_say(kind, right, wrong):
    assert all(is_of(reply, kind) for reply in right)
    assert not any(is_of(reply, kind) for reply in wrong)
