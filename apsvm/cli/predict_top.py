"""What ``apsvm predict`` writes for people and for trec_eval: the best rows with their reasons, and TREC runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from apsvm.cli.shared import BAD_DATA, Failure, printable, reading, say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.dataset import Dataset
    from apsvm.models.kinds import RowModel


def top_lines(
    ranker: RowModel,
    rows: Dataset,
    scores: NDArray[np.float64],
    answers: Sequence[str],
    top: int,
    explain: int | None,
    model: str,
    *,
    which: bool = False,
) -> Iterator[str]:
    """The best rows, best first, those of equal score as they stand: their names, or their numbers from 1, what stands
    for their scores in ``answers``, of bags with ``which`` the number of the deciding row, and the features that put
    them there. Where there are queries, the best of each, behind its qid. ``model``: its file's name."""
    from apsvm.models.kinds import WeightedRanker
    from apsvm.report.reasons import reasons_of

    order, rank = best_first(rows, scores)
    best = order[rank <= top]
    names, queries = names_of_rows(rows), names_of_queries(rows)
    reasons: list[list[str]] = [[] for _ in best]
    if explain is not None:
        assert isinstance(ranker, WeightedRanker)  # checked
        try:
            reasons = list(reasons_of(ranker, rows.select(best), explain))
        except ValueError as error:
            raise Failure(BAD_DATA, f"{model}: nobody can say what each feature gave: {error}") from None
    if queries is not None:
        say(f"{rows.source}: the best {top} of each query, behind its qid")
    for row, why in zip(best.tolist(), reasons, strict=True):
        query = [] if queries is None else [queries[row]]
        decided = [] if not which or rows.deciding is None else [str(rows.deciding[row] + 1)]
        yield "\t".join([*query, names[row], answers[row], *decided, *map(printable, why)])


def best_first(rows: Dataset, scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n,) the rows, those of the query that appears first in front, the best of each query first, those of equal score
    as they stand; and (n,) their ranks in their queries, from 1."""
    import numpy as np

    if rows.groups is None:
        return np.argsort(-scores, kind="stable"), np.arange(1, scores.size + 1)
    _, first, query = np.unique(rows.groups, return_index=True, return_inverse=True)
    order = np.lexsort((-scores, first[query]))
    begins = np.flatnonzero(np.diff(query[order], prepend=-1))
    rank = np.arange(1, order.size + 1) - np.repeat(begins, np.diff(np.append(begins, order.size)))
    return order, rank


def names_of_queries(rows: Dataset) -> list[str] | None:
    """(n,) what the rows' queries are called in their table, or else their qid; None where there are none."""
    if rows.groups is None:
        return None
    names = [printable(name) for name in rows.table.queries] if rows.table is not None else []
    return [names[query] if names else str(query) for query in rows.groups.tolist()]


def names_of_rows(rows: Dataset) -> list[str]:
    """What rows are called in their table, or else their numbers in the file, from 1; bags by their own numbers there,
    as bag:INT."""
    if rows.table is not None and rows.table.keys is not None:
        return [printable(key) for key in rows.table.keys.tolist()]
    if rows.stands_for is not None:
        return [f"bag:{bag}" for bag in rows.stands_for.tolist()]
    return [str(row) for row in range(1, rows.X.shape[0] + 1)]


def documents_of(rows: Dataset, path: str) -> list[str]:
    """What a run calls its documents: as ``names_of_rows``, or by the docid of the comments where all rows of a file of
    svmlight text, which is read once more, have one. Says which, unless a column was named for it."""
    names = names_of_rows(rows)
    if rows.table is not None and rows.table.keys is not None:
        return names
    ids, why_not = _docids(rows, path)
    if ids is not None:
        say(f"{rows.source}: documents are called by the docid of their comments")
        return ids
    called = "their rows' numbers, from 1" if rows.stands_for is None else "their bags' numbers, as bag:INT"
    say(f"{rows.source}: documents are called by {called}: {why_not}")
    return names


def _docids(rows: Dataset, path: str) -> tuple[list[str] | None, str]:
    """A name a row, or None and why there are none."""
    from apsvm.data.reading import is_text
    from apsvm.data.svmlight import docids

    assert rows.groups is not None
    if rows.table is not None:
        return None, "--id-column has names"
    if not (os.path.isfile(path) or os.path.isdir(path)):
        return None, "comments (# docid = …) are read of files alone"
    if not is_text(path):
        return None, "only svmlight text has comments (# docid = …)"
    with reading(path):
        ids = docids(path)
    if ids is not None and rows.deciding is not None:
        ids = [ids[row] for row in rows.deciding.tolist()]
    if ids is None:
        return None, "not every row has a comment # docid = …"
    if len(ids) != rows.X.shape[0]:
        return None, "they are bags, and comments are of rows"
    if len(set(zip(rows.groups.tolist(), ids, strict=True))) < len(ids):
        return None, "in a query two of their docids are the same"
    return ids, ""


def run_lines(rows: Dataset, scores: NDArray[np.float64], tag: str, path: str) -> Iterator[str]:
    """A TREC run: qid Q0 docno rank score tag, the best of each query first, queries as they first appear. ``path`` is
    where the rows were read."""
    queries = names_of_queries(rows)
    if queries is None:
        raise Failure(BAD_DATA, f"{rows.source}: a TREC run is of queries, and its rows have none: qid:, --qid-column")
    names = documents_of(rows, path)
    for what, called in (("document", names), ("query", queries)):
        bad = next((name for name in called if not name or name.split() != [name]), None)
        if bad is not None:
            wanted = "no blanks, and not empty"
            raise Failure(BAD_DATA, f"{rows.source}: a TREC run takes no {what} called {bad!r}: {wanted}")
    for row, place in zip(*(values.tolist() for values in best_first(rows, scores)), strict=True):
        yield f"{queries[row]} Q0 {names[row]} {place} {float(scores[row])!r} {tag}"
