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
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import GridSearchCV

from apsvm import APSVMClassifier, APSVMClassifierCV, APSVMRanker, APSVMRankerCV, WeakRankerWarning
from apsvm.data.labels import Target
from apsvm.data.rows import Rows
from apsvm.estimators.kinds import break_even_intercept
from apsvm.losses import make_loss
from apsvm.models.header import Labels
from apsvm.oracles import make_oracle
from apsvm.risk import make_risk
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


def test_tight_bound_and_queries_left_out(data):
    qid = np.where(data.relevant & (data.qid == 0), 8, data.qid)  # two queries of one class each
    hinge = Classifier(C=100).fit(data.X, data.relevant, qid=qid)
    tight = APSVMClassifier(C=100, bound="tight").fit(data.X, data.relevant, qid=qid)
    assert (tight.n_queries_, tight.n_queries_skipped_) == (6, 2)
    assert hinge.hinge_objective_ is None
    assert hinge.certificate_.dual <= tight.hinge_objective_ <= hinge.certificate_.primal + 0.03 * 100
    assert tight.certificate_.primal < tight.hinge_objective_
    back = APSVMClassifier.from_model(tight.to_model())
    assert (back.bound, back.hinge_objective_, back.n_queries_skipped_) == ("tight", tight.hinge_objective_, 2)


def test_what_appx_cannot(data):
    with pytest.raises(ValueError, match="warm_start does not apply"):
        Classifier(oracle="appx", warm_start=True).fit(data.X, data.relevant)
    assert not Classifier(oracle="appx").fit(data.X, data.relevant, qid=data.qid).exact_


@pytest.mark.parametrize("bound", ["auto", "hinge"])
@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"time_limit": 0}])
def test_stopped_early(limit, bound, data):
    """Before the first step: the model is w = 0, and says that too."""
    with (
        pytest.warns(ConvergenceWarning, match=r"gap .* > \d+ asked for; raise max_iter"),
        pytest.warns(WeakRankerWarning, match="ranks nothing"),
    ):
        model = APSVMClassifier(C=1000, bound=bound, **limit).fit(data.X, data.relevant)
    assert not model.coef_.any()
    assert not model.certificate_.reached
    assert model.n_iter_ == 1


@pytest.mark.parametrize("oracle", ["auto", "greedy"])
def test_the_constant_is_where_precision_equals_recall(oracle, data):
    model = Unscaled(C=100, oracle=oracle).fit(data.X, data.relevant, qid=data.qid)
    predicted = model.predict(data.X)
    assert predicted.sum() == data.relevant.sum()
    assert precision_score(data.relevant, predicted) == recall_score(data.relevant, predicted) < 1
    plain = Unscaled(C=100, oracle=oracle, fit_intercept=False).fit(data.X, data.relevant, qid=data.qid)
    np.testing.assert_array_equal(plain.coef_, model.coef_)
    assert plain.intercept_ == [0.0]
    assert UnscaledRanker("ap", C=100).fit(data.X, data.relevant).intercept_ == 0.0


def test_break_even_intercept(rng):
    for _ in range(200):
        scores = rng.integers(-3, 4, size=rng.integers(2, 9)) / 4
        relevant = np.zeros(scores.size, dtype=bool)
        relevant[: rng.integers(1, scores.size)] = True
        shifted = scores + break_even_intercept(scores, relevant)
        wanted = int(relevant.sum())
        assert (shifted > 0).sum() <= wanted <= (shifted >= 0).sum()
        if np.unique(scores).size == scores.size:
            assert (shifted > 0).sum() == wanted


@pytest.mark.parametrize("loss", ["zero-one", "f1"])
def test_a_level_that_the_loss_reads_is_trained(loss, data):
    X = data.X
    model = Unscaled(loss, C=1000, intercept_scaling=5).fit(X, data.relevant)
    without = Unscaled(loss, C=1000, fit_intercept=False).fit(X, data.relevant)
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


def test_any_weights_for_the_rows_of_zero_one(data, rng):
    weights = rng.random(data.y.size)
    model = Unscaled("zero-one", C=20, epsilon=1e-6, fit_intercept=False)
    model.fit(data.X, data.relevant, sample_weight=weights)
    margins = np.where(data.relevant, 1, -1) * model.decision_function(data.X)
    hinge = np.average(np.maximum(0, 1 - margins), weights=weights)
    assert model.certificate_.primal == pytest.approx(0.5 * (model.coef_**2).sum() + 20 * hinge, rel=1e-12)
    scaled = clone(model).fit(data.X, data.relevant, sample_weight=7 * weights, qid=data.qid)
    assert scaled.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-5)


