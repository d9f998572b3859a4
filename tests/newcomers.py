"""Lines for the registry of trainers: of the newcomer (``tests/newcomer.py``) and of two whose settings have the names
of other trainers' settings, and defaults of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from newcomer import Perceptron

from apsvm.trainers.settings import Range, Settings, setting

LINE = {"perceptron": "newcomer:Perceptron"}
SECOND = {"second": "newcomers:Second"}
LATENT = {"latent": "newcomers:Latent"}
COST = {"cost": "newcomers:Cost"}
FOLDS = {"folds": "newcomers:Folds"}
SEEDED = {"seeded": "newcomers:Seeded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondSettings(Settings):
    """Other defaults than the perceptron's and WARP's."""

    passes: int = setting(3, range=Range(1), label="passes", help="Corrections, at most.")
    margin: float = setting(0.625, range=Range(0.0), label="margin", help="How far ahead a positive must be.")
    epochs: int = setting(7, range=Range(1), label="epochs", help="Of no use.")
    learning_rate: float = setting(0.25, range=Range(0.0), label="learning rate", help="How long a step is.")


class Second(Perceptron):
    """The perceptron, with these."""

    family: ClassVar[str] = "second"
    title: ClassVar[str] = "Second (--loss second)"
    Settings = SecondSettings
    losses: ClassVar[tuple[str, ...]] = ("second",)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentSettings(Settings):
    """A number where the structured SVM has a flag."""

    latent: int = setting(1, range=Range(1), help="Of no use.")


class Latent(Perceptron):
    """The perceptron, with that."""

    family: ClassVar[str] = "latent"
    Settings = LatentSettings
    losses: ClassVar[tuple[str, ...]] = ("latent",)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSettings(Settings):
    """The structured SVM's flag for another thing."""

    cost: float = setting(1.0, flags=("-C", "--cost"), help="Of no use.")


class Cost(Perceptron):
    """The perceptron, with that."""

    family: ClassVar[str] = "cost"
    Settings = CostSettings
    losses: ClassVar[tuple[str, ...]] = ("cost",)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldsSettings(Settings):
    """A setting with the name of an option of ``apsvm cv``."""

    folds: int = setting(4, help="Of no use.")


class Folds(Perceptron):
    """The perceptron, with that."""

    family: ClassVar[str] = "folds"
    Settings = FoldsSettings
    losses: ClassVar[tuple[str, ...]] = ("folds",)


def dumped(path: Path, X, labels, queries=None) -> Path:
    """A file of rows, written to ``path``."""
    with path.open("w") as stream:
        for row, (label, values) in enumerate(zip(labels, X, strict=True)):
            qid = "" if queries is None else f"qid:{queries[row]} "
            stream.write(f"{label} {qid}{' '.join(f'{j}:{value!r}' for j, value in enumerate(values.tolist(), 1))}\n")
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededSettings(SecondSettings):
    """A setting that all trainers have, declared anew."""

    seed: int = setting(0, help="Of what is random.")


class Seeded(Second):
    """The perceptron, with that."""

    family: ClassVar[str] = "seeded"
    Settings = SeededSettings
    losses: ClassVar[tuple[str, ...]] = ("seeded",)
