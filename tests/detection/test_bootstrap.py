"""Drawing images against evaluating the drawn images, copies and all."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from detections import Scenes, random_scenes

from apsvm.detection.bootstrap import _draws, difference, draw_images, interval_of
from apsvm.detection.joined import join
from apsvm.detection.measure import evaluate, parse_metric, usual_rules
from apsvm.metrics import significance


def evaluated(scenes, name, ties="stable"):
    joined, metric = join(scenes.as_objects(), [scenes.as_detections()]), parse_metric(name)
    rules = dataclasses.replace(usual_rules(metric), ties=ties)
    return evaluate(metric, rules, joined, joined.systems[0])


def copied(scenes, times):
    """The scenes with image i there times[i] times."""
    result = Scenes()
    for (image, size), count in zip(scenes.images.items(), times.tolist(), strict=True):
        for copy in range(count):
            result.images[f"{image}.{copy}"] = size
            result.objects += [(f"{image}.{copy}", *rest) for of, *rest in scenes.objects if of == image]
            result.detections += [(f"{image}.{copy}", *rest) for of, *rest in scenes.detections if of == image]
    return result


@pytest.mark.parametrize("ties", ["stable", "block"])
@pytest.mark.parametrize("name", ["AP(voc2010)", "AP(voc2007)", "AP(coco)"])
def test_a_draw_is_the_drawn_images(rng, monkeypatch, name, ties):
    """… a few draws at a time."""
    monkeypatch.setattr(significance, "_AT_ONCE", 300)
    scenes = random_scenes(rng, n_images=8)
    evaluation = evaluated(scenes, name, ties)
    assert 25 < evaluation.rows[0].scores.size < 300
    draws = draw_images([evaluation], 8, 12, seed=3)
    ((first, times),) = _draws(8, 12, seed=3)
    assert first == 0
    assert (times.sum(axis=1) == 8).all()
    classes = scenes.classes
    for draw in range(12):
        drawn = copied(scenes, times[draw])
        expected = np.full(4, np.nan)
        result = evaluated(drawn, name, ties)
        for number, of_class in enumerate(drawn.classes):
            expected[classes.index(of_class)] = result.ap[number]
        expected[-1] = result.mean
        np.testing.assert_allclose(draws[draw, 0], expected, rtol=0, atol=1e-12)
    assert np.ptp(draws[:, 0, -1]) > 0.01


def test_a_system_does_not_differ_from_itself(rng):
    evaluation = evaluated(random_scenes(rng), "AP(voc2010)")
    draws = draw_images([evaluation, evaluation], 20, 200, seed=1)
    result = difference(evaluation.mean, evaluation.mean, draws[:, 0, -1], draws[:, 1, -1], 0.95)
    assert (result.effect, result.low, result.high, result.p) == (0.0, 0.0, 0.0, 1.0)


def test_a_worse_system_does(rng):
    scenes = random_scenes(rng, n_images=40)
    good, bad = evaluated(scenes, "AP(voc2010)"), dataclasses.replace(scenes)
    bad.detections = [(image, name, -score, box) for image, name, score, box in scenes.detections][::2]
    bad = evaluated(bad, "AP(voc2010)")
    draws = draw_images([good, bad], 40, 300, seed=1)
    result = difference(good.mean, bad.mean, draws[:, 0, -1], draws[:, 1, -1], 0.9)
    assert result.effect == bad.mean - good.mean
    assert result.low < result.effect < result.high < 0
    better = np.count_nonzero(draws[:, 1, -1] >= draws[:, 0, -1])
    assert 0 < better < 15
    assert result.p == pytest.approx(2 * (1 + better) / 301)


def test_classes_that_a_draw_does_not_have(rng):
    scenes = Scenes(
        {"a": (50, 50), "b": (50, 50)},
        [("a", "ant", (1, 1, 9, 9), 0), ("b", "bee", (1, 1, 9, 9), 0)],
        [("a", "ant", 0.5, (1, 1, 9, 9))],
    )
    draws = draw_images([evaluated(scenes, "AP(voc2010)")], 2, 100, seed=0)[:, 0]
    ((_, times),) = _draws(2, 100, seed=0)
    without = times[:, 0] == 0
    assert without.any()
    assert np.array_equal(np.isnan(draws[:, 0]), without)
    assert set(draws[~without, 0]) == {1.0}
    assert np.array_equal(draws[:, 2], np.where(without, 0.0, np.where(times[:, 1] == 0, 1.0, 0.5)))
    assert interval_of(draws[:, 0], 0.95) == (1.0, 1.0)
    assert np.isnan(interval_of(np.array([np.nan]), 0.95)).all()
