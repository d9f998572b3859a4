"""How often do fresh rows of the same data raise an alarm, and which changes do?

    python scripts/study/drift.py FILE… [--splits 100]

FILE: svmlight text, taken as dense rows; half of the rows (or queries) are training's, and of the others 30, 100, 300,
1000 or all are looked at, drawn anew for each split. Printed is how many of the splits raise an alarm: of the rows as
they are; with one column, drawn for each split, moved by half a deviation or by one; and with a fifth of its cells at
their median, as missing ones are.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from apsvm import read_svmlight
from apsvm._support import sparse as sp
from apsvm.data import Dataset
from apsvm.data.drift import MOST_FEATURES, columns_that_left, spread_of

SIZES = (30, 100, 300, 1000, None)
CHANGES = ("as it is", "+ 0.5 sd", "+ 1 sd", "1/5 median")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--splits", type=int, default=100)
    options = parser.parse_args()
    print(f"{'file':<34} {'rows':>6}  " + "  ".join(f"{change:>10}" for change in CHANGES))
    for path in options.files:
        read = read_svmlight(path)
        X = np.asarray(read.X.toarray() if sp.issparse(read.X) else read.X, dtype=np.float64)
        if X.shape[1] > MOST_FEATURES:
            print(f"{path}: {X.shape[1]} features, nothing is kept")
            continue
        for size in SIZES:
            rng = np.random.default_rng(0)
            alarms = np.array([list(split(replace(read, X=X), size, rng)) for _ in range(options.splits)])
            counts = "  ".join(f"{count:>10}" for count in alarms.sum(axis=0).tolist())
            print(f"{path[-34:]:<34} {size or 'all':>6}  {counts}", flush=True)


def split(data: Dataset, size: int | None, rng: np.random.Generator) -> Iterator[bool]:
    """Whether rows held out raise an alarm, for each of ``CHANGES``."""
    units = np.arange(len(data)) if data.groups is None else data.groups
    chosen = rng.permutation(np.unique(units))
    half = chosen.size // 2
    later = np.flatnonzero(np.isin(units, chosen[half:]))
    if size is not None and later.size > size:
        later = np.sort(rng.choice(later, size, replace=False))
    spread = spread_of(data, np.flatnonzero(np.isin(units, chosen[:half])))
    assert spread is not None
    rows = data.select(later)
    names = [str(j) for j in range(data.X.shape[1])]
    deviation = np.asarray(data.X).std(axis=0)
    column = int(rng.choice(np.flatnonzero(deviation > 0.0)))
    for move, share in ((0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (0.0, 0.2)):
        X: NDArray[np.float64] = np.array(rows.X)
        X[:, column] += move * deviation[column]
        X[rng.random(len(X)) < share, column] = np.median(data.X[:, column])
        yield bool(list(columns_that_left(spread, replace(rows, X=X), names)))


if __name__ == "__main__":
    main()
