"""The devkit's formulas, transcribed line by line into exact rationals."""

from fractions import Fraction

import numpy as np
import pytest
from over import over

from apsvm.metrics import parse_metric


def points(scores, relevant, ties):
    """rec, prec as the devkit forms them, at every row (`file`, stable sort) or at distinct thresholds (`block`)."""
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    tp, rec, prec = 0, [], []
    for position, i in enumerate(order, start=1):
        tp += int(relevant[i])
        closes = position == len(order) or scores[order[position]] != scores[i]
        if ties == "file" or closes:
            rec.append(Fraction(tp, int(sum(relevant))))
            prec.append(Fraction(tp, position))
    return rec, prec


def voc2007(rec, prec):
    ap = Fraction(0)
    for t in (Fraction(i, 10) for i in range(11)):
        p = max((p for r, p in zip(rec, prec, strict=True) if r >= t), default=Fraction(0))
        ap += p / 11
    return ap


def voc2010(rec, prec):
    mrec = [Fraction(0), *rec, Fraction(1)]
    mpre = [Fraction(0), *prec, Fraction(0)]
    for i in range(len(mpre) - 2, -1, -1):
        mpre[i] = max(mpre[i], mpre[i + 1])
    changes = [i + 1 for i in range(len(mrec) - 1) if mrec[i + 1] != mrec[i]]
    return sum((mrec[i] - mrec[i - 1]) * mpre[i] for i in changes)


DEVKIT = {"AP(voc2007)": voc2007, "AP(voc2010)": voc2010}


@pytest.mark.slow
@over("ties", ["block", "file"])
@over("tied", [True, False], ids=["tied", "untied"])
@over("name", DEVKIT)
def test_agrees_with_the_devkit(name, tied, ties, random_cases):
    metric, values = parse_metric(name), set()
    for scores, relevant in random_cases(300, 45, tied, seed=1):
        value = metric(scores, relevant, ties)
        assert value == pytest.approx(float(DEVKIT[name](*points(scores, relevant, ties))), rel=1e-12)
        values.add(value)
    assert len(values) > 100


@pytest.mark.parametrize("n_positives", [10, 20, 30, 70])
def test_recall_meets_its_threshold_exactly(n_positives):
    """Precision 1 up to recall 3/10, then a long run of negatives: in floats the point t = 3·0.1 is lost."""
    first = 3 * n_positives // 10
    relevant = np.array([True] * first + [False] * 1000 + [True] * (n_positives - first))
    scores = -np.arange(relevant.size, dtype=float)
    value = parse_metric("AP(voc2007)")(scores, relevant)
    low = Fraction(n_positives, n_positives + 1000)
    assert value == pytest.approx(float((4 + 7 * low) / 11), rel=1e-12)


@pytest.mark.parametrize("name", DEVKIT)
def test_block_and_pessimistic_agree(name, random_cases):
    metric = parse_metric(name)
    for scores, relevant in random_cases(300, 45, tied=True, seed=2):
        assert metric(scores, relevant, "pessimistic") == pytest.approx(metric(scores, relevant), rel=1e-12)
