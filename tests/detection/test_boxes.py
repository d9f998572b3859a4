"""IoU, non-maximum suppression against its definition, and boxes from files."""

from __future__ import annotations

import io

import numpy as np
import pytest
from over import over

from apsvm.data.dataset import DataError
from apsvm.detection.boxes import iou, nms, read_boxes


def random_boxes(rng, n):
    corners = rng.integers(0, 30, (n, 2))
    return np.hstack([corners, corners + rng.integers(0, 15, (n, 2))]).astype(np.float64)


@pytest.mark.parametrize("inclusive", [False, True])
def test_iou(rng, inclusive):
    a, b = random_boxes(rng, 500), random_boxes(rng, 500)
    overlap = iou(a, b, inclusive=inclusive)
    assert np.array_equal(overlap, iou(b, a, inclusive=inclusive))
    assert overlap.min() == 0.0
    assert 0.0 < overlap.max() <= 1.0
    empty = (a[:, 2:] == a[:, :2]).any(axis=1) & (not inclusive)
    assert empty.any() != inclusive
    assert np.array_equal(iou(a, a, inclusive=inclusive), np.where(empty, 0.0, 1.0))


def test_iou_of_whole_pixels_counts_them(rng):
    for a, b in zip(random_boxes(rng, 50), random_boxes(rng, 50), strict=True):
        pixels = [
            {(x, y) for x in range(int(box[0]), int(box[2]) + 1) for y in range(int(box[1]), int(box[3]) + 1)}
            for box in (a, b)
        ]
        assert iou(a, b, inclusive=True) == len(pixels[0] & pixels[1]) / len(pixels[0] | pixels[1])


def test_iou_with_a_crowd_is_a_share_of_the_detection():
    a, b = np.array([[0.0, 0, 4, 4]]), np.array([[2.0, 0, 100, 100]])
    assert iou(a, b, crowd=np.array([True])) == [0.5]


def by_definition(boxes, scores, threshold):
    """A box stays unless a better one that stays overlaps it by more."""
    kept = []
    for row in sorted(range(len(scores)), key=lambda row: -scores[row]):
        if all(iou(boxes[row], boxes[other]) <= threshold for other in kept):
            kept.append(row)
    return sorted(kept)


@over("threshold", [0.0, 0.3, 0.5, 1.0])
def test_nms_is_its_definition(rng, threshold):
    boxes, scores = random_boxes(rng, 200), rng.integers(0, 20, 200).astype(np.float64)
    of_image = rng.integers(0, 5, 200)
    kept = nms(boxes, scores, of_image, threshold=threshold)
    expected = []
    for image in range(5):
        rows = np.flatnonzero(of_image == image)
        expected += rows[by_definition(boxes[rows], scores[rows], threshold)].tolist()
    assert kept.tolist() == sorted(expected)
    assert (threshold == 1.0) == (kept.size == 200)


def test_nms_is_strict_and_stable():
    """The second box shares exactly half with the first, and has its score."""
    boxes, scores, image = np.array([[0.0, 0, 2, 4], [0.0, 0, 2, 2]]), np.array([1.0, 1.0]), np.zeros(2, dtype=np.int64)
    assert nms(boxes, scores, image, threshold=0.5).tolist() == [0, 1]
    assert nms(boxes, scores, image, threshold=0.49).tolist() == [0]
    assert nms(boxes[::-1], scores, image, threshold=0.49).tolist() == [0]
    assert nms(np.zeros((0, 4)), np.zeros(0), image[:0], threshold=0.5).tolist() == []


def test_boxes_from_text_and_npy(tmp_path, rng):
    boxes = random_boxes(rng, 10) + 0.25
    text, npy = tmp_path / "boxes.txt", tmp_path / "boxes.npy"
    text.write_text("".join(f"{' '.join(map(repr, box))}\n" for box in boxes.tolist()))
    np.save(npy, boxes)
    for path in (text, npy):
        assert np.array_equal(read_boxes(path, 10), boxes)
        with pytest.raises(DataError, match="expected 11 boxes, one for each row, found 10"):
            read_boxes(path, 11)
    np.save(npy, boxes.astype(np.int32))
    assert read_boxes(npy, 10).dtype == np.float64


@over(
    ("content", "message"),
    [
        (b"1 2 3 4\n1 2 3\n", r":2: expected xmin ymin xmax ymax, found 3 fields"),
        (b"1 2 3 x\n", r":1: expected ymax, a finite number, found 'x'"),
        (b"1 2 3 nan\n", r":1: expected ymax, a finite number, found 'nan'"),
        (b"1 2 3 1e400\n", r":1: expected ymax, a finite number"),
        (b"1 2 3 1_0\n", r":1: expected ymax, a finite number"),
        (b"1 2 3 1e10\n", r":1: expected four finite coordinates, found 1 2 3 1e\+10"),
        (b"5 2 3 4\n", r":1: expected xmin ≤ xmax and ymin ≤ ymax, found 5 2 3 4"),
        (b"\xff\n", r":1: expected text in UTF-8"),
        (b"", r"expected 1 boxes, one for each row, found 0"),
        (b"\x93NUMPY\x01\x00", r"not a \.npy file"),
    ],
)
def test_bad_boxes(tmp_path, content, message):
    (tmp_path / "boxes").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_boxes(tmp_path / "boxes", 1)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((2, 3)), r"expected numbers of shape \(n, 4\), found float64 of shape \(2, 3\)"),
        (np.zeros((2, 4), dtype=complex), "found complex128"),
        (np.array([[0, 0, 1, 1], [0, 0, np.nan, 1]]), "row 1 .*: expected four finite coordinates"),
        (np.array([[0, 0, 1, 1], [2, 0, 1, 1]]), "row 1 .*: expected xmin ≤ xmax"),
        (np.array([{}, {}]), r"not a \.npy file"),
    ],
)
def test_bad_matrices(tmp_path, matrix, message):
    stream = io.BytesIO()
    np.save(stream, matrix, allow_pickle=True)
    (tmp_path / "boxes").write_bytes(stream.getvalue())
    with pytest.raises(DataError, match=message):
        read_boxes(tmp_path / "boxes", 2)
