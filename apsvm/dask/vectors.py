"""Score vectors that lie on the workers: handles here, and what is to be done with them, which goes along with the next
round. Additions and scalings cost no round of their own, and neither does a scalar product that was foreseen: whoever
computes slopes is told which vector the last product was with, as a line search asks for the same one again."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from apsvm.dask.crew import Crew
from apsvm.dask.messages import Arguments, Reply


class Handle:
    """A score vector; the workers forget it when nobody has the handle any more."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class HandleVectors:
    """``ScoreVectors`` of a crew's shards.

    ``foreseen`` : the handle that products are being taken with, or None
    """

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self._next = 0
        self._programme: list[Arguments] = []
        self._dropped: list[int] = []
        self._products: dict[tuple[int, int], float] = {}
        self._partner: weakref.ref[Handle] | None = None

    def empty(self) -> Handle:
        handle = Handle(self._next)
        weakref.finalize(handle, self._dropped.append, handle.number)
        self._next += 1
        return handle

    def add(self, x: Handle, t: float, y: Handle, out: Handle) -> None:
        self.later(out, "add", x.number, t, y.number, out.number)

    def move(self, x: Handle, t: float, y: Handle) -> None:
        self.later(x, "add", x.number, t, y.number, x.number)

    def subtract(self, x: Handle, y: Handle, out: Handle) -> None:
        self.later(out, "subtract", x.number, y.number, out.number)

    def scale(self, t: float, x: Handle, out: Handle) -> None:
        self.later(out, "scale", t, x.number, out.number)

    def absolute(self, x: Handle, out: Handle) -> None:
        self.later(out, "absolute", x.number, out.number)

    def dot(self, x: Handle, y: Handle) -> float:
        known = self._products.get((x.number, y.number))
        if known is None:
            known = sum(self.ask("dot", x.number, y.number))
            self._products[x.number, y.number] = known
        self._partner = weakref.ref(y)
        return known

    def gather(self, x: Handle) -> NDArray[np.float64]:
        """Through the driver: for what is small enough for that."""
        return np.concatenate(self.ask("vector", x.number))

    def scatter(self, entries: NDArray[np.float64]) -> Handle:
        """Likewise."""
        handle = self.empty()
        ends = np.cumsum(self.ask("length"))
        self.ask("take_vector", handle.number, each=[(part,) for part in np.split(entries, ends[:-1])])
        return handle

    # For score functions.

    @property
    def foreseen(self) -> Handle | None:
        return None if self._partner is None else self._partner()

    def keep_product(self, x: Handle, y: Handle, product: float) -> None:
        """x·y is known."""
        self._products[x.number, y.number] = product

    def later(self, out: Handle, operation: str, *arguments: object) -> None:
        """An operation that overwrites ``out``, to be done before the next round's question."""
        self.overwritten(out)
        self._programme.append((operation, *arguments))

    def overwritten(self, handle: Handle) -> None:
        """What was known of its products is no longer."""
        stale = [pair for pair in self._products if handle.number in pair]
        for pair in stale:
            del self._products[pair]

    def ask(self, method: str, *common: object, each: Sequence[Arguments] | None = None) -> list[Reply]:
        """``Crew.ask``, once the operations that are due are done."""
        programme, self._programme = self._programme, []
        dropped, self._dropped[:] = list(self._dropped), []
        if dropped:
            programme.append(("forget", dropped))
        return self.crew.ask(method, *common, each=each, programme=programme)

    def forget_all(self) -> None:
        """Operations due and products known are of vectors that are lost."""
        self._programme.clear()
        self._products.clear()
        self._partner = None
