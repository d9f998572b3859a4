"""Label types that a trainer can declare (``trainers.capabilities``). Light to import."""

from __future__ import annotations

from enum import Enum, auto


class Takes(Enum):
    """Label type that a trainer takes; ``apsvm.data.labels.decide`` converts labels to it."""

    TWO_CLASSES = auto()
    #: Grades with gains, unless the user names a positive or a lowest relevant label.
    GRADES = auto()
    #: The order of the labels; of two classes, that of theirs.
    ORDER = auto()
    #: Each label in turn.
    CLASSES = auto()
    #: Nothing: the rows are their own target.
    NOTHING = auto()
