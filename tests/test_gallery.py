"""Every script of examples/ runs as it is, in a folder with its data."""

from __future__ import annotations

import runpy
import shutil
import sys
from importlib.util import find_spec
from types import ModuleType

import pytest
from pages import ROOT

EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
#: What a script needs beside apsvm.
NEEDED = {
    "fraud_pandas": ["pandas"],
    "serve_fastapi": ["pandas"],
    "certificate": ["pandas"],
    "torch_loss": ["pandas", "torch"],
    "retrieval_net": ["torch"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for file in EXAMPLES.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Service:
    """The used part of FastAPI without a server: a route is the function itself."""

    def post(self, path):
        return lambda function: function


@pytest.fixture(autouse=True)
def service(monkeypatch):
    module = ModuleType("fastapi")
    module.FastAPI = Service
    monkeypatch.setitem(sys.modules, "fastapi", module)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_runs_and_says_something(script, folder, capsys):
    for module in NEEDED.get(script.stem, []):
        if find_spec(module) is None:
            pytest.skip(f"{script.name} needs {module}")
    runpy.run_path(str(folder / script.name), run_name="__main__")
    assert capsys.readouterr().out


def test_each_is_listed():
    for page in (EXAMPLES / "README.md", ROOT / "docs" / "gallery.md"):
        text = page.read_text(encoding="utf-8")
        assert all(f"{script.name})" in text for script in SCRIPTS), page


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_is_short_and_in_cells(script):
    text = script.read_text(encoding="utf-8")
    assert text.startswith("# %% [markdown]\n# # ")
    assert text.count("\n# %%\n") >= 2
    assert len(text.splitlines()) <= 60
