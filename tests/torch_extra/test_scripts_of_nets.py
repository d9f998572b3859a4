"""The scripts that train networks run to their end on little data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import script_in_process

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name, *arguments, code=0):
    done = script_in_process(SCRIPTS / name, *arguments)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


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
