"""``apsvm predict``: exact numbers, in input order."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from over import over

from apsvm import load_model
from apsvm.models.header import Header
from apsvm.models.items import ItemFactors, ItemRanker
from apsvm.models.linear import LinearRanker


@pytest.mark.parametrize("name", ["cancer", "digits"])
def test_numbers_read_back_exactly(name, tables, trained, run, scored):
    table = tables[name]
    model = trained(table, "--bias", "1", "-C", "10")
    found = scored(run("predict", table.path, model).stdout)
    assert np.array_equal(found, load_model(model).score(table.X))
    assert np.unique(found).size > 500


def test_rows_keep_their_order(cancer, trained, run, tmp_path, rng):
    model = trained(cancer)
    lines = cancer.path.read_text().splitlines(keepends=True)
    order = rng.permutation(len(lines))
    shuffled = tmp_path / "shuffled"
    shuffled.write_text("".join(lines[i] for i in order))
    expected = run("predict", cancer.path, model).stdout.splitlines()
    assert run("predict", shuffled, model).stdout.splitlines() == [expected[i] for i in order]


def test_where_it_goes(cancer, trained, run, tmp_path):
    model, out = trained(cancer), tmp_path / "scores"
    expected = run("predict", cancer.path, model).stdout
    assert run("predict", cancer.path, model, "-").stdout == expected
    done = run("predict", cancer.path, model, out)
    assert (done.stdout, done.stderr, out.read_text()) == ("", "", expected)
    content = cancer.path.read_bytes()
    assert run("predict", "-", model, input=content, text=False).stdout == expected.encode()
    assert run("predict", "-", model, input=gzip.compress(content), text=False).stdout == expected.encode()
    assert run("predict", cancer.path, "-", input=model.read_bytes(), text=False).stdout == expected.encode()


def test_only_one_input_is_standard_input(run):
    assert run("predict", "-", "-", code=2).stderr.endswith("Error: DATA and MODEL cannot both be standard input\n")


def test_labels_are_arbitrary(cancer, trained, run, tmp_path):
    other = tmp_path / "other"
    rows = [line.split(" ", 1)[1] for line in cancer.path.read_text().splitlines()]
    other.write_text("".join(f"{-3.5 * i} {row}\n" for i, row in enumerate(rows)))
    model = trained(cancer)
    assert run("predict", other, model).stdout == run("predict", cancer.path, model).stdout


def test_unknown_features(cancer, trained, run, tmp_path):
    more, model = tmp_path / "more", trained(cancer)
    lines = cancer.path.read_text().splitlines()
    more.write_text("".join(f"{line} 31:2\n" if at % 3 == 0 else f"{line}\n" for at, line in enumerate(lines)))
    for command in (("predict", more, model), ("eval", more, "--model", model)):
        done = run(*command, code=65)
        assert done.stdout == ""
        assert f"{more}:1:{len(lines[0]) + 2}: feature 31 is unknown" in done.stderr
        assert done.stderr.endswith(
            ":1:631: feature 31 is unknown (the model has 30 features); --ignore-unknown (ignore_unknown=True) "
            "drops such entries\n"
        )
    done = run("predict", more, model, "--ignore-unknown")
    assert done.stdout == run("predict", cancer.path, model).stdout
    assert done.stderr.endswith("190 feature values unknown to the model were ignored\n")


def test_fewer_features_are_zeros(cancer, trained, run, scored, write_rows, tmp_path):
    model = trained(cancer)
    data = write_rows(tmp_path / "narrow", cancer.X[:, :20], cancer.labels)
    ranker = load_model(model)
    found = scored(run("predict", data, model).stdout)
    assert np.allclose(found, cancer.X[:, :20] @ ranker.coef[:20], rtol=1e-12, atol=1e-12)
    assert not np.allclose(found, ranker.score(cancer.X))


def test_float32_and_unsorted_rows(cancer, trained, run, scored, tmp_path):
    model = trained(cancer)
    expected = load_model(model).score(cancer.X.astype(np.float32))
    found = scored(run("predict", cancer.path, model, "--dtype", "float32").stdout)
    assert np.array_equal(found, expected)
    assert not np.array_equal(found, load_model(model).score(cancer.X))

    data = tmp_path / "data"
    rows = [line.split() for line in cancer.path.read_text().splitlines()]
    data.write_text("".join(" ".join([label, *reversed(features)]) + "\n" for label, *features in rows))
    assert f"{data}:1:" in run("predict", data, model, code=65).stderr
    assert np.array_equal(
        scored(run("predict", data, model, "--sort-features").stdout), load_model(model).score(cancer.X)
    )


def test_a_matrix_needs_no_labels(cancer, trained, run, tmp_path):
    np.save(tmp_path / "X.npy", cancer.X.toarray())
    scores = run("predict", tmp_path / "X.npy", trained(cancer)).stdout.split()
    np.testing.assert_allclose([float(s) for s in scores], load_model(trained(cancer)).score(cancer.X), rtol=1e-9)
    assert run("train", tmp_path / "X.npy", tmp_path / "m", code=65).stderr.endswith(
        ": a .npz or .npy file has no labels of its own: name their file by --labels (labels=); a model is no data\n"
    )


@over("command", ["predict rows m", "predict --explain rows m", "predict --top 1 rows m", "eval rows --model m"])
def test_a_score_that_is_no_finite_number_is_refused(command, run, tmp_path):
    """Of finite weights and values."""
    (tmp_path / "rows").write_text("1 1:1 2:1\n-1 1:10 2:-10\n")
    header = Header(family="structured-svm", loss="ap", C=1.0)
    LinearRanker(np.array([1e307, 1e308]), 0.0, header).save(tmp_path / "m")
    done = run(*command.split(), cwd=tmp_path, code=65)
    assert done.stdout == ""
    assert done.stderr.endswith(
        "error: rows: row 2: its score is no finite number: its values or the weights are too large\n"
    )


def test_an_items_score_that_is_no_finite_number_is_refused(run, tmp_path):
    (tmp_path / "rows").write_text("0 1:1\n")
    factors = np.full((2, 1), 1e30, dtype=np.float32)
    items = ItemFactors(factors, factors, np.zeros(2, dtype=np.float32))
    ItemRanker(items, Header(family="warp", loss="warp")).save(tmp_path / "m")
    done = run("predict", "rows", "m", cwd=tmp_path, code=65)
    assert done.stderr.startswith("apsvm: error: rows: row 1: its score is no finite number")
