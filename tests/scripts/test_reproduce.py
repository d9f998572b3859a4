"""The papers' experiments run to their end on a small set: tables whole, exact oracles equal, figures drawn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command import script_in_process
from sklearn.datasets import dump_svmlight_file, load_digits

SCRIPTS = Path(__file__).parents[2] / "scripts" / "reproduce"


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Three classes of scikit-learn's digits, of which --quick takes two."""
    X, y = load_digits(return_X_y=True)
    path = tmp_path_factory.mktemp("digits") / "digits.svm"
    dump_svmlight_file(X[y < 3], y[y < 3], str(path), zero_based=False)
    return path


def reproduce(script, data, output):
    """Runs a script twice and returns its output: the second run finds all work done and prints the same."""
    first, again = (script_in_process(SCRIPTS / script, data, "--quick", "--output", output) for _ in range(2))
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert again.stdout.splitlines()[1:] == first.stdout.splitlines()[1:]
    done = [line for line in again.stderr.splitlines() if ": done on " in line]
    assert len(done) == len(list((output / "pieces").rglob("*.pickle"))) > 1
    return again.stdout


def tables(text):
    """{first cell of the heading: {first cell of a row: its other cells}}; every row has as many cells as the heading.
    Of tables with the same heading the last."""
    found = {}
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        heading, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        assert rows
        assert {len(row) for row in rows} == {len(heading)}
        found[heading[0]] = {row[0]: dict(zip(heading[1:], row[1:], strict=True)) for row in rows}
    return found


@pytest.mark.slow
def test_ap_svm_2014(digits, tmp_path):
    text = reproduce("ap_svm_2014.py", digits, tmp_path / "figures")
    found = tables(text)
    accuracy = found["test AP, %"]
    assert accuracy["VOC 2011: mean"] == {
        "binary SVM": "47.93", "AP-SVM": "51.20", "appx 25": "50.89", "appx 50": "50.26", "appx 75": "49.15"
    }  # fmt: skip
    for name in ("digits 0", "digits 1"):
        assert all(80 < float(value) <= 100 for value in accuracy[name].values())
    calls = found["training"]["digits: calls"]
    exact = ("AP-SVM", "search", "select", "search+select", "qs", "bucket")
    assert len({calls[method] for method in exact}) == 1
    for what in ("seconds", "milliseconds"):
        assert all(float(value) > 0 for value in found[what]["digits"].values())
        assert found[what]["digits: times faster"]["AP-SVM"] == "1.0"
    assert len(re.findall(r"^(?:seen|too few rows to tell) ", text, flags=re.MULTILINE)) == 9
    assert re.search(r"^seen +the exact oracles give the same parameters$", text, flags=re.MULTILINE)
    assert float(found["iteration"]["digits"]["1"]) == 0.0
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {"figure-1-digits.svg", "tables.md", "pieces"}


@pytest.mark.slow
def test_quicksort_2018(digits, tmp_path):
    text = reproduce("quicksort_2018.py", digits, tmp_path / "figures")
    found = tables(text)
    accuracy = found["mean over the classes, %"]
    assert list(accuracy["VOC 2011 action, linear"].values()) == ["47.93", "51.20", "-", "84.38", "85.52"]
    assert all(80 < float(value) <= 100 for value in accuracy["digits, linear"].values())
    calls = found["seconds"]["digits: calls"]
    assert calls["AP"] == calls["AP_QS"] == calls["AP search+select"] == calls["AP bucket"]
    assert calls["NDCG"] == calls["NDCG_QS"] == calls["NDCG bucket"]
    assert all(" ± " in value for value in found["milliseconds"]["digits"].values())
    of_networks = found["networks, mean over the classes, %"]
    assert list(of_networks["CIFAR-10 (paper)"].values()) == ["-", "84.22", "85.28", "-", "95.31", "96.14"]
    assert all(80 < float(value) <= 100 for value in of_networks["digits"].values())
    times = found["layer-wise training, seconds"]
    assert all(float(times["digits: calls"][name]) > 0 for name in ("0-1", "AP", "AP_QS", "NDCG", "NDCG_QS"))
    assert len(re.findall(r"^(?:seen|too few rows to tell) ", text, flags=re.MULTILINE)) == 13
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert (tmp_path / "figures" / "tables.md").read_text() == text
    assert names - {"tables.md", "pieces"} == {
        f"figure-{figure}-{what}-{against}.svg"
        for figure in (2, 3)
        for what in ("training", "call")
        for against in ("rows", "negatives", "positives")
    }
    drawn = (tmp_path / "figures" / "figure-2-call-negatives.svg").read_text()
    assert all(f">{name}<" in drawn for name in ("0-1", "AP", "AP_QS", "AP bucket", "negatives"))
