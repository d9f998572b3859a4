"""Columns or rules, where nobody named the features: what is taken, and what is only said."""

from __future__ import annotations

import numpy as np
import pytest
from over import over
from sklearn.metrics import average_precision_score

from apsvm import APSVMClassifier
from apsvm.data.dataset import Dataset, TableRows
from apsvm.data.labels import LabelOptions
from apsvm.estimators.messages import WeakRankerWarning
from apsvm.models.columns import Columns
from apsvm.selection import maps
from apsvm.selection.maps import choose_features
from apsvm.trainers.base import Watch
from apsvm.trainers.fitting import FeatureOptions, Fit
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


def rows_of(inside, n=600, seed=4):
    """Positive where two features are both near 0, which no linear score tells, or where the sum of all is small."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    hidden = X[:, 0] ** 2 + X[:, 1] ** 2 if inside else X.sum(axis=1) + 3.0
    return X, hidden + 0.2 * rng.normal(size=n) < 0.3


def completed(inside, *, rows=None, of_table=True, loss="ap", groups=None, **settings):
    """The training, and what was said of it."""
    X, y = rows or rows_of(inside)
    table = TableRows(Columns(features=())) if of_table else None
    dataset = Dataset(X, np.where(y, 1.0, -1.0), groups, None, False, "made", "0" * 64, 0, table=table)
    said = []
    plan = StructuredSVMTrainer(loss, StructuredSettings(threads=1, **settings))
    raw = Fit.of(dataset, plan, LabelOptions(), FeatureOptions())
    fit = raw.prepared()
    return choose_features(raw, fit, fit.training_set(), Watch(remark=said.append)), said


def test_rules_are_taken_where_they_rank_better():
    training, said = completed(inside=True)
    assert training.fit.features.features == training.raw.features.features == "rules"
    assert training.fit.feature_map is not None
    assert training.raw.feature_map is None
    (line,) = said
    assert line.startswith("features: rules, which rank held-out rows better than columns, by 0.")
    (outcome,) = training.outcomes(Watch())
    (ranker,) = training.fit.model(outcome).rankers()
    X, y = rows_of(inside=True, n=3000, seed=5)
    assert average_precision_score(y, ranker.score(X)) > 0.8


def test_columns_are_kept_where_rules_rank_worse():
    """Steps are no match for a straight border."""
    training, said = completed(inside=False)
    assert training.fit.features.features == "linear"
    assert said[0].startswith("features: columns, as boosted rules rank held-out rows worse, by 0.")


def few(n=200, seed=4):
    """A few positives, which a sum tells as well as a threshold does."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 2.0 * (X[:, 1] > 1.0) + rng.normal(size=n) > 2.4


def test_few_positives_are_ranked_by_the_average_of_both(tmp_path):
    """Its threshold and probabilities are those of rows held out, and each member keeps its certificate."""
    pd = pytest.importorskip("pandas")
    X, y = few()
    frame = pd.DataFrame(X, columns=list("abc"))
    fitted = APSVMClassifier(calibrate="platt").fit(frame, y)
    header = fitted.to_model().header
    assert header.features.map == "linear+rules:400:depth=5"
    assert set(fitted.certificates_) == {"linear", "rules:400:depth=5"}
    assert all(one.reached for one in fitted.certificates_.values())
    assert "5 folds" in header.threshold.held_out
    assert header.calibration is not None
    X_new, y_new = few(n=5000, seed=5)
    new = pd.DataFrame(X_new, columns=list("abc"))
    of_columns, of_rules, of_both = (
        average_precision_score(y_new, one.decision_function(new))
        for one in (*(APSVMClassifier(features=name).fit(frame, y) for name in ("linear", "rules")), fitted)
    )
    assert of_both > min(of_columns, of_rules)
    assert abs(fitted.predict_proba(new)[:, 1].mean() - y_new.mean()) < 0.1
    fitted.to_model().save(tmp_path / "m")
    again = APSVMClassifier.from_model(tmp_path / "m")
    np.testing.assert_array_equal(again.decision_function(new), fitted.decision_function(new))
    assert again.certificates_ == fitted.certificates_


def test_copies_of_a_row_count_once():
    X, y = few(n=600)
    once, five_times = (completed(inside=True, rows=(np.tile(X, (k, 1)), np.tile(y, k)))[1][0] for k in (1, 5))
    assert once.startswith("features: the average of columns and rules")
    assert five_times.startswith("features: the average of columns and rules")


def test_a_training_that_is_stopped_ends_in_the_ranker_of_columns():
    training, (line,) = completed(inside=True, rows=few())
    assert line.startswith("features: the average of columns and rules")
    asked = []
    list(training.columns.outcomes(Watch(should_stop=lambda: bool(asked.append(1)))))
    left = iter(asked)
    (outcome,) = training.outcomes(Watch(should_stop=lambda: next(left, None) is None))
    (ranker,) = training.fit.model(outcome).rankers()
    assert ranker.header.features.map == "linear"
    assert not ranker.header.members


def test_columns_of_large_data_are_kept_and_it_is_said(monkeypatch):
    monkeypatch.setattr(maps, "MOST_VALUES", 2_000)
    training, said = completed(inside=True)
    assert training.fit.features.features == "linear"
    assert said[0].endswith("--features rules trains on them")


def test_rules_are_taken_in_queries_if_they_are_far_ahead(monkeypatch):
    queries = np.repeat(np.arange(60), 10)
    training, (line,) = completed(inside=True, groups=queries)
    assert training.fit.features.features == "rules"
    assert line.startswith("features: rules, which rank held-out rows better than columns, by 0.")
    (outcome,) = training.outcomes(Watch())
    assert outcome.ranks
    monkeypatch.setattr(maps, "SURE", 1e9)
    training, (line,) = completed(inside=True, groups=queries)
    assert training.fit.features.features == "linear"
    assert line.endswith("of AP, measured on 5 folds of queries: --features rules trains on them")


@over(
    "more",
    [
        {"loss": "auc"},
        {"C": (1.0,), "bound": "hinge"},
        {"C": (1.0,)},
        {"oracle": "qs"},
        {"components": 2},
    ],
)
def test_what_is_compared_with_nothing(more):
    training, said = completed(inside=True, **more)
    assert training.fit.features.features == "linear"
    assert not said


def test_a_frame_and_its_array_get_the_same_rules():
    pd = pytest.importorskip("pandas")
    X, y = rows_of(inside=True)
    frame = pd.DataFrame(X, columns=list("abcd"))
    of_frame, of_array = (APSVMClassifier().fit(rows, y) for rows in (frame, X))
    assert of_frame._model.header.features.map.startswith("rules")
    np.testing.assert_array_equal(of_frame.decision_function(frame), of_array.decision_function(X))
    with pytest.warns(WeakRankerWarning, match="hardly better than chance"):
        assert APSVMClassifier(features="linear").fit(frame, y).coef_.shape == (1, 4)
