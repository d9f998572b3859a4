"""Every map: sparse = dense, blocks = whole, only the selected rows count, there and back through arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, assume, currently_in_test_context, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from over import over
from sklearn.kernel_approximation import Nystroem as ScikitNystroem
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from apsvm._support.registry import UnknownNameError
from apsvm.data.features import FEATURE_MAPS, FeatureMapError, base, learn_map, map_of_arrays, mapped, parsed
from apsvm.data.features.base import check_size
from apsvm.data.features.mapped import MappedMatrix

PARAMETERS = {":k": (":3", ":8"), ":m": (":1", ":7"), ":n": (":5", ":9:depth=2")}
NAMES = [
    name
    for form in FEATURE_MAPS
    for name in (
        [form.removesuffix(end) + text for end, texts in PARAMETERS.items() if form.endswith(end) for text in texts]
        or [form]
    )
]

#: Values of which many are equal, and many 0.
TABLES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 30), st.integers(1, 4)),
    elements=st.sampled_from([0.0, 0.0, 0.0, -2.0, -1.0, 0.5, 1.0, 1.0, 3.0, 1e6]),
)
quick = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def X(rng):
    """Columns of many zeros, of two values, of one, far from 0, and with a long tail."""
    X = rng.normal(size=(300, 7)) * np.array([1.0, 5.0, 1e-3, 1.0, 1.0, 1.0, 100.0])
    X[rng.random(X.shape) < 0.5] = 0.0
    X[:, 3], X[:, 4], X[:, 5] = 2.0, X[:, 4] > 0, X[:, 5] + 1e3
    X[:, 6] = np.exp(0.02 * X[:, 6])
    return X


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def learnt(name, X, of=None, chosen=None):
    """The map, with targets by what the rows ``of`` are where it looks at them."""
    of = X if of is None else of
    rows = of if chosen is None else of[chosen]
    sums = rows @ np.arange(1.0, rows.shape[1] + 1.0)
    targets = (sums > np.median(sums)).astype(float)[None]
    if name.startswith("rules") and currently_in_test_context():
        assume((targets != targets[:, :1]).any())
    return learn_map(name, X, chosen, targets=targets)


def test_names_are_of_all_forms():
    assert len(NAMES) >= 10
    assert {"linear", "products", "piecewise:3", "nystroem:7"} <= set(NAMES)


@over("name", NAMES)
@given(X=TABLES)
@quick
def test_sparse_rows_are_mapped_as_dense_ones(name, X):
    """Learned maps do not depend on the storage of X."""
    learned, of_sparse = learnt(name, X), learnt(name, sp.csr_array(X), X)
    assert learned.n_out == of_sparse.n_out
    for key, array in learned.arrays().items():
        np.testing.assert_allclose(of_sparse.arrays()[key], array, rtol=1e-9, atol=1e-9)
    with_zeros = sp.csr_array(X)
    with_zeros.data[: with_zeros.data.size // 2] = 0.0  # stored, and yet 0
    for stored in (sp.csr_array(X), sp.csr_matrix(X), with_zeros):
        result = learned.apply(stored)
        assert sp.issparse(result) == learned.keeps_sparse
        assert sp.issparse(learned.apply(X)) == learned.makes_sparse
        assert result.shape == (len(X), learned.n_out)
        np.testing.assert_allclose(dense(result), dense(learned.apply(stored.toarray())), rtol=1e-9, atol=1e-9)
        if sp.issparse(result):
            assert result.has_sorted_indices
    assert np.isfinite(dense(learned.apply(X))).all()


@over("name", NAMES)
@given(X=TABLES, data=st.data())
@quick
def test_only_the_selected_rows_count(name, X, data):
    chosen = data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, unique=True).map(np.array))
    changed = X.copy()
    changed[np.setdiff1d(np.arange(len(X)), chosen)] = 77.0
    expected = learnt(name, X[chosen])
    for form in (changed, sp.csr_array(changed)):
        learned = learnt(name, form, X, chosen)
        for key, array in expected.arrays().items():
            np.testing.assert_allclose(learned.arrays()[key], array, rtol=1e-6, atol=1e-6)


@over("name", NAMES)
@over("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@over("dtype", [np.float32, np.float64])
def test_blocks_are_the_whole(name, layout, dtype, X, monkeypatch, rng):
    stored, learned = layout(X.astype(dtype)), learnt(name, X)
    whole = learned.apply(stored)
    which = rng.permutation(len(X))[:200]
    monkeypatch.setattr(mapped, "BLOCK_BYTES", 2000)
    matrix = MappedMatrix(stored, learned)
    assert matrix.dtype == dtype == whole.dtype
    assert matrix.shape == whole.shape == (300, learned.n_out)
    assert matrix.rows_per_block < 100 or learned.n_out == 1
    # K^{−1/2} magnifies rounding up to a million times.
    tolerance = 1e-4 if dtype == np.float32 else 1e-7 if learned.stem == "nystroem" else 1e-12
    copy = matrix.materialised(which, np.inf)
    assert copy.dtype == dtype
    np.testing.assert_allclose(dense(copy), dense(whole)[which], rtol=tolerance, atol=tolerance)
    assert matrix.materialised(which, 100) is None


@over("name", NAMES)
def test_there_and_back_through_arrays(name, X):
    learned = learnt(name, X)
    arrays = learned.arrays()
    assert sorted(arrays) == sorted(type(learned).members)
    assert all(array.dtype in (np.float64, np.int64) for array in arrays.values())
    back = map_of_arrays(learned.name, 7, arrays)
    assert back.name == learned.name == str(parsed(name))
    assert (back.n_in, back.n_out) == (7, learned.n_out)
    np.testing.assert_array_equal(dense(back.apply(X)), dense(learned.apply(X)))


@over("name", NAMES)
def test_columns_have_names_and_features(name, X):
    learned = learnt(name, X)
    names = learned.names([f"f{j}" for j in range(7)])
    assert len(names) == len(set(names)) == learned.n_out
    parts = learned.parts()
    assert (parts is None) == name.startswith("nystroem")
    if parts is None:
        return
    assert parts.of_column.shape == (learned.n_out,)
    assert list(parts.features[:7]) == [(j,) for j in range(7)]
    assert len(set(parts.features)) == len(parts.features)
    # Of a column that is a sum of others, these have the weight.
    alone = np.array([parts.weights(one)[k] == 1.0 for k, one in enumerate(np.eye(learned.n_out))])
    assert (~alone).sum() == name.startswith("rules")
    coef = np.cos(np.arange(learned.n_out))
    columns = dense(learned.apply(X))
    np.testing.assert_allclose(columns @ parts.weights(coef), columns @ coef, atol=1e-10)
    for j in range(7):
        changed = X.copy()
        changed[:, j] += 1.7
        moved = (dense(learned.apply(changed)) != dense(learned.apply(X))).any(axis=0)
        assert all(j in parts.features[part] for part in parts.of_column[moved & alone])
    for column, part in enumerate(parts.of_column):
        assert not alone[column] or all(f"f{j}" in names[column] for j in parts.features[part])


@over("name", [name for name in NAMES if name != "linear"])
def test_arrays_that_are_no_map_s(name, X):
    learned = learnt(name, X)
    arrays = learned.arrays()
    for key, array in arrays.items():
        wrong = {
            "not there": {other: value for other, value in arrays.items() if other != key},
            "of another type": {**arrays, key: array.astype(np.float32)},
            "too long": {**arrays, key: np.concatenate([array, array])},
            "of another shape": {**arrays, key: array[None]},
            "one more": {**arrays, "more": array},
        }
        if array.dtype == np.float64 and array.size:
            broken = array.copy()
            broken.flat[0] = np.nan
            wrong["NaN"] = {**arrays, key: broken}
        for what, content in wrong.items():
            if what == "too long" and key in ("landmarks", "features"):
                continue  # then another array does not fit, see below
            with pytest.raises(FeatureMapError):
                map_of_arrays(learned.name, 7, content)
    if name != "logarithms":  # it has arrays of the long-tailed features alone
        with pytest.raises(FeatureMapError):
            map_of_arrays(learned.name, 10**12, arrays)


@over(
    ("name", "changes", "message"),
    [
        ("logarithms", {"tailed": [1], "origins": [0.0], "units": [1.0]}, "does not name some of the 1 features"),
        ("logarithms", {"tailed": [0], "origins": [0.0], "units": [0.0]}, "units is 0"),
        ("piecewise", {"knots": [2.0, 1.0], "starts": [0, 2]}, "do not ascend"),
        ("piecewise", {"knots": [1.0, 1.0], "starts": [0, 2]}, "do not ascend"),
        ("piecewise", {"knots": [1.0, 2.0], "starts": [0, 1]}, "does not divide the 2 knots"),
        ("piecewise", {"knots": [1.0], "starts": [1, 1]}, "does not divide"),
        ("piecewise", {"knots": [np.inf], "starts": [0, 1]}, "not finite"),
        ("piecewise", {"knots": [], "starts": [0, 0], "ranges": [[0.0], [2.0], [1.0]]}, "not of lowest values, means"),
        ("products", {"centre": [0.0], "deviation": [0.0]}, "not above 0"),
        (
            "nystroem:2",
            {"centre": [0.0], "deviation": [1.0], "landmarks": [[0.0]], "normalisation": [[1.0]], "gamma": [-1.0]},
            "not above 0",
        ),
        (
            "nystroem:2",
            {
                "centre": [0.0],
                "deviation": [1.0],
                "landmarks": [[0.0], [1.0]],
                "normalisation": [[1.0]],
                "gamma": [1.0],
            },
            r"shape \(2, 2\)",
        ),
    ],
)
def test_arrays_of_senseless_values(name, changes, message):
    arrays = {
        key: np.array(value, dtype=np.int64 if key in ("starts", "tailed") else float) for key, value in changes.items()
    }
    if "knots" in arrays:
        arrays.setdefault("ranges", np.zeros((3, 1)))
    with pytest.raises(FeatureMapError, match=message):
        map_of_arrays(name, 1, arrays)


def test_knots_of_several_features_may_fall_back():
    arrays = {"knots": np.array([5.0, 1.0]), "starts": np.array([0, 1, 1, 2]), "ranges": np.zeros((3, 3))}
    assert map_of_arrays("piecewise", 3, arrays).n_out == 5


@over(
    ("name", "message"),
    [
        ("piecewis", "did you mean 'piecewise'"),
        ("poly:2", "choose from linear, logarithms, piecewise"),
        ("piecewise:0", "whole number from 1 on, as in piecewise:4"),
        ("piecewise:x", "whole number"),
        ("piecewise:", "whole number"),
        ("piecewise:1e3", "whole number"),
        ("nystroem:99999999999999999999", "whole number"),
        ("products:3", "choose from"),
        ("rules:0", "a number of trees up to 10,000, a depth from 1 to 6, or both"),
        ("rules:10001", "a number of trees"),
        ("rules:depth=7", "a depth from 1 to 6"),
        ("rules:depth=", "a depth"),
        ("rules:3:4", "as in rules:100"),
        ("rules:leaves=4", "as in rules:100"),
    ],
)
def test_bad_names(name, message):
    with pytest.raises(ValueError, match=message) as caught:
        parsed(name)
    assert isinstance(caught.value, FeatureMapError | UnknownNameError)


def test_no_rows_are_nothing_to_learn_from():
    with pytest.raises(FeatureMapError, match="no rows"):
        learn_map("piecewise", np.ones((3, 2)), np.empty(0, dtype=np.int64))
    with pytest.raises(FeatureMapError, match="more knots than the 3 rows"):
        learn_map("piecewise:99999999", np.ones((3, 2)))


def test_too_much(rng):
    wide = sp.csr_array(rng.normal(size=(20, 1000)) * (rng.random((20, 1000)) < 0.01))
    with pytest.raises(
        FeatureMapError, match="products makes 501,500 columns, more than 100,000: it takes all pairs of"
    ):
        learn_map("products", wide)


# Each against another's arithmetic.


def test_piecewise_by_its_definition(X):
    learned = learn_map("piecewise:3", X)
    expected, column = [X[:, j] for j in range(7)], 0
    for j in range(7):
        for q in learned.knots[learned.starts[j] : learned.starts[j + 1]]:
            assert X[:, j].min() < q < X[:, j].max()
            assert q in X[:, j]
            expected.append(np.maximum(0, X[:, j] - q) if q >= 0 else np.minimum(0, X[:, j] - q))
            column += 1
    assert column == learned.knots.size > 9
    np.testing.assert_array_equal(learned.apply(X), np.column_stack(expected))
    assert np.diff(learned.starts)[[3, 4]].tolist() == [0, 0]  # one value, two values


def test_where_knots_stand():
    def knots(values, K):
        return learn_map(f"piecewise:{K}", np.array(values, dtype=float)[:, None]).knots.tolist()

    assert knots(range(101), 4) == [20.0, 40.0, 60.0, 80.0]
    # Half of the values are 0: the quantiles of the others count.
    assert knots([*[0] * 100, *range(1, 101)], 4) == [20.0, 40.0, 60.0, 80.0]
    assert knots([*[0] * 100, *range(-100, 0)], 4) == [-81.0, -61.0, -41.0, -21.0]
    assert knots([1, 2, 3], 4) == [2.0]
    assert knots([0, 1] * 9, 4) == knots([5, 5], 4) == knots([0, 0], 4) == []


def test_products_as_scikit_learn_has_them(X):
    learned = learn_map("products", X)
    judge = PolynomialFeatures(2, include_bias=False)
    np.testing.assert_allclose(learned.apply(X), judge.fit_transform(StandardScaler().fit_transform(X)), atol=1e-9)
    assert learned.names(list("abcdefg"))[7:10] == ["a²", "a·b", "a·c"]


def test_nystroem_as_scikit_learn_has_it(X, rng):
    """With all rows as landmarks the features' products are the kernel itself, whatever the order of the rows."""
    varying = np.delete(X, 3, axis=1)[:80]
    learned = learn_map("nystroem:80", varying)
    scaled = StandardScaler().fit_transform(varying)
    judge = ScikitNystroem(gamma=1 / 6, n_components=80, random_state=0).fit_transform(scaled)
    features = learned.apply(varying)
    np.testing.assert_allclose(features @ features.T, judge @ judge.T, atol=1e-6)
    assert learned.gamma[0] == pytest.approx(1 / 6)


