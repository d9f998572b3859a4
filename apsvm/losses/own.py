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

TWO_ARRAYS = "weights(n_pos) and discount(n)"


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


def has_two_arrays(candidate: object) -> TypeGuard[TwoArrays]:
    return callable(getattr(candidate, "weights", None)) and callable(getattr(candidate, "discount", None))


def own_loss(candidate: object, name: str | None = None) -> Loss:
    """Makes a checked loss from an object or class with the two arrays.

    Raises
    ------
    LossError : not a loss and without the two arrays; or an object that breaks the contract
    """
    if name is None and isinstance(candidate, Loss):
        return candidate
    called = name or getattr(candidate, "__name__", None) or type(candidate).__name__
    if isinstance(candidate, type):
        try:
            candidate = candidate()
        except Exception as error:
            raise LossError(f"loss {called!r}: {called}() failed: {error}") from error
    loss: Loss
    if isinstance(candidate, Loss):
        loss = candidate
    elif has_two_arrays(candidate):
        loss = OwnLoss(candidate, name or str(getattr(candidate, "name", called)))
    else:
        raise LossError(f"loss {called!r}: expected an object with {TWO_ARRAYS}, found {type(candidate).__name__}")
    if name is not None or not hasattr(loss, "name"):
        loss.name = called  # a model file stores this name
    if isinstance(loss, RankingLoss):
        loss.check()
    return loss


def imported_loss(place: str) -> Loss:
    """The loss at ``package.module:Name``, an installed module or a file of the current folder; raises LossError."""
    module_name, _, attribute = place.partition(":")
    if not (module_name and attribute):
        raise LossError(f"loss {place!r}: expected package.module:Name, the name of an object with {TWO_ARRAYS}")
    # The current folder comes last, so that its files cannot hide installed modules.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        module = import_module(module_name)
    except Exception as error:  # the user's own code runs here, and may raise anycandidate
        raise LossError(f"loss {place!r}: cannot import {module_name!r}: {error}") from error
    if not hasattr(module, attribute):
        fitting = [name for name, part in vars(module).items() if has_two_arrays(part) and name != "RankingLoss"]
        near = difflib.get_close_matches(attribute, fitting, n=1) or fitting[:1]
        hint = f"; did you mean {module_name}:{near[0]}?" if near else ""
        raise LossError(f"loss {place!r}: {module.__file__} has no {attribute!r}{hint}")
    return own_loss(getattr(module, attribute), place)
