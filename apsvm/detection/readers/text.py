"""Text, a file an image, which has the file's name: objects and detections in folders of lines

class xmin ymin xmax ymax [difficult]
class score xmin ymin xmax ymax
"""

from __future__ import annotations

from apsvm.data.dataset import DataError
from apsvm.detection.base import Detections, Objects
from apsvm.detection.fields import box_of, files_in, number_of, read_lines
from apsvm.detection.readers.gathered import ClassNames, Gathered


def read_objects(path: str, classes: ClassNames | None = None) -> Objects:
    """Raises DataError with the line of what is wrong, OSError."""
    gathered = Gathered(path, classes)
    for name, file in files_in(path, ".txt"):
        image = gathered.image(name)
        for number, words in read_lines(file):
            difficult = len(words) == 6 and words[5] == "difficult"
            if len(words) != 5 and not difficult:
                raise DataError(
                    f"{file}:{number}: expected the 5 fields class, xmin, ymin, xmax, ymax and perhaps the word "
                    f"difficult, found {len(words)} fields"
                )
            of_class = gathered.class_of(words[0], f"{file}:{number}")
            gathered.add(image, of_class, box_of(words[1:5], file, number), float(difficult), (file, number))
    return gathered.objects()


def read_detections(path: str, classes: ClassNames | None = None) -> Detections:
    """Raises DataError with the line of what is wrong, OSError."""
    gathered = Gathered(path, classes)
    for name, file in files_in(path, ".txt"):
        image = gathered.image(name)
        for number, words in read_lines(file):
            if len(words) != 6:
                raise DataError(
                    f"{file}:{number}: expected the 6 fields class, score, xmin, ymin, xmax, ymax, found {len(words)}"
                )
            of_class = gathered.class_of(words[0], f"{file}:{number}")
            score = number_of(words[1], "a score", file, number)
            gathered.add(image, of_class, box_of(words[2:], file, number), score, (file, number))
    return gathered.detections()
