"""``--loss warp``: linear rankers from labels and grades, item factors from lists, and what they are good for."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pytest
import scipy.sparse as sp
from over import over
from pages import ROOT
from sklearn.metrics import average_precision_score, roc_auc_score

from apsvm import load_model, read_svmlight
from apsvm.data.item_lists import hide, liked_items
from apsvm.models.items import ItemRanker
from apsvm.models.reading import load_any_model
from apsvm.trainers.warp.item_factors import evaluate_lists

ROW = re.compile(r" +\d+ +\d+ +\d+ +[-+.e\d]+( +\d\.\d{6})? +\d+\.\d\d$")


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def users(tmp_path_factory):
    """Users of three tastes in two files: 200 to learn from, 60 others."""
    rng = np.random.default_rng(4)
    folder = tmp_path_factory.mktemp("users")
    paths = []
    for name, n in (("train.svm", 200), ("new.svm", 60)):
        taste = rng.integers(0, 3, size=n)
        likes = rng.random((n, 45)) < np.where(taste[:, None] == np.arange(45) % 3, 0.5, 0.03)
        likes[:3, -1] = True
        path = folder / name
        path.write_text("".join(f"0 {' '.join(f'{j + 1}:1' for j in np.flatnonzero(row))}\n" for row in likes))
        paths.append(path)
    return paths


@pytest.fixture(scope="module")
def items_model(users, run, tmp_path_factory):
    model = tmp_path_factory.mktemp("model") / "m"
    run("train", "-q", "--loss", "warp", "--rows-as-users", "--factors", 6, *users[:1], model)
    return model


def test_train_predict_eval(cancer, run, scored, tmp_path):
    model, log = tmp_path / "m", tmp_path / "log"
    done = run("train", "-v", "--loss", "warp", cancer.path, model, "--epochs", 12, "--log", log)
    lines = done.stderr.splitlines()
    assert lines[1].split() == ["epoch", "trials", "updates", "est.", "loss", "seconds"]
    shown = [line for line in lines if ROW.match(line)]
    assert [int(line.split()[0]) for line in shown] == [*range(1, 13)]
    assert "apsvm: all epochs done after 12 epochs" in lines
    assert lines[-1].startswith(f"apsvm: model written to {model} after ")

    scores = scored(run("predict", cancer.path, model).stdout)
    np.testing.assert_allclose(scores, cancer.X @ load_model(model).coef, rtol=1e-12)
    found = json.loads(run("eval", cancer.path, "--model", model, "--json").stdout)["metrics"]
    assert found["AP"] == pytest.approx(average_precision_score(cancer.positive, scores))
    assert found["AUC"] == pytest.approx(roc_auc_score(cancer.positive, scores))
    assert min(found["AP"], found["AUC"]) > 0.99
    assert f"training AP {found['AP']:.6f}\n" in done.stderr

    start, *epochs, end = records(log)
    assert (start["event"], start["tau"], start["rank_estimator"], start["n_rows"]) == (
        "start",
        "harmonic",
        "plugin",
        569,
    )
    assert [record["epoch"] for record in epochs] == list(range(1, 13))
    assert {record["draws"] for record in epochs} == {212}
    assert all(record["trials"] >= record["updates"] for record in epochs)
    assert (end["event"], end["state"], end["epochs"], end["best_epoch"]) == ("end", "all epochs done", 12, 12)
    header = load_model(model).header
    assert end["loss"] == header.epochs.estimated_loss == epochs[-1]["loss"]
    keys = ("tau", "rule", "learning_rate", "l2")
    assert [header.settings[key] for key in keys] == ["harmonic", "adagrad", 0.05, 0.0]
    assert (header.loss, header.details["threads"]) == ("warp", 1)
    assert (header.epochs.count, header.epochs.validation) == (12, None)
    assert header.data.positives == 212


def test_validation_keeps_the_best_epoch(cancer, write_rows, run, tmp_path):
    rows = np.random.default_rng(0).permutation(569)
    parts = {}
    for name, part in (("fit", rows[:400]), ("valid", rows[400:])):
        parts[name] = write_rows(tmp_path / name, cancer.X[part], cancer.labels[part])
    options = ["--validation", parts["valid"], "--validation-metric", "ndcg", "--patience", 2, "--epochs", 60]
    log, model = tmp_path / "log", tmp_path / "m"
    done = run("train", "--loss", "warp", parts["fit"], model, *options, "--log", log)
    epochs = records(log)[1:-1]
    values = [record["validation"] for record in epochs]
    best = int(np.argmax(values)) + 1
    assert len(epochs) == best + 2 < 60
    assert [record["best"] for record in epochs] == [v > max(values[:i], default=-1) for i, v in enumerate(values)]
    assert f"kept epoch {best}, nDCG {values[best - 1]:.6f} on " in done.stderr
    header = load_model(model).header
    assert header.epochs.best == best
    assert header.epochs.validation.value == values[best - 1]
    assert header.epochs.validation.file == "valid"
    found = json.loads(run("eval", parts["valid"], "--model", model, "--json").stdout)["metrics"]
    assert found["nDCG"] == pytest.approx(values[best - 1])


@over(
    "options, words",
    [
        ("--tau p@0", "tau 'p@0'"),
        ("--tau auc --rank-estimator log-unbiased", "log-unbiased"),
        ("--rank-estimator best", "'best'"),
        ("--learning-rate 0", "above 0"),
        ("--l2 -1", "of at least 0"),
        ("--epochs 0", "epochs"),
        ("-C 3", "--C"),
        ("--oracle qs", "--oracle"),
        ("--max-iterations 3", "--max-iterations"),
        ("--validation-metric AP", "needs --validation"),
        ("--patience 3", "needs --validation"),
        ("--validation x --validation-metric best", "'best'"),
        ("--positive-label 1 --preference", "--positive-label"),
        ("--factors 3", "--rows-as-users"),
        ("--rows-as-users --positive-label 1", "--positive-label"),
        ("--rows-as-users --factors 0", "factors"),
        ("--loss ap --tau auc", "--tau"),
    ],
)
def test_options_that_do_not_go_together(options, words, cancer, run, tmp_path):
    done = run("train", "--loss", "warp", cancer.path, "m", *options.split(), code=2, cwd=tmp_path)
    assert words in done.stderr.partition("error: ")[2]
    assert not list(tmp_path.iterdir())


def test_bad_data(cancer, run, tmp_path):
    def said(content, *options, code=65):
        path = tmp_path / "data"
        path.write_text(content)
        return run("train", "--loss", "warp", path, tmp_path / "m", *options, code=code).stderr

    assert "--positive-label" in said("1 1:1\n2 1:2\n3 1:3\n")
    assert "no query has both" in said("1 qid:1 1:1\n0 qid:2 1:2\n")
    for grade, missing in ((4, "positive"), (0, "negative")):
        assert f"there are no {missing} rows" in said("1 1:1\n0 1:2\n", "--relevant-from", grade)
    assert "no query has both" in said("2 1:1\n2 1:2\n", "--preference")
    assert "no query has both" in said("1 qid:1 1:1\n0 qid:2 1:2\n", "--preference")
    assert "no user likes at least two items" in said("0 1:1\n0 2:1\n", "--rows-as-users")
    missing = said("1 1:1\n0 1:2\n", "--validation", tmp_path / "nowhere", code=66)
    assert "nowhere: No such file" in missing
    (tmp_path / "valid").write_text("1 1:1\n1 1:2\n")
    assert "no negative rows" in said("1 1:1\n0 1:2\n", "--validation", tmp_path / "valid")
    assert sorted(os.listdir(tmp_path)) == ["data", "valid"]


def test_what_is_not_used_is_said(run, tmp_path):
    path = tmp_path / "data"
    path.write_text("1 cost:2 1:1\n0 1:2\n")
    said = run("train", "--loss", "warp", path, tmp_path / "m", "--bias", 1, "--epochs", 1).stderr
    assert "cost: is ignored" in said
    assert "a constant feature moves no ranking" in said
    path.write_text("0 qid:3 1:1 2:1\n0 qid:3 3:1\n")
    said = run("train", "--loss", "warp", path, tmp_path / "m", "--rows-as-users", "--epochs", 1).stderr
    assert "qid: is ignored" in said
    assert "1 users with fewer than two items, or with all, were left out" in said


def test_users_predict(users, items_model, run):
    """The best items of each row, its own left out, as the model's own scores order them."""
    ranker = load_any_model(items_model)
    assert isinstance(ranker, ItemRanker)
    data = read_svmlight(users[1], n_features=45)
    scores = ranker.score(data.X)
    lines = run("predict", users[1], items_model, "--top", 7).stdout.splitlines()
    assert len(lines) == 60
    for line, mine, liked in zip(lines, scores, data.X.toarray() > 0, strict=True):
        items, values = zip(*(word.split(":") for word in line.split(" ")), strict=True)
        best = np.array(items, dtype=int) - 1
        assert not liked[best].any()
        np.testing.assert_array_equal(best, np.argsort(-mine, kind="stable")[:7])
        np.testing.assert_array_equal(np.array(values, dtype=np.float32), mine[best])
    assert {line.count(":") for line in run("predict", users[1], items_model).stdout.splitlines()} == {10}
    for option in ("--which", "--classify"):
        assert f"{option} is for " in run("predict", users[1], items_model, option, code=2).stderr


