"""The pair loss over scores: fast = direct = an independent sum over all pairs, for any graph, queries and scores."""

from __future__ import annotations

import numpy as np
import pytest
from over import over
from scipy.special import erfc

from apsvm.data.rows import Rows
from apsvm.trainers.rank_ncg.pair_loss import NoPairsError, PairLoss, make_pair_loss
from apsvm.trainers.rank_ncg.preferences import GRAPHS, classes_by_label, from_edges

C = np.sqrt(3.0) / (np.sqrt(2.0) * np.pi)


def by_pairs(
    scores: np.ndarray, of_row: np.ndarray, query: np.ndarray, edges: set[tuple[int, int]], objective: str
) -> tuple[float, np.ndarray]:
    """Σ ℓ and its gradient, by an n × n table of pairs."""
    preferred = np.zeros((scores.size, scores.size), dtype=bool)
    for i, j in edges:
        preferred |= (of_row == j)[:, None] & (of_row == i)
    preferred &= query[:, None] == query
    ahead = scores[:, None] - scores
    if objective == "logistic":
        loss, slope = np.logaddexp(0.0, -ahead), 0.5 * (1.0 - np.tanh(ahead / 2))
    else:
        t = C * ahead
        loss, slope = (np.exp(-t * t) / np.sqrt(np.pi) - t * erfc(t)) / (2 * C), erfc(t) / 2
    slope = np.where(preferred, slope, 0.0)
    return float(loss[preferred].sum()), slope.sum(axis=0) - slope.sum(axis=1)


