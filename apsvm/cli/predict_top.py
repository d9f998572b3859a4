"""What ``apsvm predict`` writes for people and for trec_eval: the best rows with their reasons, and TREC runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from apsvm.cli.shared import BAD_DATA, Failure, printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.dataset import Dataset
    from apsvm.model import Ranker


def top_lines(
    ranker: Ranker,
    rows: Dataset,
    scores: NDArray[np.float64],
    answers: Sequence[str],
    top: int,
    explain: int | None,
    model: str,
) -> Iterator[str]:
    """The best rows, best first, those of equal score as they stand: their names, or their numbers from 1, what stands
    for their scores in ``answers``, and the features that put them there. ``model``: its file's name."""
    import numpy as np

    from apsvm.model import WeightedRanker
    from apsvm.report.reasons import reasons_of

    best = np.argsort(-scores, kind="stable")[:top]
    names = names_of_rows(rows)
    reasons: list[list[str]] = [[] for _ in best]
    if explain is not None:
        assert isinstance(ranker, WeightedRanker)  # checked
        try:
            reasons = list(reasons_of(ranker, rows.select(best), explain))
        except ValueError as error:
            raise Failure(BAD_DATA, f"{model}: nobody can say what each feature gave: {error}") from None
    for row, why in zip(best.tolist(), reasons, strict=True):
        yield "\t".join([names[row], answers[row], *map(printable, why)])


def names_of_rows(rows: Dataset) -> list[str]:
    """What rows are called in their table, or else their numbers in the file, from 1; of bags those of their deciding
    rows."""
    if rows.table is not None and rows.table.keys is not None:
        return [printable(key) for key in rows.table.keys.tolist()]
    if rows.deciding is not None:
        return [str(row + 1) for row in rows.deciding.tolist()]
    return [str(row) for row in range(1, rows.X.shape[0] + 1)]


def run_lines(rows: Dataset, scores: NDArray[np.float64], tag: str) -> Iterator[str]:
    """A TREC run: qid Q0 docno rank score tag, the best of each query first, queries as they first appear."""
    import numpy as np

    if rows.groups is None:
        raise Failure(BAD_DATA, f"{rows.source}: a TREC run is of queries, and its rows have none: qid:, --qid-column")
    names = names_of_rows(rows)
    queries = [printable(name) for name in rows.table.queries] if rows.table is not None else []
    for what, called in (("document", names), ("query", queries)):
        bad = next((name for name in called if not name or name.split() != [name]), None)
        if bad is not None:
            wanted = "no blanks, and not empty"
            raise Failure(BAD_DATA, f"{rows.source}: a TREC run takes no {what} called {bad!r}: {wanted}")
    _, first, query = np.unique(rows.groups, return_index=True, return_inverse=True)
    order = np.lexsort((-scores, first[query]))
    begins = np.flatnonzero(np.diff(query[order], prepend=-1))
    rank = np.arange(1, order.size + 1) - np.repeat(begins, np.diff(np.append(begins, order.size)))
    for row, place in zip(order.tolist(), rank.tolist(), strict=True):
        qid = queries[rows.groups[row]] if queries else rows.groups[row]
        yield f"{qid} Q0 {names[row]} {place} {float(scores[row])!r} {tag}"
