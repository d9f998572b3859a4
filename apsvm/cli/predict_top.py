"""What ``apsvm predict`` writes for people and for trec_eval: the best rows with their reasons, and TREC runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from apsvm.cli.shared import BAD_DATA, Failure, printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.dataset import Dataset
    from apsvm.model import Ranker, WeightedRanker

#: What a number is written with in a reason.
_DIGITS = 4


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

    best = np.argsort(-scores, kind="stable")[:top]
    names = names_of_rows(rows)
    reasons: list[list[str]] = [[] for _ in best]
    if explain is not None:
        assert isinstance(ranker, WeightedRanker)  # checked
        try:
            reasons = list(_reasons(ranker, rows.select(best), explain))
        except ValueError as error:
            raise Failure(BAD_DATA, f"{model}: nobody can say what each feature gave: {error}") from None
    for row, why in zip(best.tolist(), reasons, strict=True):
        yield "\t".join([names[row], answers[row], *why])


def _reasons(ranker: WeightedRanker, rows: Dataset, most: int) -> Iterator[list[str]]:
    """For each row the features that raised its score the most, above what the column's median in training would have
    given, or 0 where no median is known: name=value (+gave). Of several components those of the leading one."""
    import numpy as np
    import scipy.sparse as sp

    from apsvm.model import ComponentRanker

    names = [printable(name) for name in ranker.features()]
    usual = None if ranker.unit_rows else _usual(ranker)
    leading = ranker.leading(rows.X) if isinstance(ranker, ComponentRanker) else np.zeros(rows.X.shape[0], dtype=int)
    for at, component in enumerate(leading.tolist()):
        x = rows.X[[at]]
        both = x if usual is None else np.vstack([x.toarray() if sp.issparse(x) else x, usual])
        gave = (
            ranker.contributions(both, component) if isinstance(ranker, ComponentRanker) else ranker.contributions(both)
        )[:]
        raised = gave[0] if usual is None else gave[0] - gave[1]
        values = np.asarray(x.toarray() if sp.issparse(x) else x)[0]
        order = np.argsort(-raised, kind="stable")[:most]
        yield [_reason(names[j], float(values[j]), float(raised[j])) for j in order.tolist() if raised[j] > 0.0]


def _reason(name: str, value: float, raised: float) -> str:
    """A one-hot feature has its value in its name."""
    what = name if "=" in name and value == 1.0 else f"{name}={value:.{_DIGITS}g}"
    return f"{what} (+{raised:.{_DIGITS}g})"


def _usual(ranker: WeightedRanker) -> NDArray[np.float64] | None:
    """(1, width) the medians of the columns; 0 of what has none; None where rows are no table's."""
    import numpy as np

    features = ranker.header.features
    if features.columns is None or features.pool is not None:
        return None
    values: list[float] = []
    for column in features.columns.features:
        values += [column.fill or 0.0] + [0.0] * (column.width - 1)
    return np.array([values])


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
    bad = next((name for name in names if not name or name.split() != [name]), None)
    if bad is not None:
        raise Failure(BAD_DATA, f"{rows.source}: a TREC run takes no document called {bad!r}: no blanks, and not empty")
    _, first, query = np.unique(rows.groups, return_index=True, return_inverse=True)
    order = np.lexsort((-scores, first[query]))
    begins = np.flatnonzero(np.diff(query[order], prepend=-1))
    rank = np.arange(1, order.size + 1) - np.repeat(begins, np.diff(np.append(begins, order.size)))
    for row, place in zip(order.tolist(), rank.tolist(), strict=True):
        yield f"{rows.groups[row]} Q0 {names[row]} {place} {float(scores[row])!r} {tag}"
