"""How well does a threshold hold on new rows? False positives and F1 there of thresholds chosen on rows held out, with
the folds' scores carried to where the model would have them and without, and on training scores.

    python scripts/study/thresholds.py

Made tables of 500 and 1,000 training rows, a fifth or six in a hundred of them positive, and 3,000 or more new rows.
The thresholds are those for 5 % false positives and for the highest F1.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification

from apsvm.data.dataset import Dataset
from apsvm.data.labels import LabelOptions
from apsvm.metrics.thresholds import ThresholdRule, choose_threshold
from apsvm.selection.completion import outcomes, training_scores
from apsvm.selection.decision import race_alone
from apsvm.selection.thresholds import held_out_scores
from apsvm.trainers import trainer_of
from apsvm.trainers.base import Outcome, Watch
from apsvm.trainers.fitting import FeatureOptions, Fit
from apsvm.trainers.ranking_check import scores_of

TRAININGS = (
    ("ap", {}), ("ap", {"bound": "hinge"}), ("auc", {}), ("wmw", {}), ("warp", {})
)  # fmt: skip
FPR, F1 = ThresholdRule("fpr", 0.05), ThresholdRule("f1")


def main() -> None:
    columns = ("held out", "held out, as they are", "training scores")
    print(f"{'table':>5} {'loss':<12}" + "".join(f"{name:>24}" for name in columns) + f"{'best F1':>10}")
    of_all = []
    for seed in range(4):
        X, y = make_classification(
            4000,
            30,
            n_informative=8,
            weights=[0.94 if seed % 2 else 0.8],
            flip_y=0.03,
            random_state=seed,
            class_sep=0.8,
        )
        n = (500, 1000)[seed // 2]
        for loss, settings in TRAININGS:
            fit, outcome = trained(X[:n], y[:n] == 1, loss, settings)
            new, positive = scores_of(outcome.w, fit.rows(X[n:])), y[n:] == 1
            rows = [judged(*choice, new, positive) for choice in choices(fit, outcome, y[:n] == 1)]
            of_all.append(rows)
            best = f1(new, positive, choose_threshold(new, positive, F1).value)
            shown = "".join(f"{f'{fpr:.1%}, F1 {f:.3f}':>24}" for fpr, f in rows)
            print(f"{seed:>5} {loss + ' ' + settings.get('bound', ''):<12}{shown}{best:>10.3f}", flush=True)
    means = np.mean(of_all, axis=0)
    print(f"{'mean':>18}" + "".join(f"{f'{fpr:.1%}, F1 {f:.3f}':>24}" for fpr, f in means.tolist()))


def trained(
    X: NDArray[np.float64], positive: NDArray[np.bool_], loss: str, settings: dict[str, str]
) -> tuple[Fit, Outcome]:
    """A training and its outcome."""
    dataset = Dataset(
        X=X, relevance=np.where(positive, 1.0, -1.0), groups=None, costs=None, zero_based=False, source="the rows",
        fingerprint="", unknown_features=0,
    )  # fmt: skip
    kind = trainer_of(loss)
    fit = Fit.of(dataset, kind(loss, kind.Settings(threads=1, **settings)), LabelOptions(), FeatureOptions())
    *_, outcome = outcomes(fit, Watch())
    return fit, outcome


def choices(
    fit: Fit, outcome: Outcome, positive: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
    """The scores that a threshold is chosen on, and which rows are positive."""
    seen = training_scores(outcome, fit.training_set())
    raced = race_alone(fit, outcome, bool)
    assert raced is not None
    folds, how = raced
    held_out = held_out_scores(folds, seen, fit.target.relevant, how)
    with patch("apsvm.selection.thresholds.carried", lambda scores, own, theirs: scores):
        as_they_are = held_out_scores(folds, seen, fit.target.relevant, how)
    yield held_out.scores, held_out.relevant
    yield as_they_are.scores, as_they_are.relevant
    yield seen, positive


def judged(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_], new: NDArray[np.float64], positive: NDArray[np.bool_]
) -> tuple[float, float]:
    """On new rows, the false-positive rate of the threshold for 5 %, and the F1 of that for the highest."""
    above = new > choose_threshold(scores, relevant, FPR).value
    return float(above[~positive].mean()), f1(new, positive, choose_threshold(scores, relevant, F1).value)


def f1(scores: NDArray[np.float64], positive: NDArray[np.bool_], threshold: float) -> float:
    above = scores > threshold
    return float(2.0 * (above & positive).sum() / (above.sum() + positive.sum()))


if __name__ == "__main__":
    main()
