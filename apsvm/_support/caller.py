"""Warnings that name the line of the user's program that called, however many frames of this package and of those that
call it lie between: a count of frames, as ``stacklevel`` has it, is wrong for each new way of calling."""

from __future__ import annotations

import sys
import warnings

INSIDE = frozenset({"apsvm", "dask", "distributed", "joblib", "sklearn", "torch"})


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the first frame outside of these packages."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
