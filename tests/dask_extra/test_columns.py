"""Tables on a cluster: columns go by their names, as on one machine."""

from __future__ import annotations

import json
import os

import numpy as np
import pandas as pd
import pytest
from command import in_process
from over import over

from apsvm import load_model
from apsvm.dask.crew import LocalCrew
from apsvm.dask.data import ShardedData
from apsvm.dask.sources import ArrayPart
from apsvm.data import DataError

TRAINING = ("-C", "10", "--bound", "hinge", "-e", "1e-6")


@pytest.fixture(scope="module")
def frames():
    """Two parts of a table of whose columns a and c rank one against the other."""
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(400, 3)), 3) * [1.0, 1.0, 5.0] + [0.0, 2.0, 0.0]
    whole = pd.DataFrame(X, columns=list("abc")).assign(label=(X[:, 0] - X[:, 2] / 5.0 > 1.2).astype(int))
    return whole[:200], whole[200:].reset_index(drop=True)


@pytest.fixture
def apsvm(client, tmp_path):
    """Runs the command line in ``tmp_path``; @ is the cluster's address."""

    def run(*arguments):
        words = [client.scheduler.address if argument == "@" else str(argument) for argument in arguments]
        done = in_process(words, env={"PATH": os.environ["PATH"]}, cwd=tmp_path)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


def written(folder, kind, *parts):
    """A pattern of the parts, or a folder of theirs."""
    folder.mkdir()
    for number, part in enumerate(parts):
        name = folder / f"part-{number}.{kind}"
        part.to_csv(name, index=False) if kind == "csv" else part.to_parquet(name)
    return folder if kind == "parquet" else folder / "part-*.csv"


@over("kind", ["parquet", "csv"])
def test_columns_in_another_order_are_those_of_one_machine(apsvm, frames, tmp_path, kind):
    first, second = frames
    parts = written(tmp_path / kind, kind, first, second[["c", "b", "label", "a"]], first[:0])
    other = written(tmp_path / f"{kind}-other", kind, second[["b", "c", "a", "label"]])
    for model, where in (("there", ["--scheduler", "@"]), ("here", [])):
        code, _, shown = apsvm("train", parts, tmp_path / model, *TRAINING, *where)
        assert code == 0, shown
        assert "column 'label' has the labels" in shown
    there, here = load_model(tmp_path / "there"), load_model(tmp_path / "here")
    np.testing.assert_allclose(there.coef, here.coef, rtol=1e-6, atol=1e-9)
    assert there.header.features.names == here.header.features.names == ("a", "b", "c")
    one, many = (
        json.loads(apsvm("eval", other, "--model", tmp_path / "here", "--json", "-m", "AP", *where)[1])["metrics"]
        for where in ([], ["--scheduler", "@"])
    )
    assert many["AP"] == pytest.approx(one["AP"], rel=1e-12)
    assert one["AP"] > 0.9
    code, _, shown = apsvm("predict", other, tmp_path / "here", tmp_path / "scores", "--scheduler", "@")
    assert code == 0, shown
    scores = "".join(path.read_text() for path in sorted((tmp_path / "scores").iterdir()))
    assert scores == apsvm("predict", other, tmp_path / "here")[1]


@over(
    "case",
    [
        (lambda part: part.rename(columns={"c": "z"}), ("no column c and the column z besides",)),
        (lambda part: part.drop(columns="b"), ("no column b",)),
        (lambda part: part.assign(d=1.0), ("the column d besides",)),
        (lambda part: part.drop(columns="label"), ("which column has the labels?", "a, b, c")),
        (lambda part: part.assign(b=np.nan), ("column 'b'", "the cell is missing", "on a cluster zero alone")),
        (lambda part: part.assign(b="word"), ("column 'b' does not hold what it holds in",)),
        (lambda part: part.assign(label="yes"), ("column 'label': expected the labels of", "numbers, found yes")),
    ],
)
@over("mode", [(), ("--one-vs-rest",)])
def test_a_part_of_other_columns_is_an_error_that_names_it(apsvm, frames, tmp_path, case, mode):
    change, texts = case
    folder = tmp_path / "parts"
    parts = written(folder, "parquet", frames[0], change(frames[1]))
    code, _, shown = apsvm("train", parts, tmp_path / "m", "-C", "1", "--scheduler", "@", *mode)
    assert code == 65, shown
    for text in (str(folder / "part-1.parquet"), *texts):
        assert text in shown, shown
    assert not (tmp_path / "m").exists()


def test_queries_are_numbers_and_zero_stands_for_missing_cells(apsvm, frames, tmp_path):
    parts = [part.assign(qid=np.arange(len(part)) // 20 + 100 * at) for at, part in enumerate(frames)]
    parts[1].loc[5:9, "b"] = np.nan
    data = written(tmp_path / "numbers", "parquet", *parts)
    options = ("--missing", "zero", *TRAINING)
    assert apsvm("train", data, "there", "--scheduler", "@", *options)[0] == 0
    assert apsvm("train", data, "here", *options)[0] == 0
    there, here = load_model(tmp_path / "there"), load_model(tmp_path / "here")
    np.testing.assert_allclose(there.coef, here.coef, rtol=1e-5, atol=1e-8)
    assert there.header.features.columns == here.header.features.columns
    words = written(tmp_path / "words", "parquet", *(part.assign(qid="q" + part["qid"].astype(str)) for part in parts))
    code, _, shown = apsvm("train", words, "m", "--scheduler", "@", *options)
    assert code == 65
    assert "part-0.parquet: column 'qid': on a cluster queries are whole numbers, found 'q0'" in shown
    code, _, shown = apsvm("train", data, "m", "--scheduler", "@", "--missing", "median")
    assert code == 2
    assert "--missing median is learned from all rows" in shown


def test_parts_of_arrays(rng):
    """A shard may have no rows, or a part without; an array has all columns."""
    X, y = rng.normal(size=(6, 3)), np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])

    def crew(*shards):
        return LocalCrew([[ArrayPart(x, y[: len(x)], None, None, 0) for x in shard] for shard in shards])

    data = ShardedData.of(crew([X[:0]], [X[:2], X[:0, :1], X[2:3]], [X[3:]]), "the rows")
    assert [rows.shape for rows in data.crew.ask("rows_as_read", slice(None))] == [(0, 3), (3, 3), (3, 3)]
    weighed = [ArrayPart(X, y, None, y + 1.0), ArrayPart(X, y)]  # the second's are 1
    assert ShardedData.of(LocalCrew([weighed]), "the rows").crew.ask("total_cost") == [y.sum() + 12.0]
    with pytest.raises(DataError, match=r"it has 2 columns, other parts have 3$"):
        ShardedData.of(crew([X, X[:, :2]]), "the rows")
