"""Images of which windows are scored, for ``latent_detection.py``: scenes made of digits, or VOC 2007."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from apsvm.data.labels import of_relevance
from apsvm.data.rows import Rows
from apsvm.detection.base import Objects
from apsvm.detection.boxes import iou
from apsvm.detection.readers import read_objects
from apsvm.trainers.base import TrainingSet

#: Sides of the scenes and of the digits in them, and between windows.
SIDE, DIGIT, STRIDE = 28, 8, 2


@dataclass(frozen=True, eq=False)
class Scenes:
    """Images with windows and the objects in them.

    features : (windows, d), image by image; boxes : (windows, 4); offsets : (images + 1,), where the images begin
    objects : their true places, as ``apsvm.detection`` knows them
    """

    features: NDArray[np.float64]
    boxes: NDArray[np.float64]
    offsets: NDArray[np.int64]
    objects: Objects

    @property
    def n_images(self) -> int:
        return self.offsets.size - 1

    @property
    def image_of_window(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.n_images), np.diff(self.offsets))

    def has(self, of_class: int) -> NDArray[np.bool_]:
        """(images,): which of them have an object of the class; difficult ones count as none."""
        objects = self.objects
        return np.isin(np.arange(self.n_images), objects.of_image[(objects.of_class == of_class) & ~objects.difficult])

    def bags(self, of_class: int, bias: float | None = None) -> TrainingSet:
        return TrainingSet(Rows(self.features, bias=bias), of_relevance(self.has(of_class)), bags=self.offsets)

    def image_scores(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum.reduceat(self.features @ w, self.offsets[:-1])

    def part(self, images: NDArray[np.int64], of_class: int, bias: float | None) -> TrainingSet:
        return self.bags(of_class, bias).select(images)

    def overlap(self, of_class: int) -> NDArray[np.float64]:
        """(windows,): the largest IoU with an object of the class."""
        result = np.zeros(len(self.boxes))
        objects = self.objects
        for at in np.flatnonzero(objects.of_class == of_class):
            image = int(objects.of_image[at])
            place = slice(*self.offsets[image : image + 2].tolist())
            result[place] = np.maximum(result[place], iou(self.boxes[place], objects.boxes[at]))
        return result


def made_scenes(digits: NDArray[np.float64], labels: NDArray[np.int64], n: int, seed: int) -> Scenes:
    """n scenes of digits (·, 8, 8) with their labels."""
    rng = np.random.default_rng(seed)
    corners = np.arange(0, SIDE - DIGIT + 1, STRIDE)
    ys, xs = (grid.ravel() for grid in np.meshgrid(corners, corners, indexing="ij"))
    windows, of_image, of_class, boxes = [], [], [], []
    for image in range(n):
        scene = np.zeros((SIDE, SIDE))
        taken = np.zeros((SIDE, SIDE), dtype=bool)
        for at in rng.integers(len(digits), size=rng.integers(2, 5)):
            free = [i for i in range(xs.size) if not taken[ys[i] : ys[i] + DIGIT, xs[i] : xs[i] + DIGIT].any()]
            if not free:
                break
            place = free[int(rng.integers(len(free)))]
            x, y = int(xs[place]), int(ys[place])
            scene[y : y + DIGIT, x : x + DIGIT] = digits[at]
            taken[y : y + DIGIT, x : x + DIGIT] = True
            of_image.append(image)
            of_class.append(int(labels[at]))
            boxes.append([x, y, x + DIGIT, y + DIGIT])
        for at in rng.integers(len(digits), size=3):
            half = np.rot90(digits[at], int(rng.integers(1, 4)))[: DIGIT // 2]
            y, x = rng.integers(SIDE - DIGIT // 2 + 1), rng.integers(SIDE - DIGIT + 1)
            room = ~taken[y : y + DIGIT // 2, x : x + DIGIT]
            scene[y : y + DIGIT // 2, x : x + DIGIT] = np.where(room, half, scene[y : y + DIGIT // 2, x : x + DIGIT])
        scene += 0.1 * rng.normal(size=scene.shape)
        windows.append(np.lib.stride_tricks.sliding_window_view(scene, (DIGIT, DIGIT))[ys, xs].reshape(-1, DIGIT**2))
    features = np.concatenate(windows)
    features -= features.mean(axis=1, keepdims=True)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    of_window = np.stack([xs, ys, xs + DIGIT, ys + DIGIT], axis=1).astype(np.float64)
    return Scenes(
        features,
        np.tile(of_window, (n, 1)),
        np.arange(n + 1) * xs.size,
        Objects(
            images=tuple(f"scene{image}" for image in range(n)),
            classes=tuple(map(str, range(10))),
            of_image=np.array(of_image),
            of_class=np.array(of_class),
            boxes=np.array(boxes, dtype=np.float64),
            difficult=np.zeros(len(boxes), dtype=bool),
            crowd=np.zeros(len(boxes), dtype=bool),
            source="scenes",
        ),
    )


def voc_scenes(folder: Path, part: str) -> Scenes:
    """A part of VOC 2007, "trainval" or "test", with windows and features."""
    root = folder / "VOC2007"
    names = (root / "ImageSets" / "Main" / f"{part}.txt").read_text().split()
    objects = read_objects(str(root / "Annotations"))
    number = {name: at for at, name in enumerate(names)}
    kept = np.array([objects.images[at] in number for at in objects.of_image.tolist()], dtype=bool)
    boxes = [np.load(folder / "windows" / f"{name}.npy").astype(np.float64) for name in names]
    features = [np.load(folder / "features" / f"{name}.npy") for name in names]
    for name, windows, rows in zip(names, boxes, features, strict=True):
        if windows.shape != (len(rows), 4) or len(rows) == 0:
            sys.exit(f"{folder}: {name}: expected as many windows (n, 4) as rows of features, found {windows.shape} "
                     f"and {rows.shape}")  # fmt: skip
    of_image = [number[objects.images[at]] for at in objects.of_image[kept].tolist()]
    return Scenes(
        np.concatenate(features),
        np.concatenate(boxes),
        np.concatenate([[0], np.cumsum([len(rows) for rows in features])]).astype(np.int64),
        Objects(
            images=tuple(names),
            classes=objects.classes,
            of_image=np.array(of_image),
            of_class=objects.of_class[kept],
            boxes=objects.boxes[kept],
            difficult=objects.difficult[kept],
            crowd=objects.crowd[kept],
            source=objects.source,
        ),
    )
