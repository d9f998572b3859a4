"""The parameter ``loss``: a name, a user's own object, or what a model's header calls it.

A header's words are never imported: where it names a loss that is not this package's, the estimator has a ``NamedLoss``
and scores, but trains again only with the loss itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Self

from apsvm._support.registry import Registry
from apsvm.estimators.base import LinearEstimator, loaded
from apsvm.models.base import Ranker
from apsvm.trainers.base import AnyTrainer


@dataclass(frozen=True)
class NamedLoss:
    """A user's own loss of which a model's header tells the name, and nothing else is known."""

    name: str

    def __str__(self) -> str:
        return self.name


class TakesLoss(LinearEstimator):
    """An estimator with a parameter ``loss``."""

    loss: str | object

    @classmethod
    def from_model(cls, model: Ranker | str | os.PathLike[str], loss: str | object = None) -> Self:
        """An estimator that scores as ``model`` (``apsvm.load_model``, or its file) does, with its parameters as far as
        its header tells them.

        Parameters
        ----------
        loss : str or object
            What it was trained on, where that is a loss of your own: a header names it, and nothing that a
            file names is imported. Without it such an estimator scores, but is not trained again.

        Raises
        ------
        ValueError
            This class does not train such models.
        """
        model = loaded(model)
        return cls._of_model(model, {"loss": _known_loss(cls._trainer, model.header.loss) if loss is None else loss})

    def _loss(self) -> str | object:
        loss = self.loss
        if isinstance(loss, NamedLoss):
            raise ValueError(
                f"of the loss {loss.name!r} only the name is known, from a model's file, and nothing that a file names "
                f"is imported: pass the loss itself, as {type(self).__name__}.from_model(model, loss=…) or "
                "set_params(loss=…)"
            )
        if not isinstance(loss, str):
            return loss
        loss = loss if ":" in loss else loss.strip().lower()
        if not self._trainer.serves(loss):
            raise Registry[object]("loss", dict.fromkeys(self._trainer.losses, "")).unknown(loss)
        return loss

    def _judge(self) -> AnyTrainer | None:
        if isinstance(self.loss, NamedLoss) and self._header.metric is not None:
            return None
        return super()._judge()


def _known_loss(trainer: type[AnyTrainer], name: str) -> str | NamedLoss:
    """``name``, if it is that of one of the package's own losses, which ``trainer`` trains on."""
    if ":" in name:
        return NamedLoss(name)
    try:
        trainer(name)
    except ValueError:
        return NamedLoss(name)
    return name
