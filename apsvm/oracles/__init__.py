"""Oracles, which find the most violated ranking: one file for each algorithm, one line here. The listing is the list
of options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apsvm._support.registry import Registry

if TYPE_CHECKING:
    from apsvm.losses.base import Loss
    from apsvm.oracles.base import AnyOracle

ORACLES: Registry[AnyOracle] = Registry(
    "oracle",
    {
        "greedy": "apsvm.oracles.greedy:Greedy",
        "search": "apsvm.oracles.search:Search",
        "select": "apsvm.oracles.selective:Select",
        "search-select": "apsvm.oracles.selective:SearchSelect",
        "qs": "apsvm.oracles.quicksort:QuickSort",
        "bucket": "apsvm.oracles.bucket:Bucket",
        "two-runs": "apsvm.oracles.two_runs:TwoRuns",
        "lattice": "apsvm.oracles.lattice:Lattice",
        "exchange": "apsvm.oracles.exchange:Exchange",
        "raised": "apsvm.oracles.raised:Raised",
        "labelling": "apsvm.oracles.labelling:Labelling",
        "zero-one": "apsvm.oracles.zero_one:ZeroOneOracle",
        "brute-force": "apsvm.oracles.brute_force:BruteForce",
    },
)

#: ``auto`` takes the first of these that serves the loss.
AUTO = ("bucket", "two-runs", "lattice", "exchange", "raised", "labelling", "zero-one")


def serving(loss: Loss) -> list[str]:
    """Names of the oracles that can serve ``loss``, as declared by their classes."""
    return [name for name, kind in ORACLES.items() if kind.refusal(loss) is None]


def make_oracle(name: str, loss: Loss) -> AnyOracle:
    """The oracle ``name`` for ``loss``; ``"auto"`` is the fastest that serves it.

    Raises
    ------
    UnknownNameError : no such oracle
    LossError : the oracle cannot serve the loss; says why and which oracles can
    """
    from apsvm.losses.base import LossError

    if name == "auto":
        for choice in AUTO:
            kind = ORACLES[choice]
            if kind.refusal(loss) is None:
                return kind()
        raise LossError(f"no oracle serves loss {loss.name!r}")
    kind = ORACLES[name]
    refusal = kind.refusal(loss)
    if refusal is not None:
        others = ", ".join(serving(loss))
        raise LossError(f"oracle {name!r} cannot serve loss {loss.name!r}: {refusal}; choose auto or {others}")
    return kind()
