"""Estimators that nobody wrote: a trainer's declaration is enough."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sklearn
from over import over
from perceptron import GradedPerceptron, Perceptron, PerceptronSettings
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import apsvm
from apsvm import APSVMClassifier, APSVMRanker, RankNCG, WARPRanker, load_model
from apsvm.cli import run
from apsvm.estimators import DirectLossClassifier, DirectLossRanker, estimator_for
from apsvm.losses import LOSSES
from apsvm.trainers import TRAINERS, known_losses
from apsvm.trainers.nets.trainer import NetTrainer
from apsvm.trainers.settings import declared


@pytest.fixture
def registered(monkeypatch):
    """The two trainers of this folder, as lines of the registry."""
    for trainer in (Perceptron, GradedPerceptron):
        monkeypatch.setitem(TRAINERS._places, trainer.family, f"{trainer.__module__}:{trainer.__name__}")


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["perceptron", "graded-perceptron"])
@pytest.mark.filterwarnings("ignore")  # the checks try what warns
def test_check_estimator_of_a_newcomer(loss, registered, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # or a check is skipped
    estimator = estimator_for(loss)()
    done = check_estimator(estimator)
    assert {check["check_name"] for check in done if check["status"] != "passed"} == set()
    assert len(done) >= (55 if is_classifier(estimator) else 40)


def test_parameters_are_the_settings(registered):
    made = estimator_for("perceptron")
    assert made is estimator_for("Perceptron ")
    assert made.__name__ == "PerceptronClassifier"
    names = list(inspect.signature(made).parameters)
    of_settings = [name for name in declared(PerceptronSettings) if name != "notes"]
    assert names[: 1 + len(of_settings)] == ["loss", *of_settings]
    assert {"time_limit", "n_jobs", "random_state", "warm_start", "fit_intercept"} < set(names)
    assert "relevant_from" in inspect.signature(estimator_for("graded-perceptron")).parameters
    assert made().get_params()["passes"] == PerceptronSettings().passes
    assert repr(made(margin=2.0)) == "PerceptronClassifier(margin=2.0)"
    assert "within margin of the others" in made.__doc__
    assert repr(clone(made(passes=3))) == "PerceptronClassifier(passes=3)"
    with pytest.raises(TypeError, match="has no parameter 'pases': nearest is 'passes'"):
        made(pases=3)
    with pytest.raises(TypeError, match="positional"):
        made("perceptron", 3)


def test_a_newcomer_in_scikit_learn(registered, data):
    made = estimator_for("perceptron")
    model = made(passes=40).fit(data.X, np.where(data.relevant, "yes", "no"))
    assert model.classes_.tolist() == ["no", "yes"]
    scores = model.decision_function(data.X)
    assert model.score(data.X, np.where(data.relevant, "yes", "no")) == pytest.approx(
        roc_auc_score(data.relevant, scores)
    )
    assert roc_auc_score(data.relevant, scores) > 0.8
    assert (model.predict(data.X) == "yes").sum() == data.relevant.sum()
    assert made(fit_intercept=False, scale="none").fit(data.X, data.relevant).intercept_ == [0.0]
    search = GridSearchCV(make_pipeline(StandardScaler(), made()), {"perceptronclassifier__passes": [1, 30]}, cv=3)
    search.fit(data.X, data.relevant)
    assert search.best_score_ > 0.75
    CalibratedClassifierCV(made(), cv=3).fit(data.X, data.relevant)
    back = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(back.predict(data.X), search.predict(data.X))
    assert type(back[-1]) is made
    with pytest.raises(TypeError, match="qid"):
        model.fit(data.X, data.relevant, qid=data.qid)


@pytest.mark.slow
def test_another_process_reads_the_pickle(data):
    made = estimator_for("auc")
    model = made(bound="hinge", C=10).fit(data.X, data.relevant)
    code = "import pickle, sys; print(repr(pickle.load(sys.stdin.buffer)))"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(model), capture_output=True, check=True)
    assert done.stdout.decode().strip() == repr(model)


class Mine(DirectLossClassifier):
    """A class derived from a made one."""


def test_pickles_of_derived_classes(data):
    model = Mine(epochs=1).fit(data.X, data.relevant)
    back = pickle.loads(pickle.dumps(model))
    assert type(back) is Mine
    np.testing.assert_array_equal(back.coef_, model.coef_)


def test_parameters_that_do_not_fit(registered, data):
    made = estimator_for("perceptron")
    for parameters, message in (
        ({"passes": 0}, "expected passes to be a finite number of at least 1, found 0"),
        ({"margin": np.nan}, "expected margin to be a finite number of at least 0, found nan"),
        ({"average": "some"}, "average is one of all, last, found 'some'"),
        ({"average": "last", "margin": 0.0}, "average='last' needs a margin above 0"),
        ({"loss": "ap"}, "unknown loss 'ap': choose from perceptron"),
        ({"loss": "perceptron-auk"}, "did you mean 'perceptron-auc'"),
        ({"time_limit": -1}, "time_limit"),
    ):
        with pytest.raises(ValueError, match=message):
            made(**parameters).fit(data.X, data.relevant)
    for parameters in ({"passes": 2.5}, {"centred": "no"}, {"margin": None}):
        with pytest.raises(TypeError, match=next(iter(parameters))):
            made(**parameters).fit(data.X, data.relevant)
    with pytest.raises(ValueError, match="too large to be centred"):
        made().fit(data.X * 1e200, data.relevant)


def test_a_newcomer_that_takes_no_scaled_rows(registered, data, monkeypatch):
    refusing = Perceptron.capabilities.refusing(scale="it reads the rows as they are")
    monkeypatch.setattr(Perceptron, "capabilities", refusing)
    made = estimator_for("perceptron")
    assert made().fit(data.X, data.relevant).to_model().header.features.scale == "none"
    with pytest.raises(ValueError, match="scale does not apply: it reads the rows as they are"):
        made(scale="l2").fit(data.X, data.relevant)


def test_a_newcomer_s_models(registered, data, tmp_path):
    """To a file, from it, and to the command and from it."""
    made = estimator_for("perceptron")
    model = made(passes=7, margin=0.5, centred=False, scale="standard", random_state=3).fit(data.X, data.relevant)
    model.to_model().save(tmp_path / "model")
    back = made.from_model(load_model(tmp_path / "model"))
    assert back.get_params() == model.get_params()
    np.testing.assert_array_equal(back.predict(data.X), model.predict(data.X))
    assert back.n_iter_ == 7
    assert back.to_model().to_bytes() == model.to_model().to_bytes()
    with pytest.raises(ValueError, match="loss 'perceptron' is none of APSVMClassifier's"):
        APSVMClassifier.from_model(model.to_model())
    ranker = estimator_for("graded-perceptron")
    graded = ranker().fit(data.X, data.y, qid=data.qid)
    assert graded.n_queries_ == 7  # counted for a trainer that does not say
    judge = RankNCG().fit(data.X, data.y)
    judge.coef_ = graded.coef_
    one_list = np.zeros(data.y.size)
    assert graded.score(data.X, data.y, qid=one_list) == pytest.approx(judge.score(data.X, data.y))
    with pytest.raises(ValueError, match="fitted with qid, 7 queries"):
        graded.score(data.X, data.y)


# What there is already.


@over(
    ("name", "written"),
    [
        ("structured-svm", APSVMClassifier),
        ("ap", APSVMClassifier),
        ("ndcg", APSVMRanker),
        ("wmw", RankNCG),
        ("rank-ncg", RankNCG),
        ("warp", WARPRanker),
        ("direct-loss", DirectLossClassifier),
        ("direct(ap)", DirectLossClassifier),
        ("direct(ndcg)", DirectLossRanker),
    ],
)
def test_of_a_family_or_a_loss(name, written):
    assert estimator_for(name) is written


WRITTEN = (APSVMClassifier, APSVMRanker, RankNCG, WARPRanker)


@pytest.mark.slow
def test_every_loss_has_one(data):
    """By any of its names; it trains, and as that loss, to something that ranks: a warning would fail the test."""
    examples = {"direct(loss)": "direct(auc)", "ndcg(gain)": "ndcg(linear)", "ndcg@k": "ndcg@5"}
    for form in set(known_losses()) - set(NetTrainer.losses):  # those are of tests/torch_extra
        loss = examples.get(form) or (LOSSES[form]().name if form in LOSSES else form)
        estimator = estimator_for(loss)
        y = data.relevant if is_classifier(estimator()) else data.y
        # One C to be tried with each bound, and not seven.
        more = {"C": 1000.0} if "bound" in estimator().get_params() else {}
        model = estimator(random_state=0, **more).fit(data.X, y)
        assert model.to_model().header.loss == loss
        assert model.to_model().header.estimator == estimator.__name__
        written = next((kind for kind in WRITTEN if issubclass(estimator, kind)), type(model))
        named = {"loss": loss} if "loss" in model.get_params() else {}
        np.testing.assert_array_equal(model.coef_, written(**named, **more, random_state=0).fit(data.X, y).coef_)
        assert model.coef_.any()
        assert 0.1 < model.score(data.X, y) <= 1
        back = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(back.decision_function(data.X), model.decision_function(data.X))


def test_names_tell_the_loss():
    names = {name: repr(estimator_for(name)()) for name in ("ap", "auc", "direct(ap)", "direct(ndcg)", "direct(auc)")}
    assert list(names.values()) == [
        "APSVMClassifier()",
        "APSVMClassifier_auc()",
        "DirectLossClassifier()",
        "DirectLossRanker()",
        "DirectLossClassifier_direct_auc()",
    ]


def test_unknown_names():
    with pytest.raises(ValueError, match="unknown loss 'hat'"):
        estimator_for("hat")
    with pytest.raises(ValueError, match="unknown loss 'hat'"):
        estimator_for("direct(hat)")


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (["--loss", "direct(ap)"], {}),
        (["--loss", "direct(auc)", "--update", "negative", "--l2", "0.5", "--learning-rate", "0.1"],
         {"loss": "direct(auc)", "update": "negative", "l2": 0.5, "learning_rate": 0.1}),
        (["--loss", "direct(ndcg@5)", "--perturbation", "0.1", "--batch-rows", "64"],
         {"loss": "direct(ndcg@5)", "perturbation": 0.1, "step_rows": 64}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_direct_loss_as_the_command(options, parameters, tmp_path, data):
    file, path = str(tmp_path / "rows.svm"), str(tmp_path / "model")
    graded = "ndcg" in parameters.get("loss", "")
    labels = data.y if graded else np.where(data.relevant, 1, -1)
    dump_svmlight_file(data.X, labels, file, zero_based=False, query_id=data.qid)
    command = ["train", "-q", "--threads", "1", "--seed", "3", "--epochs", "4"]
    assert run([*command, *options, file, path]) == 0
    theirs = load_model(path)
    X = apsvm.read_svmlight(file).X
    kind = DirectLossRanker if graded else DirectLossClassifier
    model = kind(random_state=3, epochs=4, **parameters).fit(X, labels, qid=data.qid)
    np.testing.assert_array_equal(model.coef_.ravel(), theirs.coef)
    assert np.abs(model.coef_).max() > 0.01
    mine = model.to_model().header
    for field in ("family", "loss", "metric", "labels", "settings", "epochs", "seed", "state"):
        assert getattr(mine, field) == getattr(theirs.header, field), field
    back = kind.from_model(theirs)
    np.testing.assert_array_equal(back.decision_function(X), theirs.score(X))
    assert back.score(X, labels, qid=data.qid) == model.score(X, labels, qid=data.qid)
    np.testing.assert_array_equal(back.fit(X, labels, qid=data.qid).coef_, model.coef_)


def test_direct_loss_in_scikit_learn(data):
    model = DirectLossClassifier(random_state=0, epochs=5).fit(data.X, data.relevant)
    scores = model.decision_function(data.X)
    assert model.score(data.X, data.relevant) == pytest.approx(average_precision_score(data.relevant, scores))
    assert cross_val_score(model, data.X, data.relevant, cv=3).mean() > data.relevant.mean() + 0.2
    assert (model.predict(data.X)).sum() == data.relevant.sum()
    again = DirectLossClassifier(random_state=0, epochs=1, warm_start=True).fit(data.X, data.relevant)
    first = again.coef_.copy()
    again.set_params(learning_rate=1e-12).fit(data.X, data.relevant)
    np.testing.assert_allclose(again.coef_ / np.linalg.norm(again.coef_), first / np.linalg.norm(first), atol=1e-6)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        DirectLossClassifier(time_limit=0).fit(data.X, data.relevant)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            DirectLossRanker(random_state=0, epochs=3), {"perturbation": [0.01, 1.0]}, cv=GroupKFold(3)
        )
        search.fit(data.X, data.y, qid=data.qid, groups=data.qid)
    assert search.best_estimator_.n_queries_ == 7
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0
