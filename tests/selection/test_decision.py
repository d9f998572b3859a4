"""Thresholds and probabilities on rows held out: nobody has seen what he judges, and the fits are scikit-learn's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import IsotonicRegression

from apsvm.data.bags import rows_of_bags
from apsvm.data.dataset import Dataset
from apsvm.data.labels import LabelOptions
from apsvm.metrics.thresholds import ThresholdRule
from apsvm.models.header import Calibration
from apsvm.selection import decision as module
from apsvm.selection.calibration import calibrated, isotonic, platt
from apsvm.selection.completion import train_fit, training_scores
from apsvm.selection.decision import (
    DecisionRule,
    HeldOutError,
    check_decision,
    decide,
    race_alone,
)
from apsvm.selection.folds import Fold
from apsvm.selection.thresholds import held_out_scores
from apsvm.trainers import trainer_of
from apsvm.trainers.base import Watch
from apsvm.trainers.fitting import FeatureOptions, Fit

NEVER = bool  # bool() is False


def rows(rng, n=200, *, groups=None, bags=None, labels=None):
    X = rng.normal(size=(n, 4))
    relevant = X[:, 0] + rng.normal(size=n) > 0.7 if labels is None else labels
    return Dataset(
        X=X, relevance=np.where(relevant, 1.0, -1.0), groups=groups, costs=None, zero_based=False, source="rows",
        fingerprint="", unknown_features=0, bags=bags,
    )  # fmt: skip


def fit_of(dataset, loss="ap", **settings):
    trainer = trainer_of(loss)
    if trainer.family == "structured-svm":
        settings = {"bound": "hinge", **settings}
    return Fit.of(dataset, trainer(loss, trainer.Settings(threads=1, **settings)), LabelOptions(), FeatureOptions())


def trained(fit):
    *_, outcome = train_fit(fit.prepared(), Watch())
    return outcome


def held_out_by_folds(fit, outcome):
    """The rows by rankers of folds, in the model's scale, and the model's own scores."""
    folds, how = race_alone(fit, outcome, NEVER)
    seen = training_scores(outcome, fit.training_set())
    return held_out_scores(folds, seen, fit.target.relevant, how), seen


@pytest.mark.parametrize("n", [5, 60, 400])
def test_platt_is_scikit_learn_s(n, rng):
    for _ in range(10):
        scores = 10.0 ** rng.integers(-3, 4) * rng.normal(size=n) + rng.normal()
        relevant = scores + np.std(scores) * rng.normal(size=n) > np.mean(scores)
        relevant[:2] = True, False
        slope, offset = platt(scores, relevant)
        theirs = _sigmoid_calibration(scores, relevant)
        ours = Calibration(method="platt", slope=slope, offset=offset).probability(scores)
        np.testing.assert_allclose(ours, 1 / (1 + np.exp(theirs[0] * scores + theirs[1])), atol=2e-3)
        # Where the derivatives of the likelihood are 0 it is the most likely one.
        n_pos, n_neg = relevant.sum(), (~relevant).sum()
        target = np.where(relevant, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))
        z = (scores - scores.mean()) / scores.std()
        assert max(abs((ours - target).sum()), abs(((ours - target) * z).sum())) <= 1e-7 * n


def test_platt_of_scores_that_are_alike_is_the_share():
    slope, offset = platt(np.full(10, 3.0), np.arange(10) < 4)
    probability = Calibration(method="platt", slope=slope, offset=offset).probability(np.array([3.0]))
    assert probability == pytest.approx([(4 * (5 / 6) + 6 * (1 / 8)) / 10], abs=1e-6)


def test_isotonic_is_scikit_learn_s(rng):
    for _ in range(20):
        scores = rng.integers(-20, 20, size=100) / 8.0
        relevant = scores + rng.normal(size=100) > 0.5
        calibration = calibrated(scores, relevant, "isotonic")
        theirs = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(scores, relevant)
        new = np.linspace(-4.0, 4.0, 301)
        values = theirs.predict(scores)
        ends = [(values == end).sum() for end in (values.min(), values.max())]
        share = relevant.mean()
        lowest, highest = min(1, 2 * share) / (ends[0] + 2), 1 - min(1, 2 - 2 * share) / (ends[1] + 2)
        # Straight lines go to the clipped corners, so that they differ beside those.
        at_corners = np.array(calibration.scores)
        expected = np.clip(theirs.predict(at_corners), lowest, highest)
        np.testing.assert_allclose(calibration.probability(at_corners), expected, atol=1e-12)
        inside = (theirs.predict(new) > lowest) & (theirs.predict(new) < highest)
        found = calibration.probability(new)
        assert np.abs(found - theirs.predict(new))[inside].max() <= max(lowest, 1 - highest)
        assert found.min() >= lowest
        assert found.max() <= highest
        assert (np.diff(isotonic(scores, relevant)[0]) > 0).all()


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_no_probability_is_beyond_what_rows_held_out_support(share, rng):
    """Not even far outside, and not at an end of a single row."""
    crossed = 0
    for _ in range(50):
        scores = rng.normal(size=60)
        relevant = scores + rng.normal(size=60) > np.quantile(scores, 1.0 - share)
        relevant[:2] = True, False
        order = np.argsort(scores)
        alone = int(np.argmin(relevant[order][::-1]))  # positives above all negatives
        below = int(np.argmax(relevant[order]))
        for method in ("isotonic", "platt"):
            calibration = calibrated(scores, relevant, method)
            seen, far = calibration.probability(scores), calibration.probability(np.array([-1e9, 1e9]))
            assert sorted(far) == [seen.min(), seen.max()]
            assert far.min() < relevant.mean() < far.max()
            if alone and far[1] > far[0]:
                assert far[1] <= 1.0 - min(1.0, 2.0 * (1.0 - relevant.mean())) / (alone + 2) + 1e-12
            if below and far[1] > far[0]:
                assert far[0] >= min(1.0, 2.0 * relevant.mean()) / (below + 2) - 1e-12
            crossed += alone > 0
    assert crossed


def test_auto_is_isotonic_where_there_are_enough(rng):
    scores = rng.normal(size=1000)
    assert calibrated(scores, scores > np.sort(scores)[-200], "auto").method == "platt"
    assert calibrated(scores, scores > np.sort(scores)[-201], "auto").method == "isotonic"


def test_scores_that_a_race_has_choose_the_same_without_another_training(rng, monkeypatch):
    fit = fit_of(rows(rng))
    outcome, rule = trained(fit), DecisionRule(ThresholdRule("fpr", 0.1), "platt")
    alone = decide(fit, outcome, rule)
    folds, how = race_alone(fit, outcome, NEVER)
    monkeypatch.setattr(module, "race_alone", lambda *_: pytest.fail("there are scores already"))
    assert decide(fit, outcome, rule, NEVER, folds, how) == alone
    chosen = trained(fit_of(rows(rng), bound="auto"))
    decision = decide(fit_of(rows(rng), bound="auto"), chosen, rule)
    assert (decision.threshold.rule, decision.threshold.held_out) == ("fpr=0.1", "5 folds of rows")
    assert decision.calibration.held_out == "5 folds of rows"


@pytest.mark.parametrize("what", ["queries", "bags", "copies"])
def test_what_belongs_together_is_held_out_together(what, rng):
    ids = np.repeat(np.arange(40), 5)
    if what == "queries":
        fit = fit_of(rows(rng, groups=ids))
        units = ids
    elif what == "bags":
        labels = np.repeat(rng.random(40) < 0.4, 5)
        fit = fit_of(rows(rng, labels=labels, bags=ids), latent=True, start="bag-means")
        units = ids
    else:
        fit = replace(fit_of(rows(rng)), selection=np.repeat(np.arange(0, 200, 2), 2))
        units = np.arange(200)
    folds, how = module._folds(fit)
    assert how == f"5 folds of {'rows' if what == 'copies' else what}"
    if what == "bags":
        folds = [Fold(*(rows_of_bags(fit.dataset, part) for part in fold)) for fold in folds]
    tested = np.concatenate([fold.test for fold in folds])
    assert sorted(tested.tolist()) == (list(range(200)) if fit.selection is None else fit.selection.tolist())
    for fold in folds:
        assert not set(units[fold.test]) & set(units[fold.training])


def test_the_threshold_holds_on_new_rows(rng):
    fit = fit_of(rows(rng, 1000))
    outcome = trained(fit)
    decision = decide(fit, outcome, DecisionRule(ThresholdRule("fpr", 0.1), "platt"))
    new = rows(rng, 4000)
    scores = fit.prepared().model(outcome).score(new.X)
    positive = new.relevance > 0
    above = scores > decision.threshold.value
    assert decision.threshold.false_positive_rate <= 0.1
    assert (above & ~positive).sum() / (~positive).sum() == pytest.approx(0.1, abs=0.03)
    probability = decision.calibration.probability(scores)
    for low in (0.1, 0.3, 0.5, 0.7):
        among = (low <= probability) & (probability < low + 0.2)
        assert positive[among].mean() == pytest.approx(probability[among].mean(), abs=0.06)


def test_a_precision_that_nobody_reaches_is_said(rng):
    noise = rng.random(200) < 0.3
    fit = fit_of(rows(rng, labels=noise))
    outcome = trained(fit)
    scores, _ = held_out_by_folds(fit, outcome)
    top = scores.relevant[np.argmax(scores.scores)]
    decision = decide(fit, outcome, DecisionRule(ThresholdRule("precision", 1.0), "isotonic"))
    said = " ".join(decision.cautions)
    assert top or "no threshold has precision=1 on the rows held out" in said
    assert f"isotonic probabilities of {noise.sum()} rows of one class" in said


def test_what_cannot_be_held_out(rng):
    few = np.arange(200) < 1
    with pytest.raises(HeldOutError, match="2 folds need at least 2 positive rows, found 1"):
        check_decision(fit_of(rows(rng, labels=few)))
    graded = replace(rows(rng), relevance=rng.integers(0, 3, size=200).astype(float))
    with pytest.raises(HeldOutError, match="these labels are grades: --relevant-from says which"):
        check_decision(fit_of(graded, "ndcg"))
    assert decide(fit_of(rows(rng)), trained(fit_of(rows(rng))), DecisionRule(), lambda: True) is None


def test_copies_of_a_row_are_held_out_together(rng):
    """In rows that were read five times over."""
    one = rows(rng, 120)
    order = rng.permutation(600) % 120
    fit = fit_of(replace(one, X=one.X[order], relevance=one.relevance[order]))
    folds, _ = race_alone(fit, trained(fit), NEVER)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(600))
    for fold in folds:
        assert not set(order[fold.training]) & set(order[fold.test])
