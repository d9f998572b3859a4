"""Losses for training: one file each, one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apsvm._support.registry import Registry
from apsvm._support.shown import shortened

if TYPE_CHECKING:
    from apsvm.losses.base import Loss

LOSSES: Registry[Loss] = Registry(
    "loss",
    {
        "ap": "apsvm.losses.average_precision:AveragePrecisionLoss",
        "ndcg": "apsvm.losses.ndcg:NDCGLoss",
        "ndcg(gain)": "apsvm.losses.ndcg:NDCGLoss",
        "mrr": "apsvm.losses.reciprocal_rank:ReciprocalRankLoss",
        "auc": "apsvm.losses.roc_area:ROCAreaLoss",
        "pauc(beta)": "apsvm.losses.partial_roc_area:PartialROCAreaLoss",
        "rbp(rho)": "apsvm.losses.rank_biased:RankBiasedPrecisionLoss",
        "ndcg@k": "apsvm.losses.ndcg_at_k:NDCGAtKLoss",
        "ndcg-chakrabarti": "apsvm.losses.ndcg_chakrabarti:ChakrabartiNDCGLoss",
        "p@k": "apsvm.losses.precision_at_k:PrecisionAtKLoss",
        "f1": "apsvm.losses.f_measure:FMeasureLoss",
        "f(beta)": "apsvm.losses.f_measure:FMeasureLoss",
        "set-p@k": "apsvm.losses.set_precision_at_k:SetPrecisionAtKLoss",
        "set-r@k": "apsvm.losses.set_recall_at_k:SetRecallAtKLoss",
        "prbep": "apsvm.losses.break_even:BreakEvenLoss",
        "zero-one": "apsvm.losses.zero_one:ZeroOneLoss",
    },
)
"""Form of a name → class. A class called without arguments makes the loss of its default parameter."""


def make_loss(loss: str | object) -> Loss:
    """Makes a loss from its name in any case (``"ap"``, ``"rbp(0.8)"``), from ``"package.module:Name"`` (files of the
    current folder included), or from a user's object or class with ``weights(n_pos)`` and ``discount(n)``.

    Raises
    ------
    UnknownNameError : (a ValueError) no such loss; lists the known ones and the nearest
    LossError : (a ValueError) a bad parameter; an import that failed; a loss of the user's own that breaks the contract
        of its two arrays, with the first position where it does
    """
    from apsvm.losses.base import LossError
    from apsvm.losses.own import imported_loss, own_loss

    if not isinstance(loss, str):
        return _with_known_start(own_loss(loss))
    if ":" in loss:
        return _with_known_start(imported_loss(loss))
    form, text = LOSSES.spelled(loss)
    kind = LOSSES[form]
    if text is None:
        return kind()
    assert kind.parameter is not None
    try:
        value = kind.parameter(text)
    except ValueError:
        expected = "a whole number" if kind.parameter is int else "a number"
        raise LossError(
            f"bad parameter in loss {shortened(loss)!r}: {form} takes {expected}, as in {kind().name}, found "
            f"{shortened(text)!r}"
        ) from None
    return kind(value)  # type: ignore[call-arg]


def _with_known_start(loss: Loss) -> Loss:
    """Returns ``loss`` if its ``starts_from`` names a known loss or is None; raises LossError if not."""
    from apsvm.losses.base import LossError

    start: object = loss.starts_from
    if not isinstance(start, str | None):
        raise LossError(f"loss {loss.name!r}: expected starts_from to be the name of a loss or None, found {start!r}")
    if start is not None and ":" not in start:
        try:
            LOSSES.spelled(start)
        except ValueError as error:
            raise LossError(f"loss {loss.name!r}: starts_from: {error}") from None
    return loss
