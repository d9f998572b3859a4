"""``apsvm train --scheduler``, against one machine."""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import in_process
from distributed import Client
from sklearn.datasets import dump_svmlight_file

from apsvm import load_any_model


@dataclass
class Parts:
    """``pattern`` names three parts of ``path``'s rows; ``queries`` three of the same with qid; ``tables`` four tables
    of those of ``table``, one without rows; ``classes`` parts of three classes."""

    folder: Path

    def __getattr__(self, name: str) -> Path:
        names = {
            "pattern": "part-*.svm", "path": "all.svm", "queries": "q-*.svm", "with_queries": "allq.svm",
            "tables": "table-*.csv", "table": "table.csv", "parquet": "table-*.parquet",
            "whole_parquet": "whole.parquet", "classes": "c-*.svm",
            "all_classes": "allc.svm",
        }  # fmt: skip
        return self.folder / names[name]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    rng = np.random.default_rng(11)
    folder = tmp_path_factory.mktemp("parts")
    n = 900
    X = np.round(rng.normal(size=(n, 6)), 3)
    X[:300, 5] = 0.0  # the first part is narrower
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=n) > 1.5, 1, -1)
    qid, classes = np.repeat(np.arange(45), 20), X[:, :3].argmax(axis=1)

    def write(name, rows, labels=y, query_id=None):
        narrow = X[rows][:, :5] if (X[rows][:, 5] == 0.0).all() else X[rows]
        ids = None if query_id is None else query_id[rows]
        dump_svmlight_file(narrow, labels[rows], str(folder / name), zero_based=False, query_id=ids)

    for part, end in ((0, 310), (1, 600), (2, 900)):  # a query is cut across two parts
        rows = slice((0, 310, 600)[part], end)
        write(f"part-{part}.svm", slice(300 * part, 300 * part + 300))
        write(f"q-{part}.svm", rows, query_id=qid)
        write(f"c-{part}.svm", rows, classes)
    everything = slice(None)
    write("all.svm", everything)
    write("allq.svm", everything, query_id=qid)
    write("allc.svm", everything, classes)
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    table["amount"] = np.round(np.exp(2.0 * rng.normal(size=n)), 2)
    table["code"] = np.where(np.arange(n) < 300, rng.integers(1, 5, n).astype(str), rng.choice(["x", "y"], n))
    table["day"] = (pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n), unit="D")).strftime("%Y-%m-%d")
    table["bought"] = np.where(y > 0, "yes", "no")
    table.loc[rng.random(n) < 0.1, "b"] = np.nan
    table.loc[rng.random(n) < 0.1, "code"] = None
    table.to_csv(folder / "table.csv", index=False)
    table.to_parquet(folder / "whole.parquet", index=False)
    for part, (begin, end) in enumerate(((0, 300), (300, 300), (300, 500), (500, n))):
        some = table.iloc[begin:end]
        some = some[some.columns[::-1]] if part == 2 else some
        some.to_csv(folder / f"table-{part}.csv", index=False)
        some.to_parquet(folder / f"table-{part}.parquet", index=False)
    return Parts(folder)


@pytest.fixture
def apsvm(client, tmp_path):
    """Runs the command line in ``tmp_path``; @ is the cluster's address."""

    def run(*arguments):
        told = [client.scheduler.address if argument == "@" else str(argument) for argument in arguments]
        done = in_process(told, env={"PATH": os.environ["PATH"]}, cwd=tmp_path)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


def require_alike(there, here):
    """Two models of the same training."""
    for one, other in zip(there.rankers(), here.rankers(), strict=True):
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-9, atol=1e-9)
        assert one.intercept == pytest.approx(other.intercept, rel=1e-9, abs=1e-9)
        if other.header.threshold is not None:
            assert one.header.threshold.value == pytest.approx(other.header.threshold.value, rel=1e-9, abs=1e-9)
            assert one.header.threshold.precision == other.header.threshold.precision
        if other.header.certificate is not None:
            assert one.header.certificate.primal == pytest.approx(other.header.certificate.primal, rel=1e-9)
            assert one.header.certificate.dual == pytest.approx(other.header.certificate.dual, rel=1e-9)
    assert there.header.labels == here.header.labels
    assert there.header.features == here.header.features
    assert there.header.data.rows == here.header.data.rows


