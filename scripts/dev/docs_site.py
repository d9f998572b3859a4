"""Puts the pages of the site together in a folder and has mkdocs build them. ``scripts/dev/docs`` runs it.

The pages are those of docs/, README.md as the first, CONTRIBUTING.md, CHANGELOG.md, SECURITY.md, and the gallery,
made of the scripts of examples/. The reference of commands is made by mkdocs-click, that of Python by mkdocstrings.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "docs"


def moved(text: str) -> str:
    """The text of a page of the repository's top folder or of docs/, its links as they are within the site."""
    text = text.replace("](../examples/README.md)", "](examples.md)").replace("](examples/README.md)", "](examples.md)")
    text = re.sub(r"\]\((?:\.\./)?examples/(\w+)\.py\)", r"](gallery.md#\1)", text)
    text = re.sub(r"\]\((?:\.\./|docs/)?(\w[\w/-]*\.(?:md|svg|png)(?:#[\w-]+)?)\)", r"](\1)", text)
    for name in ("CONTRIBUTING", "CHANGELOG", "SECURITY"):
        text = text.replace(f"]({name}.md)", f"]({name.lower()}.md)")
    return text.replace("](README.md", "](index.md")


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
    for name in ("index", "compare", "benchmarks"):  # wide tables need the room
        page = BUILD / f"{name}.md"
        page.write_text("---\nhide: [toc]\n---\n\n" + page.read_text(encoding="utf-8"), encoding="utf-8")
    (BUILD / "gallery.md").write_text(moved(gallery_page()), encoding="utf-8")


def main() -> int:
    assemble()
    (packages,) = (Path(sys.prefix) / "docs" / "lib").glob("python*/site-packages")
    environment = {**os.environ, "PYTHONPATH": str(packages)}  # in this environment, whose apsvm mkdocs-click imports
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
