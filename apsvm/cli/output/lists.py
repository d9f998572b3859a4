"""Lines of ``apsvm predict``: scores, labels and probabilities; the best rows (``--top``, ``--html``); a TREC run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
    from apsvm.report.first_rows import FirstRows
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
        """A line per row, in their order: scores, labels or probabilities, a bag's deciding row, and reasons."""
        model, options, components = self.model, self.options, None
        if model.has_classes and options.header:
            classes = [printable(model.header.shown_label(label)) for label in model.classes.tolist()]
            both = options.probability or not options.classify
            yield "\t".join([*(["label"] if options.classify else []), *(classes if both else [])])
        reasons = self.reasons()
        if reasons is not None and model.components > 1:
            components = model.leading(self.rows.X).tolist()
        for at, line in enumerate(self.answers()):
            cells = [line]
            if options.which and self.rows.deciding is not None:
                cells.append(str(self.rows.deciding[at] + 1))
            if components is not None:
                cells.append(f"component={components[at] + 1}")
            yield "\t".join(cells if reasons is None else [*cells, *map(printable, reasons[at].in_words())])

    def answers(self) -> list[str]:
        """The score, label or probabilities of each row, as text. Ends the command if the model has none."""
        options, columns = self.options, self.scores[None] if self.scores.ndim == 1 else self.scores.T
        cells = [_labels(self.model, columns, self.name)] if options.classify else []
        if options.probability:
            for header, column in zip(self.model.headers, columns, strict=True):
                if header.calibration is None:
                    raise Failure(BAD_DATA, f"{self.name}: it has no probabilities: train --calibrate auto makes them")
                cells.append([f"{one:.6g}" for one in header.calibration.probability(column).tolist()])
        elif not options.classify:
            cells += [list(map(repr, column)) for column in columns.tolist()]
        return ["\t".join(row) for row in zip(*cells, strict=True)]

    def reasons(self, which: NDArray[np.int64] | None = None) -> list[Reasons] | None:
        """Reasons for the scores of the rows ``which``, None: all; None if none are requested."""
        from apsvm.report.reasons import reasons_of

        if self.options.explain is None:
            return None
        rows = self.rows if which is None else self.rows.select(which)
        with bad_data(f"{self.name}: features have no contributions"):
            return list(reasons_of(self.model, rows, self.options.explain))


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


def best_of_each(scored: RankedRows) -> Iterator[str]:
    """Lines of the best rows, best first: name, score or answer, columns of --show, the deciding row of a bag with
    ``--which``, and reasons. Lines of a query begin with its qid, those of a class with its label."""
    model = scored.model
    if not model.has_classes:
        yield from _best(scored)
        return
    for label, ranker, scores in zip(model.classes.tolist(), model.rankers(), scored.scores.T, strict=True):
        for line in _best(replace(scored, model=ranker, scores=scores)):
            yield f"{printable(model.header.shown_label(label))}\t{line}"


def _best(scored: RankedRows) -> Iterator[str]:
    options = scored.options
    has_answers = options.classify or options.probability
    first = _first(scored, scored.answers() if has_answers else [f"{score:.6g}" for score in scored.scores.tolist()])
    if first.queries is not None:
        remark(f"the best {options.top} of each query, after its qid", scored.rows.source)
    for at, name in enumerate(first.names):
        query = [] if first.queries is None else [first.queries[at]]
        answer = [] if first.answers is None else [first.answers[at]]
        cells = [str(column[at]) for column in first.columns.values()]
        why = [] if first.reasons is None else first.reasons[at].in_words()
        yield "\t".join([*query, name, *answer, *cells, *map(printable, why)])


