"""Lines of ``apsvm predict``: scores, labels and probabilities; the best rows (``--top``, ``--html``); a TREC run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from apsvm._support.shown import printable
from apsvm.cli.shared import BAD_DATA, Failure, bad_data, remark
from apsvm.models.decision import line_of
from apsvm.models.header import LabelKind

if TYPE_CHECKING:
    from types import SimpleNamespace

    import numpy as np
    from numpy.typing import NDArray

    from apsvm.data.dataset import Dataset
    from apsvm.data.read_options import ReadOptions
    from apsvm.models.base import Model
    from apsvm.models.header import Header
    from apsvm.report.reasons import Reasons


@dataclass(frozen=True, kw_only=True)
class RankedRows:
    """Rows with the scores of one model.

    Attributes
    ----------
    model, name : the model, and its file
    rows, path : the rows or bags, and the file they were read from
    scores : (n,) float64, or (n, k) of k classes
    options : the command's options
    columns : column of --show → its cells, one per row of the file
    """

    model: Model
    name: str
    rows: Dataset
    path: str
    scores: NDArray[np.float64]
    options: SimpleNamespace
    columns: dict[str, list[str]]

    def lines(self) -> Iterator[str]:
        """A line per row, in their order."""
        import numpy as np

        model, options = self.model, self.options
        if model.has_classes and options.header:
            classes = [printable(model.header.shown_label(label)) for label in model.classes.tolist()]
            both = options.probability or not options.classify
            yield "\t".join([*(["label"] if options.classify else []), *(classes if both else [])])
        yield from map("\t".join, self._cells(np.arange(len(self.scores)), repr))

    def best(self) -> Iterator[str]:
        """A line per row of --top, best first, after its name; after its query, or its class."""
        model = self.model
        if model.has_classes:
            for label, ranker, scores in zip(model.classes.tolist(), model.rankers(), self.scores.T, strict=True):
                for line in replace(self, model=ranker, scores=scores).best():
                    yield f"{printable(model.header.shown_label(label))}\t{line}"
            return
        best, _ = self._first()
        names, queries = self._names(), names_of_queries(self.rows)
        if queries is not None:
            remark(f"the best {self.options.top} of each query, after its qid", self.rows.source)
        for row, cells in zip(best.tolist(), self._cells(best, "{:.6g}".format), strict=True):
            yield "\t".join([*([] if queries is None else [queries[row]]), names[row], *cells])

    def page(self) -> str:
        """The rows of --top as a page (``report.first_rows``)."""
        from apsvm.report.first_rows import FirstRows

        rows, options, (best, places) = self.rows, self.options, self._first()
        relevant = known_relevance(rows, self.model)
        names, queries, n = self._names(), names_of_queries(rows), len(self.scores)
        has_answers = options.classify or options.probability
        first = FirstRows(
            places=places,
            names=[names[row] for row in best.tolist()],
            scores=self.scores[best],
            queries=None if queries is None else [queries[row] for row in best.tolist()],
            answers=list(map("\t".join, self._answers(best))) if has_answers else None,
            relevant=None if relevant is None else relevant[best],
            n_relevant=0 if relevant is None else int(relevant.sum()),
            reasons=self._reasons(best),
            n_rows=n,
            columns=self._columns(best),
        )
        source, name = os.path.basename(rows.source), os.path.basename(self.name)
        about = [("data", source), ("rows", f"{n:,}"), ("model", name), ("loss", self.model.header.loss)]
        of_each = "" if queries is None else " of each query"
        return first.page(f"The first {min(options.top, n):,} rows{of_each} of {source}", about)

    def run(self) -> Iterator[str]:
        """A TREC run: qid Q0 docno rank score tag, the best of each query first, queries as they first appear."""
        from apsvm.report.first_rows import best_first

        source, scores, queries = self.rows.source, self.scores, names_of_queries(self.rows)
        if queries is None:
            raise Failure(BAD_DATA, f"{source}: a TREC run needs queries, and its rows have none (qid:, --qid-column)")
        names = self._names()
        for what, words in (("document", names), ("query", queries)):
            bad = next((name for name in words if not name or name.split() != [name]), None)
            if bad is not None:
                raise Failure(BAD_DATA, f"{source}: in a TREC run a {what} has a name without blanks, found {bad!r}")
        for row, place in zip(*(values.tolist() for values in best_first(self.rows, scores)), strict=True):
            yield f"{queries[row]} Q0 {names[row]} {place} {float(scores[row])!r} {self.options.trec_run}"

    def _first(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(k,) the rows of --top, best first, and their places."""
        from apsvm.report.first_rows import best_first

        order, rank = best_first(self.rows, self.scores)
        return order[rank <= self.options.top], rank[rank <= self.options.top]

    def _cells(self, which: NDArray[np.int64], score: Callable[[float], str]) -> Iterator[list[str]]:
        """Cells of these rows: scores, labels or probabilities, columns of --show, a bag's deciding row, the component,
        and reasons."""
        reasons, shown = self._reasons(which), [*self._columns(which).values()]
        if reasons is not None and self.model.components > 1:
            leading = self.model.leading(self.rows.X[which])
            shown.append([f"component={one + 1}" for one in leading.tolist()])
        for at, answers in enumerate(self._answers(which, score)):
            why = [] if reasons is None else map(printable, reasons[at].in_words())
            yield [*answers, *(cells[at] for cells in shown), *why]

    def _columns(self, which: NDArray[np.int64]) -> dict[str, list[str]]:
        deciding = self.rows.deciding
        in_file = (which if deciding is None else deciding[which]).tolist()
        columns = {name: [cells[row] for row in in_file] for name, cells in self.columns.items()}
        if self.options.which and deciding is not None:
            columns["deciding row"] = [str(row + 1) for row in in_file]
        return columns

    def _answers(self, which: NDArray[np.int64], score: Callable[[float], str] = repr) -> Iterator[tuple[str, ...]]:
        """The scores, label or probabilities of these rows, as text. Ends the command if the model has none."""
        options, scores = self.options, self.scores[which]
        columns = scores[None] if scores.ndim == 1 else scores.T
        cells = [_labels(self.model, columns, self.name)] if options.classify else []
        if options.probability:
            for header, column in zip(self.model.headers, columns, strict=True):
                if header.calibration is None:
                    raise Failure(BAD_DATA, f"{self.name}: it has no probabilities: train --calibrate auto makes them")
                cells.append([f"{one:.6g}" for one in header.calibration.probability(column).tolist()])
        elif not options.classify:
            cells += [list(map(score, column)) for column in columns.tolist()]
        return zip(*cells, strict=True)

    def _reasons(self, which: NDArray[np.int64]) -> list[Reasons] | None:
        """Reasons for the scores of these rows; None if none are requested."""
        from apsvm.report.reasons import reasons_of

        if self.options.explain is None:
            return None
        with bad_data(f"{self.name}: features have no contributions"):
            return list(reasons_of(self.model, self.rows.select(which), self.options.explain))

    def _names(self) -> list[str]:
        """Names of the rows; of rows in queries the docids in the comments of svmlight text, if no column names them
        and they are unique in each query."""
        from apsvm.data.reading import is_text
        from apsvm.data.svmlight import docids

        rows, names = self.rows, names_of_rows(self.rows)
        table = rows.table
        is_named = table is not None and (table.keys is not None or (bool(table.bags) and rows.stands_for is not None))
        if rows.groups is None or is_named:
            return names
        ids = docids(self.path) if rows.table is None and is_text(self.path) else None
        if ids is not None and rows.deciding is not None:
            ids = [ids[row] for row in rows.deciding.tolist()]
        if ids is None or not len(ids) == len(names) == len(set(zip(rows.groups.tolist(), ids, strict=False))):
            return names
        return ids


