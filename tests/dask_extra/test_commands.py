"""``apsvm train``, ``predict`` and ``eval`` with ``--scheduler``, against one machine."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from command import in_process
from distributed import Client
from sklearn.datasets import dump_svmlight_file

from apsvm import load_model
from apsvm.dask.training import refusal
from apsvm.trainers.structured_svm.settings import StructuredSettings
from apsvm.trainers.structured_svm.trainer import StructuredSVMTrainer


@dataclass
class Parts:
    """``pattern`` names three parts of ``path``'s rows; ``queries`` three of the same with qid."""

    folder: Path
    pattern: str
    path: Path
    queries: str
    with_queries: Path


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    rng = np.random.default_rng(11)
    folder = tmp_path_factory.mktemp("parts")
    n = 900
    X = np.round(rng.normal(size=(n, 6)), 3)
    X[:300, 5] = 0.0  # the first part is narrower
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=n) > 1.5, 1, -1)
    qid = np.repeat(np.arange(45), 20)

    def written(name, rows, query_id=None):
        path = folder / name
        ids = None if query_id is None else query_id[rows]
        narrow = X[rows][:, :5] if (X[rows][:, 5] == 0.0).all() else X[rows]
        dump_svmlight_file(narrow, y[rows], str(path), zero_based=False, query_id=ids)
        return path

    for part in range(3):
        rows = slice(300 * part, 300 * part + 300)
        written(f"part-{part}.svm", rows)
        written(f"q-{part}.svm", rows, qid)
    everything = slice(None)
    return Parts(
        folder,
        str(folder / "part-*.svm"),
        written("all.svm", everything),
        str(folder / "q-*.svm"),
        written("allq.svm", everything, qid),
    )


@pytest.fixture
def apsvm(client, tmp_path):
    """Runs the command line in ``tmp_path``; @ is the cluster's address."""

    def run(*arguments):
        told = [client.scheduler.address if argument == "@" else str(argument) for argument in arguments]
        done = in_process(told, env={"PATH": os.environ["PATH"]}, cwd=tmp_path)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--loss", "ndcg", "-C", "100", "--scale", "maxabs"],
        ["--loss", "zero-one", "--scale", "standard"],
        ["--scale", "l2", "-C", "10x", "--solver", "cutting-plane", "-e", "0.01"],
        ["--loss", "wmw"],
        ["--features", "piecewise:3", "--scale", "maxabs"],
        ["--features", "rules:20:depth=2"],
    ],
)
def test_training_is_that_of_one_machine(apsvm, parts, tmp_path, options):
    hinge = [] if "wmw" in options else ["--bound", "hinge"]
    code, _, said = apsvm("train", parts.pattern, "there.model", "-v", "--scheduler", "@", "--log", "log", *options)
    assert code == 0, said
    assert ("--bound auto: hinge (the tight bound is not trained" in said) == (
        "wmw" not in options and "zero-one" not in options
    )
    assert apsvm("train", parts.path, "here.model", *hinge, *options)[0] == 0
    there, here = load_model(tmp_path / "there.model"), load_model(tmp_path / "here.model")
    np.testing.assert_allclose(there.coef, here.coef, rtol=1e-6, atol=1e-9)
    assert there.intercept == pytest.approx(here.intercept, rel=1e-6, abs=1e-9)
    assert there.header.labels == here.header.labels
    assert there.header.metric == here.header.metric
    assert there.header.data.rows == here.header.data.rows == 900
    assert there.header.threshold.value == pytest.approx(here.header.threshold.value, rel=1e-6, abs=1e-9)
    assert there.header.threshold.precision == here.header.threshold.precision
    assert there.header.threshold.rule == here.header.threshold.rule
    assert ("(f1 on the training rows, which flatters)" in said) == ("zero-one" not in options)
    if here.header.certificate is not None:
        assert there.header.certificate.primal == pytest.approx(here.header.certificate.primal, rel=1e-9)
        assert there.header.certificate.dual == pytest.approx(here.header.certificate.dual, rel=1e-9)
        assert abs(there.header.C / here.header.C - 1.0) < 1e-12
    records = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    iterations = [record for record in records if record["event"] == "iteration"]
    assert all(record["shards"] == 2 for record in iterations)
    assert sum(record["rounds"] for record in iterations) > 0
    assert sum(record["bytes_sent"] for record in iterations) > 0


