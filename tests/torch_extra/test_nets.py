"""Networks as estimators: what they learn, what they remember, and what scikit-learn asks of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from over import over
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator

from apsvm import APSVMClassifier, load_any_model
from apsvm._support.registry import UnknownNameError
from apsvm.estimators import estimator_for
from apsvm.losses.base import LossError
from apsvm.torch import RankNetClassifier, RankNetRanker, SmoothAPLoss
from apsvm.trainers.settings import SettingsError

LOSSES = ["bce", "ap", "auc", "rbp(0.9)", "ndcg", "smooth-ap", "blackbox-ap", "ramp", "ramp(auc)", "direct"]


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def crossed():
    """Rows that no linear scorer can rank: positive where two features have one sign."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 4))
    return X, (X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=600) > 0.7).astype(int)


@pytest.fixture(scope="module")
def queries():
    """Grades 0, 1, 2 that the distance from 0 decides; each query has an offset of its own."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(500, 3))
    qid = np.arange(500) // 10
    worth = np.abs(X[:, 0]) + 0.1 * rng.normal(size=500)
    return X, np.digitize(worth, [0.8, 1.5]).astype(float), qid


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [RankNetClassifier(epochs=4), RankNetClassifier(loss="ap", epochs=4), RankNetRanker(epochs=4)],
    ids=["bce", "ap", "ranker"],
)
@pytest.mark.filterwarnings("ignore")  # the checks try what warns
def test_check_estimator(estimator, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # or a check is skipped
    done = check_estimator(estimator)
    assert {check["check_name"] for check in done if check["status"] != "passed"} == set()
    assert len(done) >= (55 if is_classifier(estimator) else 40)


@pytest.mark.slow
@over("bce_epochs", [0, None])
@over("loss", LOSSES)
def test_every_loss_ranks(loss, bce_epochs, cancer):
    X, y = cancer
    more = {} if loss == "bce" else {"bce_epochs": bce_epochs}
    model = RankNetClassifier(hidden=8, loss=loss, epochs=40, random_state=0, **more).fit(X[::2], y[::2])
    assert average_precision_score(y[1::2], model.decision_function(X[1::2])) > 0.97
    assert model.score(X[1::2], y[1::2]) > 0.9
    assert 1 <= model.best_epoch_ <= model.n_iter_ <= 40


@pytest.mark.slow
def test_layers_are_worth_something(crossed):
    X, y = crossed
    train, test = slice(0, 400), slice(400, None)
    scores = {
        hidden: RankNetClassifier(hidden, "ap", random_state=0).fit(X[train], y[train]).score(X[test], y[test])
        for hidden in [(), (16,), (16, 8)]
    }
    linear = APSVMClassifier(components=1).fit(X[train], y[train]).score(X[test], y[test])
    assert scores[()] == pytest.approx(linear, abs=0.1)
    assert min(scores[(16,)], scores[(16, 8)]) > 0.8 > 0.5 > scores[()]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits(crossed):
    X, y = crossed
    before = torch.random.get_rng_state()
    options = {"loss": "smooth-ap", "epochs": 6, "batch_size": 64}
    first, again, other = (
        RankNetClassifier(**options, random_state=seed).fit(X, y).decision_function(X) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), before)  # nor is the global generator drawn from


def test_one_thread_whoever_asks(crossed):
    X, y = crossed
    scores = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        scores.append(RankNetClassifier(loss="ap", epochs=4, random_state=0).fit(X, y).decision_function(X))
        assert torch.get_num_threads() == threads
    np.testing.assert_array_equal(*scores)


@pytest.mark.slow
def test_what_is_kept_is_the_best_on_what_was_held_out(crossed):
    X, y = crossed
    model = RankNetClassifier(loss="ap", epochs=40, bce_epochs=20, random_state=0).fit(X, y)
    only_bce = RankNetClassifier(loss="bce", epochs=20, random_state=0).fit(X, y)
    # The first stage is the same, and so the second can only be better there.
    assert model.validation_score_ >= only_bce.validation_score_
    assert model.validation_score_ > 0.8
    assert RankNetClassifier(epochs=3, validation=0, random_state=0).fit(X, y).validation_score_ is None


def test_patience(crossed):
    X, y = crossed
    model = RankNetClassifier(epochs=400, patience=3, random_state=0, learning_rate=0.03).fit(X, y)
    assert model.n_iter_ == model.best_epoch_ + 3 < 400


def test_rows_are_standardised_inside(cancer):
    X, y = cancer
    model = RankNetClassifier(epochs=10, random_state=0).fit(X, y)
    moved = RankNetClassifier(epochs=10, random_state=0).fit(1e3 * X + 1e6, y)
    np.testing.assert_allclose(moved.decision_function(1e3 * X + 1e6), model.decision_function(X), rtol=0, atol=0.05)
    constant = np.column_stack([X, np.full(len(y), 7.0)])
    assert RankNetClassifier(epochs=10, random_state=0).fit(constant, y).score(constant, y) > 0.98


def test_sparse_is_dense(cancer):
    X, y = cancer
    X = np.where(np.median(X, axis=0) < X, X, 0.0)
    dense, sparse = (RankNetClassifier(epochs=5, random_state=0).fit(rows, y) for rows in (X, sp.csr_array(X)))
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["ndcg", "ap", "smooth-ap", "direct(mrr)"])
def test_queries(loss, queries):
    X, grades, qid = queries
    train, test = slice(0, 300), slice(300, None)
    model = RankNetRanker(8, loss, epochs=60, random_state=0, batch_size=50, relevant_from=None).fit(
        X[train], grades[train], qid=qid[train]
    )
    assert model.n_queries_ + model.n_queries_skipped_ == 30
    linear = estimator_for("ap")().fit(X[train], grades[train] > 0, qid=qid[train])
    assert model.score(X[test], grades[test], qid=qid[test]) > 0.9
    assert linear.score(X[test], grades[test] > 0, qid=qid[test]) < 0.8
    with pytest.raises(ValueError, match="fitted with qid"):
        model.score(X, grades)


def test_names_of_classes(crossed):
    X, y = crossed
    names = np.where(y == 1, "rare", "common")
    second = RankNetClassifier(loss="ap", epochs=5, random_state=0).fit(X, names)
    first = RankNetClassifier(loss="ap", epochs=5, random_state=0, pos_label="common").fit(X, names)
    assert list(second.classes_) == ["common", "rare"]
    assert (second.pos_label_, first.pos_label_) == ("rare", "common")
    np.testing.assert_array_equal(first.to_model().score(X), -first.decision_function(X))
    # The constant of a ranking loss: as many are predicted as are positive.
    assert (second.predict(X) == "rare").sum() == y.sum()


@pytest.mark.slow
def test_pickle_clone_and_model_files(crossed, tmp_path):
    X, y = crossed
    model = RankNetClassifier((8, 4), "ramp(auc)", epochs=6, random_state=1).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), scores)
    assert clone(model).get_params() == model.get_params()
    model.to_model().save(tmp_path / "net.model")
    stored = load_any_model(tmp_path / "net.model")
    np.testing.assert_array_equal(stored.score(X), scores)
    assert (stored.kind, stored.header.family, stored.header.loss) == ("net", "net", "ramp(auc)")
    back = RankNetClassifier.from_model(stored)
    np.testing.assert_array_equal(back.decision_function(X), scores)
    assert back.score(X, y) == model.score(X, y)
    assert (back.hidden, back.loss, back.epochs, back.random_state) == ((8, 4), "ramp(auc)", 6, 1)
    np.testing.assert_array_equal(clone(back).fit(X, y).decision_function(X), scores)
    with pytest.raises(ValueError, match="trains networks"):
        RankNetClassifier.from_model(APSVMClassifier().fit(X, y).to_model())


@pytest.mark.slow
def test_a_module_for_a_loss(crossed):
    X, y = crossed
    named = RankNetClassifier(loss="smooth-ap", epochs=6, random_state=0).fit(X, y)
    module = RankNetClassifier(loss=SmoothAPLoss(tau=1.0), epochs=6, random_state=0).fit(X, y)
    np.testing.assert_array_equal(module.decision_function(X), named.decision_function(X))
    sharper = clone(module).set_params(loss=SmoothAPLoss(tau=0.1)).fit(X, y)
    assert not np.array_equal(sharper.decision_function(X), named.decision_function(X))
    back = RankNetClassifier.from_model(sharper.to_model())
    assert back.score(X, y) == sharper.score(X, y)


@pytest.mark.slow
def test_in_pipelines_and_searches(crossed):
    X, y = crossed
    search = GridSearchCV(
        make_pipeline(MinMaxScaler(), RankNetClassifier(epochs=8, random_state=0)),
        {"ranknetclassifier__hidden": [(), (16,)], "ranknetclassifier__loss": ["bce", "ap"]},
        scoring="average_precision",
        cv=3,
    )
    assert search.fit(X, y).best_params_["ranknetclassifier__hidden"] == (16,)


def test_estimators_by_name(crossed):
    X, y = crossed
    assert estimator_for("net") is estimator_for("bce") is RankNetClassifier
    made = estimator_for("smooth-ap")(epochs=4, random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        made.decision_function(X),
        RankNetClassifier(loss="smooth-ap", epochs=4, random_state=0).fit(X, y).decision_function(X),
    )
    assert issubclass(estimator_for("ramp(ndcg)"), RankNetRanker)


@over(
    ("options", "error", "says"),
    [
        ({"loss": "smoth-ap"}, UnknownNameError, "smoth-ap"),
        ({"loss": "f1"}, LossError, "'f1' is none"),
        ({"loss": "ramp(f1)"}, LossError, "'f1' is none"),
        ({"loss": "ramp(bce)"}, UnknownNameError, "bce"),
        ({"hidden": "32"}, TypeError, "hidden is a number of units"),
        ({"hidden": (0,)}, ValueError, "above 0"),
        ({"hidden": True}, ValueError, "whole numbers"),
        ({"hidden": (8, 2.5)}, ValueError, "whole numbers"),
        ({"hidden": 10**6}, SettingsError, "1..65536"),
        ({"epochs": 0}, ValueError, "epochs"),
        ({"epochs": 5, "loss": "ap", "bce_epochs": 5}, SettingsError, "leaves none of the 5"),
        ({"bce_epochs": 5}, SettingsError, "bce_epochs is for other losses"),
        ({"validation": 1.0}, ValueError, "validation"),
        ({"batch_size": -1}, ValueError, "batch_size"),
        ({"learning_rate": 0.0}, ValueError, "learning_rate"),
        ({"learning_rate": "fast"}, TypeError, "learning_rate"),
        ({"l2": -1.0}, ValueError, "l2"),
        ({"device": "abacus"}, SettingsError, "device abacus"),
        ({"pos_label": 7}, ValueError, "pos_label=7"),
    ],
)
def test_what_cannot_be(options, error, says, crossed):
    with pytest.raises(error, match=says):
        RankNetClassifier(**options).fit(*crossed)


def test_grades_are_for_the_ranker(crossed):
    X, _ = crossed
    with pytest.raises(ValueError, match=r"for grades there is RankNetRanker$"):
        RankNetClassifier().fit(X, np.arange(len(X)) % 3)


def test_hostile_rows(crossed):
    X, y = crossed
    for bad in (np.nan, np.inf):
        spoilt = X.copy()
        spoilt[3, 1] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            RankNetClassifier().fit(spoilt, y)
    huge = X.copy()
    huge[3, 1] = 1e300
    with pytest.raises(FloatingPointError, match="standardised features are not finite"):
        RankNetClassifier(epochs=2, random_state=0).fit(huge, y)
    with pytest.raises(FloatingPointError, match="not finite"):
        RankNetClassifier((4,) * 8, epochs=2, learning_rate=1e6, l2=0.0, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        RankNetClassifier().fit(X, np.ones(len(y)))


def test_few_rows():
    """Too few to hold some out: every epoch is done, and the last kept."""
    model = RankNetClassifier(loss="ap", epochs=6, random_state=0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    assert (model.n_iter_, model.best_epoch_, model.validation_score_) == (6, 6, None)


def test_a_time_limit_ends_it(crossed):
    X, y = crossed
    with pytest.warns(ConvergenceWarning, match="stopped early: time limit"):
        model = RankNetClassifier(loss="ap", time_limit=0.0, random_state=0).fit(X, y)
    assert model.n_iter_ == 1
