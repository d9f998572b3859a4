"""Training on bags by their best rows (--latent), from the file to its predictions, evaluations and detections."""

import json

import numpy as np
import pytest
from detections import as_xml

from apsvm import load_any_model, load_model

SIZE = 5


def write(path, labels, bags, X):
    lines = (
        f"{label} bag:{bag} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x))
        for label, bag, x in zip(labels, bags, X.tolist(), strict=True)
    )
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """60 shuffled bags of five rows; one row of each of the 20 positive ones stands out: the file, X, bags, labels of
    rows, and which rows stand out."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, SIZE, 4))
    X[:20, 2, 0] += 5.0
    stands_out = np.zeros((60, SIZE), dtype=bool)
    stands_out[:20, 2] = True
    order = rng.permutation(60 * SIZE)
    bags = np.repeat(np.arange(60), SIZE)[order]
    labels = (bags < 20).astype(int)
    X, stands_out = np.round(X.reshape(-1, 4)[order], 4), stands_out.ravel()[order]
    return write(tmp_path_factory.mktemp("latent") / "rows.svm", labels, bags, X), X, bags, labels, stands_out


@pytest.fixture(scope="module")
def model(made, tmp_path_factory, run):
    path = tmp_path_factory.mktemp("model") / "latent.model"
    run("train", "-q", "--latent", "-C", "1x", made[0], path)
    return path


def of_bags(scores, bags):
    """The bags' best scores and rows, in the order of their first rows."""
    names = list(dict.fromkeys(bags.tolist()))
    best = [max(np.flatnonzero(bags == name), key=lambda row: (scores[row], -row)) for name in names]
    return scores[best], np.array(best), np.array(names)


def test_the_model_and_what_is_said_of_it(made, run, tmp_path):
    result = run("train", "-v", "--latent", "-C", "1x", made[0], tmp_path / "m", "--log", tmp_path / "log")
    assert "certificate: a stationary point, from which" in result.stderr
    assert "60 bags, 20 positive" in result.stderr
    header = load_model(tmp_path / "m").header
    assert header.latent
    assert header.certificate.stationary
    assert header.certificate.gap <= header.certificate.tolerance
    assert header.data.positives == 20
    rounds = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines() if '"round"' in line]
    assert {one["stage"] for one in rounds} == {"latent"}
    assert "yes" in next(line for line in run("info", tmp_path / "m").stdout.splitlines() if "best row" in line)


def test_predictions_of_bags_and_of_rows(made, model, run, scored):
    path, X, bags, _, stands_out = made
    ranker = load_model(model)
    rows = X @ ranker.coef + ranker.intercept
    best, deciding, names = of_bags(rows, bags)
    np.testing.assert_allclose(scored(run("predict", path, model).stdout), best, rtol=1e-12)
    np.testing.assert_allclose(scored(run("predict", path, model, "--bags", "ignore").stdout), rows, rtol=1e-12)
    lines = [line.split("\t") for line in run("predict", path, model, "--which").stdout.splitlines()]
    assert [int(row) for _, row in lines] == (deciding + 1).tolist()
    assert stands_out[deciding][names < 20].mean() >= 0.9
    explained = run("predict", path, model, "--explain=1").stdout.splitlines()
    assert len(explained) == 60
    base, largest = explained[0].split("\t")[1:3]
    assert base.startswith("base (")
    assert largest.startswith(tuple("1234"))


