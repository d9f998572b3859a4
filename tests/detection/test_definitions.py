"""Matching and average precision against their definitions, written as plain loops, and what must not matter."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from detections import Scenes, random_scenes
from over import over

from apsvm.detection.measure import FORMS, evaluate, parse_metric
from apsvm.metrics import MetricError

SEEDS = range(30)


def iou(a, b, extra):
    width = min(a[2], b[2]) - max(a[0], b[0]) + extra
    height = min(a[3], b[3]) - max(a[1], b[1]) + extra
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0] + extra) * (box[3] - box[1] + extra) for box in (a, b)]
    return width * height / (areas[0] + areas[1] - width * height)


def voc_devkit(scenes, name, threshold, *, count_difficult=False):
    """VOCevaldet.m: (precision, recall) after each detection, the number of objects, and of right detections."""
    objects = [(image, box, kind) for image, of_class, box, kind in scenes.objects if of_class == name]
    ignored = [kind == 2 or (kind == 1 and not count_difficult) for *_, kind in objects]
    n_objects, seen, points = ignored.count(False), set(), []
    right = wrong = 0
    rows = [row for row in scenes.detections if row[1] == name]
    for image, _, _, box in sorted(rows, key=lambda row: -row[2]):
        best, which = -math.inf, None
        for at, (of_image, of_object, _) in enumerate(objects):
            if of_image == image and (overlap := iou(box, of_object, 1)) > best:
                best, which = overlap, at
        if best >= threshold and ignored[which]:
            continue
        if best >= threshold and which not in seen:
            seen.add(which)
            right += 1
        else:
            wrong += 1
        if n_objects:
            points.append((right / (right + wrong), right / n_objects))
    return points, n_objects, right


def ap_2007(points):
    return math.fsum(max((p for p, r in points if r >= t), default=0.0) for t in np.arange(0.0, 1.1, 0.1)) / 11


def ap_2010(points):
    recalls = [0.0, *(r for _, r in points)]
    return math.fsum((recalls[at + 1] - recalls[at]) * max(p for p, _ in points[at:]) for at in range(len(points)))


@over("seed", SEEDS)
@over("tied", [False, True])
def test_voc_is_the_devkits(seed, tied):
    scenes = random_scenes(np.random.default_rng(seed), tied=tied)
    objects, detections = scenes.as_objects(), scenes.as_detections()
    for name, average, threshold in (
        ("AP(voc2010)", ap_2010, 0.5), ("AP(voc2007)", ap_2007, 0.5), ("AP(voc2010)@0.7", ap_2010, 0.7),
    ):  # fmt: skip
        for count_difficult in (False, True):
            result = evaluate(parse_metric(name), objects, detections, count_difficult=count_difficult)
            expected = []
            for number, of_class in enumerate(detections.classes):
                points, n_objects, right = voc_devkit(scenes, of_class, threshold, count_difficult=count_difficult)
                assert (result.n_objects[number], result.n_right[number]) == (n_objects, right)
                if n_objects:
                    expected.append(average(points))
                    assert result.ap[number] == pytest.approx(expected[-1], abs=1e-12)
                    assert result.recall[number] == right / n_objects
            assert result.mean == pytest.approx(np.mean(expected), abs=1e-12)


def test_random_scenes_have_what_the_rules_differ_on():
    """IoU at a threshold exactly, second detections of an object, equal scores, images without objects."""
    scenes = [random_scenes(np.random.default_rng(seed), tied=True) for seed in SEEDS]
    exact = doubled = 0
    for one in scenes:
        for of_image, of_class, _, box in one.detections:
            objects = [row for row in one.objects if row[:2] == (of_image, of_class)]
            overlaps = [iou(box, of_object, 1) for _, _, of_object, _ in objects]
            exact += 0.5 in overlaps
            doubled += sum(overlap > 0.5 for overlap in overlaps) > 1
    assert exact >= 5
    assert doubled >= 5
    assert any({row[0] for row in one.objects} < set(one.images) for one in scenes)


@pytest.mark.parametrize("name", ["AP(voc2010)", "AP(voc2007)", "AP(coco)", "AP75"])
def test_the_order_of_images_does_not_matter(name, rng):
    scenes = random_scenes(rng)
    order = rng.permutation(list(scenes.images)).tolist()
    shuffled = Scenes({image: scenes.images[image] for image in order}, *(
        sorted(rows, key=lambda row: order.index(row[0])) for rows in (scenes.objects, scenes.detections)
    ))  # fmt: skip
    assert figures(shuffled, name) == figures(scenes, name)


@pytest.mark.parametrize("name", ["AP(voc2010)", "AP(voc2007)", "AP(coco)"])
def test_scores_may_be_negative(name, rng):
    scenes = random_scenes(rng)
    below = dataclasses.replace(scenes)
    below.detections = [(image, of_class, score - 10.0, box) for image, of_class, score, box in scenes.detections]
    assert figures(below, name) == figures(scenes, name)


def figures(scenes, name, **rules):
    return evaluate(parse_metric(name), scenes.as_objects(), scenes.as_detections(), **rules).ap.tolist()


def test_classes_and_images_without_one_side():
    """No ant is found; bees are only detected; cows are all difficult; one image has neither."""
    scenes = Scenes(
        {"a": (50, 50), "b": (50, 50), "c": (50, 50)},
        [("a", "ant", (1, 1, 9, 9), 0), ("b", "cow", (1, 1, 9, 9), 1)],
        [("b", "bee", 0.9, (1, 1, 9, 9)), ("b", "cow", 0.8, (1, 1, 9, 9)), ("c", "cow", 0.1, (5, 5, 9, 9))],
    )
    for name in ("AP(voc2010)", "AP(coco)"):
        assert np.array_equal(figures(scenes, name), [0.0, math.nan, math.nan], equal_nan=True)
    assert figures(scenes, "AP(voc2010)", count_difficult=True)[2] == 1.0
    nothing = dataclasses.replace(scenes, detections=[])
    assert figures(nothing, "AP(coco)")[0] == 0.0


def test_inclusive_and_continuous_sides():
    """10 × 10 whole pixels of which 5 columns are shared: 5 / 15; by max − min 4 of 9 columns: 36 / 126."""
    scenes = Scenes({"a": (50, 50)}, [("a", "ant", (0, 0, 9, 9), 0)], [("a", "ant", 1.0, (5, 0, 14, 9))])
    for threshold, inclusive, continuous in ((0.28, 1.0, 1.0), (0.3, 1.0, 0.0), (0.34, 0.0, 0.0)):
        assert figures(scenes, f"AP(voc2010)@{threshold}") == [inclusive]
        assert figures(scenes, f"AP(coco)@{threshold}") == [pytest.approx(continuous)]


@pytest.mark.parametrize(
    ("name", "canonical", "thresholds"),
    [
        ("ap(VOC2010)", "AP(voc2010)", (0.5,)), ("AP(voc2007)@.7", "AP(voc2007)@0.7", (0.7,)), ("ap50", "AP50", (0.5,)),
        ("AP(coco)@0.75", "AP75", (0.75,)), ("AP(coco)@0.6", "AP(coco)@0.6", (0.6,)),
        ("AP(voc2010)@0.5", "AP(voc2010)", (0.5,)),
    ],
)  # fmt: skip
def test_names(name, canonical, thresholds):
    metric = parse_metric(name)
    assert (metric.name, metric.thresholds) == (canonical, thresholds)
    assert parse_metric(metric.name) == metric


@over("name", ["AP", "mAP", "AP50@.6", "AP(coco)@", "AP(voc2010)@0", "AP(voc2010)@1.1", "AP(x)", ""])
def test_names_that_are_none(name):
    with pytest.raises(MetricError, match=r"metric"):
        parse_metric(name)


def test_every_form_is_a_name():
    for form in FORMS:
        parse_metric(form.replace("@t", "@0.7"))
