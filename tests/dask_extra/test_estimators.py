"""The estimators on a cluster against the plain ones: the same objective, certificate, weights and figures."""

from __future__ import annotations

import gc
import time
from inspect import signature

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from apsvm import APSVMClassifier, APSVMRanker, RankNCG, WeakRankerWarning
from apsvm.dask import DaskAPSVMClassifier, DaskAPSVMRanker, DaskRankNCG


@pytest.fixture(scope="module")
def data():
    """X, y of two names, grades and queries."""
    rng = np.random.default_rng(5)
    n = 2400
    X = rng.normal(size=(n, 5))
    level = X[:, 0] - 0.5 * X[:, 1] + 1.5 * rng.normal(size=n)
    qid = np.repeat(np.arange(n // 30), 30)
    return X, np.where(level > 2.0, "yes", "no"), np.clip(np.round(level), 0, 3), qid


def cut(array, rows=600):
    return da.from_array(array, (rows, -1) if array.ndim == 2 else rows)


def assert_same_fit(plain, other):
    one, two = plain.certificate_, other.certificate_
    assert two.primal == pytest.approx(one.primal, rel=1e-9)
    assert two.dual == pytest.approx(one.dual, rel=1e-9)
    assert two.reached
    assert two.tolerance == pytest.approx(one.tolerance, rel=1e-12)
    np.testing.assert_allclose(other.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.intercept_, plain.intercept_, rtol=1e-6, atol=1e-9)
    assert pytest.approx(plain.C_, rel=1e-12) == other.C_
    assert other.n_features_in_ == plain.n_features_in_
    assert other.to_model().header.labels == plain.to_model().header.labels


def test_what_is_not_scored_on_a_cluster(client, data):
    X, y, _, _ = data
    model = DaskAPSVMClassifier("zero-one", C=1.0)
    with pytest.raises(ValueError, match=r"^there is no dask client: make one, Client\(address\), or pass client=;"):
        model.fit(cut(X), cut(y))
    with client.as_current():
        model.fit(cut(X), cut(y))
    model.client = client
    lazy = client.compute(model.decision_function(cut(X))).result()
    np.testing.assert_array_equal(model.decision_function(X), lazy)  # rows of this process
    plain = APSVMClassifier.from_model(model.to_model())
    assert model.score(cut(X), cut(y)) == pytest.approx(plain.score(X, y), rel=1e-9)
    with pytest.raises(ValueError, match=r"^X: there are no rows"):
        model.score(cut(X[:0]), cut(y[:0]))


@pytest.mark.parametrize(
    ("estimator", "plain"),
    [(DaskAPSVMClassifier, APSVMClassifier), (DaskAPSVMRanker, APSVMRanker), (DaskRankNCG, RankNCG)],
)
def test_parameters_are_those_of_the_plain_estimator(estimator, plain):
    parameters, of_plain = signature(estimator).parameters, signature(plain).parameters
    assert {name: one.default for name, one in parameters.items() if name != "client"} == {
        name: of_plain[name].default for name in parameters if name != "client"
    }
    values = {name: object() for name in parameters}
    assert estimator(**values).get_params(deep=False) == values


def test_two_numbers_and_no_constant(client, data):
    """Of which the lower one is positive."""
    X, y, _, _ = data
    numbers = np.where(y == "yes", 3.0, 7.0)
    options = {"loss": "ap", "bound": "hinge", "C": 5.0, "fit_intercept": False, "pos_label": 3.0}
    plain = APSVMClassifier(**options).fit(X, numbers)
    other = DaskAPSVMClassifier(client=client, **options).fit(cut(X), cut(numbers))
    assert_same_fit(plain, other)
    assert other.score(cut(X), cut(numbers)) == pytest.approx(plain.score(X, numbers), rel=1e-9)
    other.set_params(loss="ndcg", C=0.1).fit(cut(X), cut(numbers))
    assert other.score(cut(X), cut(np.full(2400, 3.0))) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="is undefined: no positive among the 2400 rows"):
        other.score(cut(X), cut(np.full(2400, 7.0)))
    with pytest.raises(ValueError, match=r"expected labels 7\.0 and 3\.0, found [48]\.0"):
        other.score(cut(X), cut(numbers + 1.0))


def test_the_workers_let_the_rows_go(client, data):
    """After errors too, which a notebook keeps, with the frames that knew them."""
    X, _, grades, _ = data
    parts = (cut(X), cut(grades))

    def actors():
        for _ in range(100):  # messages are on the way
            if not (number := sum(client.run(lambda dask_worker: len(dask_worker.state.actors)).values())):
                break
            time.sleep(0.05)
        return number

    gc.collect()
    assert actors() == 0
    with pytest.warns(ConvergenceWarning, match=r"^DaskAPSVMRanker stopped early: iteration limit") as warned:
        model = DaskAPSVMRanker("ap", client=client, metric="AP", C=1.0, max_iter=2).fit(*parts)
    assert warned[0].filename == __file__
    with pytest.raises(ValueError, match="relevant rows and others, found 0 of 2400 relevant") as of_fit:
        DaskAPSVMRanker("ap", client=client, relevant_from=9.0).fit(*parts)
    with pytest.raises(ValueError, match="undefined") as of_score:
        model.score(cut(X), cut(np.zeros(len(X))))
    assert actors() == 0, (of_fit, of_score)


@pytest.mark.parametrize("loss", ["ndcg", "ap", "f1"])
def test_queries(client, data, loss):
    X, _, grades, qid = data
    plain = APSVMRanker(loss, bound="hinge").fit(X, grades, qid=qid)
    other = DaskAPSVMRanker(loss, client=client).fit(cut(X), cut(grades), cut(qid))
    assert_same_fit(plain, other)
    assert (other.n_queries_, other.n_queries_skipped_) == (plain.n_queries_, plain.n_queries_skipped_)
    if loss != "f1":
        assert other.score(cut(X), cut(grades), cut(qid)) == pytest.approx(plain.score(X, grades, qid=qid), rel=1e-9)


def test_more_classes_than_one_list_takes(client, data, monkeypatch):
    X, _, grades, _ = data
    monkeypatch.setattr("apsvm.dask.pairs.MOST_CLASSES", 3)
    with pytest.raises(ValueError, match=r"^one list on a cluster takes 3 classes at most, found 4 labels"):
        DaskRankNCG(client=client).fit(cut(X), cut(grades))


def test_a_graph_of_classes_that_are_not_there(client, data):
    X, _, grades, qid = data
    for queries in (None, cut(qid)):
        with pytest.raises(ValueError, match=r"no query has rows of two classes of which the graph \(edges\) prefers"):
            DaskRankNCG(client=client, graph=[(7, 8)]).fit(cut(X), cut(grades), queries)


@pytest.mark.slow
def test_data_frames(client, data):
    pytest.importorskip("pyarrow", reason="dask's data frames need pyarrow")
    import dask.dataframe as dd

    X, y, grades, _ = data
    plain = APSVMRanker("ap", bound="hinge", C=10.0).fit(X, grades)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["grade"] = grades
    table = dd.from_pandas(frame, npartitions=3)
    other = DaskAPSVMRanker("ap", client=client, C=10.0).fit(table[list("abcde")], table["grade"])
    assert_same_fit(plain, other)
    assert other.feature_names_in_.tolist() == list("abcde")
    scores = client.compute(other.decision_function(table[list("abcde")])).result()
    assert scores.index.tolist() == frame.index.tolist()
    np.testing.assert_allclose(scores.to_numpy(), plain.decision_function(X), rtol=1e-6, atol=1e-8)
    for names in (y, y == "yes"):
        of_arrays = DaskAPSVMClassifier(client=client, C=1.0).fit(cut(X), cut(names))
        frame = dd.from_pandas(pd.DataFrame(X), npartitions=2)
        classes = client.compute(of_arrays.predict(frame)).result()
        assert classes.tolist() == client.compute(of_arrays.predict(cut(X))).result().tolist()


def test_one_part_and_a_model_that_reads_back(client, data, tmp_path):
    from apsvm import load_model

    X, y, _, _ = data
    other = DaskAPSVMClassifier(client=client, C=5.0).fit(da.from_array(X, (-1, 2)), da.from_array(y, -1))
    other.to_model().save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert model.header.data.rows == len(X)
    assert model.header.estimator == "DaskAPSVMClassifier"
    plain = APSVMClassifier.from_model(model)
    np.testing.assert_allclose(model.score(X), plain.decision_function(X))
    predicted = other.predict(da.from_array(X, (600, 3)))
    assert predicted.dtype == plain.predict(X).dtype
    assert (client.compute(predicted).result() == plain.predict(X)).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y, q: (cut(X), cut(np.where(y > 2, 2, y))), "expected y of two classes, found 3 values"),
        (lambda X, y, q: (cut(X), cut(y[:-1])), "^X has 2400 rows, the columns beside it 2399$"),
        (lambda X, y, q: ([dask.delayed(X)] * 2, [dask.delayed(y > 1)]), "^X has 2 parts and y 1: cut both alike"),
        (
            lambda X, y, q: (cut(np.where(X > 2, "b", X.astype(object))), cut(y > 1)),
            "part 0: features are numbers: .*'b'",
        ),
        (lambda X, y, q: (X, y), "^X is a dask array, a dask data frame or a list of delayed parts, found ndarray$"),
        (lambda X, y, q: (cut(X), None), "y is a dask array"),
        (lambda X, y, q: (cut(np.where(X > 3, np.nan, X)), cut(y > 1)), "feature value is not finite"),
        (lambda X, y, q: (cut(X), cut(np.zeros(2400))), "found one class only"),
        (lambda X, y, q: (cut(X), cut(y > 1), cut(q + 0.5)), "part 0: query ids are whole numbers, found 0.5"),
        (
            lambda X, y, q: ([dask.delayed(X)] * 2, [dask.delayed(y > 1), dask.delayed(y[1:] > 1)]),
            "part 1: expected 2400 values of y, one a row, found shape .2399,.",
        ),
    ],
)
def test_what_does_not_fit_is_refused(client, data, make, message):
    X, _, grades, qid = data
    arguments = make(X, grades, qid)
    with pytest.raises((ValueError, TypeError), match=message):
        DaskAPSVMClassifier(client=client).fit(*arguments)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "p@10"}, "tight"),
        ({"loss": "f1"}, "of one list of all rows"),
        ({"loss": "ndcg"}, "grades of one list"),
    ],
)
def test_what_is_not_trained_on_a_cluster_is_refused(client, data, parameters, message):
    X, _, grades, _ = data
    with pytest.raises(ValueError, match=message):
        DaskAPSVMRanker(client=client, **parameters).fit(cut(X), cut(grades))


