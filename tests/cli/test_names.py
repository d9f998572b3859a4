"""Queries, bags, classes, images and items are called by their names, also where these clash with internal numbers."""

import json
import re

import numpy as np
import pytest

#: Not one stands where its number, by appearance, says.
NAMES = ["3", "0007", "patient-11A", "1", "patient-09A", "0", "2007_000123", "7", "11"]
ROWS_OF_ONE = 4


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with queries, bags, classes and users in CSV, called by NAMES."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("names")
    lines = {"query": ["qid,x,label"], "bag": ["bag,x,label"], "class": ["x,z,label"]}
    for number, name in enumerate(NAMES):
        for row in range(ROWS_OF_ONE):
            x, best = rng.normal(), row == 0
            lines["query"].append(f"{name},{x + best},{int(best)}")
            lines["bag"].append(f"{name},{x + best},{number % 2}")
            lines["class"].append(f"{x + number},{rng.normal()},{'ab'[number % 2]}{number % 3}")
    lines["users"] = [",".join(NAMES), *(",".join(map(str, row)) for row in rng.integers(-1, 2, (40, len(NAMES))))]
    for what, content in lines.items():
        (folder / f"{what}.csv").write_text("".join(f"{line}\n" for line in content))
    (folder / "boxes").write_text("0 0 9 9\n" * ROWS_OF_ONE * len(NAMES))
    return folder


def test_queries(tables, run, tmp_path):
    data, model, folder = tables / "query.csv", tmp_path / "m", tmp_path / "folder"
    run("train", data, "-q", "--run-dir", tmp_path / "run")
    run("train", data, model, "-q")
    run("convert", data, folder, "-q")
    head, *rows = data.read_text().splitlines(keepends=True)
    half = len(NAMES) // 2 * ROWS_OF_ONE
    for part, of_part in (("1", rows[:half]), ("2", rows[half:])):
        (tmp_path / f"{part}.csv").write_text(head + "".join(of_part))
    for rows in (data, folder, tmp_path / "[12].csv"):
        evaluation = ("eval", rows, "--model", model, "--per-query")
        assert set(NAMES) <= set(run(*evaluation).stdout.split())
        assert set(json.loads(run(*evaluation, "--json").stdout)["per_query"]) == set(NAMES)
        for option in (("--trec-run", "tag"), ("--top", 1)):
            lines = run("predict", rows, model, *option).stdout.splitlines()
            assert list(dict.fromkeys(line.split()[0] for line in lines)) == NAMES
    run("report", tmp_path / "run")
    assert "patient-11A" in re.findall(r"<td[^>]*>([^<]*)</td>", (tmp_path / "run" / "report.html").read_text())


def test_weights_of_queries(tables, run, tmp_path):
    data, weights = tables / "query.csv", tmp_path / "weights"
    weights.write_text("0007 2\nelsewhere 3\n")
    assert "elsewhere" in run("train", data, tmp_path / "m", "--query-weights", weights).stderr
    run("verify", tmp_path / "m", data, "--query-weights", weights)
    weights.write_text("elsewhere 3\n")
    assert "elsewhere" in run("train", data, tmp_path / "m", "--query-weights", weights, code=65).stderr


def test_bags(tables, run, tmp_path):
    data, model, folder = tables / "bag.csv", tmp_path / "m", tmp_path / "folder"
    run("train", data, model, "-q", "--latent")
    run("convert", data, folder, "-q")
    for rows in (data, folder):
        told = run("predict", rows, model, "--top", 99).stdout.splitlines()
        assert {line.split("\t")[0] for line in told} == set(NAMES)
        out = ("--boxes", tables / "boxes", "--detections")
        voc = [line.split()[0] for line in run("predict", rows, model, *out, "voc").stdout.splitlines()]
        coco = [one["image_id"] for one in json.loads(run("predict", rows, model, *out, "coco").stdout)]
        assert voc == coco == [name for name in NAMES for _ in range(ROWS_OF_ONE)]
    at_odds = tmp_path / "bad.csv"
    at_odds.write_text(data.read_text() + "patient-11A,0,1\n")
    assert "bag patient-11A has" in run("train", at_odds, tmp_path / "n", "--latent", code=65).stderr


def test_classes(tables, run, tmp_path):
    data, model = tables / "class.csv", tmp_path / "m"
    classes = {line.split(",")[-1] for line in data.read_text().splitlines()[1:]}
    run("train", data, model, "-q", "--one-vs-rest", "-C", 1)
    assert set(run("predict", data, model, "--header").stdout.splitlines()[0].split("\t")) == classes
    assert {line.split("\t")[0] for line in run("predict", data, model, "--top", 1).stdout.splitlines()} == classes
    assert set(json.loads(run("eval", data, "--model", model, "--json").stdout)["per_class"]) == classes
    boxed = tmp_path / "boxed.csv"
    rows = data.read_text().splitlines()
    boxed.write_text("".join(f"{line},{bag}\n" for line, bag in zip(rows, ["bag", *range(len(rows))], strict=False)))
    run("train", boxed, model, "-q", "--one-vs-rest", "-C", 1, "--latent")
    run("predict", boxed, model, tmp_path / "out", "--boxes", tables / "boxes", "--detections", "voc")
    assert {path.stem.removeprefix("comp3_det_test_") for path in (tmp_path / "out").iterdir()} == classes


def test_items(tables, run, tmp_path):
    """All but those that the user has liked or disliked."""
    data, model = tables / "users.csv", tmp_path / "m"
    assert "dislikes" in run("train", data, model, "--loss", "warp", "--rows-as-users").stderr
    lines = run("predict", data, model).stdout.splitlines()
    for line, likes in zip(lines, data.read_text().splitlines()[1:], strict=True):
        named = {item.rpartition(":")[0] for item in line.split("\t") if item}
        assert named == {name for name, value in zip(NAMES, likes.split(","), strict=True) if value == "0"}
