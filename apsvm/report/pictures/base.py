"""Base class of pictures, which render data as PNG or SVG."""

from __future__ import annotations

import io
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING

from apsvm._support.files import write_whole
from apsvm._support.shown import printable_lines
from apsvm.report.pictures.style import PAGE, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")


class PictureError(ValueError):
    """Data that cannot be drawn; the message names what was expected and found."""


@contextmanager
def as_written_by_train() -> Iterator[None]:
    """Turns the KeyError or TypeError of a missing or malformed field of a record into a PictureError."""
    try:
        yield
    except (KeyError, TypeError) as error:
        raise PictureError(f"a record is not as apsvm train writes it: {error!r}") from None


class Picture(ABC):
    """Data to be drawn. A subclass is a dataclass of them. Widths and heights are in inches."""

    def height(self, width: float) -> float:
        """Height of a picture of this width."""
        return 0.6 * width

    @abstractmethod
    def draw(self, figure: Figure, width: float) -> None:
        """Draws into the empty ``figure`` of this width."""

    def render(self, format: str, width: float = PAGE) -> bytes:
        """The picture as ``png`` or ``svg``; the same bytes every time.

        Raises
        ------
        MissingMatplotlibError : (an ImportError) the extra ``plot`` is not installed
        """
        import numpy as np

        # Axes near the limits of float64 overflow; they are drawn all the same.
        with style(), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            from matplotlib.figure import Figure
            from matplotlib.text import Text

            figure = Figure(figsize=(width, self.height(width)), layout="constrained")
            self.draw(figure, width)
            for text in figure.findobj(Text):
                text.set_text(printable_lines(text.get_text()))
            stream = io.BytesIO()
            figure.savefig(stream, format=format, metadata={"Software": None} if format == "png" else {"Date": None})
        return stream.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture whole or not at all, in the format that the name ends in.

        Raises
        ------
        PictureError : the name ends in neither .png nor .svg
        MissingMatplotlibError : (an ImportError) the extra ``plot`` is not installed
        OSError : the file cannot be written
        """
        write_whole(path, self.render(format_of(path)))


def format_of(path: str | os.PathLike[str]) -> str:
    """``png`` or ``svg``, by the name's end. Raises PictureError."""
    result = PurePath(path).suffix.lower().removeprefix(".")
    if result not in FORMATS:
        raise PictureError(f"{os.fspath(path)}: expected a name that ends in .png or .svg")
    return result
