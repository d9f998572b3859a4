"""One thread for the linear algebra libraries: the last bits of a product depend on how threads share it."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[object]:
    """Context in which products use one thread, in the whole process. The old limit is restored at its end."""
    limit: AbstractContextManager[object] = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")
    return limit


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Loaded linear algebra libraries. The search takes milliseconds; it is repeated only if ``modules``, the number of
    Python's modules, has changed."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
