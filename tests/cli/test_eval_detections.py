"""``apsvm eval-detections``: its table and JSON on 100 images of VOC 2012, and what ends it."""

from __future__ import annotations

import json

import pytest
from detections import Scenes, voc_2012

from apsvm.cli.commands.eval_detections import USUAL_METRICS
from apsvm.detection import FORMATS


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder of o_FORMAT and d_FORMAT, and of half the detections, h_FORMAT, with scores of one digit."""
    folder, scenes = tmp_path_factory.mktemp("voc"), voc_2012()
    half = [(image, name, round(score, 1), box) for image, name, score, box in scenes.detections][::2]
    for format in FORMATS:
        scenes.write_objects(folder / f"o_{format}", format)
        scenes.write_detections(folder / f"d_{format}", format)
        Scenes(scenes.images, scenes.objects, half).write_detections(folder / f"h_{format}", format)
    return folder


def read(here, *arguments):
    return json.loads(here("eval-detections", *arguments, "--json").stdout)


def test_table(run, files):
    text = run("eval-detections", "o_voc", "d_text", "--format", "voc,text", cwd=files).stdout
    lines = text.splitlines()
    assert lines[0] == (
        "AP(voc2010)  area under the precision envelope; VOC matching at IoU ≥ 0.5, sides max − min + 1 (inclusive); "
        "difficult objects ignored; all detections; ties stable"
    )
    assert lines[2].split("  ")[0] == "class"
    assert lines[3].split() == ["aeroplane", "0.840774", "14", "17", "13", "0.928571"]
    assert [line.split()[0] for line in lines[3:23]] == sorted({row[1] for row in voc_2012().objects})
    assert lines[23].split() == ["mean", "(mAP)", "of", "20", "0.613875", "0.852870"]
    assert "objects      235 to be found, of 273 (38 difficult, 0 crowds)" in lines
    assert "detections   452 in 98 images, 22 of them left out: they found objects that do not count" in lines
    assert "ties         none between right and wrong; rule: stable" in lines


@pytest.mark.parametrize("of_objects", FORMATS)
def test_usual_metrics(here, files, of_objects):
    of_detections = "coco" if of_objects == "coco" else "text"
    paths = (files / f"o_{of_objects}", files / f"d_{of_detections}", "--format", f"{of_objects},{of_detections}")
    result = read(here, *paths)
    assert tuple(result["metrics"]) == USUAL_METRICS[of_objects]
    of_format = {"coco": "0.346958 0.610030 0.353714", "csv": "0.354489 0.613004 0.363659"}  # without difficult ones
    digits = of_format.get(of_objects, "0.613875")
    assert " ".join(f"{value:.6f}" for value in result["metrics"].values()) == digits
    assert (result["objects"], result["images"]) == (273 if of_objects == "coco" else 235, 100)


def test_rules(here, files):
    paths = (files / "o_voc", files / "h_text", "--format", "voc,text")
    options = (
        "-m", "ap(voc2007)", "-m", "AP(coco)@.6", "-m", "AP(VOC2007)", "--iou", "continuous", "--difficult", "counted",
        "--max-detections", "3", "--ties", "block", "--nms", "0.3",
    )  # fmt: skip
    result = read(here, *paths, *options)
    common = {"convention": "continuous", "most": 3, "count_difficult": True, "ties": "block"}
    assert result["rules"] == {
        "AP(voc2007)": {"average": "mean of 11 recall points", "matching": "voc", "iou_thresholds": [0.5], **common},
        "AP(coco)@0.6": {"average": "mean of 101 recall points", "matching": "coco", "iou_thresholds": [0.6], **common},
    }
    assert result["nms"] == 0.3
    usual = read(here, *paths, "-m", "ap(voc2007)")
    assert usual["detections"] == 226 > result["detections"]
    looked_at = sum(of_class["detections"] for of_class in result["classes"].values())
    assert looked_at < result["detections"]
    text = here("eval-detections", *paths, *options).stdout
    assert (
        "AP(coco)@0.6 mean of 101 recall points; COCO matching at IoU ≥ 0.6, sides max − min "
        "(continuous); difficult objects counted" in text
    )
    assert "the best 3 detections of an image and class; ties block" in text
    assert "suppressed   detections of IoU > 0.3 with a better one of their image and class" in text
    assert f"; {result['detections'] - looked_at} more than the best 3 of an image and class" in text
    blocks = [read(here, *paths, "--ties", ties) for ties in ("stable", "block")]
    assert blocks[0]["tied_blocks"] == blocks[1]["tied_blocks"] > 0
    assert blocks[0]["metrics"] != blocks[1]["metrics"]


def test_side_by_side(here, files):
    paths = (files / "o_voc", files / "d_text", files / "h_text", "--format", "voc,text")
    first, other = read(here, *paths, "--compare", "--confidence", "0.9", "--bootstrap", "200")["systems"].values()
    assert first["metrics"]["AP(voc2010)"] == pytest.approx(0.613874792284281, abs=1e-12)
    difference = other["against_first"]["AP(voc2010)"]
    assert difference["effect"] == other["metrics"]["AP(voc2010)"] - first["metrics"]["AP(voc2010)"] < 0
    assert difference["low"] < difference["effect"] < difference["high"] < 0
    assert difference["p"] == pytest.approx(2 / 201)
    low, high = first["intervals"]["AP(voc2010)"]
    assert low < first["metrics"]["AP(voc2010)"] < high
    assert "against_first" in other["classes"]["dog"]
    of_classes = [of_class["metrics"]["AP(voc2010)"] for of_class in first["classes"].values()]
    defined = [value for value in of_classes if value is not None]
    assert first["metrics"]["AP(voc2010)"] == pytest.approx(sum(defined) / len(defined))
    text = here("eval-detections", *paths, "--compare", "--bootstrap", "200").stdout
    assert f"{files / 'h_text'} against {files / 'd_text'}, AP(voc2010)" in text
    assert "two-sided, bootstrap over the images, 200 draws, not corrected for many tests" in text
    assert "interval" not in text
    alone = here("eval-detections", *paths[:2], *paths[3:], "--bootstrap", "50").stdout
    assert "intervals    bootstrap over the images, 95 % of 50 draws" in alone


def test_formats_by_the_names_of_the_files(here, files):
    paths = (files / "o_voc", files / "d_text")
    assert read(here, *paths) == read(here, *paths, "--format", "voc,text")


def test_the_seed_draws(here, files):
    paths = (files / "o_voc", files / "h_text", "--format", "voc,text", "--bootstrap", "50")
    results = [read(here, *paths, "--seed", seed)["intervals"] for seed in (1, 1, 2)]
    assert results[0] == results[1] != results[2]


@pytest.mark.slow
def test_pictures(here, files, tmp_path):
    paths = (files / "o_voc", files / "d_text", "--format", "voc,text")
    here("eval-detections", *paths, "--picture", tmp_path / "pr.svg")
    picture = (tmp_path / "pr.svg").read_text()
    assert "d_text, mean of 20 classes, AP(voc2010) 0.6139" in picture
    here("eval-detections", paths[0], files / "h_text", *paths[1:], "--picture", tmp_path / "pr.svg")
    assert "h_text, mean of 20 classes" in (tmp_path / "pr.svg").read_text()
    assert "ends in .png or .svg" in here("eval-detections", *paths, "--picture", tmp_path / "pr", code=2).stderr
    assert here("eval-detections", *paths, "--picture", tmp_path / "no" / "pr.png", code=74).stderr


def test_only_the_images_asked_for(here, files, tmp_path):
    (tmp_path / "images").write_text("2007_000032\n2007_000027\n")
    paths = (files / "o_voc", files / "d_text", "--format", "voc,text", "--images", tmp_path / "images")
    result = read(here, *paths)
    assert (result["images"], result["objects"], result["detections"]) == (2, 5, 7)
    assert result["detections_not_asked_for"] == 445
    assert "; 445 in images that are not to be evaluated" in here("eval-detections", *paths).stdout
    (tmp_path / "images").write_text("x\n")
    assert here("eval-detections", *paths, code=65).stderr.endswith(
        ": expected the requested image 'x', found none of that name\n"
    )


def test_numbered_classes(here, files, tmp_path):
    names = sorted({row[1] for row in voc_2012().objects})
    (tmp_path / "names").write_text("".join(f"{name}\n" for name in names))
    (tmp_path / "d").mkdir()
    for image in voc_2012().images:
        rows = [row for row in voc_2012().detections if row[0] == image]
        lines = [f"{names.index(name)} {score} {' '.join(map(str, box))}\n" for _, name, score, box in rows]
        (tmp_path / "d" / f"{image}.txt").write_text("".join(lines))
    paths = (files / "o_voc", tmp_path / "d", "--format", "voc,text")
    assert here("eval-detections", *paths, code=65).stderr.endswith(
        ", such as 'aeroplane', found '14', and none of them anywhere; numbers need a list of classes\n"
    )
    result = read(here, *paths, "--classes", tmp_path / "names")
    assert result["metrics"]["AP(voc2010)"] == pytest.approx(0.613874792284281, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("o_voc", "d_text", "--format", "xyz"),
            "Error: Invalid value for '--format': expected one of voc, coco, text, csv, or two of them with "
            "a comma, found 'xyz'",
        ),
        (
            ("o_voc", "d_text", "--format", "voc,text,voc"),
            "Error: Invalid value for '--format': expected one of voc, coco, text, csv, or two of them with "
            "a comma, found 'voc,text,voc'",
        ),
        (("o_voc", "--format", "voc"), "Error: Missing argument 'DETECTIONS…'."),
        (("o_voc", "o_voc", "--format", "voc"), "Error: OBJECTS and DETECTIONS are both o_voc"),
        (("o_voc", "d_text", "d_text", "--format", "voc,text"), "Error: the same detections are given twice"),
        (("o_voc", "d_text", "--format", "voc,text", "--compare"), "Error: --compare needs at least two DETECTIONS"),
        (
            ("o_voc", "d_text", "--format", "voc,text", "-m", "AP"),
            "Error: unknown metric of detections 'AP'; nearest: AP75, AP50; known: AP(coco), AP50, AP75, "
            "AP(voc2007), AP(voc2010), AP(coco)@t, AP(voc2007)@t, AP(voc2010)@t",
        ),
        (
            ("o_voc", "d_text", "--format", "voc,text", "-m", "AP(coco)@2"),
            "Error: bad parameter in metric 'AP(coco)@2': expected an IoU above 0 and at most 1, found '2'",
        ),
        (
            ("o_voc", "d_text", "--format", "voc,text", "--nms", "nan"),
            "Error: Invalid value for '--nms': expected a finite number of at least 0 and of at most 1, found 'nan'",
        ),
        (
            ("o_voc", "d_text", "--format", "voc,text", "--seed", "1"),
            "Error: --seed is for --confidence, --bootstrap and --compare",
        ),
        (("-", "-", "--format", "coco"), "Error: OBJECTS and DETECTIONS are both -"),
    ],
)
def test_usage(here, files, monkeypatch, arguments, message):
    monkeypatch.chdir(files)
    assert here("eval-detections", *arguments, code=2).stderr.endswith(f"{message}\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("o_voc", "nowhere", "--format", "voc"), 66, "error: cannot read nowhere: No such file or directory"),
        (("o_coco", "d_text", "--format", "voc,text"), 66, "error: cannot read o_coco: Not a directory"),
        (("o_voc", "d_text", "--format", "text"), 65, "error: o_voc: expected files *.txt in this folder, found none"),
        (
            ("o_text", "d_voc", "--format", "text"),
            65,
            "error: d_voc: none of its images is among the 100 of o_text: expected names such as "
            "'2007_000027', found 'comp3_det_test_aeroplane'",
        ),
        (
            ("o_text", "d_coco", "--format", "text,coco"),
            65,
            "error: d_coco: COCO results name images and classes by ids, and o_text has none",
        ),
        (
            ("d_coco", "d_coco/", "--format", "coco"),
            65,
            "error: d_coco: expected an object of images, annotations and categories, found a list",
        ),
    ],
)
def test_files_that_are_no_such(here, files, monkeypatch, arguments, code, message):
    monkeypatch.chdir(files)
    done = here("eval-detections", *arguments, code=code)
    assert done.stderr.endswith(f"{message}\n")
    assert done.stderr.count("\n") == 1


def test_corners_read_from_widths_are_refused(here, files, tmp_path):
    """Width and height in the place of xmax and ymax."""
    scenes = voc_2012()
    scenes.detections = [
        (image, name, score, (box[0], box[1], box[2] - box[0], box[3] - box[1]))
        for image, name, score, box in scenes.detections
    ]
    path = scenes.write_detections(tmp_path / "d", "text")
    message = here("eval-detections", files / "o_voc", path, "--format", "voc,text", code=65).stderr
    assert "expected xmin ≤ xmax and ymin ≤ ymax" in message
    results = json.loads((files / "d_coco").read_text())
    for row, (*_, box) in zip(results, voc_2012().detections, strict=True):
        row["bbox"] = box
    (tmp_path / "d.json").write_text(json.dumps(results))
    message = here("eval-detections", files / "o_coco", tmp_path / "d.json", "--format", "coco", code=65).stderr
    assert "expected boxes (xmin, ymin, xmax, ymax) inside their images" in message


def test_nothing_to_find(here, tmp_path):
    scenes = Scenes({"a": (50, 50)}, [("a", "ant", (1, 1, 9, 9), 1)], [("a", "ant", 0.5, (1, 1, 9, 9))])
    paths = (scenes.write_objects(tmp_path / "o", "voc"), scenes.write_detections(tmp_path / "d", "text"))
    message = here("eval-detections", *paths, "--format", "voc,text", code=65).stderr
    assert "expected objects that are not difficult or crowds, found none" in message
    assert read(here, *paths, "--format", "voc,text", "--difficult", "counted")["metrics"] == {"AP(voc2010)": 1.0}


def test_shares_of_the_image(here, tmp_path):
    scenes = Scenes({"a": (1, 1)}, [("a", "ant", (0.1, 0.1, 0.9, 0.9), 0)], [("a", "ant", 0.5, (0.1, 0.1, 0.9, 0.8))])
    paths = (scenes.write_objects(tmp_path / "o", "text"), scenes.write_detections(tmp_path / "d", "text"))
    message = here("eval-detections", *paths, "--format", "text", code=65).stderr
    assert "expected pixels, as the sides of boxes are counted inclusively" in message
    assert read(here, *paths, "--format", "text", "--iou", "continuous")["metrics"] == {"AP(voc2010)": 1.0}


def test_escape_sequences_are_shown_as_such(here, tmp_path):
    scenes = Scenes({"a": (50, 50)}, [("a", "\x1b[31mant", (1, 1, 9, 9), 0)])
    path = scenes.write_objects(tmp_path / "o", "text")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_text("")
    text = here("eval-detections", path, tmp_path / "d", "--format", "text").stdout
    assert "\x1b" not in text
    assert "\\x1b[31mant" in text
