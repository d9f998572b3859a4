"""``apsvm eval-detections``: its table and JSON on 100 images of VOC 2012, and what ends it."""

from __future__ import annotations

import json

import pytest
from detections import Scenes, voc_2012


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder of o_FORMAT and d_FORMAT."""
    folder, scenes = tmp_path_factory.mktemp("voc"), voc_2012()
    for format in ("voc", "coco"):
        scenes.write_objects(folder / f"o_{format}", format)
        scenes.write_detections(folder / f"d_{format}", format)
    return folder


def read(run, *arguments):
    return json.loads(run("eval-detections", *arguments, "--json").stdout)


def test_table_and_json(run, files):
    text = run("eval-detections", "o_voc", "d_voc", cwd=files).stdout
    lines = text.splitlines()
    assert "area under the precision envelope; VOC matching at IoU ≥ 0.5;" in lines[0]
    assert lines[3].split() == ["aeroplane", "0.840774", "14", "17", "13", "0.928571"]
    assert [line.split()[0] for line in lines[3:23]] == sorted({row[1] for row in voc_2012().objects})
    assert lines[23].split() == ["mean", "(mAP)", "of", "20", "0.613875", "0.852870"]
    counts = [("objects", 235), ("difficult", 38), ("crowds", 0), ("detections", 452), ("detections left out", 22)]
    assert {f"{name:<20} {count}" for name, count in counts} <= set(lines)
    content = read(run, files / "o_voc", files / "d_voc", "-m", "ap(voc2007)", "-m", "AP(voc2007)")
    assert content["metrics"] == {"AP(voc2007)": pytest.approx(0.607510514732285, abs=1e-12)}
    assert (content["objects"], content["detections"], content["detections_left_out"]) == (235, 452, 22)
    assert content["classes"]["aeroplane"]["true_positives"] == 13
    coco = read(run, files / "o_coco", files / "d_coco")["metrics"]
    assert {name: f"{value:.6f}" for name, value in coco.items()} == {
        "AP(coco)": "0.346958", "AP50": "0.610030", "AP75": "0.353714"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("o_voc",), 2, "error: Missing argument 'DETECTIONS'."),
        (("o_voc", "o_voc"), 2, "error: OBJECTS and DETECTIONS are both o_voc"),
        (
            ("o_voc", "d_voc", "-m", "AP"), 2,
            "unknown metric of detections 'AP'; nearest: AP75, AP50; known: AP(coco), AP50, AP75, "
            "AP(voc2007), AP(voc2010), AP(coco)@t, AP(voc2007)@t, AP(voc2010)@t",
        ),
        (
            ("o_voc", "d_voc", "-m", "AP(coco)@2"), 2,
            "bad parameter in metric 'AP(coco)@2': expected an IoU above 0 and at most 1, found '2'",
        ),
        (("o_voc", "nowhere"), 66, "error: cannot read nowhere: No such file or directory"),
        (
            ("d_coco", "o_coco"), 65,
            "error: d_coco: expected an object of images, annotations and categories, found a list",
        ),
    ],
)  # fmt: skip
def test_failures(run, files, monkeypatch, arguments, code, message):
    monkeypatch.chdir(files)
    assert message in run("eval-detections", *arguments, code=code).stderr


def test_nothing_to_find(run, tmp_path):
    scenes = Scenes({"a": (50, 50)}, [("a", "ant", (1, 1, 9, 9), 1)], [("a", "ant", 0.5, (1, 1, 9, 9))])
    paths = (scenes.write_objects(tmp_path / "o"), scenes.write_detections(tmp_path / "d"))
    message = run("eval-detections", *paths, code=65).stderr
    assert "every object is marked difficult or crowd" in message
