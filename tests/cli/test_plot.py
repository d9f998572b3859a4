"""``apsvm plot`` and ``train --log-ranks``: pictures of real runs, read as text, and what goes wrong."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from over import over

from apsvm import load_model

#: For what is about the hinge, or needs some model quickly: by default the bound is chosen.
HINGE = ("--bound", "hinge")


def texts(path):
    return ["".join(node.itertext()) for node in ElementTree.parse(path).iter() if node.tag.endswith("}text")]


CALL = b'"event": "oracle", "oracle": "qs", "n_pos": 1, "n_neg": 2, "oracle_wall_ns": 1'


@pytest.fixture(scope="module")
def logged(cancer, run, tmp_path_factory):
    """A log with ranks, of a C that converges in some iterations."""
    folder = tmp_path_factory.mktemp("plot")
    path = folder / "log.jsonl"
    run("train", "-q", *HINGE, cancer.path, folder / "m", "-C", 1, "--log", path, "--log-ranks")
    return path


@pytest.fixture(scope="module")
def records(logged):
    return [json.loads(line) for line in logged.read_text().splitlines()]


def test_the_ranks_in_the_log(cancer, logged, records):
    n_pos, n_neg = int(cancer.positive.sum()), int((~cancer.positive).sum())
    calls = [record for record in records if record["event"] == "oracle"]
    for call in calls:
        ranks, counts = zip(*call["ranks"], strict=True)
        assert sum(counts) == n_neg
        assert list(ranks) == sorted(set(ranks))
        assert min(counts) > 0
        assert 1 <= ranks[0] <= ranks[-1] <= n_pos + 1
        assert sum(count for rank, count in call["ranks"] if rank <= n_pos) == call["violating"]
    assert calls[0]["ranks"] == [[1, n_neg]]  # at w = 0 every negative is above every positive
    assert len({str(call["ranks"]) for call in calls}) > 3


@pytest.mark.slow
def test_runs_side_by_side_and_one_that_was_killed(logged, run, tmp_path):
    content = logged.read_bytes()
    whole, killed = tmp_path / "a" / "log.jsonl", tmp_path / "b" / "log.jsonl"
    for path, part in ((whole, content), (killed, content[: len(content) * 2 // 3])):
        path.parent.mkdir()
        path.write_bytes(part)
    done = run("plot", "convergence", whole, killed, "-o", tmp_path / "c.svg")
    told = r"warning: .*b/log.jsonl: its last line is cut off; the \d+ records before it are used"
    assert re.search(told, done.stderr)
    assert {str(whole), str(killed)} <= {*texts(tmp_path / "c.svg")}


def test_precision_and_recall(digits, trained, run, tmp_path):
    first, second = trained(digits), trained(digits, "--loss", "zero-one")
    scores = tmp_path / "scores"
    scores.write_text("".join(f"{score:.1f}\n" for score in load_model(first).score(digits.X)))  # with ties
    sources = ("--model", first, "--model", second, "--scores", scores)
    run("plot", "pr", digits.path, *sources, "-o", tmp_path / "pr.svg")
    systems = json.loads(run("eval", digits.path, *sources, "--json").stdout)["systems"]
    values = [system["metrics"]["AP"] for system in systems.values()]
    assert len(set(values)) == 3
    shown = texts(tmp_path / "pr.svg")
    for path, value in zip(systems, values, strict=True):
        assert f"{path}, AP {value:.4f}" in shown
    assert f"random order, {digits.positive.mean():.3g}" in shown


@pytest.mark.slow
def test_precision_and_recall_of_queries_and_of_classes(digits, trained, run, write_rows, tmp_path):
    queries = np.arange(len(digits.labels)) % 7
    data = write_rows(tmp_path / "data", digits.X, digits.labels, query_id=queries)
    model = trained(digits)
    run("plot", "pr", data, "--model", model, "-o", tmp_path / "q.svg")
    value = json.loads(run("eval", data, "--model", model, "--json").stdout)["metrics"]["AP"]
    assert f"{model}, AP {value:.4f}" in texts(tmp_path / "q.svg")
    run("train", "-q", digits.path, tmp_path / "set", *HINGE, "--one-vs-rest", "--max-iterations", 3, code=3)
    run("plot", "pr", digits.path, "--model", tmp_path / "set", "-o", tmp_path / "c.svg")
    found = json.loads(run("eval", digits.path, "--model", tmp_path / "set", "--json").stdout)
    shown = texts(tmp_path / "c.svg")
    assert f"{tmp_path}/set, mean of 10 classes, AP {found['metrics']['AP']:.4f}" in shown
    for label, values in found["per_class"].items():
        assert f"class {label}, AP {values['AP']:.4f}" in shown


@over(
    "what, content, code, word",
    [
        ("convergence", b"", 65, "empty"),
        ("convergence", b"1 1:2\n", 65, ":1:"),
        ("convergence", b'{"event": "start"}\n', 65, "no iteration"),
        ("convergence", None, 66, "cannot read"),
        ("heatmap", b"{%s}\n" % CALL, 65, "--log-ranks"),
        ("heatmap", b'{%s, "stage": "train", "C": 1, "iteration": 1, "ranks": [[1, 3]]}\n' % CALL, 65, "2 negatives"),
        ("heatmap", b'{"event": "start"}\n', 65, "no oracle record"),
        ("heatmap", b'{%s, "stage": "train", "C": 1, "iteration": 1, "ranks": []}\n' % CALL.replace(b": 2", b": 0"),
         65, "of 0 negatives"),
        ("convergence", b'{"event": "iteration", "primal": 1}\n', 65, ":1:"),
        ("convergence", b'{"event": "epoch", "epoch": 1}\n', 65, "'loss'"),
        ("heatmap", b'{"event": "oracle", "ranks": [[1, 2]]}\n', 65, "'oracle'"),
        ("convergence", b"[" * 200_000, 65, ":1:"),
    ],
)  # fmt: skip
def test_bad_input(what, content, code, word, run, tmp_path):
    source, out = tmp_path / "in", tmp_path / "out.png"
    if content is not None:
        source.write_bytes(content)
    out.write_bytes(b"of yesterday")
    done = run("plot", what, source, "-o", out, code=code)
    assert word in done.stderr
    assert done.stderr.count("\n") == 1
    assert out.read_bytes() == b"of yesterday"


def test_bad_output(logged, run, tmp_path):
    link = tmp_path / "log.svg"
    link.symlink_to(logged)
    for out, code in (("a.pdf", 2), ("no/a.svg", 74), ("log.svg", 2)):
        run("plot", "convergence", logged, "-o", tmp_path / out, code=code)
    assert os.listdir(tmp_path) == ["log.svg"]


def test_without_matplotlib(logged, script, tmp_path):
    """A package of that name that cannot be imported is as good as none."""
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").write_text("raise ImportError")
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = script("plot", "convergence", logged, "-o", tmp_path / "a.png", code=69, env=env)
    assert done.stderr.endswith("error: drawing needs matplotlib, which is not installed: pip install 'apsvm[plot]'\n")
    assert not (tmp_path / "a.png").exists()


@pytest.mark.slow
def test_a_class_of_several(digits, run, write_rows, tmp_path):
    few = digits.labels < 3
    data, log = write_rows(tmp_path / "data", digits.X[few], digits.labels[few]), tmp_path / "log"
    options = ("--one-vs-rest", "--max-iterations", 2, "--log", log, "--log-ranks")
    run("train", "-q", data, tmp_path / "m", *options, code=3)
    assert "a log of 3 classes" in run("plot", "heatmap", log, "-o", tmp_path / "h.svg", code=65).stderr
    run("plot", "convergence", log, "-o", tmp_path / "c.svg")
    assert {"class 0", "class 1", "class 2"} <= {*texts(tmp_path / "c.svg")}


@pytest.mark.slow
def test_values_at_the_ends_of_floating_point(run, tmp_path):
    """Drawn without a warning, which would fail the test."""
    log = tmp_path / "log"
    fields = {"stage": "train", "C": 1.0, "primal": 1.7e308, "gap": 1e308, "seconds": 1e300}
    lines = [{"event": "iteration", "iteration": at, "dual": dual, **fields} for at, dual in ((1, -1.7e308), (2, 0.0))]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name in ("out.png", "out.svg"):
        run("plot", "convergence", log, "-o", tmp_path / name)
