"""``scipy.sparse``, imported where the first sparse matrix is made: that takes longer than a small training, and dense
rows have no use for it. Used as ``from apsvm import sparse as sp``."""

from __future__ import annotations

import sys
from typing import Any


def issparse(X: object) -> bool:
    """``scipy.sparse.issparse``; without the import there can be no sparse matrix."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(X))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    import scipy.sparse

    return getattr(scipy.sparse, name)
