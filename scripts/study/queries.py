"""Losses compared on learning to rank, many queries with grades, and LightGBM's lambdarank beside them if installed.

C (LightGBM: leaves and rounds, by early stopping) is chosen on a third of the training queries, by the metric of
--choose-by; then all training queries are used. Printed: metrics of the test queries with bootstrap intervals over
queries, the setting chosen, and seconds of the final training on one thread. Queries without rows to tell apart do not
count.

    python scripts/study/queries.py TRAIN TEST [--losses ap,ndcg,zero-one] [--bounds hinge,tight]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from apsvm import read_svmlight
from apsvm.data.dataset import Dataset
from apsvm.data.labels import of_numbers
from apsvm.data.rows import Rows
from apsvm.metrics.evaluate import evaluate
from apsvm.trainers.base import TrainingSet, Watch
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer

METRICS = ["nDCG(exp)@1", "nDCG(exp)@3", "nDCG(exp)@5", "nDCG(exp)@10", "AP", "RR"]
CHOICES = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0]


def values(scores: NDArray[np.float64], data: Dataset, rows: NDArray[np.int64], metrics: list[str]) -> list:
    """(G,) arrays, NaN where a query does not count."""
    assert data.groups is not None
    found = evaluate(metrics, scores, data.relevance[rows], groups=data.groups[rows], relevant_from=1.0)
    return [found.in_group[name] for name in found.values]


def interval(samples: NDArray[np.float64]) -> tuple[float, float]:
    """Mean over queries, and half of the 95 % bootstrap interval."""
    kept = samples[~np.isnan(samples)]
    rng = np.random.default_rng(0)
    means = kept[rng.integers(0, kept.size, size=(1000, kept.size))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(kept.mean()), float(high - low) / 2


def ours(loss: str, bound: str, train: Dataset, fit, valid, test: Dataset, choose_by: str):
    """Scores of the test rows, the C chosen, seconds."""
    bias = 1.0 if loss == "zero-one" else None
    plan = StructuredSVMTrainer(loss, StructuredSettings(C=tuple(CHOICES), bound=bound))

    def data(rows):
        target = of_numbers(train.relevance[rows], plan.capabilities.labels)
        return TrainingSet(Rows(train.X[rows], bias=bias), target, train.groups[rows])

    quality = {}
    for C, outcome in zip(CHOICES, plan.train(data(fit), Watch()), strict=True):
        scores = Rows(train.X[valid], bias=bias).scores(outcome.w)
        quality[C] = float(np.nanmean(values(scores, train, valid, [choose_by])[0]))
    C = max(quality, key=quality.__getitem__)
    everything = data(np.arange(train.relevance.size))
    began = time.perf_counter()
    (outcome,) = plan.with_settings(C=(C,)).train(everything, Watch())
    seconds = time.perf_counter() - began
    return Rows(test.X, bias=bias).scores(outcome.w), f"C={C:g}", seconds


def lambdarank(train: Dataset, fit, valid, test: Dataset):
    import lightgbm

    def sizes(groups):
        return np.unique(groups, return_counts=True)[1]

    best = None
    for leaves in (7, 15, 31):
        ranker = lightgbm.LGBMRanker(num_leaves=leaves, n_estimators=500, learning_rate=0.05, n_jobs=1, verbose=-1)
        ranker.fit(
            train.X[fit],
            train.relevance[fit],
            group=sizes(train.groups[fit]),
            eval_set=[(train.X[valid], train.relevance[valid])],
            eval_group=[sizes(train.groups[valid])],
            eval_at=[10],
            callbacks=[lightgbm.early_stopping(50, verbose=False)],
        )
        score = ranker.best_score_["valid_0"]["ndcg@10"]
        if best is None or score > best[0]:
            best = score, leaves, ranker.best_iteration_
    _, leaves, rounds = best
    ranker = lightgbm.LGBMRanker(num_leaves=leaves, n_estimators=rounds, learning_rate=0.05, n_jobs=1, verbose=-1)
    began = time.perf_counter()
    ranker.fit(train.X, train.relevance, group=sizes(train.groups))
    return ranker.predict(test.X), f"{leaves} leaves, {rounds} rounds", time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--losses", default="ap,ndcg,ndcg@10,mrr,auc,zero-one")
    parser.add_argument("--bounds", default="hinge,tight")
    parser.add_argument("--choose-by", default="nDCG(exp)@10")
    arguments = parser.parse_args()
    train = read_svmlight(arguments.train)
    test = read_svmlight(arguments.test, n_features=train.X.shape[1], ignore_unknown=True)
    order = np.argsort(train.groups, kind="stable")  # LightGBM wants queries together
    train = replace(train, X=train.X[order], relevance=train.relevance[order], groups=train.groups[order])
    queries = np.random.default_rng(0).permutation(np.unique(train.groups))
    held = np.isin(train.groups, queries[: queries.size // 3])
    fit, valid = np.flatnonzero(~held), np.flatnonzero(held)
    everything = np.arange(test.relevance.size)

    print(
        f"{train.relevance.size} rows in {queries.size} queries, {test.relevance.size} in {np.unique(test.groups).size}"
    )
    print(f"{'method':<20} " + " ".join(f"{name:>18}" for name in METRICS) + f" {'setting':>20} {'seconds':>8}")

    def show(name, scores, setting, seconds):
        cells = []
        for samples in values(scores, test, everything, METRICS):
            mean, half = interval(samples)
            cells.append(f"{mean:>9.4f} ± {half:<6.4f}")
        print(
            f"{name:<20} " + " ".join(f"{cell:>18}" for cell in cells) + f" {setting:>20} {seconds:>8.3f}", flush=True
        )

    for loss in arguments.losses.split(","):
        for bound in arguments.bounds.split(","):
            if bound == "tight" and loss == "zero-one":
                continue
            show(f"{loss} {bound}", *ours(loss, bound, train, fit, valid, test, arguments.choose_by))
    try:
        show("LightGBM lambdarank", *lambdarank(train, fit, valid, test))
    except ImportError:
        print("LightGBM is not installed: its lambdarank is left out")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
