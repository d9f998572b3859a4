"""Means over classes against scikit-learn's macro averages."""

import numpy as np
import pytest
from over import over
from sklearn.metrics import average_precision_score, roc_auc_score

from apsvm.metrics import MetricError, parse_metric
from apsvm.metrics.classes import evaluate_classes

NAMES = ["AP", "AUC", "P@5", "nDCG", "AP(voc2007)"]


def draw(rng, n=120, n_classes=6):
    labels = rng.random((n, n_classes)) < np.linspace(0.05, 0.6, n_classes)
    scores = rng.normal(size=(n, n_classes)) + labels
    return scores, labels


def test_multi_label_agrees_with_scikit_learn(rng):
    for _ in range(10):
        scores, labels = draw(rng)
        found = evaluate_classes(NAMES, scores, labels, range(6))
        assert found.values["AP"] == pytest.approx(average_precision_score(labels, scores, average="macro"), rel=1e-12)
        assert found.values["AUC"] == pytest.approx(roc_auc_score(labels, scores, average="macro"), rel=1e-12)
        assert (found.n_rows, found.n_positives, found.n_groups, found.groups_skipped) == (120, labels.sum(), 6, 0)


def test_one_label_a_row(rng):
    classes = np.array([3, 7, -1, 10])
    given = classes[rng.integers(0, 4, 80)]
    scores = np.round(rng.normal(size=(80, 4)), 1)
    found = evaluate_classes(NAMES, scores, given[:, np.newaxis] == classes, classes)
    assert found.groups.tolist() == [3, 7, -1, 10]
    for c, label in enumerate(classes):
        for name in NAMES:
            assert found.in_group[name][c] == parse_metric(name)(scores[:, c], given == label)
    for name in NAMES:
        assert found.values[name] == pytest.approx(found.in_group[name].mean(), rel=1e-14)
    assert found.tied_rows > 0


def test_classes_without_both_kinds_of_rows_are_left_out(rng):
    scores, labels = draw(rng)
    labels[:, 0], labels[:, 3] = False, True
    found = evaluate_classes(["AP"], scores, labels, range(6))
    assert found.groups_skipped == 2
    assert np.isnan(found.in_group["AP"]).tolist() == [True, False, False, True, False, False]
    used = [1, 2, 4, 5]
    expected = average_precision_score(labels[:, used], scores[:, used], average="macro")
    assert found.values["AP"] == pytest.approx(expected, rel=1e-12)


@over(
    ("change", "message"),
    [
        ({"scores": np.zeros(3)}, r"must be of shape \(n, C\)"),
        ({"labels": np.zeros((3, 3), dtype=bool)}, r"must be of shape \(n, C\)"),
        ({"classes": [1, 2, 3]}, r"must be of shape \(n, C\)"),
        ({"labels": np.zeros((3, 2), dtype=bool)}, "none of the 2 classes has both"),
        ({"labels": np.eye(3, 2)}, "dtype bool"),
        ({"scores": np.array([[np.nan, 1], [1, 1], [1, 1]])}, "finite"),
        ({"metrics": "AP"}, "sequence of names"),
        ({"ties": "none"}, "unknown tie rule"),
    ],
)
def test_refusals(change, message):
    good = {"metrics": ["AP"], "scores": np.arange(6.0).reshape(3, 2), "labels": np.eye(3, 2, dtype=bool)}
    good["classes"] = [1, 2]
    assert evaluate_classes(**good).n_groups == 2
    with pytest.raises(MetricError, match=message):
        evaluate_classes(**(good | change))
