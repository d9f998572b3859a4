"""``scipy.sparse``, imported when the first sparse matrix is made: the import takes longer than a small training. Used
as ``from apsvm._support import sparse as sp``."""

from __future__ import annotations

import sys
from typing import Any


def issparse(X: object) -> bool:
    """``scipy.sparse.issparse``; False before or during the import, when no sparse matrix can exist."""
    tells = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
    return tells is not None and bool(tells(X))


def require_integers(matrix: Any) -> None:
    """Raises ValueError unless a CSR matrix has signed integer indices, which scipy does not check."""
    for array in (matrix.indptr, matrix.indices):
        if array.dtype.kind != "i":
            raise ValueError(f"not a CSR matrix: expected signed integers in indptr and indices, found {array.dtype}")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    module = sys.modules.get("scipy.sparse")
    # While another thread imports the module, it is incomplete: importing it here waits for the rest.
    is_whole = module is not None and not getattr(module.__spec__, "_initializing", False)
    return getattr(module if is_whole else _imported(), name)


def _imported() -> Any:
    """The module, imported without ``numpy.f2py`` and ``numpy.testing``. scipy copies every name of numpy; loading
    these two would take a third of the time."""
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
