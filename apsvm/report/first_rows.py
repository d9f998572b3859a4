"""Rows in the order of their scores, with names, data columns and reasons: as a page, and in a report."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import Dataset
from apsvm.report.page import Markup, breakable, element, facts, page, section, table, tiles
from apsvm.report.reasons import Reasons, reasons_of
from apsvm.report.run import JudgedRanker
from apsvm.report.words import percent

#: Rows that a report lists; with queries, rows per query and number of queries.
MOST_ROWS = 15
MOST_OF_A_QUERY, MOST_QUERIES = 5, 3
#: Features listed for each row.
MOST_REASONS = 3

#: Heading of the contributions.
_REASONS = "what put it there"

_SCRIPT = """
for (const th of document.querySelectorAll("th")) th.addEventListener("click", () => {
  const body = th.closest("table").tBodies[0], up = th.ariaSort !== "ascending", at = th.cellIndex;
  for (const other of th.parentNode.cells) other.removeAttribute("aria-sort");
  th.ariaSort = up ? "ascending" : "descending";
  const text = row => row.cells[at].textContent.trim();
  const compare = (a, b) => {
    const difference = parseFloat(a) - parseFloat(b);
    return Number.isNaN(difference) ? a.localeCompare(b) : difference;
  };
  body.append(...[...body.rows].sort((a, b) => compare(text(a), text(b)) * (up ? 1 : -1)));
});
"""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """Rows that are listed, best first.

    Attributes
    ----------
    places : (k,) int64 ranks, from 1 in each query
    names : (k,) names of the rows
    scores : (k,) float64
    queries : (k,) the query of each; None without queries
    answers : (k,) labels or probabilities by --classify and --probability; None without them
    relevant : (k,) bool; None without labels
    n_relevant : number of relevant rows in the data
    reasons : (k,) contributions of the features; None if unknown
    n_rows : number of rows in the data
    columns : columns next to the names: heading → (k,) cells
    labels : (k,) labels to show; by default "yes" and "no"
    called : heading of the names
    """

    places: NDArray[np.int64]
    names: Sequence[str]
    scores: NDArray[np.float64]
    queries: Sequence[str] | None
    answers: Sequence[str] | None
    relevant: NDArray[np.bool_] | None
    n_relevant: int
    reasons: Sequence[Reasons] | None
    n_rows: int
    columns: Mapping[str, Sequence[object]] = field(default_factory=dict)
    labels: Sequence[str] | None = None
    called: str = "row"

    def page(self, title: str, about: Sequence[tuple[object, object]]) -> str:
        """The whole file; ``about`` are names and values above the list."""
        date = ("made on", datetime.date.today().isoformat())
        content: list[object] = [element("h1", breakable(title)), element("section", facts([*about, date]))]
        if self.relevant is not None and self.queries is None:
            content.append(tiles(self._figures()))
        words = f"Best first; a click on a heading sorts by it. {self.words()}"
        content.append(section("The list", element("p", words), self.table()))
        return page(title, *content, script=_SCRIPT)

    def words(self) -> str:
        """Explanation of the list's bars; empty without reasons."""
        if self.reasons is None:
            return ""
        text = "Bars show what each feature added to the score, to the right what raised it"
        base = self._base()
        if base is None:
            return f"{text}; base, features and rest add up to it."
        return f"{text}. A usual row scores {base:.4g}; features and rest add to that."

    def _base(self) -> float | None:
        """The base score shared by all rows; None if they differ."""
        bases = np.array([reasons.base for reasons in self.reasons or []])
        return float(bases[0]) if bases.size and np.allclose(bases, bases[0], rtol=1e-9, atol=1e-12) else None

    def _figures(self) -> list[tuple[object, object, object]]:
        assert self.relevant is not None
        positives, k = int(self.relevant.sum()), len(self.names)
        rate = self.n_relevant / self.n_rows
        return [
            (f"found in the first {k:,}", f"{positives:,}", f"of {self.n_relevant:,} positive rows"),
            (f"P@{k}", f"{positives / k:.3f}", f"at random: {rate:.3g}"),
            ("recall", f"{positives / self.n_relevant:.3f}", f"in {percent(k / self.n_rows)} of {self.n_rows:,} rows"),
        ]

    def table(self) -> Markup:
        """The list; with the number of positives found so far if it begins at the first row and has no queries."""
        columns = {"place": self.places.tolist(), self.called: self.names, "query": self.queries}
        columns |= dict(self.columns)
        columns |= {"score": [f"{score:.6g}" for score in self.scores.tolist()], "predicted": self.answers}
        if self.relevant is not None:
            labels = self.labels or ["yes" if positive else "no" for positive in self.relevant]
            colours = ("good" if positive else "muted" for positive in self.relevant)
            cells = zip(labels, colours, strict=True)
            columns["label"] = [element("span", label, class_=colour) for label, colour in cells]
            if self.queries is None and self.places[0] == 1:
                columns["found so far"] = np.cumsum(self.relevant).tolist()
        if self.reasons is not None:
            parts = list(map(self._parts, self.reasons))
            largest = max((abs(contribution) for of_row in parts for _, contribution in of_row), default=0.0)
            columns[_REASONS] = [_bars(of_row, largest) for of_row in parts]
        present = {name: cells for name, cells in columns.items() if cells is not None}
        left = [at for at, name in enumerate(present) if name in (self.called, "query", *self.columns, _REASONS)]
        rows = table([*present], zip(*present.values(), strict=True), left=left, names=True)
        return rows if self.reasons is None else element("div", rows, class_="listed")

    def _parts(self, reasons: Reasons) -> list[tuple[str, float]]:
        """Parts of a row's score to show, without the base if all rows share it."""
        return list(reasons.all())[0 if self._base() is None else 1 :]