def test_queries_of_which_one_metric_says_nothing(apsvm, tmp_path):
    """AP without a negative; nDCG goes by the grades."""
    texts = ["2 qid:1 1:1\n1 qid:1 1:2\n", "1 qid:2 1:1\n2 qid:2 1:3\n"]
    files = {"g-0": texts[0], "g-1": texts[1], "g": "".join(texts), "rows": f"0 qid:1 1:0\n{texts[0]}"}
    files |= {f"high-{name}": text.replace("2 qid", "2000 qid") for name, text in files.items()}
    for name, text in files.items():
        (tmp_path / f"{name}.svm").write_text(text)
    assert apsvm("train", "rows.svm", "m", "--loss", "ndcg", "-C", "1", "-q", "--bound", "hinge")[0] == 0
    parts = (tmp_path / "g-*.svm", "--model", "m", "--scheduler", "@")
    first = apsvm("eval", *parts, "--json")
    assert first == apsvm("eval", tmp_path / "g.svm", "--model", "m", "--json")
    assert list(json.loads(first[1])["metrics"]) == ["nDCG(exp)", "nDCG"]
    high = apsvm("eval", tmp_path / "high-g-*.svm", *parts[1:], "--json")  # 2^2000 is none
    assert high == apsvm("eval", tmp_path / "high-g.svm", "--model", "m", "--json")
    assert list(json.loads(high[1])["metrics"]) == ["nDCG"]
    options = ("-m", "nDCG(exp)", "-m", "AP", "--relevant-from", "2", "--json")
    assert apsvm("eval", *parts, *options) == apsvm("eval", tmp_path / "g.svm", "--model", "m", *options)
    code, _, said = apsvm("eval", *parts, "-m", "nDCG", "-m", "AP")
    assert (code, "no query holds what AP needs" in said) == (65, True), said


@pytest.mark.slow
def test_a_run_folder(apsvm, parts, tmp_path):
    code, _, said = apsvm("train", parts.pattern, "--run-dir", "run", "--scheduler", "@", "-C", 1)
    assert code == 0, said
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["log.jsonl", "ranker.model"]
    assert said.count("positive is a score above") == 1
    code, _, said = apsvm("train", parts.pattern, "m", "--scheduler", "@", "--warm-start", "run/ranker.model", "-q")
    assert (code, said) == (0, "")


def test_predictions_are_written_by_the_workers(apsvm, parts, tmp_path):
    assert apsvm("train", parts.path, "m", "-q", "--bound", "hinge")[0] == 0
    code, said, _ = apsvm("predict", parts.pattern, "m", "scores", "--scheduler", "@")
    assert (code, said) == (0, "")
    files = sorted((tmp_path / "scores").iterdir())
    assert [file.name for file in files] == [f"part-{part}.svm.scores" for part in range(3)]
    assert "".join(file.read_text() for file in files) == apsvm("predict", parts.path, "m")[1]


def test_parts_of_other_kinds(apsvm, parts, tmp_path):
    """Folders, and text that is compressed."""
    import gzip

    for part in range(2):
        assert apsvm("convert", parts.folder / f"part-{part}.svm", f"kind-{part}")[0] == 0
    (tmp_path / "kind-2").write_bytes(gzip.compress((parts.folder / "part-2.svm").read_bytes()))
    code, _, said = apsvm("train", tmp_path / "kind-*", "there", "--scheduler", "@", "-C", "10")
    assert code == 0, said
    assert apsvm("train", parts.path, "here", "-C", "10", "--bound", "hinge")[0] == 0
    np.testing.assert_allclose(load_model(tmp_path / "there").coef, load_model(tmp_path / "here").coef, atol=1e-9)
    values = tmp_path / "kind-1" / "X.npy"
    values.write_bytes(values.read_bytes()[:-1] + b"7")
    code, _, said = apsvm("train", tmp_path / "kind-*", "there", "--scheduler", "@", "-C", "10")
    assert code == 65
    assert "kind-1/X.npy: damaged" in said


