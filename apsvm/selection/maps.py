"""Chooses the feature map of ``train`` if the user named none: the columns of the table, or boosted rules.

A linear ranker is far behind where thresholds or several features together tell the positives, and nothing in its
training shows it. It is far ahead where many weak signs add up. The boosting of ``--features rules`` takes tenths of a
second, so it is learned in the folds in which bound and C were chosen, and its AP on held-out rows is compared with the
ranker's, fold by fold. If rules are taken, their C is chosen in the same folds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from apsvm.data.features import LINEAR, FeatureMapError
from apsvm.data.features.binning import MOST_FEATURES
from apsvm.data.features.logarithms import Logarithms
from apsvm.data.features.rules import Rules
from apsvm.selection.quick import LOSS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from apsvm.data.row_operator import RowOperator
    from apsvm.models.header import Json
    from apsvm.selection.quick import Choice
    from apsvm.trainers.base import TrainingSet
    from apsvm.trainers.fitting import Fit

#: Rules are taken, or reported as worse, if the difference of AP is at least this and at least ``ERRORS`` standard
#: errors of a share among as many positives. The comparison ends early if they are that many errors behind, or ``SURE``
#: ahead.
LEAST, ERRORS, SURE = 0.02, 1.0, 3.0
#: Largest number of feature values of a table for which rules are taken, since they train more slowly. On larger tables
#: and on other data, whose columns may be words or pixels, a remark says that they rank better.
MOST_VALUES = 5_000_000


class MapChoice(NamedTuple):
    """AP of boosted rules and of columns on held-out rows, these rows in words, and whether rules are taken."""

    of_rules: float
    of_columns: float
    how: str
    takes_rules: bool

    def figures(self) -> dict[str, Json]:
        """The comparison, for the header of the model."""
        return {"of_rules": self.of_rules, "of_columns": self.of_columns, "held_out": self.how}

    def __str__(self) -> str:
        by = f"by {abs(self.of_rules - self.of_columns):.3f} of AP"
        if self.of_rules < self.of_columns:
            return f"features: columns, as boosted rules rank held-out rows worse, {by}"
        if self.takes_rules:
            return f"features: {Rules.stem}, which rank held-out rows better than columns, {by}"
        return f"boosted rules rank held-out rows better, {by}: --features {Rules.stem} trains on them"


class RulesOfFolds:
    """A training on boosted rules that learns them once per fold.

    Parameters
    ----------
    raw : a training before its features are learned
    """

    def __init__(self, raw: Fit) -> None:
        self.raw = replace(raw, features=replace(raw.features, features=Rules.stem))
        self.selection = np.arange(len(raw.dataset)) if raw.selection is None else raw.selection
        self._fits: list[tuple[NDArray[np.int64], Fit]] = []

    def fit(self, training: NDArray[np.int64]) -> Fit:
        """The training prepared on the training rows of a fold."""
        for known, fit in self._fits:
            if known is training:
                return fit
        fit = replace(self.raw, selection=self.selection[training]).prepared()
        self._fits.append((training, fit))
        return fit

    def training_set(self, fit: Fit) -> TrainingSet:
        """Training set of ``fit``, which is the training prepared on all rows."""

        def relearned(training: NDArray[np.int64]) -> RowOperator:
            return self.fit(training).rows(selection=self.selection)

        return replace(fit.training_set(), relearned=relearned)


def compare_maps(rules: RulesOfFolds, fit: Fit, data: TrainingSet, choice: Choice) -> MapChoice | None:
    """Compares boosted rules with the chosen ranker of columns. None if they are about equal or cannot be compared:
    that takes two classes, the loss ``ap`` and folds.

    Parameters
    ----------
    fit : the prepared training on columns
    data : its rows
    """
    from apsvm.metrics.evaluate import evaluate

    X, race = fit.dataset.X, choice.race
    is_plain = fit.features.features in (LINEAR, Logarithms.stem) and X.shape[1] <= MOST_FEATURES
    if race is None or fit.trainer.loss_name != "ap" or not is_plain:
        return None
    if data.bags is not None or data.queries is not None:
        return None
    own = [1.0 - loss for loss in choice.candidates[0].values(LOSS)]
    relevant = data.target.relevant
    of_rules, ahead, error, positives = list[float](), 0.0, math.inf, 0
    for fold in race.folds:
        try:
            learned = rules.fit(fold.training).feature_map
        except FeatureMapError:
            return None
        assert isinstance(learned, Rules)
        if not learned.sums.shape[1]:  # no column splits the rows
            return None
        (scores,) = learned.of_boosting(X[rules.selection[fold.test]]).T
        of_rules.append(evaluate(["AP"], scores, relevant[fold.test]).values["AP"])
        positives += int(relevant[fold.test].sum())
        of_columns = math.fsum(own[: len(of_rules)]) / len(of_rules)
        ahead = math.fsum(of_rules) / len(of_rules) - of_columns
        error = math.sqrt(max(0.0, of_columns * (1.0 - of_columns)) / positives)
        if ahead <= -ERRORS * error or ahead >= SURE * error:
            break
    if abs(ahead) < max(LEAST, ERRORS * error):
        return None
    may_be_taken = fit.dataset.table is not None and fit.dataset.n_values <= MOST_VALUES
    compared = len(of_rules)
    how = choice.how if compared == len(race.folds) else f"{compared} of {choice.how}"
    return MapChoice(of_columns + ahead, of_columns, how, takes_rules=ahead > 0.0 and may_be_taken)
