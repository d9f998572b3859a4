"""Every script starts, and finds what it imports, at its top and within its functions."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from command import SCRIPTS, script_in_process, script_module

NAMES = sorted(str(path.relative_to(SCRIPTS)) for path in SCRIPTS.rglob("*.py"))
SHELL = [path for path in SCRIPTS.rglob("*") if path.is_file() and not path.suffix]
EXTRAS = ("torch", "dask", "lightgbm")


def needs(text: str) -> list[str]:
    """The extras that a script imports at its top."""
    return [extra for extra in EXTRAS if re.search(rf"^(import|from) (apsvm\.)?{extra}\b", text, re.MULTILINE)]


def imports_of_apsvm(text: str) -> list[tuple[str, str]]:
    """Module and name of each ``from apsvm… import …``, within functions too."""
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return [
        (str(node.module), alias.name)
        for node in imports
        if str(node.module).partition(".")[0] == "apsvm"
        for alias in node.names
    ]


@pytest.mark.parametrize("name", NAMES)
def test_starts(name):
    text = (SCRIPTS / name).read_text(encoding="utf-8")
    for extra in needs(text):
        pytest.importorskip(extra)
    if "argparse.ArgumentParser(" in text and "__main__" in text:
        done = script_in_process(SCRIPTS / name, "--help")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("usage: ")
    else:
        script_module(name)
    for module, imported in imports_of_apsvm(text):
        if not any(find_spec(extra) is None for extra in EXTRAS if extra in module.split(".")):
            assert hasattr(importlib.import_module(module), imported) or find_spec(f"{module}.{imported}")


def test_shell_scripts_are_shell():
    assert {path.name for path in SHELL} >= {"demo", "test", "environment"}
    for path in SHELL:
        subprocess.run(["bash", "-n", path], check=True)


def test_scripts_that_are_mentioned_are_there():
    root = SCRIPTS.parent
    pages = [root / "README.md", root / "CONTRIBUTING.md", root / "SECURITY.md", *root.glob("docs/**/*.md")]
    pages += [*root.glob("apsvm/**/*.py"), *SCRIPTS.rglob("*.py"), *SHELL]
    for page in pages:
        for name in re.findall(r"(?<![\w/])scripts/([\w/.-]*\w)", page.read_text(encoding="utf-8")):
            assert (SCRIPTS / name).exists(), f"{Path(page).relative_to(root)} mentions scripts/{name}"
