"""Whether the columns of rows to score have left those of training.

Of each feature some events are looked at: that it is at most v, for a value below training's lowest, five of its
quantiles and its highest; for one that is 0 or 1, v = 0. p is the event's share of N rows of training, drawn evenly,
and q that of n rows to score. A column has left where |q − p| ≥ ``MOVED``, and

    G = n KL(q‖m) + N KL(p‖m),     m = (nq + Np)/(n + N)

is more than chance explains. For rows drawn alike P(G ≥ g) ≤ 4 (1 + g) e^{−g}, since each of the two terms, at the true
share in the place of m, is above t with probability 2 e^{−t} at the most (Chernoff); times the number of events that is
to be no more than ``ALARM``. Rows of one query, or bag, are not drawn one by one: then n and N count those.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apsvm._support import sparse as sp
from apsvm.models.columns import ColumnKind, Columns
from apsvm.models.header import Spread

if TYPE_CHECKING:
    from apsvm.data.dataset import Dataset

#: The least change of a share, and how often a file of rows drawn as training's were may raise an alarm.
MOVED, ALARM = 0.1, 0.001
#: Rows looked at, and features: of more nothing is kept, and nothing of sparse rows that are no table's.
MOST_ROWS, MOST_FEATURES = 4_000, 300
#: Words of a column that are looked at, the most frequent ones.
MOST_WORDS = 10
#: The quantiles between lowest and highest, and the digits of the range that they are kept to.
_QUANTILES, _DIGITS = (0.1, 0.25, 0.5, 0.75, 0.9), 3
_POWERS = np.array([10.0**decimals for decimals in range(15)])
#: Decimals of shares.
_DECIMALS = 4


def spread_of(dataset: Dataset, selection: NDArray[np.int64] | None = None) -> Spread | None:
    """The shares of the rows ``selection`` (m,), by default all; None where none are kept."""
    X, table = dataset.X, dataset.table
    is_kept = isinstance(X, np.ndarray) or (sp.issparse(X) and table is not None)  # on a cluster it is neither
    if not is_kept or X.shape[1] > MOST_FEATURES or dataset.pool is not None or len(dataset) == 0:
        return None
    sample, n = _sample(dataset, selection)
    columns = None if table is None else table.columns
    features: list[int] = []
    values: list[float] = []
    kinds = list(_columns(columns, sample.shape[1]))
    bounds_of = iter(_bounds(sample[:, [j for _, numbers, _ in kinds for j in numbers]]))
    for _, numbers, words in kinds:
        for j in numbers:
            bounds = next(bounds_of)
            features += [j] * len(bounds)
            values += bounds
        often = sorted(words, key=lambda j: -float(sample[:, j].mean()))[:MOST_WORDS]
        features += often
        values += [0.0] * len(often)
    shares = _shares(sample, features, values).round(_DECIMALS)
    return Spread(count=n, features=tuple(features), values=tuple(values), shares=tuple(shares.tolist()))


def columns_that_left(spread: Spread, dataset: Dataset, names: Sequence[str]) -> Iterator[str]:
    """A sentence for each column that has left training's. ``names``: (width,) what its features are called."""
    width = dataset.X.shape[1]
    if len(dataset) == 0 or max(spread.features, default=-1) >= width:
        return
    sample, n = _sample(dataset, None)
    features = np.array(spread.features, dtype=np.int64)
    p, q = np.array(spread.shares), _shares(sample, spread.features, spread.values)
    left = (np.abs(q - p) >= MOVED) & (_log_chance(p, q, spread.count, n) <= np.log(ALARM / max(1, p.size)))
    columns = None if dataset.table is None else dataset.table.columns
    for name, numbers, words in _columns(columns, width):
        here = np.flatnonzero(left & np.isin(features, [*numbers, *words]))
        if not here.size:
            continue
        at = int(here[np.argmax(np.abs(q - p)[here])])
        j, before, now = spread.features[at], float(p[at]), float(q[at])
        if j in words:
            what, before, now = names[j], 1.0 - before, 1.0 - now
        elif now < before:
            what, before, now = f"above {spread.values[at]:.4g}", 1.0 - before, 1.0 - now
        else:
            what = f"at most {spread.values[at]:.4g}"
        shares = f"{100 * now:.0f} % of the rows, in training {100 * before:.0f} %"
        yield f"column {name or names[j]!r} is not as in training: {what} in {shares}"


