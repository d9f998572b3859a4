"""The list to go through: the first rows by score as a page, each with its name and what its features gave, and where
there are labels with the positives found so far. It is one file, whose columns sort on a click."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from apsvm.report.page import Markup, element, facts, page, section, table, tiles
from apsvm.report.reasons import Reasons

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
    """What the page shows, row by row, best first.

    Attributes
    ----------
    places : (k,) int64, from 1 in each query
    names, scores : what the rows are called, and (k,) float64
    queries : the query of each, None without
    answers : what --classify and --probability say, None where neither was requested
    relevant : (k,) bool, None without labels; ``n_relevant``: of all rows
    reasons : what the features gave, None where it was not requested
    n_rows : of the data
    columns : the cells of further columns of the table, by their names
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
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def page(self, title: str, about: Sequence[tuple[object, object]]) -> str:
        """The whole file; ``about``: names and values that stand above the list."""
        content: list[object] = [element("h1", title), element("section", facts(about))]
        if self.relevant is not None and self.queries is None:
            content.append(tiles(self._figures()))
        words = "Best first; a click on a heading sorts by it."
        if self.reasons is not None:
            words += (
                " A bar beside a score is what each of the features named gave to it, to the right what raised it, "
                "above what a usual row has: base, features and rest add up to the score."
            )
        content.append(section("The list", element("p", words), self._table()))
        return page(title, *content, script=_SCRIPT)

    def _figures(self) -> list[tuple[object, object, object]]:
        assert self.relevant is not None
        found, k = int(self.relevant.sum()), len(self.names)
        rate = self.n_relevant / self.n_rows
        return [
            (f"found in the first {k:,}", f"{found:,}", f"of {self.n_relevant:,} positive rows"),
            (f"P@{k}", f"{found / k:.3f}", f"at random: {rate:.3g}"),
            ("recall", f"{found / self.n_relevant:.3f}", f"in {k / self.n_rows:.2%} of {self.n_rows:,} rows"),
        ]

    def _table(self) -> Markup:
        heading = ["place", "row", *self._when(self.queries, "query"), "score", *self._when(self.answers, "answer")]
        heading += list(self.columns) + self._when(self.relevant, "label") + self._when(self.relevant, "found so far")
        heading += self._when(self.reasons, "what put it there")
        found = None if self.relevant is None else np.cumsum(self.relevant)
        largest = max((one.largest for one in self.reasons or []), default=0.0)
        rows: list[list[object]] = []
        for at, name in enumerate(self.names):
            row: list[object] = [self.places[at], name, *([] if self.queries is None else [self.queries[at]])]
            row += [f"{self.scores[at]:.6g}", *([] if self.answers is None else [self.answers[at]])]
            row += [cells[at] for cells in self.columns.values()]
            if self.relevant is not None and found is not None:
                positive = bool(self.relevant[at])
                row.append(element("span", "yes" if positive else "no", class_="good" if positive else "muted"))
                row.append(int(found[at]))
            if self.reasons is not None:
                row.append(_bars(self.reasons[at], largest))
            rows.append(row)
        left = (1, *((len(heading) - 1,) if self.reasons is not None else ()))
        listed = table(heading, rows, left=left)
        return listed if self.reasons is None else element("div", listed, class_="reasoned")

    @staticmethod
    def _when(there: object, heading: str) -> list[str]:
        return [] if there is None else [heading]


def _bars(reasons: Reasons, largest: float) -> Markup:
    """A line for each reason: its words, what it gave, and a bar of that, about the middle."""
    lines = []
    for words, gave in reasons.all():
        share = 0.0 if largest == 0.0 else abs(gave) / largest
        bar = element("i", class_="up" if gave >= 0.0 else "down", style=f"--share:{share:.3f}")
        lines.append(element("div", element("span", words), element("b", f"{gave:+.4g}"), bar, class_="gave"))
    return element("div", *lines, class_="reasons")
