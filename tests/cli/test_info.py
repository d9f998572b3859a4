"""``apsvm info`` and the help pages."""

from __future__ import annotations

import json
import re

import click
import numpy as np
import pytest
from over import over

import apsvm
from apsvm import LinearRanker, load_any_model, load_model
from apsvm.cli import program
from apsvm.losses import LOSSES
from apsvm.models.header import Bounds, Data, Features, Header, LabelKind, Labels
from apsvm.solvers.qp import BACKENDS
from apsvm.trainers.structured_svm.settings import ORACLE_CHOICES


def facts(text):
    """The names at the left of what ``apsvm info`` prints, and the text beside each, its lines joined."""
    found, name = {}, ""
    for line in text.partition("\n\n")[0].splitlines():
        name = line[:13].strip() or name
        found[name] = f"{found.get(name, '')} {line[13:]}".strip()
    return found


def test_info_tells_the_header(cancer, trained, run):
    model = trained(cancer)
    ranker = load_model(model)
    told = json.loads(run("info", model, "--json").stdout)
    weights = told.pop("weights")
    assert (told.pop("kind"), told.pop("width"), told.pop("intercept")) == ("linear", 30, ranker.intercept)
    assert told == ranker.header.to_json()
    assert weights["nonzero"] == np.count_nonzero(ranker.coef)
    assert weights["norm"] == pytest.approx(np.linalg.norm(ranker.coef))
    assert told["data"]["rows"] == 569
    assert told["data"]["positives"] == 212
    assert told["versions"]["apsvm"] == apsvm.__version__


def test_info_as_text(cancer, trained, run):
    model = trained(cancer, "-C", "10", "--bound", "tight", "-B", "1")
    text = run("info", model).stdout
    header = load_model(model).header
    shown = facts(text)
    assert shown["loss"] == "ap"
    assert shown["metric"] == "AP"
    assert shown["labels"] == "1 is positive, -1 negative"
    assert shown["features"] == "30 features, counted from 1; each scaled to a deviation of 1; a constant feature of 1"
    assert shown["C"] == "10"
    assert shown["settings"] == "bound: tight"
    assert f"converged after {header.iterations} iterations" in shown["ended"]
    assert f"whose value is {header.certificate.primal:.6g}" in shown["ended"]
    assert shown["data"].startswith("cancer.svm, 569 rows, 212 positive")
    assert shown["sha256"] == header.data.sha256
    assert f"apsvm {apsvm.__version__}" in shown["versions"]
    assert "None" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert run("info", "-", input=model.read_bytes(), text=False).stdout.decode() == text


def test_nothing_is_printed_of_what_is_absent(here, tmp_path):
    LinearRanker(np.ones(2), 0.0, Header(loss="mine", state="done")).save(tmp_path / "m")
    shown = facts(here("info", tmp_path / "m").stdout)
    assert set(shown) == {"model", "loss", "labels", "features", "weights", "ended"}
    assert "There is no certificate" in shown["ended"]


def test_of_several_classes_a_line_for_each(digits, here, tmp_path):
    few = tmp_path / "few"
    lines = [line for line in digits.path.read_text().splitlines() if line.split(".")[0].split()[0] in ("1", "4", "7")]
    few.write_text("\n".join(lines) + "\n7 1:1\n")
    here("train", "-q", few, tmp_path / "m", "--one-vs-rest", "-C", "1")
    text = here("info", tmp_path / "m").stdout
    model = load_any_model(tmp_path / "m")
    head, *rows = [line.split() for line in text.partition("\n\n")[2].replace("gap / C", "gap/C").splitlines()]
    assert head[:5] == ["class", "state", "iterations", "C", "gap/C"]
    assert [row[0] for row in rows] == ["1", "4", "7"]
    for row, header in zip(rows, model.headers, strict=True):
        assert row[1:4] == [header.state, str(header.iterations), "1"]
        assert row[5] == str(header.data.positives)
    assert facts(text)["model"].endswith("3 classes")


NASTY = "\x1b[2J\x07\r\u202e\u2028\x9b31m"


def test_what_moves_the_cursor_is_escaped(here, tmp_path):
    header = Header(
        family=f"family{NASTY}",
        loss=f"loss{NASTY}",
        metric=f"metric{NASTY}",
        labels=Labels(kind=LabelKind.BINARY, names=(f"a{NASTY}", f"b{NASTY}")),
        features=Features(names=(f"name{NASTY}", "other")),
        settings={f"key{NASTY}": f"value{NASTY}"},
        state=f"state{NASTY}",
        details={f"detail{NASTY}": f"value{NASTY}"},
        data=Data(file=f"file{NASTY}", sha256=f"digest{NASTY}", rows=1, counts={f"count{NASTY}": 1}),
        selection={f"chosen{NASTY}": f"value{NASTY}"},
        estimator=f"estimator{NASTY}",
        versions={f"program{NASTY}": f"version{NASTY}"},
        certificate=Bounds(primal=1.0, dual=1.0, gap=0.0, tolerance=1.0, bound=f"bound{NASTY}"),
    )
    LinearRanker(np.ones(2), 0.0, header).save(tmp_path / "m")
    for options in ((), ("--json",)):
        text = here("info", tmp_path / "m", *options).stdout
        assert "\\x1b[2J" in text or "\\u001b[2J" in text
        for place in ("loss", "metric", "name", "key", "state", "detail", "file", "digest", "count", "estimator"):
            assert place in text
        assert all(character.isprintable() or character == "\n" for character in text)


