"""Scores of parts, each computed and written by the worker that reads the part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from apsvm._support.files import write_whole
from apsvm.dask.actors import named_worker, result_of
from apsvm.dask.sources import Source, on_worker
from apsvm.data.joining import in_columns_of
from apsvm.models.columns import Columns

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
    first = client.submit(_score_part, sources[0], ranker, outputs[0], pure=False)
    # A model that knows its features by position takes the columns of all parts as those of the first.
    leader = first if model.header.features.names is None else None
    tasks = [
        client.submit(_score_part, source, ranker, output, leader, pure=False)
        for source, output in zip(sources[1:], outputs[1:], strict=True)
    ]
    scored: list[_Scored] = [result_of(task) for task in (first, *tasks)]
    return sum(one.rows for one in scored), [line for one in scored for line in one.remarks]


class _Scored(NamedTuple):
    """A part that is done: how many rows it has, and of a table the remarks and the columns."""

    name: str
    rows: int
    remarks: tuple[str, ...]
    columns: Columns | None


@named_worker()
def _score_part(source: Source, model: Ranker, output: str, first: _Scored | None = None) -> _Scored:
    from distributed import get_worker

    address = get_worker().address
    with on_worker(address, source.name):
        data = source.read(1)
        if first is not None and len(data):
            data = in_columns_of(data, first.columns, first.name)
    scores = model.score(data.X, threads=1)
    with on_worker(address, output):
        write_whole(output, "".join(f"{score!r}\n" for score in scores.tolist()).encode())
    table = data.table
    return _Scored(source.name, scores.size, *(((), None) if table is None else (table.remarks, table.columns)))
