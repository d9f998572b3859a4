"""Objects and detections for tests: those of 100 images of VOC 2012, random ones, and both written in every format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from apsvm.detection.base import Detections, Objects

VOC_2012 = Path(__file__).parent / "detection" / "voc_2012"


@dataclass
class Scenes:
    """images : name → (width, height); objects : (image, class, box, kind), kind 0, 1 difficult, 2 crowd; detections :
    (image, class, score, box); classes : all names, in their order"""

    images: dict[str, tuple[int, int]] = field(default_factory=dict)
    objects: list[tuple[str, str, tuple[float, ...], int]] = field(default_factory=list)
    detections: list[tuple[str, str, float, tuple[float, ...]]] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return sorted({row[1] for row in self.objects} | {row[1] for row in self.detections})

    def as_objects(self) -> Objects:
        images, classes = {name: at for at, name in enumerate(self.images)}, self.classes
        rows = [
            (images[image], classes.index(name), box, kind == 1, kind == 2) for image, name, box, kind in self.objects
        ]
        return Objects.of_rows(images, classes, rows, "objects")

    def as_detections(self) -> Detections:
        images, classes = {name: at for at, name in enumerate(self.images)}, self.classes
        rows = [(images[image], classes.index(name), box, score) for image, name, score, box in self.detections]
        return Detections.of_rows(classes, rows)

    def write_objects(self, path: Path, format: str = "voc") -> Path:
        if format == "coco":
            path.write_text(json.dumps(self.coco_objects()))
            return path
        path.mkdir()
        for image, (width, height) in self.images.items():
            rows = [row for row in self.objects if row[0] == image]
            (path / f"{image}.xml").write_text(as_xml(image, width, height, rows))
        return path

    def write_detections(self, path: Path, format: str = "voc") -> Path:
        """``text`` : VOC's, a file an image."""
        if format == "coco":
            path.write_text(json.dumps(self.coco_results()))
            return path
        path.mkdir()
        names = self.images if format == "text" else self.classes
        for name in names:
            stem, at, shown = (name, 0, 1) if format == "text" else (f"comp3_det_test_{name}", 1, 0)
            rows = [row for row in self.detections if row[at] == name]
            lines = [f"{row[shown]} {row[2]!r} {' '.join(map(repr, row[3]))}" for row in rows]
            (path / f"{stem}.txt").write_text("".join(f"{line}\n" for line in lines))
        return path

    def coco_objects(self) -> dict:
        ids = {name: at for at, name in enumerate(self.images, 1)}
        classes = self.classes
        annotations = [
            {
                "id": at, "image_id": ids[image], "category_id": 10 + classes.index(name), "bbox": as_xywh(box),
                "area": as_xywh(box)[2] * as_xywh(box)[3], "iscrowd": int(kind == 2),
            }
            for at, (image, name, box, kind) in enumerate(self.objects, 1)
        ]  # fmt: skip
        images = [
            {"id": ids[name], "width": width, "height": height, "file_name": f"{name}.jpg"}
            for name, (width, height) in self.images.items()
        ]
        categories = [{"id": 10 + at, "name": name} for at, name in enumerate(classes)]
        return {"images": images, "annotations": annotations, "categories": categories}

    def coco_results(self) -> list:
        ids = {name: at for at, name in enumerate(self.images, 1)}
        return [
            {
                "image_id": ids[image],
                "category_id": 10 + self.classes.index(name),
                "bbox": as_xywh(box),
                "score": score,
            }
            for image, name, score, box in self.detections
        ]


def as_xywh(box: tuple[float, ...]) -> list[float]:
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def as_xml(image: str, width: int, height: int, rows: Iterable[tuple]) -> str:
    objects = "".join(
        f"<object><part><name>head</name></part><name>{name}</name><difficult>{int(kind == 1)}</difficult>\n<bndbox>"
        + "".join(f"<{tag}>{corner}</{tag}>" for tag, corner in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True))
        + "</bndbox></object>\n"
        for _, name, box, kind in rows
    )
    size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
    return f"<annotation>\n<filename>{image}.jpg</filename>{size}\n{objects}</annotation>\n"


def voc_2012() -> Scenes:
    """The 100 images."""
    scenes = Scenes()
    for line in (VOC_2012 / "objects.txt").read_text().splitlines():
        image, width, height, name, difficult, *box = line.split()
        scenes.images[image] = (int(width), int(height))
        scenes.objects.append((image, name, tuple(map(int, box)), int(difficult)))
    for line in (VOC_2012 / "detections.txt").read_text().splitlines():
        image, name, score, *box = line.split()
        scenes.detections.append((image, name, float(score), tuple(map(float, box))))
    return scenes


def random_scenes(
    rng: np.random.Generator, *, n_images: int = 20, kinds: int = 3, whole: bool = True, tied: bool = False
) -> Scenes:
    """Objects in clumps, detections near them, doubled and missed ones, some in empty images; corners are whole
    numbers, so that IoUs at a threshold and equal IoUs occur, and scores may tie."""
    scenes = Scenes({f"image{at:03d}": (100, 80) for at in range(n_images)})
    names = ["ant", "bee", "cow"]
    for image in scenes.images:
        for _ in range(int(rng.integers(0, 7))):
            box = _random_box(rng, whole=whole)
            name = names[rng.integers(3)]
            if scenes.objects and rng.random() < 0.3:  # beside another one
                _, name, beside, _ = scenes.objects[-1]
                box = tuple((np.array(beside) + rng.integers(-2, 3)).tolist())
            scenes.objects.append((image, name, box, int(rng.choice(kinds, p=_shares(kinds)))))
        near = [row for row in scenes.objects if row[0] == image]
        for _ in range(int(rng.integers(0, 15))):
            box, name = _random_box(rng, whole=whole), names[rng.integers(3)]
            if near and rng.random() < 0.8:
                _, name, of_object, _ = near[rng.integers(len(near))]
                moved = np.array(of_object) + (rng.integers(-3, 4, 4) if whole else rng.normal(0, 2, 4))
                box = tuple(np.concatenate([moved[:2], np.maximum(moved[2:], moved[:2])]).tolist())
            score = float(rng.integers(0, 4)) if tied else float(rng.random())
            scenes.detections.append((image, name, score, box))
    return scenes


def _shares(kinds: int) -> list[float]:
    return [1.0] if kinds == 1 else [0.7] + [0.3 / (kinds - 1)] * (kinds - 1)


def _random_box(rng: np.random.Generator, *, whole: bool) -> tuple[float, ...]:
    corner = rng.integers(0, 60, 2) if whole else rng.uniform(0, 60, 2)
    side = rng.integers(4, 20, 2) if whole else rng.uniform(4, 20, 2)
    return tuple(float(value) for value in (*corner, *(corner + side)))
