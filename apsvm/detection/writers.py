"""Files of detections, for the readers of the same format. Numbers have enough digits to be read back unchanged."""

from __future__ import annotations

import json
from collections.abc import Sequence

from apsvm.data.dataset import DataError
from apsvm.detection.base import Floats


def voc_results(images: Sequence[str], classes: Sequence[str], scores: Floats, boxes: Floats) -> dict[str, bytes]:
    """Content of VOC's files, one for each class, with lines ``image score xmin ymin xmax ymax``.

    Parameters
    ----------
    images, classes : sequence of str
        (n,) names.
    scores : ndarray
        (n,) float64.
    boxes : ndarray
        (n, 4) float64, xmin, ymin, xmax, ymax.

    Returns
    -------
    dict[str, bytes]
        Contents by file name.

    Raises
    ------
    DataError
        A name that such files cannot hold.
    """
    lines: dict[str, list[str]] = {}
    rows = zip(images, classes, scores.tolist(), boxes.tolist(), strict=True)
    for image, name, score, box in rows:
        if not image or image.split() != [image]:
            raise DataError(f"expected a name without blanks for an image of VOC's text, found {image!r}")
        lines.setdefault(name, []).append(" ".join([image, *map(_number, (score, *box))]))
    for name in lines:
        if not name or "/" in name or "\0" in name:
            raise DataError(f"expected a class that can be in a file's name, found {name!r}")
    contents = {name: "".join(f"{line}\n" for line in of_class) for name, of_class in lines.items()}
    return {f"comp3_det_test_{name}.txt": content.encode() for name, content in contents.items()}


def coco_results(images: Sequence[int | str], classes: Sequence[str], scores: Floats, boxes: Floats) -> bytes:
    """Content of COCO's file, a JSON list with a line for each detection.

    Parameters
    ----------
    images, classes : sequence of int or str
        (n,) ids.
    scores, boxes : ndarray
        As for ``voc_results``.

    Raises
    ------
    DataError
        A class that is not a whole number.
    """
    results = []
    for image, name, score, box in zip(images, classes, scores.tolist(), boxes.tolist(), strict=True):
        xmin, ymin, xmax, ymax = box
        if not (name.isascii() and name.removeprefix("-").isdigit()):
            raise DataError(f"expected a class with a COCO id, found {name!r}")
        result = {
            "image_id": image,
            "category_id": int(name),
            "bbox": [xmin, ymin, xmax - xmin, ymax - ymin],
            "score": score,
        }
        results.append(json.dumps(result))
    return ("[" + ",\n".join(results) + "]\n").encode()


def _number(value: float) -> str:
    """The shortest text that reads back as ``value``."""
    return repr(value).removesuffix(".0")
