"""Pictures of the page: matplotlib's SVG with the page's colours, and identifiers that do not meet."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from apsvm.metrics import parse_metric
from apsvm.report.drawing import drawn
from apsvm.report.pictures.shapes import Shape, Shapes
from apsvm.report.pictures.top_of_list import precisions_at


@pytest.mark.slow
def test_a_picture_is_an_element_of_the_page(rng):
    pytest.importorskip("matplotlib")
    pictures = [Shapes([Shape(name, np.arange(9.0), rng.normal(size=9))]) for name in ("a < b", "c")]
    texts = [drawn(picture, "How <scores> lie")[0] for picture in pictures]
    ids = []
    for text in texts:
        root = ElementTree.fromstring(text)
        assert root.tag == "svg"
        assert root.attrib["role"] == "img"
        assert root.attrib["aria-label"] == "How <scores> lie"
        assert not {"width", "height"} & {*root.attrib}
        own = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
        asked = re.findall(r"(?:url\(#|href=\"#)([^)\"]*)", text)
        assert {*asked} <= {*own}
        ids += own
        assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
        assert "<metadata" not in text
        assert not re.search(r"#[0-9a-f]{6}\b", re.sub(r"(?:url\(#|href=\"#)[^)\"]*", "", text)), (
            "not the page's colour"
        )
        assert "var(--series-1)" in text
    assert "a &lt; b" in texts[0]
    assert len(ids) == len({*ids})
    assert texts == [drawn(picture, "How <scores> lie")[0] for picture in pictures], "the same bytes every time"


def test_precisions_are_those_of_the_metric(rng):
    scores, relevant = rng.integers(0, 8, 40) / 8.0, rng.random(40) < 0.3
    assert relevant.any()
    precisions = precisions_at(scores, relevant)
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=-1.0))
    for k in (ends + 1).tolist():
        assert precisions[k - 1] == pytest.approx(relevant[order[:k]].mean())
    assert precisions[4] == pytest.approx(parse_metric("P@5")(scores, relevant))
