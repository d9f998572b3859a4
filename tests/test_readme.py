"""The Python of README and docs/ runs, their commands have the options they use, what they add to apsvm
works as they say, their links lead somewhere, and the README's table is what was measured."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import click
import numpy as np
import pytest
import sklearn
from instances import loss_names

from apsvm import most_violated_ranking
from apsvm.cli import program, run
from apsvm.cli.group import Listed
from apsvm.losses import LOSSES, make_loss
from apsvm.losses.base import LossError
from apsvm.oracles import serving

ROOT = Path(__file__).parents[1]
PAGES = {
    page: page.read_text(encoding="utf-8") for page in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
}
README = PAGES[ROOT / "README.md"]
DOCS = ROOT / "docs"
FOLLOWED = [ROOT / "README.md", DOCS / "start.md", *(DOCS / "cases").glob("*.md")]  # by tests/test_pages.py
TEXT = "".join(text for page, text in PAGES.items() if page not in FOLLOWED)
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]
FILES = [code for code in PYTHON if code.startswith('"""')]
LINES = [re.fullmatch(r'\s+"(\S+)": "apsvm\.losses\.(\w+):(\w+)",\n', code) for code in PYTHON]
SNIPPETS = [code for code, line in zip(PYTHON, LINES, strict=True) if line is None and code not in FILES]
COMMANDS = [
    command.split("#")[0].split("|")[0].strip()
    for language, code in BLOCKS
    if language == "console"
    for line in re.findall(r"^\$ (.*)", code, flags=re.MULTILINE)
    for command in line.split("&&")
]


def tiny_query(rng):
    relevant = rng.permutation(np.repeat([True, False], rng.integers(1, 6, size=2)))
    return rng.integers(-3, 4, size=relevant.size) / 4.0, relevant


@pytest.fixture
def added(tmp_path, monkeypatch):
    """The loss of docs/extending.md, added."""
    (code,), (line,) = FILES, filter(None, LINES)
    name, module, loss = line.groups()
    assert f"`apsvm/losses/{module}.py`" in TEXT
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"readme_{module}.py").write_text(code)
    monkeypatch.setitem(LOSSES._places, name, f"readme_{module}:{loss}")
    yield
    sys.modules.pop(f"readme_{module}", None)


@pytest.mark.usefixtures("added")
def test_the_loss_is_what_it_says(rng):
    loss = make_loss("half-life(3)")
    assert {"greedy", "select", "qs", "bucket", "brute-force"} <= set(serving(loss))
    assert not {"search", "search-select"} & set(serving(loss))
    for _ in range(100):
        scores, relevant = tiny_query(rng)
        n_pos = int(relevant.sum())
        found = {name: most_violated_ranking(scores, relevant, loss, name).value for name in serving(loss)}
        assert list(found.values()) == pytest.approx([found["brute-force"]] * len(found), abs=1e-12)
        in_order = rng.permutation(relevant)
        utility, best = (
            sum(2.0 ** (-(p - 1) / (3 - 1)) for p in places)
            for places in (np.flatnonzero(in_order) + 1, range(1, n_pos + 1))
        )
        above = np.cumsum(~in_order)[in_order]
        assert loss.of_ranking(above, relevant.size - n_pos) == pytest.approx(1.0 - utility / best, abs=1e-12)
    assert {"half-life(1.01)", "half-life(5.0)", "half-life(50.0)"} <= set(loss_names())
    with pytest.raises(LossError, match=r"needs a position 1 < h < ∞, found 1"):
        make_loss("half-life(1)")


def test_a_new_command_works_with_one_line(tmp_path, monkeypatch, capsys):
    name = "count"
    listed = Listed("newcomer_command:count", "Print how many rows DATA has, and how many of them are positive.")
    monkeypatch.setitem(program.commands, name, listed)
    monkeypatch.chdir(tmp_path)
    Path("grades.svm").write_text("2 1:1\n0 1:2\n1 2:3\n")
    Path("words.csv").write_text("label,a\nyes,1\nno,2\nno,3\nno,4\n")

    def said(*arguments, code=0):
        assert run([name, *arguments]) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    try:
        assert said("--help").split("\n\n")[1].strip() == listed.summary
        assert said("grades.svm", "--positive-label", "2") == "3 rows, 1 of them positive\n"
        assert said("words.csv", "--positive-label", "yes") == "4 rows, 1 of them positive\n"
        assert "expected two labels, 1 and -1" in said("grades.svm", code=65)
        assert "no row has the positive label 7" in said("grades.svm", "--positive-label", "7", code=65)
        assert "cannot read nothing" in said("nothing", code=66)
    finally:
        program.commands.pop(name, None)


