"""100 images of VOC 2012: the figures of two independent implementations, whatever format the files are in.

AP(voc2007) and AP(voc2010) with difficult objects counted are those of review_object_detection_metrics, COCO's those of
pycocotools, to six digits as published beside the data; the other two follow the devkits' rule.
"""

from __future__ import annotations

import functools

import pytest
from detections import voc_2012
from over import over

from apsvm.detection.measure import evaluate, parse_metric
from apsvm.detection.readers import read_detections, read_objects

#: Metric, whether difficult objects count, the published figure, and all digits of this implementation.
FIGURES = [
    ("AP(voc2010)", False, 0.613875, 0.613874792284281),
    ("AP(voc2007)", False, 0.607511, 0.607510514732285),
    ("AP(voc2010)", True, 0.610913, 0.6109129074794388),
    ("AP(voc2007)", True, 0.598969, 0.59896858008199),
    ("AP(coco)", True, 0.346958, 0.34695818626660907),
    ("AP50", True, 0.610030, 0.6100296805315171),
]


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """The scenes in this format, read."""

    def of_format(format):
        folder, scenes = tmp_path_factory.mktemp("voc"), voc_2012()
        objects = read_objects(str(scenes.write_objects(folder / "objects", format)))
        return objects, read_detections(str(scenes.write_detections(folder / "detections", format)), objects)

    return functools.cache(of_format)


@over("format", ["voc", "text", "coco"])
@over(("name", "count_difficult", "published", "digits"), FIGURES)
def test_figures(read, format, name, count_difficult, published, digits):
    if format == "coco":
        # its files do not know difficult objects: all count
        published, digits = next(figures[2:] for figures in FIGURES if figures[:2] == (name, True))
    result = evaluate(parse_metric(name), *read(format), count_difficult=count_difficult)
    assert result.mean == pytest.approx(digits, abs=1e-12)
    assert f"{result.mean:.6f}" == f"{published:.6f}"
    assert result.n_objects.sum() == (273 if count_difficult or format == "coco" else 235)
