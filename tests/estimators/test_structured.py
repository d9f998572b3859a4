"""The structured SVM's estimators: what they minimise, weights, queries, inputs, and how they live in scikit-learn."""

from __future__ import annotations

import logging
import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from over import over
from sklearn.base import clone
from trainings import make_risk

from apsvm import APSVMClassifier, APSVMClassifierCV, APSVMRanker, APSVMRankerCV
from apsvm.data.labels import Target
from apsvm.data.rows import Rows
from apsvm.losses import make_loss
from apsvm.models.header import Labels
from apsvm.oracles import make_oracle
from apsvm.trainers.base import TrainingSet
from apsvm.trainers.structured_svm.default_c import default_C

#: Where a test does not name the bound it is about the hinge, whose minimum is one: by default the bound is chosen.
Classifier = partial(APSVMClassifier, bound="hinge")
Ranker = partial(APSVMRanker, bound="hinge")
#: Where weights are compared with what is computed of the rows as they are.
Unscaled, UnscaledRanker = partial(Classifier, scale="none"), partial(Ranker, scale="none")


class Own:
    """The AP loss by its arrays."""

    unimodal = True

    def weights(self, n_pos):
        return np.arange(1, n_pos + 1) / n_pos

    def discount(self, n):
        return 1 / np.arange(1, n + 1)


def objective(model, loss, C, X, relevant, **more):
    """½‖w‖² + C·risk, where the level is not trained."""
    w = model.coef_.ravel()
    loss = make_loss(loss)
    return 0.5 * w @ w + C * make_risk(Rows(X), relevant, loss, make_oracle("auto", loss), **more)(w).value


def test_the_certificate_is_of_what_it_says(data):
    model = Unscaled("ap", C=50).fit(data.X, data.relevant)
    bounds = model.certificate_
    assert bounds.primal == pytest.approx(objective(model, "ap", 50, data.X, data.relevant), rel=1e-12)
    assert 0 <= bounds.gap <= bounds.tolerance == 50 * 1e-3
    assert bounds.reached
    assert bounds.primal < 0.9 * objective(
        model.__class__(C=1, scale="none").fit(data.X, data.relevant), "ap", 50, data.X, data.relevant
    )
    graded = UnscaledRanker("ndcg", C=50).fit(data.X, data.y, qid=data.qid)
    found = objective(graded, "ndcg", 50, data.X, data.y > 0, groups=data.qid, grades=data.y.astype(float))
    assert graded.certificate_.primal == pytest.approx(found, rel=1e-12)
    assert graded.n_queries_ == 7


def test_what_appx_cannot(data):
    assert not Classifier(oracle="appx").fit(data.X, data.relevant, qid=data.qid).certificate_.exact


@pytest.mark.parametrize("oracle", ["auto", "greedy"])
def test_the_constant_changes_no_weight(oracle, data):
    model = Unscaled(C=100, oracle=oracle).fit(data.X, data.relevant, qid=data.qid)
    plain = Unscaled(C=100, oracle=oracle, fit_intercept=False).fit(data.X, data.relevant, qid=data.qid)
    np.testing.assert_array_equal(plain.coef_, model.coef_)
    assert plain.intercept_ == [0.0]
    assert UnscaledRanker("ap", C=100).fit(data.X, data.relevant).intercept_ == 0.0


@pytest.mark.parametrize("loss", ["zero-one", "f1"])
def test_a_level_that_the_loss_reads_is_trained(loss, data):
    X = data.X
    made = partial(Unscaled, loss, C=1000, metric="F1" if loss == "f1" else "accuracy")
    model = made(intercept_scaling=5).fit(X, data.relevant)
    without = made(fit_intercept=False).fit(X, data.relevant)
    assert model.intercept_ != 0
    assert without.intercept_ == 0
    assert model.score(X, data.relevant) > without.score(X, data.relevant)


# Weights.


