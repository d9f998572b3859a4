"""``apsvm doctor``: true of this process, and not silent about what is broken."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, version

import cvxpy

import apsvm
from apsvm._native import _kernels
from apsvm.cli.commands.doctor import CHECKS, NEEDED, OPTIONAL
from apsvm.data.svmlight import read_svmlight

FOUND = {
    "packages": "all that are needed",
    "compiled core = brute force": r"80 queries of ap, auc, ndcg and mrr, largest difference \d\.\de-1[5-9]",
    "oracles agree": r"greedy, search, select, search-select, qs, bucket: relative difference [0-9.e+-]+",
    "row products = numpy": r"sparse and dense, largest difference \d\.\de-1[3-6]",
    "QP solvers agree": r"active-set and cvxpy \(Clarabel\), difference [0-9.e+-]+",
    "training is certified": r"80 rows, primal 4\.90079, gap 0\.0088 ≤ 0\.01",
}


def test_the_text_and_the_json(here):
    text = here("doctor").stdout
    printed = here("doctor", "--json").stdout
    found = json.loads(printed)
    assert printed == json.dumps(found, indent=1) + "\n"
    assert list(found) == ["versions", "native core", "machine", "BLAS", "checks"]
    versions = found["versions"]
    assert list(versions) == ["apsvm", "Python", *NEEDED, *OPTIONAL, "QP solvers of cvxpy"]
    assert versions["apsvm"] == apsvm.__version__
    assert versions["Python"] == f"{platform.python_version()} ({sys.executable})"
    assert [versions[name] for name in NEEDED] == [version(name) for name in NEEDED]
    assert versions["QP solvers of cvxpy"].split(", ") == cvxpy.installed_solvers()
    info = _kernels.build_info()
    assert found["native core"] == {
        "file": _kernels.__file__,
        "compiler": info["compiler"].strip(),
        "C++ standard": f"__cplusplus = {info['standard']}",
        "SIMD": f"{info['clone']}, of the clones {info['clones']}, which give the same bits",
    }
    machine = found["machine"]
    assert machine["system"] == f"{platform.system()} {platform.release()}, {platform.machine()}"
    assert re.fullmatch(rf"{os.cpu_count()}, of which this process may use \d+ \(--threads 0\)", machine["cores"])
    assert re.fullmatch(r"\d+\.\d GiB, \d+\.\d available", machine["memory"])
    assert found["BLAS"]
    for name, pool in found["BLAS"].items():
        assert re.fullmatch(r"\w+ of [\w.-]+", name)
        assert re.fullmatch(r"[\w.-]+( version)?(, \w+)?, \d+ threads", pool)
    assert list(found["checks"]) == list(CHECKS) == list(FOUND)
    for name, check in found["checks"].items():
        assert check["ok"] is True
        assert re.fullmatch(FOUND[name], check["found"]), check["found"]
    lines = []
    found["checks"] = {name: f"ok: {check['found']}" for name, check in found["checks"].items()}
    for title, facts in found.items():
        width = max(map(len, facts))
        lines += [title, *(f"  {name:<{width}}  {fact}" for name, fact in facts.items())]
    for line, other in zip(text.splitlines(), lines, strict=True):
        assert line == other or "available" in line


def test_what_is_not_installed(here, monkeypatch):
    """An extra, what is needed, cvxpy, the compiled core, and what tells the thread pools."""
    absent = {"matplotlib", "pyarrow"}

    def known(name):
        if name in absent:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr("importlib.metadata.version", known)
    for module in ("cvxpy", "apsvm._native._kernels", "threadpoolctl"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delattr("apsvm._native._kernels")
    for name in CHECKS:
        if name != "packages":
            monkeypatch.setitem(CHECKS, name, lambda: (True, "well"))
    found = json.loads(here("doctor", "--json", code=1).stdout)
    assert found["versions"]["matplotlib"] == "not installed: pip install 'apsvm[plot]'"
    assert found["versions"]["pyarrow"] == "missing"
    assert found["versions"]["QP solvers of cvxpy"].startswith("none: import of cvxpy halted")
    assert found["checks"]["packages"] == {"ok": False, "found": "missing: pyarrow"}
    assert list(found["native core"]) == ["file"]
    assert found["native core"]["file"].startswith("missing: ")
    assert list(found["BLAS"]) == ["missing"]
    assert found["BLAS"]["missing"].startswith("import of threadpoolctl halted")


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
    assert "\n  packages                     FAILED: 0 ≠ 1\n" in text
    assert "\n  oracles agree                FAILED: OSError: no such thing\n" in text
    assert text.count("ok: well") == len(CHECKS) - 2


def half(text):
    return io.BytesIO(b"\n".join(text.read().split(b"\n")[:40]))


def test_a_wrong_kernel_is_found(here, monkeypatch):
    from apsvm.oracles.bucket import Bucket

    honest = Bucket.bind_ranking

    def off(self, *arguments):
        bound = honest(self, *arguments)
        return lambda *arrays: bound(*arrays)._replace(value=bound(*arrays).value + 1e-6)

    monkeypatch.setattr(Bucket, "bind_ranking", off)
    monkeypatch.setattr("apsvm.data.svmlight.read_svmlight", lambda text, real=read_svmlight: real(half(text)))
    checks = json.loads(here("doctor", "--json", code=1).stdout)["checks"]
    assert not checks["compiled core = brute force"]["ok"]
    assert not checks["oracles agree"]["ok"]
    assert checks["row products = numpy"]["ok"]
    assert checks["training is certified"] == {"ok": False, "found": "the text was not read as it was written"}
