"""What is tried, and what comes after the last value."""

from __future__ import annotations

import pytest
from over import over

from apsvm.selection.grids import Axis
from apsvm.trainers import TRAINERS
from apsvm.trainers.settings import Multiple, Range, Settings, SettingsError


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
        for variant in made.around({one.name: one.values[0] for one in made.axes}, axis, axis.values):
            assert isinstance(variant.trainer.settings, Settings)


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
        ("f1", {"bound": ("hinge", "tight")}, {}, "tight is for losses over rankings"),
        ("wmw", {"regularisation": (-1.0, 1.0)}, {}, "of at least 0"),
        ("warp", {}, {"rows_as_users": True}, "looks at none"),
    ],
)
def test_refused(loss, named, settings, message, grid):
    with pytest.raises(SettingsError, match=message):
        grid(loss, named, **settings)


@over(
    ("values", "limits", "above", "below"),
    [
        ((0.001, 0.01, 0.1), Range(), (1.0, 10.0), (0.00001, 0.0001)),
        ((0.1, 0.3), Range(), (0.9, 2.7), (0.0111111111111, 0.0333333333333)),
        ((1.0, 2.0, 8.0), Range(), (32.0, 128.0), (0.25, 0.5)),
        ((0.1, 1.0), Range(0.01, 50.0), (10.0,), (0.01,)),
        ((0.1, 1.0), Range(0.1, 1.0), (), ()),
        (multiples(0.1, 1.0), Range(), multiples(10.0, 100.0), multiples(0.001, 0.01)),
        ((1.0, Multiple(1.0)), Range(), (), ()),
        ((0.0, 1.0), Range(), (), ()),
        ((2, 4), Range(), (8, 16), (1,)),
        ((1.0,), Range(), (), ()),
        (("a", "b"), Range(), (), ()),
    ],
)
def test_beyond(values, limits, above, below):
    axis = Axis("x", values, range=limits)
    assert axis.above() == above
    assert axis.below() == below
    assert all(type(new) is type(values[0]) for new in (*axis.above(), *axis.below()))
