"""Time a call of every oracle for a loss, beside np.sort of all scores; one thread.

python scripts/bench/oracles.py [--loss ap]    P = 100 and P = 1,000, N = 1e3 … 1e6
python scripts/bench/oracles.py --large        the bucket oracle up to P = N = 500,000, and on hostile scores
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from apsvm.losses import make_loss
from apsvm.losses.base import Loss
from apsvm.oracles import make_oracle, serving

T = TypeVar("T")
Scores = tuple[NDArray[np.float64], NDArray[np.float64]]

#: (P, N): few positives, and as many as negatives.
SIZES = ((1000, 1_000_000), (100_000, 100_000), (100_000, 1_000_000), (500_000, 500_000), (30_000, 3_000_000))


def fastest(call: Callable[[], T], *, budget: float = 1.0, at_least: int = 3) -> tuple[float, T]:
    """Processor seconds of the fastest of ``at_least`` calls or as many as ``budget`` seconds hold, and the last
    result."""
    best, spent, count = np.inf, 0.0, 0
    while count < at_least or (spent < budget and count < 200):
        began = time.thread_time()
        result = call()
        taken = time.thread_time() - began
        best, spent, count = min(best, taken), spent + taken, count + 1
    return best, result


def normal_scores(rng: np.random.Generator, n_pos: int, n_neg: int, shift: float) -> Scores:
    """Normal scores, the positives' shifted: 1 leaves most negatives above some positive, as early in a training, 5
    leaves few, as at its end."""
    return rng.normal(size=n_pos) + shift, rng.normal(size=n_neg)


def hostile_scores(rng: np.random.Generator, n_pos: int, n_neg: int) -> Mapping[str, Scores]:
    """Scores that fill bins unevenly."""
    kinds = {
        "Cauchy": rng.standard_cauchy(size=n_neg),
        "two values": rng.integers(0, 2, size=n_neg) * 1.0,
        "sorted": np.sort(rng.normal(size=n_neg)),
        "one outlier": np.where(np.arange(n_neg) == n_neg // 3, 1e9, rng.normal(size=n_neg)),
        "denormal": 5e-324 * rng.integers(0, 1000, size=n_neg),
    }
    return {kind: (rng.choice(scores, size=n_pos), scores) for kind, scores in kinds.items()}


def milliseconds(name: str, loss: Loss, scores: Scores) -> float:
    """Time of a call of the oracle ``name``."""
    n_pos, n_neg = (part.size for part in scores)
    oracle = make_oracle(name, loss).bind(loss, n_pos, n_neg)
    return 1e3 * fastest(partial(oracle, *scores, np.empty(n_pos), np.empty(n_neg)))[0]


def oracle_table(loss: Loss, names: Sequence[str], cases: Mapping[str, Scores]) -> Iterator[str]:
    """Lines of a table: milliseconds a call of each oracle, and their ratio to np.sort."""
    yield f"loss {loss.name}, one thread; milliseconds a call (multiples of np.sort)"
    yield f"{'':<36} {'np.sort':>9} " + "".join(f"{name:>22}" for name in names)
    for case, scores in cases.items():
        sort = 1e3 * fastest(partial(np.sort, np.concatenate(scores)), budget=0.3)[0]
        cells = (milliseconds(name, loss, scores) for name in names)
        yield f"{case:<36} {sort:>9.3f} " + "".join(f"{cell:>12.3f} ({cell / sort:>6.2f}x)" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--loss", metavar="NAME", default="ap")
    arguments = parser.parse_args()
    loss, rng = make_loss(arguments.loss), np.random.default_rng(0)
    names = [name for name in serving(loss) if name != "brute-force"]
    sizes: Sequence[tuple[int, int]] = [(n_pos, 10**power) for n_pos in (100, 1000) for power in (3, 4, 5, 6)]
    if arguments.large:
        names, sizes = ["bucket"], SIZES
    cases = {
        f"P = {n_pos:,}, N = {n_neg:,}, shift {shift:g}": normal_scores(rng, n_pos, n_neg, shift)
        for n_pos, n_neg in sizes
        for shift in (1.0, 5.0)
    }
    if arguments.large:
        cases |= hostile_scores(rng, 1000, 1_000_000)
    for line in oracle_table(loss, names, cases):
        print(line, flush=True)


if __name__ == "__main__":
    main()
