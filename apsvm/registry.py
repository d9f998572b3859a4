"""Names to classes, resolved when first asked for, so that listing the names imports nothing heavy.

Each folder of parts (losses, oracles, QP backends, metrics) holds one registry: a newcomer adds one file and one line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


class UnknownNameError(ValueError):
    """A name that no part of this kind carries; the message lists those that exist and the nearest."""


class Registry(Mapping[str, type[T]], Generic[T]):
    """A mapping from a part's name to its class; values are given as ``"module:Class"`` and imported on first use.

    Parameters
    ----------
    kind : what the parts are, for messages ("loss", "oracle", …)
    places : name → ``"package.module:Class"``
    """

    def __init__(self, kind: str, places: Mapping[str, str]) -> None:
        self.kind = kind
        self._places = dict(places)

    def __getitem__(self, name: str) -> type[T]:
        try:
            module, _, attribute = self._places[name].partition(":")
        except KeyError:
            near = difflib.get_close_matches(name, self._places, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UnknownNameError(f"unknown {self.kind} {name!r}: choose from {', '.join(self)}{hint}") from None
        part: type[T] = getattr(import_module(module), attribute)
        return part

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
