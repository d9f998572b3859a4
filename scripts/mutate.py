"""Faults of one line each, put into a copy of the package one at a time: does a test of the module fail?

    scripts/mutate [--seed 19] [--count 150] [--module apsvm/solvers …] [--again] [--list]

A seed draws the faults: an operator, a bound or a constant of another value, a condition turned round, a call or a
check left out. Each is judged by the tests of its own module: those named after it, and those that ``OWN_TESTS`` says
are its (where a module's public face is a command, the command's); those of its whole folder where there are no others.
A fault that they do not notice is a survivor, unless ``scripts/equivalent_faults.txt`` says why no test could notice
it. A failure counts if the same test passes without the fault, and so does a processor time beyond
any honest one.

The copy is in build/mutate, the tree at hand is never touched. What was judged is kept there in results.jsonl, so that
the same command goes on where it was stopped; ``--again`` judges the survivors once more, with the tests as they are
now. The exit code is 1 where fewer than 95 of 100 faults that could be noticed were.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutate"
EQUIVALENT = ROOT / "scripts" / "equivalent_faults.txt"
KILL_RATE = 0.95
#: Of one run of tests, several times what any takes.
PROCESSOR_SECONDS = 400

#: Whose faults are drawn.
MODULES = (
    "apsvm/solvers", "apsvm/risk", "apsvm/oracles", "apsvm/data", "apsvm/metrics", "apsvm/selection", "apsvm/trainers",
    "apsvm/losses", "apsvm/models", "apsvm/oracles/ranking.py", "apsvm/solvers/score_space.py",
    "apsvm/_support/checkpoint.py", "apsvm/_support/work.py", "apsvm/torch/native.py",
)  # fmt: skip

#: Where a module's tests are not named after it or its folder, or not all: glob patterns.
OWN_TESTS = {
    "apsvm/models/": ("tests/models",),
    "apsvm/models/header.py": ("tests/models",),
    "apsvm/risk": ("tests/risk",),
    "apsvm/oracles/ranking.py": (
        "tests/risk",
        "tests/oracles/test_exact_oracles.py",
        "tests/oracles/test_layout.py",
    ),
    "apsvm/solvers/score_space.py": ("tests/solvers/test_score_vectors.py", "tests/risk"),
    "apsvm/_support/work.py": ("tests/cli/test_checkpoint.py",),
    "apsvm/_support/checkpoint.py": ("tests/cli/test_checkpoint.py",),
    "apsvm/torch/native.py": ("tests/torch_extra/test_lists.py", "tests/torch_extra/test_every_loss.py"),
    "apsvm/data/tables": ("tests/data/test_tables*.py", "tests/data/test_csv_parser.py", "tests/cli/test_tables.py"),
    "apsvm/data/trec.py": ("tests/cli/test_eval_trec.py",),
    "apsvm/data/folder": ("tests/data/test_folder*.py", "tests/data/test_gathering.py", "tests/cli/test_convert.py"),
    "apsvm/data/features": ("tests/data/features", "tests/cli/test_features.py"),
    "apsvm/selection": ("tests/selection", "tests/cli/test_cv.py"),
    "apsvm/metrics": ("tests/metrics", "tests/cli/test_eval.py", "tests/cli/test_eval_systems.py"),
    "apsvm/oracles": ("tests/oracles",),
    "apsvm/trainers/nets/trainer.py": ("tests/torch_extra/test_net*.py",),
    "apsvm/trainers/structured_svm/net_problem.py": (
        "tests/trainers/test_layer_wise.py",
        "tests/torch_extra/test_net*.py",
    ),
    "apsvm/trainers/one_vs_rest.py": ("tests/cli/test_one_vs_rest*.py",),
    "apsvm/trainers/rank_ncg/trainer.py": ("tests/cli/test_wmw.py",),
    "apsvm/trainers/warp/trainer.py": ("tests/cli/test_warp.py",),
    "apsvm/trainers/structured_svm/networks.py": ("tests/cli/test_layer_wise.py",),
    "apsvm/trainers/direct_loss/trainer.py": ("tests/cli/test_direct_loss.py",),
    "apsvm/trainers/structured_svm/trainer.py": (
        "tests/cli/test_train.py",
        "tests/cli/test_cautions.py",
        "tests/cli/test_log.py",
    ),
    "apsvm/trainers/structured_svm/remarks.py": ("tests/cli/test_cautions.py",),
    "apsvm/trainers/fitting.py": ("tests/cli/test_train.py", "tests/cli/test_warp.py"),
    "apsvm/trainers/structured_svm/stage.py": (
        "tests/trainers/test_structured_svm.py",
        "tests/trainers/test_tight_bound.py",
    ),
    "apsvm/trainers/structured_svm/approximate.py": ("tests/trainers/test_structured_svm.py",),
    "apsvm/trainers/structured_svm/starts_of_bags.py": (
        "tests/trainers/test_bags_of_a_fit.py",
        "tests/trainers/test_latent.py",
    ),
    "apsvm/trainers/structured_svm/starts_of_components.py": ("tests/trainers/test_components.py",),
    "apsvm/trainers/structured_svm/descent.py": (
        "tests/trainers/test_tight_bound.py",
        "tests/trainers/test_components.py",
    ),
    "apsvm/trainers/structured_svm/problem.py": ("tests/trainers/test_tight_bound.py", "tests/trainers/test_latent.py"),
    "apsvm/trainers/structured_svm/starts_of_rows.py": ("tests/trainers/test_tight_bound.py",),
    "apsvm/trainers/structured_svm/plan.py": (
        "tests/trainers/test_default_c*.py",
        "tests/selection/test_completion.py",
    ),
    "apsvm/trainers/summary.py": ("tests/trainers/test_endings.py", "tests/trainers/test_structured_svm.py"),
    "apsvm/trainers/structured_svm/training.py": (
        "tests/selection/test_quick_trained.py",
        "tests/trainers/test_tight_bound.py",
    ),
    "apsvm/trainers/stochastic.py": ("tests/trainers/test_warp.py", "tests/trainers/test_direct_loss.py"),
    "apsvm/solvers/line_search.py": ("tests/solvers/test_cutting_plane.py", "tests/solvers/test_levels.py"),
    "apsvm/solvers/working_set.py": ("tests/solvers/test_cutting_plane.py", "tests/solvers/test_qp.py"),
    "apsvm/solvers/qp": ("tests/solvers/test_qp.py",),
    "apsvm/solvers/nonlinear_cg.py": ("tests/solvers/test_smooth.py", "tests/trainers/test_rank_ncg.py"),
    "apsvm/solvers/quasi_newton.py": ("tests/solvers/test_smooth.py",),
    "apsvm/solvers/lbfgs.py": ("tests/solvers/test_smooth.py", "tests/solvers/test_quasi_newton.py"),
    "apsvm/solvers/run.py": ("tests/solvers/test_cutting_plane.py",),
    "apsvm/solvers/cutting_plane.py": ("tests/solvers/test_trouble.py",),
    "apsvm/solvers/certificate.py": ("tests/solvers/test_cutting_plane.py",),
    "apsvm/data/moments.py": ("tests/data/test_rows.py", "tests/data/features/test_scaling.py"),
    "apsvm/data/text.py": ("tests/data/test_reading.py", "tests/data/test_svmlight.py"),
    "apsvm/data/matrices.py": ("tests/data/test_reading.py",),
    "apsvm/data/svmlight.py": ("tests/data/test_reading.py",),
    "apsvm/data/read_options.py": ("tests/data/test_reading.py", "tests/cli/test_bags.py"),
    "apsvm/data/query_weights.py": ("tests/data/test_reading.py", "tests/cli/test_train.py"),
    "apsvm/data/mapped_files.py": ("tests/data/test_mapped_rows.py", "tests/data/test_folder*.py"),
    "apsvm/data/row_operator.py": ("tests/data/test_rows.py",),
}

COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "/", ast.Pow: "*", ast.Mod: "//"}
NAMES = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin",
    "any": "all", "all": "any", "floor": "ceil", "ceil": "floor", "zeros": "ones", "ones": "zeros",
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One change of one line.

    Attributes
    ----------
    path : of the module, from the root
    line : its number, from 1, when the fault was drawn
    before, after : the line, without blanks at its ends
    kind : what was changed
    """

    path: str
    line: int
    before: str
    after: str
    kind: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.path, self.before, self.after