@pytest.mark.parametrize(
    ("data", "whole", "options"),
    [
        ("pattern", "path", []),
        ("pattern", "path", ["--bound", "hinge", "-C", "100", "--loss", "ndcg", "--scale", "maxabs"]),
        ("pattern", "path", ["--loss", "zero-one", "--scale", "standard"]),
        ("pattern", "path", ["--loss", "p@10"]),
        ("pattern", "path", ["--bound", "hinge", "--features", "rules:20:depth=2"]),
        ("pattern", "path", ["--loss", "wmw"]),
        ("queries", "with_queries", ["--bound", "hinge"]),
        ("queries", "with_queries", ["--bound", "tight", "-C", "1"]),
        ("tables", "table", ["--bound", "hinge", "-C", "10", "--label-column", "bought"]),
        ("tables", "table", ["-C", "10", "--label-column", "bought", "--bound", "hinge", "--missing", "indicator"]),
        ("parquet", "whole_parquet", ["--bound", "hinge", "-C", "10", "--label-column", "bought", "--drop", "day"]),
        ("classes", "all_classes", ["--one-vs-rest", "--bound", "hinge"]),
        ("classes", "all_classes", ["--one-vs-rest"]),
    ],
)
def test_training_is_that_of_one_machine(apsvm, parts, tmp_path, monkeypatch, data, whole, options):
    monkeypatch.setattr("apsvm.dask.parts.MOST_NUMBERS", 32)
    if not {"table", "whole_parquet"} & {whole} and "--features" not in options:  # rules are compared on one machine
        options = [*options, "--features", "linear"]
    code, _, there = apsvm("train", getattr(parts, data), "there", "--scheduler", "@", "--log", "log", *options)
    assert code == 0, there
    code, _, here = apsvm("train", getattr(parts, whole), "here", *options)
    assert code == 0, here
    require_alike(load_any_model(tmp_path / "there"), load_any_model(tmp_path / "here"))
    assert ("yes" in there) == ("yes" in here)
    assert '"start"' in (tmp_path / "log").read_text()


def test_settings_are_chosen_on_a_sample_of_many_rows(apsvm, parts, tmp_path, monkeypatch):
    monkeypatch.setattr("apsvm.dask.fitting.VALUES_OF_A_SAMPLE", 2000)
    monkeypatch.setattr("apsvm.dask.fitting.FEWEST_OF_A_CLASS", 60)
    for data, options in ((parts.pattern, []), (parts.queries, []), (parts.classes, ["--one-vs-rest"])):
        code, _, said = apsvm("train", data, "m", "--scheduler", "@", "-v", *options)
        assert code == 0, said
        assert "of 900 rows" in said
        assert load_any_model(tmp_path / "m").header.data.rows == 900


def test_a_run_folder(apsvm, parts, tmp_path):
    code, _, said = apsvm("train", parts.pattern, "--run-dir", "run", "--scheduler", "@", "-C", 1, "--bound", "hinge")
    assert code == 0, said
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["log.jsonl", "ranker.model"]


