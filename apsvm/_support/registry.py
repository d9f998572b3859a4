"""Names to classes, imported on first use, so that listing the names imports nothing heavy.

Each folder of parts (losses, oracles, QP backends, metrics) holds one registry: a newcomer adds one file and one line.
A name may carry a parameter, which its form in the registry shows: ``ndcg@10`` is of the form ``ndcg@k``, ``rbp(0.8)``
of the form ``rbp(rho)``, ``piecewise:4`` of the form ``piecewise:k``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class UnknownNameError(ValueError):
    """A name that is not registered; the message lists the registered names, the nearest first."""


class Spelled(NamedTuple):
    """A name taken apart: its form in the registry, and the text of its parameter, None if the form has none."""

    form: str
    parameter: str | None


def spelled(name: str, forms: Iterable[str]) -> Spelled | None:
    """``name``, in any case, taken apart by the first of the ``forms`` (lower case) that fits; None if none fits.

    >>> spelled("nDCG@10", ["ndcg", "ndcg@k"])
    Spelled(form='ndcg@k', parameter='10')
    >>> spelled("AP", ["ap", "rbp(rho)"])
    Spelled(form='ap', parameter=None)
    """
    pieces_of_name = _pieces(name.strip().lower())
    for form in forms:
        pieces = _pieces(form)
        if pieces[:2] == pieces_of_name[:2]:
            return Spelled(form, pieces_of_name[2] if pieces_of_name[1] else None)
    return None


def place_in(form: str) -> tuple[str, str] | None:
    """Text before and after the parameter in a form that ends in ``@k``, ``:k``, ``(rho)`` or ``β``; None if it has no
    parameter. (``AP(voc2007)`` looks as if it had one.)

    >>> place_in("rbp(rho)"), place_in("Fβ"), place_in("ndcg(exp)@k")
    (('rbp(', ')'), ('F', ''), ('ndcg(exp)@', ''))
    """
    if form.endswith(")") and "(" in form:
        return form[: form.rindex("(") + 1], ")"
    for mark in "@:":
        if mark in form:
            return form[: form.rindex(mark) + 1], ""
    return (form[:-1], "") if form[-1:].isalpha() and not form[-1:].isascii() else None


def _pieces(name: str) -> tuple[str, str, str]:
    """Stem, separator (``@``, ``(``, ``:`` or empty) and parameter."""
    if name.endswith(")") and "(" in name:
        return name[:-1].partition("(")
    return name.partition(":" if ":" in name else "@")


class Registry(Mapping[str, type[T]], Generic[T]):
    """A mapping from a part's name to its class; values are written ``"module:Class"`` and imported on first use.

    Parameters
    ----------
    kind : name of such a part in messages ("loss", "oracle", …)
    places : name → ``"package.module:Class"``
    """

    def __init__(self, kind: str, places: Mapping[str, str]) -> None:
        self.kind = kind
        self._places = dict(places)

    def __getitem__(self, name: str) -> type[T]:
        try:
            module, _, attribute = self._places[name].partition(":")
        except KeyError:
            raise self.unknown(name) from None
        part: type[T] = getattr(import_module(module), attribute)
        return part

    def spelled(self, name: str) -> Spelled:
        """``name`` taken apart by its registered form; raises UnknownNameError if no form fits."""
        result = spelled(name, self)
        if result is None:
            raise self.unknown(name)
        return result

    def unknown(self, name: str, forms: Iterable[str] | None = None) -> UnknownNameError:
        """Error for a ``name`` without a registered form. It lists ``forms``; None: all registered ones."""
        offered = [*(self if forms is None else forms)]
        stem = _pieces(name.strip().lower())[0]
        near = [form for form in offered if _pieces(form)[0] == stem]
        near = near or difflib.get_close_matches(name.lower(), offered, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return UnknownNameError(f"unknown {self.kind} {name!r}: choose from {', '.join(offered)}{hint}")

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
