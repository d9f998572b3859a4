"""Input that the readers refuse, with its place in one line; and files read and written back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from detections import Scenes, as_xml, random_scenes
from over import over

from apsvm.data.dataset import DataError
from apsvm.detection.readers import read_detections, read_objects
from apsvm.detection.readers.voc import MOST_BYTES
from apsvm.detection.writers import coco_results, voc_results

XML = as_xml("a", 50, 40, [("a", "ant", (1, 1, 9, 9), 0)])
LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE annotation [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<annotation><object><name>&b;</name></object></annotation>"""
FILE = '<!DOCTYPE annotation [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n<annotation>&x;</annotation>'


@pytest.fixture
def one():
    return Scenes(
        {"a": (50, 40), "b": (30, 30)},
        [("a", "ant", (1, 1, 9, 9), 0), ("b", "bee", (1, 1, 5, 7), 0)],
        [("a", "ant", 0.5, (1, 2, 9, 9))],
    )


def refused(path, objects=None):
    """The message, in one line."""
    with pytest.raises(DataError) as error:
        read_objects(str(path)) if objects is None else read_detections(str(path), objects)
    message = str(error.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert len(message) < 400
    return message[len(str(path)) :]


@over(
    ("content", "message"),
    [
        ("", ":1: not XML: no element found"),
        ("<annotation>\n<object>", ":2: not XML: no element found"),
        ("<annotation/><annotation/>", ":1: not XML: junk after document element"),
        (LAUGHS, ":2: expected no document type or entities, found <!DOCTYPE annotation"),
        (FILE, ":1: expected no document type or entities, found <!DOCTYPE annotation"),
        ("<a>" * 300_000, ":1: not XML: no element found"),
        ("<annotation>" + " " * MOST_BYTES, ": expected an annotation of at most 1000000 bytes, found more"),
        ('<?xml version="1.0" encoding="x-none"?><annotation/>', "unknown encoding"),
        ("<svg/>", ":1: expected <annotation>, found <svg>"),
        ("<annotation>\n<object/></annotation>", ":2: expected one <name> in <object>, found 0"),
        (XML.replace("<name>ant", "<name> </name><name>ant"), ":3: expected one <name> in <object>, found 2"),
        (XML.replace("ant<", "<"), ":3: expected text in <name>, found none"),
        (XML.replace("<xmin>1</xmin>", ""), ":4: expected one <xmin> in <bndbox>, found 0"),
        (XML.replace("<xmin>1", "<xmin>10"), ":4: expected xmin ≤ xmax and ymin ≤ ymax, found 10 1 9 9"),
        (XML.replace("<xmin>1", "<xmin>nan"), ":4: expected xmin, a finite number, found 'nan'"),
        (XML.replace("<xmin>1", "<xmin>1\u0661"), ":4: expected xmin, a finite number, found '1\u0661'"),
        (XML.replace("<difficult>0", "<difficult>maybe"), ":3: expected 0 or 1 in <difficult>, found 'maybe'"),
        ("<annotation/>", ": expected at least one object, found none"),
    ],
)  # fmt: skip
def test_annotations_that_are_refused(tmp_path, content, message):
    (tmp_path / "a.xml").write_text(content)
    assert message in refused(tmp_path)


def test_an_image_annotated_twice(tmp_path):
    (tmp_path / "a.xml").write_text(XML)
    (tmp_path / "b.xml").write_text(XML)
    message = refused(tmp_path)
    assert message == f"/b.xml:2: image 'a.jpg' is annotated twice, first in {tmp_path / 'a.xml'}"
    (tmp_path / "b.xml").unlink()
    (tmp_path / "a.XML").write_text(XML)
    assert "image 'a' is there twice" in refused(tmp_path)


def test_parts_of_objects(tmp_path):
    (tmp_path / "a.xml").write_text(XML)
    objects = read_objects(str(tmp_path))
    assert (objects.images, objects.classes) == (("a",), ("ant",))
    assert objects.boxes.tolist() == [[1, 1, 9, 9]]


@over(
    ("name", "content", "message"),
    [
        ("a.txt", "ant 1 2 3 4\n", ":1: expected the 6 fields class, score, xmin, ymin, xmax"),
        ("a.txt", "\nant nan 1 2 3 4\n", ":2: expected a score, a finite number, found 'nan'"),
        ("a.txt", "ant 1 1 2 3 inf\n", ":1: expected ymax, a finite number, found 'inf'"),
        ("a.txt", "ant 1 3 2 1 4\n", ":1: expected xmin ≤ xmax and ymin ≤ ymax, found 3 2 1 4"),
        ("a.txt", b"\xff\xfe", ":1: expected text in UTF-8, found"),
        (
            "a.txt",
            "14 1 1 1 9 9\n",
            ":1: expected one of the classes of objects, such as 'ant', found '14', and none",
        ),
        ("c.txt", "ant 1 1 1 9 9\n", "c.txt:1: expected one of the 2 images of objects, such as 'a', found 'c'"),
        ("comp3_det_test_ant.txt", "a 1 2 3 4\n", ":1: expected the 6 fields image, score, xmin"),
        ("comp3_det_test_ant.txt", "a one 1 2 3 4\n", ":1: expected a score, a finite number, found 'one'"),
        ("ant.csv", "", ": expected files *.txt in this folder, found none"),
    ],
)
def test_text_that_is_refused(tmp_path, one, name, content, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refused(tmp_path, one.as_objects())


def test_two_files_of_one_class(tmp_path, one):
    for name in ("comp3_det_test_ant.txt", "comp4_det_val_ant.txt"):
        (tmp_path / name).write_text("a 1 1 2 3 4\n")
    assert ": expected one file a class, found comp3_det_test_ant, comp4_" in refused(tmp_path, one.as_objects())


def test_a_file_of_one_class_and_classes_without_objects(tmp_path, one):
    (tmp_path / "bee.txt").write_text("a 0.5 1 2 3 4\n")
    alone = read_detections(str(tmp_path / "bee.txt"), one.as_objects())
    assert (alone.classes, alone.of_image.tolist(), alone.of_class.tolist()) == (("ant", "bee"), [0], [1])
    (tmp_path / "bee.txt").unlink()
    for name in ("cow", "ant"):
        (tmp_path / f"comp3_det_test_{name}.txt").write_text("b 0.5 1 2 3 4\n")
    both = read_detections(str(tmp_path), one.as_objects())
    assert (both.classes, both.of_class.tolist()) == (("ant", "bee", "cow"), [0, 2])


def test_numbered_classes(tmp_path, one):
    (tmp_path / "names").write_text("bee\nant\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_text("1 0.5 1 1 9 9\nbee 0.5 1 1 9 9\n")
    detections = read_detections(str(tmp_path / "d"), one.as_objects(), str(tmp_path / "names"))
    assert [detections.classes[at] for at in detections.of_class] == ["ant", "bee"]


def changed(content, path, value):
    """A copy of the JSON ``content`` with the value at ``path`` replaced, or taken out."""
    content = json.loads(json.dumps(content))
    *way, last = path
    inner = content
    for key in way:
        inner = inner[key]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(content)


@over(
    ("path", "value", "message"),
    [
        (["images"], None, ": expected a list of images, found nothing"),
        (["images"], [], ": expected images, found none"),
        (["images", 0], 7, ": images[0]: expected an object, found a number"),
        (["images", 1, "id"], 1, ": images[1]: id 1 is there twice, first at images[0]"),
        (["images", 1, "id"], True, ": images[1]: expected an id, a whole number, found true"),
        (["images", 1, "id"], [1], ": images[1]: expected an id, a whole number, found [1]"),
        (["categories", 1, "id"], 10, ": categories[1]: id 10 is there twice, first at categories[0]"),
        (["categories", 1, "name"], "ant", ": categories[1]: category 'ant' is there twice"),
        (["categories", 1, "name"], 5, ": categories[1]: expected a name, found 5"),
        (["annotations"], {}, ": expected a list of annotations, found an object"),
        (["annotations", 1, "image_id"], 9, ": annotations[1]: expected image_id to be one of the 2 images, found 9"),
        (["annotations", 1, "image_id"], {}, ": annotations[1]: expected image_id to be one of the 2 images, found {}"),
        (["annotations", 1, "category_id"], 9, ": annotations[1]: expected category_id to be one of the 2 categories"),
        (["annotations", 0, "bbox"], None, ": annotations[0]: expected bbox [x, y, width ≥ 0, height ≥ 0], found null"),
        (["annotations", 0, "bbox"], [1, 2, 3], ": annotations[0]: expected bbox"),
        (["annotations", 0, "bbox"], [1, 2, 3, "4"], ": annotations[0]: expected bbox"),
        (["annotations", 0, "bbox"], [9, 9, -3, 4], ": annotations[0]: expected bbox [x, y, width ≥ 0, height ≥ 0]"),
        (["annotations", 0, "bbox"], [9, 9, 10**400, 4], ": annotations[0]: expected bbox"),
        (["annotations", 0, "bbox"], [9, 9, 1e300, 4], ": annotations[0]: expected four finite coordinates"),
        (["annotations", 0, "iscrowd"], "no", ': annotations[0]: expected iscrowd 0 or 1, found "no"'),
    ],
)
def test_objects_of_coco_that_are_refused(tmp_path, one, path, value, message):
    (tmp_path / "o.json").write_text(changed(one.coco_objects(), path, value))
    assert message in refused(tmp_path / "o.json")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ([0], 3, ": [0]: expected an object, found a number"),
        ([0, "score"], "1", ': [0]: expected score, a finite number, found "1"'),
        ([0, "score"], True, ": [0]: expected score, a finite number, found true"),
        ([0, "score"], None, ": [0]: expected score, a finite number, found null"),
        ([0, "image_id"], 77, ": [0]: expected image_id to be one of the 2 images, found 77"),
        ([0, "category_id"], 77, ": [0]: expected category_id to be one of the 2 categories, found 77"),
        ([0, "bbox"], [1, 1, 2, -2], ": [0]: expected bbox [x, y, width ≥ 0, height ≥ 0], found [1, 1, 2, -2]"),
    ],
)
def test_results_of_coco_that_are_refused(tmp_path, one, path, value, message):
    objects = read_objects(str(one.write_objects(tmp_path / "o.json", "coco")))
    (tmp_path / "r.json").write_text(changed(one.coco_results(), path, value))
    assert message in refused(tmp_path / "r.json", objects)


@over(
    ("content", "message"),
    [
        (b"", ":1: not JSON: Expecting value"),
        (b"{}\n{", ":2: not JSON: Extra data"),
        (b'{"images":\n NaN}', ": expected a list of images, found a number"),
        (b"[" * 1_000_000, ": not COCO's JSON: it is nested too deeply"),
        (b'{"a":' * 1_000_000, ": not COCO's JSON: it is nested too deeply"),
        (b"\xff\xff", ": not JSON: 'utf-8' codec can't decode byte 0xff"),
        (b"1" * 10_000, ": not JSON: "),
        (b"[]", ": expected an object of images, annotations and categories, found a list"),
    ],
)
def test_json_that_is_refused(tmp_path, content, message):
    (tmp_path / "o.json").write_bytes(content)
    assert message in refused(tmp_path / "o.json")


def test_what_is_written_is_read(tmp_path, rng):
    scenes = random_scenes(rng, whole=False)
    expected, objects = scenes.as_detections(), scenes.as_objects()
    images = [objects.images[at] for at in expected.of_image]
    classes = [expected.classes[at] for at in expected.of_class]
    (tmp_path / "voc").mkdir()
    for name, content in voc_results(images, classes, expected.scores, expected.boxes).items():
        (tmp_path / "voc" / name).write_bytes(content)
    numbers = [str(10 + at) for at in expected.of_class]
    ids = (1 + expected.of_image).tolist()
    (tmp_path / "coco").write_bytes(coco_results(ids, numbers, expected.scores, expected.boxes))
    truth = read_objects(str(scenes.write_objects(tmp_path / "o.json", "coco")))
    for result in (read_detections(str(tmp_path / "voc"), objects), read_detections(str(tmp_path / "coco"), truth)):
        order, as_written = (np.lexsort((part.scores, part.of_class)) for part in (result, expected))
        assert result.of_image[order].tolist() == expected.of_image[as_written].tolist()
        assert result.of_class[order].tolist() == expected.of_class[as_written].tolist()
        assert result.scores[order].tolist() == expected.scores[as_written].tolist()
        np.testing.assert_allclose(result.boxes[order], expected.boxes[as_written], rtol=0, atol=1e-12)


def test_what_cannot_be_written():
    scores, boxes = np.ones(1), np.ones((1, 4))
    with pytest.raises(DataError, match="expected a name without blanks for an image"):
        voc_results(["a b"], ["ant"], scores, boxes)
    with pytest.raises(DataError, match=r"expected a class that can be in a file's name, found '\.\./x'"):
        voc_results(["a"], ["../x"], scores, boxes)
    with pytest.raises(DataError, match="expected a class with a COCO id, found 'ant'"):
        coco_results([1], ["ant"], scores, boxes)
    assert json.loads(coco_results([1], ["17"], scores, boxes)) == [
        {"image_id": 1, "category_id": 17, "bbox": [1.0, 1.0, 0.0, 0.0], "score": 1.0}
    ]
    assert json.loads(coco_results([], [], np.ones(0), np.ones((0, 4)))) == []
