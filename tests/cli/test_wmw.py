"""``apsvm train --loss wmw``: from the labels to a model and back, and what is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale
from trainings import train_pairs

from apsvm import load_model
from apsvm.cli import run as run_here
from apsvm.trainers.rank_ncg.preferences import classes_by_label, cut_into_classes

ROW = re.compile(r" +\d+ +[-+.e\d]+ +[-+.e\d]+ +\d+ +\d+\.\d\d$")


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


@pytest.fixture(scope="module")
def diabetes(folder, write_rows):
    X, y = load_diabetes(return_X_y=True)
    return write_rows(folder / "diabetes.svm", scale(X), y)


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
    assert "the largest entry of its gradient" in " ".join(run("info", model).stdout.split())


def test_what_the_model_tells(diabetes, train, info, tmp_path):
    model = tmp_path / "m"
    said = train(diabetes, model, "--classes", 3, "--epsilon", 1e-7)
    facts = info(model)
    assert facts.gradient.value == pytest.approx(0.370758260, abs=1e-8)
    assert facts.gradient.gradient_norm <= facts.gradient.target
    assert facts.details == {"edges": None, "n_classes": 3, "classes": [1, 2, 3], "rows_of_classes": [147, 147, 148]}
    assert (facts.labels.kind, facts.labels.cuts, facts.metric) == ("order", (100, 184), "WMW")
    assert facts.data.counts["pairs"] == 65_121
    assert facts.settings["graph"] == "full"
    assert (facts.loss, facts.settings["objective"], facts.settings["summation"]) == ("wmw", "logistic", "auto")
    assert [facts.settings[name] for name in ("optimizer", "normalize", "regularisation")] == ["lbfgs", "pairs", 1e-3]
    assert (facts.state, facts.settings["tolerance"]) == ("converged", 1e-7)
    assert f"converged after {facts.iterations} iterations, {facts.gradient.evaluations} evaluations" in said
    assert "objective 0.37075826, gradient" in said
    assert "65121 pairs of 3 classes\n" in said
    assert "training WMW 0.830423\n" in said
    assert all(line.startswith("apsvm: ") for line in said.splitlines())
    said = train(diabetes, model, "--classes", 3, "-v")
    heading, *rows = (line for line in said.splitlines() if line.startswith(" "))
    assert heading.split() == ["iter", "objective", "gradient", "evaluations", "seconds"]
    assert len(rows) >= 10
    assert all(ROW.match(row) for row in rows), rows


def test_the_command_trains_what_the_library_trains(diabetes, train, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = tmp_path / "m"
    options = ("--objective", "erfc", "--summation", "chebyshev", "--normalize", "none", "--lambda", 50)
    train(
        "-q",
        diabetes,
        model,
        "--loss",
        "wmw",
        "--classes",
        4,
        "--graph",
        "adjacent",
        *options,
    )
    settings = {"objective": "erfc", "summation": "chebyshev", "normalize": "none", "regularisation": 50.0}
    reference = train_pairs(scale(X), cut_into_classes(y, 4, "frequency"), graph="adjacent", **settings)
    np.testing.assert_allclose(load_model(model).coef, reference.w, rtol=1e-8)


def test_the_papers_way(diabetes, train, info, tmp_path):
    model = tmp_path / "m"
    options = ("--objective", "erfc", "--summation", "fourier", "--optimizer", "prcg", "--normalize", "none", "-l", 65)
    said = train(diabetes, model, "--classes", 3, "-v", *options)
    facts = info(model)
    assert (facts.state, facts.settings["accuracy"], facts.settings["tolerance"]) == ("converged", 1e-3, 1e-3)
    assert facts.gradient.value / 65_121 == pytest.approx(0.37473, abs=1e-3)
    # Gradients are all it looks at.
    rows = [line.split() for line in said.splitlines() if line.startswith(" ")][1:]
    assert all(len(row) == 4 for row in rows)


def test_queries_are_ranked_apart(digits, train, info, write_rows, tmp_path):
    data, model = tmp_path / "data", tmp_path / "m"
    labels = np.minimum(digits.labels, 3.0)
    queries = np.arange(labels.size) % 7
    queries[labels == 0] = np.where(queries[labels == 0] < 3, queries[labels == 0], 7)
    write_rows(data, digits.X, labels, query_id=queries)
    said = train(data, model, "--max-iterations", 3, code=3)
    facts = info(model).data
    assert (facts.queries, facts.queries_skipped) == (7, 1)
    assert "1 query without anything to rank was left out, 7 trained on" in said
    pairs = sum(int(np.sum(labels[queries == q][:, None] > labels[queries == q])) for q in range(8))
    assert facts.counts == {"pairs": pairs}
    assert f"{pairs} pairs of 4 classes\n" in said
    reference = train_pairs(digits.X, classes_by_label(labels), queries=queries, max_iterations=3)
    np.testing.assert_allclose(load_model(model).coef, reference.w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("graph", ["full", "adjacent", "bipartite", "0<2,1<0"])
def test_the_statistic_said_is_the_one_eval_finds(graph, digits, run, train, write_rows, tmp_path):
    data, model = tmp_path / "data", tmp_path / "m"
    # Query 5 is of one class.
    labels = np.minimum(digits.labels, 3.0)
    queries = np.where((labels == 3) & (np.arange(labels.size) % 2 == 0), 5, np.arange(labels.size) % 5)
    write_rows(data, digits.X, labels, query_id=queries)
    chosen = graph
    if "<" in graph:
        chosen = tmp_path / "graph.txt"
        chosen.write_text("0 2\n1 0\n")
    said = train(data, model, "--graph", chosen)
    name = "WMW" if graph == "full" else f"WMW({graph})"
    found = json.loads(run("eval", data, "--model", model, "-m", name, "--json").stdout)
    values = found["metrics"]
    assert f"training {name} {values[name]:.6f} (mean of 5 queries)\n" in said
    # The statistic by hand, for one query.
    if graph == "full":
        scores = load_model(model).score(digits.X)
        shares = []
        for query in range(5):
            s, g = scores[queries == query], labels[queries == query]
            ahead = (s[:, None] - s)[g[:, None] > g]
            shares.append(np.mean((ahead > 0) + 0.5 * (ahead == 0)))
        assert found["metrics"][name] == pytest.approx(np.mean(shares), rel=1e-12)


def test_the_log(cancer, train, info, tmp_path):
    model, log = tmp_path / "m", tmp_path / "log"
    train("-q", cancer.path, model, "--log", log)
    first, *records, last = (json.loads(line) for line in log.read_text().splitlines())
    facts = info(model)
    assert (first["event"], first["loss"], first["objective"], first["graph"]) == ("start", "wmw", "logistic", "full")
    assert (first["n_rows"], first["n_classes"], first["lambda"]) == (569, 2, 1e-3)
    assert (last["event"], last["state"], last["value"]) == ("end", "converged", facts.gradient.value)
    kinds = [record["event"] for record in records]
    assert (kinds.count("iteration"), kinds.count("evaluation")) == (facts.iterations, facts.gradient.evaluations)
    values = [record["value"] for record in records if record["event"] == "iteration"]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(last["value"], rel=1e-12)


def test_warm_start(cancer, train, info, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    train("-q", cancer.path, first)
    train("-q", cancer.path, second, "--warm-start", first)
    assert info(second).iterations == 0
    np.testing.assert_array_equal(load_model(first).coef, load_model(second).coef)


def test_threads_change_no_byte_and_no_time_is_written(digits, train, tmp_path):
    models = [tmp_path / "1", tmp_path / "2"]
    for threads, model in enumerate(models, 1):
        train("-q", digits.path, model, "--threads", threads)
    assert models[0].read_bytes() == models[1].read_bytes()


@pytest.mark.parametrize("option", [("--time-limit", 0), ("--max-iterations", 2)])
def test_limits(option, cancer, train, info, tmp_path):
    said = train(cancer.path, tmp_path / "m", *option, code=3)
    state = info(tmp_path / "m").state
    assert state == {"--time-limit": "time limit", "--max-iterations": "iteration limit"}[option[0]]
    assert f"apsvm: {state} after" in said
    assert re.search(r"gradient [-+.e\d]+ > [-+.e\d]+ asked for", said)


@pytest.mark.slow
def test_a_signal(digits, command, environment, tmp_path):
    """Pair by pair and for nothing but rounding to stop it: it would take minutes."""
    model = tmp_path / "m"
    options = ("--summation", "direct", "--epsilon", "0", "--lambda", "0")
    process = subprocess.Popen(
        [*command, "train", "-v", str(digits.path), str(model), "--loss", "wmw", *options],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8", env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.split()[:1] == ["3"]:
                break
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, said
    assert time.monotonic() - began < 30
    assert "apsvm: interrupted after" in said
    assert load_model(model).header.state == "interrupted"
    assert load_model(model).header.iterations >= 3
    assert os.listdir(tmp_path) == ["m"]


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
    ("content", "code", "complaint"),
    [
        ("0 1\n1 7\n", 65, "graph.txt:2: there is no class 7: the classes are 0, 1, 2"),
        ("1 1\n", 65, "graph.txt:1: a class cannot be preferred to itself"),
        ("1 2\n1 2\n", 65, "graph.txt:2: the edge '1 2' was given in line 1 already"),
        ("1 > 2\n", 65, "graph.txt:1: expected two classes, the preferred one last, found '1 > 2'"),
        ("\n", 65, "graph.txt: no edge"),
        (b"\xff\xfe\n", 65, "graph.txt:1: expected two classes"),
        (None, 66, "cannot read"),
    ],
)
def test_bad_graph_files(content, code, complaint, graded, train, tmp_path):
    graph, model = tmp_path / "graph.txt", tmp_path / "m"
    if content is not None:
        graph.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert complaint in train(graded, model, "--graph", graph, code=code)
    assert not model.exists()


def test_no_output_replaces_the_graph(graded, train, tmp_path):
    graph = tmp_path / "graph.txt"
    graph.write_text("0 1\n")
    for outputs in ((graph,), (tmp_path / "m", "--log", graph)):
        said = train(graded, *outputs, "--graph", graph, code=2)
        assert said.endswith("' is the graph file: it would be overwritten\n")
    assert graph.read_text() == "0 1\n"


@pytest.mark.parametrize(
    ("loss", "options", "complaint"),
    [
        ("wmw", ("--summation", "fourier"), "needs --objective erfc"),
        ("wmw", ("--positive-label", 1), "--positive-label does not apply: labels of --loss wmw are classes"),
        ("wmw", ("-C", 1), "--C is not for --loss wmw"),
        ("wmw", ("--oracle", "qs"), "--oracle is not for --loss wmw"),
        ("ap", ("--graph", "full"), "--graph is not for --loss ap: it is for RankNCG"),
        ("wmw", ("--lambda", -1), "of at least 0"),
        ("wmw", ("--classes", 1), "x>=2"),
        ("wmw", ("--objective", "hinge"), "'hinge' is not one of"),
    ],
)
def test_options_that_do_not_fit(loss, options, complaint, graded, train, tmp_path):
    assert complaint in train(graded, tmp_path / "m", *options, code=2, loss=loss)


def test_options_without_effect_are_warned_of(graded, train, tmp_path):
    said = train(graded, tmp_path / "m", "--classes", 5)
    assert re.search(r"can be cut into \d classes only, not into 5", said)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("3 1:1\n3 1:2\n", "all rows are of one class, 3: a ranking needs two"),
        ("1 qid:1 1:1\n1 qid:1 1:3\n2 qid:2 1:2\n", "no query has rows of two classes"),
        ("1 1:1e308\n2 1:-1e308\n3 2:1e308\n", "too large, scale them down"),
    ],
)
def test_data_that_cannot_be_trained_on(content, complaint, train, tmp_path):
    data, model = tmp_path / "data", tmp_path / "m"
    data.write_text(content)
    assert complaint in train(data, model, code=65)
    assert not model.exists()
