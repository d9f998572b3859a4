"""``--bound auto`` where candidates are really trained: which rows want which bound."""

from __future__ import annotations

import numpy as np
import pytest
from bound_rows import clean, hopeless
from sklearn.metrics import average_precision_score
from trainings import train_svm, training_set

from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.selection import quick
from apsvm.selection.folds import affordable_folds
from apsvm.selection.quick import LOSS, choose
from apsvm.trainers.base import Watch
from apsvm.trainers.structured_svm.default_c import default_C
from apsvm.trainers.structured_svm.plan import Plan
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.starts_of_rows import StartsOfRows
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer
from apsvm.trainers.structured_svm.training import train

AP = make_loss("ap")


def plan(loss="ap", **settings):
    return StructuredSVMTrainer(loss, StructuredSettings(threads=1, **settings))


def few(rng, n=120):
    """Thirty weak features: what fits the rows closely does not hold elsewhere."""
    relevant = rng.random(n) < 0.4
    return rng.normal(size=(n, 30)) + 0.25 * relevant[:, None], relevant


@pytest.mark.slow
@pytest.mark.parametrize(("make", "bound"), [(hopeless, "tight"), (clean, "hinge"), (few, "hinge")])
def test_which_bound_which_rows_want(make, bound):
    """By AP on new rows of the same kind it is no worse than the other."""
    right, gains = 0, []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        data, (new, relevant) = training_set(*make(rng)), make(rng)
        choice = choose(plan(), data, Watch())
        right += choice.bound == bound
        precision = {}
        for each in ("hinge", "tight"):
            C = choice.C[0].factor * default_C(data, AP, each)
            precision[each] = average_precision_score(relevant, new @ train_svm(data, C=C, bound=each).w)
        gains.append(precision[choice.bound] - precision[{"hinge": "tight", "tight": "hinge"}[choice.bound]])
    assert right == 2
    assert np.mean(gains) > (0.03 if bound == "tight" else -0.01)


@pytest.mark.slow
def test_each_candidate_against_a_training_of_its_own(rng):
    """The hinge's, whose minimum is one: trained on each fold by itself, judged by another's average precision."""
    X, relevant = hopeless(rng, 200)
    data = training_set(X, relevant)
    choice = choose(plan(), data, Watch())
    checked = 0
    for one in choice.candidates:
        if one.choice["bound"] == "hinge":
            losses, factor = [], one.choice["C"].factor
            for training, test in affordable_folds(data, 0).folds:
                part = data.select(training)
                w = train_svm(part, C=factor * default_C(part, AP), epsilon=quick.EPSILON["hinge"]).w
                scores = X[test] @ w - 1e-12 * relevant[test]  # of equals (all, at w = 0) the negatives first
                losses.append(1.0 - average_precision_score(relevant[test], scores))
            # The path begins as a training alone does; what starts from there ends elsewhere within ε.
            assert one.mean(LOSS) == pytest.approx(np.mean(losses), abs=1e-9 if factor == 0.001 else 0.04)
            checked += 1
    assert checked >= 3
    best = min(choice.candidates, key=lambda one: one.mean(LOSS))
    assert choice.bound == best.choice["bound"]
    differences = np.subtract(choice.candidates[0].values(LOSS), best.values(LOSS))
    assert 0.0 <= differences.mean() <= differences.std(ddof=1) / np.sqrt(5) + 1e-12
    assert choice.C[0].factor <= best.choice["C"].factor


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("failing", [("tight",), ("hinge", "tight")])
def test_what_cannot_be_trained_is_no_candidate(failing, threads, rng, monkeypatch):
    monkeypatch.setattr(quick, "FEWEST_VALUES", 0)
    X, relevant = clean(rng, 100)
    data, original = training_set(Rows(X, threads=threads), relevant), quick.train

    def train(plan, *arguments):
        if plan.settings.bound in failing:
            raise FloatingPointError("too large")
        return original(plan, *arguments)

    monkeypatch.setattr(quick, "train", train)
    choice = choose(plan(), data, Watch())
    assert choice.bound == "hinge"
    assert {one.choice["bound"] for one in choice.candidates} == {"hinge", "tight"} - set(failing)
    if len(failing) == 2:
        assert choice.how == "what was not held out could not be trained on"
        assert choice.start() is None


def test_the_tight_bound_begins_at_the_hinge_or_the_means_and_goes_on_from_there(rng, monkeypatch):
    begun, original = [], StartsOfRows.__call__

    def noted(self, *arguments):
        points = original(self, *arguments)
        begun.append([*points])
        return points

    monkeypatch.setattr(StartsOfRows, "__call__", noted)
    X, relevant = clean(rng, 60)
    data = training_set(X, relevant)
    settings = StructuredSettings(bound="tight", C=(9.0, 3.0, 1.0), threads=1)
    start = np.eye(data.rows.dimension)[0]
    assert len(list(train(Plan(loss=AP, settings=settings, start=start, is_rough=True), data, Watch()))) == 3
    assert begun == [["from the hinge", "from the means"], ["from the C before"], ["from the C before"]]
