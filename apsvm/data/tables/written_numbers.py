"""Numbers as people write them: 1,234.50 and 1.234,50, $ 12, 12 %.

A column is read in one style, with a point or a comma before the decimals, learned from all its words: 1,234 alone may
be either. It may have one sign of money, or per cent in all cells: then 12 % is 12.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

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


def of_one_unit(words: Sequence[str], *, others: bool) -> bool:
    """Whether numbers have one sign of money, or none, or all of them per cent. ``others``: whether there are numbers
    beside these words."""
    signs = {sign for word in words for sign in _SIGN if sign in word}
    return len(signs) < 2 and (signs != {"%"} or (not others and all("%" in word for word in words)))
