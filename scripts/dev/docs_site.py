"""Puts the pages of the site together in a folder and has mkdocs build them. ``scripts/dev/docs`` runs it.

The pages are those of docs/, README.md as the first, CONTRIBUTING.md, CHANGELOG.md, and those that are made here: every
command with its options, from what ``--help`` prints; every public class and function, from its docstring; and the
gallery, from the scripts of examples/.
"""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

import apsvm
from apsvm.cli import program

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "docs"
MKDOCS = Path(sys.prefix) / "docs" / "bin" / "mkdocs"


def moved(text: str) -> str:
    """The text of a page of the repository's top folder or of docs/, its links as they are within the site."""
    text = text.replace("](../examples/README.md)", "](examples.md)").replace("](examples/README.md)", "](examples.md)")
    text = re.sub(r"\]\((?:\.\./|docs/)?(\w[\w/-]*\.(?:md|svg|png)(?:#[\w-]+)?)\)", r"](\1)", text)
    for name in ("CONTRIBUTING", "CHANGELOG", "SECURITY"):
        text = text.replace(f"]({name}.md)", f"]({name.lower()}.md)")
    return text.replace("](README.md)", "](index.md)")


def command_page() -> str:
    return "\n".join(["# Commands", "", *_commands(program, "apsvm")]) + "\n"


def _commands(group: click.Group, path: str) -> Iterator[str]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")
        else:
            yield from _command(command, f"{path} {name}")


def _command(command: click.Command, path: str) -> Iterator[str]:
    with command.make_context(path, [], resilient_parsing=True) as context:
        usage = command.get_usage(context).removeprefix("Usage: ")
        yield from (
            f"## {path}",
            "",
            "```text",
            usage,
            "```",
            "",
            inspect.cleandoc(command.help or "").replace("\b", ""),
            "",
        )
        yield from ("| option | |", "|---|---|")
        for parameter in command.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None:
                yield f"| `{record[0]}` | {_cell(record[1])} |"
        yield ""


def _cell(text: str) -> str:
    """Words as a cell of a table: nothing in them is markup but code in backticks."""
    text = " ".join(text.split()).replace("``", "`")
    parts = text.split("`")
    parts[::2] = [re.sub(r"([|*_\[\]])", r"\\\1", part.replace("<", "&lt;")) for part in parts[::2]]
    return "`".join(parts)


def class_page() -> str:
    lines = ["# Classes and functions", ""]
    for name in apsvm.__all__:
        public = getattr(apsvm, name)
        lines += [f"## {name}", ""]
        if not (inspect.isclass(public) and issubclass(public, Exception)):
            lines += ["```python", *_signature(name, inspect.signature(public)), "```", ""]
        lines += [*_docstring(inspect.getdoc(public) or ""), ""]
        if inspect.isclass(public) and not issubclass(public, Exception):
            methods = inspect.getmembers(public, inspect.isroutine)
            own = [(n, method) for n, method in methods if not n.startswith("_") and _is_ours(method)]
            for method_name, method in own:
                summary = (inspect.getdoc(method) or "").partition("\n\n")[0]
                lines += [f"- `{method_name}{_short(inspect.signature(method))}`: {_cell(summary)}"]
            lines += [""]
    return "\n".join(lines)


def _is_ours(method: object) -> bool:
    return str(getattr(method, "__module__", "")).startswith("apsvm") and bool(inspect.getdoc(method))


def _short(signature: inspect.Signature) -> str:
    names = [str(p.replace(annotation=p.empty)) for n, p in signature.parameters.items() if n not in ("self", "cls")]
    return f"({', '.join(names)})"


def _signature(name: str, signature: inspect.Signature) -> list[str]:
    one_line = name + _short(signature)
    if len(one_line) <= 90:
        return [one_line]
    parameters = [str(p.replace(annotation=p.empty)) for p in signature.parameters.values()]
    return [f"{name}(", *(f"    {parameter}," for parameter in parameters), ")"]


#: "name : what it is", and lines that go on further to the right.
_ENTRY = re.compile(r"^(\S[^:]*?) : (.*)$")


def _docstring(text: str) -> Iterator[str]:
    """A docstring as Markdown: its sections (a line over dashes) with their entries as tables."""
    blocks = re.split(r"(?m)^(\w[\w ]*)\n-{3,}\n", text)
    yield blocks[0].replace("``", "`")
    for title, body in zip(blocks[1::2], blocks[2::2], strict=True):
        yield from (f"**{title}**", "")
        entries: list[list[str]] = []
        rest: list[str] = []
        for line in body.splitlines():
            entry = _ENTRY.match(line)
            if entry and not rest:
                entries.append([entry[1], entry[2]])
            elif entries and not rest and (line.startswith(" ") or not line):
                entries[-1][1] += " " + line
            else:
                rest.append(line)
        if entries:
            yield from ("| name | |", "|---|---|", *(f"| `{name}` | {_cell(words)} |" for name, words in entries), "")
        yield from ("\n".join(rest).replace("``", "`"), "")


def gallery_page() -> str:
    """docs/gallery.md, its list leading to the scripts themselves, which follow as text and code."""
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    names = re.findall(r"\]\(\.\./examples/(\w+)\.py\)", text)
    text = re.sub(r"\]\(\.\./examples/(\w+)\.py\)", r"](#\1)", text)
    scripts = ((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8") for name in names)
    return "\n".join([text, *(line for n, s in zip(names, scripts, strict=True) for line in _cells(n, s))])


def _cells(name: str, script: str) -> Iterator[str]:
    """A script in cells as Markdown: its own text, and its code in fences."""
    for cell in re.split(r"(?m)^# %%", script)[1:]:
        kind, _, body = cell.partition("\n")
        if "markdown" in kind:
            words = re.sub(r"(?m)^# ?", "", body).strip()
            yield re.sub(r"^# (.*)", rf"## \1 {{ #{name} }}\n\n`examples/{name}.py`", words) + "\n"
        else:
            yield f"```python\n{body.strip()}\n```\n"


def assemble() -> None:
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(ROOT / "docs", BUILD)
    for page in BUILD.glob("*.md"):  # those in folders link to each other as they will in the site
        page.write_text(moved(page.read_text(encoding="utf-8")), encoding="utf-8")
    for name, page in (
        ("README", "index"),
        ("CONTRIBUTING", "contributing"),
        ("CHANGELOG", "changelog"),
        ("SECURITY", "security"),
    ):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        (BUILD / f"{page}.md").write_text(moved(text), encoding="utf-8")
    examples = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    (BUILD / "examples.md").write_text(re.sub(r"\]\((\w+)\.py\)", r"](gallery.md#\1)", examples), encoding="utf-8")
    for name in ("start", "compare", "benchmarks"):  # two columns of code, and wide tables, need the room
        page = BUILD / f"{name}.md"
        page.write_text("---\nhide: [toc]\n---\n\n" + page.read_text(encoding="utf-8"), encoding="utf-8")
    (BUILD / "gallery.md").write_text(moved(gallery_page()), encoding="utf-8")
    (BUILD / "commands.md").write_text(command_page(), encoding="utf-8")
    (BUILD / "classes.md").write_text(class_page(), encoding="utf-8")


def main() -> int:
    assemble()
    return subprocess.run([MKDOCS, "build", "--strict", *sys.argv[1:]], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
