"""Kinds of labels that a trainer can declare (``trainers.capabilities``). Light to import."""

from __future__ import annotations

from enum import Enum, auto


class Takes(Enum):
    """Kind of labels that a trainer takes. ``apsvm.data.labels.decide`` converts labels to it."""

    TWO_CLASSES = auto()
    #: Grades with gains, unless the user names a positive or a lowest relevant label.
    GRADES = auto()
    #: The order of the labels, or of two classes.
    ORDER = auto()
    #: Each label in turn.
    CLASSES = auto()
    #: Nothing: the rows are their own target.
    NOTHING = auto()