@pytest.mark.slow
def test_a_query_that_is_cut_across_workers(apsvm, parts, tmp_path):
    """Its rows are brought together, in the order of the parts; what is measured is so, too."""
    lines = parts.with_queries.read_text().splitlines(keepends=True)
    for number, (begin, end) in enumerate(((0, 310), (310, 311), (311, 905), (905, None))):
        (tmp_path / f"cut-{number}.svm").write_text("".join(lines[begin:end]))
    coefs, values = [], []
    for data in (tmp_path / "cut-*.svm", parts.queries):
        code, _, said = apsvm("train", data, "m", "--scheduler", "@", "-C", "10", "-e", "1e-6", "--scale", "none")
        assert code == 0, said
        coefs.append(load_model(tmp_path / "m").coef)
        code, said, _ = apsvm("eval", data, "--model", "m", "--scheduler", "@", "-m", "AP")
        assert code == 0
        values.append(said.split("\n")[1:])
    np.testing.assert_allclose(*coefs, rtol=1e-3, atol=1e-6)
    assert values[0] == values[1]


def test_rows_that_are_too_many_to_move(apsvm, parts, tmp_path, monkeypatch):
    """A number takes 12 bytes, a row 24, and four rows of one number go to the other worker."""
    for part, text in enumerate(["1 qid:1 1:1\n-1 qid:1 1:2\n", "1 qid:1 1:1\n-1 qid:1 1:3\n"] * 2):
        (tmp_path / f"p-{part}.svm").write_text(text)
    for most, exit_code in ((144, 0), (143, 65)):
        monkeypatch.setattr("apsvm.dask.data.MOST_MOVED", most)
        code, _, said = apsvm("train", tmp_path / "p-*.svm", "m", "--scheduler", "@", "-C", "1")
        assert code == exit_code, said
    assert re.search(
        r"query 1 has rows on several workers \(inproc://\S+, inproc://\S+\), and 1 of 1 queries have: 0 MB would have "
        r"to go through the driver, 0 MB are the most\. Write the rows of a query into one part$",
        said.strip(),
    )


@pytest.mark.parametrize(
    ("place", "arguments"),
    [
        ("apsvm.dask.sources.FilePart.read", "train {parts} out --scheduler @"),
        ("apsvm.dask.sources.FilePart.read", "train {parts} out --one-vs-rest --scheduler @"),
        ("apsvm.dask.sources.FilePart.read", "predict {parts} m out --scheduler @"),
        ("apsvm.selection.cross_validation.CrossValidation.ready", "cv {parts} --folds 2 -C 1 --scheduler @"),
    ],
)
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (MemoryError(), "not enough memory"),
        (OSError("no more handles"), "OSError: no more handles"),
        (ValueError("shapes (2,)\n and (3,)"), "ValueError: shapes (2,) and (3,)"),
    ],
)
def test_a_fault_on_a_worker_names_it(apsvm, parts, tmp_path, monkeypatch, place, arguments, fault, message):
    assert apsvm("train", parts.path, "m", "-C", "1", "-q")[0] == 0

    def broken(*given, **options):
        raise fault

    monkeypatch.setattr(place, broken)
    code, _, said = apsvm(*arguments.replace("{parts}", parts.pattern).split())
    assert code == (66 if isinstance(fault, OSError) and "sources" in place else 1), said
    [line] = [line for line in said.splitlines() if "error" in line]
    assert message.removeprefix("OSError: ") in line
    assert "inproc://" in line
    assert not os.path.isfile(tmp_path / "out")


def test_scores_that_a_worker_cannot_write(apsvm, parts, tmp_path):
    assert apsvm("train", parts.path, "m", "-C", "1", "-q")[0] == 0
    (tmp_path / "out" / "part-1.svm.scores").mkdir(parents=True)
    code, _, said = apsvm("predict", parts.pattern, "m", "out", "--scheduler", "@")
    assert code == 74
    assert f"cannot write {tmp_path}/out/part-1.svm.scores: Is a directory (on inproc://" in said


@pytest.mark.parametrize(("version", "found"), [(None, "none"), ("0.0.1", "0.0.1")])
def test_another_apsvm_on_a_worker(apsvm, parts, monkeypatch, version, found):
    versions = Client.get_versions

    def changed(client, **options):
        servers = versions(client, **options)
        servers["workers"]["tcp://there:1"] = {"packages": {"apsvm": version}}
        return servers

    monkeypatch.setattr(Client, "get_versions", changed)
    code, _, said = apsvm("train", parts.pattern, "m", "--scheduler", "@")
    assert code == 66
    assert "tcp://there:1: expected apsvm" in said
    assert said.strip().endswith(f"there, as here, found {found}")


