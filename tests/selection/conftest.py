"""Data sets made in memory, and grids of losses as ``apsvm cv`` makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apsvm.data.dataset import Dataset
from apsvm.selection.grids import Grid
from apsvm.trainers import trainer_of


@pytest.fixture
def dataset() -> Callable[..., Dataset]:
    """dataset(X, labels, groups=None)"""
    return lambda X, labels, groups=None: Dataset(X, labels, groups, None, False, "made", "0" * 64, 0)


@pytest.fixture
def grid() -> Callable[..., Grid]:
    """grid(loss, named=None, setting=value, …)"""

    def make(loss: str, named: Any = None, **settings: Any) -> Grid:
        trainer = trainer_of(loss)
        return Grid.of(lambda one: trainer(loss, one), trainer.Settings(**settings), named)

    return make