def _first(scored: RankedRows, answers: Sequence[str] | None, relevant: NDArray[np.bool_] | None = None) -> FirstRows:
    """The best rows; ``answers`` (n,) replace the scores, ``relevant`` is (n,)."""
    from apsvm.report.first_rows import FirstRows, best_first

    rows, scores, options = scored.rows, scored.scores, scored.options
    order, rank = best_first(rows, scores)
    best, places = order[rank <= options.top], rank[rank <= options.top]

    def of_best(cells: Sequence[str] | None) -> list[str] | None:
        return None if cells is None else [cells[row] for row in best.tolist()]

    deciding = (best if rows.deciding is None else rows.deciding[best]).tolist()
    columns: dict[str, list[str]] = {name: [cells[row] for row in deciding] for name, cells in scored.columns.items()}
    if options.which and rows.deciding is not None:
        columns["deciding row"] = [str(row + 1) for row in deciding]
    queries = names_of_queries(rows)
    return FirstRows(
        places=places,
        names=of_best(names_of_rows(rows) if queries is None else _documents(rows, scored.path)[0]) or [],
        scores=scores[best],
        queries=of_best(queries),
        answers=of_best(answers),
        relevant=None if relevant is None else relevant[best],
        n_relevant=0 if relevant is None else int(relevant.sum()),
        reasons=scored.reasons(best),
        n_rows=scores.size,
        columns=columns,
    )


def list_page(scored: RankedRows) -> str:
    """The best rows as a page (``report.first_rows``)."""
    from apsvm.data.dataset import DataError
    from apsvm.data.labels import recall

    model, rows, options = scored.model, scored.rows, scored.options
    try:
        relevant = recall(rows, model.header.labels).relevant
    except DataError:  # all rows have one label: labels are unknown
        relevant = None
    first = _first(scored, scored.answers() if options.classify or options.probability else None, relevant)
    source, name = os.path.basename(rows.source), os.path.basename(scored.name)
    about = [("data", source), ("rows", f"{first.n_rows:,}"), ("model", name), ("loss", model.header.loss)]
    of_each = "" if first.queries is None else " of each query"
    return first.page(f"The first {min(options.top, first.n_rows):,} rows{of_each} of {source}", about)


def _documents(rows: Dataset, path: str) -> tuple[list[str], str]:
    """Names of the documents, and a remark on them unless a column names them: the docids in the comments of svmlight
    text, if they are unique in each query; else ``names_of_rows``."""
    from apsvm.data.reading import is_text
    from apsvm.data.svmlight import docids

    assert rows.groups is not None
    names = names_of_rows(rows)
    if rows.table is not None and (rows.table.keys is not None or (rows.table.bags and rows.stands_for is not None)):
        return names, ""
    ids = docids(path) if rows.table is None and is_text(path) else None
    if ids is not None and rows.deciding is not None:
        ids = [ids[row] for row in rows.deciding.tolist()]
    if ids is not None and len(ids) == len(names) == len(set(zip(rows.groups.tolist(), ids, strict=False))):
        return ids, "the docid in their comments"
    called = "the number of their row, from 1" if rows.stands_for is None else "the number of their bag, as bag:INT"
    return names, f"{called} (--id-column, or comments # docid = … on all rows, name them otherwise)"


def run_lines(scored: RankedRows) -> Iterator[str]:
    """A TREC run: qid Q0 docno rank score tag, the best of each query first, queries as they first appear."""
    from apsvm.report.first_rows import best_first

    rows, scores, tag = scored.rows, scored.scores, scored.options.trec_run
    queries = names_of_queries(rows)
    if queries is None:
        raise Failure(BAD_DATA, f"{rows.source}: a TREC run needs queries, and its rows have none (qid:, --qid-column)")
    names, called = _documents(rows, scored.path)
    if called:
        remark(f"documents are named by {called}", rows.source)
    for what, words in (("document", names), ("query", queries)):
        bad = next((name for name in words if not name or name.split() != [name]), None)
        if bad is not None:
            raise Failure(BAD_DATA, f"{rows.source}: in a TREC run a {what} has a name without blanks, found {bad!r}")
    for row, place in zip(*(values.tolist() for values in best_first(rows, scores)), strict=True):
        yield f"{queries[row]} Q0 {names[row]} {place} {float(scores[row])!r} {tag}"


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
