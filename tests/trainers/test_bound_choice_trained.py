"""``bound="auto"`` where candidates are really trained: which rows want which bound, and what the models keep of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score
from trainings import train_svm, training_set

from apsvm import APSVMClassifier, load_model
from apsvm.trainers.base import Watch
from apsvm.trainers.structured_svm import comparison
from apsvm.trainers.structured_svm.bound_choice import choose
from apsvm.trainers.structured_svm.default_c import default_C
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer
from tests.trainers.test_bound_choice import AP, ONE_THREAD, Recorded, numbered


def hopeless(rng, n=500):
    """A quarter of the positives stands far below all other rows."""
    relevant = rng.random(n) < 0.15
    lost = relevant & (rng.random(n) < 0.25)
    X = rng.normal(size=(n, 4)) + 1.5 * (relevant & ~lost)[:, None] * np.array([1, 0.5, 0, 0])
    X[lost, 0] -= 4.0
    return X, relevant


def clean(rng, n=300):
    """One feature tells the classes apart: every candidate ranks without a fault."""
    relevant = rng.random(n) < 0.2
    X = rng.normal(size=(n, 4))
    X[:, 0] = np.where(relevant, 1.0, -1.0) * (1.0 + rng.random(n))
    return X, relevant


def few(rng, n=120):
    """Thirty weak features: what fits the rows closely does not hold elsewhere."""
    relevant = rng.random(n) < 0.4
    return rng.normal(size=(n, 30)) + 0.25 * relevant[:, None], relevant


@pytest.mark.parametrize(("make", "bound"), [(hopeless, "tight"), (clean, "hinge"), (few, "hinge")])
def test_which_bound_which_rows_want(make, bound):
    """By AP on new rows of the same kind it is no worse than the other."""
    right, gains = 0, []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        data, (new, relevant) = training_set(*make(rng)), make(rng)
        choice = choose(data, AP, ONE_THREAD, Watch())
        right += choice.bound == bound
        precision = {}
        for each in ("hinge", "tight"):
            C = choice.C[0].factor * default_C(data, AP, each)
            precision[each] = average_precision_score(relevant, new @ train_svm(data, C=C, bound=each).w)
        gains.append(precision[choice.bound] - precision[{"hinge": "tight", "tight": "hinge"}[choice.bound]])
    assert right == 2
    assert np.mean(gains) > (0.03 if bound == "tight" else -0.01)


def test_each_candidate_against_a_training_of_its_own(rng, monkeypatch):
    """The hinge's, whose minimum is one: trained on each split by itself, judged by another's average precision."""
    X, relevant = hopeless(rng, 200)
    with monkeypatch.context() as patched:
        recorded = Recorded(patched)
        choose(numbered(relevant, d=4), AP, ONE_THREAD, Watch())
    data = training_set(X, relevant)
    choice = choose(data, AP, ONE_THREAD, Watch())
    checked = 0
    for one in choice.candidates:
        if one.bound == "hinge":
            losses = []
            for training, test in recorded.splits:
                part, rest = data.select(np.array(sorted(training))), sorted(test)
                w = train_svm(part, C=one.C.factor * default_C(part, AP), epsilon=comparison.EPSILON).w
                scores = X[rest] @ w - 1e-12 * relevant[rest]  # of equals (all, at w = 0) the negatives first
                losses.append(1.0 - average_precision_score(relevant[rest], scores))
            # The path begins as a training alone does; what starts from there ends elsewhere within ε.
            assert one.loss == pytest.approx(np.mean(losses), abs=1e-9 if one.C.factor == 0.001 else 0.04)
            checked += 1
    assert checked >= 3
    best = min(choice.candidates, key=lambda one: one.loss)
    assert (choice.bound, choice.C) == (best.bound, (best.C,))


def test_threads_change_nothing(rng, monkeypatch):
    monkeypatch.setattr(comparison, "FEWEST_VALUES", 0)
    data = training_set(*hopeless(rng, 200))
    one, several = (choose(data, AP, replace(ONE_THREAD, threads=threads), Watch()) for threads in (1, 3))
    assert (one.bound, one.C, one.how, one.candidates) == (several.bound, several.C, several.how, several.candidates)
    np.testing.assert_array_equal(one.w, several.w)


@pytest.mark.parametrize("failing", [("tight",), ("hinge", "tight")])
def test_what_cannot_be_trained_is_no_candidate(failing, rng, monkeypatch):
    data, original = training_set(*clean(rng, 100)), comparison.rough_path

    def rough_path(risk, part, settings, *more, **named):
        if settings.bound in failing:
            raise FloatingPointError("too large")
        return original(risk, part, settings, *more, **named)

    monkeypatch.setattr(comparison, "rough_path", rough_path)
    choice = choose(data, AP, ONE_THREAD, Watch())
    assert choice.bound == "hinge"
    assert {one.bound for one in choice.candidates} == {"hinge", "tight"} - set(failing)
    if len(failing) == 2:
        assert choice.how == "what was not held out could not be trained on"


def test_the_model_keeps_the_choice(rng, tmp_path):
    X, relevant = hopeless(rng)
    model = APSVMClassifier(n_jobs=1).fit(X, relevant)
    choice = choose(training_set(X, relevant), AP, ONE_THREAD, Watch())
    assert choice.bound == "tight"
    model.to_model().save(tmp_path / "m")
    header = load_model(tmp_path / "m").header
    assert (header.settings["bound"], header.settings["C"], header.certificate.bound) == ("auto", "1x", "tight")
    assert header.details["choice"] == {
        "bound": "tight",
        "held_out": choice.how,
        "candidates": [{"bound": one.bound, "C": str(one.C), "loss": one.loss} for one in choice.candidates],
    }
    (factor,) = choice.C
    assert pytest.approx(factor.factor * default_C(training_set(X, relevant), AP, "tight")) == header.C
    assert APSVMClassifier.from_model(load_model(tmp_path / "m")).bound == "auto"


def test_a_path_of_named_values_is_trained_with_one_bound(rng):
    plan = StructuredSVMTrainer("ap", StructuredSettings(C=(1.0, 100.0), threads=1))
    outcomes = list(plan.train(training_set(*hopeless(rng)), Watch()))
    assert [(one.C, one.certificate.bound, one.settings.bound) for one in outcomes] == [
        (1.0, "tight", "auto"),
        (100.0, "tight", "auto"),
    ]
    assert len({str(one.details["choice"]) for one in outcomes}) == 1
    assert all(one.notes[0].startswith("--bound auto: tight, C = ") for one in outcomes)
    assert all(one.seconds["choosing"] > 0 for one in outcomes)


@pytest.mark.parametrize(("loss", "more"), [("f1", {}), ("zero-one", {}), ("ap", {"oracle": "appx"})])
def test_where_there_is_no_choice_it_is_the_hinge(loss, more, rng):
    plan = StructuredSVMTrainer(loss, StructuredSettings(C=(1000.0,), threads=1, **more))
    (outcome,) = plan.train(training_set(*clean(rng)), Watch())
    assert outcome.certificate.bound == "hinge"
    assert "choice" not in outcome.details


def payments(rng, n):
    """One in a hundred is fraud: a third large for what it is, a third at night with a new card, a third as others."""
    amount, age = np.exp(rng.normal(3.3, 1.1, n)), rng.integers(1, 3000, n).astype(float)
    hour, recent, shop = rng.integers(0, 24, n), rng.poisson(0.6, n), rng.integers(0, 10, n)
    fraud, kind = rng.random(n) < 0.01, rng.integers(0, 3, n)
    large, at_night = fraud & (kind == 0), fraud & (kind == 1)
    amount[large] *= 5
    recent[large] += rng.poisson(2, large.sum())
    shop[large] = 0
    age[at_night], hour[at_night] = rng.integers(1, 60, at_night.sum()), rng.integers(0, 5, at_night.sum())
    return np.column_stack([amount, age, hour, recent, shop[:, None] == np.arange(10)]), fraud


def test_the_threshold_is_where_the_model_s_own_scores_lie():
    """Rankers of a part of rare, partly hopeless positives have scores of another shape than one of all rows."""
    rng = np.random.default_rng(2)
    data, (new, _) = training_set(*payments(rng, 8000)), payments(rng, 30_000)
    (outcome,) = StructuredSVMTrainer("ap", ONE_THREAD).train(data, Watch())
    assert outcome.threshold.held_out == "5 folds of rows"
    assert (new @ outcome.w > outcome.threshold.value).mean() == pytest.approx(outcome.threshold.called, rel=0.3)
