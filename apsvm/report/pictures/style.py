"""Style of all pictures: sizes, colours safe for the colour-blind, thin grids, reproducible bytes.

The colours are those of Okabe and Ito (2008), without the yellow, which is hard to see on white. SVG keeps text as
text, uses a fixed salt for identifiers and has no date: the same picture has the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from apsvm._support.types import JsonDict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK = "#1f2430"
MUTED = "#626a78"
GRID = "#dfe2e8"
PAPER = "#ffffff"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#6b6f76")
#: Dash patterns, in line widths; the next one starts when the colours repeat.
DASHES = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
#: Colours from low to high; the highest is the deepest red.
HEAT = "YlOrRd"
#: Colours from below 0 to above.
DIVERGING = "RdBu_r"


@dataclass(frozen=True, slots=True)
class Size:
    """width : inches"""

    name: str
    width: float


#: Size of text, in points.
FONT = 9.0
#: Full width of a page or screen.
PAGE = Size("page", 7.2)


class MissingMatplotlibError(ImportError):
    """The extra ``plot`` is not installed."""

    def __init__(self) -> None:
        super().__init__("drawing needs matplotlib, which is not installed: pip install 'apsvm[plot]'")


@contextmanager
def settings() -> Iterator[None]:
    """Sets matplotlib up for a picture, and restores it afterwards.

    Raises
    ------
    MissingMatplotlibError : (an ImportError) matplotlib is not installed
    """
    try:
        import matplotlib
    except ImportError:
        raise MissingMatplotlibError from None
    wanted: Any = {
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
        "font.size": FONT,
        "axes.titlesize": FONT,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelsize": FONT,
        "xtick.labelsize": FONT - 1,
        "ytick.labelsize": FONT - 1,
        "legend.fontsize": FONT - 1,
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "text.color": INK,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.formatter.useoffset": False,
        "grid.color": GRID,
        "grid.linewidth": 0.5,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "lines.linewidth": 1.4,
        "legend.frameon": False,
        "savefig.dpi": 150,
        "svg.fonttype": "none",
        "svg.hashsalt": "apsvm",
        "text.parse_math": False,
    }
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # ignore the user's settings: the same picture everywhere
        matplotlib.rcParams.update(wanted)
        yield


def colour(at: int) -> str:
    """Colour of series ``at``, counted from 0."""
    return SERIES[at % len(SERIES)]


def dash(at: int) -> str | tuple[int, tuple[float, ...]]:
    """Dash pattern of series ``at``; solid in the first round of colours."""
    return DASHES[at // len(SERIES) % len(DASHES)]


def legend_below(figure: Figure, size: Size, *panels: Axes) -> None:
    """Draws one legend below the panels, if they have named lines; each name appears once."""
    handles: JsonDict = {}
    for axes in panels:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    if handles:
        # In widths of an m: a letter, and the line and space around a name.
        widest = (FONT - 1) * (0.58 * max(map(len, handles)) + 4.8)
        fits = max(1, int(size.width * 72 / widest))
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside lower center",
            ncols=min(fits, len(handles)),
        )


def whole_numbers(axis: Axis) -> None:
    """Puts ticks at whole, round numbers only."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, nbins="auto", steps=[1, 2, 5, 10], min_n_ticks=1))
    axis.set_major_formatter(FuncFormatter(lambda value, place: number(value)))


def few_ticks(axis: Axis) -> None:
    """Puts few enough ticks on the axis that their labels do not touch."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, place: number(round(value, 12))))


def powers(axis: Axis) -> None:
    """Writes out the ticks of a logarithmic axis that has been drawn on: 0.01, 1, 1,000."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 30 * low:  # it holds hardly a power of ten
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, place: number(value)))
    axis.set_minor_formatter(NullFormatter())


def number(value: float) -> str:
    """``value`` as text on an axis: 1e-05, 0.01, 1, 10,000, 1e+06."""
    return f"{value:,.0f}" if 1.0 <= abs(value) < 1e6 and value == round(value) else f"{value:g}"
