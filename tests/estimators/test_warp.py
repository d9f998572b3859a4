"""WARP's estimator: the same training as the command's, its score, its parameters."""

from __future__ import annotations

import numpy as np
import pytest
from over import over
from sklearn.exceptions import ConvergenceWarning

from apsvm import WARPRanker


def test_out_of_time(data):
    with pytest.warns(ConvergenceWarning, match="time limit"):
        WARPRanker(time_limit=0).fit(data.X, data.y)


@over(
    ("parameters", "message"),
    [
        ({"tau": "hope"}, "unknown tau 'hope'"),
        ({"rank_estimator": "hope"}, "rank_estimator is one of plugin, .*, found 'hope'"),
        ({"rule": "hope"}, "rule is one of .*, found 'hope'"),
        ({"tau": "auc", "rank_estimator": "log-unbiased"}, "log-unbiased"),
        ({"max_trials": 0}, "max_trials"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"l2": -1}, "l2"),
        ({"epochs": 0}, "epochs"),
        ({"relevant_from": np.inf}, "relevant_from"),
        ({"relevant_from": 9}, "of grades of 9 and above, and others; found 0 of 240 relevant"),
    ],
)
def test_parameters_that_do_not_fit(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        WARPRanker(**parameters).fit(data.X, data.y)