class Finder(ast.NodeVisitor):
    """Every place of a module where a fault can be put: ``edits`` holds (line, first, end, text, kind), in bytes."""

    def __init__(self, source: str) -> None:
        self.lines = [line.encode() for line in source.splitlines()]
        self.edits: list[tuple[int, int, int, str, str]] = []
        self.visit(ast.parse(source))

    def _put(self, node: ast.expr | ast.stmt, text: str, kind: str) -> None:
        if node.lineno == node.end_lineno:
            self.edits.append((node.lineno, node.col_offset, node.end_col_offset or 0, text, kind))

    def _between(self, left: ast.expr, right: ast.expr, text: str, kind: str) -> None:
        """The operator between two operands, brackets kept."""
        line, first, end = left.end_lineno, left.end_col_offset, right.col_offset
        if line != right.lineno or line is None or first is None:
            return
        gap = self.lines[line - 1][first:end]
        operator = gap.strip(b"() ")
        at = first + gap.index(operator)
        if operator:
            self.edits.append((line, at, at + len(operator), text, kind))

    # What is text, a type or a declaration is left alone.
    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        pass

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list):
            return
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases):
            return
        for statement in node.body:
            self.visit(statement)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        if isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
            self._put(node.test, f"not {ast.unparse(node.test)}", "condition")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        if isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
            self._put(node.test, f"(not {ast.unparse(node.test)})", "condition")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            self._between(left, right, COMPARISONS[type(operator)], "comparison")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = isinstance(node.left, ast.Constant | ast.JoinedStr) and not isinstance(
            getattr(node.left, "value", ""), int | float
        )
        if type(node.op) in OPERATORS and not texts:
            self._between(node.left, node.right, OPERATORS[type(node.op)], "operator")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in OPERATORS:
            self._between(node.target, node.value, OPERATORS[type(node.op)] + "=", "operator")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        text = "or" if isinstance(node.op, ast.And) else "and"
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, text, "and or or")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self._put(node, f"({ast.unparse(node.operand)})", "sign or not")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._put(node, str(not value), "constant")
        elif isinstance(value, int):
            self._put(node, str(value + 1), "constant")
        elif isinstance(value, float):
            self._put(node, repr(2.0 * value if value else 1.0), "constant")

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in NAMES and isinstance(node.ctx, ast.Load):
            self._put(node, NAMES[node.id], "name")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in NAMES and node.value.end_lineno == node.end_lineno == node.lineno:
            self._put(node, f"{ast.unparse(node.value)}.{NAMES[node.attr]}", "name")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "zip":  # ``strict`` says what is so, and changes nothing
            node = ast.Call(node.func, node.args, [])
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._put(node, "pass", "call left out")
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._put(node, "pass", "check left out")  # what the error says is not looked at