@pytest.mark.parametrize(
    ("loss", "bound", "goes"),
    [("mrr", "auto", False), ("mrr", "hinge", True), ("p@3", "hinge", False), ("auc", "auto", True)],
)
def test_the_hinge_of_two_arrays_goes_where_it_is_named(loss, bound, goes):
    refused = refusal(StructuredSVMTrainer(loss, StructuredSettings(bound=bound)))
    assert (refused is None) == goes
    assert goes or "is trained by the tight bound, which is not trained on a cluster" in refused


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["train", "{parts}", "--scheduler", "@"],
            2,
            "Error: of several files, or with --scheduler, name the MODEL to write",
        ),
        (
            ["train", "-", "m", "--scheduler", "@"],
            2,
            "Error: with --scheduler DATA is a pattern of files that the workers read, not standard input",
        ),
        (["train", "nothing-*.svm", "m", "--scheduler", "@"], 66, "error: no file is called nothing-*.svm"),
        (
            ["train", "{parts}", "m", "--scheduler", "local:none"],
            2,
            "Error: expected local:N with N workers, from 1 to 1024, found 'local:none'",
        ),
        (
            ["train", "{parts}", "m", "--scheduler", "tcp://127.0.0.1:1"],
            66,
            "error: no scheduler answers at tcp://127.0.0.1:1",
        ),
        (
            ["train", "{parts}", "m", "--scheduler", "@", "--bound", "tight"],
            2,
            "Error: --bound tight is not trained on a cluster: leave it out, or train on one machine",
        ),
        (
            ["train", "{parts}", "m", "--scheduler", "@", "--loss", "p@10"],
            2,
            "Error: --loss p@10 is trained by the tight bound, which is not trained on a cluster: --loss ap "
            "is the one that it starts from",
        ),
        (
            ["train", "{parts}", "m", "--scheduler", "@", "--loss", "f1"],
            2,
            "Error: --loss f1 of one list of all rows is not trained on a cluster: rows in queries (qid:) "
            "are, each query whole in one part; or choose a loss of two arrays (ap, ndcg, mrr, auc, "
            "rbp(0.8) …) or zero-one",
        ),
        (
            ["train", "{parts}", "m", "--scheduler", "@", "--loss", "warp"],
            2,
            "Error: --loss warp is not trained on a cluster: train it on one machine, or choose a ranking "
            "loss (ap, ndcg, auc …) or wmw",
        ),
        (
            ["train", "{parts}", "m", "--scheduler", "@", "--components", "2"],
            2,
            "Error: --components is not for training on a cluster: leave it out, or train on one machine",
        ),
        (
            ["train", "{parts}", "m", "--scheduler", "@", "--pool", "mean"],
            2,
            "Error: --pool is not for training on a cluster: train on one machine",
        ),
        (
            ["train", "{parts}", "m", "--scheduler", "local:0"],
            2,
            "Error: expected local:N with N workers, from 1 to 1024, found 'local:0'",
        ),
        (
            ["train", "{parts}", "m", "--scheduler", "local:1025"],
            2,
            "Error: expected local:N with N workers, from 1 to 1024, found 'local:1025'",
        ),
        (
            ["train", "{parts}", "m", "--scheduler", "@", "--oracle", "qs"],
            2,
            "Error: one list on a cluster is ranked by --oracle bucket: leave out --oracle qs",
        ),
        (
            ["train", "{parts}", "m", "--scheduler", "@", "--labels", "y"],
            2,
            "Error: --labels does not go with --scheduler, where parts have columns of their own",
        ),
        (
            ["predict", "{parts}", "m", "--scheduler", "@"],
            2,
            "Error: with --scheduler OUT is a folder that the workers write to: name one",
        ),
        (
            ["eval", "{parts}", "--model", "m", "--scheduler", "@", "--ties", "file"],
            2,
            "Error: --scheduler does not go with --ties",
        ),
        (["eval", "{parts}", "--scores", "m", "--scheduler", "@"], 2, "Error: --scheduler does not go with --scores"),
    ],
)
def test_what_does_not_go_is_refused(apsvm, parts, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.setattr("apsvm.dask.actors.CONNECTING", 0.2)
    told = [argument.replace("{parts}", parts.pattern) for argument in arguments]
    found, _, said = apsvm(*told)
    assert found == code, said
    assert said.partition(": Timed out ")[0].rstrip().endswith(message)
    assert not (tmp_path / "m").exists()
