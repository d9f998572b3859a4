"""One thread for the linear algebra libraries: how they share a product among several decides over its last bits."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[object]:
    """Within it no product is shared among threads, of the whole process; then as many share it as before."""
    limit: AbstractContextManager[object] = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")
    return limit


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Those that are loaded. Looking for them takes milliseconds: it is done again where ``modules``, the number of
    Python's, says that there may be more."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