def _labels(model: Model, columns: NDArray[np.float64], name: str) -> list[str]:
    """The label of each row. With several classes it is the one with the highest score above its threshold; where rows
    have several, all above theirs, with commas."""
    import numpy as np

    lines = thresholds(model.headers)[:, None]
    shown = [printable(model.header.shown_label(label)) for label in model.classes.tolist()]
    if model.has_classes and not model.header.labels.several:
        return [shown[j] for j in np.argmax(columns - lines, axis=0).tolist()]
    if any(header.threshold is None for header in model.headers):
        raise Failure(BAD_DATA, f"{name}: it has no threshold: train --threshold f1 chooses one")
    above = columns > lines
    if not model.has_classes:
        negative, positive = names_of_two(model.header)
        return [positive if is_above else negative for is_above in above[0].tolist()]
    return [",".join(shown[j] for j in np.flatnonzero(row).tolist()) for row in above.T]


def names_of_two(header: Header) -> tuple[str, str]:
    """Names of the negative and the positive class, as in the data file."""
    labels = header.labels
    if labels.names is not None:
        negative, positive = map(printable, labels.names)
        return negative, positive
    if labels.kind not in (LabelKind.BINARY, LabelKind.ONE_LABEL) or labels.positive is None:
        return "0", "1"
    positive = printable(header.shown_label(labels.positive))
    if len(labels.negative) == 1:
        return printable(header.shown_label(labels.negative[0])), positive
    return f"not {positive}", positive


def thresholds(headers: Sequence[Header]) -> NDArray[np.float64]:
    """(k,) thresholds of k classes; 0 for a class without one."""
    import numpy as np

    return np.array([line_of(one.threshold) for one in headers])


def shown_columns(path: str, read: ReadOptions, names: Sequence[str]) -> dict[str, list[str]]:
    """The cells of these columns of a table, as written."""
    from apsvm.data.file_patterns import parts_of
    from apsvm.data.tables.reading import texts_of

    columns: dict[str, list[str]] = {name: [] for name in names}
    for part in parts_of(path):
        for name, cells in texts_of(part, read.table, names, "--show").items():
            columns[name] += map(printable, cells)
    return columns


def known_relevance(rows: Dataset, model: Model) -> NDArray[np.bool_] | None:
    """(n,) bool, by the labels as the model reads them; None if all rows have one label, or none is relevant."""
    from apsvm.data.dataset import DataError
    from apsvm.data.labels import recall

    try:
        relevant = recall(rows, model.header.labels).relevant
    except DataError:
        return None
    return relevant if relevant.any() else None


def names_of_queries(rows: Dataset) -> list[str] | None:
    """(n,) names of the rows' queries in their table, or their qids; None without queries."""
    if rows.groups is None:
        return None
    return [printable(rows.query_name(query)) for query in rows.groups.tolist()]


def names_of_rows(rows: Dataset) -> list[str]:
    """Names of rows or bags from their table; else row numbers from 1, or bag:INT."""
    if rows.table is not None and rows.table.keys is not None:
        return [printable(key) for key in rows.table.keys.tolist()]
    if rows.stands_for is not None:
        prefix = "" if rows.table is not None and rows.table.bags else "bag:"
        return [printable(f"{prefix}{rows.bag_name(bag)}") for bag in rows.stands_for.tolist()]
    return [str(row) for row in range(1, rows.X.shape[0] + 1)]