def test_users_eval(users, items_model, run, tmp_path):
    """Hidden items are found, a part of each row's own."""
    ranker = load_any_model(items_model)
    lists = liked_items(read_svmlight(users[1], n_features=45).X)
    known, hidden, left_out = hide(lists, 0.2, np.random.default_rng(0))
    expected = evaluate_lists(ranker.score, known, hidden, ["AP", "AUC", "P@3", "nDCG"])
    of_three = [word for name in ("AP", "AUC", "P@3", "nDCG") for word in ("-m", name)]
    found = json.loads(run("eval", users[1], "--model", items_model, "--json", *of_three).stdout)
    assert found["metrics"] == pytest.approx(expected.values)
    assert (found["users"], left_out) == (expected.users, 0)
    assert found["metrics"]["AUC"] > 0.8
    lines = run("eval", users[1], "--model", items_model, *of_three).stdout.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [[name, f"{v:.6f}"] for name, v in found["metrics"].items()]

    table = run("eval", users[1], "--model", items_model).stdout
    assert "users        60 averaged, 0 without a hidden item left out" in table


def test_a_table_of_likes_may_name_its_users(run, tmp_path):
    table = tmp_path / "likes.csv"
    table.write_text("user,tea,milk,bread\nann,1,1,0\nbob,1,0,1\ncat,0,1,1\n")
    train = ("train", "-q", "--loss", "warp", "--rows-as-users", table, tmp_path / "m")
    assert run(*train, code=65).stderr.endswith(
        ": words in user, where --rows-as-users (rows_as_users=) takes a row a user and a column of numbers "
        "an item, above 0 where the user likes it. If the rows are pairs of a user and an item, make such a "
        "matrix of them first: the documentation has a recipe, under Recommendation "
        "(docs/cases/recommendation.md). A column that says which user a row is: --id-column NAME\n"
    )
    run(*train, "--id-column", "user")
    assert load_any_model(tmp_path / "m").width == 3


def test_the_recipe_of_the_documentation_makes_rows_of_likes(run, tmp_path, monkeypatch):
    """Word for word: a row a user, a column an item, and the names of both."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "cases" / "recommendation.md").read_text(encoding="utf-8")
    (recipe,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "read_csv" in block)
    rows = ["ann,tea,5", "bob,bread,4", "ann,milk,4", "bob,tea,5", "bob,milk,1", "ann,tea,4"]
    (tmp_path / "pairs.csv").write_text("\n".join(["user,item,rating", *rows]))
    exec(recipe, {})
    likes = sp.load_npz("likes.npz").toarray() > 0
    assert (tmp_path / "items.txt").read_text().split() == ["bread", "milk", "tea"]
    np.testing.assert_array_equal(likes, [[False, True, True], [True, False, True]])
    run("train", "-q", "--loss", "warp", "--rows-as-users", "likes.npz", "m", "--epochs", 2)
    assert load_any_model("m").width == 3
    # A matrix without labels.
    assert [line.split(":")[0] for line in run("predict", "likes.npz", "m").stdout.splitlines()] == ["1", "2"]
