"""Data frames with words, dates and missing cells: what the command makes of the same table."""

from __future__ import annotations

import pickle
from datetime import date

import numpy as np
import pytest
from over import over
from scipy import sparse

from apsvm import APSVMClassifier, APSVMRanker, RankNCG, load_model
from apsvm.cli import run as command_line
from apsvm.data.read_options import TableOptions
from apsvm.data.reading import read_data

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

COLUMNS = ["amount", "country", "when", "ok", "age"]


@pytest.fixture
def payments(rng):
    n = 300
    return pd.DataFrame(
        {
            "amount": 100.0 * rng.normal(size=n),
            "country": rng.choice(["DE", "FR", "US"], n),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "ok": rng.random(n) < 0.5,
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(1, 90, n).astype(float)),
        }
    )


@pytest.fixture
def fraud(payments, rng):
    score = payments["amount"] / 100.0 + (payments["country"] == "FR") + 0.4 * rng.normal(size=len(payments))
    return (score > 1.2).to_numpy()


def test_a_frame_of_sparse_numbers_is_the_matrix(rng):
    X = sparse.csr_array(rng.random((200, 20)) * (rng.random((200, 20)) < 0.1))
    y = X.sum(axis=1) > 1.0
    frame = pd.DataFrame.sparse.from_spmatrix(X, columns=[f"f{j}" for j in range(20)])
    model = APSVMClassifier(C=1.0, bound="hinge").fit(frame, y)
    np.testing.assert_array_equal(model.coef_, APSVMClassifier(C=1.0, bound="hinge").fit(X, y).coef_)


@over("kind", [APSVMClassifier, APSVMRanker, RankNCG])
def test_the_features_are_those_of_the_file(kind, payments, fraud, tmp_path):
    payments.assign(label=fraud.astype(int)).to_csv(tmp_path / "t.csv", index=False)
    rows = read_data(tmp_path / "t.csv", table=TableOptions(label="label"))
    fitted = kind(features="linear").fit(payments, fraud.astype(int))
    assert (fitted.n_features_in_, list(fitted.feature_names_in_)) == (5, COLUMNS)
    header = fitted.to_model().header
    assert header.features.names == rows.table.columns.feature_names()
    assert header.features.columns.features == rows.table.columns.features
    by_hand = kind(features="linear").fit(rows.X, fraud.astype(int))
    np.testing.assert_allclose(fitted.decision_function(payments), by_hand.decision_function(rows.X), rtol=1e-9)
    assert np.ravel(fitted.coef_).size == rows.X.shape[1]


def test_the_command_takes_the_model(payments, fraud, tmp_path):
    fitted = APSVMClassifier().fit(payments, fraud)
    fitted.to_model().save(tmp_path / "m")
    payments.to_csv(tmp_path / "t.csv", index=False)
    assert command_line(["predict", str(tmp_path / "t.csv"), str(tmp_path / "m"), str(tmp_path / "s")]) == 0
    scores = fitted.decision_function(payments) + fitted.to_model().header.threshold.value
    np.testing.assert_allclose(np.loadtxt(tmp_path / "s"), scores, rtol=1e-12)
    again = APSVMClassifier.from_model(tmp_path / "m")
    assert again.to_model().to_bytes() == load_model(tmp_path / "m").to_bytes()
    assert len(repr(load_model(tmp_path / "m"))) < 100
    with pytest.raises(ValueError, match="expected a model of one ranking, or the name of its file, found bytes"):
        APSVMClassifier.from_model(b"m")
    assert (again.n_features_in_, list(again.feature_names_in_)) == (5, COLUMNS)
    np.testing.assert_array_equal(again.decision_function(payments), fitted.decision_function(payments))
    explanation = again.explain(payments[:7])
    np.testing.assert_allclose(explanation.base + explanation.gave.sum(axis=1), again.decision_function(payments[:7]))
    assert explanation.names == COLUMNS


def test_polars_and_pickles(payments, fraud):
    fitted = APSVMClassifier().fit(payments, fraud)
    of_polars = APSVMClassifier().fit(pl.from_pandas(payments), fraud)
    np.testing.assert_allclose(of_polars.coef_, fitted.coef_, rtol=1e-9)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(payments), fitted.predict(payments))


