"""Is the default C a good one? k-fold cross-validated AP along multiples of it, against rivals of the rule.

For each set and scaling: the metric at the default ("1x"), the best of all multiples and where it is, and how far the
default is behind. Then, for each rule, C = factor / (its statistic of the training rows): at the factor that serves the
sets best, on how many of them it is within 0.02 of the best, and what it loses on average and at worst. Between the
multiples tried, values are interpolated in log C.

    python scripts/study_default_c.py DATA [DATA …] [--loss ap] [--metric AP] [--scale none,maxabs,standard] [--bias B]

DATA are svmlight files with labels +1 and -1 (or 0), or with --relevant-from; with qid: folds are of queries.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm.data.features.scaling import learn_scaling
from apsvm.data.labels import Takes, of_numbers, of_relevance
from apsvm.data.rows import Rows
from apsvm.metrics.evaluate import evaluate
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.default_c import default_C
from apsvm.trainers.families.structured_svm import StructuredSettings, StructuredSVMTrainer
from apsvm.trainers.structured_svm import train_path

NEAR = 0.02


@dataclass
class Fold:
    """steps : log10 of the multiples of the default; values : the metric at each; statistics : what rules divide by, by
    their names."""

    default: float
    steps: np.ndarray
    values: np.ndarray
    statistics: dict[str, float]

    def at(self, C: float) -> float:
        return float(np.interp(np.log10(C / self.default), self.steps, self.values))


RULES: dict[str, Callable[[np.ndarray, np.ndarray, int], float]] = {
    "1": lambda mean, variance, n_pos: 1.0,
    "mean ‖x‖²": lambda mean, variance, n_pos: float((mean**2 + variance).sum()),
    "d · mean variance": lambda mean, variance, n_pos: float(variance.sum()),
    "d · median variance": lambda mean, variance, n_pos: float(variance.size * np.median(variance)),
    "d · geometric mean": lambda mean, variance, n_pos: float(variance.size * np.exp(np.log(variance).mean())),
    "… / √P": lambda mean, variance, n_pos: float(variance.size * np.exp(np.log(variance).mean()) / np.sqrt(n_pos)),
    "… · √P": lambda mean, variance, n_pos: float(variance.size * np.exp(np.log(variance).mean()) * np.sqrt(n_pos)),
    "d · harmonic mean": lambda mean, variance, n_pos: float(variance.size / np.mean(1.0 / variance)),
}


def folds_of(dataset, relevant, scale: str, steps: np.ndarray, options) -> list[Fold]:
    splitter = StratifiedKFold(options.folds, shuffle=True, random_state=0)
    splits = splitter.split(relevant, relevant)
    if dataset.groups is not None:
        splits = GroupKFold(options.folds).split(relevant, relevant, dataset.groups)
    bias = options.bias if options.bias >= 0 else None
    plan = StructuredSVMTrainer(options.loss, StructuredSettings(bound=options.bound, time_limit=options.time_limit))
    found = []
    for fit, test in splits:
        scaling = learn_scaling(scale, dataset.X, fit)
        groups, held_out = (None, None) if dataset.groups is None else (dataset.groups[fit], dataset.groups[test])
        target = of_relevance(relevant[fit])
        if options.relevant_from is not None and plan.takes is Takes.GRADES:
            target = of_numbers(dataset.relevance[fit], plan.takes)
        rows = Rows(dataset.X, bias=bias, selection=fit, scaling=scaling)
        data = TrainingSet(rows, target, groups)
        default = default_C(data, plan.loss, options.bound)
        tests = Rows(dataset.X, bias=bias, selection=test, scaling=scaling)
        values = []
        for trained in train_path(data, plan.loss, plan.settings, list(default * 10.0**steps), Watch()):
            result = evaluate([options.metric], tests.scores(trained.w), relevant[test], groups=held_out)
            values.extend(result.values.values())
        mean, variance = rows.moments(groups)
        varies = variance > 0
        statistics = {
            name: rule(mean[varies], variance[varies], int(relevant[fit].sum())) for name, rule in RULES.items()
        }
        found.append(Fold(default, steps, np.array(values), statistics))
    return found


def behind(folds: list[Fold], rule: str, factor: float) -> float:
    best = np.mean([fold.values for fold in folds], axis=0).max()
    return float(best - np.mean([fold.at(factor / fold.statistics[rule]) for fold in folds]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--loss", default="ap")
    parser.add_argument("--metric", default="AP")
    parser.add_argument("--bound", default="hinge")
    parser.add_argument("--scale", default="none,maxabs,standard")
    parser.add_argument("--bias", type=float, default=-1.0)
    parser.add_argument("--relevant-from", type=float)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds a path")
    parser.add_argument("--decades", type=int, nargs=2, default=(-4, 4), help="multiples to try, powers of ten")
    options = parser.parse_args()
    steps = np.arange(2 * options.decades[0], 2 * options.decades[1] + 1) / 2
    cases: dict[tuple[str, str], list[Fold]] = {}
    print(f"{'set':<28} {'scale':<9} {'default C':>10} {'at 1x':>7} {'best':>7} {'at':>7} {'behind':>7}")
    for path in options.data:
        dataset = read_svmlight(path)
        relevant = dataset.positives(relevant_from=options.relevant_from)
        for scale in options.scale.split(","):
            folds = cases[path, scale] = folds_of(dataset, relevant, scale, steps, options)
            means = np.mean([fold.values for fold in folds], axis=0)
            at_default = means[steps.tolist().index(0.0)]
            print(
                f"{Path(path).name:<28} {scale:<9} {np.median([fold.default for fold in folds]):>10.3g} "
                f"{at_default:>7.4f} {means.max():>7.4f} {10 ** steps[means.argmax()]:>6.3g}x "
                f"{means.max() - at_default:>7.4f}",
                flush=True,
            )
    print(f"\n{'C = factor / …':<20} {'factor':>8}  within {NEAR} of the best, by scaling; behind on average, at worst")
    for rule in RULES:
        table = []
        for power in np.arange(-2.0, 7.01, 0.25):
            lost = {case: behind(folds, rule, 10.0**power) for case, folds in cases.items()}
            near = sum(value <= NEAR for value in lost.values())
            table.append((near, -float(np.mean(list(lost.values()))), power, lost))
        _, mean, power, lost = max(table, key=lambda row: row[:2])
        counts = [
            f"{scale} {sum(value <= NEAR for (_, of), value in lost.items() if of == scale)}/"
            f"{sum(of == scale for _, of in lost)}"
            for scale in options.scale.split(",")
        ]
        print(f"{rule:<20} {10**power:>8.3g}  {', '.join(counts)}; {-mean:.4f}, {max(lost.values()):.4f}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
