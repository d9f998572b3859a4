"""The estimators on two workers are those of one process."""

from __future__ import annotations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tables import RECORDS

from apsvm import APSVMClassifier, APSVMRanker, RankNCG
from apsvm.dask import DaskAPSVMClassifier, DaskAPSVMRanker, DaskRankNCG


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(1200, 4)) * [1.0, 3.0, 0.1, 1.0]
    return X, (X[:, 0] + X[:, 3] + rng.normal(size=1200) > 1.5).astype(int)


def frame(rng, n=600):
    """Numbers with missing cells, words, a date and a long tail."""
    table = pd.DataFrame({"f": rng.normal(size=n), "amount": np.exp(2.0 * rng.normal(size=n))})
    table["word"] = rng.choice(["DE", "FR"], n)
    table.loc[n - 20 :, "word"] = "only in the last part"
    table["day"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(n) // 24, unit="D")
    table["fraud"] = (table.f + (table.word == "FR") + rng.normal(size=n) > 1.5).astype(int)
    table.loc[rng.random(n) < 0.1, ["f", "word"]] = None
    return table


def alike(there, here, X_there, X):
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(there.intercept_, here.intercept_, rtol=1e-9, atol=1e-9)
    assert there.n_iter_ == here.n_iter_
    scores, found = here.decision_function(X), dask.compute(there.decision_function(X_there))[0]
    np.testing.assert_allclose(np.asarray(found), scores, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": 10, "bound": "hinge"},
        {"C": 10, "bound": "tight"},
        {"C": 10, "bound": "hinge", "solver": "cutting-plane", "scale": "maxabs"},
        {"C": 10, "bound": "hinge", "features": "piecewise:3"},
        {"loss": "f1", "C": 10.0},
        {"loss": "zero-one", "C": 10.0},
        {"loss": "mrr", "bound": "hinge", "C": 1.0, "pos_label": 0},
        {},
    ],
)
def test_training_is_that_of_one_process(client, rows, parameters):
    X, y = rows
    cut = da.from_array(X, (500, 2))
    there = DaskAPSVMClassifier(client=client, **parameters).fit(cut, da.from_array(y, 400))
    here = APSVMClassifier(**parameters).fit(X, y)
    with client.as_current():
        alike(there, here, cut, X)
        assert (there.predict(cut).compute() == here.predict(X)).all()
    assert there.score(cut, y) == pytest.approx(here.score(X, y), rel=1e-12)
    assert there.to_model().header.data == here.to_model().header.data


def test_a_choice_on_a_sample_goes_on_with_all_rows(client, rows, monkeypatch):
    monkeypatch.setattr("apsvm.dask.fitting.VALUES_OF_A_SAMPLE", 2400)
    monkeypatch.setattr("apsvm.dask.fitting.FEWEST_OF_A_CLASS", 50)
    X, y = rows
    there = DaskAPSVMClassifier(client=client).fit(da.from_array(X, (300, -1)), y)
    header = there.to_model().header
    assert header.data.rows == 1200
    assert header.details["choice"]["candidates"]
    assert there.certificate_.reached
    here = APSVMClassifier(C=header.C, bound=header.certificate.bound).fit(X, y)
    assert there.certificate_.bound == here.certificate_.bound
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=0.02)
    qid, grades = np.repeat(np.arange(60), 20), np.clip(np.round(X[:, 0]), 0, 2)
    ranker = DaskAPSVMRanker(client=client).fit(da.from_array(X, (300, -1)), grades, qid=qid)
    assert ranker.n_queries_ + ranker.n_queries_skipped_ == 60


@pytest.mark.parametrize("cut", [[600], [590, 600], [1, 200, 201, 500, 600]])
def test_data_frames_are_tables(client, rng, cut, monkeypatch):
    monkeypatch.setattr("apsvm.dask.parts.MOST_NUMBERS", 32)  # medians are found by a second look
    table = frame(rng)
    pieces = [table.iloc[begin:end] for begin, end in zip([0, *cut[:-1]], cut, strict=True)]
    whole = dd.concat([dd.from_pandas(piece, npartitions=1) for piece in pieces])
    features = ["f", "amount", "word", "day"]
    parameters = {"C": 10, "bound": "hinge"}
    there = DaskAPSVMClassifier(client=client, **parameters).fit(whole[features], whole["fraud"])
    here = APSVMClassifier(**parameters).fit(table[features], table["fraud"])
    assert there.to_model().header.features == here.to_model().header.features
    with client.as_current():
        alike(there, here, whole[features], table[features])
    assert list(there.feature_names_in_) == features
    np.testing.assert_allclose(there.feature_importances_, here.feature_importances_, rtol=1e-9)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True, phases=[Phase.generate])
@given(records=RECORDS, share=st.floats(0.2, 0.8))
def test_any_table_in_two_parts(client, records, share):
    """The later rows first: what is learned of columns is that of the rows in this order in one process. Weights of a
    few rows, many of them alike, are told apart by rounding: their objective is compared."""
    table = pd.DataFrame.from_records(records)
    table["when"] = pd.to_datetime(table["when"])
    cut = int(share * len(table))
    pieces = [table.iloc[cut:], table.iloc[:cut]]
    whole, here = dd.concat([dd.from_pandas(piece, npartitions=1) for piece in pieces]), pd.concat(pieces)
    features, parameters = ["amount", "count", "city", "ok", "when", "code", "x"], {"C": 1.0, "bound": "hinge"}
    fitted = APSVMClassifier(**parameters).fit(here[features], here["y"])
    there = DaskAPSVMClassifier(client=client, **parameters).fit(whole[features], whole["y"])
    assert there.to_model().header.features == fitted.to_model().header.features
    assert there.certificate_.primal == pytest.approx(fitted.certificate_.primal, rel=1e-3)


