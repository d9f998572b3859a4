"""The section on the components of a ranker: which rows each of them leads, and by which features."""

from __future__ import annotations

import numpy as np

from apsvm.report.judging import drivers_in
from apsvm.report.page import Markup, bar, element, section, table
from apsvm.report.run import JudgedRanker
from apsvm.report.words import share


def components_of(part: JudgedRanker) -> Markup:
    """The section on components; empty for a ranker with only one."""
    ranker = part.ranker
    if ranker.components == 1:
        return Markup("")
    leading, relevant = ranker.leading(part.dataset.X), part.relevant
    # The top: as many rows as there are positives.
    top = np.zeros(relevant.size, dtype=bool)
    top[np.argsort(-part.scores, kind="stable")[: int(relevant.sum())]] = True
    columns = {"positives": relevant, "negatives": ~relevant, "rows at the top": top}
    counts = {name: np.bincount(leading[rows], minlength=ranker.components) for name, rows in columns.items()}
    rows = [
        [str(h + 1), *(_of_all(int(of[h]), int(of.sum())) for of in counts.values()), f"{part.intercept:.6g}"]
        for h, part in enumerate(ranker.linear_parts())
    ]
    explanation = (
        "A row's score is the highest that a component gives it, and that component leads the row. A component stands "
        "for one kind of positives. The top has as many rows as there are positives."
    )
    content: list[object] = [element("p", explanation), table(["component", *counts, "constant"], rows)]
    for h in range(ranker.components):
        content += [element("h3", f"Component {h + 1}"), *drivers_in(part, h)]
    return section("Components", *content)


def _of_all(count: int, of: int) -> Markup:
    value = count / max(1, of)
    return bar(value, f"{count:,} ({share(value)})")
