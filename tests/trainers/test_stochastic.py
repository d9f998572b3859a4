"""What the trainers that go by epochs share: a training that is stopped is stored as one that is under way."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from trainings import train_top

from apsvm._support.work import Strand
from apsvm.trainers.base import Watch


class Memory:
    """A store that takes everything at once, or what is broken off alone."""

    def __init__(self, strands=None, *, is_due=True):
        self.strands = copy.deepcopy(strands or {})
        self.due = is_due

    def stored(self, strand):
        return self.strands.get(strand)

    def is_due(self, strand):
        return self.due

    def is_stopping(self):
        return False

    def store(self, strand, snapshot):
        self.strands[strand] = copy.deepcopy(snapshot)

    def drop(self, prefix):
        self.strands = {name: value for name, value in self.strands.items() if not name.startswith(prefix)}


def warp(watch, rng):
    X, relevant = rng.normal(size=(60, 3)), np.arange(60) < 10
    return train_top(X, relevant, epochs=6, watch=watch).w


@pytest.mark.parametrize("is_due", [True, False])
def test_stopped_between_epochs_it_goes_on_to_the_same_bits(is_due):
    expected = warp(Watch(), np.random.default_rng(0))
    stored, epochs = Memory(is_due=is_due), []

    class Log:
        def write(self, event, **fields):
            epochs.append(event)

    watch = Watch(log=Log(), should_stop=lambda: epochs.count("epoch") >= 3, strand=Strand(stored))
    stopped = warp(watch, np.random.default_rng(0))
    assert (stopped != expected).any()
    (strand,) = stored.strands.values()
    assert not strand["finished"]
    assert len(strand["under_way"]["state"]["epochs"].done) == 2
    resumed = warp(Watch(strand=Strand(Memory(stored.strands))), np.random.default_rng(0))
    np.testing.assert_array_equal(resumed, expected)