@pytest.mark.parametrize("loss", ["ap", "auc", "ndcg", "f1", "prbep", "zero-one"])
def test_whole_weights_are_copies_of_rows(loss, data, rng):
    copies = rng.integers(0, 4, size=data.y.size)
    repeated = rng.permutation(np.repeat(np.arange(data.y.size), copies))
    settings = {"C": 10, "epsilon": 1e-7, "intercept_scaling": 1}
    weighted = Unscaled(loss, **settings).fit(data.X, data.relevant, sample_weight=copies)
    judge = Unscaled(loss, **settings).fit(data.X[repeated], data.relevant[repeated])
    assert weighted.certificate_.primal == pytest.approx(judge.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(weighted.coef_, judge.coef_, atol=2e-3 * np.abs(judge.coef_).max())
    unweighted = Unscaled(loss, C=10).fit(data.X, data.relevant)
    assert np.abs(weighted.coef_ - unweighted.coef_).max() > 0.01 * np.abs(judge.coef_).max()


def test_labels_that_do_not_fit(data):
    with pytest.raises(
        ValueError, match=r"Only binary .* multiclass\. .* y == label, .*OneVsRestClassifier, for grades APSVMRanker"
    ):
        Classifier("ndcg").fit(data.X, data.y)
    with pytest.raises(ValueError, match="Unknown label type"):
        Classifier().fit(data.X, data.X[:, 0])
    with pytest.raises(ValueError, match="one class"):
        Classifier().fit(data.X, np.zeros(data.y.size))
    with pytest.raises(ValueError, match=r"grades above 0, and others; found 240 of 240 relevant. relevant_from sets"):
        Ranker("ap").fit(data.X, data.y + 1)
    with pytest.raises(ValueError, match="grades of 9 and above"):
        Ranker("ndcg", relevant_from=9).fit(data.X, data.y)
    with pytest.raises(ValueError, match="no query has both"):
        Classifier().fit(data.X, data.relevant, qid=np.arange(data.y.size))
    with pytest.raises(ValueError, match="could not convert"):
        Ranker().fit(data.X, np.where(data.relevant, "good", "bad"))


def test_qid_of_any_type(data):
    judge = Ranker(C=10).fit(data.X, data.y, qid=data.qid)
    for qid in (data.qid - 3, [f"q{number}" for number in data.qid], data.qid / 8, data.qid.astype(object)):
        np.testing.assert_array_equal(Ranker(C=10).fit(data.X, data.y, qid=qid).coef_, judge.coef_)
    for qid, message in (
        (data.qid[:-1], "expected qid of shape"),
        (np.where(data.qid == 1, np.nan, data.qid), "NaN"),
        (data.qid[:, None], "expected qid of shape"),
    ):
        with pytest.raises(ValueError, match=message):
            Ranker().fit(data.X, data.y, qid=qid)


@over(
    ("name", "values", "more"),
    [
        ("C", [0, "large", np.nan, np.inf], {}),
        ("epsilon", [-1.0], {}),
        ("max_iter", [0], {}),
        ("time_limit", [-1], {}),
        ("keep_easy", [101], {}),
        ("intercept_scaling", [0, "large"], {}),
        ("loss", ["hat"], {}),
        ("oracle", ["pythia"], {}),
        ("oracle='search'", ["search"], {"loss": "ndcg"}),
        ("serve", ["appx"], {"loss": "f1"}),
        ("bound='tight'", ["tight"], {"loss": "f1"}),
        ("random_state", ["x"], {}),
        ("bound", ["loose"], {}),
        ("solver", ["hope"], {}),
        ("qp", ["hope"], {}),
    ],
)
def test_parameters_that_do_not_fit(name, values, more, data):
    """Each is called as Python writes it."""
    parameter = {"serve": "oracle"}.get(name, name.partition("=")[0])
    word = {"random_state": "seed"}.get(name, name)
    for value in values:
        with pytest.raises(ValueError, match=word):
            Classifier(**{parameter: value}, **more).fit(data.X, data.relevant)


@over("parameters", [{"fit_intercept": "no"}, {"latent": "no"}, {"n_jobs": "2"}])
def test_parameters_of_another_type(parameters, data):
    (name,) = parameters
    with pytest.raises(TypeError, match=f"{name} .* found '"):
        Classifier(**parameters).fit(data.X, data.relevant)


def test_values_too_large(data):
    """To a program that looks for ValueError as to one that looks for FloatingPointError."""
    for kind in (ValueError, FloatingPointError):
        with pytest.raises(kind, match="scale them down"):
            Classifier().fit(data.X * 1e200, data.relevant)


# Inputs.


def test_sparse_dense_and_single_precision_alike(data):
    X = np.where(np.abs(data.X) < 0.8, 0, data.X)
    judge = Unscaled(C=10).fit(X, data.relevant)
    others = [sp.csr_array(X), sp.csr_matrix(X), sp.csc_array(X), sp.coo_array(X), np.asfortranarray(X), X.tolist()]
    wide = sp.csr_array(X)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    for other in (*others, wide):
        model = Unscaled(C=10).fit(other, data.relevant)
        np.testing.assert_allclose(model.coef_, judge.coef_, rtol=1e-10)
        np.testing.assert_allclose(model.decision_function(other), judge.decision_function(X), rtol=1e-9, atol=1e-12)
    single = Unscaled(C=10).fit(X.astype(np.float32), data.relevant)
    assert single.coef_.dtype == np.float64
    assert single.certificate_.primal == pytest.approx(judge.certificate_.primal, rel=1e-2)


@over("options", [{}, {"features": "piecewise"}, {"features": "products"}], ids=str)
@over(
    "indptr, indices, words",
    [(3, None, r"indptr\[0\] to be 0, found 3|index pointer should start with 0"), (0, float, "signed integers")],
)
def test_a_csr_matrix_that_is_none_is_refused(options, indptr, indices, words, data):
    """scipy takes its arrays as they come."""
    X = sp.csr_array(data.X)
    fitted = Classifier(C=1, **options).fit(X, data.relevant)
    X.indptr[0], X.indices = indptr, X.indices.astype(indices or X.indices.dtype)
    for act in (lambda: Classifier(C=1, **options).fit(X, data.relevant), lambda: fitted.decision_function(X)):
        with pytest.raises(ValueError, match=words):
            act()


# In scikit-learn.


@pytest.mark.parametrize("loss", ["ap", Own, Own(), "rbp(0.9)"], ids=["name", "class", "object", "parameter"])
def test_clone_and_pickle(loss, data):
    model = Classifier(loss, C=10, max_iter=500)
    fitted = clone(model).fit(data.X, data.relevant)
    assert not hasattr(model, "coef_")
    back = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(back.decision_function(data.X), fitted.decision_function(data.X))
    assert back.certificate_ == fitted.certificate_
    assert back.score(data.X, data.relevant) == fitted.score(data.X, data.relevant)
    if loss != "rbp(0.9)":
        np.testing.assert_array_equal(fitted.coef_, Classifier("ap", C=10).fit(data.X, data.relevant).coef_)


def test_verbose(data, capsys, caplog, monkeypatch):
    Classifier().fit(data.X, data.relevant)
    assert capsys.readouterr() == ("", "")
    before = logging.getLogger("apsvm").level
    with caplog.at_level(logging.INFO, logger="root"):
        Classifier(verbose=1, C=100).fit(data.X, data.relevant)
    lines = [record.message for record in caplog.records if record.name == "apsvm"]
    assert len(lines) > 3
    n_positives = data.relevant.sum()
    assert lines[0] == f"APSVMClassifier: True is positive, {n_positives} of 240 rows, and False negative"
    assert all("iter " in line and "gap" in line for line in lines[1:])
    assert logging.getLogger("apsvm").level == before
    # Nobody listens: it is shown.
    monkeypatch.setattr(logging.getLogger("apsvm"), "propagate", False)
    Classifier(verbose=1, C=100).fit(data.X, data.relevant)
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()[1].split()[:4]) == ("", ["train", "C=100", "iter", "1:"])
    assert not logging.getLogger("apsvm").handlers


