"""The tables and pictures of the pages of docs/cases, docs/bags.md and docs/nets.md, from docs/figures/cases.json, and
those of docs/benchmarks.md (``benchmark_tables``) from the other files in docs/figures.

    python scripts/dev/draw_cases.py [--docs docs]

A table stands in its page between ``<!-- table: NAME -->`` and ``<!-- end -->``; pictures are docs/pictures/case-*.svg,
readable on a light and on a dark page. scripts/study/cases.py measures what is drawn.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from benchmark_tables import benchmark_tables
from sklearn.datasets import load_digits

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: Of rows of images, and of charts, whose words a telephone should show large enough to be read.
WIDTH, CHART = 640, 480
STYLE = (
    "text{fill:#57606a}.strong{fill:#24292f;font-weight:600}.ours{fill:#1a7f5a}.other{fill:#8c959f}.axis{stroke:#d0d7de}"
    ".line{fill:none;stroke-width:2}.l0{stroke:#8c959f}.l1{stroke:#c4622d}.l2{stroke:#1a7f5a}.l3{stroke:#0969da}"
    ".l4{stroke:#8250df}.t0{fill:#6e7781}.t1{fill:#b3531f}.t2{fill:#1a7f5a}.t3{fill:#0969da}.t4{fill:#8250df}"
    ".hit{fill:none;stroke:#1a7f5a;stroke-width:2}.miss{fill:none;stroke:#c4622d;stroke-width:2}"
    "@media(prefers-color-scheme:dark){text{fill:#9aa4ae}.strong{fill:#e6edf3}.ours{fill:#3fb98a}.other{fill:#6e7781}"
    ".axis{stroke:#30363d}.l1{stroke:#e08a5b}.l2{stroke:#3fb98a}.l3{stroke:#58a6ff}.l4{stroke:#bc8cff}.t0{fill:#9aa4ae}"
    ".t1{fill:#e08a5b}.t2{fill:#3fb98a}.t3{fill:#58a6ff}.t4{fill:#bc8cff}.hit{stroke:#3fb98a}.miss{stroke:#e08a5b}}"
)

Figures = Mapping[str, Any]


def svg(title: str, height: float, body: Sequence[str], width: float = WIDTH) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" font-family="sans-serif" font-size="13">'
    )
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", *body, "</svg>", ""])


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def is_ours(name: str) -> bool:
    return name.startswith("apsvm")


def bars(title: str, values: Mapping[str, float], low: float = 0.0) -> str:
    """A bar a method, ours in green; they begin at ``low``, which the picture says."""
    left, right, step = 260, 50, 26
    largest = max(values.values())
    body = [text(0, 16, title, "strong")]
    for at, (name, value) in enumerate(values.items()):
        y = 34 + at * step
        length = (CHART - left - right) * (value - low) / (largest - low)
        body.append(text(left - 10, y + 13, name, anchor="end"))
        body.append(
            f'<rect class="{"ours" if is_ours(name) else "other"}" x="{left}" y="{y}" width="{length:.1f}" height="18" '
            'rx="2"/>'
        )
        body.append(text(left + length + 6, y + 13, dotted(value), "strong"))
    bottom = 34 + len(values) * step
    if low:
        body.append(text(left, bottom + 14, f"bars begin at {dotted(low)}"))
    return svg(title, bottom + (22 if low else 6), body, CHART)


def dotted(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".removeprefix("0")


def hits(title: str, places: Mapping[str, Sequence[int]], upto: int) -> str:
    """How many positives the first k rows have, k from 1, a line a method."""
    left, top, width, height = 40, 34, CHART - 60, 260
    most = max(sum(place <= upto for place in of) for of in places.values())
    scale_x, scale_y = width / upto, height / most
    body = [text(0, 16, title, "strong")]
    for value in range(0, most + 1, 20):
        y = top + height - value * scale_y
        body.append(f'<line class="axis" x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}"/>')
        body.append(text(left - 8, y + 4, str(value), anchor="end"))
    for k in range(0, upto + 1, 50):
        body.append(text(left + k * scale_x, top + height + 18, str(k), anchor="middle"))
    body.append(text(left + width, top + height + 36, "rows looked at, best first", anchor="end"))
    for at, (name, of) in enumerate(places.items()):
        counts = [sum(place <= k for place in of) for k in range(0, upto + 1, 2)]
        points = " ".join(
            f"{left + 2 * i * scale_x:.1f},{top + height - count * scale_y:.1f}" for i, count in enumerate(counts)
        )
        body.append(f'<polyline class="line l{at}" points="{points}"/>')
        body.append(text(left + width * 0.52, top + height - 24 - 18 * (len(places) - 1 - at), f"— {name}", f"t{at}"))
    return svg(title, top + height + 44, body, CHART)


def digit(number: int, x: float, y: float, size: float, images: Any, kind: str = "") -> list[str]:
    """An image of load_digits as one path a grey, with a frame of this kind."""
    cell = size / 8
    lines = [f'<rect x="{x:g}" y="{y:g}" width="{size:g}" height="{size:g}" fill="#f6f8fa"/>']
    for grey in (4, 8, 12, 16):
        rows, columns = np.nonzero((images[number] > grey - 4) & (images[number] <= grey))
        path = "".join(
            f"M{x + c * cell:.4g} {y + r * cell:.4g}h{cell:g}v{cell:g}h-{cell:g}z"
            for r, c in zip(rows, columns, strict=True)
        )
        if path:
            lines.append(f'<path d="{path}" fill="#{"%02x" % (250 - grey * 14) * 3}"/>')
    if kind:
        lines.append(
            f'<rect class="{kind}" x="{x - 1:g}" y="{y - 1:g}" width="{size + 2:g}" height="{size + 2:g}" rx="2"/>'
        )
    return lines


def tops(title: str, methods: Figures, first: int, last: int, wanted: int) -> str:
    """The images at the places first … last of each list, those that are not wanted framed."""
    digits = load_digits()
    size, gap = 26, 6
    body = [text(0, 16, title, "strong")]
    for at, (name, method) in enumerate(methods.items()):
        y = 34 + at * (size + 34)
        body.append(text(0, y + 10, f"{name}: {method['wrong']} wrong, AP {dotted(method['AP'])}"))
        for place, number in enumerate(method["top"][first - 1 : last]):
            wrong = digits.target[number] != wanted
            body += digit(number, 2 + place * (size + gap), y + 18, size, digits.images, "miss" if wrong else "")
    return svg(title, 34 + len(methods) * (size + 34), body)


def bags_drawn(title: str, example: Figures) -> str:
    """The pages at the top of a list, the digit that decides framed: in green where it is an 8."""
    digits = load_digits()
    size, gap = 30, 6
    body = [text(0, 16, title, "strong")]
    for at, (page, deciding) in enumerate(zip(example["pages"], example["deciding"], strict=True)):
        column, row = at % 2, at // 2
        x, y = column * (WIDTH / 2 + 10), 34 + row * (size + 22)
        body.append(text(x, y + 20, f"{at + 1}."))
        for place, number in enumerate(page):
            frame = ("hit" if digits.target[number] == 8 else "miss") if number == deciding else ""
            body += digit(number, x + 26 + place * (size + gap), y, size, digits.images, frame)
    return svg(title, 34 + (len(example["pages"]) + 1) // 2 * (size + 22), body)


def dumbbells(title: str, first: Mapping[str, float], second: Mapping[str, float], names: tuple[str, str]) -> str:
    """Two values a tag, in the order of their difference."""
    left, step = 110, 20
    width = CHART - left - 20
    order = sorted(first, key=lambda tag: second[tag] - first[tag], reverse=True)
    body = [
        text(0, 16, title, "strong"),
        text(left - 10, 34, f"● {names[0]}", "t0"),
        text(left + 190, 34, f"● {names[1]}", "t2"),
    ]
    for at, tag in enumerate(order):
        y = 54 + at * step
        x = [left + width * value[tag] for value in (first, second)]
        body += [
            text(left - 12, y + 4, tag, anchor="end"),
            f'<line class="axis" x1="{left}" x2="{left + width}" y1="{y}" y2="{y}"/>',
            f'<line class="line l{2 if x[1] >= x[0] else 0}" x1="{x[0]:.1f}" x2="{x[1]:.1f}" y1="{y}" y2="{y}"/>',
            f'<circle class="other" cx="{x[0]:.1f}" cy="{y}" r="5"/>',
            f'<circle class="ours" cx="{x[1]:.1f}" cy="{y}" r="5"/>',
        ]
    bottom = 54 + len(order) * step
    body += [text(left + width * value, bottom + 8, dotted(value, 1), anchor="middle") for value in (0.0, 0.5, 1.0)]
    return svg(title, bottom + 16, body, CHART)


def table(first: str, columns: Mapping[str, Callable[[Figures], str]], methods: Figures) -> str:
    """A row a method; of each column the best value is bold where it is a share."""
    rows = {name: [show(method) for show in columns.values()] for name, method in methods.items()}
    best = [max((row[at] for row in rows.values()), key=in_order) for at in range(len(columns))]
    lines = [f"| {first} | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for name, row in rows.items():
        cells = [
            f"**{cell}**" if cell == best[at] and cell.startswith((".", "1.")) else cell for at, cell in enumerate(row)
        ]
        lines.append(f"| {code(name)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def in_order(cell: str) -> float:
    return float(cell) if re.fullmatch(r"[\d.]+", cell) else -1.0


def code(name: str) -> str:
    return f"`{name}`" if is_ours(name) else name


def share(key: str) -> Callable[[Figures], str]:
    return lambda method: "" if method[key] is None else dotted(method[key])


def whole(key: str) -> Callable[[Figures], str]:
    return lambda method: f"{method[key]}"


def tables_of(figures: Figures) -> dict[str, str]:
    """By name: a Markdown table."""
    counted = ("of the first 100", "of the first 200", "beyond 1,000")
    shown = {
        "fraud": {"test AP": share("AP"), **{name: whole(name) for name in counted}},
        "search": {f"`{name}`": share(name) for name in ("nDCG(exp)@10", "nDCG(exp)@3", "RR")},
        "images": {"test AP": share("AP"), "wrong of the first 58": whole("wrong")},
        "tags": {"mean AP over the tags": share("mAP")},
        "recommendation": {f"`{name}`": share(name) for name in ("P@5", "R@10", "AUC")},
        "bags": {"test AP": share("AP"), "an 8 decides": share("right")},
    }
    return {name: table("", columns, figures[name]["methods"]) for name, columns in shown.items() if name in figures}


def pictures_of(figures: Figures) -> dict[str, str]:
    """By file: SVG."""
    result = {}
    if "fraud" in figures:
        methods = figures["fraud"]["methods"]
        drawn = ("LinearSVC, tuned", "logistic regression, tuned", "apsvm train", "apsvm cv", "boosted trees")
        title = f"Calcifications among the first rows ({figures['fraud']['positive']} in {figures['fraud']['rows']:,})"
        result["case-fraud"] = hits(title, {name: methods[name]["places"] for name in drawn}, 300)
    for name, key, title, low in (
        ("search", "nDCG(exp)@10", "nDCG of the first ten, mean over 50 queries", 0.5),
        ("recommendation", "R@10", "Hidden imports found among ten suggestions", 0.0),
    ):
        if name in figures:
            result[f"case-{name}"] = bars(title, {n: m[key] for n, m in figures[name]["methods"].items()}, low)
    if "images" in figures:
        kept = {
            name: figures["images"]["methods"][name]
            for name in ("logistic regression, tuned", "apsvm train", "apsvm cv")
        }
        result["case-images"] = tops("Places 31 to 50 of the list of eights (framed: not an 8)", kept, 31, 50, 8)
    if "tags" in figures:
        methods = figures["tags"]["methods"]
        names = ("logistic regression, tuned", "apsvm train --one-vs-rest")
        title = "Average precision of each tag"
        result["case-tags"] = dumbbells(title, *(methods[name]["AP"] for name in names), names)
    if "bags" in figures:
        title = "The eight pages that rank first, and the digit that decides"
        result["case-bags"] = bags_drawn(title, figures["bags"]["example"])
    return result


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """The page with its tables as measured."""

    def put(match: re.Match[str]) -> str:
        return f"{match[1]}\n\n{tables[match[2]]}\n\n<!-- end -->" if match[2] in tables else match[0]

    return re.sub(r"(<!-- table: (\w+) -->).*?<!-- end -->", put, page, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, default=DOCS)
    docs = parser.parse_args().docs
    figures = json.loads((docs / "figures" / "cases.json").read_text(encoding="utf-8"))
    tables = tables_of(figures)
    tables |= benchmark_tables(docs / "figures")
    for page in sorted(docs.rglob("*.md")):
        page.write_text(with_tables(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
    for name, drawn in pictures_of(figures).items():
        (docs / "pictures" / f"{name}.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
