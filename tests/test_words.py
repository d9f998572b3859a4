"""Plain words: texts have no phrase that circles what it means, and code no name that does not say what it holds.

``python tests/test_words.py`` prints every place; with folders or files as arguments, theirs.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Name the number, the person, the case, the result: "nobody reads it" → "it is not read".
PHRASES = (
    "so many", "nobody", "somebody", "whoever", "what there is", "but for", "became of", "as of ``",
    "is asked", "are asked", "was asked", "were asked",
)  # fmt: skip
#: Variables, parameters, attributes and functions say what they hold: settings, options, default, message.
NAMES = frozenset({"asked", "given", "known", "said", "told"})
#: What is looked at: texts for the phrases, Python for the names too.
TEXTS = (
    "apsvm/**/*.py", "apsvm/**/*.pyi", "apsvm/**/*.[ch]pp", "README.md", "CONTRIBUTING.md", "SECURITY.md",
    "CHANGELOG.md", "docs/**/*.md", "examples/*", "configs/*", "scripts/**/*",
)  # fmt: skip

# A phrase may go on in the next line, after the sign of a comment.
_GAP = r"[\s#:/*]+"
_PHRASE = re.compile(
    "|".join(rf"\b{_GAP.join(map(re.escape, phrase.split()))}" + r"\b" * phrase[-1].isalnum() for phrase in PHRASES),
    re.IGNORECASE,
)

# A name that is assigned, a parameter or a function; what only looks like one is told apart by the syntax tree.
_NAME = re.compile(rf"\b_?({'|'.join(sorted(NAMES))})\b(\s*[=:,()]| in\b)")


def phrases_in(text: str) -> Iterator[tuple[int, str]]:
    """Line and phrase."""
    for match in _PHRASE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, re.sub(_GAP, " ", match[0]).lower()


def names_in(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of everything that Python source gives one of the names."""
    if not _NAME.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        else:
            continue
        if name.strip("_") in NAMES:
            yield node.lineno, f"the name {name}"


def places() -> Iterator[tuple[str, int, str]]:
    """File, line, and what stands there."""
    for path in sorted({path for pattern in TEXTS for path in ROOT.glob(pattern) if path.is_file()}):
        name = path.relative_to(ROOT).as_posix()
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # data
        for line, words in [*phrases_in(text), *(names_in(text) if path.suffix == ".py" else ())]:
            yield name, line, words


def within(name: str, folders: tuple[str, ...]) -> bool:
    return any(name == folder or name.startswith(folder.rstrip("/") + "/") for folder in folders)


def test_words_are_plain():
    assert [f"{name}:{line}: {words}" for name, line, words in places()] == []


def test_what_is_found():
    assert list(phrases_in("As many.\n#: But\n#: for this, Nobody, see ``x`` as of ``y``; nobodyelse")) == [
        (2, "but for"),
        (3, "nobody"),
        (3, "as of ``"),
    ]
    assert sorted(names_in("def f(given, other): _said = given.known\nself.told: int = 1")) == [
        (1, "the name _said"),
        (1, "the name given"),
        (2, "the name told"),
    ]


if __name__ == "__main__":
    for name, line, words in places():
        if len(sys.argv) == 1 or within(name, tuple(sys.argv[1:])):
            print(f"{name}:{line}: {words}")  # noqa: T201
