"""The picture of the README, docs/pictures/top-of-the-list.svg: what is found among the first hundred rows of lists.

    python scripts/dev/draw_top_of_list.py

Of docs/figures/first-hundred.json, which scripts/study/first_hundred.py measures: the mean of the splits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).resolve().parents[2] / "docs"
FIGURES = DOCS / "figures" / "first-hundred.json"
PICTURE = DOCS / "pictures" / "top-of-the-list.svg"
WIDTH, LEFT, RIGHT, STEP, HEIGHT = 480, 138, 34, 22, 16

WHAT = {
    "payments": "Frauds (made payments)",
    "customers": "Buyers (customers of an insurance company)",
    "spots": "Calcifications (spots in X-ray images)",
}
STYLE = (
    "text{fill:#57606a}.strong{fill:#24292f;font-weight:600}.other{fill:#a8b1ba}.ours{fill:#1a7f5a}"
    "@media(prefers-color-scheme:dark){text{fill:#9aa4ae}.strong{fill:#e6edf3}.other{fill:#59636e}.ours{fill:#3fb98a}}"
)


def drawn(figures: Mapping[str, Any]) -> str:
    """SVG, readable on a light and on a dark page."""
    title = "Found among the first 100 rows of a list"
    body, y = [f'<text class="strong" x="0" y="16" font-size="15">{title}</text>'], 44
    for name in WHAT:
        table = figures[name]
        counts = {tool: float(np.mean([count for count, _ in splits])) for tool, splits in table["tools"].items()}
        largest = max(counts.values())
        among = f"{WHAT[name]}: {table['positive']} of {table['rows']:,} rows"
        body.append(f'<text class="strong" x="0" y="{y}">{among}</text>')
        for at, (tool, count) in enumerate(counts.items()):
            top = y + 10 + at * STEP
            length = (WIDTH - LEFT - RIGHT) * count / largest
            kind = "ours" if tool.startswith("apsvm") else "other"
            body.append(f'<text x="{LEFT - 8}" y="{top + 13}" text-anchor="end">{tool}</text>')
            body.append(f'<rect class="{kind}" x="{LEFT}" y="{top}" width="{length:.1f}" height="{HEIGHT}" rx="2"/>')
            body.append(f'<text class="strong" x="{LEFT + length + 6:.1f}" y="{top + 13}">{count:.0f}</text>')
        y += 10 + len(counts) * STEP + 28
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y - 30}" width="{WIDTH}" height="{y - 30}" '
        'role="img" font-family="sans-serif" font-size="13">'
    )
    return "\n".join([head, f"<title>{title}</title>", f"<style>{STYLE}</style>", *body, "</svg>", ""])


def main() -> None:
    PICTURE.write_text(drawn(json.loads(FIGURES.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
