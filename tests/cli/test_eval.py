"""``apsvm eval`` against scikit-learn and the definitions written out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from apsvm import load_model


@pytest.fixture(scope="module")
def scores(digits, trained):
    found = load_model(trained(digits)).score(digits.X)
    assert np.unique(found).size == found.size
    return found


@pytest.fixture(scope="module")
def scores_file(scores, tmp_path_factory):
    path = tmp_path_factory.mktemp("eval") / "scores"
    path.write_text("".join(f"{score!r}\n" for score in scores.tolist()))
    return path


def evaluation(run, *arguments, **more):
    return json.loads(run("eval", *arguments, "--json", **more).stdout)


def test_agrees_with_scikit_learn(digits, trained, run, scores):
    found = evaluation(
        run,
        digits.path,
        "--model",
        trained(digits),
        *(word for name in ("AP", "AUC", "P@7", "P@200", "nDCG") for word in ("-m", name)),
    )
    values = found["metrics"]
    relevant = digits.positive
    top = relevant[np.argsort(-scores)]
    assert list(values) == ["AP", "AUC", "P@7", "P@200", "nDCG"]
    assert 0.5 < values["AP"] < 0.99
    assert values["AP"] == pytest.approx(average_precision_score(relevant, scores), rel=1e-12)
    assert values["AUC"] == pytest.approx(roc_auc_score(relevant, scores), rel=1e-12)
    assert values["P@7"] == pytest.approx(top[:7].mean())
    assert values["P@200"] == pytest.approx(top[:200].mean())
    assert values["nDCG"] == pytest.approx(ndcg_score([relevant], [scores]), rel=1e-12)
    assert (found["rows"], found["positives"], found["queries"], found["tied_rows"]) == (1797, relevant.sum(), 0, 0)


@pytest.mark.slow
def test_what_is_found_in_the_first_rows_that_the_user_names(digits, trained, run, scores):
    found = int(digits.positive[np.argsort(-scores)[:30]].sum())
    said = run("eval", digits.path, "--model", trained(digits), "-m", "P@30", "-m", "AP").stdout
    assert f"found in 30  {found} of {digits.positive.sum()}\n" in said
    assert "found" not in run("eval", digits.path, "--model", trained(digits)).stdout


def test_sources(digits, trained, run, scores_file):
    model = trained(digits)
    expected = evaluation(run, digits.path, "--model", model)
    content = scores_file.read_text()
    assert evaluation(run, digits.path, "--scores", scores_file, *digits.options) == expected
    assert evaluation(run, digits.path, "--scores", "-", *digits.options, input=content) == expected
    assert evaluation(run, digits.path, "--scores", "-", *digits.options, input=content.rstrip()) == expected
    assert evaluation(run, "-", "--model", model, input=digits.path.read_text()) == expected
    piped = run("eval", digits.path, "--model", "-", "--json", input=model.read_bytes(), text=False)
    assert json.loads(piped.stdout) == expected


@pytest.mark.parametrize(
    ("content", "line", "shown"),
    [
        ("1\n", None, "expected 3 scores, one for each row of"),
        ("1\n2\n3\n4\n", None, "found 4"),
        ("1\nnan\n3\n", 2, "found 'nan'"),
        ("1\n2\ninf\n", 3, "found 'inf'"),
        ("one\n2\n3\n", 1, "found 'one'"),
        ("1\n\n3\n", 2, "found ''"),
        ("1\n2\n3\n\n", 4, "found ''"),
    ],
)
def test_bad_scores(content, line, shown, run, tmp_path):
    data, scores = tmp_path / "data", tmp_path / "scores"
    data.write_text("1 1:1\n-1 1:2\n1 1:3\n")
    scores.write_text(content)
    done = run("eval", data, "--scores", scores, code=65)
    place = f"{scores}:" + (f"{line}:" if line else "")
    assert done.stderr.startswith(f"apsvm: error: {place} ")
    assert shown in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("a.model",),
        ("--scores", "s", "--scores", "s"),
        ("--scores", "s", "--compare"),
        ("--scores", "s", "--run", "r"),
        ("--scores", "s", "--qrels", "q", "--run", "r"),
        ("--scores", "s", "--ties", "docno"),
        ("--scores", "s", "-m", "AQ"),
        ("--scores", "s", "--positive-label", "1", "--relevant-from", "1"),
        ("--scores", "s", "--confidence", "0"),
        ("--scores", "s", "--ties", "optimistic"),
    ],
    ids=" ".join,
)
def test_bad_options(arguments, cancer, run):
    assert "error: " in run("eval", cancer.path, *arguments, code=2).stderr
