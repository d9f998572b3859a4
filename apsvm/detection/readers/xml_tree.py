"""A small XML file as a tree with line numbers. It refuses files that could expand: with a document type (which may
declare entities), above one megabyte, or with deeply nested elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

from apsvm.data.dataset import DataError

MOST_BYTES = 1_000_000
_DEEPEST = 30


@dataclass(slots=True)
class Element:
    """tag : its name; line : where it starts, from 1; text : before the first child; children : in their order"""

    tag: str
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, tag: str) -> list[Element]:
        """The children of this name."""
        return [child for child in self.children if child.tag == tag]

    def one(self, tag: str) -> Element | None:
        """The first child of this name, None if there is none."""
        return next((child for child in self.children if child.tag == tag), None)


def read_xml(path: str) -> Element:
    """Root element of an XML file. Raises DataError with the line of the fault, OSError."""
    with open(path, "rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DataError(f"{path}: expected an annotation of at most {MOST_BYTES} bytes, found more")
    return _Builder(path).build(content)


class _Builder:
    """Builds the tree of elements from the parser's events."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._document = Element("", 0)
        self._open = [self._document]

    def build(self, content: bytes) -> Element:
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            raise DataError(f"{self._path}:{error.lineno}: not XML: {expat.ErrorString(error.code)}") from None
        except (LookupError, ValueError) as error:  # DataError is a ValueError
            if isinstance(error, DataError):
                raise
            raise DataError(f"{self._path}: not XML: {error}") from None
        return self._document.children[0]

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) > _DEEPEST:
            raise DataError(f"{self._here}: expected elements at most {_DEEPEST} deep, found <{tag}> in deeper ones")
        element = Element(tag, self._parser.CurrentLineNumber)
        self._open[-1].children.append(element)
        self._open.append(element)

    def _end(self, tag: str) -> None:
        self._open.pop()

    def _characters(self, text: str) -> None:
        if not self._open[-1].children:
            self._open[-1].text += text

    def _doctype(self, name: str, *_: object) -> None:
        raise DataError(f"{self._here}: expected no document type or entities, found <!DOCTYPE {name}")

    @property
    def _here(self) -> str:
        return f"{self._path}:{self._parser.CurrentLineNumber}"
