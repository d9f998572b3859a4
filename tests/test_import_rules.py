"""Who may import whom (the design's rules), and what must stay light.

``detection`` stands beside the rankers: it may touch ``metrics``, whose arithmetic it uses, and of ``data`` what errors
are called; it needs nothing but numpy, and is called by the command line.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click
import pytest

import apsvm
from apsvm._support.machine import installed
from apsvm.cli import _COMMANDS, program

PACKAGE = Path(apsvm.__file__).parent

MAY_IMPORT = {
    "_native": set(),
    "_support": set(),
    "losses": set(),
    "metrics": set(),
    "solvers": set(),
    "models": {"data"},
    "data": {"models"},
    "oracles": {"losses"},
    "risk": {"data", "losses", "oracles", "solvers"},
    "trainers": {"data", "losses", "metrics", "models", "oracles", "risk", "solvers"},
    "selection": {"data", "losses", "metrics", "models", "oracles", "risk", "solvers", "trainers"},
    "detection": {"data", "metrics"},
    "verification": {"data", "models"},
    "report": {"data", "metrics", "models", "trainers"},
    "cli": None,  # everything; nothing imports it but __main__
    "__main__": {"cli"},
    "estimators": None,  # likewise
    "torch": None,  # likewise
    "dask": None,  # likewise
}
#: What every part may import.
EVERYWHERE = {"_native", "_support", "__version__"}


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imported(path: Path, *, for_types: bool = True) -> set[str]:
    """Imports of apsvm in a file, ``apsvm.a.b`` or ``apsvm.a.b.Name``; ``for_types``: also those of type checkers."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if not for_types and is_for_types(node):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "apsvm":
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("apsvm.")}
        waiting += ast.iter_child_nodes(node)
    return found


def imported_parts(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported(path)}


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.slow
def test_imports_follow_the_design():
    for path in FILES:
        part = part_of(path)
        assert part in MAY_IMPORT, f"{path}: {part} is not in the design"
        allowed = MAY_IMPORT[part]
        if allowed is not None:
            extra = imported_parts(path) - allowed - EVERYWHERE - {part}
            assert not extra, f"{path}: {part} must not import {sorted(extra)}"


def module_of(path: Path) -> str:
    return ".".join(["apsvm", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


def circles(graph: dict[str, set[str]]) -> list[str]:
    """Those that are left once nobody is there who needs nobody else, and no caller whom nobody needs."""
    left = {name: set(needed) for name, needed in graph.items()}
    while True:
        needed = set().union(*left.values()) if left else set()
        idle = {name for name in left if not left[name] or name not in needed}
        if not idle:
            return sorted(left)
        left = {name: of_name - idle for name, of_name in left.items() if name not in idle}


@pytest.mark.slow
def test_no_file_needs_itself():
    """Neither when it is imported nor when it does its work: settings ← algorithm ← trainer, in every folder."""
    files = {module_of(path): path for path in FILES}
    graph = {}
    for module, path in files.items():
        names = imported(path, for_types=False)
        nearest = {name if name in files else name.rpartition(".")[0] for name in names}
        graph[module] = {name for name in nearest if name in files and name != module}
    assert sum(map(len, graph.values())) > 1000
    assert circles(graph) == []
    plan = "apsvm.trainers.structured_svm.plan"
    graph["apsvm.losses.base"] |= {plan}
    assert {"apsvm.losses.base", plan} <= set(circles(graph)) < set(files)


def test_the_rules_see_imports():
    assert {"data", "losses", "oracles"} <= imported_parts(PACKAGE / "risk" / "rankings.py")
    assert len(FILES) > 30


def test_detection_needs_numpy_and_the_error():
    """Imports of packages outside the standard library, and of ``data``."""
    for path in FILES:
        if part_of(path) != "detection":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("apsvm.data"):
                assert [alias.name for alias in node.names] == ["DataError"]
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= {"apsvm", "numpy", *sys.stdlib_module_names}


def run_and_look(arguments, unwanted):
    """Runs the command in a process of its own, and fails if any of the modules was imported."""
    code = (
        "import sys; from apsvm.cli import run; "
        f"code = run({arguments}); "
        f"imported = {unwanted} & set(sys.modules); "
        "sys.exit(repr(imported) if code or imported else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_help_loads_nothing_heavy():
    heavy = {"numpy", "scipy", "sklearn", "cvxpy", "joblib", "threadpoolctl", "matplotlib", "torch", "dask"}
    modules = {command.place.partition(":")[0] for command in _COMMANDS.values()}
    assert "apsvm.cli.commands.train" in modules
    run_and_look(["--help"], heavy | modules)
    run_and_look(["train", "--help"], heavy | {"apsvm.cli.commands.cv", "apsvm.cli.commands.predict"})


def test_the_help_of_the_commands_is_theirs():
    """The list made without importing commands equals click's."""

    def listed(group):
        context = click.Context(group, info_name="apsvm")
        formatter = context.make_formatter()
        group.format_commands(context, formatter)
        return formatter.getvalue()

    context = click.Context(program)
    imported = click.Group(commands={name: program.get_command(context, name) for name in _COMMANDS})
    assert listed(program) == listed(imported)
    assert listed(program).count("\n") > len(_COMMANDS)


@pytest.mark.slow
def test_a_small_training_loads_what_it_needs(tmp_path):
    (tmp_path / "rows").write_text("1 1:2 2:1\n-1 1:1 2:2\n1 1:3 2:1\n-1 1:0.5 2:4\n" * 10)
    unwanted = {
        *("scipy", "sklearn", "cvxpy", "joblib", "matplotlib", "importlib.metadata", "email", "logging"),
        *(
            "apsvm.cli.commands.cv",
            "apsvm.cli.commands.plot",
            "apsvm.trainers.structured_svm.starts_of_bags",
            "apsvm.trainers.structured_svm.starts_of_components",
        ),
    }
    plain = ["-q", "--threads", "1", "--features", "linear"]
    run_and_look(["train", str(tmp_path / "rows"), str(tmp_path / "models"), *plain], unwanted)


@pytest.mark.parametrize("package", ["apsvm", "numpy", "scipy", "scikit-learn", "Scikit_Learn", "threadpoolctl"])
def test_installed_is_the_version_that_the_metadata_have(package):
    assert installed(package) == version(package)


def test_what_is_not_installed():
    with pytest.raises(PackageNotFoundError, match="no-such-package"):
        installed("no-such-package")
