"""Which columns have left training's, and that fresh rows of the same data seldom seem to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from over import over
from tables import read

from apsvm.data import Dataset
from apsvm.data.drift import MOST_FEATURES, _log_chance, columns_that_left, spread_of
from apsvm.models.header import Header, HeaderError, Spread


def dense(X, groups=None):
    zeros = np.zeros(len(X))
    return Dataset(
        X=np.ascontiguousarray(X), relevance=zeros, groups=groups, costs=None, zero_based=False, source="rows",
        fingerprint="", unknown_features=0,
    )  # fmt: skip


def left(training, rows):
    return list(columns_that_left(spread_of(training), rows, [f"x{j}" for j in range(rows.X.shape[1])]))


def test_a_table_s_columns(tmp_path, rng):
    def table(n, city=("Rome", "Oslo"), moved=0.0, missing=0.1, year=2020, model=None):
        lines = [
            f"{'' if rng.random() < missing else round(rng.normal() + moved, 3)},{rng.choice(city)},"
            f"{year + rng.integers(3)}-01-01,{rng.integers(2)}\n"
            for _ in range(n)
        ]
        return read(tmp_path, "age,city,day,y\n" + "".join(lines), model, missing="indicator")

    training = table(800)
    columns = training.table.columns
    spread, names = spread_of(training), columns.feature_names()

    def found(**changes):
        return list(columns_that_left(spread, table(400, model=columns, **changes), names))

    assert found() == found(year=2030) == []
    (moved,) = found(moved=1.0)
    assert moved.startswith("column 'age' is not as in training: above ")
    (words,) = found(city=("Rome", "Rome", "Rome", "Oslo", "Bonn"))
    assert "column 'city' is not as in training: city=Oslo in 2" in words
    assert " % of the rows, in training 5" in words or " % of the rows, in training 4" in words
    assert "age is missing in " in found(missing=0.6)[0]
    assert len(found(moved=2.0, city=("Rome",))) == 2


def test_numbers_that_rise_fall_or_stand_still(rng):
    X = rng.normal(size=(600, 4))
    X[:, 3] = 7.0
    training = dense(X)
    assert left(training, dense(X[:300])) == []
    later = rng.normal(size=(300, 4)) * [1.0, 1.0, 0.2, 1.0] + [0.8, -0.8, 0.0, 0.0]
    rises, falls, narrows, varies = left(training, dense(later))
    assert rises.startswith("column 'x0' is not as in training: above ")
    assert falls.startswith("column 'x1' is not as in training: at most ")
    assert varies.endswith("in 100 % of the rows, in training 0 %")
    assert "'x2'" in narrows


def test_a_few_rows_tell_little_and_rows_of_a_query_are_one(rng):
    X = np.repeat(rng.normal(size=(60, 3)), 50, axis=0)
    queries = np.repeat(np.arange(60), 50)
    later = np.repeat(np.full((4, 3), 1.0), 50, axis=0)
    groups = np.repeat(np.arange(4), 50)
    assert left(dense(X, queries), dense(later, groups)) == []
    assert len(left(dense(X), dense(later))) == 3
    assert left(dense(X), dense(later[:3])) == []


@over("p", [0.01, 0.3, 0.9])
@over("sizes", [(20, 500), (200, 200)])
def test_the_bound_on_chance_holds(p, sizes):
    (n, N), draws = sizes, 20_000
    rng = np.random.default_rng(1)
    shares = rng.binomial(N, p, draws) / N, rng.binomial(n, p, draws) / n
    chance = np.exp(_log_chance(*shares, N, n))
    for level in (0.5, 0.1, 0.02):
        assert (chance <= level).mean() <= level
    assert (chance <= 0.5).mean() > 0.002


def test_wide_and_sparse_rows_have_none(rng):
    assert spread_of(dense(rng.normal(size=(9, MOST_FEATURES + 1)))) is None
    assert spread_of(replace(dense(np.eye(9)), X=sp.csr_array(np.eye(9)))) is None
    assert spread_of(dense(np.eye(9))) is not None


def test_a_header_keeps_it():
    spread = Spread(count=3, features=(0, 2), values=(1.5, 0.0), shares=(0.25, 1.0))
    header = Header(loss="ap")
    header = replace(header, data=replace(header.data, spread=spread))
    assert Header.from_json(header.to_json()) == header
    for wrong in ({"shares": (0.5,)}, {"features": (0, -1)}, {"shares": (0.5, 1.5)}, {"count": 0}):
        with pytest.raises(HeaderError, match=r"'data\.spread'"):
            replace(spread, **wrong)
    assert list(columns_that_left(spread, dense(np.ones((99, 2))), ["a", "b"])) == []
