"""A user's own loss: any object with the family's two arrays, or a ``package.module:Name`` that leads to one.

The object needs ``weights(n_pos)`` and ``discount(n)`` (see ``RankingLoss``). It may have ``name``, ``unimodal``,
``metric`` and ``starts_from``; the last is derived from the arrays by default, and None means from w = 0.
"""

from __future__ import annotations

import difflib
import os
import sys
from importlib import import_module
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from apsvm.losses.base import Loss, LossError, RankingLoss

WANTED = "weights(n_pos) and discount(n)"


class TwoArrays(Protocol):
    """A user's own loss."""

    def weights(self, n_pos: int) -> NDArray[np.float64]: ...
    def discount(self, n: int) -> NDArray[np.float64]: ...


class OwnLoss(RankingLoss):
    """The object's two arrays."""

    def __init__(self, arrays: TwoArrays, name: str) -> None:
        self.arrays = arrays
        self.name = name
        self.unimodal = bool(getattr(arrays, "unimodal", False))
        self.metric = getattr(arrays, "metric", None)
        if hasattr(arrays, "starts_from"):
            self.starts_from = arrays.starts_from

    def weights(self, n_pos: int) -> NDArray[np.float64]:
        return self.arrays.weights(n_pos)

    def discount(self, n: int) -> NDArray[np.float64]:
        return self.arrays.discount(n)


def has_two_arrays(thing: object) -> TypeGuard[TwoArrays]:
    return callable(getattr(thing, "weights", None)) and callable(getattr(thing, "discount", None))


def own_loss(thing: object, name: str | None = None) -> Loss:
    """Makes a checked loss of an object or class with the two arrays.

    Raises
    ------
    LossError : not a loss and without the two arrays; or an object that breaks the contract
    """
    if name is None and isinstance(thing, Loss):
        return thing
    called = name or getattr(thing, "__name__", None) or type(thing).__name__
    if isinstance(thing, type):
        try:
            thing = thing()
        except Exception as error:
            raise LossError(f"loss {called!r}: {called}() failed: {error}") from error
    loss: Loss
    if isinstance(thing, Loss):
        loss = thing
    elif has_two_arrays(thing):
        loss = OwnLoss(thing, name or str(getattr(thing, "name", called)))
    else:
        raise LossError(f"loss {called!r}: expected an object with {WANTED}, found {type(thing).__name__}")
    if name is not None or not hasattr(loss, "name"):
        loss.name = called  # which a model file needs to name it
    if isinstance(loss, RankingLoss):
        loss.check()
    return loss


def imported_loss(place: str) -> Loss:
    """The loss at ``package.module:Name``, an installed module or a file of the current folder; raises LossError."""
    module_name, _, attribute = place.partition(":")
    if not (module_name and attribute):
        raise LossError(f"loss {place!r}: expected package.module:Name, the name of an object with {WANTED}")
    # The current folder comes last, so that its files cannot hide installed modules.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        module = import_module(module_name)
    except Exception as error:  # the user's own code runs here, and may raise anything
        raise LossError(f"loss {place!r}: cannot import {module_name!r}: {error}") from error
    if not hasattr(module, attribute):
        fitting = [name for name, thing in vars(module).items() if has_two_arrays(thing) and name != "RankingLoss"]
        near = difflib.get_close_matches(attribute, fitting, n=1) or fitting[:1]
        hint = f"; did you mean {module_name}:{near[0]}?" if near else ""
        raise LossError(f"loss {place!r}: {module.__file__} has no {attribute!r}{hint}")
    return own_loss(getattr(module, attribute), place)
