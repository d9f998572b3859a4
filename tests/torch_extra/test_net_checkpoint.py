"""``--net --checkpoint``: a training that was killed after any epoch and goes on comes to the same file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import apsvm._support.checkpoint
from apsvm.cli import run
from apsvm.torch import net_work

TRAININGS = {
    "a batch of all rows": "two --epochs 5",
    "some rows at a time": "two --epochs 5 --batch-rows 30 --loss smooth-ap",
    "queries": "queries --epochs 5 --batch-rows 20 --loss ndcg",
    "patience": "two --epochs 12 --patience 1 --batch-rows 20 --learning-rate 0.5",
    "cross-entropy alone": "two --epochs 4 --loss bce",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.where(X[:, 0] + rng.normal(size=120) > 0.5, 1, -1)
    dump_svmlight_file(X, y, str(folder / "two"), zero_based=False)
    dump_svmlight_file(X, y, str(folder / "queries"), zero_based=False, query_id=np.arange(120) // 10)
    return folder


@pytest.fixture
def writes(monkeypatch):
    """Every checkpoint that was written."""
    contents: list[bytes] = []

    def write(path, content):
        contents.append(content)
        Path(path).write_bytes(content)

    monkeypatch.setattr(apsvm._support.checkpoint, "write_whole", write)
    return contents


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_killed_after_any_epoch_it_goes_on_to_the_same_bytes(name, data, writes, tmp_path):
    source, *options = TRAININGS[name].split()
    command = ["train", "-q", "--net", "3", *options, str(data / source), str(tmp_path / "M")]
    kept = ["--checkpoint", str(tmp_path / "kept"), "--checkpoint-seconds", "0"]
    assert run(command) == 0
    expected = (tmp_path / "M").read_bytes()
    assert run([*command, *kept]) == 0
    assert (tmp_path / "M").read_bytes() == expected
    moments = list(writes)
    assert len(moments) >= 3
    for content in moments:
        (tmp_path / "kept").write_bytes(content)
        (tmp_path / "M").unlink()
        del writes[:]
        assert run([*command, *kept]) == 0
        assert len(writes) < len(moments)
        assert (tmp_path / "M").read_bytes() == expected
        assert not (tmp_path / "kept").exists()


def test_another_version_of_pytorch(data, writes, tmp_path, monkeypatch, capsys):
    command = ["train", "-q", "--net", "3", "--epochs", "3", str(data / "two"), str(tmp_path / "M")]
    command += ["--checkpoint", str(tmp_path / "kept"), "--checkpoint-seconds", "0"]
    assert run(command) == 0
    monkeypatch.setattr(net_work.torch, "__version__", "1.0")
    for content in (writes[0], writes[-1]):
        (tmp_path / "kept").write_bytes(content)
        assert run(command) == 65
        assert "PyTorch was" in capsys.readouterr().err
