"""Rule ``block`` is scikit-learn's, with and without ties."""

import numpy as np
import pytest
from over import over
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    fbeta_score,
    ndcg_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from apsvm.metrics import parse_metric

JUDGES = {
    "AP": lambda s, y: average_precision_score(y, s),
    "AUC": lambda s, y: roc_auc_score(y, s),
    "nDCG": lambda s, y: ndcg_score([y], [s]),
    "nDCG@1": lambda s, y: ndcg_score([y], [s], k=1),
    "nDCG@5": lambda s, y: ndcg_score([y], [s], k=5),
    "F1": lambda s, y: f1_score(y, s > 0, zero_division=0),
    "F0.5": lambda s, y: fbeta_score(y, s > 0, beta=0.5, zero_division=0),
    "Precision": lambda s, y: precision_score(y, s > 0, zero_division=0),
    "Recall": lambda s, y: recall_score(y, s > 0),
    "Accuracy": lambda s, y: accuracy_score(y, s > 0),
}


@pytest.mark.slow
@over("tied", [True, False], ids=["tied", "untied"])
@over("name", JUDGES)
def test_block_agrees(name, tied, random_cases):
    metric, judge = parse_metric(name), JUDGES[name]
    values, n_tied = [], 0
    for scores, relevant in random_cases(80, 40, tied):
        values.append(metric(scores, relevant))
        n_tied += np.unique(scores).size < scores.size
        assert values[-1] == pytest.approx(judge(scores, relevant.astype(int)), rel=1e-12, abs=1e-14)
    assert len(values) == 80
    # of an untied ranking nDCG@1 is 0 or 1
    assert len(set(values)) > (1 if name == "nDCG@1" else 5)
    assert n_tied > 48 if tied else n_tied == 0


@over("rate", [0.05, 0.3, 0.77])
def test_partial_areas_of_untied_scores(rate, random_cases):
    """scikit-learn draws a line through ties, and stretches the area so that random scores have one half."""
    metric = parse_metric(f"pAUC({rate})")
    for scores, relevant in random_cases(60, 40, False):
        stretched = roc_auc_score(relevant.astype(int), scores, max_fpr=rate)
        random, best = rate**2 / 2, rate
        area = random + (2 * stretched - 1) * (best - random)
        assert metric(scores, relevant) == pytest.approx(area / rate, abs=1e-12)
