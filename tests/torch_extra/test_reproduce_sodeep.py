"""The paper's experiments run to their end, at settings that mean nothing: tables whole, figures drawn."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from command import script_in_process
from over import over
from sklearn.datasets import dump_svmlight_file, load_diabetes

import apsvm.torch
from apsvm.torch.checkpoint import read_checkpoint
from apsvm.torch.sorters.training import SorterSettings

CONFIGS = Path(__file__).parents[2] / "configs"
SCRIPT = Path(__file__).parents[2] / "scripts" / "reproduce" / "sodeep.py"
SHIPPED = Path(apsvm.torch.__file__).parent / "sorters" / "neighbours.safetensors"


def reproduce(*options):
    done = script_in_process(SCRIPT, "--quick", *options)
    assert done.returncode == 0, done.stderr
    tables = [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        for block in re.findall(r"(?:^\|.*\n)+", done.stdout, flags=re.MULTILINE)
    ]
    for heading, _, *rows in tables:
        assert rows
        assert {len(row) for row in rows} == {len(heading)}
    return [{row[0]: dict(zip(heading[1:], row[1:], strict=True)) for row in rows} for heading, _, *rows in tables]


@pytest.mark.slow
def test_sorters_and_unknown_parts(tmp_path):
    options = ("--sorters", SHIPPED, "--output", tmp_path)
    table, _, sweep, of_nets = reproduce("--parts", "table-1,figure-5,figure-6", *options)
    assert table["neighbours"]["L1"] == table["neighbours, as shipped"]["L1"]
    assert table["lstm"]["the paper's L1"] == ".0033"
    assert float(table["handcrafted(10)"]["L1"]) == pytest.approx(0.035, abs=0.02)
    assert set(sweep) == {"handcrafted(10)", "laplace(10)", "cnn", "lstm", "neighbours"}
    assert float(sweep["laplace(10)"]["mean error"]) < 0.02
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure-5.svg", "pieces", "tables.md"]
    assert {"AP hinge", "SoDeep lstm, AP", "SoDeep lstm, eq. 7", "SoDeep handcrafted, AP"} <= set(of_nets)
    trained = {path: path.stat().st_mtime_ns for path in (tmp_path / "pieces").rglob("*.pickle")}
    assert reproduce("--parts", "figure-6", *options) == [of_nets]
    assert trained == {path: path.stat().st_mtime_ns for path in (tmp_path / "pieces").rglob("*.pickle")}
    done = script_in_process(SCRIPT, "--parts", "table-9")
    assert done.returncode == 2
    assert "parts are table-1" in done.stderr


@pytest.mark.slow
def test_a_sorter_is_trained_as_configured(tmp_path):
    config, file = tmp_path / "small.toml", tmp_path / "small.safetensors"
    config.write_text('architecture = "cnn(3)"\nlength = 12\nbatch = 8\nsamples = 1e9\nhalve-every = 60\n')
    done = script_in_process(SCRIPT, "--quick", "--train", config, file, "--samples", 40)
    assert done.returncode == 0, done.stderr
    assert "all lists seen: L1 " in done.stdout
    header = read_checkpoint(file).header
    assert (header.architecture, header.arguments, header.length, header.seen) == ("cnn", {"depth": 3}, 12, 40)
    assert 0.0 < header.l1 < 1.0


@over("config", sorted(CONFIGS.glob("sodeep-*.toml")), ids=lambda path: path.stem)
def test_the_configurations_are_of_sorters(config):
    table = {name.replace("-", "_"): value for name, value in tomllib.loads(config.read_text()).items()}
    assert table.pop("samples") >= 24_000
    assert table.pop("judged_at", 100) == 100
    SorterSettings(**table)


@pytest.mark.slow
def test_tasks(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    dump_svmlight_file(X, y, str(tmp_path / "targets.svm"), zero_based=False)
    rng = np.random.default_rng(0)
    views, labels = rng.normal(size=(300, 8)), rng.random((300, 4)) < 0.3
    np.savez(
        tmp_path / "coco.npz", train_images=views[:200], train_captions=views[:200, ::-1], test_images=views[200:],
        test_captions=views[200:, ::-1],
    )  # fmt: skip
    np.savez(
        tmp_path / "voc.npz", train_features=views[:200], train_labels=labels[:200], test_features=views[200:],
        test_labels=labels[200:],
    )  # fmt: skip
    data = ("--regression", tmp_path / "targets.svm", "--coco", tmp_path / "coco.npz", "--voc", tmp_path / "voc.npz")
    spearman, recall, precision = reproduce("--parts", "table-2,table-3,table-4", *data, "--output", tmp_path)
    assert set(spearman) == {"squares", "L1", "SoDeep handcrafted", "SoDeep Laplace", "SoDeep neighbours"}
    assert all(0 <= float(value) <= 100 for row in recall.values() for value in row.values())
    assert precision["soft margin"]["minus the first"] == "+0.00 ± nan"  # of one split
