"""Messages of an estimator's training: the logger "apsvm", which ``verbose`` shows on standard error, and warnings."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from apsvm._support.blas import one_blas_thread
from apsvm.trainers.base import Progress, Watch

logger = logging.getLogger("apsvm")


class WeakRankerWarning(UserWarning):
    """The training ended as requested, but its ranker is of little use; the message says why."""


class NotFiniteError(FloatingPointError, ValueError):
    """Features or a parameter are too large for float64. Also a ValueError, which scikit-learn raises for bad input."""


def _tell(progress: Progress) -> None:
    """Logs a line of progress."""
    first, *names = progress.columns
    known = {name: progress.values[name] for name in names if progress.values[name] is not None}
    values = (f"{name} {value:{progress.columns[name].lstrip('>0123456789')}}" for name, value in known.items())
    logger.info("%s", f"{progress.stage} {first} {progress.number}: {', '.join(values)}".lstrip())


@contextmanager
def training(verbose: int) -> Iterator[Watch]:
    """Watches a training, which runs with one BLAS thread: the solvers' products are small, and more threads would
    change their last bits. With ``verbose`` the logger "apsvm" writes to standard error, unless the program has
    handlers of its own. Raises NotFiniteError in place of a FloatingPointError.
    """
    before, handler = logger.level, None
    if verbose:
        if not logger.hasHandlers():
            handler = logging.StreamHandler(sys.stderr)
            logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        with one_blas_thread():
            yield Watch(progress=_tell, remark=logger.info) if logger.isEnabledFor(logging.INFO) else Watch()
    except FloatingPointError as error:
        raise NotFiniteError(str(error)) from error
    finally:
        if handler is not None:
            logger.removeHandler(handler)
        if verbose:
            logger.setLevel(before)
