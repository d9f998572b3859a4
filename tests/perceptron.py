"""A trainer that a newcomer might write: the averaged perceptron, of two classes, and of the order of grades."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from apsvm.data.takes import Takes
from apsvm.trainers.base import Outcome, Trainer, TrainingError, TrainingSet, Watch
from apsvm.trainers.capabilities import Capabilities
from apsvm.trainers.settings import Range, Settings, SettingsError, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class PerceptronSettings(Settings):
    """What is asked of the perceptron."""

    passes: int = setting(30, range=Range(1), help="Passes over the rows.")
    margin: float = setting(1.0, range=Range(0.0), help="Rows within --margin of the others are corrected, too.")
    average: str = setting("all", choices=("all", "last"), help="Which weights are kept.")
    centred: bool = setting(True, help="Whether features are centred first.")
    notes: str | None = setting(None, in_header=False, help="A remark for the log.")


class Perceptron(Trainer[PerceptronSettings]):
    """Corrections towards the positives and away from the negatives."""

    family: ClassVar[str] = "perceptron"
    title: ClassVar[str] = "Perceptron (--loss perceptron)"
    Settings = PerceptronSettings
    losses: ClassVar[tuple[str, ...]] = ("perceptron", "perceptron-auc")
    capabilities = Capabilities(queries=False)

    def __init__(self, loss="perceptron", settings=None, given=frozenset()):
        super().__init__(loss, settings, given)
        if self.settings.average == "last" and self.settings.margin == 0.0:
            raise SettingsError("--average last needs a --margin above 0")

    @property
    def metric(self):
        return "AUC"

    def check(self, data: TrainingSet) -> Iterator[str]:
        if not np.isfinite(data.rows.moments().variance).all():
            raise TrainingError("features too large to be centred")
        yield from ()

    def train(self, data: TrainingSet, watch: Watch, *, start=None, validation=None) -> Iterator[Outcome]:
        asked = self.settings
        signs = np.where(data.target.relevant, 1.0, -1.0)
        signs /= np.where(signs > 0, (signs > 0).sum(), (signs < 0).sum())  # as if the classes were of one size
        mean = data.rows.moments().mean if asked.centred else 0.0
        w = np.zeros(data.rows.dimension) if start is None else start.copy()
        kept = w.copy()
        for _ in range(asked.passes):
            wrong = np.sign(signs) * (data.rows.scores(w) - w @ np.broadcast_to(mean, w.shape)) <= asked.margin
            c = np.where(wrong, signs, 0.0)
            w = w + data.rows.combine(c) - c.sum() * mean
            kept += w
        w = kept / asked.passes if asked.average == "all" else w
        yield Outcome(w=w, state="converged", settings=asked, iterations=asked.passes)


class GradedPerceptron(Perceptron):
    """The same of grades: those above the mean against the others, by query."""

    family: ClassVar[str] = "graded-perceptron"
    losses: ClassVar[tuple[str, ...]] = ("graded-perceptron",)
    capabilities = Capabilities(labels=Takes.ORDER)

    @property
    def metric(self):
        return "WMW"