def _bars(parts: Sequence[tuple[str, float]], largest: float) -> Markup:
    """A line for each reason: its words, its contribution, and a bar from the middle."""
    lines = []
    for words, contribution in parts:
        share = 0.0 if largest == 0.0 else abs(contribution) / largest
        bar = element("i", class_="up" if contribution >= 0.0 else "down", style=f"--share:{share:.3f}")
        number = element("b", f"{contribution:+.4g}")
        lines.append(element("div", element("span", breakable(words)), number, bar, class_="reason"))
    return element("div", *lines, class_="reasons")


def best_first(rows: Dataset, scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n,) row numbers by query, in order of appearance, then best first (ties keep their order); and (n,) ranks in the
    query, from 1."""
    if rows.groups is None:
        return np.argsort(-scores, kind="stable"), np.arange(1, scores.size + 1)
    _, first, query = np.unique(rows.groups, return_index=True, return_inverse=True)
    order = np.lexsort((-scores, first[query]))
    begins = np.flatnonzero(np.diff(query[order], prepend=-1))
    rank = np.arange(1, order.size + 1) - np.repeat(begins, np.diff(np.append(begins, order.size)))
    return order, rank


def first_rows_of(part: JudgedRanker, lines: NDArray[np.int64] | None) -> Markup:
    """The section of the rows of the highest scores; of queries those of the first few."""
    order, places = best_first(part.dataset, part.scores)
    if part.groups is None:
        first = places <= MOST_ROWS
    else:
        first = (places <= MOST_OF_A_QUERY) & (np.cumsum(places == 1) <= MOST_QUERIES)
    listed = _listed(part, order[first], places[first], lines)
    of_queries = "" if part.groups is None else "Those of the first queries in the file. "
    return section("The first rows", element("p", of_queries + listed.words()), listed.table())


def lowest_positives(part: JudgedRanker, lines: NDArray[np.int64] | None) -> Markup:
    """The section on the positive rows ranked lowest."""
    order, places = best_first(part.dataset, part.scores)
    query = np.cumsum(places == 1) - 1
    share = (places - 1) / np.maximum(1, np.bincount(query)[query] - 1)
    low = np.flatnonzero(part.target.relevant[order] & (share > 0.0))
    worst = low[np.argsort(-share[low], kind="stable")][:MOST_ROWS]
    if not worst.size:
        return Markup("")
    listed = _listed(part, order[worst], places[worst], lines)
    text = "The rows that a reader of the list finds last; rows of equal score stand in the order of the file. "
    return section("Positive rows that stand lowest", element("p", text + listed.words()), listed.table())


def _listed(
    part: JudgedRanker, rows: NDArray[np.int64], places: NDArray[np.int64], lines: NDArray[np.int64] | None
) -> FirstRows:
    """The list of these rows, by their names in the table, else their lines or numbers; a bag by its deciding row."""
    dataset, relevant = part.dataset, part.target.relevant
    at = np.arange(part.scores.size) if dataset.deciding is None else dataset.deciding
    where = (at + 1 if lines is None else lines[at])[rows]
    keys = None if dataset.table is None else dataset.table.keys
    columns: dict[str, Sequence[object]] = {} if keys is None or lines is None else {"line": where.tolist()}
    labels = None if dataset.label_sets else [dataset.shown_label(label) for label in dataset.relevance[rows].tolist()]
    try:
        reasons = list(reasons_of(part.ranker, dataset.select(rows), MOST_REASONS))
    except ValueError:  # the feature map mixes all features
        reasons = None
    return FirstRows(
        places=places,
        names=[str(name) for name in (where if keys is None else keys[rows])],
        scores=part.scores[rows],
        queries=None if part.groups is None else [str(dataset.query_name(int(query))) for query in part.groups[rows]],
        answers=None,
        relevant=relevant[rows],
        n_relevant=int(relevant.sum()),
        reasons=reasons,
        n_rows=part.scores.size,
        columns=columns,
        labels=labels,
        called="line" if keys is None and lines is not None else "row",
    )
