"""After a training on the features as they are: do boosted rules rank better?

Where positives are told by thresholds, or by several features together, a linear ranker is far behind, and nothing in
its training says so. The boosting that ``--features rules`` begins with takes some tenths of a second; it is learned
in the folds in which the bound and C were chosen, and its AP on the rows held out is compared with the ranker's. Of 48
sets (``scripts/study/keel.py``) 17 are said to gain: ``--features rules`` was ahead on the test rows of each, by .19 of
AP in the mean. On the other 31 it was behind by .01.
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
#: from ``SURE`` of them on, and where rules are behind, no further fold is looked at.
LEAST, ERRORS, SURE = 0.02, 1.0, 3.0
#: Rows that the rules are learned from.
MOST_ROWS = 10_000


class Beside(NamedTuple):
    """AP of the rows held out: by boosted rules, by the ranker as it was chosen; and what was held out."""

    of_rules: float
    of_ranker: float
    how: str

    def __str__(self) -> str:
        return (
            f"boosted rules rank rows held out better: AP {self.of_rules:.3f}, by the features as they are "
            f"{self.of_ranker:.3f} ({self.how}); --features {Rules.stem} trains on them, and apsvm cv compares more"
        )


def rules_beside(fit: Fit, outcome: Outcome) -> Beside | None:
    """What boosted rules would be, where they are better, after a training by ``ap`` on rows of two classes whose
    bound or C was chosen on rows held out. ``fit``: the training, prepared."""
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
    own = 1.0 - choice["candidates"][0]["loss"]
    if isinstance(outcome.w, np.ndarray) and outcome.w.ndim > 1 and "components" in choice:
        own = max(own, choice["components"]["of_two"])
    rows, relevant = fit.selection, data.target.relevant
    rows = np.arange(len(relevant)) if rows is None else rows
    of_rules, ahead, error, positives = list[float](), -math.inf, math.inf, 0
    for fold in affordable_folds(data, fit.trainer.settings.seed).folds:
        targets = relevant[None, fold.training].astype(np.float64)
        which = rows_to_learn_from(targets, X.shape[1], np.random.default_rng(0), MOST_ROWS)
        try:
            learned = learn_map(Rules.stem, X, rows[fold.training[which]], targets=targets[:, which])
        except FeatureMapError:
            return None
        assert isinstance(learned, Rules)
        (scores,) = learned.of_boosting(X[rows[fold.test]]).T
        of_rules.append(evaluate(["AP"], scores, relevant[fold.test]).values["AP"])
        positives += int(relevant[fold.test].sum())
        ahead = math.fsum(of_rules) / len(of_rules) - own
        error = math.sqrt(max(0.0, own * (1.0 - own)) / positives)
        if not 0.0 < ahead < SURE * error:
            break
    return Beside(own + ahead, own, choice["held_out"]) if ahead >= max(LEAST, ERRORS * error) else None
