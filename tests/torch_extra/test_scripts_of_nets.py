"""The scripts that train networks run to their end on little data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import script_in_process
from sklearn.datasets import dump_svmlight_file

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name, *arguments, code=0):
    done = script_in_process(SCRIPTS / name, *arguments)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.mark.slow
def test_the_study(tmp_path, rng):
    for name in ("one", "two"):
        X = rng.normal(size=(120, 3))
        dump_svmlight_file(X, np.where(X[:, 0] > 0.5, 1, -1), str(tmp_path / f"{name}.svm"), zero_based=False)
    results = tmp_path / "results.jsonl"
    arguments = [tmp_path / "one.svm", tmp_path / "two.svm", "--splits", 1, "--epochs", 2, "--json", results]
    table = script("study/nets.py", *arguments)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert len(lines) == 2 * 13
    assert all(0.0 < line["ap"] <= 1.0 for line in lines)
    mean = np.mean([line["ap"] for line in lines if (line["set"], line["method"]) == ("one", "linear")])
    assert f"{mean:.4f}" in table
    assert script("study/nets.py", *arguments) == table  # nothing is done again


@pytest.mark.slow
def test_section_4_3_on_digits_and_on_what_is_no_cifar10(tmp_path):
    table = script("reproduce/quicksort_2018_deep.py", "--seeds", 1, "--epochs", 1, "--rows", 100, "--output", tmp_path)
    of_AP, _ = table.split("test nDCG")
    rows = {line.split("|")[1].strip(): line for line in of_AP.splitlines() if line.startswith("|")}
    assert {"BCE", "more BCE", "0-1", "AP hinge", "NDCG hinge", "AP ramp", "Smooth-AP"} <= set(rows)
    assert "85.28" in rows["AP hinge"]
    said = script("reproduce/quicksort_2018_deep.py", "--cifar10", tmp_path, code=2)
    assert "data_batch_1.bin" in said
    assert "Traceback" not in said
    (tmp_path / "data_batch_1.bin").write_bytes(b"x" * 100)
    assert "records of 3073 bytes" in script("reproduce/quicksort_2018_deep.py", "--cifar10", tmp_path, code=1)
    rng = np.random.default_rng(0)
    for name in [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]:
        records = rng.integers(0, 256, size=(20, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(20) % 10
        (tmp_path / name).write_bytes(records.tobytes())
    table = script(
        "reproduce/quicksort_2018_deep.py", "--cifar10", tmp_path, "--seeds", 1, "--epochs", 1, "--output", tmp_path
    )
    assert table.startswith("CIFAR-10")