def evaluate(loss: PairLoss, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """In the order of the caller's rows: the loss's own order is that of the selection its rows are."""
    order = np.asarray(loss.rows.scores(np.ones(1)), dtype=np.int64)
    own, slopes, again = np.ascontiguousarray(scores[order]), np.empty(order.size), np.empty(order.size)
    value = loss.tangent(own, slopes).value
    loss.slopes(own, again)
    np.testing.assert_array_equal(slopes, again)
    back = np.empty(order.size)
    back[order] = slopes
    return value, back


def numbered_rows(n: int, threads: int = 1) -> Rows:
    """Their scores for w = (1,) are their numbers."""
    return Rows(np.arange(float(n))[:, None], threads=threads)


SPREADS = {
    "all equal": lambda rng, n: np.full(n, 0.3),
    "tiny": lambda rng, n: 1e-9 * rng.normal(size=n),
    "ones": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(-2, 3, n) * 1.0,
    "wide": lambda rng, n: 30.0 * rng.normal(size=n),
    "very wide": lambda rng, n: 1e6 * rng.standard_cauchy(size=n),
    "offset": lambda rng, n: 1e6 + np.round(rng.normal(size=n), 6),
    "one far away": lambda rng, n: np.append(rng.normal(size=n - 1), -1e15),
}


@over("spread", SPREADS)
@over("objective", ["logistic", "erfc"])
def test_every_summation_is_the_sum_over_all_pairs(rng, objective, spread):
    for trial in range(12):
        n_classes, n, n_queries = int(rng.integers(2, 6)), int(rng.integers(2, 90)), int(rng.integers(1, 4))
        labels, query = rng.integers(0, n_classes, n) * 1.0, rng.integers(0, n_queries, n)
        labels[: n_classes if n >= n_classes else 0] = np.arange(n_classes)[: n_classes if n >= n_classes else 0]
        classes = classes_by_label(labels)
        S = classes.names.size
        if trial % 2:
            graph = from_edges(S, {(i, j) for i in range(S) for j in range(S) if i != j and rng.random() < 0.5})
        else:
            graph = GRAPHS[["full", "adjacent", "bipartite"][trial // 2 % 3]](S)
        edges = {(i, j) for j in range(S) for i in graph.below.of(j)}
        scores = SPREADS[spread](rng, n)
        value, slopes = by_pairs(scores, classes.of_row, query, edges, objective)
        pairs = sum(
            int(((classes.of_row == i) & (query == q)).sum() * ((classes.of_row == j) & (query == q)).sum())
            for i, j in edges
            for q in range(n_queries)
        )
        for summation in ("direct", "chebyshev", "auto", *(["fourier"] if objective == "erfc" else [])):
            make = (numbered_rows(n), classes, graph, query)
            options = {"objective": objective, "summation": summation, "accuracy": 1e-6, "normalize": "none"}
            if pairs == 0:
                with pytest.raises(NoPairsError):
                    make_pair_loss(*make, **options)
                continue
            loss = make_pair_loss(*make, **options)
            assert (loss.pairs, loss.scale) == (pairs, 1.0)
            found, c = evaluate(loss, scores)
            assert found == pytest.approx(value, rel=1e-13, abs=1e-13)
            # A row meets at most n others in each direction; half of erfc's error.
            np.testing.assert_allclose(c, slopes, rtol=0, atol=n * (1e-6 if summation == "fourier" else 1e-14))
            assert abs(c.sum()) < 1e-12 * n * n or summation == "fourier"
            scaled = make_pair_loss(*make, **{**options, "normalize": "pairs"})
            assert evaluate(scaled, scores)[0] == pytest.approx(value / pairs, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("summation", ["direct", "chebyshev"])
@pytest.mark.parametrize("objective", ["logistic", "erfc"])
def test_slopes_are_the_losss_finite_differences(rng, objective, summation):
    n = 40
    classes = classes_by_label(rng.integers(0, 4, n) * 1.0)
    graph = from_edges(4, {(0, 1), (1, 3), (3, 0), (0, 2), (2, 0)})
    query = rng.integers(0, 2, n)
    loss = make_pair_loss(numbered_rows(n), classes, graph, query, objective=objective, summation=summation)
    scores, step = 4 * rng.normal(size=n), 1e-5
    _, slopes = evaluate(loss, scores)
    for i in range(n):
        around = [evaluate(loss, scores + sign * step * (np.arange(n) == i))[0] for sign in (1, -1)]
        assert slopes[i] == pytest.approx((around[0] - around[1]) / (2 * step), abs=2e-10)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["logistic", "erfc"])
def test_large_queries_and_many_threads(rng, objective):
    """More rows than a block and than a batch, in large and small queries: chebyshev = direct on a part, and one thread
    the same bits as two."""
    n = 150_000
    labels = rng.integers(0, 3, n) * 1.0
    query = np.minimum(rng.integers(0, 3000, n), 2000) % 2001  # query 2000 has a third of the rows
    scores = 5 * rng.normal(size=n)
    classes, graph = classes_by_label(labels), GRAPHS["full"](3)
    results = []
    for threads in (1, 2):
        loss = make_pair_loss(numbered_rows(n, threads), classes, graph, query, objective=objective)
        results.append(evaluate(loss, scores))
    assert results[0][0] == results[1][0]
    np.testing.assert_array_equal(results[0][1], results[1][1])
    part = np.flatnonzero(query < 20)
    few = make_pair_loss(
        numbered_rows(part.size), classes_by_label(labels[part]), graph, query[part], objective=objective,
        summation="direct",
    )  # fmt: skip
    _, slopes = evaluate(few, scores[part])
    np.testing.assert_allclose(results[0][1][part] * loss.pairs, slopes * few.pairs, rtol=1e-11, atol=1e-12)


def test_a_large_query_is_the_sum_of_its_kernel_sums(rng):
    """300,000 rows, two classes: a sample of the slopes by hand."""
    n = 300_000
    labels, scores = (rng.random(n) < 0.3) * 1.0, 3 * rng.normal(size=n)
    loss = make_pair_loss(numbered_rows(n, 2), classes_by_label(labels), GRAPHS["full"](2), normalize="none")
    _, slopes = evaluate(loss, scores)
    low, high = scores[labels == 0], scores[labels == 1]
    for i in rng.integers(0, n, 10):
        ahead = scores[i] - low if labels[i] else high - scores[i]
        expected = (-1 if labels[i] else 1) * np.sum(1 / (1 + np.exp(ahead)))
        assert slopes[i] == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_as_many_classes_as_rows(rng):
    """Real targets taken as they are: the full graph of 3,000 classes has 4.5 million edges."""
    n = 3000
    targets, scores = rng.permutation(n) * 1.0, rng.normal(size=n)
    classes = classes_by_label(targets)
    loss = make_pair_loss(numbered_rows(n), classes, GRAPHS["full"](n), summation="chebyshev", normalize="none")
    assert loss.pairs == n * (n - 1) // 2
    value, slopes = evaluate(loss, scores)
    ahead = np.where(targets[:, None] > targets, scores[:, None] - scores, np.inf)
    lost = 1 / (1 + np.exp(ahead))
    assert value == pytest.approx(np.logaddexp(0, -ahead).sum(), rel=1e-12)
    np.testing.assert_allclose(slopes, lost.sum(axis=0) - lost.sum(axis=1), atol=1e-11)


def test_queries_without_pairs_are_counted(rng):
    classes = classes_by_label(np.array([0.0, 1.0, 1.0, 1.0, 0.0, 0.0]))
    loss = make_pair_loss(numbered_rows(6), classes, GRAPHS["full"](2), np.array([7, 7, 3, 3, 9, 9]))
    assert (loss.queries, loss.queries_skipped, loss.pairs) == (1, 2, 1)
    _, slopes = evaluate(loss, np.arange(6.0))
    assert (slopes != 0).tolist() == [True, True, False, False, False, False]


def test_what_cannot_be_ranked_is_refused(rng):
    one = classes_by_label(np.full(5, 3.0))
    with pytest.raises(NoPairsError, match="all rows are of one class, 3: a ranking needs two"):
        make_pair_loss(numbered_rows(5), one, GRAPHS["full"](1))
    two = classes_by_label(np.array([0.0, 0.0, 1.0]))
    with pytest.raises(NoPairsError, match="no query has rows of two classes"):
        make_pair_loss(numbered_rows(3), two, GRAPHS["full"](2), np.array([1, 1, 2]))
    three = classes_by_label(np.array([0.0, 1.0, 2.0]))
    with pytest.raises(NoPairsError, match="no query has rows of two classes"):
        make_pair_loss(numbered_rows(3), three, from_edges(3, {(0, 1)}), np.array([1, 2, 1]))


def test_scores_that_are_not_finite_are_refused():
    loss = make_pair_loss(numbered_rows(3), classes_by_label(np.array([0.0, 0.0, 1.0])), GRAPHS["full"](2))
    for bad in (np.nan, np.inf):
        with pytest.raises(FloatingPointError, match="not finite"):
            loss.tangent(np.array([0.0, bad, 1.0]), np.empty(3))


def test_scores_of_the_largest_magnitude(rng):
    """Their differences overflow; the gradient has its limits."""
    loss = make_pair_loss(
        numbered_rows(4), classes_by_label(np.array([0.0, 0.0, 1.0, 1.0])), GRAPHS["full"](2),
        summation="chebyshev", normalize="none",
    )  # fmt: skip
    slopes = np.empty(4)
    assert loss.tangent(np.array([1e308, 0.0, 5.0, -1e308]), slopes).value == np.inf
    np.testing.assert_allclose(slopes, [2.0, 1.0 + 1 / (1 + np.exp(5.0)), -1.0 - 1 / (1 + np.exp(5.0)), -2.0])


@over("summation", ["direct", "chebyshev", "auto", "fourier"])
def test_a_row_of_weight_k_is_k_rows(rng, summation):
    n, objective = 60, "erfc" if summation == "fourier" else "logistic"
    labels, query, scores = rng.integers(0, 3, n) * 1.0, rng.integers(0, 2, n), 3 * rng.normal(size=n)
    weights = rng.integers(0, 4, n) * 1.0
    copies = np.repeat(np.arange(n), weights.astype(np.int64))
    graph, options = GRAPHS["full"](3), {"objective": objective, "summation": summation, "accuracy": 1e-8}
    once = make_pair_loss(numbered_rows(n), classes_by_label(labels), graph, query, weights=weights, **options)
    often = make_pair_loss(
        numbered_rows(copies.size), classes_by_label(labels[copies]), graph, query[copies], **options
    )
    (found, slopes), (expected, of_copies) = evaluate(once, scores), evaluate(often, scores[copies])
    assert found == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(slopes, np.bincount(copies, of_copies, minlength=n), rtol=0, atol=1e-10)
    assert slopes.any()
    halved = make_pair_loss(numbered_rows(n), classes_by_label(labels), graph, query, weights=weights / 2, **options)
    assert evaluate(halved, scores)[0] == pytest.approx(expected, rel=1e-12)
    alone = np.where(labels == 1, 1.0, 0.0)
    with pytest.raises(NoPairsError, match="every pair has a row of weight 0"):
        make_pair_loss(numbered_rows(n), classes_by_label(labels), graph, query, weights=alone, **options)