def test_a_frame_of_numbers_is_a_table(payments, fraud, caplog):
    """Cells missing at prediction become the median of the fit; an array of the same columns is accepted too."""
    numbers = payments[["amount", "ok"]]
    fitted = APSVMClassifier().fit(numbers, fraud)
    median = fitted.decision_function(numbers.assign(amount=numbers["amount"].median()))
    with caplog.at_level("INFO", logger="apsvm"):
        missing = fitted.decision_function(numbers.assign(amount=np.nan))
    np.testing.assert_allclose(missing, median, rtol=1e-12)
    assert "300 cells are missing" in caplog.text
    for word, found in (("a", "'a'"), (date(2024, 1, 5), "'2024-01-05'")):
        with pytest.raises(ValueError, match=f"X: row 1: column 'amount': expected a number, found {found}"):
            fitted.predict(numbers.assign(amount=[word] * len(numbers)))
    # A fit after one of words knows nothing of these.
    again = APSVMClassifier().fit(payments, fraud).fit(numbers, fraud)
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    # A column without a value in the fit gives nothing, whatever it has later.
    with_empty = APSVMClassifier().fit(numbers.assign(empty=np.nan), fraud)
    for filled in (1.0, np.nan):
        scores = with_empty.decision_function(numbers.assign(empty=filled))
        np.testing.assert_array_equal(scores, fitted.decision_function(numbers))
    of_single = numbers.astype("float32")
    assert APSVMClassifier().fit(of_single, fraud).decision_function(of_single).shape == (len(numbers),)


def test_types(payments, fraud):
    """Categories are such though they are numbers; words may stand beside numbers; integers may be missing."""
    n = len(payments)
    frame = pd.DataFrame(
        {
            "amount": payments["amount"],
            "kind": pd.Categorical(np.arange(n) % 3),
            "mixed": ["b", "a", 2.5, None] * (n // 4),
            "whole": pd.array([1, None] * (n // 2), dtype="Int64"),
            "cut": pd.cut(np.arange(n), 2),
        }
    )
    names = APSVMClassifier().fit(frame, fraud).to_model().features()
    assert names == [
        "amount",
        "kind=0",
        "kind=1",
        "kind=2",
        "mixed=2.5",
        "mixed=a",
        "mixed=b",
        "mixed is missing",
        "whole",
        "cut=(-0.299, 149.5]",
        "cut=(149.5, 299.0]",
    ]


def test_frames_that_do_not_fit(payments, fraud):
    fitted = APSVMClassifier().fit(payments, fraud)
    n = len(payments)
    refused = {
        "the fit was of a data frame with words or dates: .* found ndarray": payments.to_numpy(),
        "yet now missing:\n- age": payments.drop(columns="age"),
        "same order as they were in fit": payments[COLUMNS[::-1]],
        r"X: row 1: column 'amount': expected a number, found 'x' \(300 such cells\)": payments.assign(amount="x"),
    }
    for message, frame in refused.items():
        with pytest.raises(ValueError, match=message):
            fitted.predict(frame)
    with pytest.raises(ValueError, match=r"expected a data frame with its rows, found LazyFrame: collect\(\) it"):
        APSVMClassifier().fit(pl.from_pandas(payments).lazy(), fraud)
    surrogates = pd.Series(["\udc80", "b"] * (n // 2), dtype=object)
    for column in ([f"no. {at}" for at in range(n)], [[1]] * n, [{1}, 2] * (n // 2), [b"x"] * n, surrogates):
        with pytest.raises(ValueError, match="column 'note'"):
            APSVMClassifier().fit(payments.assign(note=column), fraud)
    # What training did not know gives nothing.
    assert np.isfinite(fitted.decision_function(payments.assign(country="XX", age=np.nan))).all()


def test_numbers_beyond_64_bits_and_durations_of_any_unit(payments, fraud):
    took = pd.to_timedelta(np.arange(len(payments)), unit="h")
    frame = payments.assign(took=took, count=[10**30 + at * 10**28 for at in range(len(payments))])
    fitted = APSVMClassifier().fit(frame, fraud)
    other = frame.assign(took=took.astype("timedelta64[s]"))
    np.testing.assert_array_equal(fitted.decision_function(other), fitted.decision_function(frame))