def test_the_default_C(data):
    """Told from the features' scale, as by the command; another unit of the features changes nothing but w's."""
    rows = TrainingSet(Rows(data.X), Target(Labels(), data.relevant))
    for bound in ("hinge", "tight"):
        model = APSVMClassifier(scale="none", bound=bound, epsilon=1e-4).fit(data.X, data.relevant)
        assert pytest.approx(default_C(rows, make_loss("ap"), bound)) == model.C_
        again = clone(model).set_params(C=model.C_)
        assert again.fit(data.X, data.relevant).coef_ == pytest.approx(model.coef_)
        assert APSVMClassifier.from_model(model.to_model()).C == model.C_
    assert Unscaled("zero-one").fit(data.X, data.relevant).C_ > Unscaled().fit(data.X, data.relevant).C_


@over("make", [partial(APSVMClassifier, C=1), partial(APSVMRanker, C=1), APSVMClassifierCV, APSVMRankerCV])
def test_more_columns_than_memory_can_train_are_refused(make, data, monkeypatch):
    """A few values, declared two billion columns wide."""
    X = sp.csr_array(data.X)
    wide = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], 2**31 - 2))
    monkeypatch.setattr("apsvm._support.machine.memory", lambda: 1 << 34)
    with pytest.raises(ValueError, match=r"X has 2,147,483,646 columns, .* numpy.unique\(X.indices\)"):
        make().fit(wide, data.relevant)


# What a user reads.


@pytest.mark.parametrize(("y", "row"), [([0.0, 1.0, np.nan], 2), (np.array(["a", None, "b"], dtype=object), 1)])
def test_a_missing_label_is_refused(y, row):
    with pytest.raises(ValueError, match=f"row {row}"):
        APSVMClassifier().fit(np.eye(3), y)
