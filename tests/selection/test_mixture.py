"""Two components in the place of one linear ranker: where they are tried, when they are taken, and what is trained."""

from __future__ import annotations

import numpy as np
import pytest
from judge import definition, loss_of_order

from apsvm import APSVMClassifier
from apsvm.data.component_rows import scores_of_weights
from apsvm.data.labels import Target
from apsvm.data.rows import Rows
from apsvm.models.header import Labels
from apsvm.selection.comparison import precisions
from apsvm.selection.completion import train_plan
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


def rare(kinds: int = 2, positives: int = 80, n: int = 800) -> TrainingSet:
    """Positives of this many kinds, each shifted along a feature of its own."""
    X, relevant = np.random.default_rng(3).normal(size=(n, 4)), np.arange(n) < positives
    X[np.arange(positives), np.arange(positives) % kinds] += 3.5
    return TrainingSet(Rows(X), Target(Labels(), relevant))


def outcome(data: TrainingSet, loss: str = "ap", *named: str, **settings):
    plan = StructuredSVMTrainer(loss, StructuredSettings(threads=1, **settings), frozenset(named))
    (result,) = train_plan(plan, data, Watch())
    return result


def tried(result) -> bool:
    return any("--components auto" in note for note in result.notes)


def test_positives_of_two_kinds_get_two_components_by_themselves():
    data = rare()
    two, one = outcome(data), outcome(data, "ap", "components")
    assert (two.w.shape, one.w.shape) == ((2, 5), (4,))
    assert two.settings.components == 2
    assert (two.certificate.stationary, two.certificate.bound) == (True, "tight")
    assert two.certificate.gap <= two.certificate.tolerance
    assert any(note.startswith("--components auto: 2: AP ") for note in two.notes)
    assert not tried(one)
    found = [
        loss_of_order(definition("ap"), data.target.relevant[np.argsort(-scores_of_weights(data.rows, result.w))])
        for result in (two, one)
    ]
    assert found[0] < found[1] - 0.05
    # The threshold is that of the two on rows held out, of all folds.
    assert two.held_out is not None
    assert np.isfinite(two.threshold.value)


def test_positives_of_one_kind_keep_one_and_it_is_said():
    result = outcome(rare(kinds=1))
    assert result.w.shape == (4,)
    assert any(note.startswith("--components auto: 1: AP ") for note in result.notes)
    figures = result.details["choice"]["components"]
    assert figures["of_two"] - figures["of_one"] < 0.02
    assert figures["standard_errors"] < 1.64


def test_precisions_of_the_positives_add_up_to_ap(rng):
    scores, relevant = rng.integers(0, 12, size=60).astype(float), rng.random(60) < 0.3
    order = np.lexsort((relevant, -scores))  # of equal scores negatives first
    assert precisions(scores, relevant).mean() == pytest.approx(1.0 - loss_of_order(definition("ap"), relevant[order]))
    np.testing.assert_allclose(precisions(np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4) % 2 == 1), [2 / 3, 1])


def test_an_estimator_takes_two_unless_one_is_named():
    data = rare()
    X, y = data.rows.scores_of_all(np.eye(4)), data.target.relevant
    assert APSVMClassifier(features="linear").fit(X, y).coef_.shape == (2, 4)
    assert APSVMClassifier(features="linear", components=1).fit(X, y).coef_.shape == (1, 4)
