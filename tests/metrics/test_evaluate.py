"""Several metrics at once, over groups, with what was skipped and what was tied."""

import dataclasses
import itertools

import numpy as np
import pytest
from instances import METRIC_NAMES as NAMES
from instances import each_metric, evaluated
from over import over

from apsvm.metrics import TIE_RULES, MetricError, parse_metric
from apsvm.metrics.evaluate import Evaluation, evaluate

SORTS = ("argsort", "sort", "lexsort", "unique", "partition", "argpartition")


def tied_blocks_by_hand(scores, relevant):
    blocks = [relevant[scores == level] for level in np.unique(scores)]
    return [block.size for block in blocks if 0 < block.sum() < block.size]


@pytest.mark.slow
@pytest.mark.parametrize("ties", TIE_RULES)
def test_ungrouped(ties, random_cases):
    n_tied = 0
    for scores, relevant in random_cases(50, 30, tied=True, seed=10):
        found = evaluate(NAMES, scores, relevant, ties=ties)
        assert found.values == {parse_metric(n).name: parse_metric(n)(scores, relevant, ties) for n in NAMES}
        sizes = tied_blocks_by_hand(scores, relevant)
        n_tied += bool(sizes)
        expected = (scores.size, relevant.sum(), 0, 0, len(sizes), sum(sizes), ties)
        assert dataclasses.astuple(found)[1:8] == expected
    assert n_tied > 20


@pytest.mark.slow
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
        assert dataclasses.astuple(found)[1:8] == expected
        skipped += found.groups_skipped
    assert skipped > 10


def test_hand_case():
    scores = [2.0, 2.0, 1.0, 5.0, 4.0, 9.0]
    relevant = [True, False, False, False, True, True]
    found = evaluate(["ap", "AUC"], scores, relevant, [7, 7, 7, 3, 3, 1])
    assert found == Evaluation({"AP": 0.5, "AUC": (3 / 4 + 0) / 2}, 6, 3, 3, 1, 1, 2, "block")


def test_file_order_is_kept_inside_groups():
    scores, relevant, groups = np.zeros(6), np.array([True, False, False, True, False, True]), [1, 2, 1, 2, 1, 2]
    assert evaluate(["AP"], scores, relevant, groups, "file").values["AP"] == pytest.approx(
        (1 + (1 / 2 + 2 / 3) / 2) / 2
    )


def test_values_keep_the_order_asked_for_and_canonical_names():
    found = evaluate(["f1", parse_metric("P@2"), "NDCG@02", "ap", "AP", "p@2"], [2.0, 1.0], [True, False])
    assert list(found.values) == ["F1", "P@2", "nDCG@2", "AP"]


@pytest.mark.parametrize("ties", TIE_RULES)
def test_sorts_do_not_grow_with_metrics_or_groups(ties, monkeypatch):
    calls = []
    for sort in SORTS:
        original = getattr(np, sort)
        monkeypatch.setattr(np, sort, lambda *a, _f=original, **k: calls.append(_f.__name__) or _f(*a, **k))
    once = {"pessimistic": "lexsort"}.get(ties, "argsort")
    rng = np.random.default_rng(0)
    scores, relevant = rng.integers(0, 3, 60).astype(float), np.tile([True, False], 30)
    evaluate(["AP", "AUC", "RR", "P@3", "bpref", "WMW"], scores, relevant, ties=ties)
    assert calls == [once]
    for n_groups in (2, 30):
        calls.clear()
        evaluate(NAMES, scores, relevant, np.arange(60) // (60 // n_groups), ties)
        # the scores, then the groups; the grades of nDCG's ideal, then the groups
        assert calls == [once, "argsort", "argsort", "argsort"]


def test_every_group_undefined_counts_nought():
    found = evaluated(["AP", "AUC", "nDCG"], [1.0, 2.0], [False, False], [1, 2])
    assert found.values == {"AP": 0.0, "AUC": 0.0, "nDCG": 0.0}


def test_unranked_rows_count_but_have_no_position():
    scores, relevant = [3.0, 2.0, np.nan, np.nan, np.nan], [False, True, True, False, True]
    ranked = [True, True, False, False, False]
    found = evaluated(
        ["AP", "P@2", "P@4", "R@2", "Rprec", "RR", "nDCG", "bpref", "AUC", "WMW", "F1", "AP(voc2007)", "AP(voc2010)"],
        scores, relevant, ranked=ranked,
    ).values  # fmt: skip
    ideal = 1 + 1 / np.log2(3) + 1 / 2
    assert found == pytest.approx(
        {
            "AP": (1 / 2) / 3,
            "P@2": 1 / 2,
            "P@4": 1 / 4,
            "R@2": 1 / 3,
            "Rprec": 1 / 3,
            "RR": 1 / 2,
            "nDCG": (1 / np.log2(3)) / ideal,
            "bpref": (1 - 1 / 2) / 3,
            "AUC": (1 + 1 / 2 + 1 / 2) / 6,  # over the unranked negative 1, and two ties with it
            "WMW": (1 + 1 / 2 + 1 / 2) / 6,
            "F1": 2 * 1 / (2 + 3),
            "AP(voc2007)": 4 * (1 / 2) / 11,  # recall 0 to .3
            "AP(voc2010)": (1 / 2) / 3,
        }
    )


@each_metric
def test_nothing_ranked_in_a_group(metric):
    """A group without ranked rows is worth what the metric says of none, and does not disturb its neighbours."""
    scores, relevant = np.array([2.0, 1.0, 0, 0, 2.0, 1.0]), np.array([True, False, True, False, False, True])
    ranked = np.array([True, True, False, False, True, True])
    groups = [1, 1, 2, 2, 3, 3]
    found = evaluated([metric], scores, relevant, groups, ranked=ranked).in_group[metric.name]
    assert found[0] == metric(scores[:2], relevant[:2])
    assert found[2] == metric(scores[4:], relevant[4:])
    assert found[1] == (0.5 if metric.name.startswith(("AUC", "pAUC", "WMW", "Accuracy")) else 0.0)
    alone = evaluated([metric], scores[2:4], relevant[2:4], [7, 7], ranked=ranked[2:4])
    assert alone.in_group[metric.name] == found[1]


@over(
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
        ({"relevant": [1, 0]}, "dtype bool .*or relevant_from must be given"),
        ({"relevant_from": 1}, "relevant must hold grades, real numbers; found dtype bool"),
        ({"relevant": [1, np.inf], "relevant_from": 1}, "grades must be finite, found inf at row 1"),
        ({"relevant": [1, 0], "relevant_from": np.nan}, "relevant_from=nan, a number"),
        ({"relevant": [True, True], "groups": [1, 1]}, r"none of the 1 groups .*\(2 rows, 2 of them positive\)"),
    ],
)
def test_refusals(arguments, message):
    good = {"metrics": ["AP"], "scores": [1.0, 2.0], "relevant": [True, False]}
    with pytest.raises(MetricError, match=message):
        evaluate(**(good | arguments))
