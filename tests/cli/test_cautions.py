"""Models that are hardly good for anything say so: while they are made, in their headers, and to who asks later."""

from __future__ import annotations

import json

import numpy as np
import pytest

from apsvm import load_any_model, load_model

NOTHING = "this model ranks nothing: all training rows have the same score"


@pytest.fixture(scope="module")
def weak(folder, write_rows):
    """1000 rows in one list, thirty positive and hardly to be found: the hinge of p@1 is least at w = 0."""
    rng = np.random.default_rng(3)
    labels = np.where(rng.permutation(1000) < 30, 1.0, -1.0)
    X = np.round(rng.normal(size=(1000, 4)) + 0.1 * (labels > 0)[:, None], 3)
    return write_rows(folder / "weak.svm", X, labels)


@pytest.mark.parametrize("quiet", [("-q",), ()], ids=["quiet", "plain"])
def test_a_model_that_ranks_nothing(quiet, weak, run, tmp_path):
    """It is written, as it is what was asked for; the exit code and one line, even where it is to be quiet, tell."""
    model = tmp_path / "m"
    done = run("train", *quiet, "--loss", "p@1", "--bound", "hinge", weak, model, code=3)
    warnings = [line for line in done.stderr.splitlines() if "warning" in line]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"apsvm: warning: {NOTHING}. Try --bound auto or --bound tight")
    if quiet:
        assert done.stderr == warnings[0] + "\n"
    assert "positive is" not in done.stderr
    ranker = load_model(model)
    assert not ranker.coef.any()
    assert ranker.header.threshold is None
    assert (ranker.header.state, ranker.header.as_asked) == ("converged", True)
    (caution,) = ranker.header.cautions
    assert caution.startswith(NOTHING)
    told = run("info", model)
    assert caution in " ".join(told.stdout.split())
    assert json.loads(run("info", model, "--json").stdout)["cautions"] == [caution]


@pytest.mark.parametrize("signal", [0.0, 1.0, 99.0])
def test_a_model_that_ranks_by_chance_or_too_well(signal, run, write_rows, tmp_path):
    """Rows held out in random order are what it is compared with; of one that makes no mistake a label may be known."""
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(400) < 0.2, 1.0, -1.0)
    X = np.round(rng.normal(size=(400, 3)) + signal * (labels > 0)[:, None], 3)
    said = run("train", write_rows(tmp_path / "rows.svm", X, labels), tmp_path / "m").stderr
    assert ("feature 1, 2, 3 alone tells positives from negatives" in said) == (signal == 99.0)
    assert ("this model ranks hardly better than chance" in said) == (signal == 0.0)
    assert (len(load_model(tmp_path / "m").header.cautions) == 1) == (signal == 0.0)


@pytest.mark.parametrize(
    ("options", "state"),
    [
        (("--bound", "hinge", "--max-iterations", 1), "iteration limit after 1 iterations"),
        (("--loss", "wmw", "--max-iterations", 1), "iteration limit after 1 iterations, 3 evaluations"),
        (("--one-vs-rest", "--bound", "hinge", "--max-iterations", 1), "2 classes: 2 iteration limit"),
    ],
    ids=["svm", "wmw", "classes"],
)
def test_an_exit_code_is_explained_to_whoever_wants_it_quiet(options, state, weak, run, tmp_path):
    done = run("train", "-q", *options, weak, tmp_path / "m", code=3)
    assert f"apsvm: warning: {state}\n" in done.stderr
    assert all("warning: " in line for line in done.stderr.splitlines())


def test_a_model_that_is_hardly_better(weak, run, tmp_path):
    """It ranks, so the exit code is 0; remedies are named."""
    done = run("train", "-q", "--bound", "hinge", "-C", 1e-4, "-e", 1e-7, weak, tmp_path / "m")
    (line,) = done.stderr.splitlines()
    assert line.startswith("apsvm: warning: the bound on the loss, relative to w = 0")
    assert line.endswith("--bound tight or --bound auto, a larger C, other features (--features piecewise)")
    header = load_model(tmp_path / "m").header
    assert load_model(tmp_path / "m").coef.any()
    (caution,) = header.cautions
    assert line.endswith(caution)
    # The share by hand: at w = 0 every negative stands above every positive.
    positives, rows = header.data.positives, header.data.rows
    worst = 1.0 - np.mean([k / (rows - positives + k) for k in range(1, positives + 1)])
    w = load_model(tmp_path / "m").coef
    share = (header.certificate.primal - 0.5 * w @ w) / header.C / worst
    assert 0.98 <= share <= 1.0
    assert f"relative to w = 0, is {share:.1%}: this model may rank badly" in caution


def test_a_good_model_says_nothing(cancer, run, tmp_path):
    assert run("train", "-q", cancer.path, tmp_path / "m").stderr == ""
    assert load_model(tmp_path / "m").header.cautions == ()
    assert "ranks nothing" not in run("info", tmp_path / "m").stdout


