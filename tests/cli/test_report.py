"""``train --run-dir`` and ``apsvm report``: the page's figures are eval's and the certificate's, its lines those of
the file."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import sys

import numpy as np
import pytest
from html_reader import Reader

from apsvm import load_model
from apsvm.cli import run as command_line

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")


def read(path):
    return Reader(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def digits_run(digits, run, tmp_path_factory):
    """A file with comments and empty lines, so that lines are not rows; its run, and its page."""
    folder = tmp_path_factory.mktemp("report")
    lines = digits.path.read_text().splitlines()
    lines[:0], lines[500:500] = ["# made by a test", ""], ["   ", "  # another comment"]
    data = folder / "data.svm.gz"
    data.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
    done = run("train", data, "--run-dir", folder / "run", *digits.options, "-C", 10, *HINGE, "--log-ranks")
    assert f"model written to {folder / 'run' / 'ranker.model'}" in done.stderr
    run("report", "-q", folder / "run")
    return data, folder / "run", read(folder / "run" / "report.html")


@pytest.mark.slow
def test_a_run_folder(digits_run, digits):
    data, folder, _ = digits_run
    assert sorted(os.listdir(folder)) == ["log.jsonl", "ranker.model", "report.html"]
    first, *records = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    assert (first["event"], first["data"], first["rows"], first["features"]) == ("run", str(data), 1797, 64)
    assert first["options"] == {"positive_label": 8.0, "bound": "hinge", "C": [10.0], "log_ranks": True}
    assert (records[0]["event"], records[-1]["event"]) == ("start", "end")
    assert set(records[-1]["seconds"]) == {"reading", "scores", "oracle", "gradient", "qp", "other"}


def test_the_rows_by_their_lines(digits_run, digits):
    data, folder, page = digits_run
    scores = load_model(folder / "ranker.model").score(digits.X)
    order = np.argsort(-scores, kind="stable")
    lines = gzip.decompress(data.read_bytes()).decode().splitlines()
    lowest = order[digits.positive[order]][::-1]
    for heading, rows in (("found so far", order), ("what put it there", lowest)):
        shown = page.table("place", "line", "score", "label", heading)
        assert len(shown) == 15
        for (place, line, score, label, *_), row in zip(shown, rows.tolist(), strict=False):
            assert place == f"{int(np.flatnonzero(order == row)[0]) + 1}"
            assert float(score) == pytest.approx(scores[row], rel=1e-5)
            assert float(lines[int(line) - 1].split()[0]) == float(label) == digits.labels[row]


def test_one_file_that_asks_for_nothing(digits_run):
    _, folder, page = digits_run
    names = [tag for tag, _ in page.tags]
    assert names.count("img") == 2  # precision and recall, convergence
    assert all(attributes["alt"] for tag, attributes in page.tags if tag == "img")
    assert not {"script", "link", "iframe", "object"} & {*names}
    for tag, attributes in page.tags:
        for name in ("src", "href", "xlink:href"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:image/svg+xml;base64,")), (tag, value)
        assert not any(name.startswith("on") for name in attributes)
    text = (folder / "report.html").read_text()
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert "prefers-color-scheme:dark" in text
    assert '<meta name="viewport" content="width=device-width' in text


@pytest.mark.slow
def test_a_run_that_was_moved_and_other_rows(digits_run, digits, run, tmp_path):
    shutil.copytree(digits_run[1], tmp_path / "moved")
    done = run("report", tmp_path / "moved", "--data", digits.path, "-o", tmp_path / "page.html")
    assert "not the rows it was trained on" in done.stderr
    page = read(tmp_path / "page.html")
    assert "not the rows it was trained on" in page.all_text
    assert page.table("metric", "value") == digits_run[2].table("metric", "value")


def test_a_ranker_of_items(run, tmp_path):
    data = tmp_path / "likes"
    data.write_text("".join(f"0 {i % 3 + 1}:1 {i % 3 + 4}:1 {i % 2 + 8}:1\n" for i in range(20)))
    options = ("--loss", "warp", "--rows-as-users", "--factors", 2, "--epochs", 2)
    run("train", "-q", data, "--run-dir", tmp_path / "run", *options)
    run("report", "-q", tmp_path / "run")
    page = read(tmp_path / "run" / "report.html")
    assert (page.facts["users"], page.facts["likes"]) == ("20", "60")


@pytest.mark.slow
def test_a_run_that_was_killed(digits_run, run, tmp_path):
    content = (digits_run[1] / "log.jsonl").read_bytes()
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "log.jsonl").write_bytes(content[: len(content) // 2])
    assert "it has no end" in run("report", folder, code=65).stderr


@pytest.mark.slow
def test_data_that_is_gone_or_has_changed(run, tmp_path):
    data, folder = tmp_path / "data", tmp_path / "run"
    data.write_text("1 1:1\n-1 1:0.5\n1 1:0.2\n")
    run("train", "-q", data, "--run-dir", folder)
    data.write_text("1 1:1\n-1 1:0.5\n1 1:0.3\n")
    assert "the file has changed since the training" in run("report", folder).stderr
    data.unlink()
    assert "not at" in run("report", folder).stderr
    data.write_text("1 2:1\n-1 1:0.5\n")
    assert "feature 2 is unknown" in run("report", folder, "--data", data, code=65).stderr
    data.write_text("3 1:1\n4 1:0.5\n")
    run("report", folder, "--data", data)
    assert "cannot be judged on these rows" in read(folder / "report.html").all_text


def test_what_cannot_be(digits_run, cancer, run, tmp_path):
    folder = digits_run[1]
    (tmp_path / "file").touch()
    for arguments, code, word in (
        ((cancer.path, "--run-dir", folder), 2, "holds a run already"),
        ((cancer.path, "m", "--run-dir", tmp_path / "a"), 2, "leave out MODEL"),
        ((cancer.path, "--run-dir", cancer.path), 2, "would be overwritten"),
        ((cancer.path, "--run-dir", tmp_path / "file"), 74, "Not a directory"),
        ((cancer.path, "--run-dir", tmp_path / "a" / "b"), 74, "No such directory"),
    ):
        assert word in run("train", *arguments, code=code).stderr
    bad = tmp_path / "bad"
    bad.write_text("1 1:x\n")
    run("train", bad, "--run-dir", tmp_path / "new", code=65)
    assert not (tmp_path / "new").exists()
    for place in (tmp_path, tmp_path / "file"):
        assert "expected a folder of apsvm train --run-dir" in run("report", place, code=66).stderr
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy" / "ranker.model").unlink()
    assert "it is not there" in run("report", tmp_path / "copy", code=65).stderr


def test_what_the_run_is_made_of_is_not_overwritten(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "rows.svm"
    data.write_text("1 1:2\n-1 1:1\n1 1:3\n")
    run("train", "-q", data, "--run-dir", "run", "-C", 1)
    kept = {path: path.read_bytes() for path in (data, *(tmp_path / "run").iterdir())}
    assert len(kept) == 3
    for path in kept:
        done = run("report", "run", "-o", path, code=2)
        assert "would be overwritten" in done.stderr
    assert {path: path.read_bytes() for path in kept} == kept


@pytest.mark.slow
def test_rows_that_came_through_a_pipe_are_not_waited_for(run, tmp_path):
    data = tmp_path / "rows.svm"
    data.write_text("1 1:2\n-1 1:1\n1 1:3\n")
    run("train", "-q", data, "--run-dir", tmp_path / "run", "-C", "1")
    data.unlink()
    os.mkfifo(data)
    done = run("report", tmp_path / "run")
    assert "the training rows are not at" in done.stderr


def test_without_matplotlib_it_comes_without_pictures(digits_run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    _, folder, _ = digits_run
    assert command_line(["report", "-q", str(folder), "-o", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text()
    assert "<svg" not in text
    assert "pip install &#x27;apsvm[plot]&#x27;" in text
    assert "The first rows" in text
