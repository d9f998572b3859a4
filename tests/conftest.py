"""Fixtures that many tests share, and what ``--quick`` leaves out."""

from __future__ import annotations

import os
import signal
import sys
import tarfile
from collections import defaultdict
from pathlib import Path

# Two processes at a time, whose linear algebra and networks are small: threads of theirs would wait for one another.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

# tests/ is no package (import-mode=importlib): its helper modules are found here.
sys.path.insert(0, str(Path(__file__).parent))

import over  # noqa: E402

# Under nohup it would be ignored here, and so in every process that a test starts and sends it to.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


# How long a case takes says nothing: the collector of garbage may come by.
settings.register_profile("apsvm", deadline=None)
settings.load_profile("apsvm")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261120)


@pytest.fixture(scope="session")
def trec_samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of trec_eval's example files (tests/metrics/trec_eval)."""
    folder = tmp_path_factory.mktemp("trec")
    with tarfile.open(Path(__file__).parent / "metrics" / "trec_eval" / "samples.tar.gz") as samples:
        samples.extractall(folder, filter="data")
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="Leave out tests marked slow, and of a parametrised test all but its first and its last case.",
    )
    parser.addoption("--every-fault", action="store_true", help="Of tests/faults all, which takes minutes.")


def pytest_configure(config: pytest.Config) -> None:
    over.few = config.getoption("--quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--quick"):
        return
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    chosen = {id(case) for of_test in cases.values() for case in (of_test[0], of_test[-1])}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = [item for item in items if id(item) in chosen]