def test_classes_that_rank_nothing_are_named(run, tmp_path):
    """Class 3 is a tenth of the rows, and nothing tells it from them."""
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 2, 3], [60, 60, 20])
    data = tmp_path / "classes.svm"
    data.write_text(
        "".join(f"{label} 1:{x:.3f}\n" for label, x in zip(labels, rng.normal(size=140) + (labels == 1), strict=True))
    )
    done = run("train", "-q", "--one-vs-rest", "--loss", "p@1", "--bound", "hinge", data, tmp_path / "m", code=3)
    (line,) = done.stderr.splitlines()
    assert "the rankers of 3 classes rank nothing: 1, 2, 3" in line
    rankers = load_any_model(tmp_path / "m")
    assert "the rankers of 3 classes rank nothing: 1, 2, 3" in rankers.header.cautions
    assert not rankers.coef.any()
    assert all(NOTHING in rankers.ranker(label).header.cautions[0] for label in (1, 2, 3))


def rows_of(labels, queries=None):
    """A row of two features for each label, which rise with it."""
    qids = [""] * len(labels) if queries is None else [f" qid:{query}" for query in queries]
    return "".join(
        f"{label}{qid} 1:{label + at % 3} 2:{at % 5}\n"
        for at, (label, qid) in enumerate(zip(labels, qids, strict=True))
    )


ONE_LIST = "its labels are grades, and its rows have no queries (qid:, --qid-column): they are ranked as one list"


@pytest.mark.parametrize(
    ("labels", "queries", "cautioned"),
    [
        ([0, 1, 2, 0, 1, 2], None, True),
        ([0, 1, 2, 0, 1, 2], [1, 1, 1, 2, 2, 2], False),
        ([0, 1, 0, 1], None, False),
        ([-1, 1, -1, 1], None, False),
        ([0, 2, 0, 2], None, False),
    ],
    ids=["grades", "queries", "0 and 1", "-1 and 1", "0 and 2"],
)
def test_grades_without_queries(labels, queries, cautioned, run, tmp_path):
    """Somebody may have left the queries out; two classes of one list are as they should be."""
    data = tmp_path / "rows.svm"
    data.write_text(rows_of(labels, queries))
    train = ("train", "--loss", "ndcg", "--bound", "hinge", "-C", 1, data, tmp_path / "m")
    line = f"apsvm: warning: {data}: {ONE_LIST}\n"
    assert run(*train).stderr.count(line) == cautioned
    assert run(*train, "-q").stderr == ""
    for quiet in ([], ["-q"]):
        done = run("cv", *quiet, "--loss", "ndcg,ndcg@2", "--bound", "hinge", "-C", 1, "--folds", 2, data)
        assert done.stderr.count(line) == (cautioned and not quiet)


def test_rows_without_queries_of_a_model_of_queries(run, tmp_path):
    """eval says so, and judges them all the same."""
    labels, queries = [0, 1, 2, 0, 1, 2], [1, 1, 1, 2, 2, 2]
    (tmp_path / "with.svm").write_text(rows_of(labels, queries))
    (tmp_path / "without.svm").write_text(rows_of(labels))
    for name in ("with", "without"):
        run("train", "-q", "--loss", "ndcg", "--bound", "hinge", "-C", 1, tmp_path / f"{name}.svm", tmp_path / name)
    for rows, model, cautioned in (("without", "with", True), ("with", "with", False), ("without", "without", False)):
        done = run("eval", tmp_path / f"{rows}.svm", "--model", tmp_path / model)
        expected = (
            f"apsvm: warning: {tmp_path / 'without.svm'}: its rows have no queries (qid:, --qid-column), and "
            f"{tmp_path / 'with'} was trained on 2: they are judged as one list\n"
        )
        assert done.stderr == (expected if cautioned else "")
        assert "nDCG" in done.stdout


HIGH = "the highest grade is 40, and its gain 2^grade − 1 = 1.1e+12"
LOW = "labels below 0, the lowest -3, count as the grade 0"


@pytest.mark.parametrize(
    ("loss", "labels", "cautions"),
    [
        ("ndcg", [0, 1, 40], [HIGH]),
        ("ndcg@2", [0, 1, 40], [HIGH]),
        ("ndcg(linear)", [0, 1, 40], []),
        ("ndcg", [0, 1, 10], []),
        ("ndcg", [0, 40, 40], []),
        ("ndcg", [-3, 0, 2], [LOW]),
        ("ndcg", [-3, 0, 1, 40], [LOW, HIGH]),
        ("ndcg", [-1, 1, 2], []),
        ("wmw", [-3, 0, 40], []),
    ],
)
def test_grades_whose_gains_are_not_what_somebody_thinks(loss, labels, cautions, run, tmp_path):
    """The highest one's, which is all that counts, and what lies below 0; of losses that have that gain."""
    data = tmp_path / "rows.svm"
    data.write_text(rows_of(2 * labels, [query for query in (1, 2) for _ in labels]))
    hinge = [] if loss == "wmw" else ["--bound", "hinge", "-C", 1]
    done = run("train", "--loss", loss, *hinge, data, tmp_path / "m")
    lines = [line for line in done.stderr.splitlines() if line.startswith("apsvm: warning: ")]
    assert len(lines) == len(cautions)
    assert all(caution in line for caution, line in zip(cautions, lines, strict=True))
    assert all("--loss 'ndcg(linear)'" in line for line in lines if HIGH in line)
    assert run("train", "-q", "--loss", loss, *hinge, data, tmp_path / "m").stderr == ""
