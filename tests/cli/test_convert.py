"""``apsvm convert``, and that every command takes what it writes, and saved matrices, in the place of text."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm.cli import run
from apsvm.data import open_folder, read_svmlight

N, D = 60, 8


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def X(rng: np.random.Generator) -> Any:
    X = np.where(rng.random((N, D)) < 0.5, rng.standard_normal((N, D)), 0)
    X[0] = 1  # every feature is seen
    return X


def write_text(X: Any, *, zero_based: bool = False, qid: bool = False) -> None:
    with open("data.svm", "w") as stream:
        for i, row in enumerate(X):
            label = 1 if row.sum() + 0.3 * (-1) ** i > 0 else -1
            entries = " ".join(f"{j + (not zero_based)}:{x!r}" for j, x in enumerate(row.tolist()) if x)
            stream.write(f"{label} {f'qid:{i // 6} ' if qid else ''}{entries}\n")


def model_of(path: str) -> tuple[Any, Any]:
    """The header without the name of the data's file, and the weights."""
    from apsvm.models.reading import load_model

    model = load_model(path)
    header = replace(model.header, data=replace(model.header.data, file=""))
    return header, model.coef.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("qid", [False, True])
@pytest.mark.parametrize("zero_based", [False, True])
def test_train_predict_eval_on_a_folder(
    zero_based: bool, qid: bool, X: Any, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_text(X, zero_based=zero_based, qid=qid)
    base = ["--zero-based"] if zero_based else []
    assert run(["convert", "-q", *base, "data.svm", "data.dir"]) == 0
    assert isinstance(open_folder("data.dir").X, sp.csr_array)
    assert run(["train", "-q", *base, "data.svm", "text.model"]) == 0
    assert run(["train", "-q", "data.dir", "folder.model"]) == 0  # the folder knows its base
    assert model_of("folder.model") == model_of("text.model")
    answers = []
    for data in ("data.svm", "data.dir"):
        assert run(["predict", data, "text.model", "scores"]) == 0
        capfdbinary.readouterr()
        assert run(["eval", data, "--model", "text.model"]) == 0
        assert run(["eval", data, "--scores", "scores"]) == 0
        answers.append((Path("scores").read_bytes(), capfdbinary.readouterr().out))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("kind", ["npz", "npy"])
def test_train_predict_eval_on_a_matrix(kind: str, X: Any, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_text(X, qid=True)
    dataset = read_svmlight("data.svm")
    assert dataset.groups is not None
    np.savetxt("labels", dataset.relevance)
    np.save("groups.npy", dataset.groups)
    if kind == "npz":
        sp.save_npz("x.npz", dataset.X)
    else:
        np.save("x.npy", dataset.X.toarray())
    beside = ["--labels", "labels", "--groups", "groups.npy"]
    assert run(["train", "-q", "data.svm", "text.model"]) == 0
    assert run(["train", "-q", f"x.{kind}", "matrix.model", *beside]) == 0
    if kind == "npz":
        assert model_of("matrix.model")[1] == model_of("text.model")[1]
    for data, more in (("data.svm", []), (f"x.{kind}", beside)):
        assert run(["predict", data, "text.model", f"{kind if more else 'text'}.scores", *more]) == 0
    np.testing.assert_allclose(np.loadtxt(f"{kind}.scores"), np.loadtxt("text.scores"), rtol=1e-12)
    capfdbinary.readouterr()
    for data, more in (("data.svm", []), (f"x.{kind}", beside)):
        assert run(["eval", data, "--scores", "text.scores", "--json", *more]) == 0
    both = capfdbinary.readouterr().out.decode().split("\n}\n")
    assert both[0] == both[1]
    assert json.loads(both[0] + "}")["queries"] == 10
    assert run(["convert", "-q", f"x.{kind}", "x.dir", *beside]) == 0
    assert run(["eval", f"x.{kind}", "--scores", "text.scores"]) == 65
    assert b"name their file by --labels" in capfdbinary.readouterr().err


def test_a_base_that_does_not_fit(X: Any, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_text(X)
    assert run(["convert", "-q", "data.svm", "one.dir"]) == 0
    assert run(["train", "-q", "data.svm", "one.model"]) == 0
    write_text(X, zero_based=True)
    assert run(["convert", "-q", "--zero-based", "data.svm", "zero.dir"]) == 0
    assert run(["train", "-q", "--zero-based", "data.svm", "zero.model"]) == 0
    for arguments in (
        ["predict", "zero.dir", "one.model"],
        ["predict", "one.dir", "zero.model"],
        ["train", "--zero-based", "one.dir", "x.model"],
        ["train", "--one-based", "zero.dir", "x.model"],
        ["convert", "--zero-based", "one.dir", "x.dir"],
    ):
        capfdbinary.readouterr()
        assert run(arguments) == 65, arguments
        assert b"features that count from" in capfdbinary.readouterr().err
    assert run(["predict", "zero.dir", "zero.model"]) == 0


def test_places(X: Any, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_text(X)
    os.mkdir("precious")
    assert run(["convert", "data.svm"]) == 2
    for option in ("--max-features", "--threads"):
        assert run(["convert", "data.svm", "out", option, str(10**20)]) == 2
    assert run(["convert", "data.svm", "data.svm"]) == 2
    assert run(["convert", "data.svm", "precious"]) == 74
    assert run(["convert", "none.svm", "out"]) == 66
    assert run(["convert", "-q", "data.svm", "out/"]) == 0
    before = open_folder("out").fingerprint
    Path("bad.svm").write_text("1 1:x\n")
    assert run(["convert", "bad.svm", "out"]) == 65
    assert open_folder("out").fingerprint == before
    assert run(["convert", "out", "out"]) == 2
    assert run(["convert", "-q", "out/", "copy"]) == 0
    assert open_folder("copy").fingerprint == before
    assert sorted(os.listdir()) == ["bad.svm", "copy", "data.svm", "out", "precious"]
    assert b"internal error" not in capfdbinary.readouterr().err
