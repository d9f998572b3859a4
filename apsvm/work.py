"""Work that can be taken up again where it was broken off, to the last bit.

A training is a deterministic program: run again, it does the same things in the same order. So nothing is told how to
go on but the pieces of work that take long: a run of a solver, a descent, an epoch, a fold. A **piece** that was
finished is not done again, its result is what is stored; the piece that was under way begins at the state it had last
reached; everything between the pieces, which is cheap, is simply done again.

Pieces that follow each other belong to a **strand**, which numbers them as they begin. What goes on at the same time,
in threads or not, has a strand of its own in each: the classes of ``--one-vs-rest``, the folds of a comparison. Strands
belong to a piece, and are forgotten with it once it is finished.

What outlives pieces and changes with them, such as a solver with its planes, is **held** by the strand: it is stored
with the number of operations that have made it what it is, and those are not repeated.

A strand is stored as of one moment between two steps of its own thread: what it has finished, the state of what is
under way, what it holds. Different strands may be stored as of different moments.

Where nothing is stored (``UNSTORED``) all of this costs nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

#: What is stored: arrays, numbers, strings, None, and lists and mappings of such.
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


class Held(Protocol):
    """What a strand holds."""

    def held(self) -> tuple[int, Saved]:
        """How many operations have made it what it is, and its state."""


class Strand:
    """Pieces of work, one after the other. All that happens to a strand happens in one thread.

    Parameters
    ----------
    store : where it is stored; None: nowhere
    name : of the strand in the store

    Attributes
    ----------
    is_stored : whether it is stored anywhere
    """

    def __init__(self, store: Store | None = None, name: str = "") -> None:
        self._store = store
        self.is_stored = store is not None
        self._name = name
        saved: Saved = (None if store is None else store.stored(name)) or {}
        self._finished: dict[str, Saved] = dict(saved.get("finished", {}))
        self._under_way: Saved | None = saved.get("under_way")
        self._held_before: Saved = saved.get("held", {})
        self._held: list[weakref.ref[Held]] = []
        self._pieces = 0
        self._is_broken_off = self._has_left = False

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
                if self._is_broken_off:  # until then, what was finished is still what comes next
                    self._has_left = True
                    return Piece(kind)
                raise WorkError(f"piece {number} of {self._name or 'the work'} is {stored['kind']!r}, not {kind!r}")
        return Piece(kind, self, number, result and result["result"], state and state["state"])

    def hold(self, thing: Held) -> tuple[int, Saved] | None:
        """Holds ``thing`` as long as it lives: the operations that made it what it was when it was stored, and its
        state; None if it was not."""
        if self._store is None:
            return None
        before = self._held_before.get(str(len(self._held)))
        self._held.append(weakref.ref(thing))
        return None if before is None else (before["operations"], before["state"])

    def break_off(self) -> None:
        """Stores the strand as it is, for good: what is still done need not be what would have been done."""
        if self._store is not None and not self._is_broken_off:
            self._keep()
            self._is_broken_off = True

    # What a piece does with its strand.

    def _is_due(self) -> bool:
        assert self._store is not None
        return not self._is_broken_off and (self._store.is_due(self._name) or self._store.is_stopping())

    def _reached(self, piece: Piece, state: Saved) -> None:
        self._under_way = {"number": piece.number, "kind": piece.kind, "state": state}

    def _finish(self, piece: Piece, result: Saved) -> None:
        self._finished[piece.number] = {"kind": piece.kind, "result": result}
        self._under_way = None

    def _keep(self, *, ended: bool = False) -> None:
        """Stores the strand as it is; one that has ``ended`` holds nothing any more. What was held when it was stored,
        and has not been made again so far, is kept: the work may be broken off before it has come to where it was."""
        assert self._store is not None
        held = {
            number: before
            for number, before in self._held_before.items()
            if not ended and int(number) >= len(self._held)
        }
        for number, reference in enumerate(self._held):
            thing = reference()
            if thing is not None and not ended:
                operations, state = thing.held()
                held[str(number)] = {"operations": operations, "state": state}
        self._store.store(self._name, {"finished": dict(self._finished), "under_way": self._under_way, "held": held})

    @contextmanager
    def _within(self, number: str, name: str) -> Iterator[Strand]:
        assert self._store is not None
        inner = Strand(self._store, f"{self._name}{number}/{name}/")
        yield inner
        if not inner._is_broken_off:
            inner._keep(ended=True)

    def _forget(self, number: str) -> None:
        assert self._store is not None
        self._store.drop(f"{self._name}{number}/")


class Piece:
    """A piece of work.

    Attributes
    ----------
    kind, number : what it is, and which of its strand
    result : what ``done`` was told when it was finished, if it was: then there is nothing to do
    state : the last state that it had ``reached``, if it was under way
    """

    def __init__(
        self,
        kind: str,
        strand: Strand | None = None,
        number: str = "",
        result: Saved | None = None,
        state: Saved | None = None,
    ) -> None:
        self.kind, self.number = kind, number
        self.result, self.state = result, state
        self._strand = strand
        self._has_strands = False

    def reached(self, state: Callable[[], Saved], *, is_last_chance: bool = False) -> None:
        """Between two steps of the piece: ``state``, which is asked where it is to be stored, is what it takes to go on
        from here. ``is_last_chance``: later it cannot be had any more."""
        strand = self._strand
        if strand is None:
            return
        due = strand._is_due()
        if due or is_last_chance:
            strand._reached(self, state())
        if due:
            strand._keep()

    def broken_off(self, state: Callable[[], Saved] | None = None) -> None:
        """It has to stop before it is finished; ``state``: where, if it can go on from there and not only from the last
        state that was stored. From now on nothing of the strand is stored."""
        strand = self._strand
        if strand is None or strand._is_broken_off:
            return
        if state is not None:
            strand._reached(self, state())
        strand.break_off()

    def done(self, result: Saved) -> None:
        """It is finished. Arrays in ``result`` must not change any more."""
        strand = self._strand
        if strand is None or strand._is_broken_off:
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


#: What stands for a strand, and for each of its pieces, where nothing is stored: neither changes.
UNSTORED = Strand()
UNSTORED_PIECE = Piece("")
