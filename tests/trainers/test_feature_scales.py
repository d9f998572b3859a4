"""A training that comes to no good end names the features whose scales are far apart."""

from __future__ import annotations

import numpy as np
from over import over

from apsvm.data.dataset import Dataset
from apsvm.solvers.state import State
from apsvm.trainers.base import Outcome
from apsvm.trainers.feature_scales import scales_checked
from apsvm.trainers.structured_svm.settings import StructuredSettings


def cautions(X, state=State.STALLED, *, zero_based=False):
    dataset = Dataset(X, np.ones(len(X)), None, None, zero_based, "rows", "", 0)
    outcome = Outcome(w=None, state=state, settings=StructuredSettings(), cautions=("before",))
    return scales_checked(outcome, dataset).cautions


@over("state", [State.STALLED, State.NUMERICAL_TROUBLE, State.TIME_LIMIT, State.ITERATION_LIMIT])
@over(("zero_based", "low", "high"), [(False, 3, 2), (True, 2, 1)])
def test_the_two_ends_are_named(state, zero_based, low, high, rng):
    X = rng.normal(size=(100, 4)) * [1.0, 5e3, 0.1, 0.0]
    before, caution = cautions(X, state, zero_based=zero_based)
    assert before == "before"
    assert f"(feature {low}) to" in caution
    assert f"(feature {high}): --scale standard" in caution


def test_nothing_is_said_of_a_good_end_or_of_one_scale(rng):
    X = rng.normal(size=(100, 3))
    far = X * [1.0, 1e6, 1.0]
    assert cautions(far, State.CONVERGED) == ("before",)
    assert cautions(far, State.INTERRUPTED) == ("before",)
    assert cautions(X * [1.0, 300.0, 1.0]) == ("before",)
    assert cautions(far[:, 1:2]) == ("before",)
    assert cautions(np.zeros((5, 3))) == ("before",)