def frames(data, *orders):
    """Delayed parts of a data frame, each with its columns in an order of its own."""
    X, _, grades, _ = data
    whole, size = pd.DataFrame(X, columns=list("abcde")), len(X) // len(orders)
    begins = range(0, len(X), size)
    rows = [dask.delayed(whole[at : at + size][list(order)]) for at, order in zip(begins, orders, strict=True)]
    return rows, [dask.delayed(grades[at : at + size]) for at in begins]


def test_sample_weight_is_that_of_one_machine(client, data):
    X, y, grades, qid = data
    rng = np.random.default_rng(2)
    of_queries = rng.integers(0, 3, qid.max() + 1).astype(float)[qid] / 2.0
    parameters = {"C": 5.0, "epsilon": 1e-5, "bound": "hinge"}
    for loss, names, weight in (
        ("ap", y, rng.integers(0, 3, len(X))),
        ("zero-one", y, rng.uniform(0.1, 2.0, len(X))),
    ):
        plain = APSVMClassifier(loss, **parameters).fit(X, names, sample_weight=weight)
        other = DaskAPSVMClassifier(loss, client=client, **parameters)
        assert_same_fit(plain, other.fit(cut(X), cut(names), sample_weight=cut(weight)))
        if loss == "ap":
            score = other.score(cut(X), cut(names), sample_weight=cut(weight))
            assert score == pytest.approx(plain.score(X, names, sample_weight=weight), rel=1e-9)
    plain = APSVMRanker("ndcg", **parameters).fit(X, grades, qid=qid, sample_weight=of_queries)
    other = DaskAPSVMRanker("ndcg", client=client, **parameters)
    assert_same_fit(plain, other.fit(cut(X), cut(grades), cut(qid), cut(of_queries)))
    score = other.score(cut(X), cut(grades), cut(qid), cut(of_queries))
    assert score == pytest.approx(plain.score(X, grades, qid=qid, sample_weight=of_queries), rel=1e-9)
    for estimator, columns, message in (
        (DaskAPSVMRanker("ap"), (cut(grades), None, cut(of_queries + 0.25)), "part 0: .*fraction"),
        (DaskAPSVMRanker("ap"), (cut(grades), None, [dask.delayed(of_queries)] * 4), "part 0: .* of sample_weight"),
        (DaskAPSVMRanker("ap"), (cut(grades), None, cut(of_queries - 9.0)), "part 0: a sample_weight is at least 0"),
        (DaskAPSVMRanker("ap"), (cut(grades), cut(qid), cut(rng.uniform(size=len(X)))), "must be the same for all its"),
        (DaskAPSVMClassifier("zero-one"), (cut(y), None, cut(np.zeros(len(X)))), "^X: all sample weights are zero$"),
        (DaskRankNCG(), (cut(grades), None, cut(of_queries)), "takes no sample_weight"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator.set_params(client=client).fit(cut(X), *columns)


def test_cautions_name_parameters(client):
    """Of rows that are all alike."""
    y = np.arange(40) % 4 == 0
    with pytest.warns(WeakRankerWarning, match=r"^DaskAPSVMClassifier: this model ranks nothing: .*another loss"):
        DaskAPSVMClassifier(client=client, C=1.0).fit(cut(np.zeros((40, 2)), 20), cut(y.astype(int), 20))


def test_delayed_parts(client, data):
    """Of sparse rows, which are scaled by another rule than dense ones."""
    X, _, grades, _ = data
    X = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    plain = APSVMRanker("ap", bound="hinge", C=10.0).fit(X, grades)
    rows = [dask.delayed(X[begin : begin + 800]) for begin in (0, 800, 1600)]
    labels = [dask.delayed(grades[begin : begin + 800]) for begin in (0, 800, 1600)]
    other = DaskAPSVMRanker("ap", client=client, C=10.0).fit(rows, labels)
    assert_same_fit(plain, other)
    assert other.to_model().header.features.scale == plain.to_model().header.features.scale == "none"
    parts = client.gather(client.compute(other.predict(rows)))
    np.testing.assert_allclose(np.concatenate(parts), plain.decision_function(X), rtol=1e-6, atol=1e-8)
