"""Dates as features: the age at the newest date of training, the season, the weekday and the hour. Times have the hour
alone.

Season and hour are a sine and a cosine, so that December is near January and 23 near 0 o'clock. The other dates of a
column decide between day and month in 03/04/2024; if they leave both readings open, the column is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

from apsvm.models.columns import DatePart

_ZONE = r"Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?"
_TIME = rf"(\d{{1,2}}):(\d{{2}})(?::(\d{{2}}(?:[.,]\d+)?))?(?:\s*([AaPp])\.?[Mm]\.?)?\s*({_ZONE})?"
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?"
)
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}})(?:[T ]\s*{_TIME})?")
_YEAR_LAST = re.compile(
    rf"(\d{{1,2}})([-/.]| (?=[A-Za-z]))(\d{{1,2}}|{_MONTH})\2(\d{{4}})(?:[T ]\s*{_TIME})?", re.IGNORECASE
)
_MONTH_FIRST = re.compile(rf"({_MONTH})( )(\d{{1,2}}),? (\d{{4}})(?:[T ]\s*{_TIME})?", re.IGNORECASE)
_TIME_ALONE = re.compile(_TIME)
#: A word that looks like a date of any form.
LIKE_A_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d).*|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?!\d).*|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?"
    rf"|\d{{1,2}}([-/. ])(?:{_MONTH})\3\d{{2,4}}(?!\d).*",
    re.IGNORECASE,
)
_EPOCH = date(1970, 1, 1).toordinal()
#: Seconds in a day.
A_DAY = 86400.0
#: Days in a mean year.
YEAR = 365.2425
#: Decimals of sines and cosines. Those of 1 and of 11 o'clock are equal then, in any mathematical library, and no rule
#: splits between them.
DECIMALS = 9
#: Within fewer days the season repeats the age.
_DAYS_WITH_SEASONS = 300.0


def days_of(word: str, order: str) -> float | None:
    """Days from the beginning of 1970 to a date with its time of day, in UTC if it names a zone; of a time alone, days
    since midnight. None if the word is no date of this order. Between points the day is first."""
    pattern = {"ymd": _YEAR_FIRST, "time": _TIME_ALONE}.get(order, _YEAR_LAST)
    word = word.strip()
    found = pattern.fullmatch(word) or (_MONTH_FIRST.fullmatch(word) if order in ("dmy", "mdy") else None)
    if found is None or (order == "mdy" and found[2] == "."):
        return None
    *of_day, hour, minute, second_of_time, half, zone = found.groups()
    days = 0.0
    if of_day:
        first, _, second, third = of_day
        year, month, day = {
            "ymd": (first, second, third),
            "dmy": (third, second, first),
            "mdy": (third, first, second),
        }[order]
        if day[:1].isalpha():  # March 26, in any order
            month, day = day, month
        month = _MONTHS.index(month[:3].lower()) + 1 if month[:1].isalpha() else month
        try:
            days = float(date(int(year), int(month), int(day)).toordinal() - _EPOCH)
        except ValueError:
            return None
    if hour is None:
        return days
    hours, seconds = int(hour), float((second_of_time or "0").replace(",", "."))
    if half is not None:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half in "Pp" else 0)
    if hours > 23 or int(minute) > 59 or seconds >= 61.0:
        return None
    days += (hours + int(minute) / 60.0 + seconds / 3600.0) / 24.0
    if zone is not None and zone[0] in "+-":
        away = int(zone[1:3]) + (int(zone[-2:]) / 60.0 if len(zone) > 3 else 0.0)
        days -= (away if zone[0] == "+" else -away) / 24.0
    return days


def has_zone(word: str) -> bool:
    """True if a time of day names its zone."""
    found = re.search(rf":\d{{2}}[^A-Za-z+-]*\s*(?:[AaPp]\.?[Mm]\.?)?\s*({_ZONE})\s*$", word)
    return found is not None


def day_of(days: float) -> np.datetime64:
    """The calendar day of a date in days."""
    return np.datetime64(int(np.floor(days)), "D")


def parts_of(days: NDArray[np.float64], order: str) -> tuple[DatePart, ...]:
    """The date parts that vary in the training dates (n,), in days."""
    if order == "time":
        return (DatePart.HOUR,)
    parts = [DatePart.AGE]
    if np.ptp(days) >= _DAYS_WITH_SEASONS:
        parts.append(DatePart.YEAR)
    if np.unique(np.floor(days)).size > 1:
        parts.append(DatePart.WEEKDAY)
    if (days != np.floor(days)).any():
        parts.append(DatePart.HOUR)
    return tuple(parts)


def features_of_dates(days: NDArray[np.float64], parts: Sequence[DatePart], newest: float) -> NDArray[np.float64]:
    """The features (n, k) of the dates (n,), in days. A missing date, NaN, has zeros and the age NaN. Dates after
    ``newest`` have age 0."""
    return np.concatenate([values[:, None] for part in parts for values in _values(days, part, newest)], axis=1)


def _values(days: NDArray[np.float64], part: DatePart, newest: float) -> Iterator[NDArray[np.float64]]:
    there = ~np.isnan(days)
    if part is DatePart.AGE:
        yield np.maximum(newest - days, 0.0)  # training has no dates after the newest
    elif part is DatePart.WEEKDAY:
        weekday = np.mod(np.floor(np.where(there, days, 0.0)) + 3.0, 7.0)  # 1970 began with a Thursday
        yield from ((there & (weekday == number)).astype(np.float64) for number in range(7))
    else:
        turns = np.where(there, days, 0.0) / (YEAR if part is DatePart.YEAR else 1.0)
        angles = 2.0 * np.pi * np.mod(turns, 1.0)
        for turned in (np.sin(angles), np.cos(angles)):
            rounded: NDArray[np.float64] = there * np.round(turned, DECIMALS)
            yield rounded