def test_landmarks_depend_on_the_seed_alone(X):
    one, again, other = (learn_map("nystroem:9", X, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.landmarks, again.landmarks)
    assert not np.array_equal(one.landmarks, other.landmarks)
    assert one.landmarks.shape == (9, 7)
    assert not np.array_equal(one.landmarks, other.landmarks)


def test_a_map_of_other_features(X):
    with pytest.raises(ValueError, match="maps 7 features, found 3"):
        MappedMatrix(X[:, :3], learn_map("piecewise", X))


def test_repeated_entries_are_summed_before_they_are_mapped():
    X = sp.csr_array((np.array([1.0, 2.0, 5.0]), np.array([0, 0, 0]), np.array([0, 2, 3])), shape=(2, 1))
    arrays = {"knots": np.array([2.0]), "starts": np.array([0, 1]), "ranges": np.zeros((3, 1))}
    learned = map_of_arrays("piecewise:1", 1, arrays)
    np.testing.assert_array_equal(dense(MappedMatrix(X, learned)[:]), [[3.0, 1.0], [5.0, 3.0]])
    assert X.data.size == 3  # left as it was


def test_a_quarter_of_the_memory_is_not_too_much(monkeypatch):
    monkeypatch.setattr(base, "memory", lambda: 4 * 800)
    check_size("a map", 10, 10, 8, "fewer rows")
    with pytest.raises(FeatureMapError, match=r"a map makes 101 rows of 1 dense columns.*: fewer rows"):
        check_size("a map", 101, 1, 8, "fewer rows")


def test_long_tails_have_logarithms(rng):
    """Also if the values crowd at the highest, or lie on both sides of 0; not if they are few, or have short tails."""
    amount = rng.lognormal(3.0, 1.5, 4000)
    X = np.column_stack(
        [
            amount,
            1e5 - amount,
            np.where(amount < 10.0, -amount, amount),
            np.where(rng.random(4000) < 0.9, 0.0, amount),
            rng.normal(size=4000),
            rng.poisson(0.02, 4000),
        ]
    )
    learned = learn_map("logarithms", X)
    assert learned.tailed.tolist() == [0, 1, 2, 3]
    assert learned.names(list("abcdef"))[6:] == [f"{name}, log scale" for name in "abcd"]
    z = (X[:, :4] - learned.origins) / learned.units
    expected = np.sign(z) * np.log1p(np.abs(z))
    logarithms = learned.apply(X)[:, 6:]
    np.testing.assert_allclose(logarithms - logarithms[0], expected - expected[0], atol=1e-12)
    assert (learned.origins[2:] == 0.0).all()
    np.testing.assert_allclose(learned.origins[:2], [amount.min(), X[:, 1].max()])
    assert np.sign(learned.units).tolist() == [1.0, -1.0, 1.0, 1.0]
    assert not learn_map("logarithms", X[:, 4:]).tailed.size
