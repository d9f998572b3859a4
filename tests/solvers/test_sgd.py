"""Epochs, early stopping, the best snapshot: on made-up passes."""

from __future__ import annotations

import time

import pytest

from apsvm.solvers.sgd import Ending, Pass, descend


class Counter:
    """Parameters that are a number of passes."""

    def __init__(self, *, still_from: int = 10**9, values: list[float] | None = None) -> None:
        self.at = 0
        self.still_from = still_from
        self.values = values
        self.validated: list[int] = []

    def one_pass(self, stop) -> Pass:
        self.at += 1
        return Pass(10, 20, 3, 0.5, moved=self.at < self.still_from)

    def snapshot(self) -> int:
        return self.at

    def validate(self, at: int) -> float:
        assert self.values is not None
        self.validated.append(at)
        return self.values[at - 1]


def test_all_epochs_and_the_last_snapshot():
    counter, seen = Counter(), []
    outcome = descend(counter.one_pass, counter.snapshot, epochs=4, patience=1, on_epoch=seen.append)
    assert (outcome.best, outcome.best_epoch, outcome.ending) == (4, 4, Ending.EPOCHS_DONE)
    assert outcome.ending.as_asked
    assert seen == outcome.epochs
    assert [epoch.number for epoch in seen] == [1, 2, 3, 4]
    assert [epoch.validation for epoch in seen] == [None] * 4
    assert all(epoch.best for epoch in seen)
    assert seen[-1].seconds_in_all >= sum(epoch.seconds for epoch in seen)


@pytest.mark.parametrize(
    ("values", "patience", "best", "epochs", "ending"),
    [
        ([0.1, 0.4, 0.3, 0.2, 0.9], 2, 2, 4, Ending.STOPPED_IMPROVING),
        ([0.1, 0.4, 0.3, 0.2, 0.9], 3, 5, 5, Ending.EPOCHS_DONE),
        ([0.5, 0.5, 0.5, 0.5, 0.5], 4, 1, 5, Ending.STOPPED_IMPROVING),  # an equal value is no better one
        ([0.0, 0.0, 0.0, 0.0, 0.1], 9, 5, 5, Ending.EPOCHS_DONE),
        ([-3.0, -2.0, -5.0, -5.0, -5.0], 1, 2, 3, Ending.STOPPED_IMPROVING),
    ],
)
def test_the_best_epoch_is_kept(values, patience, best, epochs, ending):
    counter = Counter(values=values)
    outcome = descend(counter.one_pass, counter.snapshot, epochs=5, validate=counter.validate, patience=patience)
    assert (outcome.best, outcome.best_epoch, outcome.ending) == (best, best, ending)
    assert counter.validated == list(range(1, epochs + 1))
    assert [epoch.validation for epoch in outcome.epochs] == values[:epochs]


def test_it_stops_where_nothing_moves():
    counter = Counter(still_from=3)
    outcome = descend(counter.one_pass, counter.snapshot, epochs=9)
    assert (outcome.best, outcome.ending) == (3, Ending.NOTHING_VIOLATES)
    assert outcome.ending.as_asked


def test_a_stop_breaks_the_pass_off():
    asked = []

    def one_pass(stop) -> Pass:
        asked.append(stop())
        return Pass(1, 1, 1, 0.0)

    outcome = descend(one_pass, lambda: "w", epochs=9, should_stop=lambda: len(asked) >= 2)
    assert asked == [False, False]
    assert (outcome.ending, outcome.best_epoch, len(outcome.epochs)) == (Ending.INTERRUPTED, 2, 2)
    assert not outcome.ending.as_asked


def test_the_time_limit_is_seen_inside_a_pass():
    def one_pass(stop) -> Pass:
        while not stop():
            time.sleep(0.001)
        return Pass(1, 1, 1, 0.0)

    outcome = descend(one_pass, lambda: "w", epochs=9, time_limit=0.02)
    assert (outcome.ending, len(outcome.epochs)) == (Ending.TIME_LIMIT, 1)


def test_an_interrupted_epoch_that_is_worse_is_not_kept():
    counter = Counter(values=[0.7, 0.2])
    outcome = descend(
        counter.one_pass,
        counter.snapshot,
        epochs=9,
        validate=counter.validate,
        should_stop=lambda: counter.at == 2,
    )
    assert (outcome.best, outcome.ending) == (1, Ending.INTERRUPTED)


class Spoiled(Counter):
    """From a given epoch on a pass, or a validation, comes to what is not finite, and leaves it in the parameters."""

    def __init__(self, where: str, at_epoch: int, **options) -> None:
        super().__init__(**options)
        self.where, self.at_epoch = where, at_epoch

    def one_pass(self, stop) -> Pass:
        passed = super().one_pass(stop)
        if self.where == "pass" and self.at >= self.at_epoch:
            self.at = -1
            raise FloatingPointError("the weights are not finite")
        return passed

    def validate(self, at: int) -> float:
        if self.where == "validation" and self.at >= self.at_epoch:
            raise FloatingPointError("the scores are not finite")
        return super().validate(at)


@pytest.mark.parametrize("where", ["pass", "validation"])
def test_trouble_keeps_the_best_epoch(where):
    counter = Spoiled(where, 4, values=[0.1, 0.9, 0.3, 1.0])
    outcome = descend(counter.one_pass, counter.snapshot, epochs=9, validate=counter.validate)
    assert (outcome.best, outcome.best_epoch, outcome.ending) == (2, 2, Ending.NUMERICAL_TROUBLE)
    assert not outcome.ending.as_asked
    assert outcome.trouble.endswith("not finite")
    assert len(outcome.epochs) == 3


def test_trouble_without_a_validation_keeps_the_last_epoch():
    counter = Spoiled("pass", 3)
    outcome = descend(counter.one_pass, counter.snapshot, epochs=9)
    assert (outcome.best, outcome.best_epoch, outcome.ending) == (2, 2, Ending.NUMERICAL_TROUBLE)


def test_trouble_in_the_first_epoch_is_an_error():
    for counter in (Spoiled("pass", 1), Spoiled("validation", 1, values=[1.0])):
        with pytest.raises(FloatingPointError):
            descend(
                counter.one_pass,
                counter.snapshot,
                epochs=9,
                validate=counter.validate if counter.values else None,
            )
