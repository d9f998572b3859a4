"""Reports of an estimator's training: the logger "apsvm", shown on standard error if requested, and warnings."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from apsvm._support.blas import one_blas_thread
from apsvm.trainers.base import Progress, Watch, unseen

logger = logging.getLogger("apsvm")


class WeakRankerWarning(UserWarning):
    """A training ended as asked, and yet the ranker is hardly good for anything; the message says why."""


class NotFiniteError(FloatingPointError, ValueError):
    """Features, or a parameter, too large for float64: a ValueError to programs that look for what scikit-learn raises
    of bad input."""


def _tell(progress: Progress) -> None:
    """A line of a progress display, for the log."""
    words = {"iter": "iteration"}
    first, *others = progress.columns
    values = [
        f"{name} {progress.values[name]:{progress.columns[name].lstrip('>0123456789')}}"
        for name in others
        if progress.values[name] is not None
    ]
    logger.info("%s", f"{progress.stage} {words.get(first, first)} {progress.number}: {', '.join(values)}".lstrip())


@contextmanager
def training(verbose: int) -> Iterator[Watch]:
    """Observers of a training that runs with one BLAS thread: the solvers' products are small, and more threads would
    change the last bits. ``verbose``: shows the logger "apsvm" on standard error, unless the program handles it
    itself.

    Raises
    ------
    NotFiniteError
        In the place of a FloatingPointError, with its words.
    """
    before, handler = logger.level, None
    if verbose:
        if not logger.hasHandlers():
            handler = logging.StreamHandler(sys.stderr)
            logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        with one_blas_thread():
            yield Watch(progress=_tell if logger.isEnabledFor(logging.INFO) else unseen, remark=logger.info)
    except FloatingPointError as error:
        raise NotFiniteError(str(error)) from error
    finally:
        if handler is not None:
            logger.removeHandler(handler)
        if verbose:
            logger.setLevel(before)
