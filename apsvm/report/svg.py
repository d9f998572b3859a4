"""Charts as ``<svg>`` elements of the page: lines, steps, areas and a map of colours over one pair of axes.

Colours are the page's CSS variables, so that the page chooses them by its scheme; text is text. The same chart is the
same bytes, whatever is installed. A line of a million points is thinned out to what its pixels can show.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apsvm.report.page import Markup, element, joined
from apsvm.report.pictures.style import number

SERIES_COLOURS = 8
WIDTH, PLOT_HEIGHT = 400.0, 200.0
TOP, RIGHT, BELOW_AXIS, LETTER, LEGEND_LINE = 10.0, 12.0, 38.0, 5.9, 15.0
#: Dash patterns: they go round where the colours have gone round.
DASHES = ("", "7 3", "2 2.5", "8 3 2 3")
LOWER_BOUND, LEVEL = "4 3", "1.5 2.5"
#: Fewer points than this are marked.
MARKED = 25
#: Columns that a line is thinned out to.
COLUMNS = 800
#: An axis holds no more: its ends must have a difference.
LARGEST = 1e300
#: Powers of ten that are numbers.
LOWEST_POWER, HIGHEST_POWER = -307.0, 307.0
#: ColorBrewer's YlOrRd, low to high.
HEAT = ("ffffcc", "ffeda0", "fed976", "feb24c", "fd8d3c", "fc4e2a", "e31a1c", "bd0026", "800026")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart.

    Attributes
    ----------
    name : for the legend; empty: none
    x, y : (n,) each; where y is NaN the line is broken
    colour : its number, from 0; None: muted
    dash : a dash pattern of SVG; None: as the number of the colour has it
    steps : "before": y holds from the x before to this one; "edges": x are n + 1 edges
    filled : down to 0, lightly
    marked : each point, where there are few
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    colour: int | None = 0
    dash: str | None = None
    steps: Literal["none", "before", "edges"] = "none"
    filled: bool = False
    width: float = 1.6
    marked: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap:
    """values : (rows, columns) integers 1..most, the first row on top; x_end, y_end : what the axes, from 1, end at"""

    values: NDArray[np.int64]
    most: int
    x_end: float
    y_end: float


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn.

    Attributes
    ----------
    x_limits, y_limits : ends of the axes; None: as the lines need
    level : name and value of a dotted horizontal line
    percent : y is a share, written in percent
    """

    lines: Sequence[Line]
    x_label: str = ""
    y_label: str = ""
    title: str = ""
    logarithmic_x: bool = False
    logarithmic_y: bool = False
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    x_from_zero: bool = False
    y_from_zero: bool = False
    whole_x: bool = False
    percent: bool = False
    level: tuple[str, float] | None = None
    heat: HeatMap | None = None


def drawn(chart: Chart, caption: str) -> tuple[Markup, str]:
    """The chart and the words under it (``page.pictures``)."""
    return svg(chart, caption), caption


