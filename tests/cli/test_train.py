"""``apsvm train``: what its options do to the model, judged by the model's own numbers."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from command import OLD_MODEL
from judge import hinge_by_permutations

from apsvm import load_model
from apsvm.solvers.line_search import AfterLineSearch

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")

TINY = "1 1:2 2:1\n-1 1:1 2:3\n1 1:1.5 2:-1\n-1 1:2.5\n-1 1:0.5 2:2\n1 2:1\n"


@pytest.mark.parametrize("C", [0.1, 100.0])
def test_primal_is_the_objective_over_all_rankings(C, run, info, tmp_path):
    data, model = tmp_path / "tiny.svm", tmp_path / "m"
    data.write_text(TINY)
    run("train", *HINGE, "--scale", "none", data, model, "-C", C, "-e", 1e-9)
    ranker = load_model(model)
    X = np.array([[2, 1], [1, 3], [1.5, -1], [2.5, 0], [0.5, 2], [0, 1]])
    relevant = np.array([True, False, True, False, False, True])
    hinge = hinge_by_permutations(ranker.score(X), relevant)
    primal = info(model).certificate.primal
    assert primal == pytest.approx(0.5 * ranker.coef @ ranker.coef + C * hinge, rel=1e-9)


def test_the_chain_of_commands(cancer, run, tmp_path, scored):
    model, scores = tmp_path / "m", tmp_path / "scores"
    run("train", *HINGE, cancer.path, model, "--oracle", "appx")
    run("predict", cancer.path, model, scores)
    found = json.loads(run("eval", cancer.path, "--scores", scores, "--json").stdout)
    direct = json.loads(run("eval", cancer.path, "--model", model, "--json").stdout)
    assert found == direct
    assert found["metrics"]["AP"] > 0.98
    assert json.loads(run("info", model, "--json").stdout)["width"] == 30
    assert "nr_feature 30\n" in run("export", model, "--format", "liblinear").stdout
    assert scored(scores.read_text()).size == 569


def test_the_model_s_default_name_is_in_the_current_folder(cancer, trained, run, tmp_path):
    done = run("train", *HINGE, cancer.path, cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["cancer.svm.model"]
    assert "model written to cancer.svm.model after " in done.stderr
    assert (tmp_path / "cancer.svm.model").read_bytes() == trained(cancer).read_bytes()


def test_a_workbook_in_the_place_of_the_model_is_left_alone(cancer, run, tmp_path):
    """A workbook is a zip archive, as a model is."""
    other = tmp_path / "february.xlsx"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    before = other.read_bytes()
    done = run("train", cancer.path, other, code=2)
    assert "exists and is not a model" in done.stderr
    assert other.read_bytes() == before


def test_an_old_model_is_replaced_and_its_mode_kept(cancer, trained, run, tmp_path):
    model = tmp_path / "m"
    model.write_text(OLD_MODEL)
    model.chmod(0o640)
    run("train", *HINGE, "-q", cancer.path, model)
    assert model.read_bytes() == trained(cancer).read_bytes()
    assert model.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_standard_input_and_output(cancer, trained, run):
    done = run("train", *HINGE, "-", "-", input=cancer.path.read_bytes(), text=False)
    assert b"model written to standard output" in done.stderr
    told = json.loads(run("info", "-", "--json", input=done.stdout, text=False).stdout)
    # The same model, save that the data have another name.
    expected = load_model(trained(cancer)).header
    expected = expected.to_json()
    assert told["data"] == {**expected["data"], "file": "<stdin>"}
    assert told["certificate"] == expected["certificate"]


def test_positive_label(digits, trained, run, info, tmp_path):
    eights = info(trained(digits))
    assert (eights.labels.positive, eights.data.positives) == (8.0, int((digits.labels == 8).sum()))
    model = tmp_path / "m"
    run("train", "-q", *HINGE, digits.path, model, "--positive-label", 3)
    threes = info(model)
    assert (threes.labels.positive, threes.data.positives) == (3.0, int((digits.labels == 3).sum()))
    assert threes.labels.negative == (0, 1, 2, 4, 5, 6, 7, 8, 9)
    assert threes.certificate.primal != eights.certificate.primal


@pytest.mark.parametrize("option", [[], ["--zero-based"]])
def test_zero_based(option, cancer, trained, run, write_rows, tmp_path):
    data, model = write_rows(tmp_path / "zero.svm", cancer.X, cancer.labels, zero_based=True), tmp_path / "m"
    done = run("train", *HINGE, data, model, "--one-based", code=65)
    assert f"{data}:1:" in done.stderr
    assert "--zero-based" in done.stderr
    run("train", *HINGE, "-q", data, model, *option)
    assert np.array_equal(load_model(model).coef, load_model(trained(cancer)).coef)
    assert load_model(model).header.features.zero_based
    # The model knows how its files count.
    predicted = run("predict", data, model).stdout
    assert predicted == run("predict", cancer.path, trained(cancer)).stdout


def test_threads_change_no_byte(digits, run, tmp_path):
    """As many values as several threads are started for."""
    data = tmp_path / "data"
    data.write_bytes(digits.path.read_bytes() * 12)
    assert digits.X.nnz * 12 > 600_000
    models = []
    for threads in (1, 2):
        model = tmp_path / f"{threads}.model"
        run(
            "train",
            "-q",
            *HINGE,
            data,
            model,
            *digits.options,
            "--threads",
            threads,
            "-C",
            100,
            "--max-iterations",
            5,
            code=3,
        )
        models.append(model.read_bytes())
    assert models[0] == models[1]


def test_queries_are_ranked_apart(digits, run, info, write_rows, tmp_path):
    data, model = tmp_path / "data", tmp_path / "m"
    # Query 4 has no positive.
    queries = np.arange(len(digits.labels)) % 4 + 4 * (digits.labels != 8) * (np.arange(len(digits.labels)) % 8 == 3)
    write_rows(data, digits.X, digits.labels, query_id=queries)
    assert len(set(queries[digits.positive])) == 4 < len(set(queries))
    done = run("train", *HINGE, data, model, *digits.options)
    assert (info(model).data.queries, info(model).data.queries_skipped) == (4, 1)
    assert "1 query without anything to rank was left out, 4 trained on" in done.stderr


@pytest.mark.parametrize(("C", "unit"), [("1e308x", 0.001), ("1e-323x", 1e9)])
def test_a_multiple_of_the_default_beyond_floating_point(C, unit, run, tmp_path):
    data = tmp_path / "tiny.svm"
    data.write_text("".join(f"{label} 1:{at * unit}\n" for at, label in enumerate((1, -1, -1, 1))))
    done = run("train", "-q", "--scale", "none", data, tmp_path / "m", "-C", C, code=2)
    assert "exceeds float64" in done.stderr
    assert not (tmp_path / "m").exists()


def test_late_numerical_trouble_writes_the_best_model(cancer, run, info, monkeypatch, tmp_path):
    """The third search along a line comes to something that is not finite."""
    searched = []
    search = AfterLineSearch.__call__

    def third_fails(self, *arguments):
        searched.append(self)
        if len(searched) == 3:
            raise FloatingPointError("scores are not finite")
        return search(self, *arguments)

    monkeypatch.setattr(AfterLineSearch, "__call__", third_fails)
    model = tmp_path / "m"
    done = run("train", *HINGE, cancer.path, model, "-C", 10, code=3)
    assert "apsvm: numerical trouble after 2 iterations" in done.stderr
    facts = info(model)
    assert (facts.state, facts.iterations) == ("numerical trouble", 2)
    assert facts.certificate.gap > facts.certificate.tolerance
    assert load_model(model).coef.any()


def test_a_second_file_of_data_is_not_replaced_by_the_model(digits, run, tmp_path):
    rows, empty = tmp_path / "rows.svm", tmp_path / "empty"
    rows.write_text("1 1:1\n0 1:2\n")
    for arguments in (("train", digits.path, rows), ("cv", digits.path, "-o", rows)):
        done = run(*arguments, "--positive-label", "1", code=2)
        assert f"{str(rows)!r} exists and is not a model" in done.stderr
    assert rows.read_text() == "1 1:1\n0 1:2\n"
    empty.touch()
    for _ in range(2):
        run("train", "--bound", "hinge", "-q", rows, empty)
