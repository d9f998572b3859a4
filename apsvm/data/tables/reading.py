"""Reading a table as rows: its cells, the parts of its columns, what becomes of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from apsvm.data import bags
from apsvm.data.dataset import DataError, Dataset, NoRowsError, TableRows
from apsvm.data.read_options import UNSAID, TableOptions
from apsvm.data.tables.cells import MEMORY, MISSING, Cell, Cells, Places, Scratch
from apsvm.data.tables.features import features_of
from apsvm.data.tables.learning import costs_of, keys_of, labels_of, learn, names_of_numbered, numbered
from apsvm.data.tables.parts import (
    NoLabelError,
    Parts,
    listed,
    parts_of_model,
    parts_to_train,
    require_names,
    seem_a_row,
)
from apsvm.data.tables.recognising import Kind
from apsvm.data.tables.separated import CELLS, IF_A_ROW, SKIPPED, Choice, cells_of_text
from apsvm.data.text import text_blocks
from apsvm.models.columns import Columns

#: The number of a word that its own table did not tell from others: beyond all that are told apart.
_UNTOLD = 1 << 50
#: Blocks of text that are read to name the columns that may be the labels: 32 MB.
_BLOCKS_SEEN = 16


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
        require_names(table.names, table.places.source, first.names, first.places.source)

    def renumbered() -> Iterator[NDArray[np.float64]]:
        for table in tables:
            place = {name: at for at, name in enumerate(table.names)}
            order = [place[name] for name in first.names]
            numbers = [_numbers_of(table.words[at], numbers) for at, numbers in zip(order, words, strict=True)]
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
    remarks = tuple(f"{table.places.source}: {remark}" for table in tables for remark in table.remarks)
    decimal = "," if any(table.decimal == "," for table in tables) else "."
    return Cells(values, first.names, [list(numbers) for numbers in words], _places(tables), remarks, decimal)


def _numbers_of(words: Sequence[str], numbers: dict[str, int]) -> NDArray[np.int64]:
    """(len(words) + 1,) the numbers among all words, to which new ones are added; the last is that of words untold."""
    return np.array([*(numbers.setdefault(word, len(numbers)) for word in words), _UNTOLD], dtype=np.int64)


def _places(tables: Sequence[Cells]) -> PlacesInParts:
    begins = np.cumsum([0, *(len(table) for table in tables[:-1])])
    parts = tuple(table.places for table in tables)
    source = " and ".join(part.source for part in parts)
    return PlacesInParts(source=source, unit="row", parts=parts, begins=tuple(begins.tolist()))


Source = str | os.PathLike[str] | BinaryIO


@dataclass(frozen=True, slots=True)
class ForModel:
    """The features of the model that rows are read for.

    Attributes
    ----------
    columns : what it keeps of the table it was trained on; None: it was trained on something else
    names : the features' names, where they have some
    width : how many there are
    label_words : what labels 0 and 1 are called
    """

    columns: Columns | None
    names: tuple[str, ...] | None
    width: int
    label_words: tuple[str, ...] = ()


#: For a reader of labels alone.
NO_FEATURES = ForModel(Columns(), None, 0)


def read_table(
    source: Source,
    kind: Kind,
    options: TableOptions,
    *,
    model: ForModel | None,
    unlabelled: bool,
    bag_label: str,
    dtype: DTypeLike,
    scratch: Scratch,
) -> Dataset:
    """The rows of a table: X dense or CSR.

    Parameters
    ----------
    model : what the columns are, and what becomes of them; None: it is learned from these rows
    unlabelled : labels are not missed: where there are none in every row they are 0
    bag_label, dtype : see ``read_svmlight``
    scratch : where cells and X are made

    Raises
    ------
    DataError : bad content, with the row and the column; a column that is lacking
    OSError : the source cannot be read
    """
    chosen = _ColumnChoice(options, model, unlabelled)
    cells, name, fingerprint = _read(source, kind, options, chosen, scratch)
    return _rows(cells, name, fingerprint, options, chosen, bag_label, dtype, scratch)


def read_tables(
    sources: Sequence[tuple[Source, Kind]],
    options: TableOptions = UNSAID,
    *,
    model: ForModel | None = None,
    unlabelled: bool = False,
    bag_label: str = "same",
    dtype: DTypeLike = np.float64,
    scratch: Scratch = MEMORY,
) -> Dataset:
    """``read_table`` of several tables of the same columns, in any order, one behind the other; those without rows are
    left out. What becomes of the columns is learned from all rows; the fingerprint is that of the files' fingerprints.

    Raises
    ------
    DataError : as ``read_table``; a table has other columns than the first
    OSError : a source cannot be read
    """
    choices, parts = [], []
    for source, kind in sources:
        chosen = _ColumnChoice(options, model, unlabelled)
        with suppress(NoRowsError):
            parts.append(_read(source, kind, options, chosen, scratch))
            choices.append(chosen)
    if not parts:
        raise NoRowsError(
            f"{' and '.join(str(source) for source, _ in sources)}: expected at least one row, found none"
        )
    cells = one_behind_another([of_part for of_part, _, _ in parts], scratch)
    fingerprint = hashlib.sha256("".join(digest for _, _, digest in parts).encode()).hexdigest()
    name = " and ".join(name for _, name, _ in parts)
    return _rows(cells, name, fingerprint, options, choices[0], bag_label, dtype, scratch)


def _rows(
    cells: Cells,
    name: str,
    fingerprint: str,
    options: TableOptions,
    chosen: _ColumnChoice,
    bag_label: str,
    dtype: DTypeLike,
    scratch: Scratch,
) -> Dataset:
    """The rows of cells whose columns are ``chosen``."""
    model = chosen.model
    parts, columns, remarks = chosen.parts, chosen.columns, [*chosen.parts.remarks, *cells.remarks]
    relevance, words = np.zeros(len(cells)), () if columns is None else columns.label_words
    if parts.label is not None:
        label_words = None if model is None or columns is None else columns.label_words
        label_words = None if columns is not None and columns.label is None and not columns.label_words else label_words
        try:
            relevance, words, remark = labels_of(cells.column(parts.label), label_words, options.positive_label)
            remarks += [remark] if remark else []
            if columns is None and parts.label in words and seem_a_row(cells.names):
                remarks.append(
                    f"column {parts.label!r} is called like one of its labels, and other names are numbers: {IF_A_ROW}"
                )
        except DataError:
            if not chosen.unlabelled:
                raise
        columns = columns and replace(columns, label_words=words)
    groups, bag_ids, costs, keys = _without_features(cells, parts)
    learned = columns is None
    if columns is None:
        columns, more = learn(cells, parts, options)
        learned_of = {column.name for column in columns.features}
        left_out = (*parts.left_out, *(name for name in parts.features if name not in learned_of))
        columns = replace(columns, label_words=words, left_out=left_out)
        remarks += more
    lines = cells.places.all(len(cells)) if cells.places.unit == "line" else None
    places = cells.places
    X, more = features_of(cells, columns, for_training=learned, dtype=dtype, scratch=scratch)
    dataset = Dataset(
        X=X,
        relevance=relevance,
        groups=groups,
        costs=costs,
        zero_based=False,
        source=name,
        fingerprint=fingerprint,
        unknown_features=0,
        table=TableRows(
            columns=columns,
            keys=keys,
            lines=lines,
            remarks=(*remarks, *more),
            queries=() if parts.qid is None else names_of_numbered(cells.column(parts.qid)),
            bags=() if parts.bag is None else names_of_numbered(cells.column(parts.bag)),
        ),
    )
    where = bags.Places(places.source, lines)
    return bags.with_bags(dataset, bag_ids, where, bag_label)


def _without_features(
    cells: Cells, parts: Parts
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None, NDArray[np.float64] | None, NDArray[np.object_] | None]:
    """The queries, bags, costs and names of the rows."""
    return (
        None if parts.qid is None else numbered(cells.column(parts.qid), "query"),
        None if parts.bag is None else numbered(cells.column(parts.bag), "bag"),
        None if parts.cost is None else costs_of(cells.column(parts.cost)),
        None if parts.id is None else keys_of(cells.column(parts.id)),
    )


class _ColumnChoice:
    """Which columns are kept, once their names are known: how the readers parse them."""

    def __init__(self, options: TableOptions, model: ForModel | None, unlabelled: bool) -> None:
        self._options, self.model, self.unlabelled = options, model, unlabelled
        self.columns: Columns | None = None
        self.parts = Parts()

    def of(self, source: str) -> Choice:
        def choose(names: Sequence[str]) -> Sequence[str]:
            self._decide(names, source)
            return self.parts.letters(names)

        return choose

    def _decide(self, names: Sequence[str], source: str) -> None:
        options, model, unlabelled = self._options, self.model, self.unlabelled
        if model is None:
            self.parts = parts_to_train(names, options, source, unlabelled=unlabelled)
            return
        if model.columns is not None:
            self.columns = model.columns
        elif model.names is not None:
            self.columns = replace(Columns.of_names(model.names), label_words=model.label_words)
        else:
            # By position, whatever the columns are called.
            self.parts = parts_to_train(names, options, source, unlabelled=True)
            features = self.parts.features
            if len(features) != model.width:
                raise DataError(
                    f"{source}: the model knows its {model.width} features by position only, and the table has "
                    f"{len(features)} columns of features ({listed(features)}): --label-column, --id-column and --drop "
                    "say which are none"
                )
            self.columns = replace(Columns.of_names(features), label=self.parts.label)
            if self.parts.label is None and not unlabelled:
                self.parts = parts_to_train(names, options, source, unlabelled=False)
            remark = f"the model knows its features by position: they are taken to be {listed(features)}, in this order"
            self.parts = replace(self.parts, remarks=[*self.parts.remarks, remark])
            return
        self.parts = parts_of_model(names, self.columns, options, source, unlabelled=unlabelled)


def _read(
    source: Source, kind: Kind, options: TableOptions, chosen: _ColumnChoice, scratch: Scratch
) -> tuple[Cells, str, str]:
    """The cells, the name of the file for messages, and the sha256 of its bytes."""
    try:
        return _read_chosen(source, kind, options, chosen.of, scratch)
    except NoLabelError as error:
        candidates = _columns_of_two_values(source, kind, options)
        hint = f"; columns of two values: {listed(candidates)}" if candidates else ""
        raise DataError(f"{error}{hint}") from None


def _columns_of_two_values(source: Source, kind: Kind, options: TableOptions) -> list[str]:
    """The columns that may be labels, by the whole file or the first blocks of its text; none of a stream, which is
    read already."""

    def every(name: str) -> Choice:
        return lambda names: [CELLS if name else SKIPPED for name in names]

    if source == "-" or not isinstance(source, str | os.PathLike):
        return []
    try:
        cells, _, _ = _read_chosen(source, kind, options, every, MEMORY, blocks=_BLOCKS_SEEN)
    except DataError:
        return []
    return [name for at, name in enumerate(cells.names) if _has_two_values(cells.column_at(at))]


def _has_two_values(cell: Cell) -> bool:
    bits = cell.bits[~cell.is_missing]
    others = bits[bits != bits[:1]] if bits.size else bits
    return others.size > 0 and bool((others == others[0]).all())


def _read_chosen(
    source: Source,
    kind: Kind,
    options: TableOptions,
    choice: Callable[[str], Choice],
    scratch: Scratch,
    *,
    blocks: int | None = None,
) -> tuple[Cells, str, str]:
    """As ``_read``, of the columns of a choice that depends on the file's name; of text the whole lines of the first
    ``blocks``."""
    if kind is not Kind.CSV:
        from apsvm.data.tables.arrow import cells_of_arrow

        return cells_of_arrow(source, kind, choice, encoding=options.encoding, scratch=scratch)
    digest = hashlib.sha256()
    with text_blocks(source, digest.update) as (name, text):
        whole = text if blocks is None else _whole_lines(text, blocks)
        cells = cells_of_text(
            whole, name, choice(name), encoding=options.encoding, decimal=options.decimal, scratch=scratch
        )
        if len(cells) == 0:
            raise NoRowsError(f"{name}: expected at least one row, found none")
        return cells, name, digest.hexdigest()


def _whole_lines(blocks: Iterator[bytes], most: int) -> Iterator[bytes]:
    """The first blocks, up to the end of their last line where more follow."""
    text = b"".join(islice(blocks, most))
    yield text if next(blocks, None) is None else text[: text.rfind(b"\n") + 1]