def svg(chart: Chart, description: str) -> Markup:
    """The chart as an element as wide as its place, whose description screens readers say."""
    points = [_points(line) for line in chart.lines]
    x, y = _axes(chart, points)
    left = 26.0 + LETTER * max((len(text) for _, text in y.ticks), default=1)
    x, y = x.onto(left, WIDTH - RIGHT), y.onto(TOP + PLOT_HEIGHT, TOP)
    below = TOP + PLOT_HEIGHT + BELOW_AXIS
    legend, height = _legend(_named(chart), below)
    content = [
        *_frame(chart, x, y, left),
        *([] if chart.heat is None else [_image(chart.heat, x, y)]),
        *([] if chart.level is None else [_level(chart.level[1], x, y)]),
        *(_drawn(line, *_shown(at, x, y), y) for line, at in zip(chart.lines, points, strict=True)),
        *legend,
    ]
    return element(
        "svg", *content, viewBox=f"0 0 {WIDTH:g} {height:g}", role="img", class_="picture", aria_label=description
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    """low < high : its ends, of a logarithmic axis their logarithms; ticks : value and text; begin, end : in pixels"""

    low: float
    high: float
    logarithmic: bool
    ticks: Sequence[tuple[float, str]]
    begin: float = 0.0
    end: float = 1.0

    def onto(self, begin: float, end: float) -> _Axis:
        return _Axis(self.low, self.high, self.logarithmic, self.ticks, begin, end)

    def place(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            values = np.log10(values) if self.logarithmic else values
            # Halves, as the whole width may be beyond the largest number.
            share = (values / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return self.begin + np.clip(share, 0.0, 1.0) * (self.end - self.begin)

    def place_of(self, value: float) -> float:
        return float(self.place(np.array([value]))[0])


def _points(line: Line) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The corners of a line."""
    x = np.clip(np.asarray(line.x, dtype=np.float64), -LARGEST, LARGEST)
    y = np.clip(np.asarray(line.y, dtype=np.float64), -LARGEST, LARGEST)
    if line.steps == "before" and x.size:
        return np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]
    if line.steps == "edges":
        return np.repeat(x, 2), np.concatenate([[0.0], np.repeat(y, 2), [0.0]])
    return x, y


def _axes(chart: Chart, points: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> tuple[_Axis, _Axis]:
    x_limits, y_limits = chart.x_limits, chart.y_limits
    if chart.heat is not None:
        x_limits, y_limits = (0.5, chart.heat.x_end + 0.5), (chart.heat.y_end + 0.5, 0.5)
    x = _axis([x for x, _ in points], x_limits, chart.logarithmic_x, chart.x_from_zero, whole=chart.whole_x, most=6)
    values = [y for _, y in points]
    if chart.level is not None:
        values.append(np.array([chart.level[1]]))
    whole = chart.heat is not None
    y = _axis(values, y_limits, chart.logarithmic_y, chart.y_from_zero, whole=whole, most=6, percent=chart.percent)
    return x, y


def _axis(
    values: Sequence[NDArray[np.float64]],
    limits: tuple[float, float] | None,
    logarithmic: bool,
    from_zero: bool,
    *,
    whole: bool,
    most: int,
    percent: bool = False,
) -> _Axis:
    if limits is None:
        every = np.concatenate([*values, np.zeros(0)])
        every = every[np.isfinite(every) & ((every > 0) | (not logarithmic))]
        every = np.log10(every) if logarithmic else every
        low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
        low = min(low, 0.0) if from_zero else low
        if high / 2 - low / 2 <= 1e-12 * max(abs(low), abs(high), 1e-300):
            around = 0.5 if logarithmic else 0.5 * (abs(high) or 1.0)
            low, high = (low if from_zero else low - around), high + around
        elif not whole:
            margin = 0.04 * (high / 2 - low / 2) * 2
            low, high = low if from_zero and low == 0.0 else low - margin, high + margin
    else:
        low, high = (math.log10(end) for end in limits) if logarithmic else limits
    if logarithmic:
        ticks = [(value, number(value)) for value in _powers(low, high, most)]
    else:
        ticks = [
            (value, f"{100 * value:g}%" if percent else number(value))
            for value in _round_values(min(low, high), max(low, high), most, whole=whole)
        ]
    return _Axis(low, high, logarithmic, ticks)


def _round_values(low: float, high: float, most: int, *, whole: bool) -> list[float]:
    """At most ``most`` multiples of 1, 2 or 5 times a power of ten from low to high."""
    width = (high / most - low / most) or 1.0
    power = 10.0 ** math.floor(math.log10(width))
    step = next((factor * power for factor in (1, 2, 5) if factor * power >= width), 10 * power)
    step = max(step, 1.0) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{at * step:.12g}") for at in range(first, last + 1)]


def _powers(low: float, high: float, most: int) -> list[float]:
    """Powers of ten between 10^low and 10^high, or where these are few, 2 and 5 times them as well."""
    low, high = max(low, LOWEST_POWER), min(high, HIGHEST_POWER)
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if high - low < 1.5:
        every = [
            factor * 10.0**power for power in range(math.floor(low), last + 1) for factor in (1, 2, 5)
            if low - 1e-9 <= power + math.log10(factor) <= high + 1e-9
        ]  # fmt: skip
        if len(every) > 1:
            return every
        return every or [10.0**low, 10.0**high]
    stride = -(-(last - first + 1) // most)
    return [10.0**power for power in range(first, last + 1, stride)]


def _shown(
    points: tuple[NDArray[np.float64], NDArray[np.float64]], x: _Axis, y: _Axis
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Corners in pixels, NaN where the line is broken; of each column of pixels the first, the least, the greatest and
    the last, in their order."""
    at_x, at_y = x.place(points[0]), y.place(points[1])
    if at_x.size <= 4 * COLUMNS:
        return at_x, at_y
    column = np.floor(at_x * (COLUMNS / WIDTH))
    begins = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))
    ends = np.concatenate([begins[1:], [at_x.size]])
    if begins.size > 4 * COLUMNS:  # it goes to and fro
        begins = begins[np.linspace(0, begins.size - 1, 4 * COLUMNS).astype(np.int64)]
        return at_x[begins], at_y[begins]
    kept: list[int] = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        part = at_y[begin:end]
        known = np.nan_to_num(part, nan=float(np.nanmean(part)) if not np.isnan(part).all() else 0.0)
        kept += sorted({begin, begin + int(known.argmin()), begin + int(known.argmax()), end - 1})
    return at_x[kept], at_y[kept]


def _drawn(line: Line, x: NDArray[np.float64], y: NDArray[np.float64], axis: _Axis) -> Markup:
    colour = _colour(line.colour)
    path = _path(x, y)
    parts: list[Markup] = []
    if line.filled and x.size:
        parts.append(element("path", d=f"{path}L{_coordinates(x[-1], axis.begin)}Z", fill=colour, opacity="0.25"))
    look = {"fill": "none", "stroke": colour, "stroke_width": f"{line.width:g}", "stroke_linejoin": "round"}
    dash = _dash(line)
    parts.append(element("path", d=path, **look, **({"stroke_dasharray": dash} if dash else {})))
    if line.marked and x.size < MARKED:
        dots = "".join(f"M{_coordinates(a, b)}h0" for a, b in zip(x, y, strict=True) if not math.isnan(b))
        parts.append(element("path", d=dots, fill="none", stroke=colour, stroke_width="4", stroke_linecap="round"))
    return joined(parts)


def _path(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    parts: list[str] = []
    broken = True
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if math.isnan(b) or math.isnan(a):
            broken = True
            continue
        parts.append(f"{'M' if broken else 'L'}{_coordinates(a, b)}")
        broken = False
    return "".join(parts)


def _coordinates(x: float, y: float) -> str:
    return f"{round(x, 2):g} {round(y, 2):g}"


def _colour(at: int | None) -> str:
    return "var(--muted)" if at is None else f"var(--series-{at % SERIES_COLOURS + 1})"


def _dash(line: Line) -> str:
    if line.dash is not None:
        return line.dash
    return "" if line.colour is None else DASHES[line.colour // SERIES_COLOURS % len(DASHES)]


def _stroke(x1: float, y1: float, x2: float, y2: float, **attributes: str) -> Markup:
    return element("path", d=f"M{_coordinates(x1, y1)}L{_coordinates(x2, y2)}", fill="none", **attributes)


def _text(x: float, y: float, content: str, **attributes: str) -> Markup:
    return element("text", content, x=f"{round(x, 2):g}", y=f"{round(y, 2):g}", **attributes)


def _frame(chart: Chart, x: _Axis, y: _Axis, left: float) -> Iterator[Markup]:
    """Grid, ticks, their values and what the axes are."""
    bottom, right = TOP + PLOT_HEIGHT, WIDTH - RIGHT
    for value, text in y.ticks:
        at = y.place_of(value)
        if chart.heat is None:
            yield _stroke(left, at, right, at, stroke="var(--grid)")
        yield _text(left - 5, at + 4, text, text_anchor="end")
    for at, text in _with_room([(x.place_of(value), text) for value, text in x.ticks]):
        if chart.heat is None:
            yield _stroke(at, TOP, at, bottom, stroke="var(--grid)")
        yield _text(at, bottom + 15, text, text_anchor="middle")
    yield _stroke(left, bottom, right, bottom, stroke="var(--muted)")
    yield _stroke(left, TOP, left, bottom, stroke="var(--muted)")
    yield _text((left + right) / 2, bottom + 31, chart.x_label, text_anchor="middle")
    middle = TOP + PLOT_HEIGHT / 2
    yield _text(11, middle, chart.y_label, text_anchor="middle", transform=f"rotate(-90 11 {middle:g})")
    if chart.title:
        yield _text((left + right) / 2, TOP + 2, chart.title, text_anchor="middle", font_weight="600")


def _with_room(ticks: Sequence[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """Those whose texts do not touch the one before."""
    end = -math.inf
    for at, text in ticks:
        half = LETTER * len(text) / 2 + 3
        if at - half >= end:
            end = at + half
            yield at, text


def _level(value: float, x: _Axis, y: _Axis) -> Markup:
    at = y.place_of(value)
    return _stroke(x.begin, at, x.end, at, stroke="var(--muted)", stroke_dasharray=LEVEL, stroke_width="1.2")


def _named(chart: Chart) -> list[tuple[str, str, str]]:
    """What the legend names: name, colour and dash pattern, each name once."""
    result = {line.name: (_colour(line.colour), _dash(line)) for line in reversed(chart.lines) if line.name}
    entries = [(name, *look) for name, look in reversed(result.items())]
    if chart.level is not None:
        entries.append((chart.level[0], _colour(None), LEVEL))
    return entries


def _legend(entries: Sequence[tuple[str, str, str]], begin: float) -> tuple[list[Markup], float]:
    """Below the axes, as many entries a line as there is room for; and where all ends."""
    parts: list[Markup] = []
    x, y = 8.0, begin + 9.0
    for name, colour, dash in entries:
        width = 26 + LETTER * len(name) + 14
        if x > 8.0 and x + width > WIDTH:
            x, y = 8.0, y + LEGEND_LINE
        look = {"stroke": colour, "stroke_width": "2", **({"stroke_dasharray": dash} if dash else {})}
        parts += [_stroke(x, y - 4, x + 20, y - 4, **look), _text(x + 25, y, name)]
        x += width
    return parts, y + 6 if entries else begin


def _image(heat: HeatMap, x: _Axis, y: _Axis) -> Markup:
    colours = np.array([[int(colour[at : at + 2], 16) for at in (0, 2, 4)] for colour in HEAT], dtype=np.float64)
    share = np.linspace(0.0, len(HEAT) - 1.0, 256)
    palette = np.stack([np.interp(share, np.arange(len(HEAT)), colours[:, part]) for part in range(3)], axis=1)
    pixels = np.round((heat.values - 1) * (255.0 / max(1, heat.most - 1))).astype(np.uint8)
    data = base64.b64encode(png(pixels, np.round(palette).astype(np.uint8))).decode()
    return element(
        "image", x=f"{x.begin:g}", y=f"{TOP:g}", width=f"{x.end - x.begin:g}", height=f"{PLOT_HEIGHT:g}",
        preserveAspectRatio="none", style="image-rendering:pixelated", href=f"data:image/png;base64,{data}",
    )  # fmt: skip


def png(pixels: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """A PNG file of pixels (rows, columns) that index the palette (256, 3)."""
    rows, columns = pixels.shape
    lines = np.concatenate([np.zeros((rows, 1), dtype=np.uint8), pixels], axis=1)  # 0: as they are

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    header = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [
            chunk(b"IHDR", header),
            chunk(b"PLTE", palette.tobytes()),
            chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
            chunk(b"IEND", b""),
        ]
    )
