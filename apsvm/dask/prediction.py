"""Scores of parts by a model, each computed by the worker that reads the part, and written there or sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apsvm._support.files import write_whole
from apsvm.dask.cluster import Cluster
from apsvm.dask.parts import FilePart, survey
from apsvm.data.dataset import Dataset
from apsvm.data.joining import in_columns_of, joined

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray
    from apsvm.models.base import Model


class ScoredPart(NamedTuple):
    """Rows of a part without their features, and their scores; None if these are written to a file."""

    rows: Dataset
    scores: AnyArray | None


def write_scores(cluster: Cluster, parts: Sequence[FilePart], model: Model, outputs: Sequence[str]) -> list[Dataset]:
    """Writes the scores of each part, a line a row and in its order, to the file of that place; the rows without their
    features.

    Raises
    ------
    DataError, OSError : a part that cannot be read, or a file that cannot be written; says which, and on which worker
    """
    return [one.rows for one in _scored(cluster, parts, model, outputs)]


def scores_of_parts(
    cluster: Cluster, parts: Sequence[FilePart], model: Model, source: str
) -> tuple[Dataset, NDArray[np.float64]]:
    """All rows without their features, and their scores, (n,) or (n, k). Raises as ``write_scores``."""
    scored = _scored(cluster, parts, model, [None] * len(parts))
    whole = joined([one.rows for one in scored], source)
    return whole, np.concatenate([one.scores for one in scored if one.scores is not None and one.scores.size])


def _scored(
    cluster: Cluster, parts: Sequence[FilePart], model: Model, outputs: Sequence[str | None]
) -> list[ScoredPart]:
    n = len(parts)
    leaders: list[Dataset | None] = [None] * n
    first: list[ScoredPart] = []
    if model.header.features.names is None:  # it takes the columns of all parts as those of the first
        first = cluster.gather(cluster.submit(_score, parts[:1], [model], outputs[:1], leaders[:1]))
        leaders = [first[0].rows if len(first[0].rows) else None] * n
    rest = slice(len(first), None)
    tasks = cluster.submit(_score, parts[rest], [model] * (n - len(first)), outputs[rest], leaders[rest])
    return [*first, *cluster.gather(tasks)]


def _score(part: FilePart, model: Model, output: str | None, leader: Dataset | None) -> ScoredPart:
    data = part.read()
    if not len(data):
        scores = np.empty((0,))
    else:
        if leader is not None:
            data = in_columns_of(data, None if leader.table is None else leader.table.columns, leader.source)
        scores = model.score(data.X)
    rows = survey(data, frozenset()).rows
    assert rows is not None
    if output is None:
        return ScoredPart(rows, scores)
    lines = ("\t".join(map(repr, np.atleast_1d(row).tolist())) for row in scores)
    try:
        write_whole(output, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, output) from None
    return ScoredPart(rows, None)
