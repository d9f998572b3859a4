"""Estimators of bags: pooled as the command line pools them, requested like qid, and scores by bag or by row."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from over import over
from sklearn.base import clone
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

from apsvm import APSVMClassifier, APSVMRanker, load_model, stack_bags

HOW = {"mean": np.mean, "min": np.min, "max": np.max}


@pytest.fixture(scope="module")
def data():
    """X (n, 4), y of bags (60,), bags (n,) as text, shuffled, and the bags in the order of their first rows."""
    rng = np.random.default_rng(7)
    parts = [rng.normal(size=(rng.integers(1, 6), 4)) + 0.7 * (bag % 2) for bag in range(60)]
    X, bags = stack_bags(parts)
    order = rng.permutation(len(bags))
    X, bags = X[order], bags[order]
    return X, bags % 2, np.array([f"bag {bag}" for bag in bags]), list(dict.fromkeys(bags.tolist())), parts


@pytest.mark.parametrize("pool", ["mean", "max,min", "min,mean,max"])
@pytest.mark.parametrize("sparse", [False, True])
def test_as_rows_pooled_by_hand(data, pool, sparse):
    X, y, bags, first, parts = data
    rows = np.array([np.concatenate([HOW[name](parts[bag], axis=0) for name in pool.split(",")]) for bag in first])
    labels = np.array(first) % 2
    given = sp.csr_array(X) if sparse else X
    model = APSVMClassifier(pool=pool, bound="hinge", C=1.0).fit(given, y, bags=bags)
    by_hand = APSVMClassifier(bound="hinge", C=1.0).fit(rows, labels)
    np.testing.assert_allclose(model.coef_, by_hand.coef_, rtol=1e-6, atol=1e-9)
    scores = model.bag_scores(given, bags)
    np.testing.assert_allclose(scores, by_hand.decision_function(rows), rtol=1e-5, atol=1e-8)
    assert model.n_features_in_ == 4
    np.testing.assert_allclose(model.score(given, y, bags=bags), average_precision_score(labels, scores), rtol=1e-12)
    # A row is a bag of one.
    alone = model.decision_function(given)
    np.testing.assert_allclose(alone, model.bag_scores(given, np.arange(len(y))), rtol=1e-12)
    assert alone.shape == y.shape


def test_of_bags_without_a_pool(data):
    X, y, bags, first, _ = data
    model = APSVMClassifier(bound="hinge", C=1.0).fit(X, y)
    scores = model.decision_function(X)
    expected = [scores[bags == f"bag {bag}"].max() for bag in first]
    assert np.array_equal(model.bag_scores(X, bags), expected)


def test_a_model_and_back(data, tmp_path):
    X, y, bags, _, _ = data
    model = APSVMClassifier(pool="max,mean", bound="hinge", C=1.0, features="piecewise:2").fit(X, y, bags=bags)
    model.to_model().save(tmp_path / "m")
    back = APSVMClassifier.from_model(load_model(tmp_path / "m"))
    assert back.pool == "max,mean"
    assert back.n_features_in_ == 4
    assert np.array_equal(back.bag_scores(X, bags), model.bag_scores(X, bags))
    assert model.to_model().features()[:2] == ["max(1)", "max(2)"]


def test_in_searches_whole_bags(data):
    X, y, bags, _, _ = data
    model = APSVMClassifier(bound="hinge", C=1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        params = {"bags": bags, "groups": bags}
        search = GridSearchCV(model, {"pool": ["mean", "max", "min,mean,max"]}, cv=GroupKFold(3), error_score="raise")
        search.fit(X, y, **params)
        values = cross_val_score(clone(model).set_params(pool="mean"), X, y, cv=GroupKFold(3), params=params)
    assert search.best_params_["pool"] in ("mean", "max", "min,mean,max")
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(values.mean())


@over(
    ("parameters", "change", "message"),
    [
        ({"pool": "mean"}, {"bags": None}, "ranks bags: pass bags, one a row"),
        ({}, {}, "APSVMRanker take them with latent=True"),
        ({"pool": "median"}, {}, "expected some of min, mean, max"),
        ({"pool": "mean"}, {"bags": [1, 2]}, r"expected bags of shape \(\d+,\), one a row, found \(2,\)"),
        (
            {"pool": "mean"},
            {"y": "random"},
            r"rows of a bag share y: found \d in row \d+ and \d in row \d+ of the same",
        ),
        ({"pool": "mean"}, {"qid": "random"}, "rows of a bag share qid"),
        ({"pool": "mean"}, {"sample_weight": "random"}, "rows of a bag share sample_weight"),
        ({"pool": "mean"}, {"bags": "nan"}, "bags contains NaN or infinity"),
    ],
)
def test_what_does_not_fit(data, parameters, change, message):
    X, y, bags, _, _ = data
    given = {"y": y, "bags": bags, **change}
    random = np.arange(len(y)) % 2
    given = {name: random if isinstance(value, str) and value == "random" else value for name, value in given.items()}
    if isinstance(given["bags"], str):
        given["bags"] = np.where(random, np.nan, 1.0)
    with pytest.raises(ValueError, match=message):
        APSVMClassifier(bound="hinge", **parameters).fit(X, **given)


def test_score_of_bags_needs_bags(data):
    X, y, bags, _, _ = data
    model = APSVMClassifier(pool="mean", bound="hinge", C=1.0).fit(X, y, bags=bags)
    with pytest.raises(ValueError, match="pass bags"):
        model.score(X, y)
    with pytest.raises(TypeError, match="pool must be str or None"):
        APSVMClassifier(pool=("mean",)).fit(X, y, bags=bags)


def test_stacked():
    X, bags = stack_bags([np.zeros((2, 3)), sp.csr_array(np.ones((1, 3)))])
    assert X.toarray().tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 1]]
    assert bags.tolist() == [0, 0, 1]
    for wrong, message in (
        ([], "at least one bag"),
        ([np.zeros((0, 3))], r"in bag 0, of shape \(n, d\), found the shape \(0, 3\)"),
        ([np.zeros((1, 3)), np.zeros(3)], "in bag 1"),
        ([np.zeros((1, 3)), np.zeros((1, 2))], "index 1 has size 2"),
    ):
        with pytest.raises(ValueError, match=message):
            stack_bags(wrong)


@pytest.fixture(scope="module")
def found():
    """X (n, 4), y of rows, bags (n,), shuffled: in each positive bag one row stands out; and which rows do."""
    rng = np.random.default_rng(3)
    X, bags = stack_bags([rng.normal(size=(5, 4)) for _ in range(60)])
    stands_out = np.zeros(300, dtype=bool)
    stands_out[np.arange(20) * 5 + 2] = True
    X[stands_out, 0] += 5.0
    order = rng.permutation(300)
    return X[order], (bags < 20).astype(int)[order], bags[order], stands_out[order]


@pytest.mark.parametrize("pos_label", [1, 0])
def test_latent(found, pos_label, tmp_path):
    X, y, bags, stands_out = found
    y = y if pos_label == 1 else 1 - y
    model = APSVMClassifier(latent=True, C="1x", bound="hinge", pos_label=pos_label).fit(X, y, bags=bags)
    first = list(dict.fromkeys(bags.tolist()))
    scores = model.bag_scores(X, bags)
    rows = model.deciding_rows(X, bags)
    assert [bags[row] for row in rows] == first
    assert stands_out[rows][np.array(first) < 20].mean() >= 0.9
    relevance = scores if pos_label == 1 else -scores
    expected = average_precision_score(np.array(first) < 20, relevance)
    assert model.score(X, y, bags=bags) == pytest.approx(expected)
    assert expected >= 0.95
    assert model.certificate_.stationary
    np.testing.assert_allclose(scores, model.decision_function(X)[rows])
    model.to_model().save(tmp_path / "m")
    again = APSVMClassifier.from_model(load_model(tmp_path / "m"))
    assert again.latent
    assert again.score(X, np.where(bags < 20, 1, 0) if pos_label == 1 else y, bags=bags) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("parameters", "more", "says"),
    [
        ({}, {}, "pass bags"),
        ({"pool": "mean"}, {"bags": True}, "choose one"),
        ({}, {"bags": True, "sample_weight": True}, "only loss 'zero-one' takes a sample_weight"),
        ({"start": "random"}, {"bags": True}, "random:N"),
        ({"oracle": "appx"}, {"bags": True}, "cannot serve latent"),
    ],
)
def test_latent_refusals(found, parameters, more, says):
    X, y, bags, _ = found
    columns = {"bags": bags, "sample_weight": np.ones(len(y))}
    with pytest.raises(ValueError, match=says):
        APSVMClassifier(latent=True, **parameters).fit(X, y, **{name: columns[name] for name in more})


def test_queries_of_bags(data):
    X, y, bags, _, _ = data
    qid = np.array([int(bag.split()[1]) // 10 for bag in bags])
    ranker = APSVMRanker("ndcg", pool="mean", bound="hinge", C=1.0).fit(X, y * 2.0, qid=qid, bags=bags)
    assert ranker.to_model().header.data.queries == ranker.n_queries_ == 6
