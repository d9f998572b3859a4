"""Scores of parts, each computed and written by the worker that reads the part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from apsvm._support.files import write_whole
from apsvm.dask.sources import Source
from apsvm.data.dataset import DataError

if TYPE_CHECKING:
    from distributed import Client

    from apsvm.models.base import Ranker


def score_parts(
    client: Client, sources: Sequence[Source], model: Ranker, outputs: Sequence[str]
) -> tuple[int, list[str]]:
    """Writes the scores of each part, one a line and in its order, to the file of that place; how many rows there
    were, and remarks on tables.

    Raises
    ------
    DataError, OSError : a part that cannot be read, or a file that cannot be written; says which, and on which worker
    """
    ranker = client.scatter(model, broadcast=True, hash=False)
    tasks = [
        client.submit(_score_part, source, ranker, output, pure=False, retries=1)
        for source, output in zip(sources, outputs, strict=True)
    ]
    rows, remarks = zip(*client.gather(tasks), strict=True)
    return sum(rows), [line for of_part in remarks for line in of_part]


def _score_part(source: Source, model: Ranker, output: str) -> tuple[int, tuple[str, ...]]:
    from distributed import get_worker

    where = f" (on {get_worker().address})"
    try:
        data = source.read(1)
    except DataError as error:
        raise DataError(f"{error}{where}") from None
    scores = model.score(data.X, threads=1)
    write_whole(output, "".join(f"{score!r}\n" for score in scores.tolist()).encode())
    return int(scores.size), () if data.table is None else data.table.remarks
