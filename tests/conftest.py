"""Fixtures that many tests share."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

# tests/ is no package (import-mode=importlib): its helper modules are found here.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261120)
