"""Values tried, and values after the last."""

from __future__ import annotations

import pytest

from apsvm.trainers import TRAINERS
from apsvm.trainers.settings import Multiple, Settings, SettingsError


def multiples(*factors):
    return tuple(map(Multiple, factors))


def choices(grid):
    return [
        (variant.choice, getattr(variant.trainer.settings, variant.path or "", None)) for variant in grid.variants()
    ]


@pytest.mark.parametrize("family", TRAINERS)
def test_what_each_trainer_declares(family, grid):
    made = grid(TRAINERS[family].losses[0])
    declared = {name: values for name, values in made.trainer.grid.items() if values}
    assert {axis.name: axis.values for axis in made.axes} == declared
    searched = [axis for axis in made.axes if len(axis.values) > 1]
    assert searched
    assert made.along is not None
    for axis in made.axes:  # each is a value that the setting may have
        for value in axis.values:
            choice = {one.name: value if one is axis else one.values[0] for one in made.axes}
            assert isinstance(made.chosen(choice).trainer.settings, Settings)


def test_a_path_is_one_training_and_the_rest_are_combined(grid):
    made = grid("ap", {"C": (10.0, Multiple(2.0), 1.0), "bound": ("tight", "hinge"), "epsilon": (1e-2, 1e-3)})
    assert choices(made) == [
        ({"bound": bound, "epsilon": epsilon}, (1.0, 10.0, Multiple(2.0)))
        for bound in ("tight", "hinge")
        for epsilon in (1e-3, 1e-2)
    ]
    assert [axis.name for axis in made.axes] == ["bound", "epsilon", "C"]
    assert choices(grid("ap")) == [
        ({"bound": bound, "epsilon": 1e-3}, multiples(0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0))
        for bound in ("hinge", "tight")
    ]


def test_what_nobody_named_goes_with_what_somebody_did(grid):
    def axes(*arguments, **settings):
        return {axis.name: axis.values for axis in grid(*arguments, **settings).axes}

    assert axes("warp")["learning_rate"] == (0.005, 0.05, 0.5)
    assert axes("warp", rule="adadelta")["learning_rate"] == (0.1, 1.0, 10.0)
    assert axes("warp", rank_estimator="log-unbiased")["tau"] == ("harmonic",)


@pytest.mark.parametrize(
    ("loss", "named", "settings", "message"),
    [
        ("ap", {"C": (1.0, 1.0)}, {}, "-C: one value twice in 1, 1"),
        ("wmw", {"regularisation": (1.0, 1.0)}, {}, "-l: one value twice"),
        ("ap", {"C": ()}, {}, "-C: expected a value"),
        ("f1", {"bound": ("hinge", "tight")}, {}, "f1 has no tight bound"),
        ("wmw", {"regularisation": (-1.0, 1.0)}, {}, "of at least 0"),
        ("warp", {}, {"rows_as_users": True}, "looks at none"),
    ],
)
def test_refused(loss, named, settings, message, grid):
    with pytest.raises(SettingsError, match=message):
        grid(loss, named, **settings)
