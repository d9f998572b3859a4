"""``apsvm info`` and the help pages."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import click
import numpy as np
import pytest
from over import over

import apsvm
from apsvm import LinearRanker, load_any_model, load_model
from apsvm._native import _kernels
from apsvm.cli import program
from apsvm.models.columns import Column, Columns
from apsvm.models.header import Bounds, Data, Features, Header, LabelKind, Labels, SkippedClass


def facts(text):
    """The names at the left of what ``apsvm info`` prints, and the text beside each, its lines joined."""
    found, name = {}, ""
    for line in text.partition("\n\n")[0].splitlines():
        name = line[:13].strip() or name
        found[name] = f"{found.get(name, '')} {line[13:]}".strip()
    return found


def test_info_tells_how_the_features_were_chosen(run, tmp_path):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] ** 2 + X[:, 1] ** 2 < 0.3
    np.savetxt(tmp_path / "a.csv", np.c_[X, y], delimiter=",", header="a,b,c,label", comments="")
    run("train", "-q", tmp_path / "a.csv", tmp_path / "m")
    told = facts(run("info", tmp_path / "m").stdout)
    assert "mapped by rules" in told["features"]
    assert re.match(r"AP of columns 0\.\d+, rules [01]\.\d+ \(.*folds of rows\)", told["compared"])


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


ALL = Header(
    family="structured-svm",
    loss="ap",
    metric="AP",
    C=2.5,
    seed=7,
    state="converged",
    iterations=3,
    labels=Labels(kind=LabelKind.ONE_LABEL, positive=2.0, negative=(0.0, 1.0)),
    features=Features(zero_based=True, scale="l2", bias=2.0),
    settings={"bound": "tight", "epsilon": 0.5, "C": 2.5},
    details={
        "choice": {
            "bound": "tight",
            "held_out": "2 folds",
            "candidates": [
                {"bound": "tight", "C": 2.5, "loss": 0.25},
                {"bound": "hinge", "C": 1, "loss": 0.5},
            ],
        }
    },
    cautions=("take care",),
    classes_skipped=(SkippedClass(label=4.0, reason="it has 1 row"),),
    data=Data(
        file="rows.svm", sha256="ab12", rows=1234, positives=1000, queries=2, queries_skipped=1, counts={"left_out": 3}
    ),
    selection={"rule": "highest mean", "folds": 2, "kept": {"not": "shown"}},
    estimator="APSVMClassifier",
    versions={"apsvm": "1", "numpy": "2"},
)
#: Facts that are printed of it, or words in them.
TOLD = {
    "labels": "2 is positive, all others (0, 1) are negative",
    "features": "4, counted from 0; scale: l2; constant feature: 2",
    "settings": "bound: tight; seed: 7",
    "chosen by": "folds: 2; rule: highest mean",
    "choice": "(2 folds): tight bound, C = 2.5, AP 0.7500",
    "ended": "converged after 3 iterations",
    "caution": "take care",
    "left out": "class 4",
    "data": "rows.svm, 1,234 rows, 1,000 positive, 2 queries (1 left out), 3 left out",
    "sha256": "ab12",
    "versions": "apsvm 1, numpy 2",
}


def test_all_that_is_printed(run, tmp_path):
    LinearRanker(np.array([3.0, 0.0, 4.0, 0.0]), 1.5, ALL).save(tmp_path / "m")
    shown = facts(run("info", tmp_path / "m").stdout)
    assert {name for name, words in TOLD.items() if words not in shown[name]} == set()
    columns = (Column(name="a"), Column(name="b"))
    roles = {"label": "y", "qid": "q", "bag": "g", "cost": "c", "id": "i"}
    of_a_table = replace(
        ALL,
        features=Features(
            names=("a", "b"), scale="maxabs", columns=Columns(features=columns, **roles, missing="indicator")
        ),
        details={"choice": {"bound": "hinge", "held_out": "x", "candidates": [], "start": "ap"}},
        data=Data(file="t.csv", rows=5, queries=1),
    )
    LinearRanker(np.array([3.0, 4.0]), 0.0, of_a_table).save(tmp_path / "m")
    shown = facts(run("info", tmp_path / "m").stdout)
    assert shown["features"] == "2; scale: maxabs"
    assert shown["choice"] == "hinge bound: x"
    assert shown["columns"] == "label: y; qid: q; bag: g; cost: c; id: i; missing: indicator a: a number b: a number"
    assert shown["data"] == "t.csv, 5 rows"


def test_of_several_classes_a_line_for_each(digits, run, tmp_path):
    few = tmp_path / "few"
    lines = [line for line in digits.path.read_text().splitlines() if line.split(".")[0].split()[0] in ("1", "4", "7")]
    few.write_text("\n".join(lines) + "\n7 1:1\n")
    run("train", "-q", few, tmp_path / "m", "--one-vs-rest", "-C", "1")
    text = run("info", tmp_path / "m").stdout
    model = load_any_model(tmp_path / "m")
    head, *rows = [re.split(r"  +", line) for line in text.partition("\n\n")[2].splitlines()]
    assert head == ["class", "ended", "C", "gap / C", "positives", "threshold"]
    for row, label, one in zip(rows, ("1", "4", "7"), model.rankers(), strict=True):
        header = one.header
        assert row == [
            label, f"{header.state} after {header.iterations} iterations", "1", f"{header.certificate.gap:.2g}",
            str(header.data.positives), f"{header.threshold.value:.6g}",
        ]  # fmt: skip
    shown = facts(text)
    assert shown["model"] == "a set of rankers, one a class (--one-vs-rest): 3 classes"
    assert shown["ended"] == "every class as asked"
    run("train", "-q", few, tmp_path / "m", "--one-vs-rest", "--loss", "warp", "--epochs", "1")
    text = run("info", tmp_path / "m").stdout
    assert "after 1 epochs" in text.partition("\n\n")[2]


NASTY = "\x1b[2J\x07\r\u202e\u2028\x9b31m"


def test_what_moves_the_cursor_is_escaped(run, tmp_path):
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
        text = run("info", tmp_path / "m", *options).stdout
        assert "\\x1b[2J" in text or "\\u001b[2J" in text
        for place in ("loss", "key", "state", "detail", "file", "digest", "count"):
            assert place in text
        assert all(character.isprintable() or character == "\n" for character in text)


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
    assert options_in("\n".join(lines)) <= {*everything, "--help", "--help-all"}
    topics = re.search(r"The options of ([^.]*)\.", " ".join(" ".join(lines).split()))[1].split(", ")
    assert {"data", "tables", "bags"} <= set(topics)
    for topic in topics:
        assert set() < options_in(run(name, f"--help={topic}").stdout) <= everything
    assert "--help=ap: expected one of main, tables, data," in run(name, "--help=ap", code=2).stderr
    code = 66 if name in ("train", "cv") else 2
    assert "The options" not in run(name, "--", "--help=data", code=code).stdout, "behind -- it is the name of a file"


def test_numbers_of_options_are_finite():
    """click's own types of numbers take nan, and what compares with it is never so."""
    for name in program.list_commands(click.Context(program)):
        command = program.get_command(click.Context(program), name)
        for param in command.params:
            assert not isinstance(param.type, type(click.FLOAT)), (name, param.opts)


def test_version(run):
    assert run("--version").stdout == f"apsvm, version {apsvm.__version__}\n"
    shown = run("--version", "-v").stdout
    assert shown.startswith(f"apsvm          {apsvm.__version__}\n")
    assert f"\nnumpy          {np.__version__}\n" in shown
    assert f"SIMD {_kernels.build_info()['clone']} of " in shown
    run("-v", "info", "m", code=2)
