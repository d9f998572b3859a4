"""What rows in shards are as a whole, against the same rows in one place."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from shards import crew_of, sharded

from apsvm.dask.crew import LocalCrew
from apsvm.dask.data import ShardedData
from apsvm.dask.evaluation import order_statistic
from apsvm.dask.sources import ArrayPart, FilePart
from apsvm.data import DataError
from apsvm.data.features.scaling import learn_scaling
from apsvm.data.moments import column_moments
from apsvm.data.read_options import ReadOptions


@pytest.fixture
def X(rng):
    """The shards of these rows have other means; a column is constant in each of them, and one in all."""
    parts = np.repeat([0.0, 5.0, -3.0], [20, 30, 50])
    return np.column_stack([rng.normal(size=100) + parts, 3.0 * rng.normal(size=100), parts, np.full(100, 7.0)])


@pytest.mark.parametrize("name", ["none", "l2", "maxabs", "standard"])
def test_scalings_are_learned_from_all_rows(X, name):
    data = ShardedData.of(crew_of(X, np.arange(100) % 2.0, [20, 50]), "the rows")
    found, expected = data.scale(name, 1.0), learn_scaling(name, X)
    assert (found.name, found.unit_rows) == (expected.name, expected.unit_rows) == (name, name == "l2")
    for one, other in ((found.divisors, expected.divisors), (found.centre, expected.centre)):
        assert (one is None) == (other is None)
        assert one is None or one == pytest.approx(other, rel=1e-12)


def test_moments_are_those_of_all_rows(X):
    qid = np.repeat(np.arange(10), 10)
    data = sharded(X, np.arange(100) % 2.0, [20, 50], qid=qid)
    mean, variance = data.moments()
    assert mean == pytest.approx(X.mean(axis=0), rel=1e-12)
    assert variance == pytest.approx(X.var(axis=0), rel=1e-12)
    assert data.moments(within_queries=True).variance == pytest.approx(column_moments(X, groups=qid).variance, rel=1e-9)


def test_means_that_differ_by_rounding_are_those_of_a_constant_column():
    of_shards = np.repeat([0.0, 1.0], 50)
    X = 7.0 + np.column_stack([1e-10 * of_shards, 1e-8 * of_shards])
    _, variance = sharded(X, np.arange(100) % 2.0, [50]).moments()
    assert variance[0] == 0.0
    assert variance[1] == pytest.approx(2.5e-17, rel=1e-6)


def test_what_rounds_cost_is_counted(X):
    """A number takes 8 bytes, and so does what it is sent in."""
    crew, ids = crew_of(X, np.arange(100) % 2.0, [20, 50], qid=np.arange(100)), np.arange(3)
    crew.set_up("read")
    crew.take_traffic()
    for rounds in (1, 2):
        for _ in range(rounds):
            crew.ask("bytes_of_queries", ids)
            crew.ask("bytes_of_queries", each=[(ids,)] * 3, programme=[("forget", [])])
        traffic = crew.take_traffic()
        assert (traffic.rounds, traffic.received) == (2 * rounds, rounds * 2 * 3 * 8)
        common, each, programme = 8 + (8 + 24), 8 + 3 * (8 + 8 + 24), 8 + (8 + (8 + 6) + 8)
        assert traffic.sent == rounds * (3 * (common + 8) + 3 * (8 + programme) + each)
        assert 0.0 < traffic.working_seconds < traffic.seconds < 60.0


ROWS, LABELS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"X": ROWS[0]}, "expected rows of features, .n, d., found an array of 1 dimensions"),
        ({"X": np.where(ROWS > 5.0, np.inf, ROWS)}, "a feature value is not finite"),
        ({"X": sp.csr_array(np.where(ROWS > 5.0, np.nan, ROWS))}, "a feature value is not finite"),
        ({"X": ROWS.astype(str) + "x"}, "features are numbers: .*'1.0x'"),
        ({"X": pd.DataFrame(ROWS, columns=["a", "b"])}, "expected the columns of part 0, .* no names, found a, b"),
        ({"y": LABELS[:2]}, "expected 3 values of y, one a row, found shape .2,."),
        ({"y": LABELS.astype(str)}, "y is of numbers, found <U"),
        ({"y": np.where(LABELS > 0, np.nan, 0.0)}, "a value of y is not finite"),
        ({"qid": LABELS[:2]}, "expected 3 values of qid"),
        ({"qid": LABELS / 2.0}, "query ids are whole numbers, found 0.5"),
        ({"weights": LABELS[:2]}, "expected 3 values of sample_weight"),
        ({"weights": -LABELS}, "a sample_weight is at least 0, found -1"),
        ({"weights": LABELS / 2.0, "copies": True}, "fraction"),
    ],
)
def test_arrays_that_are_no_rows(columns, message):
    with pytest.raises(DataError, match=f"^part 4: .*{message}"):
        ArrayPart(**{"X": ROWS, "y": LABELS, "number": 4, **columns}).read(1)


def test_rows_of_arrays():
    part = ArrayPart(sp.coo_array(ROWS.astype(int)), LABELS[:, None] > 0, LABELS, LABELS.astype(int), 2)
    data = part.read(1)
    np.testing.assert_array_equal(data.X.toarray(), ROWS)
    for column, dtype in ((data.relevance, float), (data.groups, np.int64), (data.costs, float)):
        assert column.tolist() == [1, 0, 1]
        assert column.dtype == dtype
    assert (data.X.dtype, data.zero_based, data.source, data.fingerprint) == (np.float64, True, "part 2", "")
    assert data.unknown_features == 0
    twice = sp.csr_array((np.ones(3, dtype=np.float32), [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    X = ArrayPart(twice, LABELS[:2]).read(1).X
    assert (X.data.tolist(), X.dtype) == ([2.0, 1.0], np.float32)
    copies = ArrayPart(ROWS, LABELS, None, LABELS * 2, copies=True).read(1)
    np.testing.assert_array_equal(copies.X, ROWS[[0, 0, 2, 2]])
    assert copies.costs is None


FROM_0, FROM_1, IN_A_QUERY = "1 0:1 1:2\n", "-1 1:1 2:1\n", "1 qid:3 1:1\n"


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        ([[FROM_0], [FROM_1]], "^the rows: some parts count features from 0 and some from 1 .--zero-based.$"),
        ([[FROM_0, FROM_1]], "part-0-0: of the parts, some count features from 0 and some from 1$"),
        ([[IN_A_QUERY], [FROM_1]], "^the rows: some parts have qid and some have none$"),
        ([[IN_A_QUERY, FROM_1]], "part-0-1: it has no qid, and other parts have$"),
        ([["", FROM_1, "2 1:1\n", "3 1:1\n"]], "part-0-0: its part of the rows has 3 different labels, 2 at most are"),
        ([["1,2 1:1\n"]], "part-0-0: rows of several labels are not trained on a cluster .on worker 0.$"),
        ([[FROM_1], ["1 bag:1 1:1\n"]], "part-1-0: rows in bags .* --bags ignore .on worker 1.$"),
        ([[""], [""]], "^the rows: there are no rows$"),
    ],
)
def test_parts_that_do_not_go_together(tmp_path, monkeypatch, shards, message):
    monkeypatch.setattr("apsvm.dask.shards.rows.MOST_LABELS", 2)
    with pytest.raises(DataError, match=message):
        ShardedData.of(crew_of_files(tmp_path, shards), "the rows")


def crew_of_files(folder, shards, **of_part):
    """A shard for each list of texts."""
    sources = []
    for shard, texts in enumerate(shards):
        paths = [folder / f"part-{shard}-{number}" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        sources.append([FilePart(str(path), ReadOptions(multilabel=True), **of_part) for path in paths])
    return LocalCrew(sources)


def test_what_parts_are_as_a_whole(tmp_path):
    texts = [["1 0:1 9:2\n", "-1 0:1\n2 3:1\n"], [""], ["1 0:3 8:1\n"]]
    crew = crew_of_files(tmp_path, texts, n_features=5, ignore_unknown=True)
    data = ShardedData.of(crew, "the rows")
    digests = "".join(hashlib.sha256(text.encode()).hexdigest() + "\n" for texts in texts for text in texts)
    assert data.fingerprint == hashlib.sha256(digests.encode()).hexdigest()
    whole = data.of_labels()
    assert (whole.X.shape, whole.X.size, whole.unknown_features) == ((4, 5), 4, 2)
    assert (whole.zero_based, whole.source, whole.fingerprint) == (True, "the rows", data.fingerprint)
    assert whole.relevance.tolist() == data.labels.tolist() == [-1.0, 1.0, 2.0]
    assert data.counts.tolist() == [1, 2, 1]
    assert (data.has_qid, data.columns, data.remarks, data.is_sparse) == (False, None, (), True)
    of_arrays = ShardedData.of(crew_of(ROWS, LABELS, [1]), "X")
    assert (of_arrays.fingerprint, of_arrays.width, of_arrays.is_sparse) == ("", 2, False)


def test_scores_at_places():
    scores = np.array([3.5, -0.0, -2.5, 0.0, 1e300, -1e-300, 5e-324, -1e300])
    data = sharded(scores[:, None], np.arange(8) % 2.0, [3])
    data.take_list()
    of_rows = data.vectors.empty()
    data.vectors.later(of_rows, "scores", np.ones(1), of_rows.number)
    assert [order_statistic(data, of_rows, place) for place in range(8)] == np.sort(scores).tolist()
