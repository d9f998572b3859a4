"""A cluster of processes: its scheduler dies, and TLS as docs/cluster.md has it."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import dask
import distributed
import numpy as np
import pytest
from command import in_process
from sklearn.datasets import dump_svmlight_file
from yaml import safe_load

from apsvm import load_model
from apsvm.cli.output.progress import Display
from apsvm.dask.cluster import cluster_at

PAGE = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")
ENVIRONMENT = dict(os.environ)  # a command in this process has one of its own
DASK = [sys.executable, "-m", "dask"]


@pytest.fixture
def data(tmp_path, rng):
    """A pattern of two parts."""
    X = rng.normal(size=(400, 4))
    y = X[:, 0] + rng.normal(size=400) > 1.5
    for part in range(2):
        rows = slice(200 * part, 200 * part + 200)
        dump_svmlight_file(X[rows], y[rows], str(tmp_path / f"part-{part}"), zero_based=False)
    return tmp_path / "part-*"


def worker(folder, address, env=()):
    """The process of a worker."""
    command = [*DASK, "worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny"]
    environment = {**ENVIRONMENT, **dict(env)}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


#: By a cluster's address, its scheduler and its worker.
_PROCESSES = {}


@contextmanager
def cluster(folder, *options, env=()):
    """The address of a scheduler with a worker, and its process."""
    place, environment = folder / "scheduler.json", {**os.environ, **dict(env)}
    command = [*DASK, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", place]
    place.unlink(missing_ok=True)
    quiet = {"cwd": folder, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen([*command, *options], **quiet)]
    try:
        while not place.exists():
            assert processes[0].poll() is None
            time.sleep(0.05)
        time.sleep(0.1)
        address = json.loads(place.read_text())["address"]
        processes.append(worker(folder, address, env))
        _PROCESSES[address] = processes
        yield address, processes[0]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def train(folder, data, address, *options, env=()):
    words = ["train", data, "m.model", "--scheduler", address, *options]
    environment = {"PATH": os.environ["PATH"], **dict(env)}
    for _ in range(100):  # until the worker is there
        done = in_process([str(word) for word in words], env=environment, cwd=folder)
        if b"has no workers" not in done.stderr:
            return done.returncode, done.stderr.decode()
        time.sleep(0.1)
    raise AssertionError("no worker came")


@pytest.mark.slow
def test_a_scheduler_that_dies_ends_the_command(data, tmp_path, monkeypatch):
    monkeypatch.setattr("apsvm.dask.cluster.CONNECTING", 1.0)
    show = Display.show
    with cluster(tmp_path) as (address, scheduler):

        def show_and_kill(self, progress):
            if progress.number == 3:
                scheduler.send_signal(signal.SIGKILL)
                scheduler.wait()
                # With tracebacks, which the last line says in words.
                assert not logging.getLogger("distributed.utils").isEnabledFor(logging.ERROR)
            show(self, progress)

        monkeypatch.setattr(Display, "show", show_and_kill)
        code, text = train(tmp_path, data, address, "-C", "30", "-e", "1e-6", "--bound", "hinge")
        assert code == 66, text
        assert f"the scheduler at {address} is gone" in text


@pytest.mark.slow
def test_workers_that_die(data, tmp_path, monkeypatch):
    """One of two at two iterations, then the last one, which a new one takes the place of; then for good."""
    monkeypatch.setattr("apsvm.dask.cluster.PATIENCE", 0.2)
    monkeypatch.setattr("apsvm.dask.cluster.BETWEEN_LINES", 0.5)
    show, options = Display.show, ("-C", "30", "-e", "1e-6", "--bound", "hinge")
    with cluster(tmp_path) as (address, _):
        assert train(tmp_path, data, address, *options)[0] == 0
        expected, killed = load_model(tmp_path / "m.model"), []
        others = [worker(tmp_path, address), worker(tmp_path, address)]

        def show_and_kill(self, progress):
            if progress.number in (3, 6) and others:
                killed.append(others.pop())
                killed[-1].kill()
                killed[-1].wait()
            show(self, progress)

        monkeypatch.setattr(Display, "show", show_and_kill)
        code, text = train(tmp_path, data, address, *options)
        assert code == 0, text
        assert len(killed) == 2
        np.testing.assert_allclose(load_model(tmp_path / "m.model").coef, expected.coef, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("comes_back", [True, False])
def test_the_last_worker_dies(data, tmp_path, monkeypatch, comes_back):
    monkeypatch.setattr("apsvm.dask.cluster.PATIENCE", 0.2)
    monkeypatch.setattr("apsvm.dask.cluster.BETWEEN_LINES", 0.5)
    monkeypatch.setattr("apsvm.dask.cluster.MOST_WAITING", 60.0 if comes_back else 2.0)
    show = Display.show
    with cluster(tmp_path) as (address, _):
        others = [worker(tmp_path, address)]

        def show_and_kill(self, progress):
            if progress.number == 3:
                for process in (*others, self_of_cluster[1]):
                    process.kill()
                    process.wait()
                if comes_back:
                    others.append(worker(tmp_path, address))
            show(self, progress)

        self_of_cluster = _PROCESSES[address]
        monkeypatch.setattr(Display, "show", show_and_kill)
        code, text = train(tmp_path, data, address, "-C", "30", "-e", "1e-6", "--bound", "hinge")
        for process in others:
            process.kill()
            process.wait()
        assert code == (0 if comes_back else 66), text
        assert re.search(r"worker tcp://\S+ is gone: its parts are read again", text)
        if not comes_back:
            assert re.search(r"no worker is left: waiting for one \(\d+ s; ends after 2 s\)", text)
            assert text.rstrip().endswith("no worker of the cluster was there for 2 seconds")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate by openssl")
def test_tls_as_the_page_has_it(data, tmp_path, monkeypatch):
    (openssl,) = re.findall(r"^\$ (openssl .*)$", PAGE, flags=re.MULTILINE)
    (yaml,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    subprocess.run(openssl.split(), cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "tls.yaml").write_text(yaml)
    with cluster(tmp_path, "--protocol", "tls", env={"DASK_CONFIG": "tls.yaml"}) as (address, _):
        assert address.startswith("tls://127.0.0.1:")
        configured = dask.config.merge(dask.config.config, safe_load(yaml))
        with dask.config.set(configured):
            code, text = train(tmp_path, data, address, "-C", "1")
        assert code == 0, text
        monkeypatch.setattr("apsvm.dask.cluster.CONNECTING", 0.3)
        plain = address.replace("tls:", "tcp:")
        for where, config, message in (
            (address, {}, "wants a certificate"),
            (plain, {}, f"no scheduler answers at {plain}"),
            (plain, configured, "is not encrypted"),
        ):
            with dask.config.set(config):
                code, text = train(tmp_path, data, where, "-C", "1")
            assert code == 66, text
            assert message in text


@pytest.mark.slow
def test_workers_on_this_machine():
    """Processes, which Ctrl-C leaves to the driver; and no other work takes their client for its own."""
    with cluster_at("local:2", print) as workers:
        client = workers.client
        assert list(client.nthreads().values()) == [1, 1]
        assert len({os.getpid(), *client.run(os.getpid).values()}) == 3
        assert set(client.run(lambda: signal.getsignal(signal.SIGINT)).values()) == {signal.SIG_IGN}
        assert all(address.startswith("tcp://127.0.0.1:") for address in client.nthreads())
        assert re.match(r"http://127\.0\.0\.1:(?!8787/)\d+/", client.dashboard_link)
        with pytest.raises(ValueError, match="No global client"):
            distributed.get_client()
