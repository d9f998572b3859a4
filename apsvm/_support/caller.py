"""Warnings that name the calling line of the user's program. A fixed ``stacklevel`` cannot: the number of frames in
between differs with each way of calling."""

from __future__ import annotations

import sys
import warnings

INSIDE = frozenset({"apsvm", "dask", "distributed", "joblib", "sklearn", "torch"})


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the first frame outside of the packages ``INSIDE``."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
