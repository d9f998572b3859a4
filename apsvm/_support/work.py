"""Work in pieces that have names, of which a finished one is not done again: a class, a fold, a candidate, a C.

A training is a deterministic program: run again, it does the same things in the same order. A **piece** that was
finished is not done again, its result is what is stored; a piece that was under way is done again from its beginning,
or, where its steps are long (epochs), from the state after the last one. Everything between the pieces, which is cheap,
is simply done again.

Pieces that follow each other belong to a **strand**, which numbers them as they begin. What goes on at the same time,
in threads or not, has a strand of its own in each: the classes of ``--one-vs-rest``, the folds of a comparison. Strands
belong to a piece, and are forgotten with it once it is finished. Different strands may be stored as of different
moments.

Where nothing is stored (``UNSTORED``) all of this costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from types import UnionType
from typing import Any, Protocol, TypeAlias, Union, get_args, get_origin, get_type_hints

#: What is stored: arrays, numbers, strings, None, and lists and mappings of such; dataclasses and named tuples come
#: back as mappings (``of_saved``).
Saved: TypeAlias = Mapping[str, Any]


class WorkError(Exception):
    """What is stored is of other work than is being done; the message says which."""


class Store(Protocol):
    """Where strands are stored."""

    def stored(self, strand: str) -> Saved | None:
        """What was stored of a strand; None if nothing was."""

    def is_due(self, strand: str) -> bool:
        """Whether a strand should be stored now."""

    def is_stopping(self) -> bool:
        """Whether the work is being broken off: what begins from now on is not worth storing."""

    def store(self, strand: str, snapshot: Saved) -> None:
        """Takes a strand as it is now."""

    def drop(self, prefix: str) -> None:
        """Forgets the strands whose names begin so."""


class Strand:
    """Pieces of work, one after the other. All that happens to a strand happens in one thread.

    Parameters
    ----------
    store : where it is stored; None: nowhere
    name : of the strand in the store

    Attributes
    ----------
    is_stored : whether it is stored anywhere
    is_broken_off : whether it was stored for good before its work was finished
    """

    def __init__(self, store: Store | None = None, name: str = "") -> None:
        self._store = store
        self.is_stored = store is not None
        self._name = name
        saved: Saved = (None if store is None else store.stored(name)) or {}
        self._finished: dict[str, Saved] = dict(saved.get("finished", {}))
        self._under_way: Saved | None = saved.get("under_way")
        self._pieces = 0
        self.is_broken_off = self._has_left = False

    def piece(self, kind: str) -> Piece:
        """The next piece; ``kind`` is what it is, always the same at this place.

        Raises
        ------
        WorkError : another piece is stored in its place
        """
        if self._store is not None and self._store.is_stopping():
            self.break_off()
        if self._store is None or self._has_left:
            return Piece(kind)
        number, self._pieces = str(self._pieces), self._pieces + 1
        state: Saved | None = None
        if self._under_way is not None and self._under_way["number"] == number:
            state = self._under_way
        result = self._finished.get(number)
        for stored in (state, result):
            if stored is not None and stored["kind"] != kind:
                if self.is_broken_off:  # until then, what was finished is still what comes next
                    self._has_left = True
                    return Piece(kind)
                raise WorkError(f"piece {number} of {self._name or 'the work'} is {stored['kind']!r}, not {kind!r}")
        return Piece(kind, self, number, result and result["result"], state and state["state"])

    def break_off(self) -> None:
        """Stores the strand as it is, for good: what is still done need not be what would have been done."""
        if self._store is not None and not self.is_broken_off:
            self._keep()
            self.is_broken_off = True

    # What a piece does with its strand.

    def _is_due(self) -> bool:
        assert self._store is not None
        return not self.is_broken_off and (self._store.is_due(self._name) or self._store.is_stopping())

    def _reached(self, piece: Piece, state: Any) -> None:
        self._under_way = {"number": piece.number, "kind": piece.kind, "state": state}

    def _finish(self, piece: Piece, result: Any) -> None:
        self._finished[piece.number] = {"kind": piece.kind, "result": result}
        self._under_way = None

    def _keep(self) -> None:
        assert self._store is not None
        self._store.store(self._name, {"finished": dict(self._finished), "under_way": self._under_way})

    @contextmanager
    def _within(self, number: str, name: str) -> Iterator[Strand]:
        assert self._store is not None
        inner = Strand(self._store, f"{self._name}{number}/{name}/")
        yield inner
        if not inner.is_broken_off:
            inner._keep()

    def _forget(self, number: str) -> None:
        assert self._store is not None
        self._store.drop(f"{self._name}{number}/")


class Piece:
    """A piece of work.

    Attributes
    ----------
    kind, number : what it is, and which of its strand
    result : what ``done`` was told when it was finished, if it was: then there is nothing to do
    state : the last that it had ``reached`` when it was stored, if it was under way
    """

    def __init__(
        self,
        kind: str,
        strand: Strand | None = None,
        number: str = "",
        result: Any = None,
        state: Any = None,
    ) -> None:
        self.kind, self.number = kind, number
        self.result, self.state = result, state
        self._strand = strand
        self._has_strands = False

    def reached(self, state: Callable[[], Any]) -> None:
        """Between two steps of the piece: ``state``, of which nothing may change any more, is what it takes to go on
        from here."""
        strand = self._strand
        if strand is None:
            return
        strand._reached(self, state())
        if strand._is_due():
            strand._keep()

    def broken_off(self) -> None:
        """It has to stop before it is finished. From now on nothing of the strand is stored."""
        if self._strand is not None:
            self._strand.break_off()

    def done(self, result: Any) -> None:
        """It is finished. Arrays in ``result`` must not change any more."""
        strand = self._strand
        if strand is None or strand.is_broken_off:
            return
        strand._finish(self, result)
        if self._has_strands or strand._is_due():
            strand._keep()
        if self._has_strands:
            strand._forget(self.number)

    @contextmanager
    def strand(self, name: str) -> Iterator[Strand]:
        """A strand within the piece, of a name of its own, to be used by one thread; the piece is ``done`` after it."""
        if self._strand is None:
            yield UNSTORED
            return
        self._has_strands = True
        with self._strand._within(self.number, name) as inner:
            yield inner


#: What stands for a strand where nothing is stored: it does not change.
UNSTORED = Strand()


def of_saved(kind: Any, saved: Any) -> Any:
    """The value of this type, or annotation, where dataclasses and named tuples came back as mappings of their fields;
    one that comes from no file is what it was."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):  # of something and None
        return None if saved is None else of_saved(parts[0], saved)
    if origin is dict:
        return {name: of_saved(parts[1], entry) for name, entry in saved.items()}
    if origin in (list, tuple):
        return origin(of_saved(parts[0], entry) for entry in saved)
    if isinstance(saved, Mapping) and isinstance(kind, type):
        types = get_type_hints(kind)
        return kind(**{name: of_saved(types[name], entry) for name, entry in saved.items()})
    return kind(saved) if isinstance(kind, type) and issubclass(kind, Enum) else saved
