"""Units that a model ranks: rows or, after training with ``--latent``, bags, each represented by its highest-scoring
row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm.data.bags import HOW_SAID, bags_of, deciding_rows
from apsvm.data.dataset import DataError
from apsvm.data.pooling import pooled
from apsvm.models.base import ScoreError

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset
    from apsvm.models.base import Model


def ranked(model: Model, dataset: Dataset, *, by_rows: bool = False) -> tuple[Dataset, NDArray[np.float64]]:
    """Units that the model ranks, and their scores: (n,) float64, or (n, k) from a set of k rankers. The rows of
    ``dataset`` are pooled if the model pools; ``by_rows`` ranks them even if the model was trained on bags.

    Bags are a data set with a row for each, in the order of their first rows: its deciding row, whose index in
    ``dataset`` is in ``deciding``. The rankers of a set may decide by different rows; then rows have no features.

    Raises DataError if bag ids are missing, or a score is not finite.
    """
    scores = scores_of(model, dataset)
    if not model.header.latent or by_rows:
        return dataset, scores
    bags = bags_of(dataset)
    if bags is None:
        raise DataError(
            f"{dataset.source}: the model ranks bags (--latent), and these rows have no bag ids: {HOW_SAID}; --bags "
            "ignore ranks the rows"
        )
    if scores.ndim == 1:
        rows = deciding_rows(bags, scores)
        chosen = dataset.select(rows)
        return replace(chosen, bags=None, stands_for=chosen.bags, instances=len(dataset), deciding=rows), scores[rows]
    return pooled(dataset, ()), bags.best(scores)


def scores_of(model: Model, dataset: Dataset) -> NDArray[np.float64]:
    """Scores of the rows. Raises DataError if one is not finite."""
    try:
        return model.score(dataset.X)
    except ScoreError as error:
        raise DataError(f"{dataset.source}: {error}") from None
