"""Formatted numbers: 1,234.50 and 1.234,50, $ 12, 12 %.

A column has one style, a point or a comma before the decimals. All its words decide, since 1,234 alone may be either. A
column may have one currency sign, or per cent in all cells: 12 % is 12. (12) is −12.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from apsvm.models.columns import NUMBER_STYLES

#: Words for numbers, in lower case.
TRUTH = {"true": 1.0, "false": 0.0}
_SIGN = "$€£¥%"
#: A word that looks like a number with a currency or per cent sign, separators, or a decimal comma.
LIKE_AN_AMOUNT = re.compile(
    r"[+-]?\s*([$€£].*|.*[$€£%]|\d+,\d*|\d{1,3}(,\d{3})+(\.\d*)?|\d{1,3}(\.\d{3})+,\d*|\d{1,3}(\.\d{3}){2,}"
    r"|\d*\.\d+[eE][+-]?\d+)",
    re.ASCII,
)


def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    grouped = rf"\d{{1,3}}(?:[{thousands}'\s\u00a0\u202f]\d{{3}})+(?:[{decimal}]\d*)?"
    return re.compile(
        rf"(?P<minus>[+-]?)\s*(?P<before>[{_SIGN}]?)\s*(?P<number>{grouped}|\d+(?:[{decimal}]\d*)?|[{decimal}]\d+)"
        rf"\s*(?P<behind>[{_SIGN}]?)",
        re.ASCII,
    )


#: Style → decimal mark.
DECIMAL = dict(zip(NUMBER_STYLES, ".,", strict=True))
_PATTERNS = {style: _pattern(point, "," if point == "." else ".") for style, point in DECIMAL.items()}


def number_of(word: str, style: str) -> float | None:
    """The number that a word spells in this style; None if it spells none."""
    word = word.strip().replace("\u2212", "-")  # the minus sign of typesetters
    is_negative = word[:1] == "(" and word[-1:] == ")"
    found = _PATTERNS[style].fullmatch(word[1:-1] if is_negative else word)
    if found is not None and is_negative and found["minus"]:
        return None
    if found is None or (found["before"] and found["behind"]) or found["before"] == "%":
        return None
    digits = re.sub(rf"[^\d{DECIMAL[style]}]", "", found["number"]).replace(",", ".")
    number = float(f"{'-' if is_negative else found['minus']}{digits}")
    return number if math.isfinite(number) else None


def number_in(word: str, style: str) -> float | None:
    """The number of a word in a column of numbers. true and false are 1 and 0 in any style."""
    truth = TRUTH.get(word.lower())
    return truth if truth is not None or not style else number_of(word, style)


def unit_of(word: str) -> str:
    """The currency and per cent signs in a word."""
    return "".join(sign for sign in _SIGN if sign in word)


def of_one_unit(words: Sequence[str], *, others: bool) -> bool:
    """True if the numbers have at most one currency sign, or are all percentages. ``others``: True if the column has
    plain numbers too."""
    signs = {sign for word in words for sign in _SIGN if sign in word}
    return len(signs) < 2 and (signs != {"%"} or (not others and all("%" in word for word in words)))


def is_meant_as_number(word: str) -> bool:
    """True if the word spells infinity or NaN, or a number beyond float64."""
    try:
        return not math.isfinite(float(word))
    except ValueError:
        return False
