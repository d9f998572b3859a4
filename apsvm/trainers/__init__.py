"""Trainers behind ``--loss``: one file for each family, one line here.

Importing this is cheap: a family's file holds its declaration (``apsvm.trainers.base``) and loads its algorithm when it
trains.
"""

from __future__ import annotations

from collections.abc import Iterable

from apsvm._support.naming import OBJECTIVES, advice
from apsvm._support.registry import Registry, UnknownNameError
from apsvm.trainers.base import Trainer

#: Family name → trainer, in the order of ``--help``.
TRAINERS: Registry[Trainer[object]] = Registry(  # type: ignore[type-var]
    "trainer",
    {
        "structured-svm": "apsvm.trainers.structured_svm.trainer:StructuredSVMTrainer",
        "rank-ncg": "apsvm.trainers.rank_ncg.trainer:RankNCGTrainer",
        "warp": "apsvm.trainers.warp.trainer:WarpTrainer",
    },
)


def trainer_of(loss: str) -> type[Trainer[object]]:  # type: ignore[type-var]
    """Class of the trainer for a loss, given the loss's name in lower case or a user's ``package.module:Name``.

    Raises
    ------
    UnknownNameError : no trainer has the loss; lists the known losses and the nearest
    """
    for trainer in TRAINERS.values():
        if trainer.serves(loss) and loss not in OBJECTIVES:
            return trainer
    raise unknown_loss(loss, known_losses())


def unknown_loss(name: str, losses: Iterable[str]) -> UnknownNameError:
    """Error for a ``name`` that is not among the ``losses``; it offers the nearest."""
    ours = OBJECTIVES.get(name)
    if ours is not None:
        return UnknownNameError(f"no loss {name!r} here; instead: {advice('--loss ')}{ours}")
    return Registry[object]("loss", dict.fromkeys(losses, "")).unknown(name)


def known_losses() -> list[str]:
    """The losses of all trainers, or their forms, in the order of ``--help``."""
    return [loss for trainer in TRAINERS.values() for loss in trainer.losses]


__all__ = ["TRAINERS", "UnknownNameError", "known_losses", "trainer_of", "unknown_loss"]
