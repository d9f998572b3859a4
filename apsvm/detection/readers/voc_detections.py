"""Detections as the PASCAL VOC devkits read them: a file a class, ``comp3_det_test_CLASS.txt``, of lines

    image score xmin ymin xmax ymax

The argument is the folder of these files, or one of them. Files of other names have the class's name alone.
"""

from __future__ import annotations

import os
import re

from apsvm.data.dataset import DataError
from apsvm.detection.base import Detections
from apsvm.detection.fields import box_of, files_in, number_of, read_lines
from apsvm.detection.readers.gathered import ClassNames, Gathered

_NAME = re.compile(r"(?:[^_]*_)?det_[^_]+_(.+)")


def read_detections(path: str, classes: ClassNames | None = None) -> Detections:
    """Raises DataError with the line of what is wrong, OSError."""
    files = files_in(path, ".txt") if os.path.isdir(path) else [(os.path.basename(path).removesuffix(".txt"), path)]
    gathered = Gathered(path, classes)
    sources: dict[int, str] = {}
    for stem, file in files:
        match = _NAME.fullmatch(stem)
        of_class = gathered.class_of(match[1] if match else stem, file)
        first = sources.setdefault(of_class, file)
        if first != file:
            raise DataError(f"{file}: expected one file a class, found its class in {first} too")
        for number, words in read_lines(file):
            if len(words) != 6:
                raise DataError(
                    f"{file}:{number}: expected the 6 fields image, score, xmin, ymin, xmax, ymax, found {len(words)}"
                )
            score = number_of(words[1], "a score", file, number)
            gathered.add(gathered.image(words[0]), of_class, box_of(words[2:], file, number), score, (file, number))
    return gathered.detections()
