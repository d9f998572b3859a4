"""Differentiable stand-ins for sorting: one file an architecture, one line here."""

from __future__ import annotations

from apsvm._support.registry import Registry
from apsvm.torch.sorters.base import Sorter, SorterError

__all__ = ["SORTERS", "Sorter", "SorterError", "make_sorter"]

SORTERS: Registry[Sorter] = Registry(
    "sorter",
    {
        "lstm": "apsvm.torch.sorters.lstm:LSTMSorter",
        "lstm-large": "apsvm.torch.sorters.lstm:LargeLSTMSorter",
        "cnn": "apsvm.torch.sorters.cnn:CNNSorter",
        "cnn(depth)": "apsvm.torch.sorters.cnn:CNNSorter",
        "neighbours": "apsvm.torch.sorters.neighbours:NeighboursSorter",
        "handcrafted": "apsvm.torch.sorters.handcrafted:HandcraftedSorter",
        "handcrafted(lam)": "apsvm.torch.sorters.handcrafted:HandcraftedSorter",
        "laplace": "apsvm.torch.sorters.laplace:LaplaceSorter",
        "laplace(lam)": "apsvm.torch.sorters.laplace:LaplaceSorter",
    },
)
"""The form of a name → its class."""


def make_sorter(name: str, length: int | None = None) -> Sorter:
    """The sorter called ``name`` (``"lstm"``, ``"cnn(8)"``, ``"laplace(50)"``), untrained.

    The losses refuse sorters that need training, except the LSTMs, whose initial parameters already rank.
    ``load_sorter`` loads trained ones.

    Parameters
    ----------
    length : int, optional
        Length L of its lists; required for sorters of one length, ignored by others.

    Raises
    ------
    UnknownNameError
        (a ValueError) unknown sorter; lists the known ones, and the nearest.
    SorterError
        (a ValueError) a bad parameter or length.
    """
    if length is not None and (isinstance(length, bool) or not isinstance(length, int) or length < 1):
        raise SorterError(f"expected a length of 1 or more, found {length!r}")
    form, text = SORTERS.spelled(name)
    kind = SORTERS[form]
    if text is None:
        return kind(length)
    assert kind.parameter is not None
    try:
        value = kind.parameter(text)
    except ValueError:
        expected = "a whole number" if kind.parameter is int else "a number"
        raise SorterError(f"bad parameter in sorter {name!r}: {form} takes {expected}, found {text!r}") from None
    return kind(length, value)  # type: ignore[call-arg]
