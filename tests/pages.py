"""A page of the documentation is followed from its first block to its last, as a reader would type it."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from apsvm.cli import run

ROOT = Path(__file__).parents[1]
#: What a reader has done already.
SETTING_UP = ("pip ", "cd ", "git ", "scripts/", "source ")
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w])")
#: Of a row in a list: its score, which stands behind its name, and what a feature gave to it.
SCORES = re.compile(r"(?<=^\S{6})\s+-?\d+\.?\d*(?=\s)|\s\([+-][\d.e+]+\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language and its lines."""

    language: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [Block(language, text) for language, text in blocks]


def follow(page: Path, folder: Path, capfd: pytest.CaptureFixture[str]) -> int:
    """Runs the blocks of ``page`` in ``folder``, in which the files of examples/ lie, and returns how many ran.

    Lines below a command, and a block of text below Python, are what is printed, in this order; "…" stands for lines
    that are left out, numbers may differ by 2 % (other versions of the libraries round in another order), and scores
    and what features gave to them by more: a ranking has no scale, and the tight bound several stationary points.
    """
    for file in (ROOT / "examples").iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    names: dict[str, object] = {}
    printed, ran = "", 0
    for block in blocks_of(page):
        if block.language == "python":
            exec(compile(block.text, str(page), "exec"), names)
            printed = capfd.readouterr().out
        elif block.language == "text":
            assert_printed(block.text.splitlines(), printed)
        elif block.language == "console":
            for command, lines in _commands(block.text):
                if not command.startswith(SETTING_UP):
                    assert_printed(lines, _of_command(command, capfd))
        ran += block.language in ("python", "console")
    return ran


def _commands(text: str) -> list[tuple[str, list[str]]]:
    parts = re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]
    return [
        (head.partition(" #")[0].strip(), rest.splitlines()) for head, _, rest in (p.partition("\n") for p in parts)
    ]


def _of_command(command: str, capfd: pytest.CaptureFixture[str]) -> str:
    program, *arguments = shlex.split(command)
    assert program == "apsvm", command
    code = run(arguments)
    printed = capfd.readouterr()
    assert code == 0, f"{command}: {code}\n{printed.err}"
    return printed.err + printed.out


def assert_printed(expected: list[str], printed: str) -> None:
    rest = printed.splitlines()
    for line in expected:
        if line.strip() in ("…", ""):
            continue
        at = next((at for at, said in enumerate(rest) if is_like(line, said)), None)
        assert at is not None, f"{line!r} is not in\n" + "\n".join(rest)
        rest = rest[at + 1 :]


def is_like(expected: str, said: str) -> bool:
    """Equal words and near numbers; an expected line that ends in "…" is the beginning of what was said."""
    if "(+" in expected:
        expected, said = SCORES.sub("", expected), SCORES.sub("", said)
    expected, open_end = expected.removesuffix("…"), expected.endswith("…")
    words, other = NUMBER.sub("#", expected).split(), NUMBER.sub("#", said).split()
    if not (other[: len(words)] == words if open_end else other == words):
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(said), strict=False)
    return all(abs(float(a) - float(b)) <= 0.02 * max(abs(float(a)), abs(float(b)), 0.01) for a, b in pairs)
