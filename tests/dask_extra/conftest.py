"""The tests of the extra ``dask``: without it they are left out, and tests/test_extras.py says so."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

HAS_DASK = all(find_spec(name) is not None for name in ("dask", "distributed"))
collect_ignore_glob = [] if HAS_DASK else ["*"]

if HAS_DASK:

    @pytest.fixture(scope="session")
    def client():
        """Two workers in this process, of one thread each, for all tests."""
        from distributed import Client, LocalCluster

        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
            ) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client
