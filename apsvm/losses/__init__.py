"""What is optimised: one file a loss, one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apsvm.registry import Registry

if TYPE_CHECKING:
    from apsvm.losses.base import Loss

LOSSES: Registry[Loss] = Registry(
    "loss",
    {
        "ap": "apsvm.losses.average_precision:AveragePrecision",
        "zero-one": "apsvm.losses.zero_one:ZeroOne",
    },
)
