"""``apsvm eval`` against scikit-learn and the definitions written out."""

from __future__ import annotations

import json
from pathlib import Path

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


def test_the_text_says_what_the_json_says(digits, trained, run, tmp_path):
    arguments = (digits.path, "--model", trained(digits))
    lines = run("eval", *arguments).stdout.splitlines()
    shown = {line.split()[0]: line.split()[1] for line in lines}
    values = evaluation(run, *arguments)["metrics"]
    assert list(values) == ["AP", "AUC", "P@5", "P@10", "nDCG"]
    assert {name: f"{value:.6f}" for name, value in values.items()}.items() <= shown.items()
    assert shown["rows"] == "1797"
    (tmp_path / "few").write_text("1 1:1\n-1 1:2\n1 1:3\n-1 1:0\n")
    run("train", "-q", tmp_path / "few", tmp_path / "m", "--loss", "rbp(0.8)", "--bound", "hinge", "-C", 1)
    assert list(evaluation(run, tmp_path / "few", "--model", tmp_path / "m")["metrics"]) == ["RBP(0.8)", *values]


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


def test_queries_are_averaged(digits, run, scores, scores_file, write_rows, tmp_path):
    n = len(digits.labels)
    queries = np.where(digits.labels == 0, 7 + np.arange(n) % 3, np.arange(n) % 5)
    data = write_rows(tmp_path / "data", digits.X, digits.labels, query_id=queries)
    found = evaluation(run, data, "--scores", scores_file, *digits.options)
    used = [queries == q for q in np.unique(queries) if digits.positive[queries == q].sum() > 0]
    assert len(used) == 5
    expected = np.mean([average_precision_score(digits.positive[q], scores[q]) for q in used])
    assert found["metrics"]["AP"] == pytest.approx(expected, rel=1e-12)
    expected = np.mean([roc_auc_score(digits.positive[q], scores[q]) for q in used])
    assert found["metrics"]["AUC"] == pytest.approx(expected, rel=1e-12)
    assert (found["queries"], found["queries_skipped"]) == (8, 3)
    assert found["metrics"]["AP"] != pytest.approx(average_precision_score(digits.positive, scores), rel=1e-5)
    assert "5 averaged, 3 without both classes" in run("eval", data, "--scores", scores_file, *digits.options).stdout


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
        ("--scores", "s", "--scores", "s"),
        ("--scores", "s", "--compare"),
        ("--scores", "s", "--run", "r"),
        ("--scores", "s", "--qrels", "q", "--run", "r"),
        ("--scores", "s", "--ties", "docno"),
        ("--scores", "s", "--complete"),
        ("--scores", "s", "-m", "AQ"),
        ("--scores", "s", "--positive-label", "1", "--relevant-from", "1"),
        ("--scores", "s", "--confidence", "0"),
        ("--scores", "s", "--ties", "optimistic"),
    ],
    ids=" ".join,
)
def test_bad_options(arguments, cancer, run):
    assert "Error: " in run("eval", cancer.path, *arguments, code=2).stderr


def test_nothing_to_evaluate(run, tmp_path: Path):
    data, scores = tmp_path / "data", tmp_path / "scores"
    data.write_text("1 qid:1 1:1\n-1 qid:2 1:2\n")
    scores.write_text("1\n2\n")
    done = run("eval", data, "--scores", scores, code=65)
    assert done.stderr.endswith(
        ": nothing to evaluate: none of the 2 groups holds both a positive and a negative, which AP needs (2 "
        "rows, 1 of them positive)\n"
    )


def test_a_byte_order_mark_is_no_content(run, tmp_path):
    """Of rows, of standard input, of scores, of labels and of weights."""
    mark, rows = b"\xef\xbb\xbf", b"1 qid:1 1:2\n0 qid:1 1:1\n0 qid:2 1:2\n1 qid:2 1:3\n"
    (tmp_path / "plain").write_bytes(rows)
    (tmp_path / "marked").write_bytes(mark + rows)
    (tmp_path / "scores").write_bytes(mark + b"1\n2\n3\n4\n")
    (tmp_path / "weights").write_bytes(mark + b"1 2\n2 1\n")
    for at, (data, given) in enumerate([("plain", b""), ("marked", b""), ("-", mark + rows)]):
        data = data if data == "-" else tmp_path / data
        run("train", "-q", data, tmp_path / f"m{at}", "--query-weights", tmp_path / "weights", input=given)
    predicted = {run("predict", tmp_path / "plain", tmp_path / f"m{at}").stdout for at in range(3)}
    assert len(predicted) == 1
    expected = run("eval", tmp_path / "plain", "--scores", tmp_path / "scores", "-m", "AP").stdout
    assert "AP           0.750000" in expected
    assert run("eval", tmp_path / "marked", "--scores", tmp_path / "scores", "-m", "AP").stdout == expected
    np.save(tmp_path / "X.npy", np.array([[2.0], [1.0], [2.0], [3.0]]))
    (tmp_path / "labels").write_bytes(mark + b"1\n0\n0\n1\n")
    run("train", "-q", tmp_path / "X.npy", tmp_path / "m", "--labels", tmp_path / "labels")
