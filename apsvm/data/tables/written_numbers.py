"""Numbers as people write them: 1,234.50 and 1.234,50, $ 12, 12 %.

A column is read in one style, with a point or a comma before the decimals, learned from all its words: 1,234 alone may
be either. It may have one sign of money, or per cent in all cells: then 12 % is 12.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import takewhile

from apsvm.models.columns import NUMBER_STYLES

_SIGN = "$€£¥%"


def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    grouped = rf"\d{{1,3}}(?:[{thousands}'\s]\d{{3}})+(?:[{decimal}]\d*)?"
    return re.compile(
        rf"(?P<minus>[+-]?)\s*(?P<before>[{_SIGN}]?)\s*(?P<number>{grouped}|\d+(?:[{decimal}]\d*)?|[{decimal}]\d+)"
        rf"\s*(?P<behind>[{_SIGN}]?)"
    )


#: What stands before decimals, by the style.
DECIMAL = dict(zip(NUMBER_STYLES, ".,", strict=True))
_PATTERNS = {style: _pattern(point, "," if point == "." else ".") for style, point in DECIMAL.items()}


def number_of(word: str, style: str) -> float | None:
    """The number that a word is in this style; None where it is none."""
    found = _PATTERNS[style].fullmatch(word.strip())
    if found is None or (found["before"] and found["behind"]) or found["before"] == "%":
        return None
    digits = re.sub(rf"[^\d{DECIMAL[style]}]", "", found["number"]).replace(",", ".")
    number = float(f"{found['minus']}{digits}")
    return number if math.isfinite(number) else None


def styles_of(words: Sequence[str], decimal: str, *, numbers: bool) -> list[str]:
    """The styles in which all of these words are numbers of one unit, one of those that agree.

    Parameters
    ----------
    decimal : what stands before the decimals in the file; where it is a comma, a point stands before none
    numbers : whether other cells are numbers, which were read in the style of the file
    """
    read = {}
    for style in ("comma",) if decimal == "," else ("point",) if numbers else NUMBER_STYLES:
        values = list(takewhile(lambda number: number is not None, (number_of(word, style) for word in words)))
        if len(values) == len(words):
            read[style] = tuple(values)
    if not read:
        return []
    signs = {sign for word in words for sign in _SIGN if sign in word}
    bare = numbers or any(not set(word) & set(_SIGN) for word in words)
    if len(signs) > 1 or (signs == {"%"} and bare):
        return []
    return list(read)[:1] if len(set(read.values())) == 1 else list(read)
