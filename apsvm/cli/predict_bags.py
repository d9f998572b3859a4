"""What ``apsvm predict`` writes of bags: which row decides, rows beside their bags, and detections."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from apsvm.cli.reading import rows_for
from apsvm.cli.shared import BAD_DATA, Failure, reading, writing
from apsvm.data.read_options import ReadOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.dataset import Dataset
    from apsvm.models.base import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class BagOutput:
    """What is asked for of a model of bags.

    instances : a line a row, not a bag; which : say which row decides
    boxes : the file of the rows' boxes; detections : "voc" or "coco"
    nms : a box goes when its IoU with a better one of its bag is above; None: all stay
    """

    instances: bool = False
    which: bool = False
    boxes: str | None = None
    detections: str | None = None
    nms: float | None = None

    def check(self, model: Model, path: str) -> None:
        """Ends the command where the options do not go with each other or with the model of the file ``path``."""

        asked = [
            flag
            for flag, value in (("--instances", self.instances), ("--which", self.which), ("--boxes", self.boxes))
            if value
        ]
        if asked and not model.header.latent:
            raise click.UsageError(f"{asked[0]} is for a model of bags by their best rows (--latent): {path} is none")
        if self.which and model.has_classes:
            raise click.UsageError("--which is for a model of one ranker: of several each has its own deciding row")
        if (self.boxes is None) != (self.detections is None):
            raise click.UsageError(
                "--boxes FILE and --detections go together: where the rows' boxes are, and the format"
            )
        if self.nms is not None and self.boxes is None:
            raise click.UsageError("--nms is for detections: --boxes FILE --detections")
        if self.boxes is not None and self.which:
            raise click.UsageError("--which is not for detections")


def lines_of_rows(model: Model, path: str, read: ReadOptions, output: BagOutput, *, ignore_unknown: bool) -> list[str]:
    """A line for each row of the file: its score, or one a class; and with ``which`` 1 where it decides, or else 0."""
    import numpy as np

    from apsvm.data.bags import bags_of, deciding_rows

    data = rows_for(model, path, read, ignore_unknown=ignore_unknown, unlabelled=True)
    scores = model.score(data.X)
    if scores.ndim == 2:
        return ["\t".join(map(repr, row)) for row in scores.tolist()]
    if not output.which:
        return [repr(score) for score in scores.tolist()]
    bags = bags_of(data)
    if bags is None:
        raise Failure(BAD_DATA, f"{data.source}: --which says what decides a bag, and these rows are in none")
    decides = np.zeros(scores.size, dtype=np.int64)
    decides[deciding_rows(bags, scores)] = 1
    return [f"{score!r}\t{one}" for score, one in zip(scores.tolist(), decides.tolist(), strict=True)]


def write_detections(
    model: Model, path: str, out: str, read: ReadOptions, output: BagOutput, *, ignore_unknown: bool
) -> None:
    """The rows as detections: boxes of the images that their bags are, scored."""
    import numpy as np

    from apsvm.detection.boxes import read_boxes

    data = rows_for(model, path, read, ignore_unknown=ignore_unknown, unlabelled=True)
    if data.bags is None:
        raise Failure(BAD_DATA, f"{data.source}: the image of a box is the bag of its row, and these rows are in none")
    assert output.boxes is not None
    with reading(output.boxes):
        boxes = read_boxes(output.boxes, data.X.shape[0])
    scores = model.score(data.X)
    columns = scores[:, None] if scores.ndim == 1 else scores
    classes = _class_names(model)
    kept = [_kept(data, column, boxes, output.nms) for column in columns.T]
    of_class = np.repeat(np.arange(len(kept)), [rows.size for rows in kept])
    rows = np.concatenate(kept)
    contents = _contents(data, rows, columns[rows, of_class], boxes[rows], [classes[at] for at in of_class], output)
    _write(out, contents, output.detections == "voc" and len(classes) > 1)


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


def _class_names(model: Model) -> list[str]:
    from apsvm.data.dataset import shown_label

    labels = [header.labels.positive for header in model.headers]
    return ["1" if label is None else shown_label(label) for label in labels]


def _contents(
    data: Dataset,
    rows: NDArray[np.int64],
    scores: NDArray[np.float64],
    boxes: NDArray[np.float64],
    classes: Sequence[str],
    output: BagOutput,
) -> dict[str, bytes]:
    from apsvm.detection.writers import coco_results, voc_results

    assert data.bags is not None
    images = data.bags[rows].tolist()
    with reading(data.source):
        if output.detections == "coco":
            return {"": coco_results(images, classes, scores, boxes)}
        return voc_results([str(image) for image in images], classes, scores, boxes)


def _write(out: str, contents: dict[str, bytes], folder: bool) -> None:
    """One file, or VOC's one a class into a folder."""
    from apsvm.files import write_whole

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
