"""Boxes: overlap of two, non-maximum suppression of many, and a reader.

    IoU(a, b) = |a ∩ b| / |a ∪ b|

of boxes (xmin, ymin, xmax, ymax). There are two conventions. In the PASCAL VOC devkits, corners are whole pixels of the
box, and a side is max − min + 1. In COCO, a side is max − min.

Non-maximum suppression is greedy: it keeps the best box, drops those with an IoU above the threshold, and repeats with
the rest, as torchvision does. Equal scores keep their order. O(k·n) for k of n boxes kept in an image.
"""

from __future__ import annotations

import io
import os

import numpy as np
from numpy.typing import NDArray

from apsvm._support.files import read_bytes
from apsvm.data.dataset import DataError
from apsvm.detection.base import Counts, Floats
from apsvm.detection.fields import LARGEST, box_of, checked, lines_of

_NPY = b"\x93NUMPY"


def iou(a: Floats, b: Floats, *, inclusive: bool = False, crowd: NDArray[np.bool_] | None = None) -> Floats:
    """Intersection over union of pairs of boxes; 0 if both are empty.

    Parameters
    ----------
    a, b : ndarray
        (..., 4) float64, finite; broadcast against each other.
    inclusive : bool
        True if a side is max − min + 1.
    crowd : ndarray, optional
        (...) bool, pairs whose b is a crowd: their value is the intersection's share of a (COCO).

    Returns
    -------
    ndarray
        (...) float64 in [0, 1].
    """
    extra = 1.0 if inclusive else 0.0
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]) + extra
    shared = np.prod(np.maximum(sides, 0.0), axis=-1)
    area_a, area_b = (np.prod(box[..., 2:] - box[..., :2] + extra, axis=-1) for box in (a, b))
    union = area_a + area_b - shared
    if crowd is not None:
        union = np.where(crowd, area_a, union)
    result: Floats = np.divide(shared, union, out=np.zeros(np.shape(shared)), where=shared > 0)
    return result


def nms(boxes: Floats, scores: Floats, of_image: Counts, *, threshold: float) -> Counts:
    """Non-maximum suppression within each image; sides are max − min.

    Parameters
    ----------
    boxes : ndarray
        (n, 4) float64.
    scores : ndarray
        (n,) float64.
    of_image : ndarray
        (n,) int64, the image of each box.
    threshold : float
        IoU with a better box above which a box is dropped.

    Returns
    -------
    ndarray
        (k,) int64, the rows that are kept, ascending.
    """
    order = np.lexsort((-scores, of_image))
    groups = np.split(order, np.flatnonzero(np.diff(of_image[order])) + 1)
    return np.sort(np.array([row for group in groups for row in _suppress(group, boxes, threshold)], dtype=np.int64))


def _suppress(group: Counts, boxes: Floats, threshold: float) -> list[int]:
    """Rows of ``group``, best first, that suppression keeps."""
    kept = []
    while group.size:
        kept.append(int(group[0]))
        overlap = iou(boxes[group[0]], boxes[group[1:]])
        group = group[1:][overlap <= threshold]
    return kept


def places_in(scores: Floats, groups: Counts) -> Counts:
    """Rank of each row in its group by falling score, from 0, equal scores in their order: (n,) int64."""
    order = np.lexsort((-scores, groups))
    in_order = groups[order]
    starts = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]])[: order.size])
    begins = np.repeat(starts, np.diff(np.append(starts, order.size)))
    result = np.empty(order.size, dtype=np.int64)
    result[order] = np.arange(order.size) - begins
    return result


def read_boxes(path: str | os.PathLike[str], n_rows: int) -> Floats:
    """Read the boxes of rows.

    Parameters
    ----------
    path : str or path-like
        Text with a line ``xmin ymin xmax ymax`` for each row, or a .npy matrix.
    n_rows : int
        Expected number of boxes.

    Returns
    -------
    ndarray
        (n_rows, 4) float64.

    Raises
    ------
    DataError
        A fault in the file; the message names its place.
    OSError
        The file cannot be read.
    """
    name, content = os.fspath(path), read_bytes(path)
    boxes = _from_npy(name, content) if content.startswith(_NPY) else _from_text(name, content)
    if len(boxes) != n_rows:
        raise DataError(f"{name}: expected {n_rows} boxes, one for each row, found {len(boxes)}")
    return boxes


def _from_npy(name: str, content: bytes) -> Floats:
    try:
        matrix = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError, MemoryError) as error:
        raise DataError(f"{name}: not a .npy file: {error}") from None
    if matrix.ndim != 2 or matrix.shape[1] != 4 or matrix.dtype.kind not in "fiu":
        raise DataError(f"{name}: expected numbers of shape (n, 4), found {matrix.dtype} of shape {matrix.shape}")
    boxes: Floats = matrix.astype(np.float64)
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(boxes) <= LARGEST).all(axis=1) | (boxes[:, 2:] < boxes[:, :2]).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        checked(tuple(boxes[row].tolist()), f"{name}: row {row} (counted from 0)")
    return boxes


def _from_text(name: str, content: bytes) -> Floats:
    rows = []
    for number, words in lines_of(name, content):
        if len(words) != 4:
            raise DataError(f"{name}:{number}: expected xmin ymin xmax ymax, found {len(words)} fields")
        rows.append(box_of(words, f"{name}:{number}"))
    return np.array(rows, dtype=np.float64).reshape(-1, 4)
