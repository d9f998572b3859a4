"""The tests of the extra ``torch``: without PyTorch they are left out, and tests/test_extras.py says so."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

HAS_TORCH = find_spec("torch") is not None
collect_ignore_glob = [] if HAS_TORCH else ["*"]

if HAS_TORCH:
    import torch

    @pytest.fixture(autouse=True)
    def one_thread():
        """pytest-xdist has a process for each core already."""
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        yield
        torch.set_num_threads(before)
