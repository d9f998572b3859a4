"""``apsvm bench`` prints its tables. No test looks at a time."""

from __future__ import annotations

import pytest


def test_oracle(run):
    lines = run("bench", "oracle", "--positives", 5, "--negatives", 40, "--negatives", 60, "--shift", 1).stdout.split(
        "\n"
    )
    assert lines[0].startswith("normal scores")
    assert all(name in lines[2] for name in ("greedy", "search-select", "qs", "bucket"))
    assert [line.split()[:2] for line in lines[3:5]] == [["5", "40"], ["5", "60"]]


def test_oracle_on_data(cancer, trained, run):
    table = run("bench", "oracle", "--data", cancer.path, "--model", trained(cancer)).stdout.splitlines()
    assert table[-1].split()[:2] == ["212", "357"]
    assert "go together" in run("bench", "oracle", "--data", cancer.path, code=2).stderr


@pytest.mark.slow
def test_train(cancer, run, write_rows, tmp_path):
    few = write_rows(tmp_path / "few.svm", cancer.X[:60], cancer.labels[:60])
    table = run("bench", "train", few).stdout
    for method in ("LinearSVC", "LogisticRegression", "apsvm ", "apsvm cutting-plane"):
        assert method in table


@pytest.mark.slow
def test_parse(cancer, run):
    table = run("bench", "parse", cancer.path).stdout
    assert "scikit-learn" in table
    assert "apsvm, 2 thread(s)" in table
