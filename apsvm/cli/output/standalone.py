"""Scores rows by a model of apsvm, with Python's standard library alone (3.10 or later).

    score(row) → float, or of several classes {class: float};  label(row);  probability(row)

A row is a dict: of a table, column → cell: numbers, text as a CSV has it, dates, None for a missing one; of other
models, feature → number, by name or number, those that are left out are 0; or a sequence of all features.
ValueError says what is wrong with a row.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timezone
from typing import Any

from apsvm.data.tables.cells import MISSING_WORDS
from apsvm.data.tables.dates import days_of
from apsvm.data.tables.written_numbers import number_of
from apsvm.models.columns import EXAMPLES

MODEL: dict[str, Any] = json.loads("{}")

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TRUTH = {"true": 1.0, "false": 0.0}
_YEAR = 365.2425


def score(row: Any) -> Any:
    """How high the row ranks: a number, or of several classes one for each."""
    scores = _scores(row)
    if not MODEL["several"]:
        return scores[0]
    return {ranker["name"]: one for ranker, one in zip(MODEL["rankers"], scores, strict=True)}


def label(row: Any) -> Any:
    """What the row is called, by the thresholds of training."""
    above = [one - (ranker["threshold"] or 0.0) for ranker, one in zip(MODEL["rankers"], _scores(row), strict=True)]
    if not MODEL["several"]:
        if MODEL["rankers"][0]["threshold"] is None:
            raise ValueError("the model has no threshold: apsvm train --threshold f1 makes such a model")
        return MODEL["rankers"][0]["classes"][above[0] > 0.0]
    names = [ranker["name"] for ranker in MODEL["rankers"]]
    if MODEL["several"] == "labels":
        return [name for name, one in zip(names, above, strict=True) if one > 0.0]
    return names[above.index(max(above))]


def probability(row: Any) -> Any:
    """How likely the row is positive; of several classes, for each."""
    each = [_likely(ranker["probability"], one) for ranker, one in zip(MODEL["rankers"], _scores(row), strict=True)]
    return (
        {ranker["name"]: one for ranker, one in zip(MODEL["rankers"], each, strict=True)}
        if MODEL["several"]
        else each[0]
    )


def _scores(row: Any) -> list[float]:
    columns = list(_mapped(MODEL["features"], _features(row)))
    length = 1.0
    if MODEL["unit_rows"]:  # by its largest value first, as squares may be infinite, or vanish
        largest = max((abs(value) for _, value in columns), default=1.0)
        columns = [(k, value / largest) for k, value in columns]
        length = math.sqrt(math.fsum(value * value for _, value in columns))
    scores = []
    for ranker in MODEL["rankers"]:
        parts = ranker.get("components") or [ranker]
        each = [
            math.fsum(part["coef"][k] * value for k, value in columns) / (length or 1.0) + part["intercept"]
            for part in parts
        ]
        scores.append(max(each))
    return scores


def _likely(calibration: Any, score: float) -> float:
    if calibration is None:
        raise ValueError("the model has no probabilities: apsvm train --calibrate auto makes such a model")
    if calibration["method"] == "platt":
        t = calibration["slope"] * score + calibration["offset"]
        risen = 1.0 / (1.0 + math.exp(-t)) if t >= 0.0 else math.exp(t) / (1.0 + math.exp(t))
        return float(min(calibration["upper"], max(calibration["lower"], risen)))
    corners, values = calibration["scores"], calibration["probabilities"]
    at = next((number for number, corner in enumerate(corners) if corner >= score), len(corners))
    if at in (0, len(corners)):
        return float(values[0 if at == 0 else -1])
    share = (score - corners[at - 1]) / (corners[at] - corners[at - 1])
    return float(values[at - 1] + (values[at] - values[at - 1]) * share)


# What a row's features are.


def _features(row: Any) -> list[float]:
    """The numbers that are mapped and weighed."""
    if MODEL["table"] is not None:
        x: list[float] = []
        for column in MODEL["table"]:
            if column["column"] not in row:
                raise ValueError(f"the row lacks the column {column['column']!r}")
            x += _of_cell(column, row[column["column"]])
        return x
    width = MODEL["width"]
    if not isinstance(row, Mapping):
        if len(row) != width:
            raise ValueError(f"expected {width} numbers, found {len(row)}")
        return [_finite(value) for value in row]
    x = [0.0] * width
    for key, value in row.items():
        at = MODEL["names"].index(key) if key in MODEL["names"] else None
        if at is None and isinstance(key, int) and 0 <= key - MODEL["first_feature"] < width:
            at = key - MODEL["first_feature"]
        if at is None:
            raise ValueError(f"the model has no feature {key!r}")
        x[at] = _finite(value)
    return x


def _finite(value: Any) -> float:
    number = _float(value)
    if number is None or not math.isfinite(number):
        raise ValueError(f"expected finite numbers, found {value!r}")
    return number


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _of_cell(column: Any, cell: Any) -> list[float]:
    """The features of a cell."""
    cell = cell.strip() if isinstance(cell, str) else cell
    is_missing = cell is None or cell != cell or (isinstance(cell, str) and cell.lower() in MISSING_WORDS)
    if is_missing and column["kind"] != "category" and column["fill"] is None:
        raise ValueError(f"column {column['column']!r}: the cell is missing, which the model was trained to refuse")
    if column["kind"] == "category":
        x = _category(column, None if is_missing else _word(cell))
    elif column["kind"] == "date":
        days = None if is_missing else _days(column, cell)
        x = [value for part in column["parts"] for value in _of_date(part, days, column["newest"])]
        x[0] = column["fill"] if is_missing else x[0]
    else:
        x = [column["fill"] if is_missing else _number(column, cell)]
    return [*x, float(is_missing)] if column["missing"] else x


def _category(column: Any, word: str | None) -> list[float]:
    x = [float(word == one) for one in column["categories"]]
    return [*x, float(word is not None and not any(x))] if column["other"] else x


def _word(cell: Any) -> str:
    """A cell as a word: numbers as the model has them."""
    text = str(cell).lower() if isinstance(cell, bool) else str(cell)
    if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return repr(float(text) + 0.0)[:-2] if repr(float(text)).endswith(".0") else repr(float(text))
    return text


def _number(column: Any, cell: Any) -> float:
    style, number = column.get("style", ""), None
    if not isinstance(cell, str):
        number = _float(cell)
    elif cell.lower() in _TRUTH:
        number = _TRUTH[cell.lower()]
    elif style != "comma" and _NUMBER.fullmatch(cell):
        number = float(cell)
    elif style:
        number = number_of(cell, style)
    if number is None or not math.isfinite(number):
        raise ValueError(f"column {column['column']!r}: expected a number, found {cell!r}")
    return number


def _days(column: Any, cell: Any) -> float:
    """Days from the beginning of 1970."""
    days = None
    if isinstance(cell, datetime):
        moment = cell.astimezone(timezone.utc).replace(tzinfo=None) if cell.tzinfo else cell  # noqa: UP017  # 3.10 has no UTC
        days = days_of(moment.isoformat(), "ymd")
    elif isinstance(cell, time):
        days = days_of(cell.isoformat(), "time")
    elif isinstance(cell, date):
        days = days_of(cell.isoformat(), "ymd")
    elif isinstance(cell, str):
        days = days_of(cell, column["order"])
    if days is None:
        expected = EXAMPLES[column["order"]]
        raise ValueError(f"column {column['column']!r}: expected a date such as {expected}, found {cell!r}")
    return days


def _of_date(part: str, days: float | None, newest: float) -> list[float]:
    if part == "age":
        return [newest - (days or 0.0)]
    if part == "weekday":
        weekday = None if days is None else (math.floor(days) + 3) % 7  # 1970 began with a Thursday
        return [float(weekday == number) for number in range(7)]
    if days is None:
        return [0.0, 0.0]
    turned = 2.0 * math.pi * ((days / (_YEAR if part == "year" else 1.0)) % 1.0)
    return [round(math.sin(turned), 9), round(math.cos(turned), 9)]


# What the feature map makes of them: the columns that are not 0, and their values.


def _mapped(features: Any, x: Sequence[float]) -> Iterator[tuple[int, float]]:
    first = 0
    for one in features:
        columns = list(_MAPS[one["kind"]](one, x))
        yield from ((first + k, value) for k, value in columns if value)
        first += one["columns"]


def _linear(_: Any, x: Sequence[float]) -> Iterator[tuple[int, float]]:
    return enumerate(x)


def _piecewise(features: Any, x: Sequence[float]) -> Iterator[tuple[int, float]]:
    yield from enumerate(x)
    starts, knots = features["starts"], features["knots"]
    for j, value in enumerate(x):
        for k in range(starts[j], starts[j + 1]):
            q = knots[k]
            yield len(x) + k, min(0.0, value - q) if q < 0.0 else max(0.0, value - q)


def _rules(features: Any, x: Sequence[float]) -> Iterator[tuple[int, float]]:
    divisors = features["divisors"]
    for k, value in _piecewise(features, x):
        yield k, value / divisors[k]
    first = k = len(divisors)
    within = []
    for of_node, thresholds, kept in zip(features["features"], features["thresholds"], features["kept"], strict=True):
        node = 0
        while node < len(of_node):
            is_left = of_node[node] < 0 or x[of_node[node]] <= thresholds[node]
            node = 2 * node + (1 if is_left else 2)
        leaf = node - len(of_node)
        if kept[leaf]:
            within.append(k + sum(kept[:leaf]))
        k += sum(kept)
    yield from ((leaf, 1.0) for leaf in within)
    sums = features["sums"]
    for s in range(len(sums[0]) if sums else 0):
        yield k + s, math.fsum(sums[leaf - first][s] for leaf in within)


def _spline(features: Any, x: Sequence[float]) -> Iterator[tuple[int, float]]:
    starts, knots, k = features["starts"], features["knots"], 0
    for j, value in enumerate(x):
        base = knots[starts[j] : starts[j + 1]]
        columns = _splines(value, base) if base else [value]
        yield from enumerate(columns, k)
        k += len(columns)


def _splines(x: float, base: Sequence[float]) -> list[float]:
    """The cubic B-splines at x, straight lines beyond the outermost knots."""
    before, after = base[1] - base[0], base[-1] - base[-2]
    t = [*(base[0] - k * before for k in (3, 2, 1)), *base, *(base[-1] + k * after for k in (1, 2, 3))]
    inside = min(max(x, base[0]), base[-1])
    values = _b_splines(inside, t, 3, len(base))
    if inside == x:
        return values
    lower = _b_splines(inside, t, 2, len(base))
    slopes = []
    for i in range(len(values)):
        left = lower[i] / (t[i + 3] - t[i])
        slopes.append(3.0 * (left - lower[i + 1] / (t[i + 4] - t[i + 1])))
    return [value + (x - inside) * slope for value, slope in zip(values, slopes, strict=True)]


def _b_splines(x: float, t: Sequence[float], degree: int, n_base: int) -> list[float]:
    """Those of a degree at x (de Boor), of the knots t; ``n_base`` of them are within."""
    at = max(i for i in range(3, n_base + 2) if i == 3 or t[i] <= x)
    values = [float(i == at) for i in range(len(t) - 1)]
    for d in range(1, degree + 1):
        values = [
            (x - t[i]) / (t[i + d] - t[i]) * values[i] + (t[i + d + 1] - x) / (t[i + d + 1] - t[i + 1]) * values[i + 1]
            for i in range(len(values) - 1)
        ]
    return values


def _standardised(features: Any, x: Sequence[float]) -> list[float]:
    return [(value - c) / d for value, c, d in zip(x, features["centre"], features["deviation"], strict=True)]


def _products(features: Any, x: Sequence[float]) -> Iterator[tuple[int, float]]:
    z = _standardised(features, x)
    yield from enumerate([*z, *(z[i] * z[j] for i in range(len(z)) for j in range(i, len(z)))])


def _nystroem(features: Any, x: Sequence[float]) -> Iterator[tuple[int, float]]:
    z, gamma = _standardised(features, x), features["gamma"][0]
    kernel = [
        math.exp(-gamma * math.fsum((a - b) * (a - b) for a, b in zip(z, landmark, strict=True)))
        for landmark in features["landmarks"]
    ]
    for k, row in enumerate(features["normalisation"]):
        yield k, math.fsum(a * b for a, b in zip(row, kernel, strict=True))


_MAPS = {
    "linear": _linear,
    "piecewise": _piecewise,
    "rules": _rules,
    "spline": _spline,
    "products": _products,
    "nystroem": _nystroem,
}