def _columns(columns: Columns | None, width: int) -> Iterator[tuple[str, list[int], list[int]]]:
    """Of each column its name, "" without a table, the features that are its numbers, and those that are 0 or 1. A date
    has neither: newer ones are what is to be expected."""
    if columns is None:
        yield from (("", [j], []) for j in range(width))
        return
    first = 0
    for column in columns.features:
        own = list(range(first, first + column.width))
        first += column.width
        if column.kind is not ColumnKind.DATE:
            numbers = own[:1] if column.kind is ColumnKind.NUMBER else []
            yield column.name, numbers, own[len(numbers) :]


def _sample(dataset: Dataset, selection: NDArray[np.int64] | None) -> tuple[NDArray[np.float64], int]:
    """Dense rows, evenly drawn, and of how many units: queries, bags, or rows."""
    rows, n = selection, len(dataset) if selection is None else selection.size
    if n > MOST_ROWS:
        drawn = np.linspace(0, n - 1, MOST_ROWS).astype(np.int64)
        rows, n = drawn if selection is None else selection[drawn], MOST_ROWS
    X = dataset.X if rows is None else dataset.X[rows]
    units = dataset.groups if dataset.groups is not None else dataset.bags
    if units is not None:
        n = int(np.unique(units if rows is None else units[rows]).size)
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64), n


def _bounds(values: NDArray[np.float64]) -> Iterator[list[float]]:
    """Those of each feature of (n, k): below the lowest, quantiles, each once, and the highest."""
    ordered = np.sort(values, axis=0)
    lowest, highest = ordered[0], ordered[-1]
    inner = ordered[(np.array(_QUANTILES) * (len(ordered) - 1)).astype(np.int64)]
    with np.errstate(over="ignore", divide="ignore"):
        decimals = _DIGITS - np.floor(np.log10(highest - lowest))
        to_round = np.abs(decimals) < len(_POWERS)
        power = _POWERS[np.where(to_round, np.abs(decimals), 0.0).astype(np.int64)]
        rounded = np.where(decimals < 0.0, np.rint(inner / power) * power, np.rint(inner * power) / power)
    inner = np.where(to_round, rounded, inner)
    below = np.nextafter(lowest, -np.inf)
    for low, high, least, quantiles in zip(*(part.tolist() for part in (lowest, highest, below, inner.T)), strict=True):
        inside = sorted({value for value in quantiles if low <= value < high})
        yield [*([least] if math.isfinite(least) else []), *inside, high]


def _shares(sample: NDArray[np.float64], features: Sequence[int], values: Sequence[float]) -> NDArray[np.float64]:
    """(k,) of the rows in which the feature is at most the value."""
    at_most = sample[:, list(features)] <= np.array(values, dtype=sample.dtype)
    shares: NDArray[np.float64] = at_most.mean(axis=0)
    return shares


def _log_chance(p: NDArray[np.float64], q: NDArray[np.float64], N: int, n: int) -> NDArray[np.float64]:
    """(k,) a bound on the logarithm of the probability that shares are as far apart as p and q."""
    m = (N * p + n * q) / (N + n)
    G = N * _divergence(p, m) + n * _divergence(q, m)
    chance: NDArray[np.float64] = np.log(4.0) + np.log1p(G) - G
    return chance


def _divergence(p: NDArray[np.float64], m: NDArray[np.float64]) -> NDArray[np.float64]:
    """KL(p‖m) of two events' shares; m is 0 or 1 only where p is, too."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(a > 0.0, a * np.log(a / b), 0.0) for a, b in ((p, m), (1.0 - p, 1.0 - m))]
    return terms[0] + terms[1]
