"""Maps side by side: each member's columns, its arrays under its number, and parts that are one part where they are of
the same features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from apsvm.data.features import FeatureMapError, learn_map
from apsvm.data.features.additive import Contributions
from apsvm.data.features.joined import Joined
from apsvm.data.features.linear import Linear

NAMES = ("linear", "piecewise:3", "rules:20:depth=2")


@pytest.fixture
def X(rng):
    return np.where(rng.random((200, 4)) < 0.3, 0.0, rng.normal(size=(200, 4)))


def joined(X, *names: str) -> Joined:
    targets = (X[:, :1].T * X[:, 1] > 0.0).astype(float)
    return Joined(tuple(learn_map(name, X, targets=targets) for name in names))


@pytest.mark.parametrize("names", [NAMES, ("linear", "piecewise:3"), ("piecewise:3", "nystroem:9")], ids="+".join)
def test_columns_side_by_side(names, X):
    both = joined(X, *names)
    assert both.name == "+".join(names)
    apart = [one.apply(X) for one in both.maps]
    apart = np.hstack([part.toarray() if sp.issparse(part) else part for part in apart])
    assert apart.shape == (200, both.n_out)
    for form in (X, sp.csr_array(X)):
        made = both.apply(form)
        assert sp.issparse(made) == any(sp.issparse(one.apply(form)) for one in both.maps)
        np.testing.assert_allclose(made.toarray() if sp.issparse(made) else made, apart, atol=1e-12)
    assert [columns.stop - columns.start for columns in both.slices()] == [one.n_out for one in both.maps]
    assert len(both.names(list("abcd"))) == both.n_out


def test_arrays_make_the_same_map(X):
    both = joined(X, *NAMES)
    again = Joined.of_name(both.name, 4, both.arrays())
    assert isinstance(again, Joined)
    np.testing.assert_array_equal(sp.csr_array(again.apply(X)).todense(), sp.csr_array(both.apply(X)).todense())
    for arrays in ({**both.arrays(), "7.knots": X}, {**both.arrays(), "knots": X}, {"x.knots": X}):
        with pytest.raises(FeatureMapError, match=r"there is no map that the array \w+(\.knots)? is of"):
            Joined.of_name(both.name, 4, arrays)
    with pytest.raises(FeatureMapError, match="expected the arrays"):
        Joined.of_name(both.name, 4, {})


def test_parts_of_the_same_features_are_one(X, rng):
    both = joined(X, *NAMES)
    coef = rng.normal(size=both.n_out)
    parts = both.parts()
    assert len(set(parts.features)) == len(parts.features)
    contributions = Contributions(X, both, parts, coef, 0.25)
    np.testing.assert_allclose(contributions.base + contributions[:].sum(axis=1), both.apply(X) @ coef + 0.25)
    rules = both.maps[2]
    np.testing.assert_array_equal(both.typical(), rules.typical())
    assert both.limits(1) == rules.limits(1)
    assert set(both.breaks(1)) == {*both.maps[1].breaks(1), *rules.breaks(1)}


def test_what_is_made_of_all_features_is_a_part_beside_others(X, rng):
    both = joined(X, "linear", "nystroem:9")
    coef = rng.normal(size=both.n_out)
    contributions = Contributions(X, both, both.parts(), coef)
    assert contributions.parts.features == [(0,), (1,), (2,), (3,), (0, 1, 2, 3)]
    np.testing.assert_allclose(contributions.base + contributions[:].sum(axis=1), both.apply(X) @ coef)
    # Of two features it is the surface of the pair.
    pair = Joined((Linear(2), learn_map("nystroem:9", X[:, :2])))
    assert pair.parts().features == [(0,), (1,), (0, 1)]
    assert joined(X, "nystroem:9", "nystroem:5").parts() is None