@pytest.mark.parametrize(
    "labels", [(False, True), (-1, 1), (3, 8), (0.0, 1.0), ("ham", "spam"), (np.str_("no"), np.str_("yes"))], ids=str
)
def test_two_values_of_any_type(labels, data):
    judge = Classifier(C=10).fit(data.X, data.relevant)
    for kind in (None, object):
        y = np.array(labels, dtype=kind)[data.relevant.astype(int)]
        model = Classifier(C=10).fit(data.X, y.tolist())
        np.testing.assert_array_equal(model.coef_, judge.coef_)
        assert model.classes_.tolist() == list(labels)
        np.testing.assert_array_equal(model.predict(data.X) == labels[1], judge.predict(data.X))
        assert model.score(data.X, y) == judge.score(data.X, data.relevant)


def test_labels_that_do_not_fit(data):
    with pytest.raises(
        ValueError, match=r"Only binary .* multiclass\. .* y == label, .*OneVsRestClassifier; for grades there is"
    ):
        Classifier("ndcg").fit(data.X, data.y)
    with pytest.raises(ValueError, match="Unknown label type"):
        Classifier().fit(data.X, data.X[:, 0])
    with pytest.raises(ValueError, match="one class"):
        Classifier().fit(data.X, np.zeros(data.y.size))
    with pytest.raises(ValueError, match=r"grades above 0, and others; found 240 of 240 relevant. relevant_from says"):
        Ranker("ap").fit(data.X, data.y + 1)
    with pytest.raises(ValueError, match="grades of 9 and above"):
        Ranker("ndcg", relevant_from=9).fit(data.X, data.y)
    with pytest.raises(ValueError, match="no query has both"):
        Classifier().fit(data.X, data.relevant, qid=np.arange(data.y.size))
    with pytest.raises(ValueError, match="could not convert"):
        Ranker().fit(data.X, np.where(data.relevant, "good", "bad"))


def test_grades_matter_to_losses_that_take_them(data):
    graded = Ranker("ndcg", C=10).fit(data.X, data.y)
    cut = Ranker("ndcg", C=10, relevant_from=1).fit(data.X, data.y)
    binary = Ranker("ndcg", C=10).fit(data.X, data.y > 0)
    np.testing.assert_array_equal(cut.coef_, binary.coef_)
    assert np.abs(graded.coef_ - cut.coef_).max() > 1e-3
    np.testing.assert_array_equal(Ranker("ap").fit(data.X, data.y).coef_, Ranker("ap").fit(data.X, data.y > 0).coef_)


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
    ("parameters", "message"),
    [
        ({"C": 0}, "expected C to be a finite number above 0, found 0"),
        ({"C": "large"}, "C is a number > 0 or 'auto', or a multiple of that such as '10x', found 'large'"),
        ({"C": np.nan}, "above 0, found nan"),
        ({"C": np.inf}, "above 0, found inf"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"max_iter": 0}, "expected max_iter to be a finite number of at least 1, found 0"),
        ({"time_limit": -1}, "time_limit"),
        ({"keep_easy": 101}, "keep_easy"),
        ({"intercept_scaling": 0}, "intercept_scaling"),
        ({"intercept_scaling": "large"}, "intercept_scaling is a number > 0 or 'auto', found 'large'"),
        ({"loss": "hat"}, "unknown loss 'hat'"),
        ({"oracle": "pythia"}, "oracle is one of auto, .*, found 'pythia'"),
        ({"oracle": "search", "loss": "ndcg"}, "oracle='search' cannot serve loss='ndcg': choose auto"),
        ({"oracle": "appx", "loss": "f1"}, "cannot serve|serves losses"),
        ({"bound": "tight", "loss": "f1"}, "bound='tight' is for losses over rankings, and f1 is none"),
        ({"random_state": "x"}, "'x' cannot be used to seed"),
        ({"bound": "loose"}, "bound is one of auto, hinge, tight, found 'loose'"),
        ({"solver": "hope"}, "solver is one of line-search, cutting-plane, found 'hope'"),
        ({"qp": "hope"}, "qp is one of auto, .*, found 'hope'"),
    ],
)
def test_parameters_that_do_not_fit(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        Classifier(**parameters).fit(data.X, data.relevant)


@over("parameters", [{"fit_intercept": "no"}, {"warm_start": "no"}, {"n_jobs": "2"}])
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


@pytest.mark.slow
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library, data):
    frames = pytest.importorskip(library)
    names = list("abcdef")
    frame = frames.DataFrame({name: data.X[:, at] for at, name in enumerate(names)})
    y, qid, weights = (frames.Series(values) for values in (data.y, data.qid, np.ones(data.y.size)))
    model = Ranker(C=10).fit(frame, y, qid=qid, sample_weight=weights)
    judge = Ranker(C=10).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(model.coef_, judge.coef_)
    assert model.feature_names_in_.tolist() == names
    assert model.score(frame, y, qid=qid) == judge.score(data.X, data.y, qid=data.qid)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[names[::-1]])
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(data.X)
    strings = frames.Series(np.where(data.relevant, "yes", "no").tolist())
    assert Classifier().fit(frame, strings).predict(frame).tolist().count("yes") == data.relevant.sum()


