"""``scipy.sparse``, imported where the first sparse matrix is made: that takes longer than a small training, and dense
rows have no use for it. Used as ``from apsvm import sparse as sp``."""

from __future__ import annotations

import sys
from typing import Any


def issparse(X: object) -> bool:
    """``scipy.sparse.issparse``; before the import, or while another thread is at it, no matrix can be sparse."""
    tells = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
    return tells is not None and bool(tells(X))


def require_integers(matrix: Any) -> None:
    """Raises ValueError unless a CSR matrix has signed integers for indices, which scipy takes for granted."""
    for array in (matrix.indptr, matrix.indices):
        if array.dtype.kind != "i":
            raise ValueError(f"not a CSR matrix: expected signed integers in indptr and indices, found {array.dtype}")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    module = sys.modules.get("scipy.sparse")
    # While another thread is at the import, the module is there and half empty: importing it waits for the rest.
    is_whole = module is not None and not getattr(module.__spec__, "_initializing", False)
    return getattr(module if is_whole else _imported(), name)


def _imported() -> Any:
    """The module, imported without ``numpy.f2py`` and ``numpy.testing``: scipy copies every name of numpy, and these
    two would load meanwhile, for a third of the time of the import."""
    import numpy

    spared = [name for name in ("f2py", "testing") if name not in vars(numpy)]
    vars(numpy).update(dict.fromkeys(spared))
    try:
        import scipy.sparse
    finally:
        for name in spared:
            if vars(numpy).get(name) is None:
                vars(numpy).pop(name, None)
    return scipy.sparse
