"""How large the constant feature of ``--loss f1`` and ``zero-one`` should be (``apsvm.trainers.constant_feature``).

    python scripts/study/constant.py rows/*.svm [--loss f1,zero-one] [--rows 12000]

Each set is trained on half its rows, all else by default, and measured on the others: on raw features, on standardised
ones, and on raw ones times 1000. The highest label is positive. Prints F1 and accuracy of each set, and the means over
the sets.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import apsvm
from apsvm.data.dataset import Dataset
from apsvm.data.labels import LabelOptions
from apsvm.selection.completion import outcomes
from apsvm.trainers import trainer_of
from apsvm.trainers.base import Watch
from apsvm.trainers.constant_feature import mean_deviation
from apsvm.trainers.fitting import FeatureOptions, Fit

#: Constants as they are, and as multiples of the geometric mean of the features' deviations.
SIZES = {"none": None, "1": 1.0, "10": 10.0}
MULTIPLES = {"1x": 1.0, "10x": 10.0, "100x": 100.0}
FEATURES = {"raw": ("none", 1.0), "standardised": ("standard", 1.0), "raw, times 1000": ("none", 1000.0)}


def measured(
    data: Dataset, loss: str, scale: str, training: np.ndarray, test: np.ndarray
) -> dict[str, tuple[float, float]]:
    """F1 and accuracy of the rows ``test`` by the constant's size."""
    family = trainer_of(loss)
    trainer = family(loss, family.Settings(threads=1))
    label = float(data.relevance.max())
    positive = data.relevance[test] == label

    def fit(bias: float | None) -> Fit:
        features = FeatureOptions(scale=scale, bias=bias)
        return Fit.of(data, trainer, LabelOptions(positive_label=label), features, selection=training).prepared()

    mean = mean_deviation(fit(None).training_set().rows.moments().variance)
    figures = {}
    for name, size in (SIZES | {name: times * mean for name, times in MULTIPLES.items()}).items():
        plan = fit(size)
        *_, outcome = outcomes(plan, Watch())
        called = plan.model(outcome).score(data.X[test]) > 0.0
        f1 = 2 * (called & positive).sum() / max(1, called.sum() + positive.sum())
        figures[name] = (float(f1), float((called == positive).mean()))
    return figures


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--loss", default="f1,zero-one")
    parser.add_argument("--rows", type=int, default=12_000, help="the most rows that are taken of a set")
    options = parser.parse_args()
    means = defaultdict(list)
    for path in options.sets:
        data = apsvm.read_svmlight(str(path))
        rows = np.random.default_rng(0).permutation(data.X.shape[0])[: options.rows]
        training, test = (np.sort(half) for half in np.array_split(rows, 2))
        for loss in options.loss.split(","):
            for features, (scale, times) in FEATURES.items():
                figures = measured(replace(data, X=data.X * times), loss, scale, training, test)
                shown(path.stem, loss, features, figures)
                for name, pair in figures.items():
                    means[loss, features, name].append(pair)
    for loss, features in dict.fromkeys((loss, features) for loss, features, _ in means):
        of_sizes = {name: np.mean(means[loss, features, name], axis=0) for name in SIZES | MULTIPLES}
        shown("mean", loss, features, of_sizes)


def shown(which: str, loss: str, features: str, figures: Mapping[str, Sequence[float]]) -> None:
    """Prints a line."""
    cells = [f"{name} {f1:.3f} {accuracy:.3f}" for name, (f1, accuracy) in figures.items()]
    print(f"{which:16} {loss:8} {features:16} {' | '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
