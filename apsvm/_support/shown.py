"""Text that may come from elsewhere, for terminals, pages and pictures: without what moves the cursor or turns the
direction of writing."""

from __future__ import annotations

import json


def printable(text: str) -> str:
    """One line of text: what is no visible character or a blank is shown as Python would write it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, most: int = 60) -> str:
    """The beginning of a text that may be as long as a file."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def printable_lines(text: str) -> str:
    """``printable`` of each line."""
    return "\n".join(map(printable, text.split("\n")))


def as_json(content: object, *, allow_nan: bool = True) -> str:
    """JSON over several lines, of visible characters; others are escaped in its own way."""
    text = json.dumps(content, allow_nan=allow_nan, indent=1, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
