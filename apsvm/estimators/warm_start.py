"""Where a fit begins that goes on from the one before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm._support.container import ModelError
from apsvm.models.base import Ranker
from apsvm.trainers.fitting import Fit


def start_at(before: Ranker, fit: Fit) -> NDArray[np.float64]:
    """The weights of the fit before as those of the training ``fit``, a constant last if it has one.

    Raises
    ------
    ValueError
        They are of another number of features, or of columns that mean something else.
    """
    width = fit.dataset.X.shape[1]
    if before.width != width:
        raise ValueError(f"warm_start: the weights are of {before.width} features, X has {width}")
    try:
        return fit.start(before)
    except ModelError as error:
        raise ValueError(f"warm_start: of the fit before, {error}") from None
