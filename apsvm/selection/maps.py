"""Chooses the feature map of ``train`` if the user named none: the columns, boosted rules, or both.

A linear ranker is far behind where thresholds or several features together tell the positives, and nothing in its
training shows it. It is far ahead where many weak signs add up. The boosting of ``--features rules`` takes tenths of a
second, so it is learned in the folds in which bound and C were chosen, and its scores of held-out rows are compared
with the ranker's (``comparison``). If rules are taken, their C is chosen in the same folds. If neither is clearly
better, the average of both rankers is taken: which of them ranks new rows better is then mostly chance. On 73 tables of
R the average raised test AP by .020 ± .006, .017 ± .005 and .006 ± .004 with 15, 30 and 60 positives, and on 20 sets of
KEEL with more than 200 by .007 ± .003.

In queries, rules are taken only if they are far ahead, and there is no average.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from apsvm.data.features import LINEAR, FeatureMapError
from apsvm.data.features.binning import MOST_FEATURES
from apsvm.data.features.logarithms import Logarithms
from apsvm.data.features.rules import Rules
from apsvm.selection.average import averaged, divisors_of, mean_of
from apsvm.selection.choose import pooled_ap
from apsvm.selection.comparison import Comparison, compared
from apsvm.selection.completion import Completion, Training, complete
from apsvm.selection.folds import affordable_count
from apsvm.selection.quick import Choice, choose
from apsvm.selection.thresholds import held_out_scores, threshold_by
from apsvm.trainers.base import Outcome, Watch, unseen
from apsvm.trainers.structured_svm.settings import DEFAULT_C
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from apsvm.data.row_operator import RowOperator
    from apsvm.models.header import Json
    from apsvm.trainers.base import TrainingSet
    from apsvm.trainers.fitting import Fit

#: Standard errors by which the comparison ends early. In queries rules are taken only from here on.
SURE = 3.0
#: Largest number of feature values for which rules are taken, since they train more slowly. On larger data a remark
#: says that they rank better.
MOST_VALUES = 5_000_000


class MapChoice(NamedTuple):
    """The maps taken, and the comparison of boosted rules with columns, by this metric."""

    comparison: Comparison
    metric: str
    takes_columns: bool
    takes_rules: bool

    def figures(self) -> dict[str, Json]:
        """The comparison, for the header of the model."""
        return {**self.comparison.figures("rules", "columns"), "metric": self.metric}

    def __str__(self) -> str:
        of_rules, of_columns, _, how = self.comparison
        by = f"by {abs(of_rules - of_columns):.3f} of {self.metric}, measured on {how}"
        if self.takes_rules and self.takes_columns:
            both = f"{self.metric} within folds {of_columns:.3f} and {of_rules:.3f}"
            return f"features: the average of columns and {Rules.stem}, of which neither is clearly better ({both})"
        if not self.comparison.is_clear:
            return "features: columns, as boosted rules rank held-out rows about as well"
        if of_rules < of_columns:
            return f"features: columns, as boosted rules rank held-out rows worse, {by}"
        if self.takes_rules:
            return f"features: {Rules.stem}, which rank held-out rows better than columns, {by}"
        return f"boosted rules rank held-out rows better, {by}: --features {Rules.stem} trains on them"


def choose_features(raw: Fit, fit: Fit, data: TrainingSet, watch: Watch) -> Training | AverageOfMaps:
    """Chooses the open settings of a training, and the feature map, which the user did not name.

    Parameters
    ----------
    raw : the training before its features are learned
    fit : the same, prepared
    data : its rows
    """
    began = time.perf_counter()
    columns = Training(raw, fit, data, complete(fit.trainer, data, watch))
    plan, choice = fit.trainer, columns.completion.choice
    if choice is None or not isinstance(plan, StructuredSVMTrainer) or watch.should_stop():
        return columns
    settings = plan.settings
    # The user tunes the ranker of columns.
    if settings.C != DEFAULT_C or settings.components > 1 or settings.oracle != "auto":
        return columns
    if fit.dataset.n_values > MOST_VALUES and watch.remark is unseen:  # nobody would learn that rules rank better
        return columns
    rules = RulesOfFolds(raw)
    maps = compare_maps(rules, columns, choice)
    if maps is None:
        return columns
    watch.remark(str(maps))
    spent = replace(columns.completion, seconds=time.perf_counter() - began)
    columns, details = replace(columns, completion=spent), {"features": maps.figures()}
    if not maps.takes_rules:
        return replace(columns, details=details)
    fit = rules.raw.prepared()
    data = rules.training_set(fit)
    choice = choose(plan, data, watch, within=choice.folds.first(affordable_count(data)))
    of_rules = Training(rules.raw, fit, data, Completion(plan, choice, time.perf_counter() - began), details=details)
    return AverageOfMaps(columns, of_rules, began, details) if maps.takes_columns else of_rules


@dataclass(frozen=True, slots=True, eq=False)
class AverageOfMaps:
    """A training on columns and one on rules, whose rankers are averaged.

    Attributes
    ----------
    columns, rules : the trainings
    began : start time, by ``time.perf_counter``
    details : details of the outcome
    """

    columns: Training
    rules: Training
    began: float
    details: Mapping[str, Json]

    @property
    def raw(self) -> Fit:
        return self.columns.raw

    @property
    def fit(self) -> Fit:
        return self.columns.fit

    @property
    def data(self) -> TrainingSet:
        return self.columns.data

    def outcomes(self, watch: Watch) -> Iterator[Outcome]:
        """Yields the average; the ranker of columns if that of rules was stopped or is not one to average. Only the
        iterations of the former are logged."""
        first = next(self.columns.outcomes(watch), None)
        if first is None:
            return
        spent = replace(self.rules.completion, seconds=time.perf_counter() - self.began)
        silent = Watch(progress=watch.progress, should_stop=watch.should_stop)
        second = next(replace(self.rules, completion=spent).outcomes(silent), None) if first.as_asked else None
        both = None if second is None or not second.as_asked else self._averaged(first, second)
        if both is None:
            watch.remark("features: columns alone, as the training on rules did not end in a ranker to average with")
        yield first if both is None else both

    def _averaged(self, first: Outcome, second: Outcome) -> Outcome | None:
        trainings = ((self.columns, first), (self.rules, second))
        chosen, others = zip(*(training.completion.held_out() for training, _ in trainings), strict=True)
        held_out = list(zip(*chosen, strict=False))  # rules may have fewer folds, the first ones
        divisors = divisors_of(list(zip(*held_out, strict=True)))
        if divisors is None:
            return None
        parts = [(training.fit.model(outcome), training.fit, outcome) for training, outcome in trainings]
        outcome = averaged(parts, divisors)
        if outcome is None:
            return None
        assert outcome.scores is not None
        assert self.rules.completion.choice is not None
        relevant, how = self.data.target.relevant, self.rules.completion.choice.how
        folds = [mean_of(of_fold, divisors) for of_fold in held_out]
        by_others = [mean_of(of_fold, divisors) for of_fold in zip(*others, strict=False)]
        worth = pooled_ap(folds, relevant, by_others)._asdict()
        rows = held_out_scores(folds, outcome.scores, relevant, how)
        return replace(
            outcome,
            threshold=threshold_by(rows),
            held_out=rows,
            details={**self.details, "held_out": {"AP": worth, "of": how, "chance": float(relevant.mean())}},
            seconds=second.seconds,  # with all that came before, as time of choosing
        )


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


def compare_maps(rules: RulesOfFolds, columns: Training, choice: Choice) -> MapChoice | None:
    """Compares the scores of the boosting alone with those of the chosen ranker of columns. None unless the loss is
    ``ap``, or ``ndcg`` of queries, the rows are without bags on at most ``MOST_FEATURES`` plain columns, rows were held
    out, and the boosting finds a rule."""
    fit, data, race = columns.fit, columns.data, choice.race
    X, loss = fit.dataset.X, fit.trainer.loss_name
    is_plain = fit.features.features in (LINEAR, Logarithms.stem) and X.shape[1] <= MOST_FEATURES
    is_compared = loss == "ap" or (loss == "ndcg" and data.queries is not None)
    if race is None or not is_compared or not is_plain or data.bags is not None:
        return None

    def scores(fold: int) -> NDArray[np.float64] | None:
        training, test = race.folds[fold]
        try:
            learned = rules.fit(training).feature_map
        except FeatureMapError:
            return None
        assert isinstance(learned, Rules)
        if not learned.sums.shape[1]:  # no column splits the rows
            return None
        return learned.of_boosting(X[rules.selection[test]])[:, 0]

    comparison = compared(choice, scores, lambda errors: abs(errors) >= SURE)
    if comparison is None:
        return None
    may_be_taken = fit.dataset.n_values <= MOST_VALUES
    if data.queries is not None:
        takes_rules = may_be_taken and comparison.difference >= SURE
        return MapChoice(comparison, race.trainer.loss.metric or loss, not takes_rules, takes_rules)
    apart = fit.selection is None and not race.is_of_parts  # rows and folds as a threshold needs them
    is_mixture = columns.completion.mixture is not None and columns.completion.mixture.choice is not None
    averages = not comparison.is_clear and may_be_taken and apart and not is_mixture
    takes_rules = averages or (comparison.is_clear and may_be_taken and comparison.difference > 0.0)
    return MapChoice(comparison, "AP", averages or not takes_rules, takes_rules)