def test_parts_of_other_kinds(apsvm, parts, tmp_path):
    """Folders, and text that is compressed."""
    for part in range(2):
        assert apsvm("convert", parts.folder / f"part-{part}.svm", f"kind-{part}")[0] == 0
    (tmp_path / "kind-2").write_bytes(gzip.compress((parts.folder / "part-2.svm").read_bytes()))
    (tmp_path / "kind-3").write_bytes(b"")
    hinge = ("-C", "10", "--bound", "hinge")
    code, _, said = apsvm("train", tmp_path / "kind-*", "there", "--scheduler", "@", *hinge)
    assert code == 0, said
    assert apsvm("train", parts.path, "here", *hinge)[0] == 0
    require_alike(load_any_model(tmp_path / "there"), load_any_model(tmp_path / "here"))
    values = tmp_path / "kind-1" / "X.npy"
    values.write_bytes(values.read_bytes()[:-1] + b"7")
    code, _, said = apsvm("train", tmp_path / "kind-*", "there", "--scheduler", "@", *hinge)
    assert code == 65
    assert "kind-1/X.npy: damaged" in said
    assert "(on inproc://" in said


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (MemoryError(), "not enough memory"),
        (OSError("no more handles"), "no more handles"),
        (ValueError("shapes (2,)\n and (3,)"), "ValueError: shapes (2,) and (3,)"),
    ],
)
def test_a_fault_on_a_worker_names_it(apsvm, parts, tmp_path, monkeypatch, fault, message):

    def broken(*given, **options):
        raise fault

    monkeypatch.setattr("apsvm.dask.parts.FilePart.read", broken)
    code, _, said = apsvm("train", parts.pattern, "out", "--scheduler", "@")
    assert code == 1, said
    [line] = [line for line in said.splitlines() if "error" in line]
    assert message in line
    assert "inproc://" in line
    assert not os.path.isfile(tmp_path / "out")


def test_tables_that_do_not_go_together(apsvm, parts, tmp_path):
    for name, text in {"a": "x,y\n1,0\n2,1\n", "b": "x,y\n3,1\n,0\n", "c": "z,y\n3,1\n"}.items():
        (tmp_path / f"{name}.csv").write_text(text)
    code, _, said = apsvm("train", "[ac].csv", "m", "--scheduler", "@")
    assert code == 65
    assert "c.csv" in said
    code, _, said = apsvm("train", "[ab].csv", "m", "--scheduler", "@", "--missing", "refuse")
    assert code == 65
    assert "b.csv:3: column 'x': the cell is missing" in said


def test_a_column_that_knows_the_label_is_named(apsvm, tmp_path):
    """It is filled in the rows of one label alone, of all parts."""
    lines = ["x,known,y", *(f"{row % 7},{row % 3 if row % 5 == 0 else ''},{int(row % 5 == 0)}" for row in range(90))]
    for part in range(3):
        rows = lines[1 + 30 * part : 31 + 30 * part]
        (tmp_path / f"part-{part}.csv").write_text("\n".join([lines[0], *rows, ""]))
    said = [apsvm("train", "part-*.csv", "m", "-C", "1", *more)[2] for more in ((), ("--scheduler", "@"))]
    named = [[line for line in one.splitlines() if "is filled only where y = 1" in line] for one in said]
    assert named[0] == named[1]
    assert len(named[0]) == 1


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
    ("arguments", "code", "message"),
    [
        ("train {parts} --scheduler @", 2, "name the MODEL"),
        ("train - m --scheduler @", 2, "not standard input"),
        ("train nothing-*.svm m --scheduler @", 66, "no file is called nothing-*.svm"),
        ("train {parts} m --scheduler local:none", 2, "expected local:N with N workers, from 1 to 1024"),
        ("train {parts} m --scheduler local:0", 2, "expected local:N with N workers, from 1 to 1024"),
        ("train {parts} m --scheduler http://here", 66, "unknown address scheme 'http'"),
        ("train {parts} m --scheduler tcp://127.0.0.1:1", 66, "no scheduler answers at tcp://127.0.0.1:1"),
        ("train {parts} m --scheduler @ --loss warp", 2, "--loss warp is not trained on a cluster"),
        ("train {parts} m --scheduler @ --latent", 2, "--latent is not for training on a cluster"),
        ("train {parts} m --scheduler @ --pool mean", 2, "--scheduler does not go with --pool"),
        ("train {parts} m --scheduler @ --threshold f1", 2, "--scheduler does not go with --threshold"),
        ("train {parts} m --scheduler @ --labels y", 2, "--scheduler does not go with --labels"),
    ],
)
def test_what_does_not_go_is_refused(apsvm, parts, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.setattr("apsvm.dask.cluster.CONNECTING", 0.2)
    found, _, said = apsvm(*arguments.replace("{parts}", str(parts.pattern)).split())
    assert found == code, said
    assert message in said
    assert not (tmp_path / "m").exists()
