"""How sure the average precision of detections is, and whether two detectors differ: images are drawn.

As many images as there are, with replacement; a copy brings its objects and its detections, whose matches stay what
they are, since matching looks within an image only. The mean is over the classes that have an object in the draw.

Two systems see the same draws. p = 2 · min(1 + #{d ≤ 0}, 1 + #{d ≥ 0}) / (1 + draws), at most 1, is the two-sided
achieved significance of the paired bootstrap (Efron, Tibshirani, "An introduction to the bootstrap", 1993, ch. 15.4);
no scores are mixed, which of two detectors have no common scale. O(draws · rows) for each threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from apsvm.detection.base import Counts, Floats
from apsvm.detection.measure import DetectionEvaluation, mean_over_classes
from apsvm.metrics.significance import Difference, batches, interval


def draw_images(evaluations: Sequence[DetectionEvaluation], n_images: int, n_draws: int, seed: int) -> Floats:
    """(n_draws, S, C + 1): the AP of every class, and behind it their mean, of S systems under one metric. NaN where a
    draw has no object of the class."""
    n_classes = evaluations[0].ap.size
    result = np.full((n_draws, len(evaluations), n_classes + 1), np.nan)
    for first, times in _draws(n_images, n_draws, seed):
        for at, evaluation in enumerate(evaluations):
            result[first : first + len(times), at, :-1] = _of_draws(evaluation, times, n_classes)
    result[..., -1] = mean_over_classes(result[..., :-1])
    return result


def _draws(n_images: int, n_draws: int, seed: int) -> Iterator[tuple[int, Counts]]:
    """First number of a batch of draws, and how often each image is in each: (draws, n_images)."""
    rng = np.random.default_rng(seed)
    for first, last in batches(n_draws, n_images):
        drawn = rng.integers(0, n_images, (last - first, n_images))
        drawn += n_images * np.arange(last - first)[:, np.newaxis]
        yield first, np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)


def _of_draws(evaluation: DetectionEvaluation, times: Counts, n_classes: int) -> Floats:
    """(draws, C) the AP of every class."""
    total = np.zeros((len(times), n_classes))
    for rows in evaluation.rows:
        for first, last in batches(len(times), max(1, rows.scores.size)):
            ap = np.full((last - first) * n_classes, np.nan)
            drawn = times[first:last]
            if drawn[:, rows.of_image].any():
                table, numbers = rows.table(evaluation.rules.ties, drawn, n_classes)
                ap[numbers] = evaluation.metric.average.each(table)
            total[first:last] += ap.reshape(-1, n_classes)
    return total / len(evaluation.rows)


def interval_of(draws: Floats, confidence: float) -> tuple[float, float]:
    """Between which two numbers lie ``confidence`` of the draws (n,) that have a value; NaN if none has."""
    draws = draws[~np.isnan(draws)]
    return interval(draws, confidence) if draws.size else (np.nan, np.nan)


def difference(a: float, b: float, draws_a: Floats, draws_b: Floats, confidence: float | None) -> Difference:
    """b against a; draws (n,) of the same images."""
    d = draws_b - draws_a
    d = d[~np.isnan(d)]
    least = min(int(np.count_nonzero(d <= 0)), int(np.count_nonzero(d >= 0)))
    p = min(1.0, 2 * (1 + least) / (1 + d.size))
    low, high = (None, None) if confidence is None or not d.size else interval(d, confidence)
    return Difference(b - a, low, high, p, None, None)
