"""SIGINT, SIGTERM and SIGHUP: the best model so far is written; a second one stops at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from command import OLD_MODEL

from apsvm import load_model

#: Some thousand iterations: far more than the few that are waited for.
LONG = ("--positive-label", "8", "-C", "1e6", "-e", "1e-12", "--solver", "cutting-plane")


@pytest.fixture
def start(command, environment):
    """start(argument, ...) → a process, killed at the end if need be; a SIGINT reaches it even if we ignore ours."""
    processes = []

    def call(*arguments):
        process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=environment(),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        processes.append(process)
        return process

    yield call
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for_iteration(process, at):
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.split()[:1] == [str(at)]:
            return
    pytest.fail(f"ended before iteration {at}: {seen}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("oracle", "number", "code"),
    [("qs", signal.SIGINT, 130), ("qs", signal.SIGHUP, 143), ("appx", signal.SIGTERM, 143)],
    ids=["SIGINT", "SIGHUP", "SIGTERM, appx"],
)
def test_the_best_model_so_far_is_written(oracle, number, code, digits, start, run, tmp_path):
    model, log = tmp_path / "m", tmp_path / "log"
    process = start("train", "-v", digits.path, model, *LONG, "--oracle", oracle, "--log", log)
    wait_for_iteration(process, 12)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert "Traceback" not in said
    assert "apsvm: interrupted after" in said
    assert f"apsvm: model written to {model} after" in said.splitlines()[-1]

    header = load_model(model).header
    assert header.state == "interrupted"
    assert header.iterations >= 12
    records = [json.loads(line) for line in log.read_text().splitlines()]
    last = [record for record in records if record["event"] == "iteration"][-1]
    assert header.certificate.primal == last["primal"]
    assert records[-1]["state"] == "interrupted"
    assert sorted(os.listdir(tmp_path)) == ["log", "m"]
    assert run("predict", digits.path, model).stdout.count("\n") == 1797


@pytest.mark.slow
def test_a_second_signal_stops_at_once(digits, start, tmp_path):
    model = tmp_path / "m"
    model.write_text(OLD_MODEL)
    # Clarabel on every working set: an iteration takes long enough for the second signal to fall into it.
    process = start("train", "-v", digits.path, model, *LONG, "--qp", "cvxpy")
    wait_for_iteration(process, 5)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode in (130, 143), said
    assert "Traceback" not in said
    if model.read_text(errors="replace") == OLD_MODEL:
        assert said.endswith("apsvm: error: stopped, no model written\n")
    else:  # both came before Python looked: they count as one
        assert load_model(model).header.state == "interrupted"
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_interrupted_while_reading(start, tmp_path):
    process = start("train", "-", tmp_path / "m")
    descriptor = f"/proc/{process.pid}/wchan"
    while True:  # until it waits for the pipe, all modules loaded
        with open(descriptor) as stream:
            if "pipe_read" in stream.read():
                break
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert "Traceback" not in process.stderr.read()
    assert not list(tmp_path.iterdir())
