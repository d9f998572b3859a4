"""What a trainer makes of labels, as it declares it (``trainers.capabilities``): importing this loads nothing heavy."""

from __future__ import annotations

from enum import Enum, auto


class Takes(Enum):
    """What a trainer makes of labels; ``apsvm.data.labels.decide`` turns labels into that."""

    TWO_CLASSES = auto()
    #: Grades with gains, unless the user names a positive or a lowest relevant label.
    GRADES = auto()
    #: The order of the labels; of two classes, that of theirs.
    ORDER = auto()
    #: Each label in turn.
    CLASSES = auto()
    #: Nothing: the rows are their own target.
    NOTHING = auto()
