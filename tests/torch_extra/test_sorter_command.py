"""``apsvm sorter train``, ``eval`` and ``info``."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from over import over

from apsvm.cli import program
from apsvm.cli import run as command_line
from apsvm.torch.checkpoint import load_sorter, read_checkpoint
from apsvm.torch.score_lists import KINDS
from apsvm.torch.sorters import SORTERS
from apsvm.torch.sorters.training import SorterTraining

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("sodeep-*.toml"))
SMALL = ("--architecture", "gru-sum", "--length", "5", "--batch", "8")


@pytest.fixture
def here(tmp_path, monkeypatch, capfd):
    """here(argument, ..., code=0) → (stdout, stderr), run in an empty folder; sorters are judged at a glance."""
    monkeypatch.chdir(tmp_path)
    # Not by its name, which is also that of the command in it.
    monkeypatch.setattr(import_module("apsvm.cli.commands.sorter"), "JUDGED_ON", 20)
    monkeypatch.setattr("apsvm.torch.sorters.quality.STEPS", 2)
    # Two steps climb nowhere.
    monkeypatch.setattr("apsvm.torch.sorters.quality.CLIMB_OF_CHANCE", -2.0)

    def call(*arguments, code=0):
        capfd.readouterr()
        found = command_line(["sorter", *map(str, arguments)])
        out, err = capfd.readouterr()
        assert found == code, f"exit code {found}, not {code}: {err}"
        assert "Traceback" not in err
        return out, err

    return call


def test_train_writes_a_sorter_and_its_training(here):
    out, err = here("train", *SMALL, "--samples", "1e2", "s.safetensors")
    assert out == ""
    assert "all lists seen: 104 lists in 13 steps" in err
    assert "climb" in err
    assert sorted(os.listdir()) == ["s.safetensors", "s.safetensors.training"]
    header = read_checkpoint("s.safetensors").header
    assert (header.architecture, header.trained_length, header.seen, header.seed) == ("gru-sum", 5, 104, 0)
    assert 0 < header.l1 < 1
    assert -1 <= header.climb <= 1
    assert header.length is None


def test_a_gradient_that_leads_nowhere_is_said(here, monkeypatch):
    monkeypatch.setattr("apsvm.torch.sorters.quality.CLIMB_OF_CHANCE", 0.1)
    _, err = here("train", "-q", *SMALL, "--samples", 8, "s")
    assert re.fullmatch(r"apsvm: warning: s: its climb is -?0\.\d+: its gradient leads nowhere, .*\n", err)


def test_resume_is_one_run(here):
    here("train", "-q", *SMALL, "--samples", 160, "--seed", 3, "whole")
    out, err = here("train", "-q", *SMALL, "--samples", 80, "--seed", 3, "half")
    assert out + err == ""
    here("train", "-q", "--architecture", "gru-sum", "--samples", 160, "--resume", "half")
    assert Path("half").read_bytes() == Path("whole").read_bytes()
    assert Path("half.training").read_bytes() == Path("whole.training").read_bytes()


def test_resume_refuses_other_settings(here):
    here("train", "-q", *SMALL, "--samples", 8, "s")
    before = Path("s").read_bytes()
    for other in (("--length", 6), ("--batch", 9), ("--seed", 1), ("--halve-every", 5), ("--learning-rate", 0.1)):
        _, err = here("train", "--architecture", "gru-sum", "--samples", 80, "--resume", *other, "s", code=2)
        assert f"was begun with {other[0]}" in err
    _, err = here("train", "--architecture", "mlp", "--samples", 80, "--resume", "s", code=2)
    assert "was begun with --architecture gru-sum, not mlp" in err
    _, err = here("train", *SMALL, "--samples", 80, "s", code=2)
    assert "--resume goes on from it" in err
    assert Path("s").read_bytes() == before
    here("train", *SMALL, "--samples", 80, "--resume", "never", code=66)
    Path("bad.training").write_bytes(b"no")
    here("train", *SMALL, "--samples", 80, "--resume", "bad", code=65)


def test_time_limit(here):
    _, err = here("train", *SMALL, "--time-limit", 0, "s")  # nothing more was asked for
    assert "time limit: 0 lists in 0 steps" in err
    here("train", *SMALL, "--time-limit", 0, "--samples", 100, "t", code=3)
    assert read_checkpoint("t").header.seen == 0


def test_log(here):
    here("train", "-q", *SMALL, "--samples", 400, "--log", "log", "s")
    records = [json.loads(line) for line in Path("log").read_text().splitlines()]
    assert [record["event"] for record in records] == ["start", "batches", "batches", "batches", "end"]
    assert records[0]["architecture"] == "gru-sum"
    assert records[2]["seen"] == 320
    from apsvm._support.log import read_log

    assert len(read_log("log").records) == 5


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_by_a_signal(number, code, tmp_path):
    script = Path(sys.executable).with_name("apsvm")
    with subprocess.Popen(
        [script, "sorter", "train", "-v", *SMALL, "--samples", "1e9", tmp_path / "s"],
        stderr=subprocess.PIPE,
        encoding="utf-8",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        for line in process.stderr:
            if line.split()[:1] == ["3"]:
                break
        process.send_signal(number)
        process.stderr.read()
        assert process.wait(timeout=60) == code
    seen = read_checkpoint(tmp_path / "s").header.seen
    assert seen >= 3 * 20 * 8
    assert SorterTraining.resumed(tmp_path / "s.training").seen == seen


def test_info(here):
    here("train", "-q", "--architecture", "cnn(3)", "--length", 9, "--batch", 4, "--samples", 8, "s")
    out, _ = here("info", "s")
    facts = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert facts["sorter"] == "cnn(3)"
    assert facts["takes"] == "lists of 9 scores"
    header = json.loads(here("info", "s", "--json")[0])
    assert header["arguments"] == {"depth": 3}
    out, _ = here("info", "neighbours")
    assert "1,574" in out
    assert "lists of 3 to 1,000 scores" in out
    assert "3 to 200 scores" in out


def test_info_of_what_is_no_sorter(here):
    here("info", "none", code=66)
    Path("empty").write_bytes(b"")
    Path("text").write_text("1 1:2\n")
    for name in ("empty", "text"):
        _, err = here("info", name, code=65)
        assert name in err
    here("train", "-q", *SMALL, "--samples", 8, "s")
    _, err = here("info", "s.training", code=65)
    assert "holds no sorter but 'training'" in err
    content = bytearray(Path("s").read_bytes())
    content[-1] ^= 4
    Path("s").write_bytes(content)
    assert "checksum" in here("eval", "s", code=65)[1]


@pytest.mark.slow
def test_eval(here):
    here("train", "-q", "--architecture", "mlp", "--length", 7, "--batch", 4, "--samples", 8, "m")
    out, _ = here("eval", "m", "neighbours", "laplace(20)", "--samples", 50, "--length", 7)
    heading, *rows = out.splitlines()
    assert all(kind in heading for kind in KINDS)
    assert [row.split()[:2] for row in rows] == [["m", "7"], ["neighbours", "7"], ["laplace(20)", "7"]]
    results = json.loads(here("eval", "handcrafted", "m", "--samples", 50, "--json")[0])
    assert [(one["sorter"], one["length"]) for one in results] == [
        *(("handcrafted", length) for length in (10, 50, 100, 1000)), ("m", 7),
    ]  # fmt: skip
    assert all(set(one["L1_by_kind"]) == set(KINDS) for one in results)
    assert all(0 < one["L1"] < 0.05 for one in results[:4])
    same = json.loads(here("eval", "handcrafted", "--samples", 50, "--length", "10,50", "--json")[0])
    assert [one["L1"] for one in same] == [one["L1"] for one in results[:2]]
    assert "takes lists of 7 only" in here("eval", "m", "--length", "7,8", code=2)[1]
    assert "3 to 1,000 scores, found 2" in here("eval", "neighbours", "--length", "2", code=2)[1]


@over(
    ("arguments", "message"),
    [
        (("train", "--architecture", "lstm", "s"), "Error: give --samples or --time-limit: how long to train"),
        (("train", "--samples", "8", "s"), "Error: Missing option '--architecture'."),
        (
            ("train", *SMALL, "--samples", "8", "-"),
            "Error: the training stands beside OUTPUT: it cannot be standard output",
        ),
        (
            ("train", *SMALL, "--samples", "8", "--log", "s", "s"),
            "Error: the log and the sorter cannot go to the same place",
        ),
        (
            ("train", *SMALL, "--samples", "8", "--log", "s.training", "s"),
            "Error: the log and the sorter cannot go to the same place",
        ),
        (
            ("train", *SMALL, "--samples", "0", "s"),
            "Error: Invalid value for '--samples': expected a finite number of at least 1 and of at most "
            "1e+15, found '0'",
        ),
        (
            ("train", *SMALL, "--samples", "1.5", "s"),
            "Error: Invalid value for '--samples': expected a whole number, found '1.5'",
        ),
        (
            ("train", *SMALL, "--samples", "nan", "s"),
            "Error: Invalid value for '--samples': expected a finite number of at least 1 and of at most "
            "1e+15, found 'nan'",
        ),
        (
            ("train", *SMALL, "--samples", "many", "s"),
            "Error: Invalid value for '--samples': expected a number, found 'many'",
        ),
        (
            ("train", *SMALL, "--samples", "8", "--time-limit", "-1", "s"),
            "Error: Invalid value for '--time-limit': expected a finite number of at least 0, found '-1'",
        ),
        (
            ("train", "--architecture", "lsmt", "--samples", "8", "s"),
            "Error: unknown sorter 'lsmt': choose from lstm, lstm-large, gru-constrained, gru-proj, "
            "gru-sum, cnn, cnn(depth), mlp, neighbours, handcrafted, handcrafted(lam), handcrafted-raw, "
            "handcrafted-raw(lam), laplace, laplace(lam); did you mean 'lstm'?",
        ),
        (("train", "--architecture", "laplace", "--samples", "8", "s"), "Error: sorter 'laplace' needs no training"),
        (
            ("train", "--architecture", "cnn", "--length", "20", "--samples", "8", "s"),
            "Error: sorter 'cnn(10)' takes lists of 37 or more, found 20",
        ),
        (
            ("train", "--architecture", "lstm", "--longest", "200", "--samples", "8", "s"),
            "Error: sorter 'lstm' takes lists of one length: no longest",
        ),
        (
            ("train", *SMALL, "--samples", "8", "--device", "abacus", "s"),
            "Error: --device abacus: not there; choose cpu, cuda, cuda:N or mps",
        ),
        (
            ("train", *SMALL, "--samples", "8", "--device", "gpu", "s"),
            "Error: --device gpu: not there; choose cpu, cuda, cuda:N or mps",
        ),
        (
            ("train", *SMALL, "--samples", "8", "--learning-rate", "0", "s"),
            "Error: Invalid value for '--learning-rate': expected a finite number above 0, found '0'",
        ),
        (("eval",), "Error: Missing argument 'SORTER…'."),
        (("eval", "lstm"), "Error: sorter 'lstm' must be trained first (apsvm sorter train): name its file"),
        (
            ("eval", "nobody"),
            "Error: unknown sorter 'nobody': choose from lstm, lstm-large, gru-constrained, gru-proj, "
            "gru-sum, cnn, cnn(depth), mlp, neighbours, handcrafted, handcrafted(lam), handcrafted-raw, "
            "handcrafted-raw(lam), laplace, laplace(lam); nor is there a file of that name",
        ),
        (("eval", "laplace", "--length", "10,10"), "Error: Invalid value for '--length': found one twice in '10,10'"),
        (
            ("eval", "laplace", "--length", "1"),
            "Error: Invalid value for '--length': 1 is not in the range 2<=x<=100000.",
        ),
        (("eval", "laplace(0)"), "Error: sorter 'laplace(λ)' takes a finite λ above 0, found 0.0"),
    ],
)
def test_refusals(arguments, message, here):
    assert here(*arguments, code=2)[1].endswith(f"{message}\n")
    assert os.listdir() == []


def test_outputs_that_cannot_be_written(here):
    here("train", *SMALL, "--samples", 8, "no/such/folder/s", code=74)
    Path("folder").mkdir()
    here("train", *SMALL, "--samples", 8, "folder", code=74)
    here("train", *SMALL, "--samples", 8, "--log", "no/log", "s", code=74)


def test_the_help_names_every_sorter_there_is_to_train():
    train = program.commands["sorter"].commands["train"]
    (text,) = [param.help for param in train.params if param.name == "architecture"]
    names = text.replace(" or ", ", ").rstrip(".").split(", ")
    forms = [form.replace("depth", "DEPTH") for form in SORTERS if SORTERS[form].trained]
    assert sorted(names) == sorted(forms)


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_configs(config, here):
    """The paper's settings as they stand, but for what would take days."""
    assert config.read_text().startswith("# ")
    here("train", "--config", config, "--batch", 2, "--samples", 4, "--length", 37, "-q", "s")
    settings = SorterTraining.resumed("s.training").settings
    assert settings.halve_every == 10_000_000
    assert settings.learning_rate == (None if "lstm" in config.stem else 1e-3)
    assert load_sorter("s").length == 37
    assert torch.isfinite(load_sorter("s")(torch.zeros(1, 37))).all()


def test_there_is_a_config_for_each_sorter_of_the_paper():
    assert [path.stem for path in CONFIGS] == ["sodeep-cnn", "sodeep-lstm"]
