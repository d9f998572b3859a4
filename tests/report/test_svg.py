"""Charts of the page: what they show stands where it should, whatever the numbers are."""

from __future__ import annotations

import re
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest

from apsvm.metrics import parse_metric
from apsvm.report.charts import precisions_at
from apsvm.report.svg import PLOT_HEIGHT, RIGHT, TOP, WIDTH, Chart, HeatMap, Line, png, svg


def paths(root, colour="var(--series-1)"):
    """The corners of the paths of a colour."""
    return [
        np.array([pair.split() for pair in re.split("[ML]", node.get("d").replace("h0", ""))[1:]], dtype=float)
        for node in root.iter("path")
        if node.get("stroke") == colour and node.get("stroke-width") != "2"
    ]


def texts(root):
    return [node.text for node in root.iter("text") if node.text]


def test_a_line_goes_where_its_points_are():
    root = ElementTree.fromstring(svg(Chart([Line("a < b", [0, 5, 10], [0, 1, 0.5])], "x", "y", x_limits=(0, 10),
                                            y_limits=(0, 1)), "what it is"))  # fmt: skip
    (line,) = paths(root)
    left = line[0, 0]
    assert line[:, 0] == pytest.approx([left, (left + WIDTH - RIGHT) / 2, WIDTH - RIGHT], abs=0.01)
    assert line[:, 1] == pytest.approx([TOP + PLOT_HEIGHT, TOP, TOP + PLOT_HEIGHT / 2], abs=0.01)
    assert root.get("aria-label") == "what it is"
    assert {"a < b", "x", "y", "0", "2", "4", "6", "8", "10", "0.2", "1"} <= {*texts(root)}


def test_steps_and_gaps():
    (before,) = paths(ElementTree.fromstring(svg(Chart([Line("", [0, 1, 2], [3, 2, 1], steps="before")]), "")))
    assert len(before) == 5
    assert before[0, 0] == before[1, 0] < before[2, 0] == before[3, 0]  # straight down where the one before ends,
    assert before[1, 1] == before[2, 1] > before[0, 1]  # and on at the height of the next
    root = ElementTree.fromstring(svg(Chart([Line("", [0, 1, 2, 3, 4], [1, 2, np.nan, 2, 1])]), ""))
    (path,) = [node.get("d") for node in root.iter("path") if node.get("stroke") == "var(--series-1)"]
    assert path.count("M") == 2


def test_powers_on_a_logarithmic_axis():
    root = ElementTree.fromstring(svg(Chart([Line("", [1, 2, 3], [1e-3, 0.0, 1e3])], logarithmic_y=True), ""))
    assert {"0.001", "0.01", "0.1", "1", "10", "100", "1,000"} - {*texts(root)} <= {"0.01", "0.1", "10", "100"}
    few = ElementTree.fromstring(svg(Chart([Line("", [1, 2], [3, 8])], logarithmic_y=True), ""))
    assert "5" in texts(few)


def test_a_million_points_are_thinned_out_and_keep_their_peaks(rng):
    y = rng.random(1_000_000) * 0.5
    y[345_678] = 1.0
    y[700_000] = -1.0
    text = svg(Chart([Line("", np.arange(y.size), y)], y_limits=(-1, 1)), "")
    assert len(text) < 60_000
    (line,) = paths(ElementTree.fromstring(text))
    assert (line[:, 1].min(), line[:, 1].max()) == (TOP, TOP + PLOT_HEIGHT)
    assert (np.diff(line[:, 0]) >= 0).all()


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        [], [0.0], [np.nan], [1e308, -1e308], [5e-324, 1.0], [1.0, 1.0 + 1e-15], [np.inf, -np.inf, 0.0], [-3.0, -3.0],
        [1e300],
    ],
)  # fmt: skip
def test_whatever_the_numbers_are(values, logarithmic):
    chart = Chart([Line("a", values, values)], logarithmic_x=logarithmic, logarithmic_y=logarithmic)
    text = svg(chart, "")
    ElementTree.fromstring(text)
    assert "nan" not in text
    assert "inf" not in text


def test_a_png_is_what_went_in(rng):
    pixels, palette = rng.integers(0, 256, (7, 5), dtype=np.uint8), rng.integers(0, 256, (256, 3), dtype=np.uint8)
    data = png(pixels, palette)
    at = data.index(b"IDAT")
    size = int.from_bytes(data[at - 4 : at], "big")
    assert (np.frombuffer(zlib.decompress(data[at + 4 : at + 4 + size]), np.uint8).reshape(7, 6)[:, 1:] == pixels).all()
    assert palette.tobytes() in data
    root = ElementTree.fromstring(svg(Chart([], heat=HeatMap(np.array([[1, 2], [2, 3]]), 3, 2, 2)), ""))
    (image,) = root.iter("image")
    assert image.get("href").startswith("data:image/png;base64,")


def test_precisions_are_those_of_the_metric(rng):
    scores, relevant = rng.integers(0, 8, 40) / 8.0, rng.random(40) < 0.3
    assert relevant.any()
    precisions = precisions_at(scores, relevant)
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=-1.0))
    for k in (ends + 1).tolist():
        assert precisions[k - 1] == pytest.approx(relevant[order[:k]].mean())
    assert precisions[4] == pytest.approx(parse_metric("P@5")(scores, relevant))
