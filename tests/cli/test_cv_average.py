"""``apsvm cv`` where rankers on two feature maps see one half of what matters each: their average is trained."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from apsvm import APSVMClassifier, APSVMClassifierCV, load_model
from apsvm.models.averages import members_of
from apsvm.selection import choose
from apsvm.selection import portfolio as module
from apsvm.selection import references as beside
from apsvm.selection.candidates import Entry
from apsvm.trainers.fitting import FeatureOptions

PIECEWISE, PRODUCTS = (FeatureOptions(scale="standard", features=name) for name in ("piecewise", "products"))
MAPS = {"piecewise", "products"}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Both maps, all entries on all rows; of the two on broken lines the better one counts."""
    entries = [
        Entry("auc", {"bound": "hinge"}, PIECEWISE, multiples=(0.1, 1.0)),
        Entry("ap", {"bound": "hinge"}, PIECEWISE, multiples=(0.1, 1.0)),
        Entry("ap", {"bound": "hinge"}, PRODUCTS, multiples=(0.1, 1.0)),
    ]
    monkeypatch.setattr(module, "portfolio", lambda *_: entries)
    monkeypatch.setattr(choose, "LEAST", 1.0)
    monkeypatch.setattr(module, "LEAST", 1.0)
    monkeypatch.setattr(beside, "LOGISTIC_C", (1.0,))
    monkeypatch.setattr(beside, "MOST_DENSE_VALUES", 0)


@pytest.fixture
def data(rng, tmp_path, write_rows):
    """A product of two features, and a wave of a third."""
    X = rng.normal(size=(450, 3))
    score = X[:, 0] * X[:, 1] + 1.2 * np.cos(3.0 * X[:, 2]) + 0.3 * rng.normal(size=450)
    return write_rows(tmp_path / "rows.svm", X, np.where(score > 1.2, 1.0, -1.0))


@pytest.mark.slow
def test_the_average_is_chosen_and_each_member_proved(data, run, tmp_path):
    model, results = tmp_path / "m", tmp_path / "all.json"
    done = run("cv", data, "--folds", 4, "-j", 1, "-o", model, "--json", results)
    assert "average of the best on 2 feature maps, chosen" in done.stdout
    rows = done.stdout.splitlines()
    (row,) = [row for row in rows if row.endswith("average of the best on 2 feature maps, chosen")]
    assert [("the best alone" in line) for line in rows].count(True) == 1
    assert [line.endswith("chosen") for line in rows].count(True) == 1
    written = json.loads(results.read_text())
    average = written["average"]["metrics"]["AP"]
    assert set(written["average"]["features"]) == MAPS
    assert len(average["folds"]) == 4
    assert float(row.split(" ± ")[0].split()[-1]) == pytest.approx(average["mean"], abs=1e-4)
    assert average["mean"] > max(one["metrics"]["AP"]["mean"] for one in written["settings"]) + 0.02
    assert not any(one["chosen"] for one in written["settings"])

    ranker = load_model(model)
    assert set(ranker.header.features.map.split("+")) == {"piecewise:4", "products"}
    assert set(ranker.header.selection["average"]) == MAPS
    assert ranker.header.selection["mean"] == average["mean"]
    estimate = written["estimate"]["AP"]
    assert ranker.header.selection["estimate"] == estimate == pytest.approx(average["mean"], abs=0.05)
    assert rows[-1].startswith(f"expected on new rows: AP {estimate:.4f} (")
    assert ranker.header.threshold.held_out == "4 folds of rows"
    assert all(one.header.certificate.reached for one in members_of(ranker))
    told = " ".join(run("info", model).stdout.split())
    assert "average of 2 rankers, each with its own certificate" in told
    estimator = APSVMClassifierCV.from_model(ranker)
    assert estimator.certificates_ == {one.header.features.map: one.header.certificate for one in members_of(ranker)}
    with pytest.raises(ValueError, match="APSVMClassifierCV"):
        APSVMClassifier.from_model(ranker)
    assert "member 2" in told

    proved = run("verify", model, data).stdout
    assert [f"member       {number} of 2" in proved for number in (1, 2)] == [True, True]
    assert proved.count("holds: no weights have an objective lower") == 2
    listed = json.loads(run("verify", model, data, "--json").stdout)["certificates"]
    assert {(one["member"], one["outcome"]) for one in listed} == {(1, "holds"), (2, "holds")}
    second = ranker.header.members[1]
    bounds = second.header["certificate"]
    forged = {**second.header, "certificate": {**bounds, "dual": bounds["primal"], "gap": 0.0}}
    members = (ranker.header.members[0], replace(second, header=forged))
    ranker.with_header(replace(ranker.header, members=members)).save(tmp_path / "forged")
    assert "member       2 of 2" in run("verify", tmp_path / "forged", data, code=4).stdout


@pytest.mark.slow
def test_the_model_is_used_as_any_other(data, run, tmp_path):
    model, scores = tmp_path / "m", tmp_path / "scores"
    run("cv", data, "--folds", 3, "-j", 1, "-q", "-o", model)
    run("predict", data, model, scores)
    scored = np.loadtxt(scores)
    explained = run("predict", data, model, "--explain", 50).stdout.splitlines()
    for line, score in zip(explained[:20], scored[:20], strict=False):
        parts = [float(part.removesuffix(")").rpartition(" (")[2]) for part in line.split("\t")[1:]]
        assert sum(parts) == pytest.approx(score, abs=2e-3 * sum(map(abs, parts)))
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    run("export", model, tmp_path / "m.onnx", "--format", "onnx")
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    X = np.zeros((450, 3))
    for at, line in enumerate(data.read_text().splitlines()):
        for pair in line.split()[1:]:
            index, value = pair.split(":")
            X[at, int(index) - 1] = float(value)
    (again, *_) = session.run(["score"], {"X": X})
    np.testing.assert_allclose(again, scored, atol=1e-9)


@pytest.mark.slow
def test_none_is_made_where_one_alone_is_better(run, rng, tmp_path, write_rows, monkeypatch):
    monkeypatch.setattr(choose, "LEAST", 0.02)
    X = rng.normal(size=(300, 3))
    score = np.cos(3.0 * X[:, 2]) + 0.1 * rng.normal(size=300)
    path = write_rows(tmp_path / "wave.svm", X, np.where(score > 0.8, 1.0, -1.0))
    assert "average" not in run("cv", path, "--folds", 3, "-j", 1, "-o", tmp_path / "m").stdout
    assert load_model(tmp_path / "m").header.members == ()
