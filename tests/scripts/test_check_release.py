"""``scripts/dev/check_release.py``: the tree agrees with itself, and what should not be released is found."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest
from command import script_module

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def check():
    return script_module("dev/check_release.py")


def wheel(folder, name, *members):
    with zipfile.ZipFile(folder / name, "w") as archive:
        for member in ("apsvm/__init__.py", "apsvm/_native/_kernels.pyi", *members):
            archive.writestr(member, "")
        archive.writestr("apsvm-1.0.dist-info/METADATA", "Name: apsvm\nLicense-Expression: BSD-3-Clause\n\nwords")
        archive.writestr("apsvm-1.0.dist-info/licenses/LICENSE", "")
    return folder / name


def test_the_tree_agrees_with_itself(check, tmp_path):
    assert list(check.of_the_tree(ROOT)) == []
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "apsvm").mkdir()
    (tmp_path / "apsvm" / "__init__.py").write_text('__version__ = "9.9"\n')
    assert [sentence.split(" says ")[0] for sentence in check.of_the_tree(tmp_path)] == ["apsvm/__init__.py"]


def test_wheels(check, tmp_path):
    core = "apsvm/_native/_kernels.abi3.so"
    good = wheel(tmp_path, "apsvm-1.0-cp312-abi3-manylinux2014_x86_64.whl", "apsvm/py.typed", core)
    assert list(check.of_a_wheel(good, "1.0")) == []
    bad = wheel(
        tmp_path, "apsvm-1.0-cp312-abi3-linux_x86_64.whl", "tests/test_a.py", "apsvm/_native/core/rows/rows.cpp",
        "apsvm/_native/_kernels.cpython-312-x86_64-linux-gnu.so",
    )  # fmt: skip
    text = "\n".join(check.of_a_wheel(bad, "1.0"))
    for words in (
        "no index takes",
        "holds tests/test_a.py",
        "rows.cpp",
        "py.typed is missing",
        "one version of Python",
    ):
        assert words in text
    other = wheel(tmp_path, "apsvm-1.1-cp311-cp311-win_amd64.whl", "apsvm/py.typed", "apsvm/_native/_kernels.pyd")
    assert list(check.of_a_wheel(other, "1.0")) == [f"{other.name}: is not of apsvm 1.0"]


def test_source_distributions(check, tmp_path):
    path = tmp_path / "apsvm-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in (*check.IN_AN_SDIST[:-1], "apsvm/_native/old.so"):
            archive.add(__file__, f"apsvm-1.0/{name}")
    assert list(check.of_an_sdist(path, "1.0")) == [
        f"{path.name}: {check.IN_AN_SDIST[-1]} is missing",
        f"{path.name}: holds apsvm-1.0/apsvm/_native/old.so",
    ]  # fmt: skip
