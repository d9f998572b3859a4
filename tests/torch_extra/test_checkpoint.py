"""A sorter's file: read back bit by bit, no byte of it may change, and it can run nothing."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import torch
from over import over

import apsvm.torch
from apsvm.torch.checkpoint import (
    Checkpoint,
    CheckpointError,
    SorterHeader,
    load_sorter,
    read_checkpoint,
    sealed,
    sorter_of_bytes,
    write_checkpoint,
)
from apsvm.torch.sorters import SorterError, make_sorter
from apsvm.torch.sorters.quality import judge_sorter

SCORES = torch.linspace(-2, 3, 40).sin().reshape(1, 40)


def header_of(sorter, **fields):
    known = {
        "architecture": sorter.architecture, "arguments": sorter.arguments(), "length": sorter.length,
        "trained_length": 40, "trained_longest": None, "seen": 12, "l1": 0.25, "climb": 0.5, "seed": 3,
    }  # fmt: skip
    return SorterHeader(**{**known, **fields})


@pytest.fixture(scope="module")
def small():
    """A small sorter and its file's content."""
    sorter = make_sorter("neighbours")
    return sorter, sealed(header_of(sorter).to_json(), sorter.state_dict())


@pytest.mark.parametrize("name", ["neighbours", "cnn(3)", "lstm", "laplace(5)"])
def test_round_trip(name, tmp_path):
    sorter = make_sorter(name, 40).eval()
    header = header_of(sorter)
    write_checkpoint(tmp_path / "s.safetensors", sorter, header)
    checkpoint = read_checkpoint(tmp_path / "s.safetensors")
    assert isinstance(checkpoint, Checkpoint)
    assert checkpoint.header == header
    assert checkpoint.sorter.name == sorter.name
    assert torch.equal(checkpoint.sorter(SCORES), sorter(SCORES))
    assert not any(parameter.requires_grad for parameter in checkpoint.sorter.parameters())
    assert [path.name for path in tmp_path.iterdir()] == ["s.safetensors"]


def test_the_same_sorter_gives_the_same_bytes(small):
    sorter, content = small
    assert sealed(header_of(sorter).to_json(), sorter.state_dict()) == content


def test_every_changed_byte_is_found(small):
    _, content = small
    for at in [*range(0, len(content), 5), *range(200)]:
        for flip in (1, 0x80):
            damaged = bytearray(content)
            damaged[at] ^= flip
            with pytest.raises(CheckpointError, match=r"^s: (damaged|not a file|its header)"):
                sorter_of_bytes(bytes(damaged), "s")


def test_every_cut_is_found(small):
    _, content = small
    for end in [*range(0, len(content), 7), len(content) - 1]:
        with pytest.raises(CheckpointError):
            sorter_of_bytes(content[:end], "s")
    with pytest.raises(CheckpointError, match="checksum"):
        sorter_of_bytes(content + b"\0", "s")


@over(
    "content",
    [b"", b"PK\3\4", b"\xff" * 100, b"\0" * 100, pickle.dumps({"a": 1}), b"[]", (2).to_bytes(8, "little") + b"{}",
     (10**18).to_bytes(8, "little") + b"{}"],
    ids=str,
)  # fmt: skip
def test_what_is_no_such_file(content):
    with pytest.raises(CheckpointError, match="damaged or not a sorter"):
        sorter_of_bytes(content, "s")


@over(
    ("change", "message"),
    [
        ({"architecture": "nope"}, "unknown sorter 'nope'"),
        ({"architecture": 3}, "'architecture' is 3"),
        ({"kind": "training"}, "no sorter but 'training'"),
        ({"length": -1, "architecture": "lstm"}, "makes no sorter"),
        ({"length": 10**15, "architecture": "lstm"}, "makes no sorter|is not as its header says"),
        ({"length": 10**9, "architecture": "lstm"}, "makes no sorter|is not as its header says"),
        ({"length": True}, "'length' is True"),
        ({"arguments": {"depth": 3}}, "makes no sorter"),
        ({"arguments": {"depth": "3"}}, "expected numbers"),
        ({"arguments": [3]}, "'arguments' is"),
        ({"architecture": "laplace"}, "is not as its header says"),
        ({"seen": None}, "'seen' is None"),
        ({"L1": "small"}, "'L1' is 'small'"),
    ],
)
def test_headers_that_do_not_fit(change, message, small):
    sorter, _ = small
    content = sealed({**header_of(sorter).to_json(), **change}, sorter.state_dict())
    with pytest.raises(CheckpointError, match=message):
        sorter_of_bytes(content, "s")


def test_missing_fields_and_tensors(small):
    sorter, _ = small
    fields = header_of(sorter).to_json()
    for name in fields:
        content = sealed({key: value for key, value in fields.items() if key != name}, sorter.state_dict())
        with pytest.raises(CheckpointError, match=f"{name}|None"):
            sorter_of_bytes(content, "s")
    state = sorter.state_dict()
    for tensors in ({}, dict(list(state.items())[1:]), {**state, "more": torch.ones(2)},
                    {**state, "net.0.bias": torch.ones(32, dtype=torch.float64)}):  # fmt: skip
        with pytest.raises(CheckpointError, match="is not as its header says"):
            sorter_of_bytes(sealed(fields, tensors), "s")


def test_safetensors_itself_reads_it(small, tmp_path):
    from safetensors import safe_open
    from safetensors.torch import load

    sorter, content = small
    (tmp_path / "s").write_bytes(content)
    with safe_open(tmp_path / "s", "pt") as file:
        header = json.loads(file.metadata()["header"])
    assert header["architecture"] == "neighbours"
    assert len(header["sha256"]) == 64
    assert load(content).keys() == sorter.state_dict().keys()


def test_names_that_load(tmp_path):
    assert load_sorter("laplace(20)").arguments() == {"lam": 20.0}
    assert load_sorter("Handcrafted").arguments() == {"lam": 10.0}
    with pytest.raises(SorterError, match="must be trained first"):
        load_sorter("lstm")
    with pytest.raises(SorterError, match="nor is there a file"):
        load_sorter("latplace")
    with pytest.raises(FileNotFoundError):
        load_sorter(tmp_path / "none.safetensors")
    path = tmp_path / "mine"
    write_checkpoint(path, make_sorter("neighbours"), header_of(make_sorter("neighbours")))
    assert load_sorter(str(path)).name == "neighbours"


@pytest.mark.slow
def test_the_sorter_that_the_package_comes_with():
    header = read_checkpoint(Path(apsvm.torch.__file__).parent / "sorters" / "neighbours.safetensors").header
    assert header.l1 < 0.002
    assert header.climb > 0.95
    sorter = load_sorter("neighbours")
    for length, l1, climb in ((10, 0.016, 0.9), (50, 0.004, 0.9)):
        quality = judge_sorter(sorter, length, lists=50)
        assert quality.l1 < l1
        assert quality.climb > climb
    assert judge_sorter(sorter, 200, lists=50, climb_steps=3).l1 < 0.0015
