"""The pictures of ``apsvm plot`` as elements of the page: matplotlib's SVG, in the page's colours."""

from __future__ import annotations

import re
import zlib

from apsvm.report.page import Markup, element
from apsvm.report.pictures.base import Picture
from apsvm.report.pictures.style import GRID, INK, MUTED, PAPER, SERIES, MissingMatplotlibError, Size

#: Pictures of half the page's width, and of its whole width.
HALF = Size("half", 4.8)
WHOLE = Size("whole", 9.6)
_VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid", PAPER: "paper"}
_VARIABLES |= {colour: f"series-{at + 1}" for at, colour in enumerate(SERIES)}
_COLOUR = re.compile("|".join(_VARIABLES))
#: Identifiers and references to them; a prefix keeps those of different pictures apart.
_IDENTIFIER = re.compile(r'(\bid="|url\(#|href="#)')


def drawn(picture: Picture, caption: str, size: Size = HALF) -> tuple[Markup, str]:
    """The picture and the words under it (``page.pictures``); without matplotlib a sentence in its place."""
    try:
        text = picture.render("svg", size).decode()
    except MissingMatplotlibError:
        return element("p", "Pictures are drawn by matplotlib: pip install 'apsvm[plot]'", class_="muted"), caption
    return Markup(_of_page(text, caption, size)), caption


def _of_page(text: str, caption: str, size: Size) -> str:
    """The ``svg`` element of a file, without size and metadata; ``caption`` is its text for screen readers."""
    view = re.search(r'viewBox="([^"]*)"', text)
    assert view is not None
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = _COLOUR.sub(lambda match: f"var(--{_VARIABLES[match[0]]})", body)
    prefix = f"p{zlib.crc32(text.encode()):08x}-"
    body = _IDENTIFIER.sub(lambda match: match[1] + prefix, body.replace("xlink:href", "href"))
    return element("svg", Markup(body), viewBox=view[1], role="img", class_=f"picture {size.name}", aria_label=caption)
