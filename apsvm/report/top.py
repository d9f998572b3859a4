"""The section on the top of the list: the best rows, who they are, and what put them there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apsvm.data.dataset import Dataset, shown_label
from apsvm.report.drawing import drawn
from apsvm.report.page import Markup, element, pictures, section, table
from apsvm.report.pictures.top_of_list import TopOfList
from apsvm.report.reasons import reasons_of
from apsvm.report.run import JudgedRanker

#: Rows that are listed, or of queries those of each, and how many queries.
MOST_ROWS = 15
MOST_OF_A_QUERY, MOST_QUERIES = 5, 3
#: Features that are said of each.
MOST_REASONS = 3


def top_of_list(part: JudgedRanker, lines: NDArray[np.int64] | None) -> Markup:
    """The best rows by score, rows of equal score in the order of the file; of queries those of the first few."""
    best = _best(part)
    reasons = _reasons(part, best)
    of_queries = part.groups is not None
    rows = RowNames(part, lines)
    heading = ["place", *rows.heading, "label", "score", *(["what put it there"] if reasons is not None else [])]
    body: list[list[object]] = []
    place = 0
    for at, row in enumerate(best.tolist()):
        next_query = part.groups is not None and at > 0 and part.groups[best[at - 1]] != part.groups[row]
        place = 1 if next_query else place + 1
        label = element("span", label_of(part.dataset, row), class_="good" if part.relevant[row] else "muted")
        body.append([place, *rows[row], label, f"{part.scores[row]:.6g}"])
        if reasons is not None:
            body[-1].append(", ".join(reasons[at]))
    words = "The rows of the highest scores" + (" of the first queries in the file." if of_queries else ".")
    if reasons is not None:
        words += (
            " Beside each what raised its score the most, by how much, above what a usual row has there."
            if part.ranker.header.features.columns is not None
            else " Beside each what raised its score the most, and by how much."
        )
    left = (len(heading) - 1,) if reasons is not None else ()
    content: list[object] = [element("p", words), table(heading, body, left=left)]
    if not of_queries and part.relevant.any() and not part.relevant.all():
        picture = TopOfList(part.scores, part.relevant)
        content.append(pictures(drawn(picture, "Positives among the first rows of the list")))
    return section("The top of the list", *content)


def _best(part: JudgedRanker) -> NDArray[np.int64]:
    order = np.argsort(-part.scores, kind="stable")
    if part.groups is None:
        return order[:MOST_ROWS]
    _, first = np.unique(part.groups, return_index=True)
    queries = part.groups[np.sort(first)[:MOST_QUERIES]]
    groups = part.groups[order]
    return np.concatenate([order[groups == query][:MOST_OF_A_QUERY] for query in queries])


def _reasons(part: JudgedRanker, rows: NDArray[np.int64]) -> list[list[str]] | None:
    """None where it does not tell what each feature gave."""
    try:
        return [one.in_words() for one in reasons_of(part.ranker, part.dataset.select(rows), MOST_REASONS)]
    except ValueError:
        return None


class RowNames:
    """What rows are called: their lines in the file or their numbers from 1, of bags those of the deciding rows, the
    query, and what the table calls them. ``self[row]`` are the cells below ``heading``."""

    def __init__(self, part: JudgedRanker, lines: NDArray[np.int64] | None) -> None:
        self._dataset, self._groups = part.dataset, part.groups
        deciding = part.dataset.deciding
        places = np.arange(part.scores.size) if deciding is None else deciding
        self._where = places + 1 if lines is None else lines[places]
        rows = part.dataset.table
        self._keys = None if rows is None else rows.keys
        self.heading = ["row" if lines is None else "line"]
        self.heading += [] if self._keys is None else ["id"]
        self.heading += [] if self._groups is None else ["qid"]

    def __getitem__(self, row: int) -> list[str]:
        result = [f"{self._where[row]}"]
        result += [] if self._keys is None else [str(self._keys[row])]
        return result + ([] if self._groups is None else [self._dataset.query_name(int(self._groups[row]))])


def label_of(dataset: Dataset, row: int) -> str:
    """The label of a row as its file has it."""
    sets = dataset.label_sets
    if sets is None:
        return dataset.shown_label(float(dataset.relevance[row]))
    labels = sets.classes[sets.indices[sets.indptr[row] : sets.indptr[row + 1]]]
    return ",".join(shown_label(label) for label in labels.tolist()) or "–"
