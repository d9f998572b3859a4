"""``apsvm predict --boxes``: rows of bags as detections, boxes of images with a class and a score."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from apsvm.cli.reading import rows_for
from apsvm.cli.shared import BAD_DATA, Failure, reading, writing
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    from types import SimpleNamespace

    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.dataset import Dataset
    from apsvm.models.base import Model


def write_detections(model: Model, path: str, out: str, read: ReadOptions, options: SimpleNamespace) -> None:
    """The rows as detections: boxes of the images that their bags are, scored."""
    import numpy as np

    from apsvm.detection.boxes import read_boxes
    from apsvm.models.bags import scores_of

    data = rows_for(model, path, read, ignore_unknown=options.ignore_unknown, unlabelled=True)
    if data.bags is None:
        raise Failure(BAD_DATA, f"{data.source}: the image of a box is the bag of its row, and these rows are in none")
    with reading(options.boxes):
        boxes = read_boxes(options.boxes, data.X.shape[0])
    with reading(path):
        scores = scores_of(model, data)
    columns = scores[:, None] if scores.ndim == 1 else scores
    labels = [(header, header.labels.positive) for header in model.headers]
    classes = [header.shown_label(1.0 if label is None else label) for header, label in labels]
    kept = [_kept(data, column, boxes, options.nms) for column in columns.T]
    of_class = np.repeat(np.arange(len(kept)), [rows.size for rows in kept])
    rows = np.concatenate(kept)
    contents = _contents(data, rows, columns[rows, of_class], boxes[rows], [classes[at] for at in of_class], options)
    _write(out, contents, options.detections == "voc" and len(classes) > 1)


def _kept(
    data: Dataset, scores: NDArray[np.float64], boxes: NDArray[np.float64], nms_threshold: float | None
) -> NDArray[np.int64]:
    import numpy as np

    from apsvm.detection.boxes import nms

    assert data.bags is not None
    if nms_threshold is None:
        return np.arange(scores.size)
    _, image = np.unique(data.bags, return_inverse=True)
    return nms(boxes, scores, image, threshold=nms_threshold)


def _contents(
    data: Dataset,
    rows: NDArray[np.int64],
    scores: NDArray[np.float64],
    boxes: NDArray[np.float64],
    classes: Sequence[str],
    options: SimpleNamespace,
) -> dict[str, bytes]:
    from apsvm.detection.writers import coco_results, voc_results

    assert data.bags is not None
    named = data.table is not None and data.table.bags
    bags = data.bags[rows].tolist()
    with reading(data.source):
        if options.detections == "coco":  # ids are whole numbers, or names
            images = [data.bag_name(bag) if named else bag for bag in bags]
            return {"": coco_results(images, classes, scores, boxes)}
        return voc_results([data.bag_name(bag) for bag in bags], classes, scores, boxes)


def _write(out: str, contents: dict[str, bytes], folder: bool) -> None:
    """One file, or VOC's one a class into a folder."""
    from apsvm._support.files import write_whole

    if not folder:
        (content,) = contents.values() if contents else (b"",)
        with writing(out):
            write_whole(out, content)
        return
    if out == "-":
        raise click.UsageError("VOC has a file a class: name a folder OUT for a model of several")
    with writing(out):
        os.makedirs(out, exist_ok=True)
        for name, content in contents.items():
            write_whole(os.path.join(out, name), content)
