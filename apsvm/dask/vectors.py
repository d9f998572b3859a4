"""Score vectors that lie on the workers: handles here, and what is to be done with them, which goes along with the next
round. Additions and scalings cost no round of their own, and neither does a scalar product that was foreseen: with
the slopes goes which vector the last product was with, as a line search needs the same one again."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from apsvm.dask.crew import Crew
from apsvm.dask.messages import Arguments, Reply


class Handle:
    """A score vector; the workers forget it when the handle is released."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class SampledVectors:
    """The entries of a few rows, here on the driver, of each vector that comes about by operations on scores: what bins
    are made of, before the workers are.

    rows : (k, dimension) float64, as w sees them
    """

    def __init__(self, rows: NDArray[np.float64]) -> None:
        self._rows = rows
        self._entries: dict[int, NDArray[np.float64]] = {}

    def of(self, handle: Handle) -> NDArray[np.float64] | None:
        """(k,), about; None where they are not known, or not finite."""
        entries = self._entries.get(handle.number)
        return entries if entries is not None and np.isfinite(entries).all() else None

    def learn(self, handle: Handle, entries: NDArray[np.float64]) -> None:
        """The entries as the shards have them."""
        self._entries[handle.number] = entries

    def follow(self, out: int, operation: str, arguments: Arguments) -> None:
        """``out`` is about to become what the operation makes of the arguments."""
        with np.errstate(over="ignore", invalid="ignore"):
            entries = self._made(operation, arguments)
        self.forget(out)
        if entries is not None:
            self._entries[out] = entries

    def _made(self, operation: str, arguments: Arguments) -> NDArray[np.float64] | None:
        cached = self._entries
        match operation, arguments:
            case "scores", (np.ndarray() as w, _):
                return self._rows @ w
            case "add", (int(x), float(t), int(y), _) if x in cached and y in cached:
                return cached[x] + t * cached[y]
            case "subtract", (int(x), int(y), _) if x in cached and y in cached:
                return cached[x] - cached[y]
            case "scale", (float(t), int(x), _) if x in cached:
                return t * cached[x]
        return None

    def forget(self, number: int) -> None:
        self._entries.pop(number, None)

    def forget_all(self) -> None:
        self._entries.clear()


class HandleVectors:
    """``ScoreVectors`` of a crew's shards.

    ``foreseen`` : the handle that products are being taken with, or None
    ``sampled`` : follows what is done, on request
    """

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self._next = 0
        self._programme: list[Arguments] = []
        self._dropped: list[int] = []
        self._products: dict[tuple[int, int], float] = {}
        self._partner: weakref.ref[Handle] | None = None
        self.sampled: SampledVectors | None = None

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
        cached = self._products.get((x.number, y.number))
        if cached is None:
            cached = sum(self.ask("dot", x.number, y.number))
            self._products[x.number, y.number] = cached
        self._partner = weakref.ref(y)
        return cached

    # For score functions.

    @property
    def foreseen(self) -> Handle | None:
        return None if self._partner is None else self._partner()

    def keep_product(self, x: Handle, y: Handle, product: float) -> None:
        """x·y is known."""
        self._products[x.number, y.number] = product

    def later(self, out: Handle, operation: str, *arguments: object) -> None:
        """An operation that overwrites ``out``, to be done before the next round's question."""
        if self.sampled is not None:
            self.sampled.follow(out.number, operation, arguments)
        self._forget_products(out)
        self._programme.append((operation, *arguments))

    def overwritten(self, handle: Handle) -> None:
        """What was known of it is no longer."""
        if self.sampled is not None:
            self.sampled.forget(handle.number)
        self._forget_products(handle)

    def _forget_products(self, handle: Handle) -> None:
        stale = [pair for pair in self._products if handle.number in pair]
        for pair in stale:
            del self._products[pair]

    def ask(self, method: str, *common: object, each: Sequence[Arguments] | None = None) -> list[Reply]:
        """``Crew.ask``, once the operations that are due are done."""
        programme, self._programme = self._programme, []
        dropped, self._dropped[:] = list(self._dropped), []
        if dropped:
            programme.append(("forget", dropped))
            if self.sampled is not None:
                for number in dropped:
                    self.sampled.forget(number)
        return self.crew.ask(method, *common, each=each, programme=programme)

    def forget_all(self) -> None:
        """Operations due and products known are of vectors that are lost."""
        self._programme.clear()
        self._products.clear()
        self._partner = None
        if self.sampled is not None:
            self.sampled.forget_all()
