"""Reads tables as a data set: cells, roles of columns, labels, features."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from apsvm._support.files import digest_of_file
from apsvm._support.types import Matrix
from apsvm.data.bags import with_bags
from apsvm.data.dataset import DataError, Dataset, NoRowsError, TableRows
from apsvm.data.read_options import ReadOptions, TableOptions
from apsvm.data.tables.beside import costs_of, keys_of, labels_of, numbered
from apsvm.data.tables.cells import Table, behind_another
from apsvm.data.tables.features import features_of
from apsvm.data.tables.kinds import Kind
from apsvm.data.tables.learning import learn, tells_the_label
from apsvm.data.tables.roles import (
    NoLabelError,
    Parts,
    check_there,
    listed,
    parts_of_model,
    parts_to_train,
    require_names,
    seem_a_row,
)
from apsvm.data.tables.text import IF_A_ROW, Choosing, Source, table_of_text
from apsvm.models.columns import ColumnKind, Columns, ForModel

#: Blocks of text, 32 MB, in which columns of two values are found.
_BLOCKS_SEEN = 16


def read_tables(
    sources: Sequence[tuple[Source, Kind]],
    options: ReadOptions,
    *,
    model: ForModel | None,
    unlabelled: bool,
) -> Dataset:
    """The rows of one table or several, one behind the other; X is dense or CSR. All tables have the same columns, in
    any order. Tables without rows are left out. Features are learned from all rows.

    Parameters
    ----------
    model : the model's features; None: features are learned from these rows
    unlabelled : True if labels may be missing; they are 0 then

    Raises
    ------
    DataError : bad content, with its row and column; a missing column; tables with different columns
    OSError : a source cannot be read
    """
    choices, tables = [], list[Table]()
    for source, kind in sources:
        chosen = ColumnChoice(options.table, model, unlabelled)
        try:
            tables.append(read_cells(source, kind, options.table, chosen))
        except NoRowsError:
            if len(sources) == 1:
                raise
            continue
        choices.append(chosen)
    if not tables:
        names = " and ".join(str(source) for source, _ in sources)
        raise NoRowsError(f"{names}: expected at least one row, found none")
    whole, chosen = tables[0], choices[0]
    for table in tables[1:]:
        require_names(list(table.columns), table.places.source, list(whole.columns), whole.places.source)
    if len(tables) > 1:
        whole = behind_another(tables)
    rows = rows_beside(whole, options.table, chosen, options.bag_label)
    columns, remarks, is_training = chosen.columns, list[str](), chosen.columns is None
    if columns is None:
        columns, remarks = learn(whole, chosen.parts, options.table)
        remarks += tells_the_label({one.name: whole.columns[one.name].is_missing for one in columns.features}, rows)
    X, more, details = features_of(whole, columns, for_training=is_training, dtype=options.dtype)
    return with_features(rows, X, columns, (*remarks, *more), tuple(details))


def rows_beside(table: Table, options: TableOptions, chosen: ColumnChoice, bag_label: str) -> Dataset:
    """The rows of a table without features: labels, queries, bags, costs and names. Raises DataError."""
    parts, columns, cells, places, n = chosen.parts, chosen.columns, table.columns, table.places, len(table)
    remarks, relevance = [*parts.remarks, *table.remarks], np.zeros(n)
    words: tuple[str, ...] = () if columns is None else columns.label_words
    if parts.label is not None:
        of_model = None if columns is None or (columns.label is None and not words) else words
        try:
            relevance, words, remark = labels_of(cells[parts.label], of_model, options.positive_label)
            remarks += [remark] if remark else []
            if columns is None and parts.label in words and seem_a_row(list(cells)):
                remarks.append(
                    f"column {parts.label!r} is called like one of its labels, and other names are numbers: {IF_A_ROW}"
                )
        except DataError:
            if not chosen.unlabelled:
                raise
    groups, queries = (None, ()) if parts.qid is None else numbered(cells[parts.qid], "query")
    bag_ids, bag_names = (None, ()) if parts.bag is None else numbered(cells[parts.bag], "bag")
    lines = places.lines(n)
    dataset = Dataset(
        X=np.empty((n, 0)),
        relevance=relevance,
        groups=groups,
        costs=None if parts.cost is None else costs_of(cells[parts.cost]),
        source=places.source,
        fingerprint=table.fingerprint,
        table=TableRows(
            columns=Columns(label=parts.label, label_words=words),
            keys=None if parts.id is None else keys_of(cells[parts.id]),
            lines=lines,
            remarks=tuple(remarks),
            queries=queries,
            bags=bag_names,
        ),
    )
    return with_bags(dataset, bag_ids, bag_label, lines)


def with_features(
    rows: Dataset, X: Matrix, columns: Columns, remarks: Sequence[str], details: tuple[str, ...] = ()
) -> Dataset:
    """The rows of ``rows_beside`` with their features."""
    assert rows.table is not None
    columns = replace(columns, label_words=rows.table.columns.label_words)
    table = replace(rows.table, columns=columns, remarks=(*rows.table.remarks, *remarks), details=details)
    return replace(rows, X=X, table=table)


class ColumnChoice:
    """Chooses the columns to read once their names are known."""

    def __init__(self, options: TableOptions, model: ForModel | None, unlabelled: bool) -> None:
        self._options, self.model, self.unlabelled = options, model, unlabelled
        self.columns: Columns | None = None
        self.parts = Parts()

    def choose(self, source: str, names: Sequence[str], index: Sequence[str]) -> dict[str, bool]:
        """See ``apsvm.data.tables.text.Choosing``."""
        self._decide(names, index, source)
        of_model = () if self.columns is None else self.columns.features
        parts, features = self.parts, set(self.parts.features)
        spelled = {parts.label, parts.qid, parts.bag, parts.id, *self._options.categorical}
        spelled.update(column.name for column in of_model if column.kind is not ColumnKind.NUMBER)
        return {name: name in features and name not in spelled for name in parts.kept(names)}

    def _decide(self, names: Sequence[str], index: Sequence[str], source: str) -> None:
        options, model, unlabelled = self._options, self.model, self.unlabelled
        if model is None:
            self.parts = parts_to_train(names, options, source, unlabelled=unlabelled, index=index)
            return
        if model.columns is not None:
            self.columns = model.columns
        elif model.names is not None:
            self.columns = replace(Columns.of_names(model.names), label_words=model.label_words)
        else:
            # By position, whatever the columns are called.
            self.parts = parts_to_train(names, options, source, unlabelled=True, index=index)
            features = self.parts.features
            if len(features) != model.width:
                raise DataError(
                    f"{source}: the model knows its {model.width} features by position only, and the table has "
                    f"{len(features)} columns of features ({listed(features)}): --label-column, --id-column and --drop "
                    "say which are none"
                )
            self.columns = replace(Columns.of_names(features), label=self.parts.label)
            if self.parts.label is None and not unlabelled:
                self.parts = parts_to_train(names, options, source, unlabelled=False, index=index)
            remark = f"the model knows its features by position: they are taken to be {listed(features)}, in this order"
            self.parts = replace(self.parts, remarks=[*self.parts.remarks, remark])
            return
        self.parts = parts_of_model(names, self.columns, options, source, unlabelled=unlabelled)


def read_cells(source: Source, kind: Kind, options: TableOptions, chosen: ColumnChoice) -> Table:
    """The chosen columns of a table. Raises DataError, OSError."""
    try:
        table = _read_chosen(source, kind, options, chosen.choose)
    except NoLabelError as error:
        candidates = _columns_of_two_values(source, kind, options)
        hint = f"; columns of two values: {listed(candidates)}" if candidates else ""
        raise DataError(f"{error}{hint}") from None
    label = chosen.parts.label
    return table.labelled(label) if options.labelled_only and label is not None else table


def texts_of(path: str, options: TableOptions, names: Sequence[str], option: str) -> dict[str, list[str]]:
    """The cells of the columns ``names`` of a table, as written. Raises DataError for a missing column and for data
    that are no table."""
    from apsvm.data.tables.kinds import recognised

    def named(source: str, columns: Sequence[str], _: Sequence[str]) -> dict[str, bool]:
        for name in names:
            check_there(name, columns, source, option)
        return dict.fromkeys(names, False)

    kind, source = recognised(path)
    if not kind.is_table:
        raise DataError(f"{path}: {option} takes columns of a table")
    table = _read_chosen(source, kind, options, named)
    return {name: keys_of(table.columns[name]).tolist() for name in names}


def _columns_of_two_values(source: Source, kind: Kind, options: TableOptions) -> list[str]:
    """The columns of two values in a file, or in the first blocks of its text; none of a stream, which cannot be read
    again."""

    def every(_: str, names: Sequence[str], index: Sequence[str]) -> dict[str, bool]:
        return {one: False for one in names if one and one not in index}

    if not isinstance(source, str | os.PathLike):
        return []
    try:
        table = _read_chosen(source, kind, options, every, _BLOCKS_SEEN)
    except DataError:
        return []
    return [name for name, cells in table.columns.items() if len(cells.of_words()[0]) == 2]


def _read_chosen(
    source: Source, kind: Kind, options: TableOptions, choose: Choosing, blocks: int | None = None
) -> Table:
    """``read_cells`` with any choice of columns. Of text only the first ``blocks`` are read."""
    if kind is Kind.CSV:
        return table_of_text(source, choose, options, blocks)
    from apsvm.data.tables.arrow import table_of_arrow

    if isinstance(source, str | os.PathLike):
        import pyarrow

        with pyarrow.OSFile(os.fsencode(source)) as stream:  # pyarrow reads its own file without copies
            table = table_of_arrow(stream, kind, os.fspath(source), choose, options)
        return replace(table, fingerprint=digest_of_file(source))
    content = source.read()
    table = table_of_arrow(io.BytesIO(content), kind, source.name, choose, options)
    return replace(table, fingerprint=hashlib.sha256(content).hexdigest())
