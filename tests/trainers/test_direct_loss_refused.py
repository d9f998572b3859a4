"""Direct loss minimisation: settings and data that it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from over import over
from trainings import train_by_steps, training_set

from apsvm._support.registry import UnknownNameError
from apsvm.data.rows import Rows
from apsvm.losses.base import LossError
from apsvm.risk import NothingToRankError
from apsvm.trainers.settings import SettingsError
from tests.trainers.test_direct_loss import noisy


class TestWhatIsRefused:
    @over(
        ("settings", "error", "words"),
        [
            ({"loss": "nothing"}, UnknownNameError, "unknown loss"),
            ({"loss": "f1"}, LossError, "over rankings"),
            ({"loss": "zero-one"}, LossError, "over rankings"),
            ({"loss": "p@3", "update": "negative"}, LossError, "choose the positive update"),
            ({"update": "sideways"}, SettingsError, "positive, negative"),
            ({"learning_rate": 0.0}, SettingsError, "learning_rate"),
            ({"learning_rate": 1e-310}, SettingsError, "learning rate must lie in 1e-300"),
            ({"perturbation": 0.0}, SettingsError, "perturbation"),
            ({"perturbation": 1e-300}, SettingsError, "perturbation"),
            ({"perturbation": float("nan")}, SettingsError, "perturbation"),
            ({"l2": -1.0}, SettingsError, "l2"),
            ({"l2": 1e10}, SettingsError, "weight l2 must lie in"),
        ],
    )
    def test_settings(self, settings, error, words, rng):
        with pytest.raises(error, match=words):
            train_by_steps(noisy(rng, n=50), **settings)

    def test_data_without_pairs(self, rng):
        rows = Rows(rng.normal(size=(4, 2)))
        for relevant, groups in (
            (np.ones(4, dtype=bool), None),
            (np.zeros(4, dtype=bool), None),
            (np.array([1, 1, 0, 0], dtype=bool), np.array([0, 0, 1, 1])),
        ):
            with pytest.raises(NothingToRankError):
                train_by_steps(training_set(rows, relevant, groups))

    @pytest.mark.parametrize("size", [1e160, 1e307])
    def test_features_too_large(self, size, rng):
        data = noisy(rng, n=50)
        with pytest.raises(FloatingPointError, match="not finite"):
            train_by_steps(replace(data, rows=Rows(size * data.rows.in_memory().matrix)))
