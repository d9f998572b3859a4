"""``scipy.sparse``, imported when the first sparse matrix is made: the import takes longer than a small training. Used
as ``from apsvm._support import sparse as sp``."""

from __future__ import annotations

import sys
from typing import Any


def issparse(X: object) -> bool:
    """``scipy.sparse.issparse``; False before or during the import, when no sparse matrix can exist."""
    function = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
    return function is not None and bool(function(X))


def require_integers(matrix: Any) -> None:
    """Raises ValueError unless a CSR matrix has signed integer indices, which scipy does not check."""
    for array in (matrix.indptr, matrix.indices):
        if array.dtype.kind != "i":
            raise ValueError(f"not a CSR matrix: expected signed integers in indptr and indices, found {array.dtype}")


def canonical_csr(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> Any:
    """The CSR array of entries whose indices ascend in each row, each once; scipy does not check that again. Indices
    become int32 if they fit, else int64; values are not copied."""
    import numpy

    index = numpy.int32 if max(*shape, data.size) < 2**31 else numpy.int64
    parts = data, indices.astype(index, copy=False), indptr.astype(index, copy=False)
    X = __getattr__("csr_array")(parts, shape=shape)
    X.has_canonical_format = True
    return X


def padded(X: Any, width: int) -> Any:
    """A CSR array of the rows X (n, d), CSR or C-ordered, with columns of zeros behind; values are not copied."""
    import numpy

    n, d = X.shape
    if issparse(X):
        return canonical_csr(X.data, X.indices, X.indptr, (n, width))
    index = numpy.int32 if max(X.size, width) < 2**31 else numpy.int64
    columns, ends = numpy.arange(d, dtype=index), numpy.arange(n + 1, dtype=index) * index(d)
    return canonical_csr(X.reshape(-1), numpy.tile(columns, n), ends, (n, width))


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

    skipped = [name for name in ("f2py", "testing") if name not in vars(numpy)]
    vars(numpy).update(dict.fromkeys(skipped))
    try:
        import scipy.sparse
    finally:
        for name in skipped:
            if vars(numpy).get(name) is None:
                vars(numpy).pop(name, None)
    return scipy.sparse
