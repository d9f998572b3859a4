"""``apsvm doctor``: true of this process, and not silent about what is broken."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version

from apsvm._native import _kernels
from apsvm.cli.commands.doctor import CHECKS


def test_the_text_and_the_json(here):
    text = here("doctor").stdout
    found = json.loads(here("doctor", "--json").stdout)
    assert found["versions"]["numpy"] == version("numpy")
    assert found["versions"]["Python"].startswith(platform.python_version())
    assert "CLARABEL" in found["versions"]["QP solvers of cvxpy"]
    assert found["machine"]["cores"].startswith(f"{os.cpu_count()}, of which this process may use")
    assert {name: check["ok"] for name, check in found["checks"].items()} == dict.fromkeys(CHECKS, True)
    for name in CHECKS:
        assert name in text
    assert "FAILED" not in text
    assert found["BLAS"]


def test_the_core_says_which_clones_run():
    info = _kernels.build_info()
    clones = str(info["clones"]).split(", ")
    assert info["clone"] in clones
    assert info["standard"] >= 202002
    with open("/proc/cpuinfo", encoding="ascii") as stream:
        flags = stream.read().split()
    if len(clones) > 1:
        assert info["clone"] == next(clone for clone in clones if clone in flags or clone == "default")


def broken():
    raise OSError("no such thing")


def test_what_is_broken_is_told(here, monkeypatch):
    for name in CHECKS:
        monkeypatch.setitem(CHECKS, name, lambda: (True, "well"))
    monkeypatch.setitem(CHECKS, "packages", lambda: (False, "0 ≠ 1"))
    monkeypatch.setitem(CHECKS, "oracles agree", broken)
    text = here("doctor", code=1).stdout
    assert "FAILED: 0 ≠ 1" in text
    assert "FAILED: OSError: no such thing" in text
    assert text.count("ok: well") == len(CHECKS) - 2


def test_a_wrong_kernel_is_found(here, monkeypatch):
    from apsvm.oracles.bucket import Bucket

    honest = Bucket.bind_ranking

    def off(self, *arguments):
        bound = honest(self, *arguments)
        return lambda *arrays: bound(*arrays)._replace(value=bound(*arrays).value + 1e-6)

    monkeypatch.setattr(Bucket, "bind_ranking", off)
    checks = json.loads(here("doctor", "--json", code=1).stdout)["checks"]
    assert not checks["compiled core = brute force"]["ok"]
    assert not checks["oracles agree"]["ok"]
    assert checks["row products = numpy"]["ok"]
