"""Inputs that once made a reader fail, and damaged ones by a few seeds: a result, or the reader's own error.

``scripts/dev/fuzz`` goes on with other seeds; what it finds is put into tests/corpus/, a folder a target.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fuzz_readers import TARGETS, packed, unpacked

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_once_failed(path, tmp_path):
    assert TARGETS[path.parent.name].failure(path.read_bytes(), tmp_path) is None


def test_the_corpus_is_small():
    assert sum(path.stat().st_size for path in CORPUS.glob("*/*")) < 1 << 16


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_inputs(name, tmp_path):
    """Some of them are read, and some refused: the seeds are worth damaging."""
    target = TARGETS[name]
    seeds = target.seeds()
    refused = 0
    for at in range(40):
        chance = random.Random(f"{name} {at}")
        data = target.made(chance.choice(seeds), chance, seeds)
        place = tmp_path / str(at)
        place.mkdir()
        assert target.failure(data, place) is None
        place = tmp_path / f"{at}-again"
        place.mkdir()
        try:
            target.read(data, place)
        except target.errors:
            refused += 1
    assert 4 < refused < 40


def test_several_files_in_one():
    files = {"a": b"1 2\n", "b/c": b"", "d": b"\x00\n"}
    assert unpacked(packed(files)) == files
    assert unpacked(b"no length\nmore") == {}