@pytest.mark.parametrize("columns", [["f", "amount", "word", "day"], ["f", "amount"]])
def test_the_plainest_calls(client, rng, tmp_path, columns):
    """Dask joins small parts of Parquet where few columns are read."""
    table = frame(rng)
    for part in range(6):
        table.iloc[100 * part : 100 * part + 100].to_parquet(tmp_path / f"part-{part}.parquet")
    table.to_csv(tmp_path / "all.csv", index=False)
    here = APSVMClassifier(C=10, bound="hinge").fit(table[columns], table["fraud"])
    numbers = [column for column in columns if column not in ("word", "day")]
    with client.as_current():
        parquet = dd.read_parquet(tmp_path / "part-*.parquet")
        persisted = parquet.persist()
        for X, y in (
            (parquet.drop(columns=[name for name in parquet.columns if name not in columns]), parquet["fraud"]),
            (persisted[columns], persisted["fraud"]),
            (parquet[columns].repartition(npartitions=1), table["fraud"]),
        ):
            there = DaskAPSVMClassifier(C=10, bound="hinge").fit(X, y)
            np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9, atol=1e-9)
        csv = dd.read_csv(tmp_path / "all.csv", blocksize=4096)
        assert csv.npartitions > 2
        there = DaskAPSVMClassifier(C=10, bound="hinge").fit(csv[numbers], csv["fraud"])
        here = APSVMClassifier(C=10, bound="hinge").fit(table[numbers], table["fraud"])
        np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cut", [100, 1200])
def test_queries_wherever_they_are_cut(client, rows, cut):
    X, _ = rows
    grades, qid = np.clip(np.round(X[:, 0] + X[:, 3]), 0, 3), np.repeat(np.arange(40), 30)
    cut_X, weights = da.from_array(X, (cut, -1)), (1.0 + qid % 3)
    there = DaskAPSVMRanker(client=client, bound="hinge").fit(cut_X, grades, da.from_array(qid, 70), weights)
    here = APSVMRanker(bound="hinge").fit(X, grades, qid, weights)
    alike(there, here, X, X)
    assert pytest.approx(here.C_, rel=1e-12) == there.C_
    assert there.score(cut_X, grades, qid, weights) == pytest.approx(here.score(X, grades, qid, weights), rel=1e-12)
    pairs, plain = DaskRankNCG(client=client).fit(cut_X, grades, qid), RankNCG().fit(X, grades, qid)
    np.testing.assert_allclose(pairs.coef_, plain.coef_, rtol=1e-9, atol=1e-9)


def test_sparse_delayed_parts_some_of_them_empty_and_weights_that_are_copies(client, rows):
    X, y = rows
    X = sp.csr_array(np.where(np.abs(X) < 1.0, 0.0, X))
    copies = 1 + y
    parts = [dask.delayed(X[begin:end]) for begin, end in ((0, 500), (500, 500), (500, 1200))]
    parameters = {"C": 10, "bound": "hinge"}
    there = DaskAPSVMClassifier(client=client, **parameters).fit(parts, y, sample_weight=copies)
    here = APSVMClassifier(**parameters).fit(X, y, sample_weight=copies)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9, atol=1e-9)
    with client.as_current():
        found = dask.compute(there.decision_function(parts[:1]))[0]
    np.testing.assert_allclose(found[0], here.decision_function(X[:500]), rtol=1e-9)


def test_words_as_classes(client, rows):
    X, y = rows
    words = np.array(["no", "yes"], dtype=object)[y]
    there = DaskAPSVMClassifier(client=client, C=10, bound="hinge").fit(da.from_array(X, (500, -1)), words)
    assert there.pos_label_ == "yes"
    assert set(there.predict(X)) == {"no", "yes"}
    with pytest.raises(ValueError, match="expected labels of"):
        there.score(da.from_array(X, (500, -1)), y)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y": np.zeros(3)}, ValueError, "X has 1200 rows and y 3"),
        ({"y": np.zeros(1200)}, ValueError, "one class"),
        ({"X": np.zeros((1200, 2))}, TypeError, "X is a dask array, a dask data frame or a list of delayed parts"),
        ({"X": da.full((1200, 2), np.nan, chunks=(400, 2))}, ValueError, "Input contains NaN"),
        ({"X": da.full((1200, 2), "a", chunks=(400, 2))}, ValueError, "could not convert string"),
        ({"latent": True}, ValueError, "bags"),
        ({"threshold": "f1"}, ValueError, "not available on a cluster"),
        ({"loss": "no-such-loss"}, ValueError, "no-such-loss"),
    ],
)
def test_what_does_not_go(client, rows, change, error, message):
    X, y = rows
    given = {"X": da.from_array(X, (400, -1)), "y": y} | {name: change[name] for name in change if name in "Xy"}
    parameters = {name: change[name] for name in change if name not in "Xy"}
    with pytest.raises(error, match=message):
        DaskAPSVMClassifier(client=client, **parameters).fit(**given)


def test_there_is_no_client():
    with pytest.raises(ValueError, match="there is no dask client"):
        DaskAPSVMClassifier().fit(da.zeros((4, 2)), np.zeros(4))


def test_columns_that_are_others(client, rng):
    table = frame(rng)
    whole = dd.from_pandas(table, npartitions=3)
    model = DaskAPSVMClassifier(client=client, C=10, bound="hinge").fit(whole[["f", "amount"]], whole["fraud"])
    with client.as_current(), pytest.raises(ValueError, match="feature names"):
        model.decision_function(whole[["f", "word"]]).compute()
