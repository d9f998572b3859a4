"""``apsvm predict``: exact numbers, in input order."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from over import over

from apsvm import load_model
from apsvm.models.header import Header
from apsvm.models.linear import LinearRanker


@pytest.mark.parametrize("name", ["cancer", "digits"])
def test_numbers_read_back_exactly(name, tables, trained, run, scored):
    table = tables[name]
    model = trained(table, "--bias", "1", "-C", "10")
    found = scored(run("predict", table.path, model).stdout)
    assert np.array_equal(found, load_model(model).score(table.X))
    assert np.unique(found).size > 500


def test_where_it_goes(cancer, trained, run, tmp_path):
    model, out = trained(cancer), tmp_path / "scores"
    expected = run("predict", cancer.path, model).stdout
    assert run("predict", cancer.path, model, "-").stdout == expected
    done = run("predict", cancer.path, model, out)
    assert (done.stdout, done.stderr, out.read_text()) == ("", "", expected)
    content = cancer.path.read_bytes()
    assert run("predict", "-", model, input=content, text=False).stdout == expected.encode()
    assert run("predict", "-", model, input=gzip.compress(content), text=False).stdout == expected.encode()
    assert run("predict", cancer.path, "-", input=model.read_bytes(), text=False).stdout == expected.encode()


def test_only_one_input_is_standard_input(run):
    assert run("predict", "-", "-", code=2).stderr.endswith(
        "error: standard input is read once: name a file for DATA\n"
    )


def test_unknown_features(cancer, trained, run, tmp_path):
    more, model = tmp_path / "more", trained(cancer)
    lines = cancer.path.read_text().splitlines()
    more.write_text("".join(f"{line} 31:2\n" if at % 3 == 0 else f"{line}\n" for at, line in enumerate(lines)))
    for command in (("predict", more, model), ("eval", more, "--model", model)):
        done = run(*command, code=65)
        assert done.stdout == ""
        assert f"{more}:1:{len(lines[0]) + 2}: feature 31 is unknown" in done.stderr
        assert done.stderr.endswith(
            ":1:631: feature 31 is unknown (the model has 30 features); --ignore-unknown (ignore_unknown=True) "
            "drops such entries\n"
        )
    done = run("predict", more, model, "--ignore-unknown")
    assert done.stdout == run("predict", cancer.path, model).stdout
    assert done.stderr.endswith("190 feature values unknown to the model were ignored\n")


@over("command", ["predict rows m", "predict rows m --explain", "predict --top 1 rows m", "eval rows --model m"])
def test_a_score_that_is_no_finite_number_is_refused(command, run, tmp_path):
    """Scores overflow although weights and values are finite."""
    (tmp_path / "rows").write_text("1 1:1 2:1\n-1 1:10 2:-10\n")
    header = Header(family="structured-svm", loss="ap", C=1.0)
    LinearRanker(np.array([1e307, 1e308]), 0.0, header).save(tmp_path / "m")
    done = run(*command.split(), cwd=tmp_path, code=65)
    assert done.stdout == ""
    assert done.stderr.endswith(
        "error: rows: row 2: its score is not finite: its values or the weights are too large\n"
    )


@over(
    "command",
    ["predict {model} {data}", "verify {data} {model}", "eval {model} --model {data}", "train {model}", "cv {model}"],
)
def test_a_model_in_the_place_of_data(command, cancer, trained, run):
    names = {"data": cancer.path, "model": trained(cancer)}
    assert f"'{names['model']}' is a model: apsvm" in run(*command.format(**names).split(), code=2).stderr
