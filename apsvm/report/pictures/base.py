"""Base class of pictures, which render data as PNG or SVG."""

from __future__ import annotations

import io
import os
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING

from apsvm._support.files import write_whole
from apsvm.report.pictures.style import PAGE, Size, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
#: Control characters, most of which XML 1.0 forbids, and bytes of file names that are not UTF-8.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class PictureError(ValueError):
    """Data that cannot be drawn; the message names what was expected and found."""


@contextmanager
def as_written_by_train() -> Iterator[None]:
    """Turns a KeyError or TypeError of its block, of a missing or malformed field of a record, into a PictureError."""
    try:
        yield
    except (KeyError, TypeError) as error:
        raise PictureError(f"a record is not as apsvm train writes it: {error!r}") from None


class Picture(ABC):
    """Data to be drawn."""

    @abstractmethod
    def height(self, size: Size) -> float:
        """Height in inches at this size."""

    @abstractmethod
    def draw(self, figure: Figure, size: Size) -> None:
        """Draws into the empty ``figure``."""

    def render(self, format: str, size: Size = PAGE) -> bytes:
        """The picture as ``png`` or ``svg``; the same bytes every time.

        Raises
        ------
        PictureError : another format
        MissingMatplotlibError : (an ImportError) the extra ``plot`` is not installed
        """
        if format not in FORMATS:
            raise PictureError(f"expected a picture as {' or '.join(FORMATS)}, found {format!r}")
        import numpy as np

        # Axes near the limits of float64 overflow; they are drawn all the same.
        with settings(), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            from matplotlib.figure import Figure
            from matplotlib.text import Text

            figure = Figure(figsize=(size.width, self.height(size)), layout="constrained")
            self.draw(figure, size)
            for text in figure.findobj(Text):
                text.set_text(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text.get_text()))
            stream = io.BytesIO()
            figure.savefig(stream, format=format, metadata={"Software": None} if format == "png" else {"Date": None})
        return stream.getvalue()

    def save(self, path: str | os.PathLike[str], size: Size = PAGE) -> None:
        """Writes the picture whole or not at all, in the format that the name ends in; raises as ``render``, and
        OSError."""
        write_whole(path, self.render(format_of(path), size))


def format_of(path: str | os.PathLike[str]) -> str:
    """``png`` or ``svg``, by the name's end. Raises PictureError."""
    result = PurePath(path).suffix.lower().removeprefix(".")
    if result not in FORMATS:
        raise PictureError(f"{os.fspath(path)}: expected a name that ends in .png or .svg")
    return result
