"""COCO's figures against pycocotools, class by class and threshold by threshold."""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import pytest
from detections import Scenes, random_scenes
from over import over

from apsvm.detection.measure import evaluate, parse_metric
from apsvm.detection.readers import read_detections, read_objects

pytest.importorskip("pycocotools")

THRESHOLDS = np.linspace(0.5, 0.95, 10)


def by_pycocotools(objects, results):
    """(T, C): the average precisions, NaN where it says −1; and its AP, AP50, AP75."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = objects
        truth.createIndex()
        judge = COCOeval(truth, truth.loadRes(results), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    precision = judge.eval["precision"][:, :, :, 0, 2]
    return np.where(precision[:, 0] < 0, np.nan, precision.mean(axis=1)), judge.stats[:3]


def ours(path, scenes):
    objects = read_objects(str(scenes.write_objects(path / "objects", "coco")))
    detections = read_detections(str(scenes.write_detections(path / "detections", "coco")), objects)
    names = [f"AP(coco)@{threshold!r}" for threshold in THRESHOLDS.tolist()]
    evaluations = []
    for name in (*names, "AP(coco)", "AP50", "AP75"):
        evaluations.append(evaluate(parse_metric(name), objects, detections))
    return np.array([one.ap for one in evaluations[:10]]), np.array([one.mean for one in evaluations[10:]])


def check(path, scenes):
    """The results are in any order: images count by their ids, and equal scores of one image in the order given."""
    order = np.random.default_rng(5).permutation(len(scenes.detections))
    scenes.detections = [scenes.detections[at] for at in order]
    each, means = by_pycocotools(json.loads(json.dumps(scenes.coco_objects())), scenes.coco_results())
    found, found_means = ours(path, scenes)
    assert np.array_equal(np.isnan(found), np.isnan(each))
    np.testing.assert_allclose(found, each, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found_means, means, rtol=0, atol=1e-12)


@pytest.mark.slow
@over("tied", [False, True])
@over("whole", [False, True])
@over("seed", range(8))
def test_random_boxes(tmp_path, seed, whole, tied):
    scenes = random_scenes(np.random.default_rng(seed), n_images=100 if seed == 0 else 15, whole=whole, tied=tied)
    # COCO does not know difficult objects
    scenes.objects = [(image, name, box, 2 * (kind == 2)) for image, name, box, kind in scenes.objects]
    check(tmp_path, scenes)


def test_more_than_a_hundred_detections_of_an_image(tmp_path, rng):
    scenes = Scenes({"a": (100, 80), "b": (100, 80)})
    for image in scenes.images:
        for at in range(12):
            scenes.objects.append((image, "ant", (8.0 * at, 10.0, 8.0 * at + 6, 20.0), 0))
        for _ in range(150):
            corner = np.array([8.0 * rng.integers(12), 10.0]) + rng.integers(-2, 3, 2)
            box = (*corner.tolist(), corner[0] + 6, corner[1] + 10)
            scenes.detections.append((image, "ant", float(rng.integers(0, 50)), box))
    check(tmp_path, scenes)


def test_recalls_that_rounding_puts_below_a_point(tmp_path):
    """28 of 100 objects: 28 / 100 < 28 · 0.01 in float64, and so for 29 other points."""
    scenes = Scenes({"a": (1000, 40)})
    for at in range(100):
        box = (10.0 * at, 0.0, 10.0 * at + 8, 8.0)
        scenes.objects.append(("a", "ant", box, 0))
        if at % 3:
            scenes.detections.append(("a", "ant", 1.0 - at / 200, box))
            scenes.detections.append(("a", "ant", 1.0 - at / 200 - 1e-6, (0.0, 20.0, 8.0, 28.0)))
    check(tmp_path, scenes)