def faults_of(path: Path) -> Iterator[Fault]:
    """Every fault that can be put into a module, each line of it still valid Python."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    for number, first, end, text, kind in Finder(source).edits:
        line = lines[number - 1].encode()
        after = (line[:first] + text.encode() + line[end:]).decode()
        changed = "\n".join([*lines[: number - 1], after, *lines[number:]])
        try:
            ast.parse(changed)
        except SyntaxError:
            continue
        yield Fault(str(path.relative_to(ROOT)), number, lines[number - 1].strip(), after.strip(), kind)


def still_possible(fault: Fault) -> bool:
    """Whether the module has that line, and the line such a fault, as it is now."""
    path = ROOT / fault.path
    return path.exists() and any(fault.key == one.key for one in faults_of(path))


def drawn(modules: list[str], seed: int, count: int) -> list[Fault]:
    """``count`` faults, at most one a line."""
    of_line: dict[tuple[str, int], list[Fault]] = {}
    for module in modules:
        place = ROOT / module
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            for fault in faults_of(path):
                of_line.setdefault((fault.path, fault.line), []).append(fault)
    drawn: dict[str, Fault] = {}
    for faults in of_line.values():
        # By what the line says: a larger count goes on where a smaller one ended, and so does a tree that has changed.
        chance = random.Random(f"{seed} {faults[0].path} {faults[0].before}")
        drawn[f"{chance.random():.17f}"] = chance.choice(faults)
    return [drawn[place] for place in sorted(drawn)[:count]]


def own_tests(path: str) -> list[list[str]]:
    """The test files of a module, in stages: those named after it, then those that ``OWN_TESTS`` adds, or its folder's
    where there are neither."""
    _, *folders, name = Path(path).with_suffix("").parts
    home = ROOT / "tests" / folders[0] if folders else ROOT / "tests"
    places = [sorted(home.rglob(f"test_{name}*.py"))]
    for prefix in sorted((p for p in OWN_TESTS if path.startswith(p)), key=len, reverse=True):
        places.append([place for pattern in OWN_TESTS[prefix] for place in sorted(ROOT.glob(pattern))])
    if not any(places):
        places.append(sorted(home.rglob("test_*.py")))
    result: list[list[str]] = []
    seen: set[str] = set()
    for stage in places:
        files = [file for place in stage for file in ([place] if place.is_file() else sorted(place.rglob("test_*.py")))]
        names = [name for name in dict.fromkeys(str(file.relative_to(ROOT)) for file in files) if name not in seen]
        seen.update(names)
        if names:
            result.append(names)
    return result


class Copy:
    """The package and its tests in a folder of their own, with an environment that borrows all others' packages."""

    def __init__(self) -> None:
        self.tree = WORK / "tree"
        shutil.rmtree(self.tree, ignore_errors=True)
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, stdout=subprocess.PIPE,
        ).stdout  # fmt: skip
        for name in filter(None, names.decode().split("\0")):
            if (ROOT / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name)
        kernels = subprocess.run(
            [sys.executable, "-c", "from apsvm._native import _kernels; print(_kernels.__file__)"],
            cwd=WORK, check=True, stdout=subprocess.PIPE, text=True,
        ).stdout.strip()  # fmt: skip
        shutil.copy2(kernels, self.tree / "apsvm" / "_native")
        self.python = WORK / "environment" / "bin" / "python"
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(WORK / "environment")], check=True)
        site = next((WORK / "environment" / "lib").glob("python*/site-packages"))
        # A path in a .pth file is searched for packages, but its own .pth files are not read: the installed apsvm of
        # the tree at hand stays out.
        (site / "borrowed.pth").write_text(f"{self.tree}\n{sysconfig.get_path('purelib')}\n")
        command = WORK / "environment" / "bin" / "apsvm"
        command.write_text(f"#!{self.python}\nimport sys\nfrom apsvm.cli import main\nmain()\n")
        command.chmod(0o755)

    def test(self, tests: list[str]) -> tuple[str, float, str]:
        """("passed", "failed" or "too slow", processor seconds, the first that failed) of these files or tests."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [str(self.python), "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests],
            cwd=self.tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, start_new_session=True,
            preexec_fn=_limit_processor_time,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if done.returncode in (0, 5):  # 5: there are no tests
            return "passed", seconds, ""
        if done.returncode < 0:
            return "too slow", seconds, ""
        lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        failures = [line.partition(" ")[2].partition(" - ")[0] for line in lines]  # names may have blanks
        return "failed", seconds, failures[0] if failures else ""

    def put(self, fault: Fault) -> str:
        """Writes the fault into the copy, and returns the text that was there."""
        place = self.tree / fault.path
        source = place.read_text(encoding="utf-8")
        lines = source.splitlines(keepends=True)
        places = [at for at, line in enumerate(lines) if line.strip() == fault.before]
        if not places:
            raise SystemExit(f"{fault.path} has no line {fault.before!r}")
        at = min(places, key=lambda place: abs(place + 1 - fault.line))
        lines[at] = lines[at].replace(fault.before, fault.after, 1)
        place.write_text("".join(lines), encoding="utf-8")
        return source


def _limit_processor_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))


class Judge:
    """Runs the tests of each fault, and asks of those that fail whether they pass without."""

    def __init__(self) -> None:
        self.copy = Copy()
        self.sound: set[str] = set()

    def judge(self, fault: Fault) -> dict[str, object]:
        took, outcome, test = 0.0, "passed", ""
        for files in own_tests(fault.path):
            source = self.copy.put(fault)
            try:
                outcome, seconds, test = self.copy.test(files)
            finally:
                (self.copy.tree / fault.path).write_text(source, encoding="utf-8")
            took += seconds
            if outcome != "passed":
                break
        if outcome == "failed" and test not in self.sound:
            if self.copy.test([test] if test else files)[0] == "passed":
                self.sound.add(test)
            else:
                outcome = "unjudged"  # the test fails without the fault, too
        result = {"passed": "survived", "unjudged": "unjudged"}.get(outcome, "killed")
        return {**asdict(fault), "result": result, "seconds": round(took, 1), "by": test or outcome}


def equivalent_faults() -> dict[tuple[str, str, str], str]:
    """(path, line, line with the fault) → why no test could notice it, from paragraphs of four lines."""
    result = {}
    if EQUIVALENT.exists():
        text = EQUIVALENT.read_text(encoding="utf-8")
        for paragraph in text.split("\n\n"):
            lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
            if lines:
                path, before, after, *reason = lines
                result[path, before, after] = " ".join(reason)
    return result


def report(results: list[dict[str, object]]) -> int:
    """Prints what became of the faults; the exit code."""
    reasons = equivalent_faults()
    counts = Counter[str]()
    for result in results:
        key = (str(result["path"]), str(result["before"]), str(result["after"]))
        outcome = "equivalent" if result["result"] == "survived" and key in reasons else str(result["result"])
        counts[outcome] += 1
        if outcome == "survived":
            print(f"survived  {result['path']}:{result['line']}  {result['before']}\n          → {result['after']}")
    noticeable = counts["killed"] + counts["survived"]
    rate = counts["killed"] / noticeable if noticeable else 1.0
    print(
        f"{sum(counts.values())} faults: {counts['killed']} killed, {counts['equivalent']} equivalent, "
        f"{counts['survived']} survived, {counts['unjudged']} unjudged; {rate:.1%} of those that could be noticed were"
    )
    return int(rate < KILL_RATE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=19, help="which faults are drawn (default 19)")
    parser.add_argument("--count", type=int, default=150, help="how many (default 150)")
    parser.add_argument("--module", nargs="+", default=list(MODULES), help="files or folders, from the root")
    parser.add_argument("--again", action="store_true", help="judge all survivors so far once more, and no others")
    parser.add_argument("--list", action="store_true", help="show the faults and run nothing")
    options = parser.parse_args()
    faults = drawn(options.module, options.seed, options.count)
    if options.list:
        for fault in faults:
            print(f"{fault.path}:{fault.line} ({fault.kind})  {fault.before}\n    → {fault.after}")
        return 0
    WORK.mkdir(parents=True, exist_ok=True)
    kept = WORK / "results.jsonl"
    known: dict[tuple[str, str, str], dict[str, object]] = {}
    for line in kept.read_text().splitlines() if kept.exists() else ():
        result = json.loads(line)
        known[result["path"], result["before"], result["after"]] = result
    if options.again:
        faults = [Fault(*(result[name] for name in Fault.__dataclass_fields__)) for result in known.values()]
        faults = [fault for fault in faults if still_possible(fault)]
    reasons = equivalent_faults()
    judge: Judge | None = None
    results = []
    for number, fault in enumerate(faults, 1):
        result = known.get(fault.key)
        if result is None or (options.again and result["result"] != "killed" and fault.key not in reasons):
            judge = judge or Judge()
            result = judge.judge(fault)
            with kept.open("a") as file:
                file.write(json.dumps(result) + "\n")
            print(f"{number:4d} {result['result']:9s}{result['seconds']:7.1f} s  {fault.path}:{fault.line}", flush=True)
        results.append(result)
    return report(results)


if __name__ == "__main__":
    sys.exit(main())
