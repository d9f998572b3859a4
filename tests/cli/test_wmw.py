"""``apsvm train --loss wmw``: from the labels to a model and back, and what is refused."""

from __future__ import annotations

import json
import re

import pytest
from scipy.stats import mannwhitneyu

from apsvm.cli import run as run_here


@pytest.fixture
def train(capsys):
    """train(argument, ..., code=0) → what ``apsvm train --loss wmw`` said; in this process, for it is faster."""

    def call(*arguments, code=0, loss="wmw"):
        capsys.readouterr()
        found = run_here(["train", "--loss", loss, *map(str, arguments)])
        said = capsys.readouterr().err
        assert found == code, said
        assert "Traceback" not in said
        return said

    return call


def test_there_and_back(cancer, run, tmp_path, scored):
    model, scores = tmp_path / "m", tmp_path / "scores"
    run("train", "-q", "--loss", "wmw", cancer.path, model)
    run("predict", cancer.path, model, scores)
    found = json.loads(run("eval", cancer.path, "--scores", scores, "--json").stdout)
    of_model = json.loads(run("eval", cancer.path, "--model", model, "--json").stdout)
    assert next(iter(of_model["metrics"].items())) == ("WMW", found["metrics"]["AUC"])
    assert found == {**of_model, "metrics": found["metrics"]}
    assert of_model["metrics"] == {"WMW": found["metrics"]["AUC"], **found["metrics"]}
    values = scored(scores.read_text())
    above = mannwhitneyu(values[cancer.positive], values[~cancer.positive]).statistic
    assert found["metrics"]["AUC"] == pytest.approx(above / (212 * 357), rel=1e-12)
    assert found["metrics"]["AUC"] == pytest.approx(0.9979, abs=1e-4)
    assert "nr_feature 30\n" in run("export", model, "--format", "liblinear").stdout
    assert "gradient " in " ".join(run("info", model).stdout.split())


GRADED = "0 1:1 2:1\n1 1:2 2:0.5\n2 1:3\n2 2:1\n0 1:0.5\n"


@pytest.fixture
def graded(tmp_path):
    path = tmp_path / "graded.svm"
    path.write_text(GRADED)
    return path


def test_a_graph_file(graded, train, info, tmp_path):
    graph, model = tmp_path / "graph.txt", tmp_path / "m"
    graph.write_text("# all but 1 over 2\n0 2\n0 1\n")
    said = train(graded, model, "--graph", graph)
    assert (info(model).settings["graph"], info(model).details["edges"]) == ("graph.txt", [[0, 1], [0, 2]])
    assert info(model).data.counts["pairs"] == 6
    assert "warning" not in said
    graph.write_text("0 1\n1 2\n2 0\n")
    said = train(graded, model, "--graph", graph)
    assert re.search(r"warning: .*graph\.txt: the preferences (0 < 1 < 2 < 0|1 < 2 < 0 < 1) are a cycle", said)
    assert train("-q", graded, model, "--graph", graph) == ""


@pytest.mark.parametrize(
    ("loss", "options", "complaint"),
    [
        ("wmw", ("--summation", "fourier"), "needs --objective erfc"),
        ("wmw", ("--positive-label", 1), "--positive-label does not apply: RankNCG's labels are classes"),
        ("wmw", ("-C", 1), "--C is not for --loss wmw"),
        ("wmw", ("--oracle", "qs"), "--oracle is not for --loss wmw"),
        ("ap", ("--graph", "full"), "--graph is not for --loss ap: it is for RankNCG"),
        ("wmw", ("--lambda", -1), "of at least 0"),
        ("wmw", ("--classes", 1), "of at least 2"),
        ("wmw", ("--objective", "hinge"), "'hinge' is not one of"),
    ],
)
def test_options_that_do_not_fit(loss, options, complaint, graded, train, tmp_path):
    assert complaint in train(graded, tmp_path / "m", *options, code=2, loss=loss)
