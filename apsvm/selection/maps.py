"""The feature map of ``train`` where none is named: a table's columns, or boosted rules of them.

Where positives are told by thresholds, or by several features together, a linear ranker is far behind, and nothing in
its training says so; where a feature's sum over many weak signs tells them, it is far ahead. The boosting that
``--features rules`` begins with takes some tenths of a second: it is learned in the folds in which the bound and C were
chosen, and its AP on the rows held out is compared with the ranker's, fold by fold. Where rules are taken, their C is
chosen in the same folds.
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

#: Rules are taken, or said to be worse, from this difference of AP on, and from ``ERRORS`` standard errors of a share
#: among as many positives; no further fold is looked at where they are as many behind, or ``SURE`` ahead.
LEAST, ERRORS, SURE = 0.02, 1.0, 3.0
#: Feature values of a table up to which rules are taken, as training on them takes longer. Beyond, and of data that is
#: no table, whose columns may be words or pixels, it is only said that they rank better.
MOST_VALUES = 5_000_000


class MapChoice(NamedTuple):
    """AP of the rows held out, by boosted rules and by the ranker of columns; what was held out; the choice."""

    of_rules: float
    of_columns: float
    how: str
    takes_rules: bool

    def figures(self) -> dict[str, Json]:
        """The comparison, for a model's header."""
        return {"of_rules": self.of_rules, "of_columns": self.of_columns, "held_out": self.how}

    def __str__(self) -> str:
        by = f"by {abs(self.of_rules - self.of_columns):.3f} of AP"
        if self.of_rules < self.of_columns:
            return f"features: columns, as boosted rules rank held-out rows worse, {by}"
        if self.takes_rules:
            return f"features: {Rules.stem}, which rank held-out rows better than columns, {by}"
        return f"boosted rules rank held-out rows better, {by}: --features {Rules.stem} trains on them"


class RulesOfFolds:
    """A training on boosted rules, learned once in each fold.

    Parameters
    ----------
    raw : a training, nothing of which is learned
    """

    def __init__(self, raw: Fit) -> None:
        self.raw = replace(raw, features=replace(raw.features, features=Rules.stem))
        self.selection = np.arange(len(raw.dataset)) if raw.selection is None else raw.selection
        self._fits: list[tuple[NDArray[np.int64], Fit]] = []

    def fit(self, training: NDArray[np.int64]) -> Fit:
        """The training prepared by a fold's rows."""
        for known, fit in self._fits:
            if known is training:
                return fit
        fit = replace(self.raw, selection=self.selection[training]).prepared()
        self._fits.append((training, fit))
        return fit

    def training_set(self, fit: Fit) -> TrainingSet:
        """The rows of ``fit``, the training prepared by all of them."""

        def relearned(training: NDArray[np.int64]) -> RowOperator:
            return self.fit(training).rows(selection=self.selection)

        return replace(fit.training_set(), relearned=relearned)


def compare_maps(rules: RulesOfFolds, fit: Fit, data: TrainingSet, choice: Choice) -> MapChoice | None:
    """Boosted rules compared with the ranker that was chosen; None where the two are about as good, or cannot be
    compared: that takes rows of two classes, a training by ``ap``, and folds.

    Parameters
    ----------
    fit : the training on columns, prepared; data : its rows
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