HELP = {
    "": "train predict eval info export --version --help",
    "train": "[MODEL] --loss --oracle -C --epsilon --max-iterations --time-limit --qp --bias --keep-easy --zero-based "
    "--positive-label --max-features --threads --seed --log --quiet --verbose --dtype --sort-features --config",
    "predict": "DATA MODEL [OUT] --ignore-unknown --dtype --sort-features",
    "eval": "--model --scores --ap voc2007 voc2010 --at --ties pessimistic --positive-label --ignore-unknown --json",
    "export": "MODEL [OUT] --format liblinear svmlight",
    "info": "MODEL --json",
}


@over("name", HELP)
def test_help(name, run):
    done = run(*name.split(), "--help-all" if name in HELPFUL else "--help")
    assert done.stderr == ""
    assert not [word for word in HELP[name].split() if word not in done.stdout]


def options_in(text):
    return set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.MULTILINE)) - {"--help"}


HELPFUL = ("train", "cv", "predict", "eval")


@over("name", HELPFUL)
def test_help_is_of_one_screen(name, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    for spelled in ("--help", "-h"):
        lines = run(name, spelled).stdout.splitlines()
        assert len(lines) <= 50
        assert max(map(len, lines)) <= 100
    everything = set(re.findall(r"--[\w-]+", run(name, "--help-all").stdout))
    assert len(options_in("\n".join(lines))) > 7
    assert options_in("\n".join(lines)) <= {*everything, "--help"}
    topics = re.search(r"The options of ([^.]*)\.", " ".join(" ".join(lines).split()))[1].split(", ")
    assert {"data", "tables", "bags", "running"} <= set(topics)
    for topic in topics:
        assert set() < options_in(run(name, f"--help={topic}").stdout) <= everything
    assert "--help=ap: expected one of main, data, tables," in run(name, "--help=ap", code=2).stderr
    code = 66 if name in ("train", "cv") else 2
    assert "The options" not in run(name, "--", "--help=data", code=code).stdout, "behind -- it is the name of a file"


def test_the_help_of_train_lists_every_choice(run):
    shown = run("train", "--help-all").stdout
    for choices in (ORACLE_CHOICES, BACKENDS):
        assert f"[{'|'.join(choices)}]" in shown
    assert "|".join(LOSSES) in shown


def test_every_option_of_train_has_a_place_in_its_help(run):
    shown = run("train", "--help-all").stdout
    for param in program.commands["train"].params:
        if isinstance(param, click.Option) and not param.hidden:
            assert shown.count(f"{param.opts[-1]} ") + shown.count(f"{param.opts[-1]}\n") >= 1, param.opts


def test_numbers_of_options_are_finite():
    """click's own types of numbers take nan, and what compares with it is never so."""
    for name in program.list_commands(click.Context(program)):
        command = program.get_command(click.Context(program), name)
        for param in command.params:
            assert not isinstance(param.type, type(click.FLOAT)), (name, param.opts)


def test_version(run):
    assert run("--version").stdout == f"apsvm, version {apsvm.__version__}\n"


@pytest.mark.parametrize(("weights", "norm"), [([1e308, -1e308, 0.0], 2**0.5 * 1e308), ([1.7e308] * 3, None)])
def test_norms_at_the_end_of_float64(weights, norm, here, tmp_path):
    LinearRanker(np.array(weights), 0.0, Header(loss="ap", state="done")).save(tmp_path / "m")
    found = json.loads(here("info", tmp_path / "m", "--json").stdout, parse_constant=pytest.fail)["weights"]["norm"]
    assert found == pytest.approx(norm) if norm is not None else found is None
    shown = "norm 1.41421e+308" if norm is not None else "norm beyond float64"
    assert shown in " ".join(here("info", tmp_path / "m").stdout.split())


def test_arguments_in_another_order(run, tmp_path):
    (tmp_path / "rows.csv").write_text("y,a\n1,2\n0,3\n")
    message = "rows.csv: not an apsvm model (no zip archive): expected apsvm verify MODEL DATA\n"
    assert run("verify", tmp_path / "rows.csv", tmp_path / "model", code=65).stderr.endswith(message)
