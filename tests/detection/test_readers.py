"""What the readers refuse, each with the place and in one line; and what they read, written back."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from detections import Scenes, as_xml, random_scenes
from over import over

from apsvm.data.dataset import DataError
from apsvm.detection.joined import join
from apsvm.detection.readers import read_class_names, read_detections, read_names, read_objects
from apsvm.detection.readers.xml_tree import MOST_BYTES
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


def refused(path, kind, format, objects=None):
    """The message, in one line."""
    read = read_objects if kind == "objects" else functools.partial(read_detections, objects=objects)
    with pytest.raises(DataError) as error:
        read(str(path), format)
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
        ("<a>" * 10_000, ":1: expected elements at most 30 deep, found <a> in deeper ones"),
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
        (XML.replace("<width>50", "<width>wide"), ":2: expected width, a finite number, found 'wide'"),
        (XML.replace("<height>40", "<height>-40"), ":2: expected a height of pixels, found -40"),
    ],
)  # fmt: skip
def test_annotations_that_are_refused(tmp_path, content, message):
    (tmp_path / "a.xml").write_text(content)
    assert message in refused(tmp_path, "objects", "voc")


def test_an_image_annotated_twice(tmp_path):
    (tmp_path / "a.xml").write_text(XML)
    (tmp_path / "b.xml").write_text(XML)
    message = refused(tmp_path, "objects", "voc")
    assert message == f"/b.xml:2: image 'a.jpg' is annotated twice, first in {tmp_path / 'a.xml'}"
    (tmp_path / "b.xml").unlink()
    (tmp_path / "a.XML").write_text(XML)
    assert "image 'a' is there twice" in refused(tmp_path, "objects", "voc")


def test_parts_of_objects_and_unknown_sizes(tmp_path):
    (tmp_path / "a.xml").write_text(XML.replace("<width>50", "<width>0"))
    objects = read_objects(str(tmp_path), "voc")
    assert objects.classes == ("ant",)
    assert np.isnan(objects.sizes).all()
    assert objects.boxes.tolist() == [[1, 1, 9, 9]]


@over(
    ("kind", "format", "name", "content", "message"),
    [
        ("objects", "text", "a.txt", "ant 1 2 3 4\nant 1 2 3\n", ":2: expected the 5 fields class, xmin, ymin, xmax"),
        ("objects", "text", "a.txt", "ant 1 2 3 4 hard\n", ":1: expected the 5 fields"),
        ("objects", "text", "a.txt", "ant 3 2 1 4\n", ":1: expected xmin ≤ xmax and ymin ≤ ymax, found 3 2 1 4"),
        ("detections", "text", "a.txt", "ant 1 2 3 4\n", ":1: expected the 6 fields class, score, xmin, ymin, xmax"),
        ("detections", "text", "a.txt", "\nant nan 1 2 3 4\n", ":2: expected a score, a finite number, found 'nan'"),
        ("detections", "text", "a.txt", "ant 1 1 2 3 inf\n", ":1: expected ymax, a finite number, found 'inf'"),
        ("detections", "text", "a.txt", b"\xff\xfe", ":1: expected text in UTF-8, found"),
        ("detections", "voc", "comp3_det_test_ant.txt", "a 1 2 3 4\n", ":1: expected the 6 fields image, score, xmin"),
        ("detections", "voc", "ant.txt", "a one 1 2 3 4\n", ":1: expected a score, a finite number, found 'one'"),
        ("detections", "voc", "ant.csv", "", ": expected files *.txt in this folder, found none"),
    ],
)
def test_text_that_is_refused(tmp_path, kind, format, name, content, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refused(tmp_path, kind, format)


def test_two_files_of_one_class(tmp_path):
    for name in ("comp3_det_test_ant.txt", "comp4_det_val_ant.txt"):
        (tmp_path / name).write_text("a 1 1 2 3 4\n")
    assert "expected one file a class, found its class in" in refused(tmp_path, "detections", "voc")


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
        (["images", 1, "width"], 0, ": images[1]: expected a width and a height above 0, found 0 and 30"),
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
    assert message in refused(tmp_path / "o.json", "objects", "coco")


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
    objects = read_objects(str(one.write_objects(tmp_path / "o.json", "coco")), "coco")
    (tmp_path / "r.json").write_text(changed(one.coco_results(), path, value))
    assert message in refused(tmp_path / "r.json", "detections", "coco", objects)


@over(
    ("content", "message"),
    [
        (b"", ":1: not JSON: Expecting value"),
        (b"{}\n{", ":2: not JSON: Extra data"),
        (b'{"images":\n NaN}', ": not JSON: expected finite numbers, found NaN"),
        (b"[" * 1_000_000, ": not COCO's JSON: it is nested too deeply"),
        (b'{"a":' * 1_000_000, ": not COCO's JSON: it is nested too deeply"),
        (b"\xff\xff", ": not JSON: 'utf-8' codec can't decode byte 0xff"),
        (b"1" * 10_000, ": not JSON: "),
        (b"[]", ": expected an object of images, annotations and categories, found a list"),
    ],
)
def test_json_that_is_refused(tmp_path, content, message):
    (tmp_path / "o.json").write_bytes(content)
    assert message in refused(tmp_path / "o.json", "objects", "coco")


def test_results_without_ids_to_refer_to(tmp_path, one):
    objects = read_objects(str(one.write_objects(tmp_path / "o", "text")), "text")
    one.write_detections(tmp_path / "r.json", "coco")
    message = refused(tmp_path / "r.json", "detections", "coco", objects)
    assert "COCO results name images and classes by ids, and" in message


def test_images_of_coco_are_named_by_file_or_id(tmp_path, one):
    objects = read_objects(str(one.write_objects(tmp_path / "o.json", "coco")), "coco")
    assert objects.images == ("a", "b")
    content = one.coco_objects()
    content["images"].reverse()
    content["images"][0]["file_name"] = "a.jpg"
    (tmp_path / "o.json").write_text(json.dumps(content))
    assert read_objects(str(tmp_path / "o.json"), "coco").images == ("1", "2")


def test_a_list_of_classes(tmp_path, one):
    (tmp_path / "names").write_text("bee\nant\n")
    classes = read_class_names(str(tmp_path / "names"))
    objects = read_objects(str(one.write_objects(tmp_path / "o", "voc")), "voc", classes)
    assert objects.classes == ("bee", "ant")
    assert objects.of_class.tolist() == [1, 0]
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_text("1 0.5 1 1 9 9\nbee 0.5 1 1 9 9\n")
    assert read_detections(str(tmp_path / "d"), "text", objects, classes).of_class.tolist() == [1, 0]
    (tmp_path / "d" / "a.txt").write_text("1 0.5 1 1 9 9\n2 0.5 1 1 9 9\n")
    with pytest.raises(DataError, match=r"a\.txt:2: expected one of the 2 classes of .*names, found '2'"):
        read_detections(str(tmp_path / "d"), "text", objects, classes)
    for content, message in (("", "expected names, a line each, found none"), ("a\na\n", ":2: 'a' is there twice")):
        (tmp_path / "names").write_text(content)
        with pytest.raises(DataError, match=message):
            read_names(str(tmp_path / "names"))


def test_sides_that_do_not_belong_together(tmp_path, one):
    objects = read_objects(str(one.write_objects(tmp_path / "o", "voc")), "voc")
    folder = tmp_path / "d"
    folder.mkdir()
    for name, line, message in (
        ("c.txt", "ant 1 1 1 9 9", "none of its images is among the 2 of .*: expected names such as 'a', found 'c'"),
        ("a.txt", "14 1 1 1 9 9", "a.txt:1: expected one of the classes of .*, such as 'ant', found '14', and none"),
        ("a.txt", "ant 1 .1 .1 .9 .9", r"a.txt:1: expected pixels as in .*, found all coordinates between 0 and 1"),
        ("a.txt", "ant 1 1 1 99 9", r"a.txt:1: expected boxes .* found 1 1 99 9 in one of 50 x 40, and so 1 of 1"),
    ):
        (folder / name).write_text(line + "\n")
        with pytest.raises(DataError, match=message):
            join(objects, [read_detections(str(folder), "text", objects)])
        (folder / name).unlink()


def test_images_are_those_of_both_sides_or_those_asked_for(tmp_path, one):
    one.detections.append(("c", "bee", 0.5, (1, 1, 9, 9)))
    one.images["c"] = (9, 9)
    detections = one.as_detections()
    del one.images["c"]
    objects = one.as_objects()
    joined = join(objects, [detections])
    assert joined.images == ("a", "b", "c")
    assert (joined.left_out, joined.only_detected) == ((0,), 1)
    joined = join(objects, [detections], ["b", "a"])
    assert joined.images == ("b", "a")
    assert (joined.left_out, joined.only_detected) == ((1,), 0)
    assert joined.objects.of_image.tolist() == [1, 0]
    assert joined.systems[0].of_image.tolist() == [1]
    with pytest.raises(DataError, match="objects: expected the requested image 'x'"):
        join(objects, [detections], ["x"])
    ids = read_objects(str(one.write_objects(tmp_path / "o.json", "coco")), "coco")
    with pytest.raises(DataError, match="detections:1: image 'c' is not among those of"):
        join(ids, [detections])
    assert join(ids, [detections], ["b"]).objects.image_ids == {2: 0}


@pytest.mark.parametrize("format", ["voc", "coco"])
def test_what_is_written_is_read(tmp_path, rng, format):
    scenes = random_scenes(rng, whole=False)
    detections = scenes.as_detections()
    images = [detections.images[at] for at in detections.of_image]
    classes = [detections.classes[at] for at in detections.of_class]
    objects = read_objects(str(scenes.write_objects(tmp_path / "o", format)), format)
    if format == "voc":
        path = tmp_path / "results"
        path.mkdir()
        contents = voc_results(images, classes, detections.scores, detections.boxes, all_classes=["dog"])
        assert contents["comp3_det_test_dog.txt"] == b""
        for name, content in contents.items():
            (path / name).write_bytes(content)
    else:
        path = tmp_path / "results.json"
        ids = [objects.image_ids[at + 1] + 1 for at in detections.of_image.tolist()]
        numbers = {name: number for number, at in objects.class_ids.items() for name in [objects.classes[at]]}
        path.write_bytes(coco_results(ids, classes, detections.scores, detections.boxes, category_ids=numbers))
    result = read_detections(str(path), format, objects)
    tolerance = 0.0 if format == "voc" else 1e-12  # xmin + (xmax − xmin)
    rows, expected = (
        sorted((part.images[image], part.classes[of_class], score, *box) for image, of_class, score, box in zip(
            part.of_image, part.of_class, part.scores.tolist(), part.boxes.tolist(), strict=True
        )) for part in (result, detections)
    )  # fmt: skip
    assert [row[:2] for row in rows] == [row[:2] for row in expected]
    np.testing.assert_allclose([row[2:] for row in rows], [row[2:] for row in expected], rtol=0, atol=tolerance)


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


@over(
    ("content", "message"),
    [
        ("", ", file or img, found nothing"),
        ("image,class,score,x,y,w,h,X\n", ":1: expected different names of columns, found x more than once"),
        ("image,class,score,x,y,w,h\n,ant,1,1,1,1,1\n", ":2: expected an image and a class, found an empty field"),
        ("image,class,score,x,y,w,h\na,,1,1,1,1,1\n", ":2: expected an image and a class, found an empty field"),
        ("image,score,x,y,w,h\n", ":1: expected the classes in columns called class"),
        ("image,class,score,x,y\n", "xmin, ymin, xmax and ymax, or x, y, width and height, found image, class, score"),
        ("image,class,x,y,w,h\n", ":1: expected the scores in columns called score, confidence"),
        ("image,class,score,x,y,w,h\na,ant,1,2,3,4\n", ":2: expected 7 fields, as the first line has, found 6"),
        ("image,class,score,x,y,w,h\n\na,ant,1,2,3,4,-1\n", ":3: expected xmin ≤ xmax and ymin ≤ ymax, found 2 3 6 2"),
        ("image,class,score,x,y,w,h\na,ant,high,2,3,4,1\n", ":2: expected a score, a finite number, found 'high'"),
        ("image,class,score,x,y,w,h\na,ant,1,,,,\n", ":2: expected x, a finite number, found ''"),
        ("image,class,score,x,y,w,h\na,ant,1,\udcff,1,1,1\n", ": expected text in UTF-8, found the byte 0xff"),
    ],
)
def test_tables_of_boxes_that_are_refused(tmp_path, content, message):
    (tmp_path / "boxes.csv").write_bytes(content.encode(errors="surrogateescape"))
    assert message in refused(tmp_path / "boxes.csv", "detections", "csv")
