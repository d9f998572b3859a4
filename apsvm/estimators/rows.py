"""Effect of ``qid`` and ``sample_weight``: which rows count, in which queries, and with what weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from apsvm._support.types import Column, Matrix
from apsvm.estimators.parameters import distinct_values

if TYPE_CHECKING:
    from apsvm._support.types import AnyArray

#: Maximum number of rows with their copies; more would take gigabytes.
MOST_COPIES = 2**28


@dataclass(frozen=True, slots=True)
class Counted:
    """Rows that count, with their weights."""

    members: NDArray[np.int64]  #: (m,) ascending; a row of weight k occurs k times
    groups: NDArray[np.int64] | None = None  #: (m,) the rows' queries; None: one query
    query_weights: dict[int, float] | None = None  #: weight of every group; None: all 1
    #: (m,) of mean 1, for a loss over rows or pairs of rows; None: all 1.
    costs: NDArray[np.float64] | None = None


def count_rows(X: Matrix, qid: Column, sample_weight: Column, *, by_query: bool, by_pair: bool = False) -> Counted:
    """Rows of X that count, and their weights.

    by_query : the weights are those of queries, or copies of rows; otherwise costs
    by_pair : a pair of rows counts as the product of their weights

    Raises ValueError for weights or qids that do not fit.
    """
    n_rows = X.shape[0]
    every = np.arange(n_rows, dtype=np.int64)
    groups = None if qid is None else numbered("qid", qid, n_rows)
    if sample_weight is None:
        return Counted(every, groups)
    sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not sample_weight.any():
        raise ValueError("all sample weights are zero")
    is_whole = sample_weight.sum() <= MOST_COPIES and (sample_weight == np.floor(sample_weight)).all()
    if not by_query or (by_pair and not is_whole):
        return Counted(every, groups, costs=sample_weight * (n_rows / sample_weight.sum()))
    if groups is None or by_pair:
        if not is_whole:
            row = int(np.argmax(sample_weight != np.floor(sample_weight)))
            raise ValueError(
                f"a row of sample_weight k counts as k rows: expected whole numbers, found {sample_weight[row]:g} in "
                f"row {row}, and {sample_weight.sum():g} of at most {MOST_COPIES} copies of rows. Queries (qid), "
                "loss='zero-one' and RankNCG accept fractions; a ranking metric needs no weights against imbalance"
            )
        members = np.repeat(every, sample_weight.astype(np.int64))
        return Counted(members, None if groups is None else groups[members])
    first = np.unique(groups, return_index=True)[1]
    require_shared("sample_weight", sample_weight, first[groups], "query")
    return Counted(every, groups, query_weights=dict(enumerate(sample_weight[first].tolist())))


def require_shared(name: str, values: AnyArray, first: NDArray[np.int64], unit: str) -> None:
    """Raises ValueError if rows of one ``unit`` (a query or a bag) differ in ``values`` (n,); ``first``: the first row
    of each row's unit, (n,)."""
    differs = values != values[first]
    if differs.any():
        row = int(np.argmax(differs))
        other = int(first[row])
        value, value_of_other = values[[row, other]].tolist()
        raise ValueError(
            f"rows of a {unit} share {name}: found {value!r} in row {row} and {value_of_other!r} in row {other} of the "
            f"same {unit}"
        )


def numbered(name: str, column: Column, n_rows: int) -> NDArray[np.int64]:
    """Numbers queries or bags from 0, in the order of their ids, which may be of any type that can be sorted: (n_rows,)
    int64. ``name``: the column in messages. Raises ValueError."""
    ids = np.asarray(column)
    if ids.shape != (n_rows,):
        raise ValueError(f"expected {name} of shape ({n_rows},), one a row, found {ids.shape}")
    if ids.dtype.kind == "f" and not np.isfinite(ids).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return distinct_values(name, ids)[1].astype(np.int64)
