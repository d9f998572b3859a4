"""What is trained is what is reported: Δ = 1 − metric, for every ranking loss that has a metric of its name."""

import numpy as np
import pytest

from apsvm import ranking
from apsvm.losses import LOSSES
from apsvm.losses.base import RankingLoss
from apsvm.metrics import parse_metric

#: The metric that a loss is the complement of. A loss with parameters stands for its default ones.
METRIC_OF = {"ap": "AP"}
#: Ranking losses that no metric here is the complement of, and why.
WITHOUT: dict[str, str] = {}


def test_every_ranking_loss_is_spoken_for():
    ranking_losses = {name for name in LOSSES if issubclass(LOSSES[name], RankingLoss)}
    assert ranking_losses == METRIC_OF.keys() | WITHOUT.keys()
    assert not METRIC_OF.keys() & WITHOUT.keys()


@pytest.mark.parametrize("name", METRIC_OF)
def test_loss_is_what_the_metric_falls_short_of_the_perfect_ranking(name, rng):
    """The perfect ranking's metric is 1, but for RBP(ρ), where it is 1 − ρ^P."""
    metric, loss = parse_metric(METRIC_OF[name]), LOSSES[name]()
    losses = set()
    for _ in range(200):
        n_pos, n_neg = rng.integers(1, 12, size=2)
        scores = rng.permutation(n_pos + n_neg).astype(float)
        relevant = np.arange(n_pos + n_neg) < n_pos
        ranks = 1 + (scores[relevant][None, :] > scores[~relevant][:, None]).sum(axis=1).astype(np.int32)
        delta = loss.tables(n_pos, n_neg).loss(ranking.negatives_above(ranks, n_pos))
        perfect = metric(relevant.astype(float), relevant)
        if metric.form != "RBP(ρ)":
            assert perfect == pytest.approx(1.0, abs=1e-15)
        assert delta == pytest.approx(perfect - metric(scores, relevant), abs=1e-12)
        losses.add(round(delta, 12))
    assert len(losses) > 20