@pytest.fixture
def files(tmp_path, monkeypatch, rng):
    """The files of the README's examples."""
    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(90, 3))
    labels = np.argmax(X + 0.5 * rng.normal(size=X.shape), axis=1)
    for name, shown in [("test.svm", np.where(labels == 0, 1, -1)), ("classes.svm", labels)]:
        rows = [
            f"{label} " + " ".join(f"{at}:{value!r}" for at, value in enumerate(x, 1))
            for label, x in zip(shown.tolist(), X.tolist(), strict=True)
        ]
        Path(name).write_text("\n".join(rows))
    assert run(["train", "-q", "test.svm", "ap.model"]) == 0
    assert run(["train", "-q", "--one-vs-rest", "classes.svm", "actions.model"]) == 0
    Path("examples").symlink_to(ROOT / "examples")
    return {"X": X, "y": labels == 0, "grades": labels, "qid": np.repeat(np.arange(15), 6)}


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(SNIPPETS)))
def test_python_runs(at, files):
    with sklearn.config_context():
        exec(compile(SNIPPETS[at], "README.md", "exec"), files)
    if "search" in files:
        assert Path("ndcg.model").exists()


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("apsvm ")])
def test_commands_exist(command):
    name, *arguments = shlex.split(command)[1:]
    program.get_command(click.Context(program), name).make_context(name, arguments)  # refuses what it does not know


def test_the_rest_of_the_commands_are_scripts():
    # Those of a cluster: dask_extra/test_network.py.
    programs = ("apsvm ", "pip ", "cd ", "export ", "dask ", "openssl ", "for ")
    others = [command for command in COMMANDS if not command.startswith(programs)]
    assert others
    for command in others:
        assert (ROOT / command.removeprefix("python ").split()[0]).exists(), command


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 110


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", PAGES[page]):
        assert (page.parent / target).exists(), target


def tables_of(page):
    """The rows of its tables, cell by cell."""
    lines = [line for line in page.splitlines() if line.startswith("|")]
    return [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines]


def shown(value):
    return f"{value:.3f}".removeprefix("0")


def test_the_table_of_the_readme_is_what_was_measured():
    measured = json.loads((ROOT / "docs" / "figures" / "held_out.json").read_text(encoding="utf-8"))
    table = tables_of(README)
    at = next(number for number, row in enumerate(table) if row[0] == "mean test AP")
    methods = [name.strip("`") for name in table[at][2:]]
    assert set(methods) == set(measured[0]["AP"])
    for row, (low, high) in zip(table[at + 2 :], ((0, 10**9), (0, 50), (50, 200), (200, 10**9)), strict=False):
        some = [one for one in measured if low <= one["positives"] < high]
        assert row[1:] == [str(len(some)), *(shown(np.mean([one["AP"][name] for one in some])) for name in methods)]
    seconds = table[at + 6]
    assert seconds[2:] == [f"{np.mean([one['seconds'][name] for one in measured]):.1f}" for name in methods]


def test_the_table_of_few_positives_is_what_was_measured():
    measured = json.loads((ROOT / "docs" / "figures" / "few_positives.json").read_text(encoding="utf-8"))
    table = tables_of(PAGES[DOCS / "benchmarks.md"])
    at = next(number for number, row in enumerate(table) if row[0] == "test AP, positives")
    methods = [name.strip("`") for name in table[at][2:]]
    assert set(methods) == set(measured[0]["AP"])
    for row in table[at + 2 : at + 5]:
        some = [one["AP"] for one in measured if one["thinned_to"] == int(row[0])]
        assert row[1:] == [str(len(some)), *(shown(np.mean([one[name] for one in some])) for name in methods)]


def test_the_table_of_nine_sets_is_what_was_measured():
    measured = json.loads((ROOT / "docs" / "figures" / "defaults.json").read_text(encoding="utf-8"))
    table = tables_of(PAGES[DOCS / "benchmarks.md"])
    at = next(number for number, row in enumerate(table) if row[0] == "test AP")
    head = table[at]
    columns = {"logistic regression": "LR tuned", "LinearSVC": "LinearSVC tuned", "boosted trees": "boosted"}
    columns |= {"`apsvm train`": "apsvm", "`--features rules`": "rules", "`apsvm cv`": "portfolio"}
    rows = {row[0]: row[1:] for row in table[at + 2 : at + 2 + len(measured)]}
    assert set(rows) == set(measured)
    for name, row in rows.items():
        assert row == [shown(np.mean([one[0] for one in measured[name][columns[column]]])) for column in head[1:]]


def value_of(cell):
    """The number in a cell, its text if it has none, None if it is empty."""
    try:
        return float(cell.replace("−", "-"))
    except ValueError:
        return cell or None


def test_the_tables_of_the_papers_are_those_of_the_figures():
    page = [[value_of(cell) for cell in row] for row in tables_of(PAGES[DOCS / "benchmarks.md"])]
    for table in json.loads((DOCS / "figures" / "papers.json").read_text(encoding="utf-8")):
        at = page.index(table["columns"]) + 2
        assert page[at : at + len(table["rows"])] == table["rows"], table["scripts"]
