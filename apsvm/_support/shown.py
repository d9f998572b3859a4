"""Text from untrusted files, for terminals, pages and pictures: without characters that move the cursor or change the
direction of writing."""

from __future__ import annotations

import json


def printable(text: str) -> str:
    """One line of text; characters other than visible ones and blanks are escaped as in Python."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, most: int = 60) -> str:
    """The first ``most`` characters of a text of any length."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def printable_lines(text: str) -> str:
    """``printable`` of each line."""
    return "\n".join(map(printable, text.split("\n")))


def as_json(content: object, *, allow_nan: bool = True) -> str:
    """Indented JSON; characters that are not visible are escaped."""
    text = json.dumps(content, allow_nan=allow_nan, indent=1, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
