"""Style of all pictures: colours safe for the colour-blind, thin grids, reproducible bytes.

The colours are those of Okabe and Ito (2008), without the yellow, which is hard to see on white. SVG keeps text as
text, uses a fixed salt for identifiers and has no date: the same picture has the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from apsvm._support.types import JsonDict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

MUTED = "#626a78"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#6b6f76")
#: Dash patterns, in line widths; the next one starts when the colours repeat.
DASHES = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
DOTTED = (0, (1, 2))
#: Size of text in points, and full width of a page in inches.
FONT, PAGE = 9.0, 7.2


class MissingMatplotlibError(ImportError):
    """The extra ``plot`` is not installed."""

    def __init__(self) -> None:
        super().__init__("drawing needs matplotlib, which is not installed: pip install 'apsvm[plot]'")


@contextmanager
def style() -> Iterator[None]:
    """Sets matplotlib up for a picture, without the user's settings, and restores it afterwards.

    Raises
    ------
    MissingMatplotlibError : (an ImportError) matplotlib is not installed
    """
    try:
        import matplotlib
        from matplotlib.rcsetup import cycler
    except ImportError:
        raise MissingMatplotlibError from None
    parameters: Any = {
        "font.size": FONT,
        "axes.titlesize": "medium",
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.edgecolor": MUTED,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.formatter.useoffset": False,
        "axes.linewidth": 0.6,
        "axes.prop_cycle": cycler(linestyle=DASHES) * cycler(color=SERIES),
        "grid.color": "#dfe2e8",
        "grid.linewidth": 0.5,
        "lines.linewidth": 1.4,
        "legend.frameon": False,
        "savefig.dpi": 150,
        "svg.fonttype": "none",
        "svg.hashsalt": "apsvm",
        "text.parse_math": False,
    }
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(parameters)
        yield


def legend_below(figure: Figure, width: float, *panels: Axes) -> None:
    """Draws one legend below the panels, if they have named lines; each name appears once."""
    handles: JsonDict = {}
    for axes in panels:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    if handles:
        widest = FONT * (0.58 * max(map(len, handles)) + 4.8)  # with the line before the name
        columns = min(len(handles), max(1, int(72 * width / widest)))
        figure.legend([*handles.values()], [*handles], loc="outside lower center", ncols=columns)


def few_ticks(axis: Axis, *, whole: bool = False) -> None:
    """Puts ticks at a few round numbers, or at ``whole`` ones only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10], integer=whole, min_n_ticks=1))
    axis.set_major_formatter(lambda value, place: number(round(value, 12)))


def powers(axis: Axis) -> None:
    """Writes out the ticks of a logarithmic axis that has been drawn on: 0.01, 1, 1,000."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 30 * low:  # it holds hardly a power of ten
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(lambda value, place: number(value))
    axis.set_minor_formatter(NullFormatter())


def number(value: float) -> str:
    """``value`` as text on an axis: 1e-05, 0.01, 1, 10,000, 1e+06."""
    return f"{value:,.0f}" if 1.0 <= abs(value) < 1e6 and value == round(value) else f"{value:g}"
