"""After a training on the features as they are: do boosted rules rank better, or worse?

Where positives are told by thresholds, or by several features together, a linear ranker is far behind, and nothing in
its training says so; where a feature's sum over many weak signs tells them, it is far ahead. The boosting that
``--features rules`` begins with takes some tenths of a second; it is learned in the folds in which the bound and C were
chosen, and its AP on the rows held out is compared with the ranker's, fold by fold.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from apsvm.data.features import LINEAR, FeatureMapError, learn_map
from apsvm.data.features.binning import MOST_FEATURES, rows_to_learn_from
from apsvm.data.features.logarithms import Logarithms
from apsvm.data.features.rules import Rules
from apsvm.selection.folds import affordable_folds

if TYPE_CHECKING:
    from apsvm.trainers.base import Outcome
    from apsvm.trainers.fitting import Fit

#: It is said from this difference of AP on, and from ``ERRORS`` standard errors of a share among as many positives;
#: from ``SURE`` of them on no further fold is looked at.
LEAST, ERRORS, SURE = 0.02, 1.0, 3.0
#: Rows that the rules are learned from.
MOST_ROWS = 10_000


class Beside(NamedTuple):
    """AP of the rows held out: by boosted rules, by the ranker as it was chosen; and what was held out."""

    of_rules: float
    of_ranker: float
    how: str

    def __str__(self) -> str:
        by = f"by {abs(self.of_rules - self.of_ranker):.3f} of AP ({self.how})"
        if self.of_rules < self.of_ranker:
            return f"boosted rules rank held-out rows worse, {by}"
        return (
            f"boosted rules rank held-out rows better, {by}; --features {Rules.stem} trains on them, and apsvm cv "
            "compares more"
        )


def rules_beside(fit: Fit, outcome: Outcome) -> Beside | None:
    """Boosted rules beside the ranker, if they are clearly better or worse, after a training by ``ap`` on rows of two
    classes whose bound or C was chosen on rows held out. ``fit``: the training, prepared."""
    from apsvm.metrics.evaluate import evaluate

    choice: Any = outcome.details.get("choice")
    X = fit.dataset.X
    if choice is None or not choice["candidates"] or "start" in choice or outcome.interrupted:
        return None
    if (
        fit.trainer.loss_name != "ap"
        or fit.features.features not in (LINEAR, Logarithms.stem)
        or X.shape[1] > MOST_FEATURES
    ):
        return None
    data = fit.training_set()
    if data.bags is not None or data.queries is not None:
        return None
    own = [1.0 - loss for loss in choice["folds"]]
    rows, relevant = fit.selection, data.target.relevant
    rows = np.arange(len(relevant)) if rows is None else rows
    of_rules, ahead, error, positives = list[float](), 0.0, math.inf, 0
    for fold in affordable_folds(data, fit.trainer.settings.seed).folds[: len(own)]:
        targets = relevant[None, fold.training].astype(np.float64)
        which = rows_to_learn_from(targets, X.shape[1], np.random.default_rng(0), MOST_ROWS)
        try:
            learned = learn_map(Rules.stem, X, rows[fold.training[which]], targets=targets[:, which])
        except FeatureMapError:
            return None
        assert isinstance(learned, Rules)
        if not learned.sums.shape[1]:  # no column splits the rows
            return None
        (scores,) = learned.of_boosting(X[rows[fold.test]]).T
        of_rules.append(evaluate(["AP"], scores, relevant[fold.test]).values["AP"])
        positives += int(relevant[fold.test].sum())
        of_ranker = math.fsum(own[: len(of_rules)]) / len(of_rules)
        ahead = math.fsum(of_rules) / len(of_rules) - of_ranker
        error = math.sqrt(max(0.0, of_ranker * (1.0 - of_ranker)) / positives)
        if abs(ahead) >= SURE * error:
            break
    if not of_rules or abs(ahead) < max(LEAST, ERRORS * error):
        return None
    return Beside(of_ranker + ahead, of_ranker, choice["held_out"])
