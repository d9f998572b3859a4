"""The files that version 0.1.0 wrote are still read, and their scores are those of then, to the last bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from apsvm import (
    APSVMClassifier,
    APSVMRanker,
    LinearRanker,
    RankerSet,
    RankNCG,
    WARPRanker,
    load_any_model,
    load_model,
    read_svmlight,
)
from apsvm.cli import run

FOLDER = Path(__file__).parents[1] / "models_0_1_0"
MODELS = json.loads((FOLDER / "models.json").read_text())
#: Their float32 scores are sums in an order that the machine's BLAS chooses.
OF_ITEMS = {"warp_users"}
LINEAR = sorted(MODELS.keys() - OF_ITEMS)
ESTIMATORS = {
    "classifier": APSVMClassifier,
    "classifier_numbers": APSVMClassifier,
    "ranker": APSVMRanker,
    "ranker_relevant_from": APSVMRanker,
    "rank_ncg": RankNCG,
    "rank_ncg_classes": RankNCG,
    "warp_ranker": WARPRanker,
}


def rows(name):
    return read_svmlight(FOLDER / MODELS[name]["data"], zero_based=(name == "zero_based"))


@pytest.fixture
def printed(capfd):
    """printed(argument, …) → what the command prints on standard output; it ends with code 0."""

    def call(*arguments):
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert code == 0, err
        return out

    return call


def test_every_file_is_described():
    assert sorted(path.stem for path in FOLDER.glob("*.model")) == sorted(MODELS)


@pytest.mark.parametrize("name", LINEAR)
def test_scores_are_those_of_then(name):
    model = load_any_model(FOLDER / f"{name}.model")
    assert isinstance(model, RankerSet if name.startswith("one_vs_rest") else LinearRanker)
    X = rows(name).X
    expected = np.array(MODELS[name]["scores"])
    assert np.ptp(expected, axis=0).min() > 0.0
    np.testing.assert_array_equal(model.score(X), expected)


@pytest.mark.parametrize("name", LINEAR)
def test_predict_prints_the_scores(name, printed):
    lines = printed("predict", FOLDER / MODELS[name]["data"], FOLDER / f"{name}.model").splitlines()
    scores = [[float(number) for number in line.split("\t")] for line in lines]
    np.testing.assert_array_equal(np.squeeze(scores), MODELS[name]["scores"])


@pytest.mark.parametrize("name", sorted(OF_ITEMS))
def test_predict_lists_the_items(name, printed):
    def items(line):
        return [pair.split(":")[0] for pair in line.split()]

    def scores(line):
        return [float(pair.split(":")[1]) for pair in line.split()]

    lines = printed("predict", FOLDER / MODELS[name]["data"], FOLDER / f"{name}.model").splitlines()
    for line, expected in zip(lines, MODELS[name]["scores"], strict=True):
        assert items(line) == items(expected)
        assert scores(line) == pytest.approx(scores(expected), rel=1e-5)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_eval_reports_the_metric_of_then(name, printed):
    expected = MODELS[name]
    data, model = FOLDER / expected["data"], FOLDER / f"{name}.model"
    reported = json.loads(printed("eval", data, "--model", model, "--json", *expected["eval_options"]))
    assert reported["metrics"]["AP"] == pytest.approx(expected["AP"], rel=1e-12)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_info_describes_it(name, printed):
    model = load_any_model(FOLDER / f"{name}.model")
    told = json.loads(printed("info", "--json", FOLDER / f"{name}.model"))
    assert told["loss"] in printed("info", FOLDER / f"{name}.model")
    assert told["schema"] == 2
    assert told["width"] == model.width == rows(name).X.shape[1]
    assert told["features"]["zero_based"] is (name == "zero_based")
    if isinstance(model, RankerSet):
        assert [of_class["labels"]["positive"] for of_class in told["classes"]] == [1, 2, 3, 4]


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_estimators_made_of_it_score_alike(name):
    model = ESTIMATORS[name].from_model(load_model(FOLDER / f"{name}.model"))
    X = rows(name).X
    if name == "classifier":
        pandas = pytest.importorskip("pandas")
        assert model.feature_names_in_.tolist() == list("abcde")
        X = pandas.DataFrame(X.toarray(), columns=list("abcde"))
    score = model.decision_function if isinstance(model, APSVMClassifier) else model.predict
    # The data frame is dense, and dense rows are summed in another order than sparse ones.
    np.testing.assert_allclose(score(X), MODELS[name]["scores"], rtol=1e-14 if name == "classifier" else 0)


#: Models of exact trainings, and what made them.
EXACT = {
    **{name: kind for name, kind in ESTIMATORS.items() if kind is not WARPRanker},
    **dict.fromkeys(("ap", "appx", "tight", "zero_one", "positive_label"), APSVMClassifier),
    **dict.fromkeys(("ndcg_grades", "ndcg_linear", "relevant_from"), APSVMRanker),
    **dict.fromkeys(("wmw", "wmw_classes", "wmw_graph"), RankNCG),
}


@pytest.mark.parametrize("name", sorted(EXACT))
def test_estimators_made_of_it_train_the_same_again(name):
    """What the file tells of the training is enough to repeat it."""
    source = load_model(FOLDER / f"{name}.model")
    data = rows(name)
    model = EXACT[name].from_model(source)
    y = data.relevance
    if name.startswith("classifier"):
        y = model.classes_[(y > 0).astype(int)]
    elif name == "positive_label":
        y = y == 3
    again = model.fit(data.X, y, qid=data.groups)
    largest = np.abs(source.coef).max()
    assert largest > 0.1
    before, after = source.header.certificate, again.to_model().header.certificate
    if before is not None and after is not None and before.bound == after.bound == "hinge" and name != "appx":
        assert max(before.dual, after.dual) <= min(before.primal, after.primal) * (1.0 + 1e-9), "of the same problem"
    # Solvers come to other points within the same tolerance; which rows the two-stage approximation keeps easy hangs on
    # the last digits of its first stage.
    near = 0.05 if name == "appx" else 0.03
    np.testing.assert_allclose(np.ravel(again.coef_), source.coef, atol=near * largest)


@pytest.mark.parametrize(("name", "classes"), [("classifier", ["ham", "spam"]), ("classifier_numbers", [2, 5])])
def test_classes_of_a_classifier(name, classes):
    model = APSVMClassifier.from_model(load_model(FOLDER / f"{name}.model"))
    assert model.classes_.tolist() == classes
    assert model.certificate_.reached


def test_what_labels_meant_is_kept():
    labels = load_model(FOLDER / "positive_label.model").header.labels
    assert (labels.kind, labels.positive) == ("one-label", 3)
    assert load_model(FOLDER / "ap.model").header.labels.kind == "binary"
    labels = load_model(FOLDER / "relevant_from.model").header.labels
    assert (labels.kind, labels.relevant_from) == ("threshold", 2)
    assert APSVMRanker.from_model(load_model(FOLDER / "ranker_relevant_from.model")).relevant_from == 2
    assert RankNCG.from_model(load_model(FOLDER / "rank_ncg_classes.model")).n_classes == 3
    assert load_model(FOLDER / "scale_l2.model").unit_rows
    assert not load_model(FOLDER / "scale_standard.model").unit_rows


@pytest.mark.parametrize("name", ["ap", "scale_standard", "tight"])
def test_training_goes_on_from_it(name, printed, tmp_path):
    options = {"scale_standard": ["--scale", "standard", "-B", "1"]}.get(name, [])
    start = FOLDER / f"{name}.model"
    printed("train", "-q", "-C", "5", "--warm-start", start, *options, FOLDER / "two.svm", tmp_path / "model")
    assert load_model(tmp_path / "model").header.state == "converged"