@pytest.mark.slow
def test_threads_change_nothing(rng):
    X = rng.normal(size=(60_000, 12))
    relevant, qid = X[:, 0] + rng.normal(size=60_000) > 1.5, rng.integers(0, 300, size=60_000)
    one, two = (APSVMClassifier(C=100, n_jobs=n).fit(X, relevant, qid=qid) for n in (None, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


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


@pytest.mark.parametrize("loss", ["ap", "zero-one"])
def test_warm_start(loss, data):
    model = Classifier(loss, C=200, epsilon=1e-4, warm_start=True).fit(data.X, data.relevant)
    first = model.n_iter_
    model.fit(data.X, data.relevant)
    assert model.n_iter_ < first
    assert model.certificate_.reached
    with pytest.raises(ValueError, match="of 6 features, X has 5"):
        model.fit(data.X[:, :5], data.relevant)


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
    assert all("iteration" in line and "gap" in line for line in lines[1:])
    assert logging.getLogger("apsvm").level == before
    # Nobody listens: it is shown.
    monkeypatch.setattr(logging.getLogger("apsvm"), "propagate", False)
    Classifier(verbose=1, C=100).fit(data.X, data.relevant)
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()[1].split()[:4]) == ("", ["train", "C=100", "iteration", "1:"])
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


def test_multiples_of_the_default_C(data):
    """Of a bound's own default: a bound that is chosen comes with a C of its own."""
    hinge = Classifier()
    default = clone(hinge).fit(data.X, data.relevant).C_
    assert pytest.approx(10 * default) == clone(hinge).set_params(C="10x").fit(data.X, data.relevant).C_
    model = clone(Ranker(C="10x", relevant_from=2))
    assert model.get_params()["C"] == "10x"
    by_query = model.fit(data.X, data.y, qid=data.qid).C_
    assert by_query == pytest.approx(10 * model.set_params(C="auto").fit(data.X, data.y, qid=data.qid).C_)
    search = GridSearchCV(hinge, {"C": ["0.001x", "auto", "10x", 30]}, cv=3, error_score="raise")
    search.fit(data.X, data.relevant)
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0
    header = clone(search.best_estimator_).set_params(C="10x").fit(data.X, data.relevant).to_model().header
    assert header.settings["C"] == "10x"
    assert pytest.approx(10 * default) == header.C


def test_a_ranker_that_is_hardly_good_for_anything_warns(data):
    """As the command says it; the model keeps it."""
    with pytest.warns(WeakRankerWarning, match="APSVMClassifier: this model ranks nothing") as warned:
        model = Classifier("p@1").fit(data.X[:, 2:3], data.relevant)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert not model.coef_.any()
    (caution,) = model.to_model().header.cautions  # the command's words, which the warning has in Python's
    assert str(warned[0].message) == "APSVMClassifier: " + caution.replace(
        "--bound auto or --bound tight, another --loss", "bound='auto' or bound='tight', another loss"
    )
    with pytest.warns(WeakRankerWarning, match="ranks nothing"):
        model = Classifier("p@1", threshold="f1").fit(data.X[:, 2:3], data.relevant)
    assert model.to_model().header.threshold.rule == "break-even"  # f1 is none of a ranker that ranks nothing
    middle = np.isin(np.argsort(np.argsort(data.X[:, 2])), range(124, 130))  # the feature hardly finds them
    with pytest.warns(WeakRankerWarning, match=r"the bound on the loss, as a share .* \d+\.\d%: this model may rank"):
        model = Classifier(C=1e-4, epsilon=1e-7).fit(data.X[:, 2:3], middle)
    assert model.coef_.any()
    assert APSVMClassifier().fit(data.X, data.relevant).to_model().header.cautions == ()


@over("make", [partial(APSVMClassifier, C=1), partial(APSVMRanker, C=1), APSVMClassifierCV, APSVMRankerCV])
def test_more_columns_than_memory_can_train_are_refused(make, data, monkeypatch):
    """Of a few values declared two billion columns wide."""
    X = sp.csr_array(data.X)
    wide = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], 2**31 - 2))
    monkeypatch.setattr("apsvm._support.machine.memory", lambda: 1 << 34)
    with pytest.raises(ValueError, match=r"X has 2,147,483,646 columns, .* numpy.unique\(X.indices\)"):
        make().fit(wide, data.relevant)
