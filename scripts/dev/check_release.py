"""Checks that a release agrees with itself: versions, changelog, contents of the wheels and the sdist.

Usage: python scripts/dev/check_release.py [DIST]    of the files in DIST (dist); without any, of the tree alone
Prints what is wrong and, apart, what a person has still to do; ends with code 1 if anything is wrong.
"""

from __future__ import annotations

import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
#: What a wheel must not hold, by the names of folders and the ends of files' names.
NOT_IN_A_WHEEL = re.compile(r"(^|/)(tests?|core|bindings|scripts|docs|examples)/|\.(cpp|hpp|h|c|a|o)$|CMakeLists")
IN_A_WHEEL = ("apsvm/py.typed", "apsvm/__init__.py", "apsvm/_native/_kernels.pyi")
IN_AN_SDIST = ("pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "apsvm/_native/CMakeLists.txt", "scripts/test")


def of_the_tree(root: Path) -> Iterator[str]:
    """Disagreements in the tree."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    places = {
        "apsvm/__init__.py": r'^__version__ = "([^"]*)"',
        "CITATION.cff": r"^version: (\S+)",
        "CHANGELOG.md": r"^## (?!Unreleased$)(\S+)",
    }
    for name, pattern in places.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        if match is None or match[1] != version:
            yield f"{name} says {'nothing' if match is None else match[1]}, pyproject.toml version {version}"
    extras = project["optional-dependencies"]
    public = {name for name in extras if name not in ("all", "test")}
    (everything,) = extras["all"]
    listed = set(re.findall(r"[a-z]+", everything.partition("[")[2]))
    if listed != public:
        yield f"the extra 'all' is of {', '.join(sorted(listed))}; the extras are {', '.join(sorted(public))}"


def of_a_wheel(path: Path, version: str) -> Iterator[str]:
    """Faults of a wheel."""
    name, wheel_version, *_, platform = path.stem.split("-")
    if (name, wheel_version) != ("apsvm", version):
        yield f"{path.name}: is not of apsvm {version}"
    if platform.startswith("linux"):
        yield f"{path.name}: no index takes this tag; auditwheel repair gives it another"
    with zipfile.ZipFile(path) as archive:
        members = archive.namelist()
        metadata = archive.read(f"apsvm-{version}.dist-info/METADATA").decode()
    yield from (f"{path.name}: holds {member}" for member in members if NOT_IN_A_WHEEL.search(member))
    yield from (f"{path.name}: {member} is missing" for member in IN_A_WHEEL if member not in members)
    kernels = [member for member in members if re.fullmatch(r"apsvm/_native/_kernels\..*(so|pyd)", member)]
    if len(kernels) != 1:
        yield f"{path.name}: holds {len(kernels)} compiled cores"
    elif "-abi3-" in path.name and ".abi3." not in kernels[0] and not kernels[0].endswith(".pyd"):
        yield f"{path.name}: {kernels[0]} is of one version of Python only"
    if not any(member.endswith("licenses/LICENSE") for member in members):
        yield f"{path.name}: has no licence"
    if "\nLicense-Expression: BSD-3-Clause\n" not in metadata:
        yield f"{path.name}: its metadata names no licence"


def of_an_sdist(path: Path, version: str) -> Iterator[str]:
    """Faults of a source distribution."""
    folder = f"apsvm-{version}"
    with tarfile.open(path) as archive:
        members = archive.getnames()
    if any(PurePosixPath(member).parts[0] != folder for member in members):
        yield f"{path.name}: not everything is in {folder}"
    yield from (f"{path.name}: {name} is missing" for name in IN_AN_SDIST if f"{folder}/{name}" not in members)
    strange = [name for name in members if re.search(r"\.(so|o|a|pyc)$|/\.venv|/build/|/dist/", name)]
    yield from (f"{path.name}: holds {name}" for name in strange)


def to_do(root: Path) -> Iterator[str]:
    """Steps left to a person."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    placeholders = [name for name, url in project["urls"].items() if "example.org" in url]
    if placeholders:
        yield f"replace the placeholders among the project's addresses in pyproject.toml: {', '.join(placeholders)}"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if re.search("^## Unreleased$", changelog, re.MULTILINE):
        yield "write the version and the date in place of 'Unreleased' in CHANGELOG.md"
    heading = changelog.partition(f"## {version}")[2].partition("\n")[0]
    if "unreleased" in heading:
        yield f"write the date in place of 'unreleased' in CHANGELOG.md, below ## {version}"
    if "date-released" not in (root / "CITATION.cff").read_text(encoding="utf-8"):
        yield "write date-released in CITATION.cff"
    yield "build the wheels of macOS and Windows: cibuildwheel, configured in pyproject.toml"
    yield "look at README.md as the index will show it: twine check dist/*"
    yield f"tag the commit: git tag -s v{version}"
    yield "upload: twine upload dist/*"


def main() -> int:
    dist = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    wrong = list(of_the_tree(ROOT))
    for path in sorted(dist.glob("*.whl")):
        wrong += of_a_wheel(path, version)
    for path in sorted(dist.glob("*.tar.gz")):
        wrong += of_an_sdist(path, version)
    for sentence in wrong:
        print(f"WRONG  {sentence}")
    for sentence in to_do(ROOT):
        print(f"to do  {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
