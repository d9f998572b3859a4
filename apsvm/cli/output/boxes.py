"""``apsvm predict --boxes``: rows of bags as detections, boxes of images with a class and a score."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from apsvm.cli.reading import rows_for
from apsvm.cli.shared import BAD_DATA, Failure, writing
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    from types import SimpleNamespace

    from apsvm.models.base import Model


def write_detections(model: Model, path: str, out: str, read: ReadOptions, options: SimpleNamespace) -> None:
    """The rows as detections: boxes of the images that their bags are, scored."""
    import numpy as np

    from apsvm._support.files import write_whole
    from apsvm.detection.boxes import nms, read_boxes
    from apsvm.detection.writers import coco_results, voc_results
    from apsvm.models.bags import scores_of

    data = rows_for(model, path, read, ignore_unknown=options.ignore_unknown, unlabelled=True)
    if data.bags is None:
        raise Failure(BAD_DATA, f"{data.source}: the image of a box is the bag of its row, and these rows are in none")
    boxes = read_boxes(options.boxes, data.X.shape[0])
    scores = scores_of(model, data)
    columns = scores[:, None] if scores.ndim == 1 else scores
    labels = [(header, header.labels.positive) for header in model.headers]
    classes = [header.shown_label(1.0 if label is None else label) for header, label in labels]
    kept = [np.arange(len(boxes)) for _ in classes]
    if options.nms is not None:
        _, image = np.unique(data.bags, return_inverse=True)
        kept = [nms(boxes, column, image, threshold=options.nms) for column in columns.T]
    of_class, rows = np.repeat(np.arange(len(kept)), [one.size for one in kept]), np.concatenate(kept)
    named = data.table is not None and data.table.bags
    bags, what = data.bags[rows].tolist(), ([classes[at] for at in of_class], columns[rows, of_class], boxes[rows])
    if options.detections == "coco":  # ids are whole numbers, or names
        images = [data.bag_name(bag) if named else bag for bag in bags]
        contents = {"": coco_results(images, *what)}
    else:
        contents = voc_results([data.bag_name(bag) for bag in bags], *what)
    if options.detections == "coco" or len(classes) == 1:
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
