"""Several tables as one: the cells of each behind those of the one before, columns by name, words numbered anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import DataError
from apsvm.data.tables.cells import MISSING, Cells, Places
from apsvm.data.tables.parts import listed
from apsvm.data.tables.scratch import Scratch

#: The number of a word that its own table did not tell from others: beyond all that are told apart.
_UNTOLD = 1 << 50


@dataclass(frozen=True, slots=True)
class PlacesInParts(Places):
    """Where the rows of several files stand.

    Attributes
    ----------
    parts : of each file, in the order of their rows
    begins : the first row of each
    """

    parts: tuple[Places, ...] = ()
    begins: tuple[int, ...] = ()

    def number(self, row: int) -> int:
        """The line of a row in its file, or its number there from 1."""
        part, row = self._of(row)
        return part.number(row)

    def shown(self, row: int, column: str) -> str:
        """The beginning of a message on a cell, with the name of its file."""
        part, row = self._of(row)
        return part.shown(row, column)

    def _of(self, row: int) -> tuple[Places, int]:
        at = int(np.searchsorted(self.begins, row, side="right")) - 1
        return self.parts[at], row - self.begins[at]


def one_behind_another(tables: Sequence[Cells], scratch: Scratch) -> Cells:
    """The rows of all tables, which are used up; the columns are in the order of the first.

    Raises
    ------
    DataError : a table has other columns than the first
    """
    first = tables[0]
    words: list[dict[str, int]] = [{} for _ in first.names]
    for table in tables:
        _require_names(table, first)

    def renumbered() -> Iterator[NDArray[np.float64]]:
        for table in tables:
            order = [table.names.index(name) for name in first.names]
            numbers = [_numbers_of(table.words[at], known) for at, known in zip(order, words, strict=True)]
            for block in table.blocks():
                values = np.ascontiguousarray(block[:, order])
                bits = values.view(np.int64)
                for j, new in enumerate(numbers):
                    is_word = bits[:, j] > MISSING
                    if is_word.any():
                        old = np.minimum(bits[is_word, j] - (MISSING + 1), new.size - 1)
                        bits[is_word, j] = MISSING + 1 + new[old]
                yield values

    if scratch.folder is None:
        values = np.concatenate(list(renumbered()))
    else:
        values = scratch.gathered(renumbered(), len(first.names))
    return Cells(values, first.names, [list(known) for known in words], _places(tables))


def _numbers_of(words: Sequence[str], known: dict[str, int]) -> NDArray[np.int64]:
    """(len(words) + 1,) the numbers among all words, to which new ones are added; the last is that of words untold."""
    return np.array([*(known.setdefault(word, len(known)) for word in words), _UNTOLD], dtype=np.int64)


def _require_names(table: Cells, first: Cells) -> None:
    lacking = [name for name in first.names if name not in table.names]
    more = [name for name in table.names if name not in first.names]
    if lacking or more:
        what = f"no column {listed(lacking)}" if lacking else f"the column {listed(more)} besides"
        raise DataError(f"{table.places.source}: expected the columns of {first.places.source}, found {what}")


def _places(tables: Sequence[Cells]) -> PlacesInParts:
    begins = np.cumsum([0, *(len(table) for table in tables[:-1])])
    parts = tuple(table.places for table in tables)
    source = " and ".join(part.source for part in parts)
    return PlacesInParts(source=source, unit="row", parts=parts, begins=tuple(begins.tolist()))
