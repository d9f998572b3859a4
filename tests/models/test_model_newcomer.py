"""A kind of model that somebody adds is a class and an entry of ``KINDS``: the commands serve it as far as it goes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from command import in_process

from apsvm import load_any_model
from apsvm.models import reading
from apsvm.models.base import Ranker
from apsvm.models.header import Header


@dataclass(frozen=True, slots=True)
class NearestPoint(Ranker):
    """score(x) = −‖x − point‖ + shift."""

    kind: ClassVar[str] = "nearest-point"
    description: ClassVar[str] = "a ranker by the distance from a point"

    point: np.ndarray
    shift: float
    header: Header

    @property
    def n_columns(self):
        return self.point.size

    def _scores(self, X, threads):
        rows = np.asarray(X.todense()) if hasattr(X, "todense") else np.asarray(X)
        return self.shift - np.linalg.norm(rows - self.point, axis=1)

    def _fields(self):
        return {"shift": self.shift}

    def _arrays(self):
        return {"point": self.point}

    @classmethod
    def of_content(cls, content):
        return cls(content.array("point", content.columns), content.field("shift", float), content.header)


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setitem(reading.KINDS, NearestPoint.kind, NearestPoint)
    model = NearestPoint(np.array([1.0, 2.0]), 0.5, Header(loss="ap", metric="AP"))
    model.save(tmp_path / "m.model")
    assert load_any_model(tmp_path / "m.model").to_bytes() == model.to_bytes()
    (tmp_path / "rows.svm").write_text("1 1:1 2:2\n0 1:1\n1 2:1\n")
    return tmp_path


def run(*arguments):
    done = in_process([str(argument) for argument in arguments], env=os.environ)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_it_predicts_and_is_evaluated(path):
    code, out, _ = run("predict", path / "rows.svm", path / "m.model")
    np.testing.assert_allclose([float(line) for line in out.split()], [0.5, -1.5, 0.5 - 2**0.5])
    assert code == 0
    code, out, _ = run("eval", path / "rows.svm", "--model", path / "m.model", "--metric", "AP")
    assert (code, "1.0" in out) == (0, True)


def test_it_says_what_it_is(path):
    code, out, _ = run("info", path / "m.model")
    assert (code, NearestPoint.description in out) == (0, True)
    code, out, _ = run("info", "--json", path / "m.model")
    assert json.loads(out)["weights"]["nonzero"] == 2


@pytest.mark.parametrize("layout", ["json", "liblinear", "onnx"])
def test_what_it_cannot_do_is_refused_in_its_own_words(path, layout):
    if layout == "onnx":
        pytest.importorskip("onnx")
    code, _, err = run("export", "--format", layout, path / "m.model")
    assert code != 0
    assert NearestPoint.description in err
    code, _, err = run("predict", "--explain", "1", path / "rows.svm", path / "m.model")
    assert code != 0
    assert NearestPoint.description in " ".join(err.split())
