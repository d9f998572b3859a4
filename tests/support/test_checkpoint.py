"""The file of a checkpoint: what goes in comes out, and anything else is refused."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import pytest

from apsvm._support import checkpoint as module
from apsvm._support.checkpoint import Checkpoint, CheckpointError, _shown
from apsvm._support.work import of_saved

TRAINING = {"the command": "train", "--loss": "ap", "-C": [1.0, 2.0]}
STATE = {
    "z": 1,
    "a": 0.1,
    "inf": math.inf,
    "none": None,
    "text": "±",
    "list": [1, [2.5, "x"], {"b": True, "a": False}],
    "w": np.array([0.1, -0.0, 5e-324]),
    "F": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "which": np.array([True, False]),
    "large": 2**100,
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint"


def written(path, **more):
    checkpoint = Checkpoint(path, seconds=0, **more)
    checkpoint.of(TRAINING)
    checkpoint.strand.piece("a run").reached(lambda: STATE)
    return checkpoint


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes("A") == b.tobytes("A") and a.strides == b.strides
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def test_what_is_stored_comes_back_bit_by_bit_and_in_order(path):
    written(path)
    again = Checkpoint(path)
    assert again.resumed
    again.of(TRAINING)
    assert same(STATE, again.strand.piece("a run").state)


class Colour(StrEnum):
    RED = "red"


class Bounds(NamedTuple):
    low: float
    high: float


@dataclass
class Result:
    w: np.ndarray
    colour: Colour
    bounds: Bounds
    spans: dict[str, Bounds]
    parts: list[Bounds]
    layers: tuple[Bounds, ...]
    trouble: str | None = None
    inner: Result | None = None


def test_results_come_back_as_what_they_were(path):
    bounds = Bounds(1.0, math.inf)
    plain = Result(np.arange(3.0), Colour.RED, bounds, {"a": bounds}, [bounds], (bounds, bounds))
    whole = replace(plain, inner=plain, trouble="x")
    checkpoint = Checkpoint(path, seconds=0)
    checkpoint.of(TRAINING)
    checkpoint.strand.piece("a run").done(whole)
    again = of_saved(Result, Checkpoint(path).strand.piece("a run").result)
    for one, other in ((whole, again), (plain, again.inner)):
        np.testing.assert_array_equal(one.w, other.w)
        names = ("colour", "bounds", "spans", "parts", "layers", "trouble")
        assert [getattr(one, name) for name in names] == [getattr(other, name) for name in names]
        assert all(type(getattr(one, name)) is type(getattr(other, name)) for name in names)
    assert again.inner.inner is None
    assert of_saved(Result, whole) is whole, "what comes from no file is what it was"


def test_it_is_removed(path):
    checkpoint = written(path)
    checkpoint.remove()
    checkpoint.remove()
    assert not path.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"--loss": "ndcg"}, "--loss was ap and is ndcg. Remove it"),
        ({"--loss": None}, "--loss was ap and is not said"),
        ({"--seed": 1}, "--seed was not said and is 1"),
        ({"-C": [1.0], "the command": "cv"}, r"-C was \[1.0, 2.0\] and is \[1.0\]; the command was train and is cv"),
    ],
)
def test_another_trainings_is_refused_by_what_differs(path, changes, words):
    written(path)
    training = {name: value for name, value in {**TRAINING, **changes}.items() if value is not None}
    with pytest.raises(CheckpointError, match=words):
        Checkpoint(path).of(training)


def test_every_truncation_and_changed_byte_is_noticed(path):
    written(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.permutation(len(content))[:300].tolist():
        for damaged in (content[:at], content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :]):
            path.write_bytes(damaged)
            with pytest.raises(CheckpointError, match=r"no checkpoint, or a damaged one .*: remove it to begin anew"):
                Checkpoint(path)
    path.write_bytes(content)
    Checkpoint(path).of(TRAINING)


@pytest.mark.parametrize(
    "header",
    [[], {}, {"kind": "linear"}, {"kind": "checkpoint", "schema": 99}, {"kind": "checkpoint", "schema": 1}]
    + [{"kind": "checkpoint", "schema": 1, "training": {}, "strands": strands} for strands in ([], 3, {"array": 0})]
    + [{"kind": "checkpoint", "schema": 1, "training": {}, "strands": {"mapping": 3}}]
    + [{"kind": "checkpoint", "schema": 1, "training": {}, "strands": {"mapping": [1, 2]}}],
)
def test_other_files_of_the_same_container_are_refused(path, header):
    path.write_bytes(module.sealed(header, {}))
    with pytest.raises(CheckpointError, match=r"no checkpoint|a checkpoint of another version"):
        Checkpoint(path)


def test_it_is_written_at_most_so_often_and_when_the_work_stops(path, monkeypatch):
    now, stopping = [100.0], []
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    checkpoint = Checkpoint(path, seconds=30, is_stopping=lambda: bool(stopping))
    checkpoint.of(TRAINING)
    piece = checkpoint.strand.piece("a run")
    states = iter(range(100))
    for seconds, written in ((0, False), (29, False), (1, True), (5, False), (25, True)):
        now[0] += seconds
        path.unlink(missing_ok=True)
        piece.reached(lambda: {"at": next(states)})
        assert path.exists() is written
    assert next(states) == 5
    path.unlink()
    stopping.append(1)
    piece.reached(lambda: {"at": 9})
    assert Checkpoint(path).strand.piece("a run").state == {"at": 9}


def test_what_prevents_the_writing_is_told_once_and_prevents_nothing_else(tmp_path):
    told = []
    folder = tmp_path / "folder"
    folder.mkdir()
    checkpoint = written(folder / "checkpoint", cannot_write=told.append)
    os.unlink(folder / "checkpoint")
    folder.rmdir()
    piece = checkpoint.strand.piece("another")
    for _ in range(3):
        piece.reached(dict)
    assert len(told) == 1
    assert isinstance(told[0], FileNotFoundError)


@pytest.mark.parametrize(("length", "text"), [(60, "x" * 60), (61, "x" * 57 + "…")])
def test_long_values_are_cut_in_messages(length, text):
    assert _shown("x" * length) == text
    assert _shown(None) == "not said"
