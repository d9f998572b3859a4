"""Estimators and the command line train the same and exchange models."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest
from over import over
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import average_precision_score

import apsvm
import apsvm.estimators
from apsvm import APSVMClassifier, APSVMRanker, load_model
from apsvm.cli import run

C = 30.0


def train(tmp_path, data, labels, *options, qid=False):
    """The model of ``apsvm train`` on these rows."""
    file, model = str(tmp_path / "rows.svm"), str(tmp_path / "cli.model")
    dump_svmlight_file(data.X, labels, file, zero_based=False, query_id=data.qid if qid else None)
    assert run(["train", "-q", "--threads", "1", "-C", f"{C:g}", *options, file, model]) == 0
    return load_model(model)


def read(tmp_path, data):
    """The rows as the file's text has them."""
    return apsvm.read_svmlight(str(tmp_path / "rows.svm"), dense=True).X


@over(
    ("options", "parameters"),
    [
        ([], {}),
        (["--oracle", "greedy", "--solver", "cutting-plane", "--qp", "active-set", "-e", "0.01"],
         {"oracle": "greedy", "solver": "cutting-plane", "qp": "active-set", "epsilon": 0.01}),
        (["--loss", "zero-one", "-B", "2"], {"loss": "zero-one", "intercept_scaling": 2.0}),
        (["--loss", "f1", "-B", "1"], {"loss": "f1", "intercept_scaling": 1}),
        (["--loss", "f1"], {"loss": "f1"}),
        (["--loss", "zero-one"], {"loss": "zero-one"}),
        (["--loss", "f(2)"], {"loss": "f(2)"}),
        (["--loss", "set-p@5"], {"loss": "set-p@5"}),
        (["--oracle", "appx", "--keep-easy", "80", "-B", "1"], {"oracle": "appx", "keep_easy": 80}),
        (["--bound", "tight"], {"bound": "tight"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_classifier_trains_as_the_command_does(options, parameters, tmp_path, data):
    theirs = train(tmp_path, data, np.where(data.relevant, 1, -1), *options)
    X = read(tmp_path, data)
    model = APSVMClassifier(C=C, **parameters).fit(X, data.relevant)
    np.testing.assert_array_equal(model.coef_[0], theirs.coef)
    assert np.abs(theirs.coef).max() > 0.1
    header = theirs.header
    assert model.to_model().intercept == theirs.intercept
    assert model.intercept_[0] == theirs.intercept - header.threshold.value
    np.testing.assert_array_equal(model.decision_function(X), theirs.score(X) - header.threshold.value)
    assert model.certificate_ == header.certificate
    assert model.certificate_.primal > 0
    assert model.n_iter_ == header.iterations
    mine = model.to_model().header
    for field in ("family", "loss", "metric", "C", "settings", "certificate", "state", "as_asked", "threshold"):
        assert getattr(mine, field) == getattr(header, field), field
    assert mine.details["oracle"] == header.details["oracle"]
    assert (mine.labels.kind, mine.labels.positive) == (header.labels.kind, header.labels.positive)
    assert mine.features.bias == header.features.bias


@pytest.mark.parametrize("loss", ["ndcg", "ndcg@5", "ap"])
def test_ranker_trains_as_the_command_does(loss, tmp_path, data, rng):
    weights = rng.integers(0, 5, size=7) / 2
    weights[0] = 1
    (tmp_path / "weights").write_text("".join(f"{q} {weight}\n" for q, weight in enumerate(weights)))
    relevant_from = 2 if loss == "ap" else None
    options = ["--loss", loss, "--query-weights", str(tmp_path / "weights")]
    options += ["--relevant-from", "2"] if relevant_from else []
    theirs = train(tmp_path, data, data.y, *options, qid=True)
    model = APSVMRanker(loss, C=C, relevant_from=relevant_from)
    model.fit(read(tmp_path, data), data.y, qid=data.qid, sample_weight=weights[data.qid])
    np.testing.assert_array_equal(model.coef_, theirs.coef)
    assert model.certificate_.primal == theirs.header.certificate.primal
    assert model.n_queries_ == theirs.header.data.queries
    mine = model.to_model().header
    assert (mine.labels, mine.metric) == (theirs.header.labels, theirs.header.metric)


def test_the_command_s_model_as_an_estimator(tmp_path, data):
    theirs = train(tmp_path, data, np.where(data.relevant, 1, 0), "--loss", "zero-one", "-B", "1", "-e", "0.01")
    X = read(tmp_path, data)
    model = APSVMClassifier.from_model(theirs)
    np.testing.assert_array_equal(model.decision_function(X), theirs.score(X))
    assert model.classes_.tolist() == [0, 1]
    same = APSVMClassifier("zero-one", C=C, epsilon=0.01, intercept_scaling=1, scale="standard", features="linear")
    assert model.get_params() == same.get_params()
    assert model.score(X, data.relevant.astype(int)) > 0.7
    assert model.certificate_ == theirs.header.certificate
    again = APSVMClassifier.from_model(theirs).fit(X, data.relevant)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.intercept_ == model.intercept_
    ranker = APSVMRanker.from_model(theirs)
    np.testing.assert_array_equal(ranker.predict(X), theirs.score(X))


def test_the_estimator_s_model_for_the_command(tmp_path, data, capsysbinary):
    file, path, out = tmp_path / "rows.svm", str(tmp_path / "own.model"), tmp_path / "scores"
    labels = np.where(data.relevant, 2, 1)
    dump_svmlight_file(data.X, labels, str(file), zero_based=False)
    X = read(tmp_path, data)
    model = APSVMClassifier(C=C, bound="hinge").fit(X, labels)
    model.to_model().save(path)
    assert run(["predict", str(file), path, str(out)]) == 0
    line = model.to_model().header.threshold.value
    np.testing.assert_allclose(np.loadtxt(out) - line, model.decision_function(X), rtol=1e-9)  # sparse, and dense
    assert run(["eval", str(file), "--model", path, "--json"]) == 0
    judge = average_precision_score(labels == 2, model.decision_function(X))
    assert f'"AP": {judge:.12f}'[:18].encode() in capsysbinary.readouterr().out
    assert load_model(path).header.estimator == "APSVMClassifier"


@pytest.mark.parametrize("labels", [["ham", "spam"], [False, True], [0, 1], [-1.0, 1.0], [3, 8]], ids=str)
def test_round_trip_of_a_classifier(labels, tmp_path, data):
    y = np.array(labels)[data.relevant.astype(int)]
    model = APSVMClassifier("auc", C=C, scale="standard", features="linear", fit_intercept=False, random_state=3)
    model.fit(data.X, y)
    model.to_model().save(tmp_path / "model")
    back = APSVMClassifier.from_model(load_model(tmp_path / "model"))
    np.testing.assert_array_equal(back.predict(data.X), model.predict(data.X))
    assert back.classes_.dtype == model.classes_.dtype
    assert back.certificate_ == model.certificate_
    assert (back.n_iter_, back.n_queries_) == (model.n_iter_, 1)
    assert back.to_model().to_bytes() == model.to_model().to_bytes()
    header = load_model(tmp_path / "model").header
    assert header.seed == 3
    assert header.estimator == "APSVMClassifier"
    numbers = all(isinstance(label, int | float) for label in labels)
    assert (header.labels.positive, header.labels.names) == ((labels[1], None) if numbers else (None, tuple(labels)))
    assert back.get_params() == model.get_params()


class Top:
    """D = 1, 1/2, 0, 0, …; u = 1 for the first positive."""

    def weights(self, n_pos):
        return np.arange(n_pos) == 0

    def discount(self, n):
        return np.maximum(0.0, 1.0 - 0.5 * np.arange(n))


#: A module that says so when it is imported.
MODULE = """
from pathlib import Path

Path(__file__).with_name("imported").touch()


class Top:
    metric = {metric!r}

    def weights(self, n_pos):
        return [1.0] + [0.0] * (n_pos - 1)

    def discount(self, n):
        return [1.0, 0.5] + [0.0] * (n - 2) if n > 1 else [1.0]
"""


def test_a_model_imports_nothing(tmp_path, data, monkeypatch):
    """A header may name a module: it is a name, in ``from_model``, in scores, in a fit, and in clones and pickles."""
    monkeypatch.chdir(tmp_path)
    for metric in ("P@3", None):
        name = f"named_by_a_header_{metric is None}"
        (tmp_path / f"{name}.py").write_text(MODULE.format(metric=metric))
        fitted = APSVMClassifier().fit(data.X, data.relevant)
        model = fitted.to_model()
        model.with_header(replace(model.header, loss=f"{name}:Top", metric=metric)).save("model")
        back = APSVMClassifier.from_model(load_model("model"))
        for model in (back, pickle.loads(pickle.dumps(back))):
            np.testing.assert_array_equal(model.decision_function(data.X), fitted.decision_function(data.X))
            assert model.loss is None
        assert back.score(data.X, data.relevant) == fitted.score(data.X, data.relevant)
        for model in (back, clone(back)):
            with pytest.raises(ValueError, match=r"from_model\(model, loss=…\)"):
                model.fit(data.X, data.relevant)
        assert not (tmp_path / "imported").exists()
        assert name not in sys.modules
    # The caller's word is another matter.
    own = APSVMClassifier.from_model(load_model("model"), loss=f"{name}:Top")
    own.set_params(C=1e4).fit(data.X, data.relevant)
    assert (tmp_path / "imported").exists()
    assert own.to_model().header.loss == f"{name}:Top"


@pytest.mark.slow
def test_the_command_judges_a_ranker_as_it_scored(tmp_path, data, capsysbinary):
    """The header has the meaning of labels, also of grades above 0 against others."""
    file, path = str(tmp_path / "rows.svm"), str(tmp_path / "model")
    dump_svmlight_file(data.X, data.y, file, zero_based=False, query_id=data.qid)
    X = apsvm.read_svmlight(file, dense=True).X
    for model in (
        APSVMRanker("ap"),
        APSVMRanker("ap", relevant_from=2),
        APSVMRanker("ndcg"),
        apsvm.WARPRanker(random_state=0),
        apsvm.RankNCG(),
    ):
        model.fit(X, data.y, qid=data.qid)
        model.to_model().save(path)
        metric = model.to_model().header.metric
        assert run(["eval", file, "--model", path, "--json", "-m", metric]) == 0
        value = json.loads(capsysbinary.readouterr().out)["metrics"][metric]
        model.set_params(metric=metric)
        assert value == pytest.approx(model.score(X, data.y, qid=data.qid), rel=1e-12)
        assert 0.2 < value < 1


def test_round_trip_of_a_ranker_with_names(tmp_path, data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=list("abcdef"))
    model = APSVMRanker("mrr", C=C, relevant_from=2.0).fit(frame, data.y, qid=data.qid)
    model.to_model().save(tmp_path / "model")
    back = APSVMRanker.from_model(load_model(tmp_path / "model"))
    np.testing.assert_array_equal(back.predict(frame), model.predict(frame))
    assert back.relevant_from == 2
    with pytest.raises(ValueError, match="feature names"):
        back.predict(frame.rename(columns={"a": "z"}))
