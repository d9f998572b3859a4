"""The compiled core: oracle kernels, row kernels and the svmlight parser. No policy.

``core/`` is plain C++20 that knows nothing of Python; ``bindings/`` checks what crosses, so that no array is read or
written beyond its end, whatever stands in it: lengths, types and layouts, scores that have an order, and a CSR matrix
once, as it becomes a ``CsrMatrix``.
"""

from importlib.util import find_spec

try:
    from apsvm._native import _kernels
except ImportError as error:  # a source tree on sys.path hides the installed package
    if find_spec(f"{__name__}._kernels") is not None:
        raise  # it is there and does not load: the error says why
    raise ImportError(
        "apsvm's compiled core is missing. Run 'pip install .' in the source tree and start Python "
        "elsewhere, or use 'pip install -e .' to work inside the tree."
    ) from error

__all__ = ["_kernels"]
