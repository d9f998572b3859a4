"""The lowest version of everything that pyproject.toml names, as constraints for pip, one a line: name==version.

Usage: python scripts/dev/lowest_versions.py [pyproject.toml] > constraints.txt
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)\s*>=\s*(?P<version>[0-9][0-9.]*)")


def lowest_versions(pyproject: str) -> dict[str, str]:
    """Name → version of the build's requirements, the package's and its extras', from the text of pyproject.toml.

    Raises
    ------
    ValueError : a requirement is not of the form name>=version, or is named twice with different versions
    """
    table = tomllib.loads(pyproject)
    extras = table["project"]["optional-dependencies"].values()
    groups = [table["build-system"]["requires"], table["project"]["dependencies"], *extras]
    itself = table["project"]["name"] + "["  # an extra of extras
    versions: dict[str, str] = {}
    for requirement in (one for group in groups for one in group if not one.startswith(itself)):
        match = REQUIREMENT.fullmatch(requirement.strip())
        if match is None:
            raise ValueError(f"expected name>=version, found {requirement!r}")
        if versions.setdefault(match["name"], match["version"]) != match["version"]:
            raise ValueError(f"{match['name']} has two lowest versions: {versions[match['name']]}, {match['version']}")
    return versions


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "pyproject.toml"
    for name, version in lowest_versions(path.read_text()).items():
        print(f"{name}=={version}")
