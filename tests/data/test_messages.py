"""The tables of docs/messages.md: each file that they name is read, and the message is theirs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from apsvm.cli import run

PAGE = (Path(__file__).parents[2] / "docs" / "messages.md").read_text(encoding="utf-8")
#: The name of what is read, the command, and its table's rows: what is found, and the message.
SECTIONS = [
    (command.split()[2], command, re.findall(r"^\| `(.+?)` \| `(.+?)` \| .+ \|$", section, re.MULTILINE))
    for section in PAGE.split("\n## ")[1:]
    for command in re.findall(r"^`(apsvm train .+?)`", section, re.MULTILINE)
]


def write(name: str, found: str) -> None:
    """What the first column of a table stands for."""
    if name == "rows":
        Path("rows.svm").write_text("1 1:1 2:3\n0 1:2 2:2\n1 1:3 2:1\n0 1:4 2:5\n")
        assert run(["convert", "-q", "rows.svm", name]) == 0
        subprocess.run(found, shell=True, check=True)
    elif name.endswith(".parquet"):
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pa.table(json.loads(found)), name)
    else:
        Path(name).write_bytes(found.encode().decode("unicode_escape").encode("latin-1"))


@pytest.mark.parametrize(("name", "command", "rows"), SECTIONS, ids=[name for name, *_ in SECTIONS])
def test_the_messages_of(name, command, rows, tmp_path, monkeypatch, capsys):
    assert len(rows) > 3
    for number, (found, message) in enumerate(rows):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        write(name, found)
        capsys.readouterr()
        assert run([*command.split()[1:], "-q"]) == 65, found
        assert capsys.readouterr().err == f"apsvm: error: {message}\n", found
        assert not Path("ranker.model").exists()


def test_the_table_is_of_all_readers():
    assert [name for name, *_ in SECTIONS] == ["rows.svm", "rows.csv", "rows.jsonl", "rows.parquet", "rows"]
