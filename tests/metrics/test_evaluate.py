"""Several metrics at once, over groups, with what was skipped and what was tied."""

import dataclasses
import itertools

import numpy as np
import pytest

from apsvm.metrics import METRICS, TIE_RULES, MetricError, parse_metric
from apsvm.metrics.evaluate import Evaluation, evaluate

NAMES = [key.replace("@k", "@3") for key in METRICS]
SORTS = ("argsort", "sort", "lexsort", "unique", "partition", "argpartition")


def tied_blocks_by_hand(scores, relevant):
    blocks = [relevant[scores == level] for level in np.unique(scores)]
    return [block.size for block in blocks if 0 < block.sum() < block.size]


@pytest.mark.parametrize("ties", TIE_RULES)
def test_ungrouped(ties, random_cases):
    n_tied = 0
    for scores, relevant in random_cases(50, 30, tied=True, seed=10):
        found = evaluate(NAMES, scores, relevant, ties=ties)
        assert found.values == {parse_metric(n).name: parse_metric(n)(scores, relevant, ties) for n in NAMES}
        sizes = tied_blocks_by_hand(scores, relevant)
        n_tied += bool(sizes)
        expected = (scores.size, relevant.sum(), 0, 0, len(sizes), sum(sizes), ties)
        assert dataclasses.astuple(found)[1:] == expected
    assert n_tied > 20


@pytest.mark.parametrize("ties", TIE_RULES)
def test_grouped_is_the_mean_over_usable_groups(ties):
    rng = np.random.default_rng(11)
    skipped = 0
    for _ in range(30):
        n = int(rng.integers(20, 80))
        groups = rng.integers(-5, 10**12, 12)[rng.integers(0, 12, n)]  # interleaved, any integers
        scores, relevant = rng.integers(0, 4, n).astype(float), rng.random(n) < 0.4
        found = evaluate(NAMES, scores, relevant, groups, ties)
        members = [groups == g for g in np.unique(groups)]
        usable = [m for m in members if 0 < relevant[m].sum() < m.sum()]
        for name in NAMES:
            metric = parse_metric(name)
            mean = np.mean([metric(scores[m], relevant[m], ties) for m in usable])
            assert found.values[metric.name] == pytest.approx(mean, rel=1e-12)
        sizes = list(itertools.chain.from_iterable(tied_blocks_by_hand(scores[m], relevant[m]) for m in members))
        expected = (n, relevant.sum(), len(members), len(members) - len(usable), len(sizes), sum(sizes), ties)
        assert dataclasses.astuple(found)[1:] == expected
        skipped += found.groups_skipped
    assert skipped > 10


def test_hand_case():
    scores = [2.0, 2.0, 1.0, 5.0, 4.0, 9.0]
    relevant = [True, False, False, False, True, True]
    found = evaluate(["ap", "AUC"], scores, relevant, [7, 7, 7, 3, 3, 1])
    assert found == Evaluation({"AP": 0.5, "AUC": (3 / 4 + 0) / 2}, 6, 3, 3, 1, 1, 2, "block")


def test_one_group_is_as_ungrouped(random_cases):
    for scores, relevant in random_cases(20, 30, tied=True, seed=12):
        grouped = evaluate(NAMES, scores, relevant, np.zeros(scores.size, dtype=np.int64))
        assert dataclasses.replace(grouped, n_groups=0) == evaluate(NAMES, scores, relevant)


def test_file_order_is_kept_inside_groups():
    scores, relevant, groups = np.zeros(6), np.array([True, False, False, True, False, True]), [1, 2, 1, 2, 1, 2]
    assert evaluate(["AP"], scores, relevant, groups, "file").values["AP"] == pytest.approx(
        (1 + (1 / 2 + 2 / 3) / 2) / 2
    )


def test_values_keep_the_order_asked_for_and_canonical_names():
    found = evaluate(["f1", parse_metric("P@2"), "NDCG@02", "ap", "AP", "p@2"], [2.0, 1.0], [True, False])
    assert list(found.values) == ["F1", "P@2", "nDCG@2", "AP"]


def test_no_metrics_still_counts():
    found = evaluate([], [1.0, 1.0, 0.0], [True, False, False])
    assert found == Evaluation({}, 3, 1, 0, 0, 1, 2, "block")


@pytest.mark.parametrize("ties", TIE_RULES)
def test_sorts_once(ties, monkeypatch):
    calls = []
    for sort in SORTS:
        original = getattr(np, sort)
        monkeypatch.setattr(np, sort, lambda *a, _f=original, **k: calls.append(_f.__name__) or _f(*a, **k))
    scores, relevant = np.array([3.0, 1.0, 2.0, 2.0]), np.array([True, False, True, False])
    evaluate(NAMES, scores, relevant, ties=ties)
    assert calls == ["argsort"]
    calls.clear()
    evaluate(NAMES, scores, relevant, [0, 0, 1, 1], ties)
    assert calls == ["argsort"] * 3  # the groups, then each group's scores


def test_frozen():
    found = evaluate(["AP"], [1.0], [True])
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.ties = "file"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metrics": "AP"}, "sequence of names, found the single string 'AP'"),
        ({"metrics": ["APP"]}, "unknown metric 'APP'"),
        ({"scores": [1.0, np.nan]}, "finite"),
        ({"scores": [1.0]}, "shape"),
        ({"ties": "random"}, "unknown tie rule 'random'"),
        ({"groups": [1]}, r"groups must be of shape \(2,\), one for each row, found \(1,\)"),
        ({"groups": [1.0, 1.0]}, "groups must be integers, found dtype float64"),
        ({"relevant": [False, False]}, "AP is undefined: no positive"),
        ({"metrics": ["AUC"], "relevant": [True, True]}, "AUC is undefined: no negative"),
        ({"groups": [1, 2]}, "none of the 2 groups holds both a positive and a negative"),
        ({"relevant": [True, True], "groups": [1, 1]}, r"none of the 1 groups .*\(2 rows, 2 of them positive\)"),
    ],
)
def test_refusals(arguments, message):
    good = {"metrics": ["AP"], "scores": [1.0, 2.0], "relevant": [True, False]}
    with pytest.raises(MetricError, match=message):
        evaluate(**(good | arguments))