@pytest.mark.parametrize("nms", [None, 0.3])
def test_detections(made, model, run, tmp_path, nms):
    path, X, bags, _, stands_out = made
    corners = np.random.default_rng(1).integers(0, 20, size=(bags.size, 2))
    boxes = np.hstack([corners, corners + 10])
    np.save(tmp_path / "boxes.npy", boxes)
    more = [] if nms is None else ["--nms", nms]
    asked = ("--boxes", tmp_path / "boxes.npy", *more)
    run("predict", path, model, tmp_path / "det_x_1.txt", *asked, "--detections", "voc")
    lines = [line.split() for line in (tmp_path / "det_x_1.txt").read_text().splitlines()]
    run("predict", path, model, tmp_path / "found.json", *asked, "--detections", "coco")
    entries = json.loads((tmp_path / "found.json").read_text())
    assert len(lines) == len(entries) <= bags.size
    assert (len(lines) == bags.size) == (nms is None)
    assert [int(line[0]) for line in lines] == [entry["image_id"] for entry in entries]
    assert {entry["category_id"] for entry in entries} == {1}
    if nms is None:
        ranker = load_model(model)
        expected = X @ ranker.coef + ranker.intercept
        np.testing.assert_allclose([float(line[1]) for line in lines], expected, rtol=1e-12)
        assert [[float(v) for v in line[2:]] for line in lines] == boxes.tolist()
    # The pipe to the end: the rows that stand out are the objects.
    folder = tmp_path / "objects"
    folder.mkdir()
    for bag in range(60):
        mine = np.flatnonzero((bags == bag) & stands_out)
        rows = [(str(bag), "1", boxes[row].tolist(), 0) for row in mine]
        (folder / f"{bag}.xml").write_text(as_xml(str(bag), 30, 30, rows))
    figures = run("eval-detections", folder, tmp_path / "det_x_1.txt").stdout
    assert "AP" in figures


@pytest.mark.parametrize(
    ("options", "says", "code"),
    [
        (["--which", "--boxes", "b", "--detections", "voc"], "--which does not go with --boxes", 2),
        (["--boxes", "b"], "--boxes needs --detections", 2),
        (["--nms", "0.3"], "--nms needs --boxes", 2),
        (["--boxes", "missing.npy", "--detections", "voc"], "missing.npy", 66),
    ],
)
def test_what_does_not_go_together(made, model, run, options, says, code):
    assert says in run("predict", made[0], model, *options, code=code).stderr


def test_what_needs_bags(made, model, run, tmp_path):
    plain = tmp_path / "plain.svm"
    plain.write_text(made[0].read_text().replace("bag:", "qid:"))
    for command in (
        ("train", "--latent", plain, tmp_path / "m"),
        ("train", "--latent", "--bags", "ignore", made[0], tmp_path / "m"),
        ("predict", plain, model),
        ("eval", plain, "--model", model),
    ):
        assert "--bag-column of a table" in run(*command, code=65).stderr
    run("train", "-q", "--bags", "ignore", "--bound", "hinge", made[0], tmp_path / "rows.model")
    refused = run("predict", made[0], tmp_path / "rows.model", "--which", code=2).stderr
    assert "--which is for a model of bags" in refused
    assert run("train", "--start", "anneal", made[0], tmp_path / "m", code=2).stderr.endswith(
        "error: --start is for --latent\n"
    )
    assert "--pool" in run("train", "--latent", "--pool", "max", made[0], tmp_path / "m", code=2).stderr


@pytest.mark.slow
def test_one_against_the_rest(made, run, tmp_path, scored):
    _path, X, bags, _, _ = made
    labels = bags % 3
    data = write(tmp_path / "classes.svm", labels, bags, X)
    options = ("-q", "--latent", "--bound", "hinge", "-C", "1x")
    run("train", *options, "--one-vs-rest", data, tmp_path / "m")
    lines = run("predict", data, tmp_path / "m").stdout.splitlines()
    assert len(lines) == 60
    table = np.array([[float(score) for score in line.split("\t")] for line in lines])
    for at, label in enumerate((0, 1, 2)):
        alone = run("train", *options, data, tmp_path / "one", "--positive-label", label)
        assert alone.stdout == ""
        ranker = load_any_model(tmp_path / "m").ranker(label)
        assert ranker.coef.tolist() == load_model(tmp_path / "one").coef.tolist()
        np.testing.assert_allclose(table[:, at], of_bags(X @ ranker.coef + ranker.intercept, bags)[0], rtol=1e-12)
    assert "\n2 " in run("eval", data, "--model", tmp_path / "m", "-m", "AP").stdout
