"""Marks the tests that ``scripts/test --quick`` leaves out, by what a run took.

    scripts/test --quick --junitxml=build/tests.xml
    python scripts/dev/mark_slow.py build/tests.xml

A test whose slowest case took a fifth of a second gets ``@pytest.mark.slow``, one that takes less than half of that
loses it; tests that the report does not have stay as they are. ruff sorts the imports afterwards.
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
SLOW, QUICK = 0.2, 0.1
MARK = "@pytest.mark.slow"


def slowest_cases(report: Path) -> dict[Path, dict[str, float]]:
    """File → test function → seconds of its slowest case."""
    files: dict[Path, dict[str, float]] = defaultdict(dict)
    for case in ElementTree.parse(report).iter("testcase"):
        names = case.attrib["classname"].split(".")
        while names and not (path := ROOT.joinpath(*names).with_suffix(".py")).is_file():
            names.pop()  # classes
        test = case.attrib["name"].partition("[")[0]
        if names:
            files[path][test] = max(files[path].get(test, 0.0), float(case.attrib["time"]))
    return files


def marked(source: str, seconds: dict[str, float]) -> str:
    """The source of a test file with the marks as ``seconds`` of its tests want them."""
    lines = source.splitlines(keepends=True)
    tests = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name in seconds]
    for test in sorted(tests, key=lambda node: -node.lineno):
        first = min([test.lineno, *(decorator.lineno for decorator in test.decorator_list)]) - 1
        marks = [at for at in range(first, test.lineno - 1) if lines[at].strip() == MARK]
        if marks and seconds[test.name] < QUICK:
            del lines[marks[0]]
        elif not marks and seconds[test.name] >= SLOW:
            lines.insert(first, " " * test.col_offset + MARK + "\n")
    text = "".join(lines)
    if MARK in text and "\nimport pytest\n" not in text:
        future = "\nfrom __future__ import annotations\n"
        text = text.replace(future, future + "\nimport pytest\n", 1)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="written by pytest --junitxml")
    options = parser.parse_args()
    for path, seconds in slowest_cases(options.report).items():
        source = path.read_text(encoding="utf-8")
        text = marked(source, seconds)
        if text != source:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
